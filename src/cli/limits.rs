//! `tollgate limits`: the limits there are, their live buckets, and what an operator does to one.

use std::time::Duration;

use anyhow::Result;
use clap::builder::FalseyValueParser;
use clap::{ArgGroup, Args};
use serde::Serialize;
use tollgate::{Decided, Decision, Engine, Error, Key, Limit, Map, Override, Timestamp, Value, parse_duration};

use super::argument;
use super::console::Console;
use super::exit::{Exit, usage};
use super::format;
use super::place::{Need, Place};

/// Lists the limits; with a name its live buckets; with a key that bucket, after what was to be done to it.
///
/// An override (--set, --allow, --ban) is of one key, wins over the file, and ends when --for or --until says.
#[derive(Args)]
#[command(group = ArgGroup::new("action").multiple(false))]
#[command(group = ArgGroup::new("override").multiple(false))]
#[command(group = ArgGroup::new("end").multiple(false))]
pub(crate) struct Limits {
    /// The limit.
    name: Option<String>,
    /// The key: text, a number, a JSON array of those, or `()` for the global bucket.
    #[arg(allow_negative_numbers = true)]
    key: Option<String>,
    /// List only the keys with an override.
    #[arg(long, env = "TOLLGATE_OVERRIDES", value_parser = FalseyValueParser::new(), requires = "name", conflicts_with = "key")]
    overrides: bool,
    /// Give this key another setting, such as rate=100 or period=1h; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", env = "TOLLGATE_SET", value_parser = setting, requires_all = ["key", "end"], groups = ["action", "override"])]
    set: Vec<(String, Value)>,
    /// Allow this key everything, and count nothing.
    #[arg(long, env = "TOLLGATE_ALLOW", value_parser = FalseyValueParser::new(), requires_all = ["key", "end"], groups = ["action", "override"])]
    allow: bool,
    /// Refuse this key everything; a reset leaves the ban.
    #[arg(long, env = "TOLLGATE_BAN", value_parser = FalseyValueParser::new(), requires_all = ["key", "end"], groups = ["action", "override"])]
    ban: bool,
    /// End the override in so long, such as 7d.
    #[arg(long = "for", value_name = "DUR", env = "TOLLGATE_FOR", value_parser = parse_duration, requires = "override", group = "end")]
    span: Option<Duration>,
    /// End the override at an instant: RFC 3339, or milliseconds since the epoch.
    #[arg(long, value_name = "TIME", env = "TOLLGATE_UNTIL", value_parser = argument::instant, requires = "override", group = "end", allow_negative_numbers = true)]
    until: Option<Timestamp>,
    /// End the override of this key now.
    #[arg(long, env = "TOLLGATE_REVOKE", value_parser = FalseyValueParser::new(), requires = "key", group = "action")]
    revoke: bool,
    /// Refuse everything of this key for so long, such as 10m.
    #[arg(long, value_name = "DUR", env = "TOLLGATE_BLOCK", value_parser = parse_duration, requires = "key", group = "action")]
    block: Option<Duration>,
    /// Lift the block of this key.
    #[arg(long, env = "TOLLGATE_UNBLOCK", value_parser = FalseyValueParser::new(), requires = "key", group = "action")]
    unblock: bool,
    /// Forget what this key spent.
    #[arg(long, env = "TOLLGATE_RESET", value_parser = FalseyValueParser::new(), requires = "key", group = "action")]
    reset: bool,
}

/// A limit, as programs read it.
#[derive(Serialize)]
pub(crate) struct LimitRecord {
    name: String,
    describe: String,
    rate: i64,
    capacity: i64,
    period_ms: i64,
}

/// A bucket, as programs read it. Instants and waits are milliseconds.
#[derive(Serialize)]
pub(crate) struct BucketRecord {
    limit: String,
    key: Value,
    allowed: bool,
    used: i64,
    remaining: i64,
    capacity: i64,
    retry_after: i64,
    reset_at: i64,
    reason: &'static str,
    blocked_until: Option<i64>,
    #[serde(rename = "override")]
    ruling: Option<Override>,
}

/// A bucket and how its key reads.
pub(crate) struct Bucket {
    key: Key,
    decision: Decision,
    blocked_until: Option<Timestamp>,
    ruling: Option<Override>,
}

/// How many buckets are asked for at once.
const PAGE: usize = 500;

impl Limits {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::ExistingProcedures)?;
        let Some(name) = &self.name else {
            print_limits(&engine.limits(), console)?;
            return Ok(Exit::Returned);
        };
        let limit = engine.limit(name)?;
        let settings = self.settings()?;
        match &self.key {
            None if self.overrides => print_overrides(&engine, &limit, console)?,
            None => print_all(&engine, &limit, console)?,
            Some(text) => {
                let key = read_key(text)?;
                self.act(&engine, &limit, &key, &settings)?;
                let bucket = look(&engine, &limit, &key)?;
                print_buckets(&limit, &[bucket], engine.now(), console)?;
            }
        }
        engine.close()?;
        Ok(Exit::Returned)
    }

    fn act(&self, engine: &Engine, limit: &Limit, key: &Key, settings: &Map) -> Result<(), Error> {
        engine.transaction(|tx| {
            // What an override begins with is the instant of the transaction. A span too long for `i64` ends too late
            // to be stored, and is refused there.
            let in_span = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
            let after = self.span.map(|span| tx.now().saturating_add_millis(in_span(span)));
            match (self.until.or(after), self.block) {
                (Some(until), _) if self.allow => tx.allow(limit, key, until),
                (Some(until), _) if self.ban => tx.ban(limit, key, until),
                (Some(until), _) if !settings.is_empty() => tx.set_override(limit, key, settings, until),
                (_, Some(span)) => tx.block(limit, key, span).map(drop),
                _ if self.revoke => tx.revoke(limit, key),
                _ if self.unblock => tx.unblock(limit, key).map(drop),
                _ if self.reset => tx.reset(limit, key),
                _ => Ok(()),
            }
        })
    }

    /// What `--set` names.
    fn settings(&self) -> Result<Map> {
        let mut settings = Map::new();
        for (name, value) in &self.set {
            if settings.insert(name.clone(), value.clone()).is_some() {
                return Err(usage(format!("the setting `{name}` is given twice")));
            }
        }
        Ok(settings)
    }
}

/// Reads a setting as it is typed: a number, `true` or `false`, or text such as a span.
fn setting(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("give it as NAME=VALUE, such as rate=100")?;
    let value = match (value.parse(), value.parse()) {
        (Ok(number), _) => Value::Int(number),
        (_, Ok(on)) => Value::Bool(on),
        _ => Value::from(value),
    };
    Ok((name.to_owned(), value))
}

/// Reads a key as it is typed.
pub(crate) fn read_key(text: &str) -> Result<Key> {
    if text == "()" {
        return Ok(Key::global());
    }
    text.parse().map_err(|why| usage(format!("the key {text} cannot be used: {why}")))
}

/// A bucket, whether it is stored or not.
pub(crate) fn look(engine: &Engine, limit: &Limit, key: &Key) -> Result<Bucket, Error> {
    engine.read(|tx| {
        let decision = tx.peek(limit, key, 1)?;
        let blocked = decision.reason.as_str() == "blocked";
        let blocked_until = blocked.then(|| tx.now().saturating_add_millis(decision.retry_after));
        Ok(Bucket { key: key.clone(), decision, blocked_until, ruling: tx.override_of(limit, key)? })
    })
}

/// Up to `most` stored buckets of a limit behind `after`.
pub(crate) fn page(engine: &Engine, limit: &Limit, after: Option<&Key>, most: usize) -> Result<Vec<Bucket>, Error> {
    let found = engine.buckets(limit.name(), after, most)?;
    let bucket = |info: tollgate::BucketInfo| Bucket {
        key: info.key,
        decision: info.decision,
        blocked_until: info.blocked_until,
        ruling: info.ruling,
    };
    Ok(found.into_iter().map(bucket).collect())
}

fn print_all(engine: &Engine, limit: &Limit, console: &mut Console) -> Result<()> {
    let mut after = None;
    loop {
        let buckets = page(engine, limit, after.as_ref(), PAGE)?;
        let Some(last) = buckets.last() else {
            if after.is_none() && !console.json {
                console.note("no live buckets: nothing is spent");
            }
            return Ok(());
        };
        after = Some(last.key.clone());
        print_buckets(limit, &buckets, engine.now(), console)?;
    }
}

fn print_overrides(engine: &Engine, limit: &Limit, console: &mut Console) -> Result<()> {
    let mut after = None;
    loop {
        let overrides = engine.overrides(limit.name(), after.as_ref(), PAGE)?;
        let Some(last) = overrides.last() else {
            if after.is_none() && !console.json {
                console.note("no overrides: the file holds for every key");
            }
            return Ok(());
        };
        after = Some(last.key.clone());
        let looked: Result<Vec<Bucket>, Error> = overrides.iter().map(|info| look(engine, limit, &info.key)).collect();
        print_buckets(limit, &looked?, engine.now(), console)?;
    }
}

fn print_limits(limits: &[Limit], console: &mut Console) -> Result<()> {
    if console.json {
        for limit in limits {
            console.record(&LimitRecord::of(limit))?;
        }
    } else if limits.is_empty() {
        console.note("no limits are declared");
    } else {
        console.line(limits_table(limits))?;
    }
    Ok(())
}

fn print_buckets(limit: &Limit, buckets: &[Bucket], now: Timestamp, console: &mut Console) -> Result<()> {
    if console.json {
        for bucket in buckets {
            console.record(&BucketRecord::of(limit, bucket))?;
        }
    } else {
        console.line(buckets_table(buckets, now))?;
    }
    Ok(())
}

/// The limits as a table for people.
pub(crate) fn limits_table(limits: &[Limit]) -> String {
    let rows = limits.iter().map(|limit| vec![limit.name().to_owned(), limit.describe()]);
    format::table(&["limit", "admits"], rows)
}

/// Buckets as a table for people.
pub(crate) fn buckets_table(buckets: &[Bucket], now: Timestamp) -> String {
    let rows = buckets.iter().map(|bucket| {
        let decision = &bucket.decision;
        vec![
            bucket.key.to_string(),
            decision.used.to_string(),
            format!("{} of {}", decision.remaining, decision.limit),
            if decision.allowed { "now".to_owned() } else { format::span(decision.retry_after) },
            format!("in {}", format::span(decision.reset_at.millis_since(now))),
            bucket.blocked_until.map_or_else(String::new, |until| until.to_string()),
            bucket.ruling.as_ref().map_or_else(String::new, override_text),
        ]
    });
    format::table(&["key", "used", "remaining", "next take", "full", "blocked until", "override"], rows)
}

/// An override on one line, such as `rate 100, until 2026-01-01T00:00:00Z`.
pub(crate) fn override_text(ruling: &Override) -> String {
    let decided = match &ruling.decided {
        Decided::Settings(changes) => {
            let change = |(name, value): (&String, &Value)| match value {
                Value::Text(text) => format!("{name} {text}"),
                other => format!("{name} {}", format::value(other)),
            };
            changes.iter().map(change).collect::<Vec<_>>().join(", ")
        }
        other => other.kind().to_owned(),
    };
    format!("{decided}, until {}", ruling.until)
}

impl LimitRecord {
    pub(crate) fn of(limit: &Limit) -> LimitRecord {
        LimitRecord {
            name: limit.name().to_owned(),
            describe: limit.describe(),
            rate: limit.rate(),
            capacity: limit.max_tokens(),
            period_ms: limit.period_ms(),
        }
    }
}

/// A key as programs read it. A hash is text, as in the table: nothing reads it back.
fn key_value(key: &Key) -> Value {
    if key.is_hash() { Value::Text(key.to_string()) } else { key.to_value() }
}

impl BucketRecord {
    pub(crate) fn of(limit: &Limit, bucket: &Bucket) -> BucketRecord {
        let decision = &bucket.decision;
        BucketRecord {
            limit: limit.name().to_owned(),
            key: key_value(&bucket.key),
            allowed: decision.allowed,
            used: decision.used,
            remaining: decision.remaining,
            capacity: decision.limit,
            retry_after: decision.retry_after,
            reset_at: decision.reset_at.as_millis(),
            reason: decision.reason.as_str(),
            blocked_until: bucket.blocked_until.map(Timestamp::as_millis),
            ruling: bucket.ruling.clone(),
        }
    }
}
