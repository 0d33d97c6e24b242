//! A limit as it was declared: a name and settings, checked, cheap to clone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::value::Value;

use super::settings::{InvalidLimit, Kind, Settings, Start, count, span_ms, whole_ms};

/// How many tokens a key may spend: a name, a kind and checked settings.
///
/// Two limits are equal when name and settings are. The buckets belong to the name, so a limit declared again
/// with other settings finds what was spent under the old ones.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Limit;
///
/// let limit = Limit::token_bucket("api", 5, Duration::from_secs(1))?.capacity(10)?;
/// assert_eq!(limit.describe(), "one every 200 ms, 10 at once; at most 15 in any 1 s");
///
/// let refused = Limit::fixed_window("x", 0, Duration::from_secs(60)).unwrap_err();
/// assert_eq!(refused.to_string(), r#"limit "x": rate is 0, must be at least 1"#);
/// # Ok::<(), tollgate::InvalidLimit>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Limit {
    inner: Arc<Inner>,
}

#[derive(PartialEq, Eq, Hash)]
struct Inner {
    name: Arc<str>,
    settings: Settings,
}

impl Limit {
    /// `rate` tokens per window of `period`; by default a window opens with the first accepted take.
    ///
    /// Errors: a name not of 1 to 128 bytes, `rate < 1`, `period` not whole milliseconds from 1 up.
    pub fn fixed_window(name: &str, rate: i64, period: Duration) -> Result<Limit, InvalidLimit> {
        Limit::of_ms(Kind::FixedWindow, name, rate, whole_ms(name, "period", period)?)
    }

    /// `rate` tokens at once, refilled continuously at `rate` per `period`.
    ///
    /// Errors: a name not of 1 to 128 bytes, `rate < 1`, `period` not whole milliseconds from 1 up.
    pub fn token_bucket(name: &str, rate: i64, period: Duration) -> Result<Limit, InvalidLimit> {
        Limit::of_ms(Kind::TokenBucket, name, rate, whole_ms(name, "period", period)?)
    }

    /// A limit whose period is given in milliseconds.
    pub(crate) fn of_ms(kind: Kind, name: &str, rate: i64, period_ms: i64) -> Result<Limit, InvalidLimit> {
        Limit::checked(name.into(), Settings::new(kind, rate, period_ms))
    }

    /// A limit out of a script's values: the period in ms, or text with a unit.
    pub(crate) fn declare(kind: Kind, name: &str, rate: &Value, period: &Value) -> Result<Limit, InvalidLimit> {
        Limit::of_ms(kind, name, count(name, "rate", rate)?, span_ms(name, "period", period)?)
    }

    fn checked(name: Arc<str>, settings: Settings) -> Result<Limit, InvalidLimit> {
        settings.check(&name)?;
        Ok(Limit { inner: Arc::new(Inner { name, settings }) })
    }

    fn with(&self, option: &str, value: &Value) -> Result<Limit, InvalidLimit> {
        let settings = self.inner.settings.choose(self.name(), option, value)?;
        Limit::checked(self.inner.name.clone(), settings)
    }

    /// Most tokens that can be there at once, from 1 up; by default the rate.
    pub fn capacity(self, tokens: i64) -> Result<Limit, InvalidLimit> {
        self.with("capacity", &Value::Int(tokens))
    }

    /// How many tokens a reservation may go into the future, from 0 up; by default 0.
    pub fn max_reserved(self, tokens: i64) -> Result<Limit, InvalidLimit> {
        self.with("max_reserved", &Value::Int(tokens))
    }

    /// A cooldown between two accepted takes, in whole milliseconds from 1 up.
    pub fn min_interval(self, span: Duration) -> Result<Limit, InvalidLimit> {
        let ms = whole_ms(self.name(), "min_interval", span)?;
        self.with("min_interval", &Value::Int(ms))
    }

    /// Where windows begin. Only a fixed window has windows.
    pub fn start(self, start: Start) -> Result<Limit, InvalidLimit> {
        let value = match start {
            Start::At(instant) => Value::Int(instant.as_millis()),
            named => Value::Text(named.to_string()),
        };
        self.with("start", &value)
    }

    /// A take waits until it is on disk.
    pub fn durable(self) -> Result<Limit, InvalidLimit> {
        self.with("durable", &Value::Null)
    }

    /// Makes one choice by its name, for scripts: `durable` takes `Null`, spans take ms or text with a unit.
    pub(crate) fn apply_option(&self, option: &str, value: &Value) -> Result<Limit, InvalidLimit> {
        self.with(option, value)
    }

    /// The name, 1 to 128 bytes.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The name, shared.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.inner.name
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.inner.settings.kind
    }

    /// Tokens a period.
    pub fn rate(&self) -> i64 {
        self.inner.settings.rate
    }

    /// The period in milliseconds.
    pub fn period_ms(&self) -> i64 {
        self.inner.settings.period_ms
    }

    /// Most tokens that can be there at once. (The option that sets it is [`capacity`](Limit::capacity).)
    pub fn max_tokens(&self) -> i64 {
        self.inner.settings.capacity
    }

    /// Whether a take waits until it is on disk.
    pub fn is_durable(&self) -> bool {
        self.inner.settings.durable
    }

    /// Milliseconds until an empty bucket is full again.
    pub fn full_refill_ms(&self) -> i64 {
        self.inner.settings.full_refill_ms()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The limit in words, with the most that it admits in any span of one period.
    pub fn describe(&self) -> String {
        super::describe::describe(&self.inner.settings)
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({:?}: {})", self.name(), self.inner.settings)
    }
}
