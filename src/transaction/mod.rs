//! Transactions: begin, read, write, scan, savepoint, commit; serializable, opaque, never starved.
//!
//! A transaction runs without locks. It remembers which version words its reads stood under and which ranges
//! it scanned; a read that meets a newer version first checks that everything read before is still so and
//! moves the transaction's moment forward, or else clashes. So even a run that will be thrown away never sees
//! two moments of the store. A commit takes one short lock, checks the same, and publishes into the overlay.
//! What is dropped was never written.
//!
//! It promises: serializable outcomes; whole commits or nothing after a crash, in commit order; a transaction
//! begun [`Mode::Alone`] cannot clash. It does not promise that a clash is a real conflict: words are shared
//! by hash, and scans are checked by range.

mod database;
#[cfg(test)]
mod faults;
mod flusher;
mod history;
#[cfg(test)]
mod leaks;
#[cfg(test)]
mod model;
pub(crate) mod row;
#[cfg(test)]
mod serializability;
#[cfg(test)]
mod tests;
#[allow(clippy::module_inception)]
mod transaction;
mod version;
mod writes;

use crate::store::StoreError;

pub(crate) use database::Database;
pub(crate) use flusher::Pace;
pub(crate) use transaction::{Committed, Savepoint, Transaction};

/// How a transaction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Beside others; may clash.
    Optimistic,
    /// Holding the commit lock from the start: nobody commits meanwhile, so it cannot clash.
    Alone,
    /// Beside others, and every write is refused.
    ReadOnly,
    /// Alone, and every write is refused: for a reader that clashed too often.
    ReadAlone,
}

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
    #[error("this is read-only: nothing can be written")]
    ReadOnly,
}

/// Which budget was spent, and how much of it there was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) what: &'static str,
    pub(crate) allowed: u64,
    /// What would help, where that is known.
    pub(crate) hint: Option<String>,
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

impl Quota {
    /// For the engine's own work, which is bounded in other ways.
    pub(crate) const UNLIMITED: Quota = Quota {
        documents_read: u64::MAX,
        documents_written: u64::MAX,
        bytes_written: u64::MAX,
        document_bytes: u64::MAX,
    };
}
