//! The same work in SQLite: read a bucket, decide, write it back, in one transaction.

use std::path::Path;
use std::time::{Duration, Instant};

use tollgate::{CallOptions, Durability, Engine, Outcome, Value};

use crate::{Done, check_rate, key, rate, row};

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

pub fn run(folder: &Path) -> Done {
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
