//! Model test: random transactions on memory and on disk, side by side, against plain maps.
//!
//! Aborts, savepoints, scans both ways, rows that expire, clock steps both ways, sweeping, flushing, compaction
//! and reopening. Every answer is compared, and after each step the expiry index is: a row that expires has
//! exactly one entry, at or before its expiry.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;

use super::row::Row;
use super::{Database, Mode, Pace, Quota, Transaction};
use crate::store::key::{self, space};
use crate::store::{Bytes, Direction, DiskStore, MemoryStore, Range, Store};
use crate::time::Timestamp;

#[derive(Clone, Debug)]
enum Operation {
    PutRow(u8, u8, Option<i64>),
    DeleteRow(u8),
    GetRow(u8),
    Put(u8, u8),
    Delete(u8),
    Get(u8),
    Scan(u8, u8, bool, usize),
    ScanRows(bool, usize),
    Savepoint,
    RollBack,
}

#[derive(Clone, Debug)]
enum Step {
    Run(Vec<Operation>, Ending),
    Advance(i64),
    Sweep(usize),
    Flush,
    Compact,
    Reopen,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Commit,
    Drop,
}

fn operation() -> impl Strategy<Value = Operation> {
    let (row, raw) = (0u8..6, 0u8..12);
    prop_oneof![
        5 => (row.clone(), any::<u8>(), proptest::option::weighted(0.8, -5i64..60)).prop_map(|(k, v, t)| Operation::PutRow(k, v, t)),
        2 => row.clone().prop_map(Operation::DeleteRow),
        3 => row.prop_map(Operation::GetRow),
        4 => (raw.clone(), any::<u8>()).prop_map(|(k, v)| Operation::Put(k, v)),
        2 => raw.clone().prop_map(Operation::Delete),
        2 => raw.clone().prop_map(Operation::Get),
        3 => (raw.clone(), raw, any::<bool>(), 0usize..8).prop_map(|(l, h, a, n)| Operation::Scan(l, h, a, n)),
        1 => (any::<bool>(), 0usize..8).prop_map(|(a, n)| Operation::ScanRows(a, n)),
        1 => Just(Operation::Savepoint),
        1 => Just(Operation::RollBack),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let ending = prop_oneof![3 => Just(Ending::Commit), 1 => Just(Ending::Drop)];
    prop_oneof![
        12 => (proptest::collection::vec(operation(), 1..10), ending).prop_map(|(o, e)| Step::Run(o, e)),
        3 => (-20i64..50).prop_map(Step::Advance),
        2 => (1usize..5).prop_map(Step::Sweep),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

fn row_key(n: u8) -> Vec<u8> {
    vec![space::BUCKET, n]
}

fn raw_key(n: u8) -> Vec<u8> {
    vec![space::META, n]
}

fn direction(ascending: bool) -> Direction {
    if ascending { Direction::Ascending } else { Direction::Descending }
}

/// What the store should hold.
#[derive(Clone, Default)]
struct Model {
    /// Body and expiry; expired ones stay until they are swept.
    rows: BTreeMap<u8, (u8, Option<i64>)>,
    raw: BTreeMap<u8, u8>,
}

/// Everything an operation may answer, as text.
type Answer = String;

impl Model {
    fn run(&mut self, operations: &[Operation], now: i64) -> Vec<Answer> {
        let mut saved = Vec::new();
        operations.iter().map(|operation| self.answer(operation, now, &mut saved)).collect()
    }

    fn answer(&mut self, operation: &Operation, now: i64, saved: &mut Vec<Model>) -> Answer {
        let cut = |mut found: Vec<(u8, u8)>, ascending: bool, limit: usize| {
            if !ascending {
                found.reverse();
            }
            found.truncate(limit);
            format!("{found:?}")
        };
        match *operation {
            Operation::PutRow(n, body, ttl) => drop(self.rows.insert(n, (body, ttl.map(|ttl| now + ttl)))),
            Operation::DeleteRow(n) => drop(self.rows.remove(&n)),
            Operation::Put(n, value) => drop(self.raw.insert(n, value)),
            Operation::Delete(n) => drop(self.raw.remove(&n)),
            Operation::GetRow(n) => {
                let row = self.rows.get(&n).filter(|(_, expires)| expires.is_none_or(|at| at > now));
                return format!("{row:?}");
            }
            Operation::Get(n) => return format!("{:?}", self.raw.get(&n)),
            Operation::Scan(low, high, ascending, limit) => {
                let found = self.raw.iter().filter(|(n, _)| (low..high).contains(n)).map(|(n, v)| (*n, *v)).collect();
                return cut(found, ascending, limit);
            }
            Operation::ScanRows(ascending, limit) => {
                return cut(self.rows.iter().map(|(n, (body, _))| (*n, *body)).collect(), ascending, limit);
            }
            Operation::Savepoint => saved.push(self.clone()),
            Operation::RollBack => {
                if let Some(model) = saved.pop() {
                    *self = model;
                }
            }
        }
        String::new()
    }
}

/// One of the stores under test.
struct Lane {
    memory: Arc<MemoryStore>,
    path: Option<PathBuf>,
    database: Option<Database>,
}

impl Lane {
    fn open(path: Option<PathBuf>) -> Lane {
        let mut lane = Lane { memory: Arc::default(), path, database: None };
        lane.reopen();
        lane
    }

    fn reopen(&mut self) {
        self.database = None;
        let store: Arc<dyn Store> = match &self.path {
            None => self.memory.clone(),
            Some(path) => Arc::new(DiskStore::open(path).unwrap()),
        };
        self.database = Some(Database::open(store, Pace::default()).unwrap());
    }

    fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    fn begin(&self, mode: Mode, now: i64) -> Transaction {
        self.database().begin(mode, Timestamp::from_millis(now), Quota::UNLIMITED)
    }

    fn run(&self, operations: &[Operation], ending: Ending, now: i64) -> Vec<Answer> {
        let mut tx = self.begin(Mode::Optimistic, now);
        let mut saved = Vec::new();
        let answers = operations
            .iter()
            .map(|operation| match *operation {
                Operation::PutRow(n, body, ttl) => {
                    tx.put_row(&row_key(n), &[body], ttl.map(|ttl| Timestamp::from_millis(now + ttl))).unwrap();
                    String::new()
                }
                Operation::DeleteRow(n) => {
                    tx.delete_row(&row_key(n)).unwrap();
                    String::new()
                }
                Operation::GetRow(n) => {
                    let row = tx.get_row(&row_key(n)).unwrap();
                    let plain = row.map(|row| (row.body()[0], row.expiry.map(|expiry| expiry.expires_at.as_millis())));
                    format!("{plain:?}")
                }
                Operation::Put(n, value) => {
                    tx.put(&raw_key(n), &[value]).unwrap();
                    String::new()
                }
                Operation::Delete(n) => {
                    tx.delete(&raw_key(n)).unwrap();
                    String::new()
                }
                Operation::Get(n) => format!("{:?}", tx.get(&raw_key(n)).unwrap().map(|value| value[0])),
                Operation::Scan(low, high, ascending, limit) => {
                    let range = Range {
                        low: Bound::Included(raw_key(low).into()),
                        high: Bound::Excluded(raw_key(high).into()),
                    };
                    let rows = tx.scan(&range, direction(ascending), limit).unwrap();
                    format!("{:?}", rows.iter().map(|(key, value)| (key[1], value[0])).collect::<Vec<_>>())
                }
                Operation::ScanRows(ascending, limit) => {
                    let rows = tx.scan(&Range::prefix(&[space::BUCKET]), direction(ascending), limit).unwrap();
                    let plain = |value: &Bytes| Row::decode(value.clone()).unwrap().body()[0];
                    format!("{:?}", rows.iter().map(|(key, value)| (key[1], plain(value))).collect::<Vec<_>>())
                }
                Operation::Savepoint => {
                    saved.push(tx.savepoint());
                    String::new()
                }
                Operation::RollBack => {
                    if let Some(savepoint) = saved.pop() {
                        tx.rollback_to(savepoint);
                    }
                    String::new()
                }
            })
            .collect();
        if ending == Ending::Commit {
            let _ = tx.commit().unwrap();
        }
        answers
    }

    /// Sweeps as the engine's sweeper does, over rows that are no documents.
    fn sweep(&self, now: i64, step_rows: usize) {
        loop {
            let mut tx = self.begin(Mode::Optimistic, now);
            let low = Bound::Included([space::EXPIRY].as_slice().into());
            let high = Bound::Excluded(key::expiry(Timestamp::from_millis(now + 1), &[]).into());
            let entries = tx.scan(&Range { low, high }, Direction::Ascending, step_rows).unwrap();
            for (entry, _) in &entries {
                let (at, row_key) = key::split_expiry(entry).unwrap();
                match tx.get_any_row(row_key).unwrap() {
                    Some(row) if row.expired(tx.now()) => tx.delete_row(row_key).unwrap(),
                    Some(row) => tx.move_expiry_entry(row_key, &row, at).unwrap(),
                    None => panic!("an entry without its row"),
                }
            }
            let _ = tx.commit().unwrap();
            if entries.len() < step_rows {
                return;
            }
        }
    }

    /// Each row that expires has exactly one entry, at or before its expiry; no entry is without its row.
    fn check_expiry_index(&self, swept_at: Option<i64>) {
        let mut tx = self.begin(Mode::ReadOnly, 0);
        let mut entries: BTreeSet<(i64, Vec<u8>)> = tx
            .scan(&Range::prefix(&[space::EXPIRY]), Direction::Ascending, usize::MAX)
            .unwrap()
            .iter()
            .map(|(entry, _)| key::split_expiry(entry).map(|(at, row)| (at.as_millis(), row.to_vec())).unwrap())
            .collect();
        if let Some(now) = swept_at {
            assert!(entries.iter().all(|(at, _)| *at > now), "swept at {now}: {entries:?}");
        }
        for (key, value) in tx.scan(&Range::prefix(&[space::BUCKET]), Direction::Ascending, usize::MAX).unwrap() {
            if let Some(expiry) = Row::decode(value).unwrap().expiry {
                assert!(expiry.indexed_at <= expiry.expires_at, "{expiry:?}");
                assert!(entries.remove(&(expiry.indexed_at.as_millis(), key.to_vec())), "no entry for {expiry:?}");
            }
        }
        assert!(entries.is_empty(), "stray entries {entries:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn memory_and_disk_answer_as_plain_maps_do(steps in proptest::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut lanes = [Lane::open(None), Lane::open(Some(folder.path().join("db")))];
        let mut model = Model::default();
        let mut now = 1_000_000;
        for step in steps {
            let mut swept_at = None;
            match &step {
                Step::Run(operations, ending) => {
                    let mut after = model.clone();
                    let expected = after.run(operations, now);
                    for lane in &lanes {
                        prop_assert_eq!(&lane.run(operations, *ending, now), &expected);
                    }
                    if *ending == Ending::Commit {
                        model = after;
                    }
                }
                Step::Advance(ms) => now += ms,
                Step::Sweep(rows) => {
                    lanes.iter().for_each(|lane| lane.sweep(now, *rows));
                    model.rows.retain(|_, (_, expires)| expires.is_none_or(|at| at > now));
                    swept_at = Some(now);
                }
                Step::Flush => lanes.iter().for_each(|lane| lane.database().flush().unwrap()),
                Step::Compact => {
                    for lane in &lanes {
                        lane.database().flush().unwrap();
                        lane.database().store().compact().unwrap();
                    }
                }
                Step::Reopen => lanes.iter_mut().for_each(Lane::reopen),
            }
            for lane in &lanes {
                lane.check_expiry_index(swept_at);
                let everything = [Operation::ScanRows(true, 100), Operation::Scan(0, 255, true, 100)];
                prop_assert_eq!(lane.run(&everything, Ending::Drop, now), model.clone().run(&everything, now));
            }
        }
    }
}
