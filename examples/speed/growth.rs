//! How a call and the store behave as live buckets go from ten thousand to a million.

use std::path::Path;
use std::time::{Duration, Instant};

use tollgate::{Engine, Limit, ManualClock, Timestamp};

use crate::{Done, check_rate, key};

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

pub fn run(folder: &Path) -> Done {
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
