//! What a call costs, by part and beside SQLite: ratios of one run on one machine.
//!
//! `cargo run --release --example speed` takes about a minute; `-- growth` fills stores of a million buckets, which
//! takes some minutes; `-- calls N` makes N calls and nothing else, for a profiler.

use std::path::Path;
use std::time::{Duration, Instant};

use tollgate::{CallOptions, Durability, Engine, Limit, ManualClock, Outcome, Timestamp, Value};

type Done = Result<(), Box<dyn std::error::Error>>;

/// Calls a second of `threads` threads that each run `calls` calls; a call is told its thread and number.
fn rate(threads: usize, calls: usize, call: impl Fn(usize, usize) + Sync) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let call = &call;
            scope.spawn(move || (0..calls).for_each(|number| call(thread, number)));
        }
    });
    (threads * calls) as f64 / start.elapsed().as_secs_f64()
}

fn row(what: &str, per_second: f64) {
    println!("{what:<58} {per_second:>12.0} /s {:>9.2} µs", 1e6 / per_second);
}

fn check_rate(engine: &Engine, key: &str) {
    let outcome: Outcome<Value> = engine.call("check_rate", &(key, 1_000_000_000, 3600)).expect("the call runs");
    assert!(!outcome.is_refused());
}

fn key(thread: usize, number: usize, keys: usize) -> String {
    format!("user:{}", (number.wrapping_mul(7_919) + thread * 104_729) % keys)
}

const PARTS: &str = r#"
    fn nothing(key, a, b) { #{ allowed: true, count: a, limit: b, remaining: a, retry_after: 0 } }
"#;

fn by_part(folder: &Path) -> Done {
    println!("\n-- one thread, one store on disk, buffered: what a call is made of");
    let engine = Engine::builder().path(folder.join("parts")).scripts("scripts").open()?;
    let bare = Engine::builder().memory().source("parts.rhai", PARTS).open()?;
    let limit = Limit::fixed_window("rust", 1_000_000_000, Duration::from_secs(3600))?;
    let calls = 200_000;
    let script = rate(1, calls, |_, n| {
        let _: Outcome<Value> = bare.call("nothing", &(key(0, n, 10_000), 1, 2)).expect("the call runs");
    });
    row("a script that touches nothing and answers the same map", script);
    let take = rate(1, calls, |_, n| {
        engine
            .transaction(|tx| tx.take(&limit, key(0, n, 10_000), 1).map(|decision| assert!(decision.allowed)))
            .expect("the take runs");
    });
    row("a take through Rust, no script", take);
    let whole = rate(1, calls, |_, n| check_rate(&engine, &key(0, n, 10_000)));
    row("check_rate, a limit through a script, 10 000 keys", whole);
    let two = rate(2, calls, |t, n| check_rate(&engine, &key(t, n, 10_000)));
    row("check_rate on two threads", two);
    println!("{:<58} {:>12.2} ×", "two threads against one", two / whole);
    let documents = rate(1, calls / 10, |_, n| {
        let _: Outcome<Value> =
            engine.call("check_rate_documents", &(key(0, n, 1_000), 1_000_000, 3600)).expect("the call runs");
    });
    row("check_rate_documents, the same on documents, 1 000 keys", documents);
    let raw = Engine::builder().path(folder.join("raw")).open()?;
    let commits = 3_000_000;
    let start = Instant::now();
    raw.probe_commits(commits, 1_000)?;
    row("the commit path alone, 1 000 hot keys of 100 bytes", commits as f64 / start.elapsed().as_secs_f64());
    let start = Instant::now();
    raw.flush()?;
    println!("{:<58} {:>12.2} ms", "… and a flush of what it left", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

fn sqlite(path: &Path, synchronous: &str) -> Result<rusqlite::Connection, rusqlite::Error> {
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS buckets (key TEXT PRIMARY KEY, spent INTEGER NOT NULL, opened INTEGER NOT NULL) WITHOUT ROWID",
    )?;
    Ok(connection)
}

/// The same work in SQLite: read the bucket, decide, write it back, in one transaction.
fn sqlite_take(connection: &mut rusqlite::Connection, key: &str) -> Result<bool, rusqlite::Error> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let spent: i64 = {
        let mut read = tx.prepare_cached("SELECT spent FROM buckets WHERE key = ?1")?;
        let mut rows = read.query([key])?;
        match rows.next()? {
            Some(row) => row.get(0)?,
            None => 0,
        }
    };
    let allowed = spent < 1_000_000_000;
    if allowed {
        tx.prepare_cached("INSERT INTO buckets VALUES (?1, ?2, 0) ON CONFLICT (key) DO UPDATE SET spent = ?2")?
            .execute(rusqlite::params![key, spent + 1])?;
    }
    tx.commit()?;
    Ok(allowed)
}

fn sqlite_rate(folder: &Path, synchronous: &str, threads: usize, calls: usize) -> f64 {
    let path = folder.join(format!("sqlite-{synchronous}-{threads}"));
    drop(sqlite(&path, synchronous).expect("SQLite opens"));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let path = &path;
            scope.spawn(move || {
                let mut connection = sqlite(path, synchronous).expect("SQLite opens");
                for number in 0..calls {
                    assert!(sqlite_take(&mut connection, &key(thread, number, 10_000)).expect("SQLite commits"));
                }
            });
        }
    });
    (threads * calls) as f64 / start.elapsed().as_secs_f64()
}

fn beside_sqlite(folder: &Path) -> Done {
    println!("\n-- beside SQLite (WAL) doing the same work: read a bucket, decide, write it back");
    let engine = Engine::builder().path(folder.join("beside")).scripts("scripts").open()?;
    let durable = CallOptions::new().durability(Durability::Immediate);
    for (threads, calls) in [(1, 2_000), (8, 1_000), (64, 500)] {
        let ours = rate(threads, calls, |t, n| {
            let outcome: Outcome<Value> = engine
                .call_with("check_rate", &(key(t, n, 10_000), 1_000_000_000, 3600), &durable)
                .expect("the call runs");
            assert!(!outcome.is_refused());
        });
        let theirs = sqlite_rate(folder, "FULL", threads, (calls / 4).max(100));
        row(&format!("check_rate on disk before it returns, {threads} threads"), ours);
        row(&format!("SQLite synchronous=FULL, {threads} threads"), theirs);
        println!("{:<58} {:>12.1} ×", "", ours / theirs);
    }
    for (threads, calls) in [(1, 100_000), (8, 20_000), (64, 3_000)] {
        let ours = rate(threads, calls, |t, n| check_rate(&engine, &key(t, n, 10_000)));
        let theirs = sqlite_rate(folder, "NORMAL", threads, (calls / 4).max(200));
        row(&format!("check_rate buffered, {threads} threads"), ours);
        row(&format!("SQLite synchronous=NORMAL, {threads} threads"), theirs);
        println!("{:<58} {:>12.1} ×", "", ours / theirs);
    }
    Ok(())
}

/// The median and the 99th percentile of a call, once as many calls have warmed the caches up.
fn percentile(engine: &Engine, keys: usize, calls: usize) -> (Duration, Duration) {
    (0..calls).for_each(|n| check_rate(engine, &key(1, n, keys)));
    let mut times: Vec<Duration> = (0..calls)
        .map(|n| {
            let key = key(0, n, keys);
            let start = Instant::now();
            check_rate(engine, &key);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[calls / 2], times[calls * 99 / 100])
}

fn growth(folder: &Path) -> Done {
    println!("\n-- growth: live buckets, opening, reclaiming");
    let clock = ManualClock::at(Timestamp::from_millis(1_767_225_600_000));
    let path = folder.join("growth");
    let open = || Engine::builder().path(&path).scripts("scripts").clock(clock.clone()).sweep_interval(None).open();
    let engine = open()?;
    for (keys, name) in [(10_000, "10 000"), (1_000_000, "1 000 000")] {
        let start = Instant::now();
        let limit = Limit::fixed_window("check_rate", 1_000_000_000, Duration::from_secs(3600))?;
        for n in 0..keys {
            engine.transaction(|tx| tx.take(&limit, format!("user:{n}"), 1).map(drop))?;
        }
        let filled = start.elapsed();
        engine.flush()?;
        let (p50, p99) = percentile(&engine, keys, 400_000);
        println!("{name:>10} live buckets: filled in {filled:.1?}, a call p50 {p50:.1?}, p99 {p99:.1?}");
    }
    println!("{:>10} bytes on disk with a million buckets", engine.size_on_disk()?);
    engine.close()?;
    let start = Instant::now();
    let engine = open()?;
    println!("opened again in {:.2?}", start.elapsed());
    engine.compact()?;
    println!("{:>10} bytes on disk after compact", engine.size_on_disk()?);
    drop(engine);
    let start = Instant::now();
    let engine = open()?;
    println!("opened after compact in {:.2?}", start.elapsed());
    clock.advance(Duration::from_secs(7200));
    let start = Instant::now();
    let swept = engine.sweep()?;
    println!("a million expired: {} reclaimed in {:.1?}", swept.removed, start.elapsed());
    engine.flush()?;
    println!("{:>10} bytes on disk after the sweep", engine.size_on_disk()?);
    engine.compact()?;
    println!("{:>10} bytes on disk after compact", engine.size_on_disk()?);
    Ok(())
}

/// So many calls and nothing else, for `valgrind --tool=callgrind`, which counts the instructions of a call exactly.
fn count_calls(calls: usize) -> Done {
    let engine = Engine::builder().memory().scripts("scripts").sweep_interval(None).open()?;
    (0..calls).for_each(|n| check_rate(&engine, &key(0, n, 10_000)));
    Ok(())
}

fn main() -> Done {
    let folder = tempfile::tempdir()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("growth") => return growth(folder.path()),
        Some("calls") => return count_calls(arguments.get(1).map_or(Ok(100_000), |calls| calls.parse())?),
        _ => {}
    }
    by_part(folder.path())?;
    beside_sqlite(folder.path())
}
