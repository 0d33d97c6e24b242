//! Cron: patterns of the calendar in a time zone, and the instants they name.
//!
//! Where clocks are put forward, a pattern of one time of day that is leapt over comes at the first instant after the
//! leap; a pattern of several (a `*`, a list, a range or steps in its seconds, minutes or hours) goes on with those that
//! there are. Where clocks are put back, the former comes once, the first time, and the latter whenever the clock shows
//! one of its times.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, ZonedDateTime};

use crate::time::{InvalidTime, Timestamp};

use super::MAX_PATTERN_BYTES;

/// A pattern such as `0 3 * * *`, read on the clocks of a zone.
#[derive(Clone)]
pub(crate) struct Cron {
    pattern: Arc<croner::Cron>,
    text: String,
    rules: TimeZone,
    zone: String,
}

impl Cron {
    /// Errors, in words: a pattern that is none, that no instant fits, or a zone that is not there.
    pub(crate) fn new(pattern: &str, zone: &str) -> Result<Cron, String> {
        let bytes = pattern.len();
        if bytes > MAX_PATTERN_BYTES {
            return Err(format!("the pattern has {bytes} bytes, and {MAX_PATTERN_BYTES} at most"));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let parsed = parser.parse(pattern).map_err(|why| {
            format!("`{pattern}` is no cron pattern ({}): write minute, hour, day, month and weekday", words(&why))
        })?;
        let unknown = || InvalidTime::Zone(zone.to_owned()).to_string();
        let rules = TimeZone::get(zone).map_err(|_| unknown())?;
        let zone = rules.iana_name().ok_or_else(unknown)?.to_owned();
        let text = pattern.split_whitespace().collect::<Vec<_>>().join(" ");
        let cron = Cron { pattern: Arc::new(parsed), text, rules, zone };
        match cron.after(Timestamp::EPOCH) {
            Some(_) => Ok(cron),
            None => Err(format!("`{pattern}` fits no day that there is: it would never come")),
        }
    }

    pub(crate) fn zone(&self) -> &str {
        &self.zone
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The first instant after `instant`; none when there is none in the calendar.
    pub(crate) fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        let from = self.shown(instant)?;
        let mut next = self.pattern.find_next_occurrence(&from, false).ok()?.instant();
        // A time that is leapt over is found at the end of the leap, which may be where the search began.
        if next <= instant {
            next = self.pattern.find_next_occurrence(&from.checked_add_seconds(1)?, false).ok()?.instant();
        }
        (next > instant).then_some(next)
    }

    /// The last instant before `instant`; none when there is none in the calendar.
    pub(crate) fn before(&self, instant: Timestamp) -> Option<Timestamp> {
        // Whole seconds lie before an instant exactly when they lie before the next whole second from it on.
        let second = instant.as_millis().checked_add(999)?.div_euclid(1_000).checked_mul(1_000)?;
        let from = self.shown(Timestamp::from_millis(second))?;
        let last = self.pattern.find_previous_occurrence(&from, false).ok()?.instant();
        (last < instant).then_some(last)
    }

    fn shown(&self, instant: Timestamp) -> Option<Shown> {
        let instant = jiff::Timestamp::from_millisecond(instant.as_millis()).ok()?;
        Some(Shown(instant.to_zoned_datetime(self.rules.clone())))
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({:?}, {:?})", self.text, self.zone)
    }
}

/// The parser's reason as part of a sentence.
fn words(why: &CronError) -> String {
    let text = match why {
        CronError::EmptyPattern => return "it is empty".to_owned(),
        CronError::InvalidPattern(text) | CronError::IllegalCharacters(text) | CronError::ComponentError(text) => {
            text.clone()
        }
        other => other.to_string(),
    };
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// What a zone's clock shows, as the search for an instant asks it.
#[derive(Clone)]
struct Shown(ZonedDateTime);

impl Shown {
    fn instant(&self) -> Timestamp {
        Timestamp::from_millis(self.0.timestamp().as_millisecond())
    }
}

impl CronDateTime for Shown {
    fn to_civil(&self) -> CivilDateTime {
        let shown = self.0.datetime();
        let part = |n: i8| u32::from(n.unsigned_abs());
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(shown.year().into(), part(shown.month()), part(shown.day())),
            CivilTime::from_parts_unchecked(part(shown.hour()), part(shown.minute()), part(shown.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(u32::from(self.0.weekday().to_sunday_zero_offset().unsigned_abs()))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let small = |n: u32| i8::try_from(n).map_err(|_| CronError::InvalidTime);
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let (month, day) = (small(civil.month())?, small(civil.day())?);
        let (hour, minute, second) = (small(civil.hour())?, small(civil.minute())?, small(civil.second())?);
        let shown = DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| CronError::InvalidDate)?;
        let ambiguous = self.0.time_zone().to_ambiguous_zoned_datetime(shown);
        let found = |zoned: Result<ZonedDateTime, jiff::Error>| zoned.map(Shown).map_err(|_| CronError::InvalidTime);
        Ok(match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => Resolution::Single(found(ambiguous.unambiguous())?),
            AmbiguousOffset::Fold { .. } => {
                Resolution::Ambiguous(found(ambiguous.clone().earlier())?, found(ambiguous.later())?)
            }
            AmbiguousOffset::Gap { .. } => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Shown)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.timestamp().cmp(&other.0.timestamp())
    }
}
