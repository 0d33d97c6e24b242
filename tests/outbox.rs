//! The outbox: what a job promises, under load, with workers that lose their claim, and with workers that are killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use gate::Gate;
use tollgate::{
    Engine, JobAnswer, JobFilter, JobOptions, JobState, ManualClock, Map, Outcome, Timestamp, Value, WorkerOptions,
};

/// A gate that handlers wait at until a test opens it.
mod gate {
    use std::sync::{Condvar, Mutex};

    #[derive(Default)]
    pub struct Gate {
        open: Mutex<bool>,
        changed: Condvar,
    }

    impl Gate {
        pub fn open(&self) {
            *self.open.lock().unwrap() = true;
            self.changed.notify_all();
        }

        pub fn pass(&self) {
            drop(self.changed.wait_while(self.open.lock().unwrap(), |open| !*open).unwrap());
        }
    }
}

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// Turns until something is so; a test that waits in vain for a minute has failed.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::yield_now();
    }
}

fn number(engine: &Engine, collection: &str, id: &str, field: &str) -> i64 {
    let found = engine.read(|tx| tx.get(collection, id)).unwrap();
    found.and_then(|map| map.get(field).and_then(Value::as_int)).unwrap_or(0)
}

#[test]
fn workers_under_load_do_each_procedure_exactly_once() {
    const JOBS: usize = 1_200;
    const PROCEDURES: &str = r#"
        collection("done");
        collection("sums");
        fn add(n) {
            insert("done", #{ _id: `${n}` });
            upsert("sums", #{ _id: "all" }, #{ "$inc": #{ n: 1 } });
        }
        fn place(n) { enqueue("add", [n]); }
    "#;
    let engine = Engine::builder().memory().source("p.rhai", PROCEDURES).open().unwrap();
    let workers = [0, 1].map(|_| engine.spawn_worker(WorkerOptions::new().threads(2).batch(7)).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for n in 0..JOBS / 4 {
                    let _: Outcome<Value> = engine.call("place", &(thread * JOBS / 4 + n,)).unwrap();
                }
            });
        }
    });
    let done = || workers.iter().map(|worker| worker.summary().succeeded).sum::<u64>();
    until("every job is done", || done() == JOBS as u64);
    assert_eq!(number(&engine, "sums", "all", "n"), JOBS as i64);
    let succeeded = JobFilter { state: Some(JobState::Succeeded), ..JobFilter::default() };
    assert_eq!(engine.jobs(&succeeded, None, usize::MAX).unwrap().len(), JOBS);
    for worker in workers {
        let summary = worker.shutdown().unwrap();
        assert_eq!((summary.failed, summary.retried, summary.skipped), (0, 0, 0));
    }
    assert_eq!(engine.doctor().unwrap(), Vec::<String>::new());
}

#[test]
fn a_worker_that_lost_its_claim_changes_nothing() {
    let clock = ManualClock::at(START);
    let (gate, (began, begun)) = (Arc::new(Gate::default()), channel());
    let engine = Engine::builder().memory().clock(clock.clone()).sweep_interval(None).open().unwrap();
    engine.action("push", {
        let gate = gate.clone();
        move |job| {
            if job.attempt == 1 {
                began.send(()).unwrap();
                gate.pass();
            }
            Ok(JobAnswer::Done)
        }
    });
    let id = engine.enqueue("push", (), &JobOptions::new().lease(Duration::from_secs(3600))).unwrap();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| engine.work_once(1).unwrap());
        begun.recv().unwrap();
        assert_eq!(engine.work_once(1).unwrap().claimed, 0, "it is leased");
        clock.advance(Duration::from_secs(3600));
        assert_eq!(engine.work_once(1).unwrap().succeeded, 1);
        gate.open();
        let summary = slow.join().unwrap();
        assert_eq!((summary.claimed, summary.succeeded, summary.skipped), (1, 0, 1));
    });
    let job = engine.job(&id).unwrap().unwrap();
    assert_eq!((job.state, job.attempt), (JobState::Succeeded, 2));
}

#[test]
fn a_procedure_whose_claim_was_lost_is_rolled_back() {
    let clock = ManualClock::at(START);
    let (gate, first, (began, begun)) = (Arc::new(Gate::default()), AtomicBool::new(true), channel());
    let budget = tollgate::Budget { time: Duration::from_secs(60), ..tollgate::Budget::default() };
    let engine = Engine::builder()
        .memory()
        .clock(clock.clone())
        .budget(budget)
        .register_fn("wait", 0, {
            let gate = gate.clone();
            move |_| {
                if first.swap(false, Ordering::SeqCst) {
                    began.send(()).unwrap();
                    gate.pass();
                }
                Ok(Value::Null)
            }
        })
        .source("p.rhai", r#"fn write(n) { insert("done", #{ n: n }); wait(); }"#)
        .open()
        .unwrap();
    engine.enqueue("write", vec![1], &JobOptions::new().lease(Duration::from_secs(3600))).unwrap();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| engine.work_once(1).unwrap());
        begun.recv().unwrap();
        clock.advance(Duration::from_secs(3600));
        assert_eq!(engine.work_once(1).unwrap().succeeded, 1);
        gate.open();
        assert_eq!(slow.join().unwrap().skipped, 1);
    });
    assert_eq!(engine.read(|tx| tx.count("done", &Map::new())).unwrap(), 1);
}

#[test]
fn a_heart_keeps_the_lease_of_what_runs() {
    let clock = ManualClock::at(START);
    let (gate, (began, begun)) = (Arc::new(Gate::default()), channel());
    let engine = Engine::builder().memory().clock(clock.clone()).open().unwrap();
    engine.action("push", {
        let gate = gate.clone();
        move |_| {
            began.send(()).unwrap();
            gate.pass();
            Ok(JobAnswer::Done)
        }
    });
    let id = engine.enqueue("push", (), &JobOptions::new().lease(Duration::from_millis(60))).unwrap();
    let worker = engine.spawn_worker(WorkerOptions::new()).unwrap();
    begun.recv().unwrap();
    for _ in 0..5 {
        clock.advance(Duration::from_millis(50));
        let due = engine.now().saturating_add_millis(60);
        until("the lease is longer", || engine.job(&id).unwrap().unwrap().due_at == due);
        assert_eq!(engine.work_once(1).unwrap().claimed, 0);
    }
    gate.open();
    assert_eq!(worker.shutdown().unwrap().succeeded, 1);
    assert_eq!(engine.job(&id).unwrap().unwrap().attempt, 1);
}

#[test]
fn a_worker_hears_of_a_job_at_once_and_of_its_time() {
    let clock = ManualClock::at(START);
    let (done, heard) = channel();
    let engine = Engine::builder().memory().clock(clock.clone()).open().unwrap();
    engine
        .action("push", move |job| done.send(job.payload.clone()).map(|()| JobAnswer::Done).map_err(|e| e.to_string()));
    let worker = engine.spawn_worker(WorkerOptions::new()).unwrap();
    engine.enqueue("push", "later", &JobOptions::new().delay(Duration::from_secs(60))).unwrap();
    engine.enqueue("push", "now", &JobOptions::new()).unwrap();
    assert_eq!(heard.recv().unwrap().as_str(), Some("now"));
    clock.advance(Duration::from_secs(60));
    assert_eq!(heard.recv().unwrap().as_str(), Some("later"));
    assert_eq!(worker.shutdown().unwrap().succeeded, 2);
}

#[test]
fn an_action_that_panics_has_failed_its_attempt_and_nothing_else() {
    let engine = Engine::builder().memory().open().unwrap();
    engine.action("push", |job| if job.attempt == 1 { panic!("no {}", job.payload) } else { Ok(JobAnswer::Done) });
    let id = engine.enqueue("push", "paper", &JobOptions::new()).unwrap();
    assert_eq!(engine.work_once(1).unwrap().retried, 1);
    let job = engine.job(&id).unwrap().unwrap();
    assert_eq!(job.last_fault().unwrap().message, "the action panicked: no \"paper\"");
    assert!(engine.retry_job(&id).unwrap());
    assert_eq!(engine.work_once(1).unwrap().succeeded, 1);
}

#[test]
fn jobs_of_a_handler_that_is_gone_wait_for_it() {
    let engine = Engine::builder().memory().source("p.rhai", "fn old() { 1 }").open().unwrap();
    let id = engine.enqueue("old", (), &JobOptions::new()).unwrap();
    engine.load("p.rhai", "fn other() { 1 }").unwrap();
    assert_eq!(engine.work_once(9).unwrap(), tollgate::WorkSummary::default());
    assert_eq!(engine.job(&id).unwrap().unwrap().attempt, 0);
    engine.load("p.rhai", "fn old() { 2 }").unwrap();
    assert_eq!(engine.work_once(9).unwrap().succeeded, 1);
}

#[test]
fn finished_jobs_are_removed_when_asked_and_others_are_not() {
    let engine = Engine::builder().memory().action("push", |_| Ok(JobAnswer::Done)).open().unwrap();
    for _ in 0..300 {
        engine.enqueue("push", (), &JobOptions::new()).unwrap();
    }
    assert_eq!(engine.work_once(200).unwrap().succeeded, 200);
    assert_eq!(engine.purge_jobs(&JobFilter::default()).unwrap(), 200);
    assert_eq!(engine.jobs(&JobFilter::default(), None, usize::MAX).unwrap().len(), 100);
    assert_eq!(engine.doctor().unwrap(), Vec::<String>::new());
}

const STORE: &str = "TOLLGATE_OUTBOX_STORE";
const FIRST: &str = "TOLLGATE_OUTBOX_FIRST";

const ORDERS: &str = r#"
    const ORDERS = fixed_window("orders", 1000000000, "3650d").durable();
    collection("orders");
    collection("booked");
    fn place(n) {
        ORDERS.enforce("k");
        insert("orders", #{ _id: `${n}` });
        enqueue("book", [n], #{ max_attempts: 100 });
        enqueue("mail", n, #{ max_attempts: 100, key: `mail:${n}` });
    }
    fn book(n) { upsert("booked", #{ _id: `${n}` }, #{ "$inc": #{ times: 1 } }); }
"#;

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone hears nothing more.
    let _ = out.write_all(format!("\n{line}\n").as_bytes()).and_then(|()| out.flush());
}

/// The body of the process that is killed: orders are placed while two workers do their jobs.
#[test]
fn outbox_child() {
    let Ok(store) = std::env::var(STORE) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let engine = Engine::builder().path(store).source("orders.rhai", ORDERS).open().unwrap();
    engine.action("mail", |job| {
        say(&format!("mail {} {} {}", job.payload, job.id, job.token));
        Ok(JobAnswer::Done)
    });
    let _workers = [0, 1].map(|_| engine.spawn_worker(WorkerOptions::new().threads(1).batch(10)).unwrap());
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    say(&format!("order {n}"));
                    let _: Outcome<Value> = engine.call("place", &(n,)).unwrap();
                    say(&format!("acknowledged {n}"));
                }
            });
        }
    });
}

/// What the processes that were killed have said.
#[derive(Default)]
struct Heard {
    next: u64,
    acknowledged: Vec<u64>,
    /// For each order, the jobs and tokens of its mails.
    mails: BTreeMap<u64, Vec<(String, String)>>,
}

impl Heard {
    fn line(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["order", n] => self.next = self.next.max(n.parse::<u64>().unwrap() + 1),
            ["acknowledged", n] => self.acknowledged.push(n.parse().unwrap()),
            ["mail", n, job, token] => {
                self.mails.entry(n.parse().unwrap()).or_default().push((job.into(), token.into()));
                return true;
            }
            _ => {}
        }
        false
    }
}

/// Kills a process after it has sent so many mails.
fn kill_after(path: &Path, mails: u64, heard: &mut Heard) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "outbox_child", "--nocapture"])
        .env(STORE, path)
        .env(FIRST, heard.next.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut sent = 0;
    while sent < mails {
        let line = lines.next().expect("the child lives").unwrap();
        sent += u64::from(heard.line(&line));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        // The last line may be cut short; what it says was not said.
        if line.split(' ').count() < 4 || line.starts_with("mail") {
            heard.line(&line);
        }
    }
}

#[test]
fn workers_killed_in_the_middle_of_a_batch_lose_nothing_and_book_nothing_twice() {
    let asked = std::env::var("TOLLGATE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds: u64 = asked.unwrap_or(10);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let mut heard = Heard::default();
    for round in 0..rounds {
        kill_after(&path, 5 + round * 7 % 40, &mut heard);
    }
    // A day later every lease and every wait is over.
    let clock = ManualClock::at(tollgate::Clock::now(&tollgate::SystemClock::default()));
    clock.advance(Duration::from_secs(86_400));
    let engine =
        Engine::builder().path(&path).source("orders.rhai", ORDERS).clock(clock).sweep_interval(None).open().unwrap();
    let late = std::sync::Mutex::new(Vec::new());
    let late = Arc::new(late);
    engine.action("mail", {
        let late = late.clone();
        move |job| {
            let n: u64 = job.payload.as_int().and_then(|n| n.try_into().ok()).ok_or("no number")?;
            late.lock().unwrap().push((n, job.id.clone(), job.token.to_string()));
            Ok(JobAnswer::Done)
        }
    });
    while engine.work_once(100).unwrap().claimed > 0 {}
    for (n, job, token) in late.lock().unwrap().drain(..) {
        heard.mails.entry(n).or_default().push((job, token));
    }
    assert_eq!(engine.doctor().unwrap(), Vec::<String>::new());
    let orders: Vec<Map> = engine.read(|tx| tx.find("orders", &Map::new())).unwrap();
    let mut attempts = 0;
    for n in &heard.acknowledged {
        assert!(orders.iter().any(|order| order["_id"].as_str() == Some(&n.to_string())), "order {n} was acknowledged");
    }
    for order in &orders {
        let id = order["_id"].as_str().unwrap();
        assert_eq!(number(&engine, "booked", id, "times"), 1, "order {id}");
        let mails = &heard.mails[&id.parse::<u64>().unwrap()];
        let mut claims = mails.clone();
        claims.sort();
        claims.dedup();
        assert_eq!(claims.len(), mails.len(), "order {id}: at most one mail a claim");
        let job = engine.job(&mails[0].0).unwrap().unwrap();
        assert!(job.attempt >= mails.len() as i64, "order {id}: each mail had its attempt");
        attempts += job.attempt;
    }
    // Case 97: the bucket, the rows and the jobs of a call are there together or not at all.
    let limit = engine.limit("orders").unwrap();
    let used = engine.read(|tx| tx.peek(&limit, "k", 1)).unwrap().used;
    let jobs = |handler: &str| JobFilter { handler: Some(handler.to_owned()), ..JobFilter::default() };
    let count = |handler: &str| engine.jobs(&jobs(handler), None, usize::MAX).unwrap().len();
    assert_eq!([used as usize, count("book"), count("mail")], [orders.len(); 3]);
    let booked: u64 = engine.read(|tx| tx.count("booked", &Map::new())).unwrap();
    assert_eq!(booked, orders.len() as u64);
    let open: Vec<_> = engine
        .jobs(&JobFilter::default(), None, usize::MAX)
        .unwrap()
        .into_iter()
        .filter(|job| job.state != JobState::Succeeded)
        .collect();
    assert_eq!(open, [], "nothing is stuck");
    let mails: usize = heard.mails.values().map(Vec::len).sum();
    println!("{rounds} kills: {} orders, {mails} mails, {attempts} attempts at them", orders.len());
}
