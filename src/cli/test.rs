//! `tollgate test`: runs script tests.
