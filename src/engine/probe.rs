//! Probes: parts of a call run alone, so that benchmarks can say what each costs.

use crate::error::Error;
use crate::transaction::{Mode, Quota};

use super::{Engine, fault_error};

impl Engine {
    /// Commits `commits` transactions, each of which reads and overwrites one of `keys` raw rows of 100 bytes.
    ///
    /// The commit path alone: no script, no limit. For benchmarks; the rows belong to nothing, so use a store of its own.
    #[doc(hidden)]
    pub fn probe_commits(&self, commits: u64, keys: u64) -> Result<(), Error> {
        let now = self.now();
        let mut seed = 1u64;
        let mut value = [0u8; 100];
        for number in 0..commits {
            // A linear congruential step (Knuth's MMIX constants) spreads the keys without costing anything.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = [&b"m"[..], &((seed >> 33) % keys).to_be_bytes()].concat();
            let mut tx = self.inner.database.begin(Mode::Optimistic, now, Quota::UNLIMITED);
            let before = tx.get(&key).map_err(fault_error)?;
            value[0] = before.map_or(0, |before| before[0].wrapping_add(1));
            value[1..9].copy_from_slice(&number.to_be_bytes());
            tx.put(&key, &value).map_err(fault_error)?;
            let _ = tx.commit().map_err(fault_error)?;
        }
        Ok(())
    }
}
