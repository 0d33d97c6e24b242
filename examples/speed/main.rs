//! What a call costs, by part and beside SQLite: ratios of one run on one machine.
//!
//! `cargo run --release --example speed` takes about a minute; `-- kinds` compares the kinds of limits with each other and
//! with governor; `-- jobs` enqueues and works off; `-- growth` fills stores of a million buckets, which takes some minutes; `-- calls N` makes N calls and
//! nothing else, for a profiler.

mod growth;
mod jobs;
mod kinds;
mod parts;
mod sqlite;

use std::time::{Duration, Instant};

use tollgate::{Engine, Limit, Outcome, Value};

/// As the binary has it, and as hosts are advised to.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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

/// So many calls and nothing else, for `valgrind --tool=callgrind`, which counts the instructions of a call exactly.
fn count_calls(calls: usize) -> Done {
    let engine = Engine::builder().memory().scripts("scripts").sweep_interval(None).open()?;
    (0..calls).for_each(|n| check_rate(&engine, &key(0, n, 10_000)));
    Ok(())
}

/// As [`count_calls`], for a take through Rust.
fn count_takes(takes: usize) -> Done {
    let engine = Engine::builder().memory().sweep_interval(None).open()?;
    let limit = Limit::fixed_window("fixed", 1_000_000_000, Duration::from_secs(3600))?;
    for n in 0..takes {
        let taken = engine.transaction(|tx| tx.take(&limit, &*key(0, n, 100_000), 1))?;
        assert!(taken.allowed);
    }
    Ok(())
}

fn main() -> Done {
    let folder = tempfile::tempdir()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("growth") => return growth::run(folder.path()),
        Some("jobs") => return jobs::run(folder.path()),
        Some("kinds") => return kinds::run(folder.path()),
        Some("calls") => return count_calls(arguments.get(1).map_or(Ok(100_000), |calls| calls.parse())?),
        Some("takes") => return count_takes(arguments.get(1).map_or(Ok(100_000), |takes| takes.parse())?),
        _ => {}
    }
    parts::run(folder.path())?;
    sqlite::run(folder.path())
}
