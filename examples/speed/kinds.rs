//! What a take costs by kind of limit, beside governor's keyed limiter, in processor time of one run.
//!
//! governor keeps neither disk nor transactions: what it costs is what the bare decision costs.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tollgate::{CalendarUnit, Engine, Limit, Outcome, Value};

use crate::{Done, key};

const KEYS: usize = 100_000;
const TAKES: usize = 300_000;

/// Processor time so far: of this thread, and of the whole process with the threads that write.
fn spent() -> [f64; 2] {
    [ClockId::ThreadCPUTime, ClockId::ProcessCPUTime].map(|clock| {
        let time = clock_gettime(clock);
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    })
}

/// Processor time of each of `calls` calls in µs: of the caller alone, and with what is written behind its back.
fn cost(calls: usize, mut call: impl FnMut(usize)) -> [f64; 2] {
    let before = spent();
    (0..calls).for_each(&mut call);
    let after = spent();
    [0, 1].map(|which| (after[which] - before[which]) / calls as f64)
}

fn row(what: &str, [own, all]: [f64; 2], governor: f64) {
    println!("{what:<58} {own:>8.2} µs {all:>8.2} µs {:>8.1} ×", own / governor);
}

fn kinds() -> Result<Vec<(&'static str, Limit)>, tollgate::InvalidLimit> {
    let (rate, hour) = (1_000_000_000, Duration::from_secs(3600));
    Ok(vec![
        ("fixed_window", Limit::fixed_window("fixed", rate, hour)?),
        ("token_bucket", Limit::token_bucket("bucket", rate, hour)?),
        ("sliding_window, a few entries", Limit::sliding_window("sliding", 10_000, hour)?),
        ("sliding_counter", Limit::sliding_counter("counter", rate, hour)?),
        ("calendar_quota", Limit::calendar_quota("quota", rate, CalendarUnit::Day, "Europe/Berlin")?),
        ("concurrency, a few leases", Limit::concurrency("leases", 1_000, hour)?),
    ])
}

const THREE: &str = r#"
    const USER = token_bucket("user", 1_000_000, "1s");
    const ORG = fixed_window("org", 1_000_000_000, "1h");
    const ALL = sliding_counter("all", 1_000_000_000, "1h");
    fn three(user, org) { take_all([[USER, user], [ORG, org], [ALL]]).allowed }
"#;

pub fn run(folder: &Path) -> Done {
    println!(
        "\n-- a take by kind, {KEYS} keys, on disk, buffered: caller, with the writing threads, caller against governor"
    );
    let names: Vec<String> = (0..KEYS).map(|n| key(0, n, KEYS)).collect();
    let quota = governor::Quota::per_hour(NonZeroU32::MAX);
    let governor = governor::RateLimiter::keyed(quota);
    let bare = |n: usize| assert!(governor.check_key(&names[n % KEYS]).is_ok());
    cost(KEYS, bare);
    let bare = cost(TAKES, bare);
    row("governor, keyed: no disk, no transaction", bare, bare[0]);
    let engine = Engine::builder().path(folder.join("kinds")).source("three.rhai", THREE).open()?;
    for (name, limit) in kinds()? {
        let take = |n: usize| {
            let taken = engine.transaction(|tx| tx.take(&limit, &*names[n % KEYS], 1));
            assert!(taken.expect("the take runs").allowed);
        };
        cost(KEYS, take);
        row(name, cost(TAKES, take), bare[0]);
    }
    let full = Limit::sliding_window("hundred", 100, Duration::from_secs(86_400))?;
    let fill = |n: usize| {
        // Each entry is a millisecond of its own only while time goes on, so they are charged at a moved clock.
        let _ = engine.transaction(|tx| tx.take(&full, &*names[n % 1_000], 1)).expect("the take runs");
    };
    row("sliding_window, 100 tokens a key, 1 000 keys", cost(TAKES, fill), bare[0]);
    let three = |n: usize| {
        let outcome: Outcome<Value> =
            engine.call("three", &(&*names[n % KEYS], (n % 1_000) as i64)).expect("the call runs");
        assert_eq!(outcome, Outcome::Returned(Value::Bool(true)));
    };
    cost(KEYS, three);
    row("take_all of three limits through a script", cost(TAKES, three), bare[0]);
    Ok(())
}
