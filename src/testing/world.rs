//! The world of one test: its engine, its clock, who calls, and the calls made so far.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::{CallOptions, Durability, EachAlone, Engine};
use crate::error::Error;
use crate::outcome::Outcome;
use crate::script::{Arguments, Autocommit, Call, Program};
use crate::store::{MemoryStore, Store};
use crate::time::{Clock, ManualClock, Timestamp};
use crate::value::{Map, Value};

use super::assertion::shown;

/// When every test begins: 2026-01-01T00:00:00Z.
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// What every test's random numbers begin with.
const SEED: u64 = 0x0070_6c6c_6761_7465;

/// Calls that a failure shows; earlier ones are only counted.
const MOST_CALLS: usize = 50;

/// The world of one test.
pub(super) struct World {
    folder: PathBuf,
    store: Arc<dyn Store>,
    pub(super) clock: Arc<ManualClock>,
    state: Mutex<State>,
}

struct State {
    engine: Engine,
    caller: Arc<Map>,
    calls: Vec<String>,
    calls_dropped: usize,
    /// Names of the actions that the test stands in for.
    actions: Vec<String>,
    /// The first assertion that failed.
    failed: Option<String>,
}

impl World {
    /// A new world with the procedures of a folder. Errors: they do not load.
    pub(super) fn new(folder: &Path) -> Result<Arc<World>, Error> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let clock = ManualClock::at(START);
        let engine = open(folder, &store, &clock)?;
        let state = State {
            engine,
            caller: Arc::default(),
            calls: Vec::new(),
            calls_dropped: 0,
            actions: Vec::new(),
            failed: None,
        };
        Ok(Arc::new(World { folder: folder.to_owned(), store, clock, state: Mutex::new(state) }))
    }

    /// Ends the world.
    pub(super) fn close(&self) -> Result<(), Error> {
        self.engine().close()
    }

    /// The engine, which another one replaces when the test reopens it.
    pub(super) fn engine(&self) -> Engine {
        self.state.lock().engine.clone()
    }

    /// Makes the store know what a test file declares.
    pub(super) fn declare(&self, program: &Program) -> Result<(), Error> {
        self.engine().declare(program)
    }

    /// Makes one call of a procedure, and keeps it for the report.
    pub(super) fn run(
        &self,
        procedure: &str,
        arguments: &Value,
        caller: Option<Map>,
    ) -> Result<Result<Outcome<Value>, Error>, String> {
        let given = match arguments {
            Value::Null => Arguments::Positional(Vec::new()),
            Value::Array(values) => Arguments::Positional(values.clone()),
            Value::Map(map) => Arguments::Named(map.clone()),
            other => {
                return Err(format!("`run` takes the arguments as an array or a map, not {}", other.type_name()));
            }
        };
        let (engine, usual) = {
            let state = self.state.lock();
            (state.engine.clone(), state.caller.clone())
        };
        let caller = caller.unwrap_or_else(|| (*usual).clone());
        let result = engine.call_values(procedure, given, &CallOptions::new().caller(caller));
        self.note_call(procedure, arguments, &result);
        Ok(result)
    }

    fn note_call(&self, procedure: &str, arguments: &Value, result: &Result<Outcome<Value>, Error>) {
        let came_to = match result {
            Ok(Outcome::Returned(value)) => format!("returned {}", shown(value)),
            Ok(Outcome::Refused(refusal)) => {
                let kind = refusal.kind.as_str();
                let code = if refusal.code == kind { String::new() } else { format!(" ({})", refusal.code) };
                let message = if refusal.message.is_empty() { String::new() } else { format!(": {}", refusal.message) };
                format!("{kind}{code}{message}")
            }
            Err(error) => {
                format!("failed ({}): {}", error.code(), error.to_string().lines().next().unwrap_or_default())
            }
        };
        let line = format!("{} run({procedure}, {}) -> {came_to}", self.clock.now(), shown(arguments));
        let mut state = self.state.lock();
        if state.calls.len() == MOST_CALLS {
            state.calls.remove(0);
            state.calls_dropped += 1;
        }
        state.calls.push(line);
    }

    /// Sets who calls from here on.
    pub(super) fn set_caller(&self, caller: Map) {
        self.state.lock().caller = Arc::new(caller);
    }

    /// Writes everything to the store, ends the engine and opens another one over the same store.
    pub(super) fn reopen(&self) -> Result<(), Error> {
        self.engine().close()?;
        let engine = open(&self.folder, &self.store, &self.clock)?;
        let mut state = self.state.lock();
        for name in &state.actions {
            stand_in(&engine, name);
        }
        state.engine = engine;
        Ok(())
    }

    /// Makes the engine know an action that the test answers for.
    pub(super) fn add_action(&self, name: &str) {
        let mut state = self.state.lock();
        stand_in(&state.engine, name);
        state.actions.push(name.to_owned());
    }

    /// Keeps the first assertion that failed.
    pub(super) fn note_failed(&self, message: &str) {
        self.state.lock().failed.get_or_insert_with(|| message.to_owned());
    }

    pub(super) fn take_failed(&self) -> Option<String> {
        self.state.lock().failed.take()
    }

    /// The calls made so far.
    pub(super) fn take_calls(&self) -> Vec<String> {
        let mut state = self.state.lock();
        let mut calls = std::mem::take(&mut state.calls);
        if state.calls_dropped > 0 {
            calls.insert(0, format!("… {} earlier calls", state.calls_dropped));
        }
        calls
    }

    fn alone(&self) -> EachAlone {
        let state = self.state.lock();
        EachAlone { engine: state.engine.clone(), caller: state.caller.clone() }
    }
}

impl Autocommit for World {
    fn begin(&self) -> Result<Box<Call>, Error> {
        self.alone().begin()
    }

    fn finish(&self, call: Box<Call>) -> Result<(), Error> {
        self.alone().finish(call)
    }
}

/// Registers an action that is never run: whoever works for a test asks the test first.
fn stand_in(engine: &Engine, name: &str) {
    engine.action(name, |job| Err(format!("`{}` is run by `work()` alone", job.handler)));
}

fn open(folder: &Path, store: &Arc<dyn Store>, clock: &Arc<ManualClock>) -> Result<Engine, Error> {
    Engine::builder()
        .store(store.clone())
        .scripts(folder)
        .clock(clock.clone())
        .seed(SEED)
        // Nothing is to be lost in memory, and nothing is to happen behind the test's back.
        .durability(Durability::Buffered)
        .sweep_interval(None)
        .action_elsewhere("log")
        .action_elsewhere("smtp")
        .open()
}
