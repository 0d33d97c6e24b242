//! Transactions: begin, read, write, scan, savepoint, commit; serializable and opaque.
pub(crate) mod row;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::{Bytes, Direction, Pair, Range, Store, StoreError};
use crate::time::Timestamp;

/// Why an operation of a transaction could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// Another transaction changed what this one read: run it again. Never reaches a user.
    #[error("the transaction clashed with another one")]
    Clash,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A budget of the call is spent.
    #[error("{0}")]
    Budget(Spent),
    /// A write in a read-only transaction.
    #[error("the transaction is read-only")]
    ReadOnly,
}

/// Which budget was spent, and how much of it there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) what: &'static str,
    pub(crate) allowed: u64,
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "budget spent: {} (allowed {})", self.what, self.allowed)
    }
}

/// What one transaction may read and write, counted in documents and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) documents_read: u64,
    pub(crate) documents_written: u64,
    pub(crate) bytes_written: u64,
    pub(crate) document_bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Quota { documents_read: 1_000, documents_written: 1_000, bytes_written: 4 << 20, document_bytes: 256 << 10 }
    }
}

/// A place in a transaction to roll back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Savepoint(usize);

/// PLACEHOLDER implementation (single-threaded, straight over the store); the signatures are final.
pub(crate) struct Transaction {
    store: Arc<dyn Store>,
    now: Timestamp,
    quota: Quota,
    writes: BTreeMap<Bytes, Option<Bytes>>,
    undo: Vec<(Bytes, Option<Option<Bytes>>)>,
    durable: bool,
}

impl Transaction {
    /// A transaction straight over `store`, for unit tests of the layers above.
    pub(crate) fn over(store: Arc<dyn Store>, now: Timestamp) -> Transaction {
        Transaction { store, now, quota: Quota::default(), writes: BTreeMap::new(), undo: Vec::new(), durable: false }
    }

    /// The one instant of this transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Spends from the documents-read budget.
    pub(crate) fn spend_reads(&mut self, documents: u64) -> Result<(), Fault> {
        match self.quota.documents_read.checked_sub(documents) {
            Some(left) => {
                self.quota.documents_read = left;
                Ok(())
            }
            None => Err(Fault::Budget(Spent { what: "documents read", allowed: Quota::default().documents_read })),
        }
    }

    /// Spends from the documents-written budget.
    pub(crate) fn spend_writes(&mut self, documents: u64) -> Result<(), Fault> {
        match self.quota.documents_written.checked_sub(documents) {
            Some(left) => {
                self.quota.documents_written = left;
                Ok(())
            }
            None => {
                Err(Fault::Budget(Spent { what: "documents written", allowed: Quota::default().documents_written }))
            }
        }
    }

    /// The most bytes one document may take.
    pub(crate) fn document_bytes(&self) -> u64 {
        self.quota.document_bytes
    }

    /// Makes the commit wait for the disk (under `Durability::Auto`).
    pub(crate) fn require_durable(&mut self) {
        self.durable = true;
    }

    /// The value at `key`, own writes included.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        match self.writes.get(key) {
            Some(own) => Ok(own.clone()),
            None => Ok(self.store.get(key)?),
        }
    }

    /// The first `limit` rows of `range`, own writes included.
    pub(crate) fn scan(&mut self, range: &Range, direction: Direction, limit: usize) -> Result<Vec<Pair>, Fault> {
        let mut rows = Vec::new();
        self.store.scan(range, direction, usize::MAX, &mut rows)?;
        let mut all: BTreeMap<Bytes, Bytes> = rows.into_iter().collect();
        for (key, value) in &self.writes {
            if range.contains(key) {
                match value {
                    Some(v) => {
                        all.insert(key.clone(), v.clone());
                    }
                    None => {
                        all.remove(key);
                    }
                }
            }
        }
        let mut rows: Vec<Pair> = all.into_iter().collect();
        if direction == Direction::Descending {
            rows.reverse();
        }
        rows.truncate(limit);
        Ok(rows)
    }

    /// Puts a value.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.write(key, Some(value.into()))
    }

    /// Deletes a key; one that is not there is fine.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.write(key, None)
    }

    fn write(&mut self, key: &[u8], value: Option<Bytes>) -> Result<(), Fault> {
        let key: Bytes = key.into();
        let before = self.writes.insert(key.clone(), value);
        self.undo.push((key, before));
        Ok(())
    }

    /// Marks a place to roll back to.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint(self.undo.len())
    }

    /// Undoes every write since `savepoint`.
    pub(crate) fn rollback_to(&mut self, savepoint: Savepoint) {
        while self.undo.len() > savepoint.0 {
            if let Some((key, before)) = self.undo.pop() {
                match before {
                    Some(value) => {
                        self.writes.insert(key, value);
                    }
                    None => {
                        self.writes.remove(&key);
                    }
                }
            }
        }
    }

    /// Publishes the writes.
    pub(crate) fn commit(self) -> Result<(), Fault> {
        self.store.apply(&self.writes.into_iter().collect())?;
        Ok(())
    }
}
