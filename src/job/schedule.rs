//! Schedules: jobs that come again, at a period or at times of the calendar.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::spelling;
use crate::time::Timestamp;
use crate::value::{Map, Value};

use super::cron::Cron;
use super::slot::Timing;
use super::{InvalidJob, JobOptions, MAX_SCHEDULE_BYTES};

/// What becomes of slots that came while nobody worked, or while the job of an earlier slot was in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MissedSlots {
    /// They are left out: it goes on with the next slot to come.
    #[default]
    Skip,
    /// The latest of them is made up for, once.
    Latest,
    /// Each of them is made up for, one after another; of more than a hundred the latest hundred.
    All,
}

impl MissedSlots {
    /// The word for it, as scripts and tools say it.
    pub fn as_str(self) -> &'static str {
        match self {
            MissedSlots::Skip => "skip",
            MissedSlots::Latest => "latest",
            MissedSlots::All => "all",
        }
    }
}

impl fmt::Display for MissedSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A schedule as a file declares it.
///
/// Its name is its identity: what is stored of it goes on when its pattern, handler or options change. It is the name
/// of the handler, unless it is given one; so only a second schedule of one handler needs a name.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) name: String,
    pub(crate) handler: String,
    pub(crate) payload: Value,
    pub(crate) timing: Timing,
    pub(crate) missed: MissedSlots,
    /// Those of the jobs; without a key.
    options: JobOptions,
}

/// The options of schedules, with those of jobs that they share.
const OPTIONS: [&str; 10] =
    ["name", "payload", "missed", "zone", "max_attempts", "backoff", "lease", "queue", "priority", "keep"];

fn bad(message: impl Into<String>) -> InvalidJob {
    InvalidJob::new("bad_schedule", message)
}

impl Schedule {
    /// `every(period, handler, options)`.
    pub(crate) fn every(period_ms: i64, handler: &str, options: &Map) -> Result<Schedule, InvalidJob> {
        if options.contains_key("zone") {
            return Err(bad("`zone` is for `cron`: a period is the same in every zone"));
        }
        Schedule::new(Timing::every(period_ms).map_err(bad)?, handler, options)
    }

    /// `cron(pattern, handler, options)`.
    pub(crate) fn cron(pattern: &str, handler: &str, options: &Map) -> Result<Schedule, InvalidJob> {
        let zone = match options.get("zone") {
            None => "UTC",
            Some(Value::Text(zone)) => zone.as_str(),
            Some(other) => return Err(bad(format!("`zone` is a text, not {}", other.type_name()))),
        };
        Schedule::new(Timing::Cron(Cron::new(pattern, zone).map_err(bad)?), handler, options)
    }

    fn new(timing: Timing, handler: &str, map: &Map) -> Result<Schedule, InvalidJob> {
        let mut name = handler.to_owned();
        let mut payload = Value::Null;
        let mut missed = MissedSlots::default();
        let mut of_jobs = Map::new();
        for (option, value) in map {
            match option.as_str() {
                "name" => {
                    let Value::Text(text) = value else {
                        return Err(bad(format!("`name` is a text, not {}", value.type_name())));
                    };
                    name = text.clone();
                }
                "payload" => payload = value.clone(),
                "missed" => missed = missed_of(value)?,
                "zone" => {}
                "key" | "force" | "delay" | "at" => {
                    return Err(bad(format!("`{option}` is no option of a schedule: each slot is a job of its own")));
                }
                known if OPTIONS.contains(&known) => drop(of_jobs.insert(option.clone(), value.clone())),
                _ => {
                    let advice = spelling::advice(option, &OPTIONS);
                    return Err(bad(format!("`{option}` is no option of a schedule: {advice}")));
                }
            }
        }
        if name.is_empty() || name.len() > MAX_SCHEDULE_BYTES {
            let message = format!("the name of a schedule has 1 to {MAX_SCHEDULE_BYTES} bytes, not {}", name.len());
            return Err(bad(message));
        }
        let options = JobOptions::parse(&of_jobs).and_then(|options| options.check().map(|()| options));
        let options = options.map_err(|why| bad(why.message))?;
        Ok(Schedule { name, handler: handler.to_owned(), payload, timing, missed, options })
    }

    /// The options of the job of one slot. Its key is the slot's, so that no slot has two.
    pub(super) fn job_options(&self, slot: Timestamp) -> JobOptions {
        self.options.clone().key(format!("schedule:{}:{slot}", self.name))
    }

    /// What tells whether its slots come at the same instants as before.
    pub(super) fn mark(&self) -> String {
        match self.timing.zone() {
            Some(zone) => format!("{} {zone}", self.timing.pattern()),
            None => self.timing.pattern(),
        }
    }
}

fn missed_of(value: &Value) -> Result<MissedSlots, InvalidJob> {
    let all = [MissedSlots::Skip, MissedSlots::Latest, MissedSlots::All];
    let found = value.as_str().and_then(|text| all.into_iter().find(|missed| missed.as_str() == text));
    found.ok_or_else(|| bad(format!("`missed` is \"skip\", \"latest\" or \"all\", not {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_by_name_and_bound() {
        let map = |json: &str| match Value::from_json(json).unwrap() {
            Value::Map(map) => map,
            _ => Map::new(),
        };
        for (timing, options, message) in [
            ("999", "{}", "the period is 999 ms, and goes from 1000 to 316224000000 ms"),
            ("-1", "{}", "the period is -1 ms, and goes from 1000 to"),
            ("60000", r#"{"zone": "UTC"}"#, "`zone` is for `cron`: a period is the same in every zone"),
            ("60000", r#"{"mised": "all"}"#, "`mised` is no option of a schedule: did you mean `missed`?"),
            ("60000", r#"{"key": "k"}"#, "`key` is no option of a schedule: each slot is a job of its own"),
            ("60000", r#"{"missed": "none"}"#, "`missed` is \"skip\", \"latest\" or \"all\", not \"none\""),
            ("60000", r#"{"name": ""}"#, "the name of a schedule has 1 to 128 bytes, not 0"),
            ("60000", r#"{"name": 3}"#, "`name` is a text, not int"),
            ("60000", r#"{"priority": 101}"#, "`priority` is 101, and goes from -100 to 100"),
            ("* * *", "{}", "`* * *` is no cron pattern ("),
            ("", "{}", "`` is no cron pattern (it is empty): write minute, hour, day, month and weekday"),
            ("61 * * * *", "{}", "`61 * * * *` is no cron pattern ("),
            ("0 0 30 2 *", "{}", "`0 0 30 2 *` fits no day that there is: it would never come"),
            (
                "* * * * *",
                r#"{"zone": "Europe/Bärlin"}"#,
                "`Europe/Bärlin` is not a known time zone: write an IANA name",
            ),
            ("* * * * *", r#"{"zone": 3}"#, "`zone` is a text, not int"),
        ] {
            let made = match timing.parse() {
                Ok(period) => Schedule::every(period, "p", &map(options)),
                Err(_) => Schedule::cron(timing, "p", &map(options)),
            };
            let refused = made.unwrap_err();
            assert_eq!(refused.code, "bad_schedule");
            assert!(refused.message.starts_with(message), "{timing} {options}: {refused}");
        }
        let long = "0 0 * * *,".repeat(60);
        assert!(Schedule::cron(&long, "p", &Map::new()).unwrap_err().message.contains("256 at most"));
    }
}
