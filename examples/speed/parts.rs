//! What a call is made of: script, limit, transaction, flush.

use std::path::Path;
use std::time::{Duration, Instant};

use tollgate::{Engine, Limit, Outcome, Value};

use crate::{Done, check_rate, key, rate, row};

const PARTS: &str = r#"
    fn nothing(key, a, b) { #{ allowed: true, count: a, limit: b, remaining: a, retry_after: 0 } }
"#;

pub fn run(folder: &Path) -> Done {
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
