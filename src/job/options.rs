//! Options of a job: what may be said when it is enqueued.

use std::time::Duration;

use crate::spelling;
use crate::time::{Timestamp, parse_duration_ms};
use crate::value::{Map, Value};

use super::{Backoff, MAX_ATTEMPTS, MAX_KEY_BYTES, MAX_PRIORITY, MAX_QUEUE_BYTES, MAX_SPAN_MS};

const OPTIONS: [&str; 10] =
    ["key", "force", "delay", "at", "max_attempts", "backoff", "lease", "queue", "priority", "keep"];
const BACKOFF: [&str; 4] = ["first", "factor", "max", "jitter"];

/// What cannot be about a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct InvalidJob {
    /// A stable word for it.
    pub code: &'static str,
    /// What was wrong and what to do.
    pub message: String,
}

impl InvalidJob {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> InvalidJob {
        InvalidJob { code, message: message.into() }
    }
}

fn bad<T>(message: impl Into<String>) -> Result<T, InvalidJob> {
    Err(InvalidJob::new("bad_job", message))
}

/// How a job is to be done. Checked when it is enqueued.
///
/// ```
/// use std::time::Duration;
/// use tollgate::JobOptions;
/// let options = JobOptions::new().key("welcome:42").delay(Duration::from_secs(60)).max_attempts(3).queue("mail");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct JobOptions {
    pub(super) key: Option<String>,
    pub(super) force: bool,
    pub(super) delay_ms: i64,
    pub(super) at: Option<Timestamp>,
    pub(super) max_attempts: i64,
    pub(super) backoff: Backoff,
    pub(super) lease_ms: i64,
    pub(super) queue: String,
    pub(super) priority: i64,
    pub(super) keep_ms: i64,
}

impl Default for JobOptions {
    fn default() -> JobOptions {
        JobOptions {
            key: None,
            force: false,
            delay_ms: 0,
            at: None,
            max_attempts: 5,
            backoff: Backoff::default(),
            lease_ms: 60_000,
            queue: "default".to_owned(),
            priority: 0,
            keep_ms: 14 * 86_400_000,
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl JobOptions {
    /// Due now, five attempts, a lease of 60 s, kept for 14 days once finished.
    pub fn new() -> JobOptions {
        JobOptions::default()
    }

    /// Enqueues once: with this key and the same handler there is one job: [the guide](crate::guide::jobs) tells what is done in each state.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Runs the job of this key again, though it is running or has succeeded.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// The earliest start, from now.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ms = millis(delay);
        self
    }

    /// The earliest start.
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = Some(at);
        self
    }

    /// After how many failed attempts it is given up: 1 to 1 000, 5 unless told otherwise.
    pub fn max_attempts(mut self, attempts: i64) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// How long it waits after a failed attempt.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How long a worker may be silent before it has lost the job: 60 s unless told otherwise.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease_ms = millis(lease);
        self
    }

    /// The queue that workers take it from: `default` unless told otherwise.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Among due jobs of a queue the highest goes first: -100 to 100, 0 unless told otherwise.
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// How long it is kept once it is finished: 14 days unless told otherwise.
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep_ms = millis(keep);
        self
    }

    /// Reads the options of a script: the third argument of `enqueue`.
    pub(crate) fn parse(map: &Map) -> Result<JobOptions, InvalidJob> {
        let mut options = JobOptions::default();
        for (name, value) in map {
            match name.as_str() {
                "key" => options.key = Some(text(name, value)?),
                "force" => options.force = truth(name, value)?,
                "delay" => options.delay_ms = span(name, value)?,
                "at" => options.at = Some(instant(value)?),
                "max_attempts" => options.max_attempts = whole(name, value)?,
                "backoff" => options.backoff = backoff(value)?,
                "lease" => options.lease_ms = span(name, value)?,
                "queue" => options.queue = text(name, value)?,
                "priority" => options.priority = whole(name, value)?,
                "keep" => options.keep_ms = span(name, value)?,
                _ => return bad(format!("`{name}` is no option of a job: {}", spelling::advice(name, &OPTIONS))),
            }
        }
        if map.contains_key("at") && map.contains_key("delay") {
            return bad("`delay` and `at` both say when it may start: give one of them");
        }
        Ok(options)
    }

    /// Checks every bound.
    pub(super) fn check(&self) -> Result<(), InvalidJob> {
        let within = |name: &str, value: i64, low: i64, high: i64, unit: &str| match (low..=high).contains(&value) {
            true => Ok(()),
            false => bad(format!("`{name}` is {value}{unit}, and goes from {low} to {high}{unit}")),
        };
        within("max_attempts", self.max_attempts, 1, MAX_ATTEMPTS, "")?;
        within("priority", self.priority, -MAX_PRIORITY, MAX_PRIORITY, "")?;
        within("delay", self.delay_ms, 0, MAX_SPAN_MS, " ms")?;
        within("lease", self.lease_ms, 1, MAX_SPAN_MS, " ms")?;
        within("keep", self.keep_ms, 0, MAX_SPAN_MS, " ms")?;
        within("backoff.first", self.backoff.first_ms, 0, MAX_SPAN_MS, " ms")?;
        within("backoff.max", self.backoff.max_ms, self.backoff.first_ms, MAX_SPAN_MS, " ms")?;
        within("backoff.factor", self.backoff.factor_thousandths, 1_000, 1_000_000, " thousandths")?;
        within("backoff.jitter", self.backoff.jitter_thousandths, 0, 1_000, " thousandths")?;
        if self.queue.is_empty() || self.queue.len() > MAX_QUEUE_BYTES {
            return bad(format!("the name of a queue has 1 to {MAX_QUEUE_BYTES} bytes, not {}", self.queue.len()));
        }
        match &self.key {
            Some(key) if key.is_empty() || key.len() > MAX_KEY_BYTES => {
                bad(format!("the key of a job has 1 to {MAX_KEY_BYTES} bytes, not {}", key.len()))
            }
            None if self.force => bad("`force` runs the job of a `key` again: there is no key"),
            _ => Ok(()),
        }
    }
}

fn text(name: &str, value: &Value) -> Result<String, InvalidJob> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        other => bad(format!("`{name}` is a text, not {}", other.type_name())),
    }
}

fn truth(name: &str, value: &Value) -> Result<bool, InvalidJob> {
    value.as_bool().map_or_else(|| bad(format!("`{name}` is true or false, not {}", value.type_name())), Ok)
}

fn whole(name: &str, value: &Value) -> Result<i64, InvalidJob> {
    value.as_int().map_or_else(|| bad(format!("`{name}` is a whole number, not {}", value.type_name())), Ok)
}

/// Ms, or text such as `"5m"`.
fn span(name: &str, value: &Value) -> Result<i64, InvalidJob> {
    match value {
        Value::Int(ms) => Ok(*ms),
        Value::Text(text) => parse_duration_ms(text).or_else(|why| bad(format!("`{name}`: {why}"))),
        other => bad(format!("`{name}` is a duration such as \"5m\" or milliseconds, not {}", other.type_name())),
    }
}

fn instant(value: &Value) -> Result<Timestamp, InvalidJob> {
    match value {
        Value::Int(ms) => Ok(Timestamp::from_millis(*ms)),
        Value::Text(text) => text.parse().or_else(|why| bad(format!("`at`: {why}"))),
        other => bad(format!("`at` is an instant in ms or RFC 3339 text, not {}", other.type_name())),
    }
}

fn thousandths(name: &str, value: &Value) -> Result<i64, InvalidJob> {
    match value {
        Value::Int(n) => Ok(n.saturating_mul(1_000)),
        Value::Float(x) if x.is_finite() && x.abs() < 1e9 => Ok((x * 1_000.0).round() as i64),
        other => bad(format!("`{name}` is a number such as 2 or 0.1, not {other}")),
    }
}

fn backoff(value: &Value) -> Result<Backoff, InvalidJob> {
    let Value::Map(map) = value else {
        return bad(format!("`backoff` is a map such as #{{ first: \"1m\", factor: 2 }}, not {}", value.type_name()));
    };
    let mut backoff = Backoff::default();
    for (name, value) in map {
        match name.as_str() {
            "first" => backoff.first_ms = span("backoff.first", value)?,
            "factor" => backoff.factor_thousandths = thousandths("backoff.factor", value)?,
            "max" => backoff.max_ms = span("backoff.max", value)?,
            "jitter" => backoff.jitter_thousandths = thousandths("backoff.jitter", value)?,
            _ => return bad(format!("`{name}` is nothing of a backoff: {}", spelling::advice(name, &BACKOFF))),
        }
    }
    if !map.contains_key("max") {
        backoff.max_ms = backoff.max_ms.max(backoff.first_ms);
    }
    Ok(backoff)
}
