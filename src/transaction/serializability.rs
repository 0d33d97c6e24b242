//! Serializability test: histories of many threads, checked for cycles; and the checker itself, seen to fail.
//!
//! Every written value is unique and every commit is numbered, so the versions of a key and their order are
//! known. The graph has an edge from each writer to the readers of its version, from each writer to the next one,
//! and from each reader, of a key or of a range, to whoever wrote the next version of what it saw, or of what it
//! did not see. A cycle means that no serial order explains the history. Within each run, those that clash
//! later too, the two sides of an account must sum up as always: a run sees one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::yield_now;

use super::{Database, Fault, Mode, Pace, Quota, Transaction};
use crate::store::{Direction, DiskStore, MemoryStore, Range, Store};
use crate::time::Timestamp;

const THREADS: u64 = 8;
const CALLS: u64 = 250;
const CELLS: u64 = 8;
const ACCOUNTS: u64 = 3;
const SHELVES: u64 = 3;
/// The sum of the two sides of each account.
const SUM: u64 = 1_000;

type Key = Vec<u8>;
/// The value that stands for "was never written".
const INITIAL: u64 = 0;

/// What one committed transaction saw and did.
#[derive(Default, Clone)]
struct Record {
    number: Option<u64>,
    reads: Vec<(Key, u64)>,
    scans: Vec<(Range, BTreeMap<Key, u64>)>,
    /// The unique value put, or a deletion.
    writes: BTreeMap<Key, Option<u64>>,
}

/// A transaction that keeps a record of itself.
struct Recorded {
    tx: Transaction,
    record: Record,
}

impl Recorded {
    fn get(&mut self, key: Key) -> Result<(u64, u64), Fault> {
        let (id, amount) = self.tx.get(&key)?.map_or((INITIAL, SUM / 2), |value| split(&value));
        self.record.reads.push((key, id));
        yield_now();
        Ok((id, amount))
    }

    fn put(&mut self, key: Key, id: u64, amount: u64) -> Result<(), Fault> {
        self.tx.put(&key, &[id.to_be_bytes(), amount.to_be_bytes()].concat())?;
        self.record.writes.insert(key, Some(id));
        Ok(())
    }

    fn scan(&mut self, shelf: u64, direction: Direction, limit: usize) -> Result<Vec<Key>, Fault> {
        let range = Range::prefix(&[b'd', b's', shelf as u8]);
        let rows = self.tx.scan(&range, direction, limit)?;
        let mut seen = range;
        if let Some((last, _)) = rows.last().filter(|_| rows.len() == limit) {
            let end = std::ops::Bound::Included(last.clone());
            match direction {
                Direction::Ascending => seen.high = end,
                Direction::Descending => seen.low = end,
            }
        }
        let found: BTreeMap<Key, u64> = rows.iter().map(|(key, value)| (key.to_vec(), split(value).0)).collect();
        self.record.scans.push((seen, found.clone()));
        yield_now();
        Ok(found.into_keys().collect())
    }
}

fn split(value: &[u8]) -> (u64, u64) {
    let number = |at: usize| u64::from_be_bytes(value[at..at + 8].try_into().unwrap());
    (number(0), number(8))
}

fn cell(n: u64) -> Key {
    vec![b'd', b'c', (n % CELLS) as u8]
}

fn account(n: u64, side: u8) -> Key {
    vec![b'd', b'a', (n % ACCOUNTS) as u8, side]
}

/// A small generator of its own for each thread, so that a run can be told by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// One of the patterns that weak isolation gets wrong. `ids` gives unique values.
fn act(run: &mut Recorded, pattern: u64, dice: &mut Dice, ids: &AtomicU64, torn: &AtomicU64) -> Result<(), Fault> {
    let id = || ids.fetch_add(1, Ordering::Relaxed);
    match pattern {
        // A lost update.
        0 => {
            let key = cell(dice.roll(CELLS));
            run.get(key.clone())?;
            run.put(key, id(), 0)
        }
        // A write skew: reads two, writes one.
        1 => {
            let (one, other) = (dice.roll(CELLS), dice.roll(CELLS));
            run.get(cell(one))?;
            run.get(cell(other))?;
            run.put(cell(one), id(), 0)
        }
        // A phantom: looks through a shelf, then puts something on it or takes something off.
        2 | 3 => {
            let shelf = dice.roll(SHELVES);
            let found = run.scan(shelf, Direction::Ascending, 1_000)?;
            match found.first() {
                Some(first) if dice.roll(4) == 0 => {
                    run.tx.delete(first)?;
                    run.record.writes.insert(first.clone(), None);
                    Ok(())
                }
                _ => {
                    let id = id();
                    let key = [&[b'd', b's', shelf as u8, dice.roll(256) as u8][..], &id.to_be_bytes()].concat();
                    run.put(key, id, 0)
                }
            }
        }
        // A scan that stops early, then a write elsewhere; two of these make a skew over a range.
        4 => {
            let direction = if dice.roll(2) == 0 { Direction::Ascending } else { Direction::Descending };
            let found = run.scan(dice.roll(SHELVES), direction, 3)?;
            match found.last() {
                Some(last) if dice.roll(2) == 0 => run.put(last.clone(), id(), 0),
                _ => run.put(cell(dice.roll(CELLS)), id(), 0),
            }
        }
        // A transfer between the sides of an account.
        5 | 6 => {
            let n = dice.roll(ACCOUNTS);
            let (_, left) = run.get(account(n, 0))?;
            let (_, right) = run.get(account(n, 1))?;
            if left + right != SUM {
                torn.fetch_add(1, Ordering::Relaxed);
            }
            let moved = dice.roll(left.min(SUM) + 1);
            run.put(account(n, 0), id(), left - moved)?;
            run.put(account(n, 1), id(), (right + moved).min(SUM))
        }
        // A reader of much: both sides of every account, in between a scan.
        _ => {
            for n in 0..ACCOUNTS {
                let (_, left) = run.get(account(n, 0))?;
                run.scan(dice.roll(SHELVES), Direction::Ascending, 4)?;
                let (_, right) = run.get(account(n, 1))?;
                if left + right != SUM {
                    torn.fetch_add(1, Ordering::Relaxed);
                }
            }
            run.get(cell(dice.roll(CELLS)))?;
            Ok(())
        }
    }
}

/// Runs all threads and returns what committed, and how many runs saw two moments.
fn history(database: &Database, seed: u64) -> (Vec<Record>, u64) {
    let (ids, torn) = (AtomicU64::new(1), AtomicU64::new(0));
    let (ids, torn_ref) = (&ids, &torn);
    let mut records = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut dice = Dice(seed.wrapping_mul(1_000).wrapping_add(thread));
                    let mut records = Vec::new();
                    for _ in 0..CALLS {
                        let pattern = dice.roll(8);
                        for attempt in 0.. {
                            let mode = match attempt {
                                _ if pattern == 7 && dice.roll(2) == 0 => Mode::ReadOnly,
                                0..8 => Mode::Optimistic,
                                _ => Mode::Alone,
                            };
                            let tx = database.begin(mode, Timestamp::EPOCH, Quota::UNLIMITED);
                            let mut run = Recorded { tx, record: Record::default() };
                            match act(&mut run, pattern, &mut dice, ids, torn_ref) {
                                Ok(()) => {}
                                Err(Fault::Clash) => continue,
                                Err(other) => panic!("{other}"),
                            }
                            match run.tx.commit() {
                                Ok(committed) => {
                                    run.record.number = committed.number;
                                    records.push(run.record);
                                    break;
                                }
                                Err(Fault::Clash) => {}
                                Err(other) => panic!("{other}"),
                            }
                        }
                    }
                    records
                })
            })
            .collect();
        for thread in threads {
            records.extend(thread.join().unwrap());
        }
    });
    (records, torn.into_inner())
}

/// The versions of each key in commit order: what was put and by whom.
type Versions<'a> = BTreeMap<&'a Key, Vec<(Option<u64>, usize)>>;

/// How many transactions no serial order can hold.
fn unserializable(records: &[Record]) -> usize {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|at| records[*at].number);
    let mut versions = Versions::new();
    for at in order {
        for (key, value) in &records[at].writes {
            versions.entry(key).or_default().push((*value, at));
        }
    }
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut link = |from: usize, to: usize| {
        if from != to {
            edges.insert((from, to));
        }
    };
    for chain in versions.values() {
        chain.windows(2).for_each(|pair| link(pair[0].1, pair[1].1));
    }
    for (reader, record) in records.iter().enumerate() {
        let mut saw = |key: &Key, id: u64| {
            let chain = versions.get(key).map_or(&[][..], Vec::as_slice);
            let next = match id {
                INITIAL => 0,
                id => {
                    let at = chain.iter().position(|(value, _)| *value == Some(id));
                    let at = at.unwrap_or_else(|| panic!("{key:?} was read as {id}, which nobody committed"));
                    link(chain[at].1, reader);
                    at + 1
                }
            };
            if let Some((_, writer)) = chain.get(next) {
                link(reader, *writer);
            }
        };
        record.reads.iter().for_each(|(key, id)| saw(key, *id));
        for (range, found) in &record.scans {
            found.iter().for_each(|(key, id)| saw(key, *id));
            for (key, chain) in versions.iter().filter(|(key, _)| range.contains(key) && !found.contains_key(**key)) {
                // Not seen: before it was made, or after it was taken away. With both possible, neither is claimed.
                if chain.iter().all(|(value, _)| value.is_some()) {
                    saw(key, INITIAL);
                }
            }
        }
    }
    let mut waiting = vec![0usize; records.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); records.len()];
    for (from, to) in &edges {
        waiting[*to] += 1;
        after[*from].push(*to);
    }
    let mut free: Vec<usize> = (0..records.len()).filter(|at| waiting[*at] == 0).collect();
    let mut placed = 0;
    while let Some(at) = free.pop() {
        placed += 1;
        for next in &after[at] {
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                free.push(*next);
            }
        }
    }
    records.len() - placed
}

fn open(store: Arc<dyn Store>) -> Database {
    // Small, so that overlays are frozen and commits wait for room in the middle of it all.
    Database::open(store, Pace { overlay_bytes: 20_000, ..Pace::default() }).unwrap()
}

fn disk(path: &Path) -> Arc<dyn Store> {
    Arc::new(DiskStore::open(path).unwrap())
}

#[test]
fn every_history_has_a_serial_order_and_every_run_one_moment() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        for store in [Arc::new(MemoryStore::new()) as Arc<dyn Store>, disk(&folder.path().join("db"))] {
            let database = open(store);
            let (records, torn) = history(&database, seed);
            assert_eq!(records.len() as u64, THREADS * CALLS);
            assert_eq!((unserializable(&records), torn), (0, 0), "seed {seed}");
        }
    }
}

/// The controls: a checker that cannot fail proves nothing.
#[test]
fn without_the_checks_the_checker_finds_what_goes_wrong() {
    for (reads, scans) in [(true, false), (false, true)] {
        let found = (0..100).any(|seed| {
            let database = open(Arc::new(MemoryStore::new()));
            database.make_blind(reads, scans);
            let (records, torn) = history(&database, seed);
            // Torn sums come only of unchecked reads; cycles must be found in both.
            assert!(reads || torn == 0);
            unserializable(&records) > 0
        });
        assert!(found, "reads unchecked: {reads}, scans unchecked: {scans}");
    }
}

/// Without a check on reads a run sees two moments: the sums notice.
#[test]
fn without_the_checks_the_sums_are_torn() {
    let found = (0..100).any(|seed| {
        let database = open(Arc::new(MemoryStore::new()));
        database.make_blind(true, false);
        history(&database, seed).1 > 0
    });
    assert!(found);
}

#[test]
fn the_checker_knows_the_three_anomalies_by_hand() {
    let write = |number, key: &[u8], id| Record {
        number: Some(number),
        writes: BTreeMap::from([(key.to_vec(), Some(id))]),
        ..Record::default()
    };
    let read = |record: Record, key: &[u8]| Record { reads: vec![(key.to_vec(), INITIAL)], ..record };
    let lost_update = [read(write(1, b"x", 1), b"x"), read(write(2, b"x", 2), b"x")];
    let skew = [read(write(1, b"x", 1), b"y"), read(write(2, b"y", 2), b"x")];
    let serial = [read(write(1, b"x", 1), b"y"), write(2, b"y", 2)];
    let scan = |record: Record| Record { scans: vec![(Range::prefix(b"s"), BTreeMap::new())], ..record };
    let phantom = [scan(write(1, b"s1", 1)), scan(write(2, b"s2", 2))];
    assert_eq!(unserializable(&lost_update), 2);
    assert_eq!(unserializable(&skew), 2);
    assert_eq!(unserializable(&phantom), 2);
    assert_eq!(unserializable(&serial), 0);
}
