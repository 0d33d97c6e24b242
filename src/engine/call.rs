//! Calls: one procedure, run as one transaction, until a run of it counts.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::outcome::Outcome;
use crate::script::{Arguments, Call, CancelHandle, Ending};
use crate::time::Deadline;
use crate::transaction::{Committed, Fault, Mode, Transaction};
use crate::value::Value;

use super::contention::MOST_CLASHES;
use super::options::{CallOptions, Durability};
use super::{Engine, fault_error};

impl Engine {
    /// Calls a procedure: one run, one transaction.
    ///
    /// `args` is a tuple or slice (by position), or anything serde makes a map of (by name), or `()`. The value comes
    /// back as any type that serde can read; [`Value`] takes everything.
    ///
    /// Errors: the procedure is unknown, the arguments do not fit, the run failed, the store failed. Nothing is written
    /// then, with one exception: a call that waited for the disk in vain ([`Error::Storage`]) is committed in memory and
    /// may or may not be found after reopening.
    ///
    /// ```
    /// use tollgate::{Engine, Map, Outcome, Value};
    /// let engine = Engine::builder().memory().source("add.rhai", "fn add(a, b) { a + b }").open()?;
    /// assert_eq!(engine.call("add", &(1, 2))?, Outcome::Returned(3));
    /// let named = Map::from([("a".to_owned(), Value::Int(1)), ("b".to_owned(), Value::Int(2))]);
    /// assert_eq!(engine.call("add", &named)?, Outcome::Returned(3));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn call<T: DeserializeOwned>(
        &self,
        procedure: &str,
        args: &(impl Serialize + ?Sized),
    ) -> Result<Outcome<T>, Error> {
        self.call_with(procedure, args, &CallOptions::default())
    }

    /// [`Engine::call`] with options.
    pub fn call_with<T: DeserializeOwned>(
        &self,
        procedure: &str,
        args: &(impl Serialize + ?Sized),
        options: &CallOptions,
    ) -> Result<Outcome<T>, Error> {
        let bad = |message: String| Error::BadArguments {
            procedure: procedure.to_owned(),
            message,
            signature: self.signature(procedure),
        };
        let arguments = match Value::from_serde(args).map_err(|why| bad(why.to_string()))? {
            Value::Null => Arguments::Positional(Vec::new()),
            Value::Array(values) => Arguments::Positional(values),
            Value::Map(map) => Arguments::Named(map),
            other => return Err(bad(format!("they are one {}: write a tuple such as `(value,)`", other.type_name()))),
        };
        let outcome = self.call_values(procedure, arguments, options)?;
        outcome.into_serde().map_err(|why| bad(format!("the returned value does not fit the type asked for: {why}")))
    }

    /// Calls a procedure with values, for hosts that have no types of their own for them.
    ///
    /// Errors: as [`Engine::call`].
    pub fn call_values(
        &self,
        procedure: &str,
        arguments: Arguments,
        options: &CallOptions,
    ) -> Result<Outcome<Value>, Error> {
        self.call_settling(procedure, arguments, options, &mut |_, _| Ok(Before::Commit))
    }

    /// [`Engine::call_values`], with more to be written before a commit, or a reason not to commit.
    pub(super) fn call_settling(
        &self,
        procedure: &str,
        arguments: Arguments,
        options: &CallOptions,
        before_commit: &mut impl FnMut(&mut Transaction, &Ending) -> Result<Before, Fault>,
    ) -> Result<Outcome<Value>, Error> {
        self.check_open()?;
        let inner = &*self.inner;
        let loaded = inner.loaded.load_full();
        let contention = loaded.contention.get(procedure);
        let now = options.at.unwrap_or_else(|| inner.clock.now());
        let seed = inner.next_seed();
        let budget = options.budget.as_ref().unwrap_or(&inner.budget);
        let patience = options.deadline.map_or(budget.time, |deadline| deadline.min(budget.time));
        let deadline = Deadline::after(patience);
        let starts_alone = contention.is_some_and(|contention| contention.starts_alone());
        let mut clashes = 0;
        loop {
            options.cancel.as_ref().map_or(Ok(()), CancelHandle::check)?;
            let mode = inner.mode(clashes, starts_alone);
            let transaction = inner.database.begin(mode, now, budget.quota());
            let mut call =
                Call::new(transaction, inner.catalogue.clone(), options.caller.clone(), seed, budget.clone());
            // A run alone begins with all its time: what clashes took of it is not the caller's doing.
            let alone = mode == Mode::Alone;
            call.set_deadline(if alone && clashes > 0 { Deadline::after(patience) } else { deadline });
            call.set_cancel(options.cancel.clone());
            call.set_handlers(loaded.handlers.clone());
            let finished = loaded.program.run(procedure, arguments.clone(), call);
            let (ending, mut call) = (finished.ending, finished.call);
            let log = std::mem::take(&mut call.log);
            let before = match ending {
                Ending::Returned(_) | Ending::Denied(_) => before_commit(&mut call.transaction, &ending),
                _ => Ok(Before::RollBack),
            };
            let commit = || match before? {
                Before::Commit => call.transaction.commit().map(Some),
                Before::RollBack => Ok(None),
            };
            let result = match ending {
                Ending::Returned(value) => commit().map(|committed| (Ok(Outcome::Returned(value)), committed)),
                Ending::Denied(refusal) => commit().map(|committed| (Ok(Outcome::Refused(refusal)), committed)),
                Ending::Aborted(refusal) => Ok((Ok(Outcome::Refused(refusal)), None)),
                Ending::Failed(error) => Ok((Err(error), None)),
                Ending::Fault(fault) => Err(fault),
            };
            let clashed = matches!(result, Err(Fault::Clash));
            if clashes == 0
                && !alone
                && let Some(contention) = contention
            {
                contention.record(clashed);
            }
            if clashed && clashes <= MOST_CLASHES {
                clashes += 1;
                continue;
            }
            for line in &log {
                (inner.on_log)(procedure, line);
            }
            let (outcome, committed) = result.map_err(fault_error)?;
            if let Some(committed) = committed {
                self.await_durability(committed, options.durability)?;
            }
            return outcome;
        }
    }

    /// Waits for the disk as far as the data, the call and the engine ask for it.
    pub(super) fn await_durability(&self, committed: Committed, asked: Option<Durability>) -> Result<(), Error> {
        if !committed.places.is_empty() {
            self.inner.fronts.lower(&committed.places);
            self.inner.jobs_changed.raise();
        }
        let wait = match asked.unwrap_or(self.inner.durability) {
            Durability::Auto => committed.durable,
            Durability::Immediate => true,
            Durability::Buffered => false,
        };
        match committed.number {
            Some(number) if wait => Ok(self.inner.database.wait_for(number)?),
            _ => Ok(()),
        }
    }

    fn signature(&self, procedure: &str) -> String {
        let loaded = self.inner.loaded.load();
        loaded.program.procedure(procedure).map_or_else(|| procedure.to_owned(), |found| found.signature.clone())
    }
}

/// What is to become of a run that is ready to commit.
pub(super) enum Before {
    Commit,
    RollBack,
}

/// One host function of a script test is a transaction of its own.
pub(crate) struct EachAlone {
    pub(crate) engine: Engine,
    pub(crate) caller: Arc<crate::value::Map>,
}

impl crate::script::Autocommit for EachAlone {
    fn begin(&self) -> Result<Box<Call>, Error> {
        let inner = &*self.engine.inner;
        let mode = inner.mode(0, true);
        let transaction = inner.database.begin(mode, inner.clock.now(), inner.budget.quota());
        let (caller, seed) = (self.caller.clone(), inner.next_seed());
        let mut call = Call::new(transaction, inner.catalogue.clone(), caller, seed, inner.budget.clone());
        call.set_handlers(inner.loaded.load().handlers.clone());
        Ok(call)
    }

    fn finish(&self, call: Box<Call>) -> Result<(), Error> {
        let committed = call.transaction.commit().map_err(fault_error)?;
        self.engine.await_durability(committed, None)
    }
}
