//! A store in memory: for tests, simulations and throw-away sessions. Nothing survives the process.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use super::{Batch, Bytes, Direction, Pair, Range, Store, StoreError};

/// Ordered rows behind one lock.
#[derive(Default)]
pub struct MemoryStore {
    rows: RwLock<BTreeMap<Bytes, Bytes>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.rows.read().get(key).cloned())
    }

    fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<Pair>) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let map = self.rows.read();
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) =
            (range.low.as_ref().map(|b| &b[..]), range.high.as_ref().map(|b| &b[..]));
        let pairs = map.range::<[u8], _>(bounds).map(|(key, value)| (key.clone(), value.clone()));
        match direction {
            Direction::Ascending => rows.extend(pairs.take(limit)),
            Direction::Descending => rows.extend(pairs.rev().take(limit)),
        }
        Ok(())
    }

    fn apply(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut map = self.rows.write();
        for (key, value) in batch {
            match value {
                Some(value) => map.insert(key.clone(), value.clone()),
                None => map.remove(key),
            };
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
