//! Overlay: rows that hide the rows below them, in memory, for point reads and ordered scans.
//!
//! A sharded hash map answers point reads; the order of the keys is kept lazily, because most overlays are
//! never scanned: new keys are only listed, and the first scan after them sorts the list in. One thread at a
//! time writes (who holds the commit lock, or the flusher); any number read.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::ops::Bound;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::{Mutex, RwLock};

use super::{Batch, Bytes, Direction, Range};

/// Locks are per shard, so that readers of different keys rarely meet.
const SHARDS: usize = 64;

/// What a row costs in memory beside its key and value: two headers, the table's slot, the list's slot.
const ROW_OVERHEAD_BYTES: usize = 128;

static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// The hash of a key, the same for all overlays of this process and different in the next one.
pub(crate) fn hash(key: &[u8]) -> u64 {
    HASHER.hash_one(key)
}

/// A row: the key, and its value or its deletion.
type Row = (Bytes, Option<Bytes>);

/// A row in its table, with the key's hash: a table that grows must not read every key again.
struct Slot {
    hash: u64,
    row: Row,
}

#[derive(Default)]
struct Order {
    sorted: BTreeSet<Bytes>,
    /// Keys in the map and not yet in `sorted`.
    recent: Vec<Bytes>,
}

/// Rows in memory above other rows.
pub(crate) struct Overlay {
    shards: Box<[RwLock<HashTable<Slot>>]>,
    order: Mutex<Order>,
    bytes: AtomicUsize,
    rows: AtomicUsize,
}

impl Default for Overlay {
    fn default() -> Self {
        Overlay::with_room(0)
    }
}

impl Overlay {
    /// An empty overlay that takes about `rows` rows before its tables grow: who grows one makes a caller wait.
    pub(crate) fn with_room(rows: usize) -> Overlay {
        let each = rows.div_ceil(SHARDS);
        Overlay {
            shards: (0..SHARDS).map(|_| RwLock::new(HashTable::with_capacity(each))).collect(),
            order: Mutex::default(),
            bytes: AtomicUsize::new(0),
            rows: AtomicUsize::new(0),
        }
    }

    /// The row at `key`: `Some(None)` says that it is deleted here, `None` that this overlay knows nothing of it.
    pub(crate) fn get(&self, hash: u64, key: &[u8]) -> Option<Option<Bytes>> {
        let shard = self.shard(hash).read();
        shard.find(hash, |slot| slot.row.0[..] == *key).map(|slot| slot.row.1.clone())
    }

    /// Puts a row, or its deletion.
    pub(crate) fn put(&self, hash_of_key: u64, key: Bytes, value: Option<Bytes>) {
        let added = value.as_ref().map_or(0, |value| value.len());
        let mut shard = self.shard(hash_of_key).write();
        if let Some(slot) = shard.find_mut(hash_of_key, |slot| slot.row.0 == key) {
            let old = std::mem::replace(&mut slot.row.1, value);
            drop(shard);
            let removed = old.map_or(0, |value| value.len());
            // One writer: the sum cannot pass below zero between the two steps.
            self.bytes.fetch_add(added, Ordering::Relaxed);
            self.bytes.fetch_sub(removed, Ordering::Relaxed);
            return;
        }
        let added = key.len() + added + ROW_OVERHEAD_BYTES;
        let slot = Slot { hash: hash_of_key, row: (key.clone(), value) };
        shard.insert_unique(hash_of_key, slot, |slot| slot.hash);
        drop(shard);
        self.order.lock().recent.push(key);
        self.bytes.fetch_add(added, Ordering::Relaxed);
        self.rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Memory taken, in bytes, near enough to bound it.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many rows are held.
    pub(crate) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    /// Every row, in no order.
    pub(crate) fn to_batch(&self) -> Batch {
        let mut batch = Vec::with_capacity(self.rows());
        for shard in &self.shards {
            batch.extend(shard.read().iter().map(|slot| slot.row.clone()));
        }
        batch
    }

    /// Appends to `rows` the first `limit` rows of `range`, deletions too.
    pub(crate) fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<Row>) {
        if range.is_empty() || self.rows() == 0 {
            return;
        }
        let keys: Vec<Bytes> = {
            let mut order = self.order.lock();
            let recent = std::mem::take(&mut order.recent);
            order.sorted.extend(recent);
            let bounds: (Bound<&[u8]>, Bound<&[u8]>) =
                (range.low.as_ref().map(|key| &key[..]), range.high.as_ref().map(|key| &key[..]));
            let keys = order.sorted.range::<[u8], _>(bounds).cloned();
            match direction {
                Direction::Ascending => keys.take(limit).collect(),
                Direction::Descending => keys.rev().take(limit).collect(),
            }
        };
        rows.extend(keys.into_iter().filter_map(|key| self.get(hash(&key), &key).map(|value| (key, value))));
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<Slot>> {
        // The low bits choose the version word and the table's slot takes the high ones; these lie between.
        &self.shards[(hash >> 24) as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(overlay: &Overlay, key: &str, value: Option<&str>) {
        overlay.put(hash(key.as_bytes()), key.as_bytes().into(), value.map(|v| v.as_bytes().into()));
    }

    #[test]
    fn later_rows_hide_earlier_ones_and_scans_are_in_order() {
        let overlay = Overlay::default();
        for key in ["c", "a", "b", "d"] {
            put(&overlay, key, Some("1"));
        }
        put(&overlay, "b", None);
        put(&overlay, "c", Some("22"));
        let scan = |direction, limit| {
            let mut rows = Vec::new();
            let range = Range { low: Bound::Included((*b"a").into()), high: Bound::Excluded((*b"d").into()) };
            overlay.scan(&range, direction, limit, &mut rows);
            rows.iter()
                .map(|(key, value)| format!("{}{}", key[0] as char, value.as_ref().map_or(0, |value| value.len())))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(scan(Direction::Ascending, 10), "a1 b0 c2");
        assert_eq!(scan(Direction::Descending, 2), "c2 b0");
        assert_eq!(overlay.get(hash(b"b"), b"b"), Some(None));
        assert_eq!(overlay.get(hash(b"x"), b"x"), None);
        assert_eq!((overlay.rows(), overlay.bytes()), (4, 4 * (1 + ROW_OVERHEAD_BYTES) + 1 + 2 + 1));
    }
}
