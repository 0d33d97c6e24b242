//! Stores: ordered bytes on disk or in memory, and the keys kept in them.
//!
//! A store promises four things and nothing more: point reads, ordered scans, *atomic* batches applied in
//! order, and a flush after which all that was applied survives a crash. Transactions, versions and expiry
//! are built above. The engine reads from many threads and writes from one.

#[cfg(test)]
mod damage;
mod disk;
mod journal;
pub(crate) mod key;
mod memory;
pub(crate) mod merge;
pub(crate) mod overlay;
mod sled;
#[cfg(test)]
mod tests;

pub(crate) use disk::DiskStore;
pub use memory::MemoryStore;

use std::ops::Bound;
use std::sync::Arc;

/// Shared bytes: a key or a value.
pub type Bytes = Arc<[u8]>;

/// One row of a scan: key, then value.
pub type Pair = (Bytes, Bytes);

/// One write: a value puts the key, `None` deletes it.
pub type Write = (Bytes, Option<Bytes>);

/// Writes that are applied together or not at all.
pub type Batch = Vec<Write>;

/// The keys of a scan: from `low` to `high`, each inclusive, exclusive or open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where the range begins.
    pub low: Bound<Bytes>,
    /// Where the range ends.
    pub high: Bound<Bytes>,
}

impl Range {
    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Range {
        let low = Bound::Included(prefix.into());
        let high = match key::successor(prefix) {
            Some(next) => Bound::Excluded(next.into()),
            None => Bound::Unbounded,
        };
        Range { low, high }
    }

    /// Whether `key` lies in this range.
    pub fn contains(&self, key: &[u8]) -> bool {
        let above = match &self.low {
            Bound::Included(low) => key >= &low[..],
            Bound::Excluded(low) => key > &low[..],
            Bound::Unbounded => true,
        };
        let below = match &self.high {
            Bound::Included(high) => key <= &high[..],
            Bound::Excluded(high) => key < &high[..],
            Bound::Unbounded => true,
        };
        above && below
    }

    /// Whether no key can lie in this range.
    pub fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
            _ => false,
        }
    }
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key up.
    Ascending,
    /// From the highest key down.
    Descending,
}

/// What went wrong below: a file, a lock, a sum that does not match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process holds the store.
    #[error("the store {path} is held by process {pid}: stop that process, or open another store")]
    Busy {
        /// The store's folder.
        path: String,
        /// The holder's process id, 0 when it cannot be told.
        pid: u32,
    },
    /// The files say something that cannot be right.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The store was written by a newer version of the engine.
    #[error("the store has format {found}, this version reads up to {supported}: open it with a newer tollgate")]
    NewerFormat {
        /// The version found.
        found: u32,
        /// The newest version this engine reads.
        supported: u32,
    },
    /// Reading or writing failed.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        cause: String,
    },
    /// An earlier write failed, so nothing more is written; reads go on and reopening recovers.
    #[error("the store takes no more writes because one failed ({cause}): free the cause, then reopen it")]
    Failed {
        /// The first failure.
        cause: String,
    },
}

impl StoreError {
    pub(crate) fn io(what: impl Into<String>, cause: impl std::fmt::Display) -> StoreError {
        StoreError::Io { what: what.into(), cause: cause.to_string() }
    }
}

/// Ordered bytes that survive a crash once flushed.
///
/// One thread writes (`apply`, `flush`); any number read at the same time. A reader may see a batch partly
/// applied: the transaction layer above hides that.
pub trait Store: Send + Sync + 'static {
    /// The value at `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// Appends to `rows` the first `limit` rows of `range` in the given direction.
    fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<Pair>) -> Result<(), StoreError>;

    /// Applies a batch after all earlier ones. A crash keeps all of it or nothing, and never a later batch without it.
    fn apply(&self, batch: &Batch) -> Result<(), StoreError>;

    /// Returns when all that was applied survives a crash and a power cut.
    fn flush(&self) -> Result<(), StoreError>;

    /// Reclaims space where the store can; returns when done.
    fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Checks the store's own structures and says what is wrong, one line each.
    fn verify(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Bytes on disk, 0 for a store without one.
    fn size_on_disk(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

impl<S: Store + ?Sized> Store for std::sync::Arc<S> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        (**self).get(key)
    }

    fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<Pair>) -> Result<(), StoreError> {
        (**self).scan(range, direction, limit, rows)
    }

    fn apply(&self, batch: &Batch) -> Result<(), StoreError> {
        (**self).apply(batch)
    }

    fn flush(&self) -> Result<(), StoreError> {
        (**self).flush()
    }

    fn compact(&self) -> Result<(), StoreError> {
        (**self).compact()
    }

    fn verify(&self) -> Result<Vec<String>, StoreError> {
        (**self).verify()
    }

    fn size_on_disk(&self) -> Result<u64, StoreError> {
        (**self).size_on_disk()
    }
}
