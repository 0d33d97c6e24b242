//! Unit tests of transactions: isolation, savepoints, scans, flushing and its faults.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::store::{Batch, Bytes, Direction, MemoryStore, Pair, Range, Store};
use crate::time::Timestamp;

fn open() -> Database {
    Database::open(Arc::new(MemoryStore::new()), Pace::default()).unwrap()
}

fn begin(database: &Database, mode: Mode) -> Transaction {
    database.begin(mode, Timestamp::EPOCH, Quota::default())
}

fn put(database: &Database, key: &str, value: &str) {
    let mut tx = begin(database, Mode::Optimistic);
    tx.put(key.as_bytes(), value.as_bytes()).unwrap();
    let _ = tx.commit().unwrap();
}

fn get(tx: &mut Transaction, key: &str) -> Option<String> {
    tx.get(key.as_bytes()).unwrap().map(text)
}

fn text(bytes: Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn keys(tx: &mut Transaction, prefix: &str, direction: Direction, limit: usize) -> String {
    let rows = tx.scan(&Range::prefix(prefix.as_bytes()), direction, limit).unwrap();
    rows.into_iter().map(|(key, _)| text(key)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_transaction_sees_its_own_writes_and_a_dropped_one_wrote_nothing() {
    let database = open();
    put(&database, "da", "1");
    let mut tx = begin(&database, Mode::Optimistic);
    tx.put(b"da", b"2").unwrap();
    tx.delete(b"db").unwrap();
    assert_eq!(get(&mut tx, "da").as_deref(), Some("2"));
    drop(tx);
    assert_eq!(get(&mut begin(&database, Mode::ReadOnly), "da").as_deref(), Some("1"));
}

#[test]
fn a_lost_update_is_a_clash() {
    let database = open();
    put(&database, "da", "1");
    let mut tx = begin(&database, Mode::Optimistic);
    assert!(get(&mut tx, "da").is_some());
    tx.put(b"da", b"mine").unwrap();
    put(&database, "da", "theirs");
    assert_eq!(tx.commit(), Err(Fault::Clash));
}

#[test]
fn a_write_skew_is_a_clash() {
    let database = open();
    let mut one = begin(&database, Mode::Optimistic);
    let mut two = begin(&database, Mode::Optimistic);
    assert!(get(&mut one, "da").is_none() && get(&mut two, "db").is_none());
    one.put(b"db", b"1").unwrap();
    two.put(b"da", b"1").unwrap();
    assert!(one.commit().is_ok());
    assert_eq!(two.commit(), Err(Fault::Clash));
}

#[test]
fn a_phantom_is_a_clash_and_a_write_beside_the_range_is_not() {
    let database = open();
    for (written, clashes) in [("dab", true), ("dx", false)] {
        let mut tx = begin(&database, Mode::Optimistic);
        keys(&mut tx, "da", Direction::Ascending, 10);
        tx.put(b"dz", b"1").unwrap();
        put(&database, written, "1");
        assert_eq!(tx.commit().is_err(), clashes, "{written}");
    }
}

#[test]
fn a_scan_that_stopped_early_minds_only_what_it_saw() {
    let database = open();
    put(&database, "da1", "1");
    put(&database, "da2", "1");
    let mut tx = begin(&database, Mode::Optimistic);
    assert_eq!(keys(&mut tx, "da", Direction::Ascending, 1), "da1");
    tx.put(b"dz", b"1").unwrap();
    put(&database, "da3", "1");
    assert!(tx.commit().is_ok());
}

#[test]
fn a_run_never_sees_two_moments() {
    let database = open();
    put(&database, "da", "1");
    put(&database, "db", "1");
    let mut tx = begin(&database, Mode::ReadOnly);
    assert_eq!(get(&mut tx, "da").as_deref(), Some("1"));
    put(&database, "da", "2");
    put(&database, "db", "2");
    assert_eq!(tx.get(b"db"), Err(Fault::Clash));
    // One that had read nothing moves forward instead.
    let mut late = begin(&database, Mode::ReadOnly);
    put(&database, "db", "3");
    assert_eq!(get(&mut late, "db").as_deref(), Some("3"));
}

#[test]
fn alone_nobody_else_commits() {
    let database = Arc::new(open());
    let mut tx = begin(&database, Mode::Alone);
    let done = Arc::new(AtomicBool::new(false));
    let other = std::thread::spawn({
        let (database, done) = (database.clone(), done.clone());
        move || {
            put(&database, "da", "theirs");
            done.store(true, Ordering::SeqCst);
        }
    });
    assert_eq!(get(&mut tx, "da"), None);
    tx.put(b"da", b"mine").unwrap();
    assert!(!done.load(Ordering::SeqCst));
    assert!(tx.commit().is_ok());
    other.join().unwrap();
    assert_eq!(get(&mut begin(&database, Mode::ReadOnly), "da").as_deref(), Some("theirs"));
}

#[test]
fn savepoints_undo_what_came_after_them() {
    let database = open();
    let mut tx = begin(&database, Mode::Optimistic);
    tx.put(b"da", b"1").unwrap();
    let outer = tx.savepoint();
    tx.put(b"da", b"2").unwrap();
    tx.put(b"db", b"2").unwrap();
    let inner = tx.savepoint();
    tx.delete(b"da").unwrap();
    tx.rollback_to(inner);
    assert_eq!((get(&mut tx, "da").as_deref(), get(&mut tx, "db").as_deref()), (Some("2"), Some("2")));
    tx.rollback_to(outer);
    assert_eq!((get(&mut tx, "da").as_deref(), get(&mut tx, "db").as_deref()), (Some("1"), None));
}

#[test]
fn scans_merge_own_writes_overlays_and_store_both_ways() {
    let database = open();
    for key in ["da", "db", "dc", "dd"] {
        put(&database, key, "1");
    }
    database.flush().unwrap();
    put(&database, "dbb", "1");
    let mut tx = begin(&database, Mode::Optimistic);
    tx.delete(b"db").unwrap();
    tx.put(b"de", b"1").unwrap();
    assert_eq!(keys(&mut tx, "d", Direction::Ascending, 10), "da dbb dc dd de");
    assert_eq!(keys(&mut tx, "d", Direction::Descending, 3), "de dd dc");
    assert_eq!(keys(&mut tx, "d", Direction::Ascending, 2), "da dbb");
}

#[test]
fn budgets_end_a_transaction_and_read_only_ones_write_nothing() {
    let database = open();
    let quota = Quota { bytes_written: 4, documents_read: 1, ..Quota::default() };
    let mut tx = database.begin(Mode::Optimistic, Timestamp::EPOCH, quota);
    tx.put(b"da", b"12").unwrap();
    assert!(matches!(tx.put(b"db", b"1"), Err(Fault::Budget(Spent { what: "bytes written", allowed: 4, .. }))));
    tx.spend_reads(1).unwrap();
    assert!(tx.spend_reads(1).is_err());
    assert_eq!(begin(&database, Mode::ReadOnly).put(b"da", b"1"), Err(Fault::ReadOnly));
}

/// A store whose flush fails, or hangs until it is let go, when told to.
struct Faulty {
    rows: MemoryStore,
    fail: AtomicBool,
    hang: AtomicBool,
}

impl Store for Faulty {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.rows.get(key)
    }
    fn scan(&self, range: &Range, direction: Direction, n: usize, rows: &mut Vec<Pair>) -> Result<(), StoreError> {
        self.rows.scan(range, direction, n, rows)
    }
    fn apply(&self, batch: &Batch) -> Result<(), StoreError> {
        self.rows.apply(batch)
    }
    fn flush(&self) -> Result<(), StoreError> {
        while self.hang.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        if self.fail.load(Ordering::SeqCst) { Err(StoreError::io("flushing", "no space left")) } else { Ok(()) }
    }
}

#[test]
fn a_flush_that_fails_or_hangs_ends_writing_and_not_reading() {
    for hang in [false, true] {
        let store =
            Arc::new(Faulty { rows: MemoryStore::new(), fail: AtomicBool::new(false), hang: AtomicBool::new(false) });
        let pace = Pace { timeout: Duration::from_millis(50), ..Pace::default() };
        let database = Database::open(store.clone(), pace).unwrap();
        put(&database, "da", "1");
        database.flush().unwrap();
        store.fail.store(!hang, Ordering::SeqCst);
        store.hang.store(hang, Ordering::SeqCst);
        put(&database, "da", "2");
        let error = database.flush().unwrap_err();
        let cause = if hang { "did not return within 50ms" } else { "no space left" };
        assert!(error.to_string().contains(cause), "{error}");
        let mut tx = begin(&database, Mode::Optimistic);
        assert_eq!(get(&mut tx, "da").as_deref(), Some("2"));
        tx.put(b"da", b"3").unwrap();
        assert!(matches!(tx.commit(), Err(Fault::Store(StoreError::Failed { .. }))));
        store.hang.store(false, Ordering::SeqCst);
    }
}

#[test]
fn commits_wait_for_room_and_lose_nothing() {
    let pace = Pace { overlay_bytes: 1_000, ..Pace::default() };
    let database = Database::open(Arc::new(MemoryStore::new()), pace).unwrap();
    for n in 0..500 {
        put(&database, &format!("d{n:03}"), "1");
    }
    let mut tx = begin(&database, Mode::ReadOnly);
    assert_eq!(tx.scan(&Range::prefix(b"d"), Direction::Ascending, 1_000).unwrap().len(), 500);
    assert!(database.flushes() > 10);
}

#[test]
fn eight_threads_on_one_counter_lose_no_update() {
    let database = open();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    for attempt in 0.. {
                        let mode = if attempt < 4 { Mode::Optimistic } else { Mode::Alone };
                        let mut tx = begin(&database, mode);
                        let Ok(value) = tx.get(b"dcount") else { continue };
                        let n: u64 = value.map_or(0, |value| text(value).parse().unwrap());
                        tx.put(b"dcount", (n + 1).to_string().as_bytes()).unwrap();
                        if tx.commit().is_ok() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(get(&mut begin(&database, Mode::ReadOnly), "dcount").as_deref(), Some("4000"));
}

#[test]
fn a_reader_that_runs_alone_still_writes_nothing() {
    assert_eq!(begin(&open(), Mode::ReadAlone).put(b"da", b"1"), Err(Fault::ReadOnly));
}
