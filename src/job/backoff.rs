//! Backoff: how long a job waits after a failed attempt. Integers only.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How long a job waits after attempt `n`: `first · factor^(n-1)`, between `first` and `max`, with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Backoff {
    /// The wait after the first attempt, in ms.
    pub first_ms: i64,
    /// By how much each wait is longer than the one before it, in thousandths: 2 000 doubles it.
    pub factor_thousandths: i64,
    /// The longest wait, in ms.
    pub max_ms: i64,
    /// How far a wait may differ from its due length, in thousandths of it: 100 is a tenth, up or down.
    pub jitter_thousandths: i64,
}

impl Default for Backoff {
    /// 1, 2, 4, 8 min and at most 15, a tenth more or less.
    fn default() -> Backoff {
        Backoff { first_ms: 60_000, factor_thousandths: 2_000, max_ms: 900_000, jitter_thousandths: 100 }
    }
}

impl Backoff {
    /// The wait after `attempt` (from 1 up) of job `id`, in ms. The same job and attempt always wait as long.
    pub(crate) fn wait_ms(&self, id: &str, attempt: i64) -> i64 {
        let max = self.max_ms.max(self.first_ms);
        let mut wait = i128::from(self.first_ms);
        for _ in 1..attempt {
            wait = wait * i128::from(self.factor_thousandths) / 1_000;
            if wait >= i128::from(max) {
                wait = i128::from(max);
                break;
            }
        }
        let most = wait * i128::from(self.jitter_thousandths) / 1_000;
        let shift = i128::from(draw(id, attempt)) % (2 * most + 1) - most;
        // No jitter passes the cap; below the cap a wait may be a little shorter than `first`.
        i64::try_from((wait + shift).clamp(0, i128::from(max))).unwrap_or(max)
    }
}

/// A number that depends on the job and the attempt alone.
fn draw(id: &str, attempt: i64) -> u64 {
    let digest = Sha256::new().chain_update(id).chain_update(attempt.to_be_bytes()).finalize();
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn em_backoff_waits_are_those_of_the_vectors() {
        let vectors = include_str!("../../tests/cases/limiter-vectors.json");
        let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
        let rows = vectors.as_array().or(vectors["rows"].as_array()).unwrap();
        let row = rows.iter().find(|row| row["id"] == "EM-BACKOFF").unwrap();
        let backoff = Backoff { jitter_thousandths: 0, ..Backoff::default() };
        for (attempt, seconds) in (1..).zip(row["series_s"].as_array().unwrap()) {
            assert_eq!(Some(backoff.wait_ms("x", attempt) / 1_000), seconds.as_i64(), "attempt {attempt}");
        }
    }

    #[test]
    fn without_jitter_waits_double_up_to_the_cap() {
        let backoff = Backoff { jitter_thousandths: 0, ..Backoff::default() };
        let minutes: Vec<i64> = (1..=7).map(|attempt| backoff.wait_ms("x", attempt) / 60_000).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 15, 15, 15]);
        assert_eq!(backoff.wait_ms("x", i64::MAX), 900_000);
    }

    #[test]
    fn fault_115_delays_grow_stay_under_the_cap_and_are_the_same_again() {
        let backoff = Backoff::default();
        for job in 0..200 {
            let id = format!("job-{job}");
            let waits: Vec<i64> = (1..=6).map(|attempt| backoff.wait_ms(&id, attempt)).collect();
            assert!(waits.iter().all(|wait| *wait <= 900_000));
            assert!(waits[..4].windows(2).all(|pair| pair[1] * 4 >= pair[0] * 6), "{waits:?}");
            assert_eq!(waits, (1..=6).map(|attempt| backoff.wait_ms(&id, attempt)).collect::<Vec<_>>());
        }
        let spread: std::collections::BTreeSet<i64> =
            (0..200).map(|job| backoff.wait_ms(&format!("job-{job}"), 1)).collect();
        assert!(spread.len() > 100 && spread.iter().all(|wait| (54_000..=66_000).contains(wait)));
    }

    #[test]
    fn extremes_neither_wrap_nor_panic() {
        let huge =
            Backoff { first_ms: i64::MAX, factor_thousandths: i64::MAX, max_ms: i64::MAX, jitter_thousandths: 1_000 };
        assert!(huge.wait_ms("x", 1_000) >= 0);
        let none = Backoff { first_ms: 0, factor_thousandths: 1_000, max_ms: 0, jitter_thousandths: 1_000 };
        assert_eq!(none.wait_ms("x", 3), 0);
    }
}
