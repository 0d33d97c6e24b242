//! The engine: procedures, a store and a clock put together; what hosts and tools speak to.
//!
//! An [`Engine`] is a handle on shared state, cheap to clone. A call takes the program that is loaded at its
//! start, begins a transaction, runs the procedure in it, and commits or drops it by how the run ended. A run
//! that clashes with another is thrown away, log lines and all, and made again; after a few clashes alone.

mod action;
mod background;
mod builder;
mod call;
#[cfg(test)]
mod cancel_test;
mod contention;
mod declare;
mod doctor;
mod explain;
#[cfg(test)]
mod explain_test;
mod job;
mod lease;
mod load;
mod options;
mod plan;
mod probe;
mod ruling;
mod schedule;
mod session;
mod sweeper;
mod tools;
mod transaction;
mod work;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::document::catalogue::Catalogue;
use crate::error::Error;
use crate::job::front::Fronts;
use crate::script::{Budget, LogLine, Natives};
use crate::time::{Clock, Timestamp};
use crate::transaction::{Database, Fault, Mode};

pub use action::JobAnswer;
pub use builder::EngineBuilder;
pub(crate) use call::EachAlone;
pub use explain::{Explanation, Times};
pub(crate) use load::Loaded;
pub use options::{CallOptions, Durability};
pub use plan::{
    BucketMove, BucketsPlan, Change, CollectionPlan, IndexPlan, LimitPlan, Plan, ProcedurePlan, SettingPlan, Undeclared,
};
pub use ruling::OverrideInfo;
pub use schedule::ScheduleInfo;
pub use session::Session;
pub use sweeper::SweepSummary;
pub use tools::{BucketInfo, Stats};
pub use transaction::Transaction;
pub use work::WorkSummary;
pub use worker::{Worker, WorkerOptions};

/// A place to run procedures: shared, long-lived, cheap to clone, and used from any number of threads.
///
/// Dropping the last handle writes what is left to the store; [`Engine::close`] does it now and says how it went.
///
/// ```
/// use tollgate::{Engine, Outcome, Value};
/// let engine = Engine::builder().memory().source("hello.rhai", "fn hello(name) { `hello ${name}` }").open()?;
/// let outcome: Outcome<String> = engine.call("hello", &("ada",))?;
/// assert_eq!(outcome, Outcome::Returned("hello ada".to_owned()));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    clock: Arc<dyn Clock>,
    loaded: ArcSwap<Loaded>,
    source: Mutex<load::Source>,
    natives: Natives,
    actions: Arc<action::Actions>,
    /// Moves on when a job may have become due.
    jobs_changed: Arc<worker::Signal>,
    fronts: Fronts,
    budget: Budget,
    durability: Durability,
    read_only: bool,
    catalogue: Arc<Catalogue>,
    /// The first part of every call's seed, secret unless the host set it.
    seed: [u8; 24],
    calls: AtomicU64,
    closed: AtomicBool,
    on_log: LogHook,
    on_progress: ProgressHook,
    /// Ends with the engine.
    background: Mutex<Option<background::Background>>,
}

/// Where the log lines of calls go.
pub(crate) type LogHook = Arc<dyn Fn(&str, &LogLine) + Send + Sync>;

/// Who hears how far long work has come: what, done, in all (0 when not known).
pub(crate) type ProgressHook = Arc<dyn Fn(&str, u64, u64) + Send + Sync>;

impl Engine {
    /// Begins the settings of an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::new()
    }

    /// The time on the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Returns when everything committed so far is on disk.
    ///
    /// Errors: [`Error::Storage`], when a write failed.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.inner.database.flush()?)
    }

    /// Writes what is left and ends the engine: later calls through other handles fail with [`Error::Closed`].
    ///
    /// Errors: [`Error::Storage`], when what is left could not be written.
    pub fn close(self) -> Result<(), Error> {
        self.inner.closed.store(true, Ordering::SeqCst);
        self.flush()
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.inner.closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("loaded", &self.inner.loaded.load().program).finish_non_exhaustive()
    }
}

impl Inner {
    /// The seed of the next call: equal engine seeds give equal seeds in equal order.
    fn next_seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        seed[..24].copy_from_slice(&self.seed);
        seed[24..].copy_from_slice(&self.calls.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        seed
    }

    /// How a run begins that has clashed so often.
    fn mode(&self, clashes: u32, starts_alone: bool) -> Mode {
        match self.read_only {
            true => reading(clashes),
            false if starts_alone || clashes >= contention::MOST_CLASHES => Mode::Alone,
            false => Mode::Optimistic,
        }
    }
}

/// How a run begins that only reads and has clashed so often.
fn reading(clashes: u32) -> Mode {
    if clashes >= contention::MOST_CLASHES { Mode::ReadAlone } else { Mode::ReadOnly }
}

/// The error that a caller sees for a fault that is no clash.
fn fault_error(fault: Fault) -> Error {
    match fault {
        Fault::Store(cause) => cause.into(),
        Fault::Budget(spent) => Error::Budget(Box::new(crate::error::ScriptError {
            code: "budget".into(),
            message: spent.to_string(),
            hint: spent.hint,
            ..Default::default()
        })),
        Fault::ReadOnly => Error::ReadOnly,
        // A run that holds the commit lock cannot clash; others are run again and never come here.
        Fault::Clash => Error::Config("a transaction clashed while it ran alone: this is a fault of the engine".into()),
    }
}
