//! One transaction: its reads, its writes, and its commit.

use std::ops::Bound;
use std::sync::Arc;

use parking_lot::{ArcMutexGuard, RawMutex};
use smallvec::SmallVec;

use crate::store::overlay::{self, Overlay};
use crate::store::{Bytes, Direction, Pair, Range, merge};
use crate::time::{Stopwatch, Timestamp};
use crate::trace::{Step, Trace};

use super::database::Shared;
use super::version::Slot;
use super::writes::Writes;
use super::{Fault, Mode, Quota, Spent};

/// Tries of one read against commits that keep changing it, before the whole transaction runs again.
const READ_TRIES: usize = 64;

/// A place in a transaction to roll back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Savepoint(usize);

/// A commit that is published: visible to all, on disk or soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The commit to wait for; none when nothing was written.
    pub(crate) number: Option<u64>,
    /// Whether what was written asks to be on disk before its caller hears of it.
    pub(crate) durable: bool,
    /// The places of jobs that were put, for those who look for work.
    pub(crate) places: Vec<Bytes>,
}

/// One run over one consistent moment of the store. Dropping it rolls it back.
pub(crate) struct Transaction {
    shared: Arc<Shared>,
    mode: Mode,
    now: Timestamp,
    quota: Quota,
    left: Quota,
    /// Every read so far is true at this commit.
    version: u64,
    reads: SmallVec<[Slot; 16]>,
    scans: Vec<Range>,
    writes: Writes,
    durable: bool,
    places: Vec<Bytes>,
    /// Who hears what this run does, when somebody wants to know.
    trace: Option<Box<Trace>>,
    /// The commit lock, when running alone.
    alone: Option<ArcMutexGuard<RawMutex, ()>>,
}

impl Transaction {
    pub(super) fn begin(shared: Arc<Shared>, mode: Mode, now: Timestamp, quota: Quota) -> Transaction {
        let alone = matches!(mode, Mode::Alone | Mode::ReadAlone).then(|| shared.commit_lock.lock_arc());
        Transaction {
            version: shared.versions.clock(),
            shared,
            mode,
            now,
            quota,
            left: quota,
            reads: SmallVec::new(),
            scans: Vec::new(),
            writes: Writes::default(),
            durable: false,
            places: Vec::new(),
            trace: None,
            alone,
        }
    }

    /// The one instant of this transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Spends from the documents-read budget.
    pub(crate) fn spend_reads(&mut self, documents: u64) -> Result<(), Fault> {
        spend(&mut self.left.documents_read, documents, "documents read", self.quota.documents_read)
    }

    /// Spends from the documents-written budget.
    pub(crate) fn spend_writes(&mut self, documents: u64) -> Result<(), Fault> {
        spend(&mut self.left.documents_written, documents, "documents written", self.quota.documents_written)
    }

    /// What is left of the documents-read budget.
    pub(crate) fn reads_left(&self) -> u64 {
        self.left.documents_read
    }

    /// Begins a trace of what is done from here on, in place of an earlier one.
    pub(crate) fn begin_trace(&mut self) {
        self.trace = Some(Box::default());
    }

    /// Ends the trace and hands it over; an empty one when none was begun.
    pub(crate) fn end_trace(&mut self) -> Trace {
        self.trace.take().map_or_else(Trace::default, |trace| *trace)
    }

    /// Begins to measure an operation; nothing when nobody wants to know of it.
    pub(crate) fn watch(&self) -> Option<Stopwatch> {
        self.trace.as_ref().map(|_| Stopwatch::start())
    }

    /// Tells the trace of an operation that is done.
    pub(crate) fn tell(&mut self, step: Step) {
        if let Some(trace) = &mut self.trace {
            trace.add(self.writes.len(), step);
        }
    }

    /// The most bytes one document may take.
    pub(crate) fn document_bytes(&self) -> u64 {
        self.quota.document_bytes
    }

    /// Says that the caller should hear of the commit only when it is on disk.
    pub(crate) fn require_durable(&mut self) {
        self.durable = true;
    }

    /// Remembers the place of a job that was put, so that who commits can tell those who look for work.
    pub(crate) fn note_place(&mut self, place: Bytes) {
        self.places.push(place);
    }

    /// The value at `key`, own writes included.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        let hash = overlay::hash(key);
        if let Some(own) = self.writes.get(hash, key) {
            return Ok(own.clone());
        }
        let slot = Slot::of(hash);
        for _ in 0..READ_TRIES {
            // The word first, the layers after it: whoever wrote under this version did so into these layers.
            let version = self.shared.versions.load(slot);
            if version > self.version {
                self.extend()?;
                continue;
            }
            let value = self.read_layers(hash, key)?;
            if self.shared.versions.unchanged(slot, version) {
                if self.reads.last() != Some(&slot) {
                    self.reads.push(slot);
                }
                return Ok(value);
            }
        }
        Err(Fault::Clash)
    }

    fn read_layers(&self, hash: u64, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        let layers = self.shared.layers.load();
        if let Some(value) = layers.active.get(hash, key) {
            return Ok(value);
        }
        if let Some(value) = layers.frozen.as_ref().and_then(|frozen| frozen.get(hash, key)) {
            return Ok(value);
        }
        Ok(self.shared.store().get(key)?)
    }

    /// The first `limit` rows of `range`, own writes included.
    pub(crate) fn scan(&mut self, range: &Range, direction: Direction, limit: usize) -> Result<Vec<Pair>, Fault> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        for _ in 0..READ_TRIES {
            let mut rows = Vec::new();
            self.scan_layers(range, direction, limit, &mut rows)?;
            let seen = seen_part(range, direction, (rows.len() == limit).then(|| rows.last()).flatten());
            if !self.shared.history.lock().wrote_into(&seen, self.version) {
                if self.scans.last() != Some(&seen) {
                    self.scans.push(seen);
                }
                return Ok(rows);
            }
            self.extend()?;
            // The one who wrote may still be publishing.
            std::thread::yield_now();
        }
        Err(Fault::Clash)
    }

    fn scan_layers(
        &self,
        range: &Range,
        direction: Direction,
        limit: usize,
        rows: &mut Vec<Pair>,
    ) -> Result<(), Fault> {
        let layers = self.shared.layers.load_full();
        let of_overlay = |overlay: Arc<Overlay>| -> merge::Page<'_> {
            Box::new(move |range, limit, rows| {
                overlay.scan(range, direction, limit, rows);
                Ok(())
            })
        };
        let mut sources: Vec<merge::Page<'_>> = Vec::with_capacity(4);
        sources.push(Box::new(|range, limit, rows| {
            self.writes.scan(range, direction, limit, rows);
            Ok(())
        }));
        sources.push(of_overlay(layers.active.clone()));
        sources.extend(layers.frozen.clone().map(of_overlay));
        sources.push(Box::new(|range, limit, rows| {
            let mut pairs = Vec::new();
            self.shared.store().scan(range, direction, limit, &mut pairs)?;
            rows.extend(pairs.into_iter().map(|(key, value)| (key, Some(value))));
            Ok(())
        }));
        Ok(merge::merge(sources, range, direction, limit, rows)?)
    }

    /// Moves this transaction's moment to the present, if everything it has read is still so.
    fn extend(&mut self) -> Result<(), Fault> {
        let clock = self.shared.versions.clock();
        if self.reads_changed() || self.scans_changed() {
            return Err(Fault::Clash);
        }
        self.version = clock;
        Ok(())
    }

    fn reads_changed(&self) -> bool {
        self.shared.checks_reads() && self.reads.iter().any(|slot| self.shared.versions.load(*slot) > self.version)
    }

    fn scans_changed(&self) -> bool {
        if self.scans.is_empty() || !self.shared.checks_scans() {
            return false;
        }
        let history = self.shared.history.lock();
        self.scans.iter().any(|range| history.wrote_into(range, self.version))
    }

    /// Puts a value.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let bytes = (key.len() + value.len()) as u64;
        spend(&mut self.left.bytes_written, bytes, "bytes written", self.quota.bytes_written)?;
        self.write(key, Some(value.into()))
    }

    /// Deletes a key; one that is not there is fine.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.write(key, None)
    }

    fn write(&mut self, key: &[u8], value: Option<Bytes>) -> Result<(), Fault> {
        if matches!(self.mode, Mode::ReadOnly | Mode::ReadAlone) {
            return Err(Fault::ReadOnly);
        }
        self.writes.put(key, value);
        Ok(())
    }

    /// Marks a place to roll back to.
    pub(crate) fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.writes.keep())
    }

    /// Undoes every write since `savepoint`. What was read stays read: the outcome may depend on it.
    pub(crate) fn rollback_to(&mut self, savepoint: Savepoint) {
        self.writes.roll_back(savepoint.0);
        if let Some(trace) = &mut self.trace {
            trace.undo_to(savepoint.0);
        }
    }

    /// Publishes the writes, all at once and after every earlier commit.
    ///
    /// Errors: a clash with another transaction, or a store that takes no more writes.
    pub(crate) fn commit(mut self) -> Result<Committed, Fault> {
        if self.writes.is_empty() {
            return Ok(Committed { number: None, durable: false, places: Vec::new() });
        }
        let shared = self.shared.clone();
        shared.flushes.check()?;
        let lock = match self.alone.take() {
            Some(lock) => lock,
            None => {
                shared.await_room()?;
                let lock = shared.commit_lock.lock_arc();
                self.validate()?;
                lock
            }
        };
        let number = self.publish();
        drop(lock);
        Ok(Committed { number: Some(number), durable: self.durable, places: self.places })
    }

    /// Checks, under the commit lock, that nothing read has changed.
    fn validate(&self) -> Result<(), Fault> {
        if self.reads_changed() || self.scans_changed() { Err(Fault::Clash) } else { Ok(()) }
    }

    /// Makes the writes visible under the next commit number. Only under the commit lock.
    ///
    /// The order matters: words are marked before a row changes, so that no reader takes a half-published
    /// commit for a whole one; the history knows the keys before a scan could meet them; the clock moves last.
    fn publish(&mut self) -> u64 {
        let shared = &self.shared;
        let number = shared.versions.clock() + 1;
        let writes = std::mem::take(&mut self.writes);
        let slots: SmallVec<[Slot; 16]> = writes.keys().map(|(hash, _)| Slot::of(hash)).collect();
        slots.iter().for_each(|slot| shared.versions.lock(*slot));
        shared.history.lock().push(number, writes.keys().map(|(_, key)| key));
        let layers = shared.layers.load();
        let first = layers.active.rows() == 0;
        for (hash, key, value) in writes.into_rows() {
            layers.active.put(hash, key, value);
        }
        shared.versions.publish(number, slots.into_iter());
        if first {
            shared.flushes.dirty();
        }
        number
    }
}

fn spend(left: &mut u64, amount: u64, what: &'static str, allowed: u64) -> Result<(), Fault> {
    match left.checked_sub(amount) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(Fault::Budget(Spent { what, allowed, hint: None })),
    }
}

/// The part of `range` that a scan which stopped at `last` has looked at.
fn seen_part(range: &Range, direction: Direction, last: Option<&Pair>) -> Range {
    let mut seen = range.clone();
    if let Some((key, _)) = last {
        match direction {
            Direction::Ascending => seen.high = Bound::Included(key.clone()),
            Direction::Descending => seen.low = Bound::Included(key.clone()),
        }
    }
    seen
}

#[cfg(test)]
impl Transaction {
    /// A transaction over `store` with no flusher behind it, for unit tests of the layers above.
    pub(crate) fn over(store: Arc<dyn crate::store::Store>, now: Timestamp) -> Transaction {
        Transaction::begin(Shared::of_test(store), Mode::Optimistic, now, Quota::default())
    }
}
