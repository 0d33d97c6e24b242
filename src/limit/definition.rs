//! A limit as it was declared: a name and settings, checked, cheap to clone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::value::{Map, Value};

use super::calendar::{Calendar, CalendarUnit};
use super::kind::Kind;
use super::settings::{InvalidLimit, Settings, Start, count, invalid, span_ms, whole_ms};

/// What is said where a unit of the calendar is due.
const UNITS: &str = r#"must be "hour", "day", "week", "month" or "year""#;

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
/// assert_eq!(limit.describe(), "one every 200 ms, 10 at once; at most 14 in any 1 s");
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

    /// Never more than `rate` tokens in any span of `period`, exactly.
    ///
    /// Errors: as for a fixed window, and `rate` above 10 000, since each take is remembered for a period.
    pub fn sliding_window(name: &str, rate: i64, period: Duration) -> Result<Limit, InvalidLimit> {
        Limit::of_ms(Kind::SlidingWindow, name, rate, whole_ms(name, "period", period)?)
    }

    /// `rate` tokens in the current window of `period` and in what of the previous one still overlaps.
    ///
    /// Errors: as for a fixed window.
    pub fn sliding_counter(name: &str, rate: i64, period: Duration) -> Result<Limit, InvalidLimit> {
        Limit::of_ms(Kind::SlidingCounter, name, rate, whole_ms(name, "period", period)?)
    }

    /// `rate` tokens in each civil hour, day, week, month or year of a time zone.
    ///
    /// Errors: a name not of 1 to 128 bytes, `rate < 1`, a zone that is not an IANA name such as `Europe/Berlin`.
    ///
    /// ```
    /// use tollgate::{CalendarUnit, Limit};
    /// let limit = Limit::calendar_quota("mails", 500, CalendarUnit::Day, "Asia/Tokyo")?;
    /// assert_eq!(limit.describe(), "500 in each day in Asia/Tokyo; at most 1000 in any 23 h");
    /// # Ok::<(), tollgate::InvalidLimit>(())
    /// ```
    pub fn calendar_quota(name: &str, rate: i64, unit: CalendarUnit, zone: &str) -> Result<Limit, InvalidLimit> {
        let calendar = Calendar::new(unit, zone)
            .map_err(|why| invalid(name, "zone", format!("{zone:?}"), format!("but {why}")))?;
        Limit::checked(name.into(), Settings::of_calendar(rate, calendar))
    }

    /// At most `max` leases at once; one that is not renewed for `ttl` is free again.
    ///
    /// Errors: a name not of 1 to 128 bytes, `max` not from 1 to 10 000, `ttl` not whole milliseconds from 1 up.
    pub fn concurrency(name: &str, max: i64, ttl: Duration) -> Result<Limit, InvalidLimit> {
        Limit::of_ms(Kind::Concurrency, name, max, whole_ms(name, "ttl", ttl)?)
    }

    /// A limit whose period is given in milliseconds.
    pub(crate) fn of_ms(kind: Kind, name: &str, rate: i64, period_ms: i64) -> Result<Limit, InvalidLimit> {
        if kind == Kind::CalendarQuota {
            return Err(invalid(name, "unit", format!("{period_ms} ms"), UNITS.into()));
        }
        Limit::checked(name.into(), Settings::new(kind, rate, period_ms))
    }

    /// A calendar quota out of a script's values.
    pub(crate) fn declare_quota(name: &str, rate: &Value, unit: &Value, zone: &Value) -> Result<Limit, InvalidLimit> {
        let rate = count(name, "rate", rate)?;
        let known = unit.as_str().and_then(|unit| unit.parse().ok());
        let unit = known.ok_or_else(|| invalid(name, "unit", unit.to_string(), UNITS.into()))?;
        let Value::Text(zone) = zone else {
            let reason = "must be the name of a time zone, such as \"Europe/Berlin\" or \"UTC\"";
            return Err(invalid(name, "zone", zone.to_string(), reason.into()));
        };
        Limit::calendar_quota(name, rate, unit, zone)
    }

    /// A limit out of a script's values: the period in ms, or text with a unit. A calendar quota has a zone besides.
    pub(crate) fn declare(kind: Kind, name: &str, rate: &Value, period: &Value) -> Result<Limit, InvalidLimit> {
        if kind == Kind::CalendarQuota {
            return Limit::declare_quota(name, rate, period, &Value::Null);
        }
        let fields = kind.fields();
        Limit::of_ms(kind, name, count(name, fields.0, rate)?, span_ms(name, fields.1, period)?)
    }

    fn checked(name: Arc<str>, settings: Settings) -> Result<Limit, InvalidLimit> {
        settings.check(&name)?;
        Ok(Limit { inner: Arc::new(Inner { name, settings }) })
    }

    fn choose(&self, option: &str, value: &Value) -> Result<Limit, InvalidLimit> {
        let settings = self.inner.settings.clone().choose(self.name(), option, value)?;
        Limit::checked(self.inner.name.clone(), settings)
    }

    /// The same limit with other settings: `rate` and `period` (`max` and `ttl` of leases), `capacity`,
    /// `max_reserved`, `min_interval`, `block_for`, `shadow`, `durable`, `shards`. It is of the same buckets, and
    /// what was spent counts under both. A capacity that is the rate's follows it.
    ///
    /// Errors: whatever could not be declared so, an unknown setting, and what belongs to the declaration.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limit, Map, Value};
    /// let limit = Limit::token_bucket("api", 10, Duration::from_secs(1))?;
    /// let paid = limit.with(&Map::from([("rate".into(), Value::Int(100))]))?;
    /// assert_eq!((paid.rate(), paid.max_tokens()), (100, 100));
    /// # Ok::<(), tollgate::InvalidLimit>(())
    /// ```
    pub fn with(&self, changes: &Map) -> Result<Limit, InvalidLimit> {
        let settings = self.inner.settings.clone().change(self.name(), changes)?;
        Limit::checked(self.inner.name.clone(), settings)
    }

    /// Most tokens that can be there at once, from 1 up; by default the rate.
    pub fn capacity(self, tokens: i64) -> Result<Limit, InvalidLimit> {
        self.choose("capacity", &Value::Int(tokens))
    }

    /// How many tokens a reservation may go into the future, from 0 up; by default 0.
    pub fn max_reserved(self, tokens: i64) -> Result<Limit, InvalidLimit> {
        self.choose("max_reserved", &Value::Int(tokens))
    }

    /// A cooldown between two accepted takes, in whole milliseconds from 1 up.
    pub fn min_interval(self, span: Duration) -> Result<Limit, InvalidLimit> {
        let ms = whole_ms(self.name(), "min_interval", span)?;
        self.choose("min_interval", &Value::Int(ms))
    }

    /// Where windows begin. Only a fixed window has windows.
    pub fn start(self, start: Start) -> Result<Limit, InvalidLimit> {
        let value = match start {
            Start::At(instant) => Value::Int(instant.as_millis()),
            named => Value::Text(named.to_string()),
        };
        self.choose("start", &value)
    }

    /// A take waits until it is on disk.
    pub fn durable(self) -> Result<Limit, InvalidLimit> {
        self.choose("durable", &Value::Null)
    }

    /// Once it refused, it refuses everything for `span`, whole milliseconds from 1 up.
    pub fn block_for(self, span: Duration) -> Result<Limit, InvalidLimit> {
        let ms = whole_ms(self.name(), "block_for", span)?;
        self.choose("block_for", &Value::Int(ms))
    }

    /// It counts, and says what it would have refused, but refuses nothing.
    pub fn shadow(self) -> Result<Limit, InvalidLimit> {
        self.choose("shadow", &Value::Null)
    }

    /// Over how many buckets a store shared by many engines would spread one key: from 2 up, dividing the capacity.
    /// On the embedded store one bucket gives the same answers, and is what there is.
    pub fn shards(self, n: i64) -> Result<Limit, InvalidLimit> {
        self.choose("shards", &Value::Int(n))
    }

    /// A keyed hash (HMAC-SHA-256, the secret in the store) is stored in place of the key.
    pub fn hash_keys(self) -> Result<Limit, InvalidLimit> {
        self.choose("hash_keys", &Value::Null)
    }

    /// Makes one choice by its name, for scripts: `durable` takes `Null`, spans take ms or text with a unit.
    pub(crate) fn apply_option(&self, option: &str, value: &Value) -> Result<Limit, InvalidLimit> {
        self.choose(option, value)
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

    /// Tokens a period, or the most leases.
    pub fn rate(&self) -> i64 {
        self.inner.settings.rate
    }

    /// The period in milliseconds. Of a civil period the longest that it is where no clock changes; of leases how
    /// long they last.
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

    /// Whether it only says what it would refuse. (The option that makes it so is [`shadow`](Limit::shadow).)
    pub fn is_shadow(&self) -> bool {
        self.inner.settings.shadow
    }

    /// Whether a keyed hash is stored in place of the key.
    pub fn hashes_keys(&self) -> bool {
        self.inner.settings.hash_keys
    }

    /// The longest until an empty bucket is full again, in milliseconds.
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
