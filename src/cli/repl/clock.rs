//! The clock of a REPL: the real time until it is moved or made to stand.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tollgate::{Clock, SystemClock, Timestamp};

/// The clock of a REPL.
pub(crate) struct ReplClock {
    system: SystemClock,
    pace: Mutex<Pace>,
}

/// How the clock goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// With the system's clock, so many milliseconds ahead of it.
    Ahead(i64),
    /// Not at all.
    Standing(Timestamp),
}

impl ReplClock {
    /// A clock that shows the real time.
    pub(crate) fn new() -> Arc<ReplClock> {
        Arc::new(ReplClock { system: SystemClock::default(), pace: Mutex::new(Pace::Ahead(0)) })
    }

    /// Makes it stand at an instant.
    pub(crate) fn stand_at(&self, instant: Timestamp) {
        self.set(Pace::Standing(instant));
    }

    /// Makes it stand where it is.
    pub(crate) fn freeze(&self) {
        self.stand_at(self.now());
    }

    /// Moves it forward; it goes on if it went, and stands if it stood.
    pub(crate) fn advance(&self, by: Duration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.set(match self.pace() {
            Pace::Ahead(ahead) => Pace::Ahead(ahead.saturating_add(ms)),
            Pace::Standing(instant) => Pace::Standing(instant.saturating_add_millis(ms).min(Timestamp::MAX)),
        });
    }

    /// Shows the real time again.
    pub(crate) fn make_real(&self) {
        self.set(Pace::Ahead(0));
    }

    /// Whether it shows the real time.
    pub(crate) fn is_real(&self) -> bool {
        self.pace() == Pace::Ahead(0)
    }

    fn pace(&self) -> Pace {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, pace: Pace) {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner) = pace;
    }
}

impl Clock for ReplClock {
    fn now(&self) -> Timestamp {
        match self.pace() {
            Pace::Ahead(ms) => self.system.now().saturating_add_millis(ms).min(Timestamp::MAX),
            Pace::Standing(instant) => instant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_moves_and_returns() {
        let clock = ReplClock::new();
        assert!(clock.is_real());
        clock.stand_at(Timestamp::EPOCH);
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.now().as_millis(), 5_000);
        clock.make_real();
        let real = clock.now();
        clock.advance(Duration::from_secs(3_600));
        assert!(!clock.is_real());
        assert!(clock.now().millis_since(real) >= 3_600_000);
        clock.freeze();
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
