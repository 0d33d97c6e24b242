//! Versions: which commit last wrote a key, for every key at once, in a fixed table of words.
//!
//! A word serves all keys whose hash ends in its number, so two keys may share one: that costs a needless
//! clash now and then, never a missed one. A word holds the number of the last commit that wrote one of its
//! keys, shifted left; the low bit is set while a commit is publishing.

use std::sync::atomic::{AtomicU64, Ordering};

/// 2^16 words, half a megabyte: with a thousand keys a call, one in sixty of them meets a stranger.
const WORDS: usize = 1 << 16;

const LOCKED: u64 = 1;

/// The place of a key's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(u16);

impl Slot {
    pub(super) fn of(hash: u64) -> Slot {
        Slot(hash as u16)
    }
}

/// The commit clock and the version words.
pub(super) struct Versions {
    clock: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Versions {
    pub(super) fn new() -> Versions {
        Versions { clock: AtomicU64::new(0), words: (0..WORDS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The number of the latest commit that is published whole.
    pub(super) fn clock(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// The version of a word, once no commit is publishing to it.
    pub(super) fn load(&self, slot: Slot) -> u64 {
        let mut spins = 0u32;
        loop {
            let word = self.words[slot.0 as usize].load(Ordering::Acquire);
            if word & LOCKED == 0 {
                return word >> 1;
            }
            // Publishing takes well under a microsecond, unless the publisher was put to sleep.
            spins += 1;
            if spins < 64 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Whether a word still stands at `version`, after the reads that came before this call.
    pub(super) fn unchanged(&self, slot: Slot, version: u64) -> bool {
        std::sync::atomic::fence(Ordering::Acquire);
        self.words[slot.0 as usize].load(Ordering::Relaxed) == version << 1
    }

    /// Marks a word while its keys are being published. Only under the commit lock.
    pub(super) fn lock(&self, slot: Slot) {
        self.words[slot.0 as usize].fetch_or(LOCKED, Ordering::AcqRel);
    }

    /// Publishes commit `number`. Only under the commit lock, after its rows are in the overlay.
    pub(super) fn publish(&self, number: u64, slots: impl Iterator<Item = Slot>) {
        self.clock.store(number, Ordering::Release);
        for slot in slots {
            self.words[slot.0 as usize].store(number << 1, Ordering::Release);
        }
    }
}
