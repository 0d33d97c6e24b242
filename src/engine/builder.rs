//! Settings of an engine, and its opening.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::document::catalogue::Catalogue;
use crate::error::Error;
use crate::job::Job;
use crate::job::front::Fronts;
use crate::script::{Budget, Level, LogLine, Natives, SourceFile};
use crate::store::{DiskStore, MemoryStore, Store, StoreError, key};
use crate::time::{Clock, SystemClock};
use crate::transaction::{Database, Fault, Mode, Pace, Quota};
use crate::value::Value;

use super::action::{Actions, JobAnswer};
use super::background::Background;
use super::load::{Loaded, Source};
use super::options::Durability;
use super::{Engine, Inner, LogHook, ProgressHook};

/// The format of the stored rows; a store with a higher one is refused.
const FORMAT: u32 = 1;

/// How often the sweeper looks for expired rows, unless the host says otherwise.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

enum Place {
    Unnamed,
    Folder(PathBuf),
    Store(Arc<dyn Store>),
}

/// Settings of an engine; [`EngineBuilder::open`] makes it.
///
/// ```no_run
/// use tollgate::{Durability, Engine};
/// let engine = Engine::builder()
///     .path("tollgate.db")
///     .scripts("scripts/")
///     .durability(Durability::Auto)
///     .open()?;
/// # Ok::<(), tollgate::Error>(())
/// ```
#[must_use = "an engine is made by open()"]
pub struct EngineBuilder {
    place: Place,
    source: Source,
    clock: Arc<dyn Clock>,
    natives: Natives,
    actions: Arc<Actions>,
    faults: Vec<String>,
    budget: Budget,
    durability: Durability,
    read_only: bool,
    pace: Pace,
    sweep_interval: Option<Duration>,
    seed: Option<u64>,
    on_log: LogHook,
    on_progress: ProgressHook,
}

impl EngineBuilder {
    pub(super) fn new() -> EngineBuilder {
        EngineBuilder {
            place: Place::Unnamed,
            source: Source::Release,
            clock: Arc::new(SystemClock::default()),
            natives: Natives::new(),
            actions: Arc::default(),
            faults: Vec::new(),
            budget: Budget::default(),
            durability: Durability::Auto,
            read_only: false,
            pace: Pace::default(),
            sweep_interval: Some(SWEEP_INTERVAL),
            seed: None,
            on_log: Arc::new(trace),
            on_progress: Arc::new(|_, _, _| ()),
        }
    }

    /// Keeps the data in the folder `path`, which is made when it is not there.
    pub fn path(mut self, path: impl AsRef<Path>) -> Self {
        self.place = Place::Folder(path.as_ref().to_owned());
        self
    }

    /// Keeps the data in memory: it ends with the engine.
    pub fn memory(self) -> Self {
        self.store(MemoryStore::new())
    }

    /// Keeps the data in a store of the host's.
    pub fn store(mut self, store: impl Store) -> Self {
        self.place = Place::Store(Arc::new(store));
        self
    }

    /// Reads the procedures from a folder, instead of from the release stored in the database.
    pub fn scripts(mut self, folder: impl AsRef<Path>) -> Self {
        self.source = Source::Folder(folder.as_ref().to_owned());
        self
    }

    /// Adds one procedure file by its text; `name` stands for it in errors.
    pub fn source(mut self, name: &str, text: &str) -> Self {
        let file = SourceFile::new(name, text);
        match &mut self.source {
            Source::Files(files) => files.push(file),
            other => *other = Source::Files(vec![file]),
        }
        self
    }

    /// Reads the time from `clock`; the system's clock by default.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// When calls return, unless a call says otherwise.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What each call may use, unless a call says otherwise.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Adds a pure function to the language: `name` with `arity` parameters. A panic in it fails its call only.
    ///
    /// A name that is no identifier, or is registered twice with one arity, is reported by [`EngineBuilder::open`].
    pub fn register_fn(
        mut self,
        name: &str,
        arity: usize,
        function: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        self.faults.extend(self.natives.register(name, arity, function).err());
        self
    }

    /// Adds an effect that workers run from the outbox: see [`Engine::action`].
    pub fn action(
        self,
        name: &str,
        handler: impl Fn(&Job) -> Result<JobAnswer, String> + Send + Sync + 'static,
    ) -> Self {
        self.actions.insert(name, handler);
        self
    }

    /// Says that an action of this name runs in a later process: see [`Engine::action_elsewhere`].
    pub fn action_elsewhere(self, name: &str) -> Self {
        self.actions.insert_elsewhere(name);
        self
    }

    /// The longest that a buffered commit stays in memory alone; 100 ms by default.
    pub fn flush_interval(mut self, interval: Duration) -> Self {
        self.pace.interval = interval;
        self
    }

    /// How long a flush may take before it counts as failed; 10 s by default.
    pub fn flush_timeout(mut self, timeout: Duration) -> Self {
        self.pace.timeout = timeout;
        self
    }

    /// How often expired rows are reclaimed in the background; never, when none. It changes no answer.
    pub fn sweep_interval(mut self, interval: Option<Duration>) -> Self {
        self.sweep_interval = interval;
        self
    }

    /// Makes random numbers and new ids the same in each run: for tests. Secret by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Refuses every write.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Hears each line that a call logged, with the procedure's name, once the call counts. By default lines go
    /// to `tracing`.
    pub fn on_log(mut self, hook: impl Fn(&str, &LogLine) + Send + Sync + 'static) -> Self {
        self.on_log = Arc::new(hook);
        self
    }

    /// Hears how far long work, such as building an index, has come: what, done, and in all (0 when not known).
    pub fn on_progress(mut self, hook: impl Fn(&str, u64, u64) + Send + Sync + 'static) -> Self {
        self.on_progress = Arc::new(hook);
        self
    }

    /// Opens the store and loads the procedures.
    ///
    /// Errors: [`Error::Busy`] when another process holds the store; [`Error::Storage`] when it cannot be read or is
    /// of a newer format; [`Error::Compile`] when procedures do not load; [`Error::Config`] when settings make no sense.
    pub fn open(self) -> Result<Engine, Error> {
        if let Some(fault) = self.faults.into_iter().next() {
            return Err(Error::Config(fault));
        }
        let store: Arc<dyn Store> = match self.place {
            Place::Unnamed => {
                return Err(Error::Config("no store is named: say path(…), memory() or store(…)".into()));
            }
            Place::Folder(path) => Arc::new(DiskStore::open(&path)?),
            Place::Store(store) => store,
        };
        let database = Database::open(store, self.pace)?;
        check_format(&database, self.read_only)?;
        let engine = Engine {
            inner: Arc::new(Inner {
                database,
                clock: self.clock,
                loaded: ArcSwap::from_pointee(Loaded::nothing(&self.natives, &self.budget, &self.actions)?),
                source: Mutex::new(self.source),
                natives: self.natives,
                actions: self.actions,
                jobs_changed: Arc::default(),
                fronts: Fronts::default(),
                budget: self.budget,
                durability: self.durability,
                read_only: self.read_only,
                catalogue: Arc::new(Catalogue::new()),
                seed: first_seed(self.seed)?,
                calls: AtomicU64::new(0),
                closed: AtomicBool::new(false),
                on_log: self.on_log,
                on_progress: self.on_progress,
                background: Mutex::default(),
            }),
        };
        engine.repeat(true, |tx| Ok(engine.inner.fronts.load(tx)?))?;
        engine.reload()?;
        if let (Some(interval), false) = (self.sweep_interval, self.read_only) {
            let background = Background::start(&engine, interval)
                .map_err(|cause| Error::Storage(StoreError::io("starting the sweeper", cause)))?;
            *engine.inner.background.lock() = Some(background);
        }
        Ok(engine)
    }
}

/// Checks the store's format, and writes it into a store that is new.
fn check_format(database: &Database, read_only: bool) -> Result<(), Error> {
    let key = key::meta("format");
    let mut tx = database.begin(Mode::Optimistic, crate::time::Timestamp::EPOCH, Quota::UNLIMITED);
    let fault = super::fault_error;
    let Some(stored) = tx.get(&key).map_err(fault)? else {
        if !read_only {
            tx.put(&key, &FORMAT.to_be_bytes()).map_err(fault)?;
            match tx.commit() {
                Ok(_) => {}
                Err(Fault::Clash) => {}
                Err(other) => return Err(fault(other)),
            }
        }
        return Ok(());
    };
    match stored[..].try_into().map(u32::from_be_bytes) {
        Ok(found) if found <= FORMAT => Ok(()),
        Ok(found) => Err(StoreError::NewerFormat { found, supported: FORMAT }.into()),
        Err(_) => Err(StoreError::Corrupt("the format row cannot be read".into()).into()),
    }
}

fn first_seed(seed: Option<u64>) -> Result<[u8; 24], Error> {
    let mut bytes = [0; 24];
    match seed {
        Some(seed) => bytes[..8].copy_from_slice(&seed.to_le_bytes()),
        None => getrandom::fill(&mut bytes)
            .map_err(|cause| Error::Config(format!("the system gives no random numbers: {cause}")))?,
    }
    Ok(bytes)
}

/// A log line as an event of the host's tracing.
fn trace(procedure: &str, line: &LogLine) {
    let (message, data) = (&line.message, Value::Map(line.data.clone()));
    match line.level {
        Level::Trace => tracing::trace!(target: "tollgate::procedure", procedure, %data, "{message}"),
        Level::Debug => tracing::debug!(target: "tollgate::procedure", procedure, %data, "{message}"),
        Level::Info => tracing::info!(target: "tollgate::procedure", procedure, %data, "{message}"),
        Level::Warn => tracing::warn!(target: "tollgate::procedure", procedure, %data, "{message}"),
        Level::Error => tracing::error!(target: "tollgate::procedure", procedure, %data, "{message}"),
    }
}
