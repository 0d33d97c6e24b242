//! `tollgate limits`: the limits there are, their live buckets, and what an operator does to one.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::FalseyValueParser;
use comfy_table::{Table, presets};
use serde::Serialize;
use tollgate::{Decision, Engine, Error, Key, Limit, Timestamp, Value, parse_duration};

use super::console::Console;
use super::exit::{Exit, usage};
use super::format;
use super::place::{Need, Place};

/// Lists the limits; with a name its live buckets; with a key that bucket, after what was to be done to it.
#[derive(Args)]
pub(crate) struct Limits {
    /// The limit.
    name: Option<String>,
    /// The key: text, a number, a JSON array of those, or `()` for the global bucket.
    #[arg(allow_negative_numbers = true)]
    key: Option<String>,
    /// Refuse everything of this key for so long, such as 10m.
    #[arg(long, value_name = "DUR", env = "TOLLGATE_BLOCK", value_parser = parse_duration, requires = "key", conflicts_with_all = ["unblock", "reset"])]
    block: Option<Duration>,
    /// Lift the block of this key.
    #[arg(long, env = "TOLLGATE_UNBLOCK", value_parser = FalseyValueParser::new(), requires = "key", conflicts_with = "reset")]
    unblock: bool,
    /// Forget what this key spent.
    #[arg(long, env = "TOLLGATE_RESET", value_parser = FalseyValueParser::new(), requires = "key")]
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
}

/// A bucket and how its key reads.
pub(crate) struct Bucket {
    key: Key,
    decision: Decision,
    blocked_until: Option<Timestamp>,
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
        match &self.key {
            None => print_all(&engine, &limit, console)?,
            Some(text) => {
                let key = read_key(text)?;
                self.act(&engine, &limit, &key)?;
                let bucket = look(&engine, &limit, &key)?;
                print_buckets(&limit, &[bucket], engine.now(), console)?;
            }
        }
        engine.close()?;
        Ok(Exit::Returned)
    }

    fn act(&self, engine: &Engine, limit: &Limit, key: &Key) -> Result<(), Error> {
        if let Some(span) = self.block {
            engine.transaction(|transaction| transaction.block(limit, key, span).map(drop))
        } else if self.unblock {
            engine.transaction(|transaction| transaction.unblock(limit, key).map(drop))
        } else if self.reset {
            engine.transaction(|transaction| transaction.reset(limit, key))
        } else {
            Ok(())
        }
    }
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
    let decision = engine.read::<_, Error>(|transaction| transaction.peek(limit, key, 1))?;
    let blocked = decision.reason.as_str() == "blocked";
    let blocked_until = blocked.then(|| engine.now().saturating_add_millis(decision.retry_after));
    Ok(Bucket { key: key.clone(), decision, blocked_until })
}

/// Up to `most` stored buckets of a limit behind `after`.
pub(crate) fn page(engine: &Engine, limit: &Limit, after: Option<&Key>, most: usize) -> Result<Vec<Bucket>, Error> {
    let found = engine.buckets(limit.name(), after, most)?;
    let bucket = |info: tollgate::BucketInfo| Bucket {
        key: info.key,
        decision: info.decision,
        blocked_until: info.blocked_until,
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
    table(&["limit", "admits"], rows)
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
        ]
    });
    table(&["key", "used", "remaining", "next take", "full", "blocked until"], rows)
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    // Cells are padded on both sides; at the ends of a line that is of no use to anybody.
    let trimmed = |line: String| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned();
    table.lines().map(trimmed).collect::<Vec<_>>().join("\n")
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

impl BucketRecord {
    pub(crate) fn of(limit: &Limit, bucket: &Bucket) -> BucketRecord {
        let decision = &bucket.decision;
        BucketRecord {
            limit: limit.name().to_owned(),
            key: bucket.key.to_value(),
            allowed: decision.allowed,
            used: decision.used,
            remaining: decision.remaining,
            capacity: decision.limit,
            retry_after: decision.retry_after,
            reset_at: decision.reset_at.as_millis(),
            reason: decision.reason.as_str(),
            blocked_until: bucket.blocked_until.map(Timestamp::as_millis),
        }
    }
}
