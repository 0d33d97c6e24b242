//! Jobs: how many are enqueued, claimed and completed a second, and whether that slows down with the number waiting.

use std::path::Path;
use std::time::Instant;

use tollgate::{Durability, Engine, JobAnswer, JobFilter, JobOptions, JobState, Outcome, Value, WorkerOptions};

use crate::{Done, rate, row};

const PROCEDURES: &str = r#"
    const ORDERS = fixed_window("orders", 1000000000, "1h");
    fn place(n) { ORDERS.enforce(n % 1000); enqueue("push", n) }
    fn book(n) { ORDERS.take(n % 1000); }
"#;

/// Jobs that are worked off with each number waiting.
const SAMPLE: u64 = 5_000;

pub fn run(folder: &Path) -> Done {
    println!("\n-- jobs on disk: a call that takes a token and enqueues, then workers with batches of 100");
    for (durability, name) in [(Durability::Auto, "durable"), (Durability::Buffered, "buffered")] {
        let engine = Engine::builder()
            .path(folder.join(name))
            .source("p.rhai", PROCEDURES)
            .action("push", |_| Ok(JobAnswer::Done))
            .durability(durability)
            .open()?;
        for (threads, calls) in [(1, 2_000), (16, 1_000)] {
            let placed = rate(threads, calls, |thread, n| {
                let _: Outcome<Value> = engine.call("place", &(thread * calls + n,)).expect("the call runs");
            });
            row(&format!("{name}: calls that enqueue, {threads} threads"), placed);
        }
        let start = Instant::now();
        let mut done = 0;
        while done < 18_000 {
            done += engine.work_once(100)?.succeeded;
        }
        row(&format!("{name}: actions claimed and completed, 1 thread"), done as f64 / start.elapsed().as_secs_f64());
        for n in 0..5_000 {
            engine.enqueue("book", vec![n], &JobOptions::new())?;
        }
        let start = Instant::now();
        let worker = engine.spawn_worker(WorkerOptions::new().threads(4).batch(100))?;
        while worker.summary().succeeded < 5_000 {
            std::thread::yield_now();
        }
        row(&format!("{name}: procedures done, 4 threads"), 5_000.0 / start.elapsed().as_secs_f64());
        worker.shutdown()?;
    }
    println!("\n-- claiming as the number of waiting and finished jobs grows, buffered");
    let engine = Engine::builder()
        .path(folder.join("growth"))
        .action("push", |_| Ok(JobAnswer::Done))
        .durability(Durability::Buffered)
        .open()?;
    let mut waiting = 0;
    for goal in [1_000_u64, 10_000, 100_000, 1_000_000] {
        let start = Instant::now();
        let more = goal + SAMPLE - waiting;
        for first in (0..more).step_by(100) {
            engine.transaction(|tx| {
                (first..more.min(first + 100)).try_for_each(|n| tx.enqueue("push", n, &JobOptions::new()).map(drop))
            })?;
        }
        let filled = more as f64 / start.elapsed().as_secs_f64();
        engine.flush()?;
        let start = Instant::now();
        let mut done = 0;
        while done < SAMPLE {
            done += engine.work_once(100)?.succeeded;
        }
        row(&format!("{goal} waiting: claimed and completed"), done as f64 / start.elapsed().as_secs_f64());
        row(&format!("{goal} waiting: enqueued on the way there, 100 a transaction"), filled);
        waiting = goal;
    }
    let succeeded = JobFilter { state: Some(JobState::Succeeded), ..JobFilter::default() };
    println!(
        "{} jobs are finished, {} bytes on disk",
        engine.jobs(&succeeded, None, usize::MAX)?.len(),
        engine.size_on_disk()?
    );
    Ok(())
}
