//! Contention: whether a procedure's calls clash so often that they had better run alone from the start.

use std::sync::atomic::{AtomicU32, Ordering};

/// Runs that clashed before a call runs alone. Unlimited retries starve long calls among short writers;
/// after four a long call was 100 times faster than that, and short ones lost nothing.
pub(super) const MOST_CLASHES: u32 = 4;

/// The share of clashed first runs from which on a procedure starts alone, of 1 << 16.
const HALF: u32 = 1 << 15;

/// How fast the past fades: each run counts one sixteenth.
const FADE: u32 = 16;

/// A procedure that starts alone tries the other way once in so many calls.
const PROBE: u32 = 16;

/// The recent clashes of one procedure.
#[derive(Debug, Default)]
pub(super) struct Contention {
    /// Moving share of first runs that clashed, of 1 << 16. Updates may lose each other: it is an estimate.
    share: AtomicU32,
    calls: AtomicU32,
}

impl Contention {
    /// Whether the next call should run alone.
    pub(super) fn starts_alone(&self) -> bool {
        self.share.load(Ordering::Relaxed) > HALF && !self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(PROBE)
    }

    /// Records how a first run beside others ended.
    pub(super) fn record(&self, clashed: bool) {
        let share = self.share.load(Ordering::Relaxed);
        if clashed || share != 0 {
            let target = if clashed { 1 << 16 } else { 0 };
            self.share.store(share - share / FADE + target / FADE, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_procedure_that_mostly_clashes_starts_alone_and_finds_its_way_back() {
        let contention = Contention::default();
        assert!(!contention.starts_alone());
        (0..32).for_each(|_| contention.record(true));
        assert!((0..16).filter(|_| contention.starts_alone()).count() == 15);
        (0..32).for_each(|_| contention.record(false));
        assert!((0..16).all(|_| !contention.starts_alone()));
    }
}
