//! Instants, durations in text, and clocks: the only module that reads the time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// An instant: whole milliseconds since the Unix epoch, UTC.
///
/// ```
/// use tollgate::Timestamp;
/// let t: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
/// assert_eq!(t.as_millis(), 1_767_225_600_000);
/// assert_eq!(t.to_string(), "2026-01-01T00:00:00Z");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The last instant a clock may show: the end of the year 9999.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);
    /// After every instant: what never comes.
    pub const NEVER: Timestamp = Timestamp(i64::MAX);

    /// The instant `ms` milliseconds after the epoch (before it, when negative).
    pub const fn from_millis(ms: i64) -> Self {
        Timestamp(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This instant moved by `ms` milliseconds; stops at the ends of the range instead of wrapping.
    pub const fn saturating_add_millis(self, ms: i64) -> Self {
        Timestamp(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this instant; negative when `earlier` is later.
    pub const fn millis_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// RFC 3339 in UTC, with milliseconds only where they are not zero.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl std::str::FromStr for Timestamp {
    type Err = InvalidTime;

    /// Parses RFC 3339 text (`2026-01-01T00:00:00Z`, any offset). Below a millisecond it truncates.
    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let instant: jiff::Timestamp = text.trim().parse().map_err(|_| InvalidTime::Instant(text.to_owned()))?;
        // Truncation goes towards the past on both sides of the epoch.
        Ok(Timestamp(instant.as_nanosecond().div_euclid(1_000_000) as i64))
    }
}

/// Why a text is not an instant or a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTime {
    /// Not an RFC 3339 instant.
    #[error("`{0}` is not an instant: write RFC 3339 such as `2026-01-01T00:00:00Z`")]
    Instant(String),
    /// Not a duration.
    #[error("`{0}` is not a duration: write a number with a unit, such as `250ms`, `30s`, `5m`, `1h30m`, `7d`, `2w`")]
    Duration(String),
    /// A number where a unit is needed.
    #[error("`{0}` has no unit: write `{0}s` for seconds or `{0}ms` for milliseconds")]
    NoUnit(String),
    /// More milliseconds than fit.
    #[error("`{0}` is longer than can be counted in milliseconds")]
    TooLong(String),
    /// Not a time zone of the bundled time-zone data.
    #[error("`{0}` is not a known time zone: write an IANA name such as `Europe/Berlin` or `UTC`")]
    Zone(String),
    /// Not a civil unit.
    #[error("`{0}` is not a unit: write hour, day, week, month or year")]
    Unit(String),
}

/// Parses a duration such as `"250ms"`, `"30s"`, `"1h30m"`, `"2w"` to milliseconds.
///
/// Units are `ms s m h d w`; each is a whole number of the next smaller one (a day is 24 hours).
/// Errors: no unit, an unknown one, or more than `i64` milliseconds.
///
/// ```
/// assert_eq!(tollgate::parse_duration("1h30m").unwrap(), std::time::Duration::from_secs(5400));
/// assert!(tollgate::parse_duration("90").is_err()); // ninety what?
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, InvalidTime> {
    parse_duration_ms(text).map(|ms| Duration::from_millis(ms as u64))
}

/// [`parse_duration`], as the integer milliseconds that scripts and limits count in. Never negative.
pub(crate) fn parse_duration_ms(text: &str) -> Result<i64, InvalidTime> {
    let invalid = || InvalidTime::Duration(text.to_owned());
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(invalid());
        }
        let letters = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit: i64 = match &rest[digits..digits + letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            "" if digits == rest.len() => return Err(InvalidTime::NoUnit(text.trim().to_owned())),
            _ => return Err(invalid()),
        };
        let too_long = || InvalidTime::TooLong(text.to_owned());
        let count: i64 = rest[..digits].parse().map_err(|_| too_long())?;
        total = count.checked_mul(unit).and_then(|ms| total.checked_add(ms)).ok_or_else(too_long)?;
        rest = rest[digits + letters..].trim_start();
    }
    Ok(total)
}

/// Writes milliseconds as people read them: `1500` is `1.5s`, `90000` is `1m 30s`.
pub(crate) fn format_duration_ms(ms: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    if ms.unsigned_abs() < 1_000 {
        return format!("{ms}ms");
    }
    let mut rest = ms.unsigned_abs();
    let mut parts = Vec::new();
    for (unit, name) in UNITS {
        let unit = unit as u64;
        let whole = rest / unit;
        rest %= unit;
        if name == "s" && rest != 0 {
            let fraction = format!("{rest:03}");
            parts.push(format!("{whole}.{}s", fraction.trim_end_matches('0')));
        } else if whole != 0 {
            parts.push(format!("{whole}{name}"));
        }
    }
    format!("{}{}", if ms < 0 { "-" } else { "" }, parts.join(" "))
}

/// Where the engine reads the time from.
///
/// The engine asks once per call; everything in that call sees the same instant.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The system's wall clock, which within this process never runs backwards by less than two seconds.
///
/// Small corrections (a time daemon's slewing) are held; a larger step back is believed, because then the
/// earlier reading was the wrong one.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest: AtomicI64,
}

/// How far back the wall clock may step and still be held in place, in milliseconds.
const HELD_STEP_MS: i64 = 2_000;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let wall = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        let latest = self.latest.fetch_max(wall, Ordering::Relaxed);
        if wall >= latest {
            Timestamp(wall)
        } else if latest - wall < HELD_STEP_MS {
            Timestamp(latest)
        } else {
            self.latest.store(wall, Ordering::Relaxed);
            Timestamp(wall)
        }
    }
}

/// A clock that stands still until it is told to move: time in tests, in the REPL and in simulations.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, ManualClock, Timestamp};
/// let clock = ManualClock::at(Timestamp::EPOCH);
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now().as_millis(), 5_000);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `instant`, ready to be shared with an engine.
    pub fn at(instant: Timestamp) -> Arc<Self> {
        Arc::new(ManualClock { now: AtomicI64::new(instant.0) })
    }

    /// Moves the clock to `instant`, backwards too.
    pub fn set(&self, instant: Timestamp) {
        self.now.store(instant.0, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.set(self.now().saturating_add_millis(ms));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }
}

/// A point on the machine's own steady clock that work must not pass; no call's time, only its patience.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// The moment `patience` from now; none when that is too far to count.
    pub(crate) fn after(patience: Duration) -> Self {
        Deadline(Instant::now().checked_add(patience))
    }

    /// Whether the moment has passed.
    pub(crate) fn passed(self) -> bool {
        self.0.is_some_and(|at| Instant::now() >= at)
    }

    /// What is left, zero when it has passed.
    pub(crate) fn remaining(self) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }
}

/// Measures elapsed time on the machine's steady clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_text() {
        for (text, ms) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("2w", 1_209_600_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration_ms(text), Ok(ms), "{text}");
        }
        for text in [
            "",
            "5",
            "m",
            "-5m",
            "1.5h",
            "5 minutes",
            "5mm",
            "1h30",
            "99999999999999999999s",
            "9223372036854775807w",
            "5µs",
        ] {
            assert!(parse_duration_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_for_people() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_500, "1.5s"),
            (90_000, "1m 30s"),
            (90_061_001, "1d 1h 1m 1.001s"),
            (-60_000, "-1m"),
        ] {
            assert_eq!(format_duration_ms(ms), text);
        }
    }

    #[test]
    fn instants_before_the_epoch_truncate_towards_the_past() {
        let t: Timestamp = "1969-12-31T23:59:59.9995Z".parse().unwrap();
        assert_eq!(t.as_millis(), -1);
    }
}
