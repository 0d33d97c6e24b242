//! History: the keys of recent commits, so that a scan can tell whether somebody wrote between its ends.
//!
//! One ring per key space. Takes write bucket keys by the million and are never scanned by procedures, so
//! they must not push out the documents' history, which a long call needs.

use std::collections::VecDeque;
use std::ops::Bound;

use crate::store::{Bytes, Range, key::space};

/// Commits remembered in each ring.
const COMMITS: usize = 8_192;

/// Keys remembered in each ring, some 16 MiB of them: a commit may write thousands. The latest commit is always
/// remembered whole.
const KEYS: usize = 1 << 18;

/// An entry's list that grew beyond this many keys is not kept for the next entry.
const REUSED_KEYS: usize = 64;

#[derive(Default)]
struct Entry {
    number: u64,
    keys: Vec<Bytes>,
}

/// The recent commits that wrote into one key space.
#[derive(Default)]
struct Ring {
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// Keys in all entries.
    keys: usize,
    /// The newest commit that was forgotten.
    forgotten: u64,
}

/// The rings of all key spaces.
pub(super) struct History {
    rings: [Ring; 3],
}

/// Which ring a key belongs to.
fn ring_of(key: &[u8]) -> usize {
    match key.first() {
        Some(&space::BUCKET) => 0,
        Some(&space::EXPIRY) => 1,
        _ => 2,
    }
}

impl History {
    pub(super) fn new() -> History {
        History { rings: Default::default() }
    }

    /// Remembers what commit `number` writes, before it becomes visible.
    pub(super) fn push<'a>(&mut self, number: u64, keys: impl Iterator<Item = &'a Bytes>) {
        for key in keys {
            let ring = &mut self.rings[ring_of(key)];
            ring.push(number, key.clone());
        }
    }

    /// Whether a commit later than `version` wrote into `range`, or may have: what was forgotten counts as a clash.
    pub(super) fn wrote_into(&self, range: &Range, version: u64) -> bool {
        let rings = match space_of(range) {
            Some(space) => std::slice::from_ref(&self.rings[ring_of(&[space])]),
            None => &self.rings[..],
        };
        rings.iter().any(|ring| ring.wrote_into(range, version))
    }
}

/// The one key space that a range lies in; none when it may cover several.
fn space_of(range: &Range) -> Option<u8> {
    let (Bound::Included(low) | Bound::Excluded(low)) = &range.low else { return None };
    let space = *low.first()?;
    match &range.high {
        Bound::Included(high) | Bound::Excluded(high) if high.first() == Some(&space) => Some(space),
        // `Range::prefix` of a whole space ends where the next one begins.
        Bound::Excluded(high) if space.checked_add(1).is_some_and(|next| high[..] == [next]) => Some(space),
        _ => None,
    }
}

impl Ring {
    fn push(&mut self, number: u64, key: Bytes) {
        if self.entries.back().is_none_or(|entry| entry.number != number) {
            let mut entry = if self.entries.len() == COMMITS { self.forget() } else { Entry::default() };
            entry.number = number;
            self.entries.push_back(entry);
        }
        if let Some(entry) = self.entries.back_mut() {
            entry.keys.push(key);
            self.keys += 1;
        }
        while self.keys > KEYS && self.entries.len() > 1 {
            self.forget();
        }
    }

    /// Forgets the oldest commit; returns its entry, emptied.
    fn forget(&mut self) -> Entry {
        let Some(mut entry) = self.entries.pop_front() else { return Entry::default() };
        self.forgotten = entry.number;
        self.keys -= entry.keys.len();
        if entry.keys.capacity() > REUSED_KEYS {
            return Entry::default();
        }
        entry.keys.clear();
        entry
    }

    fn wrote_into(&self, range: &Range, version: u64) -> bool {
        // From the newest back, until what the reader has seen.
        self.forgotten > version
            || (self.entries.iter().rev())
                .take_while(|entry| entry.number > version)
                .any(|entry| entry.keys.iter().any(|key| range.contains(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(history: &mut History, number: u64, keys: &[&str]) {
        let keys: Vec<Bytes> = keys.iter().map(|key| key.as_bytes().into()).collect();
        history.push(number, keys.iter());
    }

    #[test]
    fn a_write_into_the_range_is_seen_and_one_beside_it_is_not() {
        let mut history = History::new();
        commit(&mut history, 1, &["da", "db"]);
        commit(&mut history, 2, &["dz", "bx"]);
        let range = Range::prefix(b"db");
        assert!(history.wrote_into(&range, 0));
        assert!(!history.wrote_into(&range, 1));
        assert!(!history.wrote_into(&Range::prefix(b"dc"), 0));
        assert!(history.wrote_into(&Range::prefix(b"d"), 1));
        let all = Range { low: Bound::Unbounded, high: Bound::Unbounded };
        assert!(history.wrote_into(&all, 1));
        assert!(!history.wrote_into(&all, 2));
    }

    #[test]
    fn what_was_forgotten_counts_as_written_and_buckets_forget_no_documents() {
        let mut history = History::new();
        commit(&mut history, 1, &["da"]);
        for number in 2..(COMMITS as u64 + 100) {
            commit(&mut history, number, &["bx"]);
        }
        assert!(history.wrote_into(&Range::prefix(b"d"), 0));
        assert!(!history.wrote_into(&Range::prefix(b"d"), 1), "buckets have a ring of their own");
        assert!(history.wrote_into(&Range::prefix(b"by"), 1), "the oldest bucket commits are forgotten");
        assert!(!history.wrote_into(&Range::prefix(b"by"), 200));
    }

    #[test]
    fn commits_of_many_keys_are_forgotten_by_the_number_of_keys() {
        let mut history = History::new();
        let many: Vec<Bytes> = (0..100_000u32).map(|n| [b"d".as_slice(), &n.to_be_bytes()].concat().into()).collect();
        for number in 1..=5 {
            history.push(number, many.iter());
            assert!(history.rings[2].keys <= KEYS);
        }
        assert!(history.wrote_into(&Range::prefix(b"dx"), 2), "the third commit is forgotten");
        assert!(!history.wrote_into(&Range::prefix(b"dx"), 3));
        assert!(history.wrote_into(&Range::prefix(b"d"), 4));
        let huge = many.iter().cycle().take(KEYS + 1);
        history.push(6, huge);
        assert!(history.wrote_into(&Range::prefix(b"d"), 5), "the latest is remembered whole");
        assert!(!history.wrote_into(&Range::prefix(b"d"), 6));
    }
}
