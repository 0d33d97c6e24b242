//! Slots: the instants of a schedule, and which of them is due.

use crate::time::{Timestamp, format_duration_ms};

use super::cron::Cron;
use super::{MAX_MISSED, MAX_SPAN_MS, MIN_PERIOD_MS, MISSED_AFTER_MS, MissedSlots};

/// When the slots of a schedule come.
#[derive(Clone, Debug)]
pub(crate) enum Timing {
    /// At each multiple of a period since the epoch, so that no restart moves them.
    Every { period_ms: i64 },
    /// At the times of a calendar pattern.
    Cron(Cron),
}

impl Timing {
    /// Errors, in words: a period out of bounds.
    pub(crate) fn every(period_ms: i64) -> Result<Timing, String> {
        match (MIN_PERIOD_MS..=MAX_SPAN_MS).contains(&period_ms) {
            true => Ok(Timing::Every { period_ms }),
            false => Err(format!("the period is {period_ms} ms, and goes from {MIN_PERIOD_MS} to {MAX_SPAN_MS} ms")),
        }
    }

    /// What tells one timing from another: `every 1m`, `0 3 * * *`.
    pub(crate) fn pattern(&self) -> String {
        match self {
            Timing::Every { period_ms } => format!("every {}", format_duration_ms(*period_ms)),
            Timing::Cron(cron) => cron.text().to_owned(),
        }
    }

    pub(crate) fn zone(&self) -> Option<&str> {
        match self {
            Timing::Every { .. } => None,
            Timing::Cron(cron) => Some(cron.zone()),
        }
    }

    /// The first slot after `instant`.
    pub(crate) fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        let slot = match self {
            Timing::Every { period_ms } => {
                let next = instant.as_millis().div_euclid(*period_ms).checked_add(1)?.checked_mul(*period_ms)?;
                Timestamp::from_millis(next)
            }
            Timing::Cron(cron) => cron.after(instant)?,
        };
        (slot <= Timestamp::MAX).then_some(slot)
    }

    /// The last slot at or before `instant`.
    pub(crate) fn latest(&self, instant: Timestamp) -> Option<Timestamp> {
        match self {
            Timing::Every { period_ms } => {
                let latest = instant.as_millis().div_euclid(*period_ms).checked_mul(*period_ms)?;
                Some(Timestamp::from_millis(latest))
            }
            Timing::Cron(cron) => cron.before(instant.saturating_add_millis(1)),
        }
    }

    /// The earliest of the last [`MAX_MISSED`] slots behind `done` and not behind `now`.
    fn earliest(&self, done: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let mut earliest = self.latest(now).filter(|slot| *slot > done)?;
        for _ in 1..MAX_MISSED {
            match self.latest(earliest.saturating_add_millis(-1)) {
                Some(slot) if slot > done && slot < earliest => earliest = slot,
                _ => break,
            }
        }
        Some(earliest)
    }

    /// The slot that is to be run at `now`, where those up to `done` are behind, and the job of the last one was in
    /// the way until `freed`.
    pub(crate) fn due(
        &self,
        missed: MissedSlots,
        done: Timestamp,
        freed: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        match missed {
            MissedSlots::All => self.earliest(done, now),
            MissedSlots::Latest => self.latest(now).filter(|slot| *slot > done),
            MissedSlots::Skip => self.latest(now).filter(|slot| {
                *slot > done && now.millis_since(*slot) <= MISSED_AFTER_MS && freed.is_none_or(|freed| *slot > freed)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn slots(timing: &Timing, from: &str, count: usize) -> Vec<String> {
        let mut slots = Vec::new();
        let mut instant = at(from);
        for _ in 0..count {
            let Some(slot) = timing.after(instant) else { break };
            assert!(slot > instant);
            assert_eq!(timing.latest(slot), Some(slot), "{slot} is a slot from both sides");
            assert_eq!(timing.latest(slot.saturating_add_millis(1)), Some(slot));
            slots.push(slot.to_string());
            instant = slot;
        }
        slots
    }

    fn cron(pattern: &str, zone: &str) -> Timing {
        Timing::Cron(Cron::new(pattern, zone).unwrap())
    }

    #[test]
    fn a_period_has_its_slots_on_the_grid_of_the_epoch() {
        for (period_ms, from, expected) in [
            (60_000, "2026-01-01T00:00:00Z", ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]),
            (60_000, "2026-01-01T00:00:59.999Z", ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]),
            (86_400_000, "2026-01-01T12:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]),
            (7 * 86_400_000, "2026-01-01T12:00:00Z", ["2026-01-08T00:00:00Z", "2026-01-15T00:00:00Z"]),
            (1_500, "1969-12-31T23:59:58Z", ["1969-12-31T23:59:58.500Z", "1970-01-01T00:00:00Z"]),
        ] {
            let timing = Timing::every(period_ms).unwrap();
            let found = slots(&timing, from, 2);
            let same = found.iter().zip(expected).all(|(found, expected)| at(found) == at(expected));
            assert!(same, "{period_ms} {from}: {found:?}");
        }
        let longest = Timing::every(MAX_SPAN_MS).unwrap();
        for instant in [Timestamp::MAX, Timestamp::NEVER, Timestamp::from_millis(i64::MIN)] {
            longest.latest(instant);
            longest.after(instant);
            cron("* * * * *", "UTC").latest(instant);
            assert_eq!(cron("* * * * *", "UTC").after(instant), None);
        }
    }

    #[test]
    fn a_pattern_has_its_slots_where_the_calendar_has_them() {
        for (pattern, zone, from, expected) in [
            ("0 3 * * *", "UTC", "2026-01-01T03:00:00Z", ["2026-01-02T03:00:00Z", "2026-01-03T03:00:00Z"]),
            ("0 3 * * *", "UTC", "2026-01-01T02:59:59.999Z", ["2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"]),
            ("0 3 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", ["2026-01-01T02:00:00Z", "2026-01-02T02:00:00Z"]),
            ("*/20 * * * *", "UTC", "2026-01-01T00:30:00Z", ["2026-01-01T00:40:00Z", "2026-01-01T01:00:00Z"]),
            ("*/10 * * * * *", "UTC", "2026-01-01T00:00:00Z", ["2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"]),
            ("0 9 * * MON-FRI", "UTC", "2026-01-02T09:00:00Z", ["2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"]),
            ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
            ("0 0 L * *", "UTC", "2026-01-31T00:00:00Z", ["2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"]),
            // A day of the month or a weekday: either is enough, as with every cron.
            ("0 0 13 * FRI", "UTC", "2026-01-09T00:00:00Z", ["2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"]),
            ("@daily", "UTC", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]),
        ] {
            assert_eq!(slots(&cron(pattern, zone), from, 2), expected, "{pattern} {zone}");
        }
    }

    #[test]
    fn where_clocks_are_put_forward_no_day_is_left_out() {
        // In Berlin on 29 March 2026 it is 03:00 at once after 01:59:59, and 01:00 UTC.
        for (pattern, expected) in [
            // One time of day, which is not there: at the end of the leap.
            ("30 2 * * *", vec!["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
            ("0 3 * * *", vec!["2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"]),
        ] {
            assert_eq!(slots(&cron(pattern, "Europe/Berlin"), "2026-03-28T00:45:00Z", 3), expected, "{pattern}");
        }
        let half_hours = slots(&cron("*/30 * * * *", "Europe/Berlin"), "2026-03-29T00:00:00Z", 3);
        assert_eq!(half_hours, ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]);
    }

    #[test]
    fn where_clocks_are_put_back_a_time_of_day_comes_once_and_steps_go_on() {
        // In Berlin on 25 October 2026 it is 02:00 again after 02:59:59, and 01:00 UTC.
        let once = slots(&cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00:00Z", 2);
        assert_eq!(once, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let half_hours = slots(&cron("*/30 * * * *", "Europe/Berlin"), "2026-10-25T00:00:00Z", 4);
        let expected = ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"];
        assert_eq!(half_hours, expected);
    }

    #[test]
    fn both_directions_name_the_same_slots_the_year_round() {
        let instants = |text: &str| at(text).as_millis();
        for (pattern, zone) in [
            ("30 2 * * *", "Europe/Berlin"),
            ("30 1 * * *", "America/New_York"),
            ("15,45 1-3 * * *", "Europe/Berlin"),
            ("*/30 * * * *", "Australia/Lord_Howe"),
            ("0 0 * * *", "America/Santiago"),
            ("0 0 * * 0", "Africa/Cairo"),
        ] {
            let timing = cron(pattern, zone);
            let (mut instant, end) = (at("2026-01-01T00:00:00Z"), instants("2027-01-01T00:00:00Z"));
            let mut last = None;
            while let Some(slot) = timing.after(instant).filter(|slot| slot.as_millis() < end) {
                let before = timing.latest(slot.saturating_add_millis(-1));
                assert!(
                    last.is_none() || before == last,
                    "{pattern} {zone}: before {slot} is {before:?}, not {last:?}"
                );
                assert_eq!(timing.latest(slot), Some(slot), "{pattern} {zone}");
                (instant, last) = (slot, Some(slot));
            }
            assert!(last.is_some());
        }
    }

    #[test]
    fn what_was_missed_is_run_as_it_is_told() {
        use MissedSlots::{All, Latest, Skip};
        let minutes = Timing::every(60_000).unwrap();
        let minute = |n: i64| Timestamp::from_millis(n * 60_000);
        let due = |missed, done: i64, freed: Option<i64>, now_ms: i64| {
            let slot = minutes.due(missed, minute(done), freed.map(minute), Timestamp::from_millis(now_ms))?;
            Some(slot.as_millis() / 60_000)
        };
        for (missed, done, freed, now_ms, expected) in [
            (Skip, 10, None, 659_999, None),
            (Skip, 10, None, 660_000, Some(11)),
            // The last of several is not missed, when it has just come.
            (Skip, 10, None, 20 * 60_000 + 5, Some(20)),
            // Its predecessor was in the way when it came.
            (Skip, 10, Some(20), 20 * 60_000 + 5, None),
            (Skip, 10, Some(20), 21 * 60_000, Some(21)),
            (Latest, 10, Some(20), 20 * 60_000 + 5, Some(20)),
            (Latest, 20, None, 20 * 60_000 + 5, None),
            (All, 10, Some(20), 20 * 60_000 + 5, Some(11)),
            (All, 11, None, 20 * 60_000 + 5, Some(12)),
            (All, 20, None, 20 * 60_000 + 5, None),
            (All, 0, None, 1_000 * 60_000, Some(1_001 - MAX_MISSED as i64)),
            // A clock that goes back runs nothing twice.
            (All, 20, None, 5 * 60_000, None),
        ] {
            assert_eq!(due(missed, done, freed, now_ms), expected, "{missed:?} {done} {freed:?} {now_ms}");
        }
        let daily = Timing::every(86_400_000).unwrap();
        let late = |missed, late_ms| {
            daily.due(missed, Timestamp::EPOCH, None, Timestamp::from_millis(86_400_000 + late_ms)).is_some()
        };
        assert_eq!((late(Skip, MISSED_AFTER_MS), late(Skip, MISSED_AFTER_MS + 1)), (true, false));
        assert_eq!((late(Latest, 80_000_000), late(All, 80_000_000)), (true, true));
    }
}
