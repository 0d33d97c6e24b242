//! Writes: what one transaction will commit, in the order it was written, so that any end of it can be taken back.
//!
//! Most transactions write a handful of rows: a short log is searched from its end and asks for no memory. A log that
//! grows long gets an index beside it.

use std::collections::BTreeMap;
use std::ops::Bound;

use smallvec::SmallVec;

use crate::store::{Bytes, Direction, Range, merge, overlay};

/// Writes without an index.
const SHORT: usize = 16;

/// One write: a value, or a deletion.
struct Write {
    hash: u64,
    key: Bytes,
    value: Option<Bytes>,
    /// The earlier write of the same key, which this one hides.
    hides: Option<usize>,
    hidden: bool,
}

/// The writes of one transaction so far.
#[derive(Default)]
pub(super) struct Writes {
    log: SmallVec<[Write; 4]>,
    /// The last write of each key, once the log is long.
    latest: Option<BTreeMap<Bytes, usize>>,
    /// Writes that a savepoint may bring back; later ones are replaced where they stand.
    kept: usize,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// How long the log is: a place to roll back to.
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }

    /// The own value at `key`: `Some(None)` says that it is deleted here.
    pub(super) fn get(&self, hash: u64, key: &[u8]) -> Option<&Option<Bytes>> {
        self.position(hash, key).map(|at| &self.log[at].value)
    }

    fn position(&self, hash: u64, key: &[u8]) -> Option<usize> {
        match &self.latest {
            Some(latest) => latest.get(key).copied(),
            None => self.log.iter().rposition(|write| write.hash == hash && *write.key == *key),
        }
    }

    /// Puts a value, or a deletion.
    pub(super) fn put(&mut self, key: &[u8], value: Option<Bytes>) {
        let hash = overlay::hash(key);
        let hides = self.position(hash, key);
        let key = match hides {
            Some(at) if at >= self.kept => {
                self.log[at].value = value;
                return;
            }
            Some(at) => {
                self.log[at].hidden = true;
                self.log[at].key.clone()
            }
            None => Bytes::from(key),
        };
        match &mut self.latest {
            Some(latest) => {
                latest.insert(key.clone(), self.log.len());
            }
            None if self.log.len() == SHORT => {
                let mut latest: BTreeMap<Bytes, usize> =
                    self.log.iter().enumerate().map(|(at, write)| (write.key.clone(), at)).collect();
                latest.insert(key.clone(), SHORT);
                self.latest = Some(latest);
            }
            None => {}
        }
        self.log.push(Write { hash, key, value, hides, hidden: false });
    }

    /// Keeps every write so far as it is, for [`Writes::roll_back`]; returns the place to roll back to.
    pub(super) fn keep(&mut self) -> usize {
        self.kept = self.log.len();
        self.kept
    }

    /// Takes back all writes from the place `at` on.
    pub(super) fn roll_back(&mut self, at: usize) {
        while self.log.len() > at {
            let Some(write) = self.log.pop() else { break };
            if let Some(hidden) = write.hides {
                self.log[hidden].hidden = false;
            }
            if let Some(latest) = &mut self.latest {
                match write.hides {
                    Some(hidden) => latest.insert(write.key, hidden),
                    None => latest.remove(&write.key),
                };
            }
        }
        self.kept = self.kept.min(self.log.len());
    }

    /// Appends to `rows` the first `limit` own rows of `range`, deletions too.
    pub(super) fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<merge::Layered>) {
        if range.is_empty() {
            return;
        }
        let row = |at: usize| (self.log[at].key.clone(), self.log[at].value.clone());
        if let Some(latest) = &self.latest {
            let bounds: (Bound<&[u8]>, Bound<&[u8]>) =
                (range.low.as_ref().map(|key| &key[..]), range.high.as_ref().map(|key| &key[..]));
            let own = latest.range::<[u8], _>(bounds).map(|(_, at)| row(*at));
            match direction {
                Direction::Ascending => rows.extend(own.take(limit)),
                Direction::Descending => rows.extend(own.rev().take(limit)),
            }
            return;
        }
        let mut own: SmallVec<[usize; SHORT]> =
            (0..self.log.len()).filter(|at| !self.log[*at].hidden && range.contains(&self.log[*at].key)).collect();
        own.sort_unstable_by(|one, other| self.log[*one].key.cmp(&self.log[*other].key));
        if direction == Direction::Descending {
            own.reverse();
        }
        rows.extend(own.into_iter().take(limit).map(row));
    }

    /// Hash and key of every row that will be written.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u64, &Bytes)> {
        self.log.iter().filter(|write| !write.hidden).map(|write| (write.hash, &write.key))
    }

    /// The rows to write, with their hashes.
    pub(super) fn into_rows(self) -> impl Iterator<Item = (u64, Bytes, Option<Bytes>)> {
        self.log.into_iter().filter(|write| !write.hidden).map(|write| (write.hash, write.key, write.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u8, Option<u8>),
        Keep,
        RollBack(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let put = (0..40u8, proptest::option::of(any::<u8>())).prop_map(|(key, value)| Step::Put(key, value));
        let step = prop_oneof![8 => put, 1 => Just(Step::Keep), 1 => any::<usize>().prop_map(Step::RollBack)];
        proptest::collection::vec(step, 0..120)
    }

    proptest! {
        /// Against a map that is copied at each savepoint: the same rows, by point, by range and at the commit.
        #[test]
        fn writes_are_those_of_a_map_with_copies(steps in steps(), low in 0..40u8, high in 0..40u8, limit in 1..50usize) {
            let (mut writes, mut map) = (Writes::default(), BTreeMap::<u8, Option<u8>>::new());
            let mut saved = Vec::new();
            for step in steps {
                match step {
                    Step::Put(key, value) => {
                        writes.put(&[key], value.map(|value| Bytes::from([value])));
                        map.insert(key, value);
                    }
                    Step::Keep => saved.push((writes.keep(), map.clone())),
                    Step::RollBack(_) if saved.is_empty() => {}
                    Step::RollBack(which) => {
                        saved.truncate(which % saved.len() + 1);
                        let (at, before) = saved.last().unwrap().clone();
                        writes.roll_back(at);
                        map = before;
                    }
                }
            }
            let plain = |value: &Option<Bytes>| value.as_ref().map(|value| value[0]);
            for key in 0..40 {
                let own = writes.get(overlay::hash(&[key]), &[key]).map(plain);
                prop_assert_eq!(own, map.get(&key).copied());
            }
            let range = Range { low: Bound::Included([low].into()), high: Bound::Excluded([high].into()) };
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut rows = Vec::new();
                writes.scan(&range, direction, limit, &mut rows);
                let found: Vec<_> = rows.iter().map(|(key, value)| (key[0], plain(value))).collect();
                let within = map.iter().filter(|(key, _)| (low..high).contains(key)).map(|(key, value)| (*key, *value));
                let wanted: Vec<_> = match direction {
                    Direction::Ascending => within.take(limit).collect(),
                    Direction::Descending => within.rev().take(limit).collect(),
                };
                prop_assert_eq!(found, wanted);
            }
            prop_assert_eq!(writes.keys().count(), map.len());
            let rows: BTreeMap<u8, Option<u8>> = writes.into_rows().map(|(_, key, value)| (key[0], plain(&value))).collect();
            prop_assert_eq!(rows, map);
        }
    }
}
