//! Crash tests: a host is killed at any moment, again and again; the store holds whole calls, and all acknowledged ones.
//!
//! A child process (this binary again) makes durable calls from four threads and writes a line for each one that
//! returned. The parent kills it after some number of lines or some moments of opening, opens the store itself and
//! looks. Every other round a thread of the child compacts without end, so that kills hit checkpoints and the
//! exchange of trees. `TOLLGATE_CRASH_ROUNDS=200` sets the number of kills, 10 by default.

mod child;

use std::io::{BufRead, BufReader};
use std::path::Path;

use child::Plan;
use tollgate::{Engine, Error, Value};

/// A new store is begun after so many kills of the last one.
const KILLS_A_STORE: u64 = 10;

#[test]
fn child() {
    child::run();
}

/// A small generator, so that a round can be told by its number.
fn roll(round: u64, sides: u64) -> u64 {
    let mixed = (round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) % sides
}

/// Runs a child and kills it; adds the calls it acknowledged, and returns one more than the last it began.
fn kill_one(path: &Path, round: u64, first: u64, acknowledged: &mut Vec<u64>) -> u64 {
    let plan = Plan { store: path, threads: 4, calls: 1_000_000, first, compact: round % 2 == 1 };
    let mut process = plan.command(&[], "child").spawn().unwrap();
    let mut errors = process.stderr.take().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut next = first;
    // Now and then while the child opens the store, which is when it recovers from the last kill.
    let most = if round % 5 == 4 { 0 } else { 1 + roll(round, 400) };
    let mut heard = 0;
    let mut hear = |line: &str| {
        let (what, n) = line.split_once(' ').unwrap_or((line, ""));
        match (what, n.parse::<u64>()) {
            ("call", Ok(n)) => next = next.max(n + 1),
            ("acknowledged", Ok(n)) => {
                acknowledged.push(n);
                heard += 1;
            }
            _ => {}
        }
        heard
    };
    let mut killed = true;
    if most == 0 {
        // Any moment from the start of the process on: this many turns of a loop are as good as any.
        for _ in 0..roll(round, 300) * 60_000 {
            std::hint::black_box(round);
        }
    } else {
        loop {
            let Some(Ok(line)) = lines.next() else {
                killed = false;
                break;
            };
            if hear(&line) >= most {
                break;
            }
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    // What it said before it died was said.
    for line in lines.map_while(Result::ok) {
        hear(&line);
    }
    let mut said = String::new();
    std::io::Read::read_to_string(&mut errors, &mut said).unwrap();
    assert!(killed && !said.contains("panicked"), "round {round}: the child ended by itself: {said}");
    next
}

fn used(engine: &Engine, limit: &str) -> i64 {
    let limit = engine.limit(limit).unwrap();
    engine.read(|tx| Ok::<_, Error>(tx.peek(&limit, "k", 1)?.used)).unwrap()
}

/// Opens the store and checks every promise; returns how many calls it holds.
fn check(path: &Path, round: u64, next: u64, acknowledged: &[u64]) -> u64 {
    let engine = child::open(path).unwrap_or_else(|error| panic!("round {round}: {error}"));
    assert_eq!(engine.doctor().unwrap(), Vec::<String>::new(), "round {round}");
    let (documents, counted, lost) = engine
        .read(|tx| {
            let documents = tx.count("work", &Default::default())?;
            let counter = tx.get("counters", "all")?;
            let counted = counter.and_then(|map| map.get("done").and_then(Value::as_int)).unwrap_or(0);
            let mut lost = Vec::new();
            for n in acknowledged {
                if tx.get("work", &n.to_string())?.is_none() {
                    lost.push(*n);
                }
            }
            Ok::<_, Error>((documents, counted, lost))
        })
        .unwrap();
    assert_eq!(lost, Vec::<u64>::new(), "round {round}: acknowledged and lost");
    let durable = ["a", "b", "c"].map(|limit| used(&engine, limit));
    assert_eq!(durable, [documents as i64; 3], "round {round}: half a call");
    assert_eq!(counted, documents as i64, "round {round}: half a call");
    assert_eq!(used(&engine, "d"), used(&engine, "e"), "round {round}: half a buffered call");
    assert!(documents <= next, "round {round}: {documents} of {next} calls");
    engine.close().unwrap();
    documents
}

#[test]
fn killed_at_any_moment_a_store_holds_whole_calls_and_all_acknowledged_ones() {
    let asked = std::env::var("TOLLGATE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds: u64 = asked.unwrap_or(10);
    let (mut kills, mut calls, mut promised, mut begun) = (0, 0, 0, 0);
    while kills < rounds {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let (mut next, mut acknowledged, mut held) = (0, Vec::new(), 0);
        for _ in 0..KILLS_A_STORE.min(rounds - kills) {
            next = kill_one(&path, kills, next, &mut acknowledged);
            held = check(&path, kills, next, &acknowledged);
            kills += 1;
        }
        calls += held;
        promised += acknowledged.len();
        begun += next;
    }
    println!("{kills} kills: {begun} calls begun, {promised} acknowledged, {calls} found, none lost, none halved");
}
