//! A call: one run and what it owns, in a thread-local while its script runs.
//!
//! A host function takes the call out of the thread-local while it works and puts it back, panics included;
//! so re-entry finds none and errs instead of seeing half a change. What ends a call (`deny`, `abort`, a spent
//! budget, a fault of the store) is recorded in the call and refused by every later host function.

use std::cell::Cell;
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use rhai::{Dynamic, EvalAltResult, NativeCallContext, Position};

use crate::document::catalogue::Catalogue;
use crate::error::Error;
use crate::outcome::{Refusal, RefusalKind};
use crate::time::{Deadline, Timestamp};
use crate::transaction::{Fault, Transaction};
use crate::value::{Map, Value};

use super::budget::Budget;
use super::cancel::CancelHandle;
use super::handlers::Handlers;
use super::raised::{Failure, Raised};

/// How grave a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look very closely.
    Trace,
    /// For those who look for a fault.
    Debug,
    /// What happened.
    Info,
    /// Somebody should look.
    Warn,
    /// Something is broken.
    Error,
}

/// A line that a call logged; it counts only when the call's run does.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// How grave it is.
    pub level: Level,
    /// Its text.
    pub message: String,
    /// What was attached.
    pub data: Map,
}

/// One run: a transaction, who calls, what it may use, and how it ended so far.
pub(crate) struct Call {
    pub(crate) transaction: Transaction,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) caller: Arc<Map>,
    pub(crate) seed: [u8; 32],
    pub(crate) budget: Budget,
    /// Who can do the jobs that it enqueues.
    pub(super) handlers: Option<Arc<dyn Handlers>>,
    /// Jobs enqueued so far.
    pub(super) enqueued: u32,
    /// Log lines so far, in order.
    pub(crate) log: Vec<LogLine>,
    deadline: Deadline,
    cancel: Option<CancelHandle>,
    random: Option<ChaCha12Rng>,
    /// Bytes of the log lines so far.
    logged: usize,
    pub(super) end: Option<End>,
    /// Nested `attempt`s, so that their depth is bounded with that of calls.
    pub(super) attempts: usize,
}

/// What ended a call before its function returned.
#[derive(Debug)]
pub(super) enum End {
    Refused(Refusal),
    /// A budget, what it allowed, and where, as far as it is known.
    Spent {
        message: String,
        position: Position,
    },
    /// The caller stopped it.
    Cancelled,
    Fault(Fault),
}

impl Call {
    /// A call whose time begins to run now.
    ///
    /// Equal seed, caller and arguments on an equal store at an equal instant give an equal run.
    pub(crate) fn new(
        transaction: Transaction,
        catalogue: Arc<Catalogue>,
        caller: Arc<Map>,
        seed: [u8; 32],
        budget: Budget,
    ) -> Box<Call> {
        let deadline = Deadline::after(budget.time);
        Box::new(Call {
            transaction,
            catalogue,
            caller,
            seed,
            budget,
            handlers: None,
            enqueued: 0,
            log: Vec::new(),
            deadline,
            cancel: None,
            random: None,
            logged: 0,
            end: None,
            attempts: 0,
        })
    }

    /// Lowers the deadline to one that the caller has.
    pub(crate) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    /// Lets the caller stop the call.
    pub(crate) fn set_cancel(&mut self, cancel: Option<CancelHandle>) {
        self.cancel = cancel;
    }

    /// Names who can do the jobs that the call enqueues.
    pub(crate) fn set_handlers(&mut self, handlers: Arc<dyn Handlers>) {
        self.handlers = Some(handlers);
    }

    /// The one instant of this call.
    pub(crate) fn now(&self) -> Timestamp {
        self.transaction.now()
    }

    /// The call's random numbers, the same in every run with the same seed.
    pub(super) fn random(&mut self) -> &mut ChaCha12Rng {
        let seed = self.seed;
        self.random.get_or_insert_with(|| ChaCha12Rng::from_seed(seed))
    }

    /// Adds a log line.
    pub(super) fn log(&mut self, level: Level, message: &str, data: Map) -> Result<(), Failure> {
        let size = line_size(message, &data);
        let spent_now = if self.log.len() >= self.budget.log_lines {
            Some(spent("log lines", self.budget.log_lines))
        } else if self.logged.saturating_add(size) > self.budget.log_bytes {
            Some(spent("log bytes", self.budget.log_bytes))
        } else {
            None
        };
        if let Some(message) = spent_now {
            self.end = Some(End::Spent { message: message.clone(), position: Position::NONE });
            return Err(Failure::Spent(message));
        }
        self.logged += size;
        self.log.push(LogLine { level, message: message.to_owned(), data });
        Ok(())
    }

    /// Records what a failure does to the call, and makes the error that the interpreter carries up.
    fn fail(&mut self, failure: Failure, position: Position) -> Box<EvalAltResult> {
        match failure {
            Failure::Raised(raised) => raised.into_error(position),
            Failure::Refused(refusal) => {
                self.end = Some(End::Refused(*refusal));
                terminated(position)
            }
            Failure::Fault(Fault::Budget(spent)) => self.fail(Failure::Spent(spent.to_string()), position),
            Failure::Spent(message) => {
                self.end = Some(End::Spent { message: message.clone(), position });
                // Not the uncatchable kind: that one loses its place on the way up, and the record in the
                // call ends the call whoever catches this.
                Raised::new("budget", message).into_error(position)
            }
            Failure::Fault(fault) => {
                self.end = Some(End::Fault(fault));
                terminated(position)
            }
        }
    }
}

/// What a log line costs.
fn line_size(message: &str, data: &Map) -> usize {
    let data: usize = data.iter().map(|(name, value)| name.len() + value.to_json().len()).sum();
    message.len() + data
}

/// The text of a spent budget.
pub(super) fn spent(what: &str, allowed: impl std::fmt::Display) -> String {
    format!("budget spent: {what} (allowed {allowed})")
}

/// The error that stops a script; why is recorded in the call.
pub(super) fn stopped(position: Position) -> Box<EvalAltResult> {
    terminated(position)
}

fn terminated(position: Position) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorTerminated(Dynamic::UNIT, position))
}

/// Gives each host function that is used outside of any call a call of its own.
pub(crate) trait Autocommit: Send + Sync {
    /// A fresh call.
    fn begin(&self) -> Result<Box<Call>, Error>;

    /// Commits a call that succeeded.
    fn finish(&self, call: Box<Call>) -> Result<(), Error>;
}

/// A run outside of any call, as script tests are: host functions commit one by one.
pub(super) struct Detached {
    pub(super) autocommit: Arc<dyn Autocommit>,
    pub(super) budget: Budget,
    pub(super) deadline: Deadline,
    pub(super) log: Vec<LogLine>,
    pub(super) end: Option<End>,
}

/// What runs on this thread.
#[derive(Default)]
pub(super) enum Current {
    /// Nothing, or a host function at work.
    #[default]
    Nothing,
    /// The file level of a file.
    Loading,
    Running(Box<Call>),
    Detached(Box<Detached>),
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current::Nothing) };
}

/// Makes something current, and the earlier one again when dropped.
pub(super) struct Entered {
    earlier: Option<Current>,
}

impl Entered {
    pub(super) fn new(current: Current) -> Entered {
        Entered { earlier: Some(CURRENT.replace(current)) }
    }

    /// Ends it and hands back what was current.
    pub(super) fn leave(mut self) -> Current {
        CURRENT.replace(self.earlier.take().unwrap_or_default())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(earlier) = self.earlier.take() {
            CURRENT.set(earlier);
        }
    }
}

/// Holds what was taken out of the thread-local, and puts it back when dropped, by a panic too.
struct Held(Current);

impl Drop for Held {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

/// Whether a file is being loaded: what a limit or collection function does then is a declaration.
pub(super) fn loading() -> bool {
    let held = Held(CURRENT.take());
    matches!(held.0, Current::Loading)
}

/// Runs `work` on the current call. `work` must not call back into the script.
pub(super) fn with<T>(
    context: &NativeCallContext,
    work: impl FnOnce(&mut Call) -> Result<T, Failure>,
) -> Result<T, Box<EvalAltResult>> {
    let position = context.call_position();
    let mut held = Held(CURRENT.take());
    match &mut held.0 {
        Current::Running(call) => {
            if call.end.is_some() {
                return Err(terminated(position));
            }
            match work(call) {
                Ok(value) => Ok(value),
                Err(failure) => Err(call.fail(failure, position)),
            }
        }
        Current::Detached(detached) => {
            if detached.end.is_some() {
                return Err(terminated(position));
            }
            let autocommit = detached.autocommit.clone();
            let mut call = autocommit.begin().map_err(|error| foreign(&error, position))?;
            let result = work(&mut call);
            finish_detached(&*autocommit, call, result, position)
        }
        Current::Loading => {
            let message = format!(
                "`{}` cannot be used at file level, where there is no call: use it inside a function",
                context.fn_name()
            );
            Err(Raised::new("file_level", message).into_error(position))
        }
        Current::Nothing => {
            Err(Raised::new("no_call", format!("`{}` was used outside of a call", context.fn_name()))
                .into_error(position))
        }
    }
}

/// Ends the call of one host function in a detached run.
fn finish_detached<T>(
    autocommit: &dyn Autocommit,
    mut call: Box<Call>,
    result: Result<T, Failure>,
    position: Position,
) -> Result<T, Box<EvalAltResult>> {
    match result {
        Ok(value) => {
            autocommit.finish(call).map_err(|error| foreign(&error, position))?;
            Ok(value)
        }
        Err(Failure::Refused(refusal)) => {
            let mut raised = Raised::new("denied", format!("refused outside of a call: {}", refusal.message));
            if refusal.kind == RefusalKind::Denied {
                autocommit.finish(call).map_err(|error| foreign(&error, position))?;
            }
            raised.data.insert("reason".into(), Value::Text(refusal.code));
            Err(raised.into_error(position))
        }
        Err(Failure::Fault(fault)) => Err(Raised::new("storage", fault.to_string()).into_error(position)),
        Err(failure) => Err(call.fail(failure, position)),
    }
}

fn foreign(error: &Error, position: Position) -> Box<EvalAltResult> {
    let mut raised = Raised::new("host", error.to_string());
    raised.code = error.code().to_owned().into();
    raised.into_error(position)
}

/// Makes sure that a call is current while `work` runs callbacks into the script: in a detached run, one of its own.
pub(super) fn with_own_call(
    context: &NativeCallContext,
    work: impl FnOnce() -> Result<Dynamic, Box<EvalAltResult>>,
) -> Result<Dynamic, Box<EvalAltResult>> {
    let position = context.call_position();
    let autocommit = {
        let held = Held(CURRENT.take());
        match &held.0 {
            Current::Detached(detached) if detached.end.is_none() => Some(detached.autocommit.clone()),
            _ => None,
        }
    };
    let Some(autocommit) = autocommit else { return work() };
    let call = autocommit.begin().map_err(|error| foreign(&error, position))?;
    let entered = Entered::new(Current::Running(call));
    let result = work();
    if let Current::Running(call) = entered.leave() {
        match (&call.end, &result) {
            (Some(End::Spent { message, .. }), _) => {
                return Err(Raised::new("budget", message.clone()).into_error(position));
            }
            (Some(End::Cancelled), _) => return Err(terminated(position)),
            (Some(End::Fault(fault)), _) => return Err(Raised::new("storage", fault.to_string()).into_error(position)),
            // An attempt takes refusals for itself; one left over is of a closure that never came back.
            (Some(End::Refused(_)), _) => {}
            (None, Ok(_)) => autocommit.finish(call).map_err(|error| foreign(&error, position))?,
            (None, Err(_)) => {}
        }
    }
    result
}

/// Takes the current call's end, when it has one; for `attempt`.
pub(super) fn with_end<T>(work: impl FnOnce(&mut Call) -> T) -> Option<T> {
    let mut held = Held(CURRENT.take());
    match &mut held.0 {
        Current::Running(call) => Some(work(call)),
        _ => None,
    }
}

/// Adds a log line to the call; outside of one it goes nowhere. Used by `print`, which cannot fail.
pub(super) fn print(text: &str) {
    let mut held = Held(CURRENT.take());
    match &mut held.0 {
        Current::Running(call) if call.end.is_none() => {
            // A full log ends the call by its record; there is no error to carry here.
            let _ = call.log(Level::Info, text, Map::new());
        }
        Current::Detached(detached)
            if detached.log.len() < detached.budget.log_lines && text.len() <= detached.budget.text_bytes =>
        {
            detached.log.push(LogLine { level: Level::Info, message: text.to_owned(), data: Map::new() });
        }
        _ => {}
    }
}

/// How many operations pass between two looks at the clock and at the caller's wish to stop.
const CHECK_EVERY: u64 = 64;

/// Called by the interpreter at each operation; anything returned stops the script.
pub(super) fn progress(operations: u64) -> Option<Dynamic> {
    if !operations.is_multiple_of(CHECK_EVERY) {
        return None;
    }
    let mut held = Held(CURRENT.take());
    let (end, budget, deadline, cancel) = match &mut held.0 {
        Current::Running(call) => (&mut call.end, &call.budget, call.deadline, call.cancel.as_ref()),
        Current::Detached(detached) => (&mut detached.end, &detached.budget, detached.deadline, None),
        Current::Nothing | Current::Loading => {
            // No call's budget applies while a file loads; the default one does.
            let allowed = Budget::default().operations;
            return (operations > allowed).then_some(Dynamic::UNIT);
        }
    };
    if end.is_none() {
        let message = if cancel.is_some_and(CancelHandle::is_cancelled) {
            *end = Some(End::Cancelled);
            return Some(Dynamic::UNIT);
        } else if operations > budget.operations {
            spent("operations", budget.operations)
        } else if deadline.passed() {
            spent("time", format_args!("{} ms", budget.time.as_millis()))
        } else {
            return None;
        };
        *end = Some(End::Spent { message, position: Position::NONE });
    }
    Some(Dynamic::UNIT)
}
