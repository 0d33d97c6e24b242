//! Workers: threads that look for due jobs and do them, and the heart that keeps the leases of what they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::Error;
use crate::job::Job;
use crate::store::StoreError;
use crate::time::{Deadline, Timestamp};

use super::Engine;
use super::work::{self, WorkSummary};

/// The longest that a worker rests when nobody wakes it, so that a clock which was moved is noticed.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The shortest time between two heartbeats of a job.
const SHORTEST_BEAT: Duration = Duration::from_millis(10);

/// Something that moves on and can be waited for.
#[derive(Default)]
pub(super) struct Signal {
    count: Mutex<u64>,
    moved: Condvar,
}

impl Signal {
    pub(super) fn raise(&self) {
        *self.count.lock() += 1;
        self.moved.notify_all();
    }

    fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Returns when the signal has moved on from `seen`, or after `longest`.
    fn wait(&self, seen: u64, longest: Duration) {
        let mut count = self.count.lock();
        if *count == seen {
            self.moved.wait_for(&mut count, longest);
        }
    }
}

/// How a worker works.
///
/// ```
/// use tollgate::WorkerOptions;
/// let options = WorkerOptions::new().queue("mail").threads(2).batch(20);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct WorkerOptions {
    pub(super) queues: Vec<String>,
    threads: usize,
    pub(super) batch: usize,
}

impl Default for WorkerOptions {
    fn default() -> WorkerOptions {
        WorkerOptions { queues: Vec::new(), threads: 1, batch: 10 }
    }
}

impl WorkerOptions {
    /// One thread for every queue, ten jobs a claim.
    pub fn new() -> WorkerOptions {
        WorkerOptions::default()
    }

    /// Serves this queue, and no other that is not named as well.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queues.push(queue.into());
        self
    }

    /// Jobs done at the same time; at least one.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Jobs that a thread claims at once; at least one.
    pub fn batch(mut self, batch: usize) -> Self {
        self.batch = batch.max(1);
        self
    }
}

/// Threads that do jobs as they become due. Dropping it ends them as [`Worker::shutdown`] does.
///
/// ```
/// use tollgate::{Engine, JobAnswer, JobOptions, WorkerOptions};
/// let (done, heard) = std::sync::mpsc::channel();
/// let engine = Engine::builder().memory().open()?;
/// engine.action("greet", move |job| done.send(job.payload.clone()).map(|()| JobAnswer::Done).map_err(|e| e.to_string()));
/// let worker = engine.spawn_worker(WorkerOptions::new())?;
/// engine.enqueue("greet", "ada", &JobOptions::new())?;
/// assert_eq!(heard.recv().expect("the worker lives").as_str(), Some("ada"));
/// assert_eq!(worker.shutdown()?.succeeded, 1);
/// # Ok::<(), tollgate::Error>(())
/// ```
pub struct Worker {
    stop: Arc<AtomicBool>,
    signal: Arc<Signal>,
    total: Arc<Mutex<WorkSummary>>,
    threads: Vec<JoinHandle<()>>,
    heart: Option<Heart>,
}

impl Engine {
    /// Starts threads that do jobs as they become due, those of schedules too: at once when a call of this process enqueues one, and at the
    /// instant that a delay or a backoff ends. They hold a handle on the engine until they are shut down.
    ///
    /// Errors: [`Error::Storage`], when no thread can be started.
    pub fn spawn_worker(&self, options: WorkerOptions) -> Result<Worker, Error> {
        self.check_open()?;
        let signal = self.inner.jobs_changed.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let heart = Heart::start(self.clone(), stop.clone())?;
        let mut worker = Worker {
            stop: stop.clone(),
            signal: signal.clone(),
            total: Arc::default(),
            threads: Vec::new(),
            heart: Some(heart),
        };
        let thread = std::thread::Builder::new()
            .name("tollgate-schedules".into())
            .spawn({
                let (engine, stop, signal) = (self.clone(), stop.clone(), signal.clone());
                move || keep_time(&engine, &stop, &signal)
            })
            .map_err(|cause| Error::Storage(StoreError::io("starting a worker's schedules", cause)))?;
        worker.threads.push(thread);
        for _ in 0..options.threads {
            let (engine, options, total) = (self.clone(), options.clone(), worker.total.clone());
            let (stop, signal) = (stop.clone(), signal.clone());
            let pulse = worker.heart.as_ref().map(Heart::handle);
            let thread = std::thread::Builder::new()
                .name("tollgate-worker".into())
                .spawn(move || run(&engine, &options, &stop, &signal, &total, pulse.as_ref()))
                .map_err(|cause| Error::Storage(StoreError::io("starting a worker", cause)))?;
            worker.threads.push(thread);
        }
        Ok(worker)
    }
}

fn run(
    engine: &Engine,
    options: &WorkerOptions,
    stop: &AtomicBool,
    signal: &Signal,
    total: &Mutex<WorkSummary>,
    heart: Option<&Heart>,
) {
    while !stop.load(Ordering::SeqCst) {
        let seen = signal.count();
        // Here too, because the job that was just done may have been in the way of its schedule's next slot. What fails
        // is told by the thread of the schedules, and keeps no other job waiting.
        let _ = engine.fire_due();
        let rest = match engine.work_on(&options.queues, options.batch, None, heart, &mut |_| None) {
            Ok(summary) => {
                let busy = summary != WorkSummary::default();
                *total.lock() += summary;
                if busy {
                    continue;
                }
                until_due(engine, &options.queues)
            }
            Err(Error::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "a worker could not work");
                LONGEST_REST
            }
        };
        if !stop.load(Ordering::SeqCst) {
            signal.wait(seen, rest);
        }
    }
}

/// How long nothing is due.
fn until_due(engine: &Engine, queues: &[String]) -> Duration {
    match (engine.next_due(queues), engine.next_slot()) {
        (Ok(due), Ok(slot)) => due.into_iter().chain(slot).min().map_or(LONGEST_REST, |next| rest_until(engine, next)),
        _ => LONGEST_REST,
    }
}

fn rest_until(engine: &Engine, next: Timestamp) -> Duration {
    let ms = next.millis_since(engine.now()).max(1);
    Duration::from_millis(u64::try_from(ms).unwrap_or(1)).min(LONGEST_REST)
}

/// Enqueues due slots also while every thread that does jobs is at one: a long job must not make others late.
fn keep_time(engine: &Engine, stop: &AtomicBool, signal: &Signal) {
    while !stop.load(Ordering::SeqCst) {
        let seen = signal.count();
        match engine.fire_due() {
            Ok(_) => {}
            Err(Error::Closed) => return,
            Err(error) => tracing::warn!(%error, "a worker could not enqueue what is due of schedules"),
        }
        let rest = match engine.next_slot() {
            Ok(Some(slot)) => rest_until(engine, slot),
            _ => LONGEST_REST,
        };
        if !stop.load(Ordering::SeqCst) {
            signal.wait(seen, rest);
        }
    }
}

impl Worker {
    /// What it has done so far.
    pub fn summary(&self) -> WorkSummary {
        *self.total.lock()
    }

    /// Lets the jobs that run come to their end, gives back those that were claimed and not begun, and ends the threads.
    ///
    /// Errors: [`Error::Config`], when a thread of it panicked.
    pub fn shutdown(mut self) -> Result<WorkSummary, Error> {
        let whole = self.end();
        let summary = self.summary();
        if whole { Ok(summary) } else { Err(Error::Config("a worker's thread panicked".into())) }
    }

    fn end(&mut self) -> bool {
        self.stop.store(true, Ordering::SeqCst);
        self.signal.raise();
        let mut whole = true;
        for thread in self.threads.drain(..) {
            whole &= thread.join().is_ok();
        }
        if let Some(heart) = self.heart.take() {
            heart.end();
        }
        whole
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("summary", &self.summary()).finish_non_exhaustive()
    }
}

/// What keeps the leases of claimed jobs while they run or wait for their turn.
#[derive(Clone)]
pub(super) struct Heart {
    shared: Arc<Beating>,
    /// Asks those who have claimed jobs to begin no other.
    stop: Arc<AtomicBool>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

#[derive(Default)]
struct Beating {
    state: Mutex<Pulses>,
    changed: Condvar,
}

#[derive(Default)]
struct Pulses {
    jobs: Vec<Pulse>,
    next: u64,
    ended: bool,
}

struct Pulse {
    number: u64,
    id: String,
    token: i64,
    every: Duration,
    due: Deadline,
}

/// A job whose lease is kept, as long as this is there.
pub(super) struct Beat {
    shared: Arc<Beating>,
    number: u64,
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.shared.state.lock().jobs.retain(|pulse| pulse.number != self.number);
    }
}

impl Heart {
    pub(super) fn start(engine: Engine, stop: Arc<AtomicBool>) -> Result<Heart, Error> {
        let shared = Arc::new(Beating::default());
        let thread = std::thread::Builder::new()
            .name("tollgate-heart".into())
            .spawn({
                let shared = shared.clone();
                move || shared.run(&engine)
            })
            .map_err(|cause| Error::Storage(StoreError::io("starting a worker's heart", cause)))?;
        Ok(Heart { shared, stop, thread: Arc::new(Mutex::new(Some(thread))) })
    }

    fn handle(&self) -> Heart {
        self.clone()
    }

    /// Whether no other job is to be begun.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Keeps the lease of a job from now on.
    pub(super) fn beat(&self, job: &Job) -> Beat {
        let every = Duration::from_millis(u64::try_from(job.lease_ms / 3).unwrap_or(0)).max(SHORTEST_BEAT);
        let mut state = self.shared.state.lock();
        let number = state.next;
        state.next += 1;
        let (id, token) = (job.id.clone(), job.token);
        state.jobs.push(Pulse { number, id, token, every, due: Deadline::after(every) });
        self.shared.changed.notify_all();
        Beat { shared: self.shared.clone(), number }
    }

    pub(super) fn end(&self) {
        self.shared.state.lock().ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // A panic in it has kept no lease longer than it lasts anyway.
            let _ = thread.join();
        }
    }
}

impl Beating {
    fn run(&self, engine: &Engine) {
        let mut state = self.state.lock();
        while !state.ended {
            let mut due = Vec::new();
            for pulse in state.jobs.iter_mut().filter(|pulse| pulse.due.passed()) {
                pulse.due = Deadline::after(pulse.every);
                due.push((pulse.number, pulse.id.clone(), pulse.token));
            }
            if due.is_empty() {
                match state.jobs.iter().map(|pulse| pulse.due.remaining()).min() {
                    Some(rest) => drop(self.changed.wait_for(&mut state, rest)),
                    None => self.changed.wait(&mut state),
                }
                continue;
            }
            drop(state);
            let mut lost = Vec::new();
            for (number, id, token) in due {
                match work::beat(engine, &id, token) {
                    Ok(true) => {}
                    Ok(false) => lost.push(number),
                    Err(error) => tracing::warn!(%error, job = id, "a heartbeat failed"),
                }
            }
            state = self.state.lock();
            state.jobs.retain(|pulse| !lost.contains(&pulse.number));
        }
    }
}
