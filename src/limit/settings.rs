//! Settings: what a limit can be told, on which kind each option makes sense, and the bounds of it all.

use std::fmt;
use std::time::Duration;

use crate::time::{Timestamp, format_duration_ms, parse_duration_ms};
use crate::value::{Map, Value};

use super::calendar::Calendar;
use super::choice::Choice;
use super::kind::Kind;
use super::number::{clamp_i64, div_ceil};

/// The longest name of a limit, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 128;

/// The longest time a bucket may take to be full again from empty, in milliseconds: 73 million years. An instant
/// up to the year 9999 plus this fits `i64`, so no wait of an admissible limit is ever rounded.
pub(crate) const MAX_REFILL_MS: i64 = 1 << 61;

/// The highest rate of a sliding window and the most leases: what bounds how much one bucket remembers.
pub(crate) const MAX_ENTRIES: i64 = 10_000;

/// Where the windows of a fixed window begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Start {
    /// A window opens with the first accepted take of a full bucket.
    #[default]
    First,
    /// Windows lie on the grid through the Unix epoch.
    Epoch,
    /// Windows lie on a grid shifted by a stable hash of name and key, so that keys do not all reset together.
    Random,
    /// Windows lie on the grid through this instant, in both directions.
    At(Timestamp),
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::First => f.write_str("first"),
            Start::Epoch => f.write_str("epoch"),
            Start::Random => f.write_str("random"),
            Start::At(instant) => write!(f, "{}", instant.as_millis()),
        }
    }
}

/// Why a limit cannot be declared so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit {limit:?}: {field} is {value}, {reason}")]
#[non_exhaustive]
pub struct InvalidLimit {
    /// The name of the limit.
    pub limit: String,
    /// The setting that is wrong: `rate`, `period`, `capacity`, …
    pub field: String,
    /// Its value, as text.
    pub value: String,
    /// The bound it misses and what to do.
    pub reason: String,
}

/// Everything about a limit but its name. Equal settings are the same declaration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// Tokens a period, or the most leases; from 1 up.
    pub(crate) rate: i64,
    /// From 1 up. Of a civil period the longest that it is where no clock changes; of leases how long they last.
    pub(crate) period_ms: i64,
    /// Which civil periods; there for a calendar quota and for nothing else.
    pub(crate) calendar: Option<Calendar>,
    /// Most tokens that can be there at once, from 1 up.
    pub(crate) capacity: i64,
    /// How many tokens a reservation may go into the future, from 0 up.
    pub(crate) max_reserved: i64,
    /// Cooldown between two accepted takes; 0 when there is none.
    pub(crate) min_interval_ms: i64,
    pub(crate) start: Start,
    /// For how long everything is refused once something was; 0 when it is not.
    pub(crate) block_for_ms: i64,
    /// Whether it only says what it would refuse.
    pub(crate) shadow: bool,
    pub(crate) durable: bool,
    /// Over how many buckets a shared store would spread one key. Here one bucket answers the same, so no arithmetic
    /// asks for it.
    pub(crate) shards: i64,
    /// Whether a keyed hash is stored in place of the key.
    pub(crate) hash_keys: bool,
}

impl Settings {
    pub(crate) fn new(kind: Kind, rate: i64, period_ms: i64) -> Settings {
        Settings {
            kind,
            rate,
            period_ms,
            capacity: rate,
            max_reserved: 0,
            min_interval_ms: 0,
            calendar: None,
            start: Start::First,
            block_for_ms: 0,
            shadow: false,
            durable: false,
            shards: 1,
            hash_keys: false,
        }
    }

    pub(super) fn of_calendar(rate: i64, calendar: Calendar) -> Settings {
        let period_ms = calendar.unit().longest_ms();
        Settings { calendar: Some(calendar), ..Settings::new(Kind::CalendarQuota, rate, period_ms) }
    }

    /// The longest until a bucket with nothing left is full again, in milliseconds.
    pub(crate) fn full_refill_ms(&self) -> i64 {
        clamp_i64(self.refill_ms(i128::from(self.capacity)))
    }

    /// Milliseconds until `tokens` spent tokens have worn off.
    fn refill_ms(&self, tokens: i128) -> i128 {
        let (rate, period) = (i128::from(self.rate), i128::from(self.period_ms));
        match self.kind {
            Kind::FixedWindow => div_ceil(tokens, rate).saturating_mul(period),
            Kind::TokenBucket => div_ceil(tokens.saturating_mul(period), rate),
            Kind::SlidingWindow | Kind::Concurrency => period,
            Kind::SlidingCounter => period.saturating_mul(2),
            // Clocks that are put back make a period longer, by an hour at most.
            Kind::CalendarQuota => div_ceil(tokens, rate).saturating_mul(period).saturating_add(3_600_000),
        }
    }

    /// Refuses what can never admit anything, and what could not be counted exactly.
    pub(crate) fn check(&self, limit: &str) -> Result<(), InvalidLimit> {
        let refuse = |field: &str, value: &dyn fmt::Display, reason: &str| {
            Err(invalid(limit, field, value.to_string(), reason.to_owned()))
        };
        if limit.is_empty() {
            return refuse("name", &"\"\"", "must be 1 to 128 bytes long");
        }
        if limit.len() > MAX_NAME_BYTES {
            return refuse("name", &format_args!("{} bytes long", limit.len()), "must be at most 128");
        }
        let (rate, period) = self.kind.fields();
        for (field, value) in [(rate, self.rate), ("capacity", self.capacity)] {
            if value < 1 {
                return refuse(field, &value, "must be at least 1");
            }
        }
        match self.kind {
            Kind::SlidingWindow if self.rate > MAX_ENTRIES => {
                let reason = "must be at most 10000, since each take is remembered; declare a sliding_counter";
                return refuse(rate, &self.rate, reason);
            }
            Kind::Concurrency if self.rate > MAX_ENTRIES => {
                return refuse(rate, &self.rate, "must be at most 10000, since each lease is remembered");
            }
            _ => {}
        }
        if self.period_ms < 1 {
            return refuse(period, &format_args!("{} ms", self.period_ms), "must be at least 1 ms");
        }
        if self.max_reserved < 0 {
            return refuse("max_reserved", &self.max_reserved, "must be at least 0");
        }
        for (field, span) in [("min_interval", self.min_interval_ms), ("block_for", self.block_for_ms)] {
            if span > MAX_REFILL_MS {
                return refuse(field, &format_args!("{span} ms"), "must be at most 2^61 ms");
            }
        }
        if self.capacity % self.shards != 0 {
            let reason = format!("must divide the capacity, which is {}; set that first", self.capacity);
            return refuse("shards", &self.shards, &reason);
        }
        let Some(ceiling) = self.capacity.checked_add(self.max_reserved) else {
            return refuse("max_reserved", &self.max_reserved, "together with the capacity beyond 2^63 - 1; lower one");
        };
        if self.period_ms > MAX_REFILL_MS {
            return refuse(period, &format_args!("{} ms", self.period_ms), "must be at most 2^61 ms");
        }
        if self.refill_ms(i128::from(ceiling)) > i128::from(MAX_REFILL_MS) {
            let reason = "takes longer than 2^61 ms to wear off; lower it, or raise the rate";
            return match self.max_reserved {
                0 => refuse("capacity", &self.capacity, reason),
                _ => refuse("capacity + max_reserved", &ceiling, reason),
            };
        }
        Ok(())
    }

    /// These settings with one choice made, from a script's value. Checks sense and type, not yet bounds.
    pub(crate) fn choose(mut self, limit: &str, option: &str, value: &Value) -> Result<Settings, InvalidLimit> {
        let Some(choice) = Choice::ALL.into_iter().find(|choice| choice.name() == option) else {
            let known = Choice::ALL.into_iter().filter(|choice| choice.senseless_on(self.kind).is_none());
            return Err(unknown(limit, option, known.map(Choice::name)));
        };
        if let Some(why) = choice.senseless_on(self.kind) {
            let reason = format!("which makes no sense on a {}, {why}; leave it out", self.kind);
            return Err(invalid(limit, option, value.to_string(), reason));
        }
        match choice {
            Choice::Capacity => self.capacity = count(limit, option, value)?,
            Choice::MaxReserved => self.max_reserved = count(limit, option, value)?,
            Choice::MinInterval => self.min_interval_ms = positive_ms(limit, option, value)?,
            Choice::BlockFor => self.block_for_ms = positive_ms(limit, option, value)?,
            Choice::Start => self.start = start(limit, value)?,
            Choice::Shadow => self.shadow = switch(limit, option, value)?,
            Choice::Durable => self.durable = switch(limit, option, value)?,
            Choice::HashKeys => self.hash_keys = switch(limit, option, value)?,
            Choice::Shards => {
                self.shards = count(limit, option, value)?;
                if self.shards < 2 {
                    return Err(invalid(limit, option, value.to_string(), "must be at least 2".into()));
                }
            }
        }
        Ok(self)
    }

    /// These settings with several changed at once: `rate` and `period` (`max` and `ttl` of leases) and what
    /// can be chained, but for what says where a bucket is. A capacity that is the rate's follows it.
    pub(crate) fn change(mut self, limit: &str, changes: &Map) -> Result<Settings, InvalidLimit> {
        let (rate, period) = self.kind.fields();
        if let Some(value) = changes.get(rate) {
            let follows = self.capacity == self.rate;
            self.rate = count(limit, rate, value)?;
            if follows {
                self.capacity = self.rate;
            }
        }
        for (field, value) in changes.iter().filter(|(field, _)| *field != rate) {
            if field == period && self.calendar.is_none() {
                self.period_ms = span_ms(limit, period, value)?;
            } else if Choice::DECLARED.iter().any(|choice| choice.name() == field) || field == period {
                let reason = "which belongs to the declaration; change it there".into();
                return Err(invalid(limit, field, value.to_string(), reason));
            } else if Choice::ALL.iter().all(|choice| choice.name() != field) {
                let fields = [Some(rate), Some(period).filter(|_| self.calendar.is_none())].into_iter().flatten();
                let choices = Choice::ALL.into_iter().filter(|choice| !Choice::DECLARED.contains(choice));
                let sensible = choices.filter(|choice| choice.senseless_on(self.kind).is_none());
                return Err(unknown(limit, field, fields.chain(sensible.map(Choice::name))));
            } else {
                self = self.choose(limit, field, value)?;
            }
        }
        Ok(self)
    }
}

pub(crate) fn invalid(limit: &str, field: &str, value: String, reason: String) -> InvalidLimit {
    // A name far too long is the error itself; it need not be repeated in full.
    let shown: String = limit.chars().take(MAX_NAME_BYTES).collect();
    InvalidLimit { limit: shown, field: field.to_owned(), value, reason }
}

/// The error about a setting that nobody knows.
fn unknown(limit: &str, field: &str, known: impl Iterator<Item = &'static str>) -> InvalidLimit {
    let known = known.collect::<Vec<_>>().join(", ");
    invalid(limit, "option", format!("{field:?}"), format!("which is unknown; there are {known}"))
}

/// A whole number out of a script.
pub(crate) fn count(limit: &str, field: &str, value: &Value) -> Result<i64, InvalidLimit> {
    match value {
        Value::Int(n) => Ok(*n),
        Value::Float(_) => Err(invalid(limit, field, value.to_string(), "must be a whole number".into())),
        other => {
            let reason = format!("which is a {}, must be a whole number", other.type_name());
            Err(invalid(limit, field, other.to_string(), reason))
        }
    }
}

/// Milliseconds out of a script: a whole number of them, or text with a unit.
pub(crate) fn span_ms(limit: &str, field: &str, value: &Value) -> Result<i64, InvalidLimit> {
    match value {
        Value::Text(text) => {
            parse_duration_ms(text).map_err(|why| invalid(limit, field, value.to_string(), format!("but {why}")))
        }
        Value::Int(ms) => Ok(*ms),
        other => {
            let reason = "must be whole milliseconds or text such as \"5m\"".into();
            Err(invalid(limit, field, other.to_string(), reason))
        }
    }
}

fn positive_ms(limit: &str, field: &str, value: &Value) -> Result<i64, InvalidLimit> {
    match span_ms(limit, field, value)? {
        ms if ms < 1 => Err(invalid(limit, field, value.to_string(), "must be at least 1 ms".into())),
        ms => Ok(ms),
    }
}

/// What is on when nothing is said.
fn switch(limit: &str, field: &str, value: &Value) -> Result<bool, InvalidLimit> {
    match value {
        Value::Null => Ok(true),
        Value::Bool(on) => Ok(*on),
        other => Err(invalid(limit, field, other.to_string(), "takes no argument".into())),
    }
}

/// Milliseconds of a `Duration`, which must be whole: what cannot be represented exactly is refused.
pub(crate) fn whole_ms(limit: &str, field: &str, span: Duration) -> Result<i64, InvalidLimit> {
    if !span.subsec_nanos().is_multiple_of(1_000_000) {
        return Err(invalid(limit, field, format!("{span:?}"), "must be whole milliseconds".into()));
    }
    i64::try_from(span.as_millis())
        .map_err(|_| invalid(limit, field, format!("{span:?}"), "must be at most 2^61 ms".into()))
}

fn start(limit: &str, value: &Value) -> Result<Start, InvalidLimit> {
    match value {
        Value::Int(ms) => Ok(Start::At(Timestamp::from_millis(*ms))),
        Value::Text(text) if text == "first" => Ok(Start::First),
        Value::Text(text) if text == "epoch" => Ok(Start::Epoch),
        Value::Text(text) if text == "random" => Ok(Start::Random),
        other => {
            let reason = "must be \"first\", \"epoch\", \"random\" or an instant in ms".into();
            Err(invalid(limit, "start", other.to_string(), reason))
        }
    }
}

/// Every setting that is not its default, as one line for messages: `10 per 1m, capacity 20`.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.calendar {
            Some(calendar) => write!(f, "{} {} per {calendar}", self.kind, self.rate)?,
            None => write!(f, "{} {} per {}", self.kind, self.rate, format_duration_ms(self.period_ms))?,
        }
        if self.capacity != self.rate {
            write!(f, ", capacity {}", self.capacity)?;
        }
        if self.max_reserved != 0 {
            write!(f, ", max_reserved {}", self.max_reserved)?;
        }
        if self.min_interval_ms != 0 {
            write!(f, ", min_interval {}", format_duration_ms(self.min_interval_ms))?;
        }
        if self.start != Start::First {
            write!(f, ", start {}", self.start)?;
        }
        if self.block_for_ms != 0 {
            write!(f, ", block_for {}", format_duration_ms(self.block_for_ms))?;
        }
        if self.shards != 1 {
            write!(f, ", shards {}", self.shards)?;
        }
        for (on, name) in [(self.shadow, "shadow"), (self.durable, "durable"), (self.hash_keys, "hash_keys")] {
            if on {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}
