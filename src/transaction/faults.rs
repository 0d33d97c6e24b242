//! Faults of a store.
