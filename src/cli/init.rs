//! `tollgate init`: writes a working example.
