//! Calendar: where civil hours, days, weeks, months and years begin in a named time zone.
//!
//! Periods are numbered. Each has one edge, the first instant at which the zone's clock shows its beginning (or,
//! where the clock leaps over that, the first instant after the leap). Edges only ever go forward, so a day at which
//! clocks are put back over midnight begins once. A day that a zone leaves out altogether has no length.
//! Weeks begin on Mondays. Beyond the years that the time-zone data knows, the last offset stays.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp as Instant;
use jiff::tz::{Offset, TimeZone};

use crate::time::InvalidTime;

use super::number::{clamp_i64, div_floor};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;

/// A period of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CalendarUnit {
    /// From one full hour of the zone's clock to the next.
    Hour,
    /// From midnight to midnight: 23 to 25 hours where clocks change.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first of a month to the first of the next.
    Month,
    /// From the first of January to the next.
    Year,
}

impl CalendarUnit {
    /// Every unit.
    pub const ALL: [CalendarUnit; 5] =
        [CalendarUnit::Hour, CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month, CalendarUnit::Year];

    /// The word that scripts say it by.
    pub const fn name(self) -> &'static str {
        match self {
            CalendarUnit::Hour => "hour",
            CalendarUnit::Day => "day",
            CalendarUnit::Week => "week",
            CalendarUnit::Month => "month",
            CalendarUnit::Year => "year",
        }
    }

    /// The longest that it is where no clock changes, in ms.
    pub(super) const fn longest_ms(self) -> i64 {
        match self {
            CalendarUnit::Hour => HOUR_MS,
            CalendarUnit::Day => DAY_MS,
            CalendarUnit::Week => 7 * DAY_MS,
            CalendarUnit::Month => 31 * DAY_MS,
            CalendarUnit::Year => 366 * DAY_MS,
        }
    }

    /// The shortest that it is where no clock changes, in ms.
    const fn shortest_ms(self) -> i64 {
        match self {
            CalendarUnit::Month => 28 * DAY_MS,
            CalendarUnit::Year => 365 * DAY_MS,
            unit => unit.longest_ms(),
        }
    }
}

impl fmt::Display for CalendarUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for CalendarUnit {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<CalendarUnit, InvalidTime> {
        let found = CalendarUnit::ALL.into_iter().find(|unit| unit.name() == text);
        found.ok_or_else(|| InvalidTime::Unit(text.to_owned()))
    }
}

/// A unit in a zone. Equal where unit and name of the zone are.
#[derive(Clone)]
pub(crate) struct Calendar {
    unit: CalendarUnit,
    zone: Arc<Zone>,
    /// Tells this calendar from others in what is stored.
    mark: u32,
}

struct Zone {
    name: String,
    rules: TimeZone,
}

impl Calendar {
    /// Errors: a zone that is not in the time-zone data.
    pub(super) fn new(unit: CalendarUnit, zone: &str) -> Result<Calendar, InvalidTime> {
        let unknown = || InvalidTime::Zone(zone.to_owned());
        let rules = TimeZone::get(zone).map_err(|_| unknown())?;
        let name = rules.iana_name().ok_or_else(unknown)?.to_owned();
        let hash = super::fixed_window::stable_hash(unit.name(), name.as_bytes());
        // Never 0, which marks what is to be found anew.
        let mark = ((hash >> 32) as u32).max(1);
        Ok(Calendar { unit, zone: Arc::new(Zone { name, rules }), mark })
    }

    pub(crate) fn unit(&self) -> CalendarUnit {
        self.unit
    }

    pub(crate) fn zone(&self) -> &str {
        &self.zone.name
    }

    pub(super) fn mark(&self) -> u32 {
        self.mark
    }

    /// A length that every period has at least, but for those that a zone's laws once cut short.
    pub(super) fn shortest_ms(&self) -> i64 {
        match self.unit {
            CalendarUnit::Hour => HOUR_MS,
            unit if self.zone.name == "UTC" => unit.shortest_ms(),
            unit => unit.shortest_ms() - HOUR_MS,
        }
    }

    /// The number of the period that `instant` lies in.
    pub(super) fn index(&self, instant: i64) -> i64 {
        let mut index = self.shown(instant);
        // Where clocks are put back over an edge, the hand shows the period before once more. (Once is enough, and at
        // the ends of all time, where edges cannot be told apart, looking on would not end.)
        if self.edge(index.saturating_add(1)) <= instant {
            index = index.saturating_add(1);
        } else if self.edge(index) > instant {
            index = index.saturating_sub(1);
        }
        index
    }

    /// The instant at which period `index` begins.
    pub(super) fn edge(&self, index: i64) -> i64 {
        let days = match self.unit {
            CalendarUnit::Hour => {
                let full = i128::from(index) * i128::from(HOUR_MS);
                let before = clamp_i64(full - i128::from(HOUR_MS));
                return clamp_i64(full - i128::from(self.offset_ms(before).rem_euclid(HOUR_MS)));
            }
            CalendarUnit::Day => i128::from(index),
            // The first of January 1970 was a Thursday.
            CalendarUnit::Week => i128::from(index) * 7 - 3,
            CalendarUnit::Month => days_to(i128::from(index).div_euclid(12), i128::from(index).rem_euclid(12) + 1),
            CalendarUnit::Year => days_to(index.into(), 1),
        };
        let shown = clamp_i64(days.saturating_mul(DAY_MS.into()));
        let midnight = Instant::from_millisecond(shown).ok().map(|shown| Offset::UTC.to_datetime(shown));
        match midnight.and_then(|midnight| self.zone.rules.to_timestamp(midnight).ok()) {
            Some(instant) => instant.as_millisecond(),
            None => shown.saturating_sub(self.offset_ms(shown)),
        }
    }

    /// The number of the period that the zone's clock shows at `instant`.
    fn shown(&self, instant: i64) -> i64 {
        let offset = i128::from(self.offset_ms(instant));
        if self.unit == CalendarUnit::Hour {
            let shown = i128::from(instant) + offset.rem_euclid(HOUR_MS.into());
            return clamp_i64(div_floor(shown, HOUR_MS));
        }
        let days = div_floor(i128::from(instant) + offset, DAY_MS);
        clamp_i64(match self.unit {
            CalendarUnit::Hour | CalendarUnit::Day => days,
            CalendarUnit::Week => (days + 3).div_euclid(7),
            CalendarUnit::Month => {
                let (year, month) = month_of(days);
                year * 12 + month - 1
            }
            CalendarUnit::Year => month_of(days).0,
        })
    }

    /// How far the zone's clock is ahead of UTC at `instant`.
    fn offset_ms(&self, instant: i64) -> i64 {
        let known = instant.clamp(Instant::MIN.as_millisecond(), Instant::MAX.as_millisecond());
        let known = Instant::from_millisecond(known).unwrap_or(Instant::UNIX_EPOCH);
        i64::from(self.zone.rules.to_offset(known).seconds()) * 1_000
    }
}

/// Days from the epoch to the first of a month of the Gregorian calendar, for every year that there can be.
///
/// Both this and [`month_of`] count in eras of 400 years from a March on, so that the leap day comes last.
/// <https://howardhinnant.github.io/date_algorithms.html> (public domain)
fn days_to(year: i128, month: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The year and the month, from 1 to 12, that a day counted from the epoch lies in.
fn month_of(days: i128) -> (i128, i128) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + i128::from(month <= 2), month)
}

impl PartialEq for Calendar {
    fn eq(&self, other: &Calendar) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Calendar {}

impl PartialOrd for Calendar {
    fn partial_cmp(&self, other: &Calendar) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Calendar {
    fn cmp(&self, other: &Calendar) -> Ordering {
        (self.unit, &self.zone.name).cmp(&(other.unit, &other.zone.name))
    }
}

impl Hash for Calendar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.unit, &self.zone.name).hash(state);
    }
}

/// `day in Europe/Berlin`
impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.unit, self.zone())
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calendar({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use proptest::prelude::*;

    fn calendar(unit: CalendarUnit, zone: &str) -> Calendar {
        Calendar::new(unit, zone).unwrap()
    }

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millis()
    }

    #[test]
    fn periods_begin_and_end_where_the_zone_says() {
        use CalendarUnit::*;
        for (unit, zone, instant, begins, ends) in [
            (Day, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            (Day, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
            (Day, "Asia/Tokyo", "2026-06-01T15:00:00Z", "2026-06-01T15:00:00Z", "2026-06-02T15:00:00Z"),
            (Week, "UTC", "2026-01-01T00:00:00Z", "2025-12-29T00:00:00Z", "2026-01-05T00:00:00Z"),
            (Month, "Europe/Berlin", "2026-02-28T23:30:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"),
            (Month, "UTC", "2028-02-29T23:59:59Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
            (Year, "America/New_York", "2026-06-01T00:00:00Z", "2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"),
            (Year, "UTC", "9999-06-01T00:00:00Z", "9999-01-01T00:00:00Z", ""),
            (Hour, "Asia/Kolkata", "2026-01-01T00:50:00Z", "2026-01-01T00:30:00Z", "2026-01-01T01:30:00Z"),
            (Hour, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"),
            // Midnight is left out where clocks go forward at midnight, ...
            (Day, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"),
            // ... comes twice and counts once, ...
            (Day, "America/St_Johns", "2010-11-07T02:45:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"),
            // ... and a whole day is left out where the date line is crossed.
            (Day, "Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"),
        ] {
            let calendar = calendar(unit, zone);
            let index = calendar.index(at(instant));
            assert_eq!(Timestamp::from_millis(calendar.edge(index)).to_string(), begins, "{unit} {zone} {instant}");
            let next = calendar.edge(index + 1);
            match ends {
                "" => assert_eq!(next, Timestamp::MAX.as_millis() + 1),
                ends => assert_eq!(Timestamp::from_millis(next).to_string(), ends, "{unit} {zone} {instant}"),
            }
        }
    }

    #[test]
    fn what_is_no_zone_or_no_unit_is_said() {
        assert!(Calendar::new(CalendarUnit::Day, "Mars/Olympus").unwrap_err().to_string().contains("Mars/Olympus"));
        assert!(Calendar::new(CalendarUnit::Day, "").is_err());
        assert!("decade".parse::<CalendarUnit>().is_err());
        assert_eq!(calendar(CalendarUnit::Day, "europe/berlin"), calendar(CalendarUnit::Day, "Europe/Berlin"));
    }

    proptest! {
        #[test]
        fn every_instant_lies_in_its_period(
            unit in prop::sample::select(CalendarUnit::ALL.to_vec()),
            zone in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Asia/Kolkata", "Pacific/Apia",
                "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Pyongyang", "Pacific/Kiritimati",
            ]),
            instant in prop_oneof![
                8 => -2_000_000_000_000..4_000_000_000_000i64,
                1 => Timestamp::MAX.as_millis() - 200_000_000..Timestamp::MAX.as_millis() + 1,
                1 => any::<i64>(),
            ],
            step in 1..100i64,
        ) {
            let calendar = calendar(unit, zone);
            let index = calendar.index(instant);
            prop_assert!(calendar.edge(index) <= instant || index == i64::MIN || instant < -(1 << 62));
            prop_assert!(calendar.edge(index + 1) > instant || instant > 1 << 62);
            prop_assert!(calendar.edge(index) <= calendar.edge(index + step));
        }

        #[test]
        fn months_are_those_of_the_time_zone_data(days in -4_000_000..2_900_000i64) {
            let shown = Instant::from_millisecond(days * DAY_MS).map(|day| Offset::UTC.to_datetime(day));
            if let Ok(shown) = shown {
                prop_assert_eq!(month_of(days.into()), (shown.year().into(), shown.month().into()));
                let first = days - i64::from(shown.day()) + 1;
                prop_assert_eq!(days_to(shown.year().into(), shown.month().into()), i128::from(first));
            }
        }
    }
}
