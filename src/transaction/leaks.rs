//! Leak test: memory and disk stay bounded under the workload that made sled leak.
//!
//! A first-in-first-out of 10 000 live keys: each commit puts new keys and deletes the oldest ones. The short form
//! runs always; `TOLLGATE_LEAK_ROUNDS=20000` runs a long one (each round is 500 keys in and 500 out).

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Database, Mode, Pace, Quota};
use crate::store::DiskStore;
use crate::time::Timestamp;

const LIVE_KEYS: usize = 10_000;
/// Keys put, and keys deleted, by one commit: groups of a thousand mixed rows are what sled leaks on.
const KEYS_A_ROUND: u64 = 500;
const SHORT_ROUNDS: u64 = 300;
/// Small, so that the short form has dozens of checkpoints.
const CHECKPOINT_BYTES: u64 = 1 << 20;
/// Ten thousand rows of some 140 bytes, with sled's segments and two segments of the journal.
const DISK_BYTES: u64 = 64 << 20;
const MEMORY_BYTES: u64 = 400 << 20;

/// Bytes of this process in memory; none where the system does not say.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[test]
fn a_queue_of_ten_thousand_keys_stays_bounded() {
    let long: Option<u64> = std::env::var("TOLLGATE_LEAK_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = long.unwrap_or(SHORT_ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(DiskStore::open_with(&folder.path().join("db"), CHECKPOINT_BYTES).unwrap());
    let database = Database::open(store, Pace::default()).unwrap();
    let before = resident_bytes().unwrap_or_default();
    let (mut live, mut next) = (VecDeque::new(), 0u64);
    let (mut most_disk, mut most_memory) = (0, 0);
    for round in 0..rounds {
        let mut tx = database.begin(Mode::Optimistic, Timestamp::EPOCH, Quota::UNLIMITED);
        for _ in 0..KEYS_A_ROUND {
            // Spread over the key space, as hashed and random names are.
            let key = [b"dq".as_slice(), &next.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()].concat();
            tx.put(&key, &[next as u8; 100]).unwrap();
            live.push_back(key);
            next += 1;
        }
        while live.len() > LIVE_KEYS {
            tx.delete(&live.pop_front().unwrap()).unwrap();
        }
        let _ = tx.commit().unwrap();
        if round % 2 == 0 {
            database.flush().unwrap();
        }
        if round % 50 == 0 || round + 1 == rounds {
            most_disk = most_disk.max(database.store().size_on_disk().unwrap());
            most_memory = most_memory.max(resident_bytes().unwrap_or_default().saturating_sub(before));
        }
    }
    let mib = |bytes: u64| bytes >> 20;
    println!("{} keys: {} MiB on disk, {} MiB in memory at most", next, mib(most_disk), mib(most_memory));
    assert!(most_disk < DISK_BYTES, "{} MiB on disk", mib(most_disk));
    // Beside this test others run in the process: their memory is allowed for.
    assert!(most_memory < MEMORY_BYTES, "{} MiB in memory", mib(most_memory));
    let mut tx = database.begin(Mode::ReadOnly, Timestamp::EPOCH, Quota::UNLIMITED);
    let range = crate::store::Range::prefix(b"dq");
    let rows = tx.scan(&range, crate::store::Direction::Ascending, usize::MAX).unwrap();
    assert_eq!(rows.len(), LIVE_KEYS);
}
