//! Fault tests of transactions: a store that fails, hangs or panics at any of its writes.
//!
//! Calls fail and say why, nothing acknowledged is lost, reads go on, and reopening recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::yield_now;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{Database, Fault, Mode, Pace, Quota, Transaction};
use crate::store::{Batch, Bytes, Direction, MemoryStore, Pair, Range, Store, StoreError};
use crate::time::Timestamp;

/// Which of the store's writes goes wrong, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// The write is refused and leaves nothing.
    ApplyFails,
    /// The sync is refused; the rows may be there or not.
    FlushFailsOnce,
    FlushFailsForEver,
    FlushHangs,
    FlushPanics,
}

/// A store over `rows`, which outlives it as a disk outlives a process.
struct Faulty {
    rows: Arc<MemoryStore>,
    how: How,
    /// Writes that go well before the fault.
    good: u64,
    writes: AtomicU64,
    gate: Arc<Gate>,
}

/// Holds a flush until a test lets it go.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock() = true;
        self.changed.notify_all();
    }
}

impl Store for Faulty {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.rows.get(key)
    }

    fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<Pair>) -> Result<(), StoreError> {
        self.rows.scan(range, direction, limit, rows)
    }

    fn apply(&self, batch: &Batch) -> Result<(), StoreError> {
        if self.how == How::ApplyFails && self.writes.load(Ordering::SeqCst) >= self.good {
            return Err(StoreError::io("writing", "no space left"));
        }
        self.rows.apply(batch)
    }

    fn flush(&self) -> Result<(), StoreError> {
        let write = self.writes.fetch_add(1, Ordering::SeqCst);
        if write < self.good || (self.how == How::FlushFailsOnce && write > self.good) {
            return Ok(());
        }
        match self.how {
            How::ApplyFails => Ok(()),
            How::FlushFailsOnce | How::FlushFailsForEver => Err(StoreError::io("flushing", "no space left")),
            How::FlushPanics => panic!("a store of the host's panics"),
            How::FlushHangs => {
                let mut open = self.gate.open.lock();
                while !*open {
                    self.gate.changed.wait(&mut open);
                }
                Ok(())
            }
        }
    }
}

fn begin(database: &Database) -> Transaction {
    database.begin(Mode::Optimistic, Timestamp::EPOCH, Quota::UNLIMITED)
}

/// Commits a document and a count of them, and returns the commit.
fn insert(database: &Database, n: u8) -> Result<u64, Fault> {
    let mut tx = begin(database);
    let count = tx.get(b"dcount")?.map_or(0, |value| value[0]);
    tx.put(&[b'd', b'd', n], &[n])?;
    tx.put(b"dcount", &[count + 1])?;
    Ok(tx.commit()?.number.unwrap_or_default())
}

fn documents(database: &Database) -> (Vec<u8>, u8) {
    let mut tx = begin(database);
    let rows = tx.scan(&Range::prefix(b"dd"), Direction::Ascending, usize::MAX).unwrap();
    let count = tx.get(b"dcount").unwrap().map_or(0, |value| value[0]);
    (rows.iter().map(|(key, _)| key[2]).collect(), count)
}

#[test]
fn a_fault_at_any_write_loses_nothing_acknowledged() {
    let faults = [
        (How::ApplyFails, "no space left"),
        (How::FlushFailsOnce, "no space left"),
        (How::FlushFailsForEver, "no space left"),
        (How::FlushHangs, "did not return within"),
        (How::FlushPanics, "the store panicked"),
    ];
    for (how, cause) in faults {
        for good in 0..6 {
            let (rows, gate): (Arc<MemoryStore>, Arc<Gate>) = Default::default();
            let store = Faulty { rows: rows.clone(), how, good, writes: AtomicU64::new(0), gate: gate.clone() };
            // Only a flush that hangs is timed; elsewhere a slow machine must change nothing.
            let timeout = Duration::from_millis(if how == How::FlushHangs { 20 } else { 600_000 });
            let database = Database::open(Arc::new(store), Pace { timeout, ..Pace::default() }).unwrap();
            let mut acknowledged = Vec::new();
            let error = loop {
                let n = acknowledged.len() as u8;
                let commit = insert(&database, n).unwrap();
                match database.wait_for(commit) {
                    Ok(()) => acknowledged.push(n),
                    Err(error) => break error,
                }
            };
            assert!(error.to_string().contains(cause), "{how:?} {good}: {error}");
            assert!(how == How::FlushHangs || acknowledged.len() as u64 == good, "{how:?} {good}");
            // Reads go on, and no write does, though the fault may have passed.
            let (found, count) = documents(&database);
            assert_eq!((found.len(), count as usize), (acknowledged.len() + 1, acknowledged.len() + 1));
            assert!(matches!(insert(&database, 99), Err(Fault::Store(StoreError::Failed { .. }))), "{how:?} {good}");
            assert!(matches!(database.flush(), Err(StoreError::Failed { .. })), "{how:?} {good}");
            assert!(database.check().is_err());
            gate.open();
            drop(database);
            // Reopening finds all that was acknowledged, and whole commits only.
            let database = Database::open(rows, Pace::default()).unwrap();
            let (found, count) = documents(&database);
            assert!(found.starts_with(&acknowledged), "{how:?} {good}: {found:?}");
            assert_eq!(found.len(), count as usize, "{how:?} {good}");
            let commit = insert(&database, 200).unwrap();
            database.wait_for(commit).unwrap();
        }
    }
}

#[test]
fn who_waits_for_nothing_notices_a_flush_that_hangs() {
    let (rows, gate): (Arc<MemoryStore>, Arc<Gate>) = Default::default();
    let store = Faulty { rows, how: How::FlushHangs, good: 0, writes: AtomicU64::new(0), gate: gate.clone() };
    let pace = Pace { timeout: Duration::from_millis(20), interval: Duration::from_millis(1), ..Pace::default() };
    let database = Database::open(Arc::new(store), pace).unwrap();
    let error = loop {
        match insert(&database, 1) {
            Ok(_) => yield_now(),
            Err(error) => break error,
        }
        // The count is one byte.
        let mut tx = begin(&database);
        tx.put(b"dcount", &[0]).unwrap();
        let _ = tx.commit();
    };
    assert!(error.to_string().contains("did not return within 20ms"), "{error}");
    gate.open();
}
