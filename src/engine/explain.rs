//! Explanations: a call run for its trace alone, of which nothing stays.

use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::outcome::{Outcome, Refusal};
use crate::script::{Arguments, Call, Ending, LogLine};
use crate::time::{Deadline, Stopwatch, Timestamp};
use crate::trace::{Step, Trace};
use crate::transaction::{Fault, Mode};
use crate::value::Value;

use super::contention::MOST_CLASHES;
use super::options::CallOptions;
use super::{Engine, fault_error};

/// What a call would come to, and everything it asked of limits and documents on the way.
///
/// As JSON: how it ended as the keys `status` (`returned`, `denied`, `aborted` or `failed`), `value`, `code`, `message`,
/// `retry_after`, `violated` and `data`; then `at`, `steps`, `omitted` and `times`. Every key is always there.
/// Instants and waits are milliseconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// How the call ended; a script or budget error is an ending too.
    pub outcome: Result<Outcome<Value>, Error>,
    /// The instant of the call.
    pub at: Timestamp,
    /// What it did, in order.
    pub steps: Vec<Step>,
    /// How many more steps there were than are kept: 10 000 are.
    pub omitted: u64,
    /// What it logged, in order; not part of the JSON.
    pub log: Vec<LogLine>,
    /// Where its time went.
    pub times: Times,
}

/// Where the time of an explained call went. It ends before a commit: waiting for the disk is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// The whole run.
    pub total: Duration,
    /// Operations of limits: reading, deciding and writing buckets.
    pub limits: Duration,
    /// Operations on documents: reading, matching and writing them.
    pub documents: Duration,
    /// Operations on jobs.
    pub jobs: Duration,
    /// The rest: the interpreter, and values passed to and from it.
    pub script: Duration,
}

/// In whole microseconds: `total_us`, `limits_us`, `documents_us`, `jobs_us`, `script_us`.
impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let mut fields = serializer.serialize_struct("Times", 5)?;
        fields.serialize_field("total_us", &micros(self.total))?;
        fields.serialize_field("limits_us", &micros(self.limits))?;
        fields.serialize_field("documents_us", &micros(self.documents))?;
        fields.serialize_field("jobs_us", &micros(self.jobs))?;
        fields.serialize_field("script_us", &micros(self.script))?;
        fields.end()
    }
}

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let refusal = self.outcome.as_ref().ok().and_then(Outcome::refusal);
        let error = self.outcome.as_ref().err();
        let (status, value) = match &self.outcome {
            Ok(Outcome::Returned(value)) => ("returned", Some(value)),
            Ok(Outcome::Refused(refusal)) => (refusal.kind.as_str(), None),
            Err(_) => ("failed", None),
        };
        let code = refusal.map(Refusal::code).or(error.map(Error::code));
        let message = match (refusal, error) {
            (Some(refusal), _) => Some(refusal.message.clone()),
            // Where it happened is for people; see the whole error for that.
            (_, Some(Error::Script(script) | Error::Budget(script))) => Some(script.message.clone()),
            (_, error) => error.map(ToString::to_string),
        };
        let data = match error {
            Some(Error::Script(script) | Error::Budget(script)) => Some(&script.value),
            _ => refusal.map(|refusal| &refusal.data),
        };
        let wait = |wait: Duration| u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let violated: Vec<Violated<'_>> = refusal
            .map(|refusal| &*refusal.violated)
            .unwrap_or_default()
            .iter()
            .map(|violation| Violated { name: &violation.name, wait: violation.wait })
            .collect();
        let mut fields = serializer.serialize_struct("Explanation", 11)?;
        fields.serialize_field("status", status)?;
        fields.serialize_field("value", &value)?;
        fields.serialize_field("code", &code)?;
        fields.serialize_field("message", &message)?;
        fields.serialize_field("retry_after", &refusal.and_then(|refusal| refusal.retry_after).map(wait))?;
        fields.serialize_field("violated", &violated)?;
        fields.serialize_field("data", &data)?;
        fields.serialize_field("at", &self.at)?;
        fields.serialize_field("steps", &self.steps)?;
        fields.serialize_field("omitted", &self.omitted)?;
        fields.serialize_field("times", &self.times)?;
        fields.end()
    }
}

#[derive(Serialize)]
struct Violated<'a> {
    name: &'a str,
    wait: i64,
}

impl Explanation {
    /// Puts together what one run came to.
    pub(super) fn of(
        outcome: Result<Outcome<Value>, Error>,
        at: Timestamp,
        trace: Trace,
        log: Vec<LogLine>,
        total: Duration,
    ) -> Explanation {
        let (steps, omitted) = trace.into_steps();
        let mut times = Times { total, ..Times::default() };
        for step in &steps {
            match step {
                Step::Limit(consulted) => times.limits += consulted.took,
                Step::Read(_) | Step::Write(_) => times.documents += step.took(),
                Step::Job(queued) => times.jobs += queued.took,
            }
        }
        times.script = total.saturating_sub(times.limits + times.documents + times.jobs);
        Explanation { outcome, at, steps, omitted, log, times }
    }
}

impl Engine {
    /// Runs a call as [`call_values`](Engine::call_values) does, rolls it back whatever it came to, and says what it
    /// asked of limits and documents.
    ///
    /// Nothing is written, so a read-only engine explains as well. What the call logged is in the explanation and goes
    /// nowhere else. Ids and random numbers are not those of the next call.
    ///
    /// Errors: the procedure is unknown, the arguments do not fit, the store failed, the engine is closed. That the
    /// run itself failed is no error here but the explanation's outcome.
    ///
    /// ```
    /// use tollgate::{Arguments, CallOptions, Engine, Step};
    /// let engine = Engine::builder()
    ///     .memory()
    ///     .source("a.rhai", r#"const API = fixed_window("api", 2, "1m"); fn guard(user) { API.enforce(user).remaining }"#)
    ///     .open()?;
    /// let arguments = Arguments::Positional(vec!["ada".into()]);
    /// for _ in 0..5 {
    ///     let explained = engine.explain("guard", arguments.clone(), &CallOptions::new())?;
    ///     let Step::Limit(asked) = &explained.steps[0] else { panic!("the call asks a limit") };
    ///     // Nothing of it stays: it is the first take every time.
    ///     assert_eq!((asked.operation, asked.before.remaining, asked.after.remaining), ("enforce", 2, 1));
    /// }
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn explain(&self, procedure: &str, arguments: Arguments, options: &CallOptions) -> Result<Explanation, Error> {
        self.check_open()?;
        let inner = &*self.inner;
        let loaded = inner.loaded.load_full();
        let now = options.at.unwrap_or_else(|| inner.clock.now());
        let seed = inner.next_seed();
        let budget = options.budget.as_ref().unwrap_or(&inner.budget);
        let patience = options.deadline.map_or(budget.time, |deadline| deadline.min(budget.time));
        let mut clashes = 0;
        loop {
            let mut transaction = inner.database.begin(tracing(clashes), now, budget.quota());
            transaction.begin_trace();
            let mut call =
                Call::new(transaction, inner.catalogue.clone(), options.caller.clone(), seed, budget.clone());
            call.set_handlers(loaded.handlers.clone());
            // Each run has all its time: an explanation that others' commits made late would explain nothing.
            call.set_deadline(Deadline::after(patience));
            let begun = Stopwatch::start();
            let finished = loaded.program.run(procedure, arguments.clone(), call);
            let total = begun.elapsed();
            let mut call = finished.call;
            let (trace, log) = (call.transaction.end_trace(), std::mem::take(&mut call.log));
            // Dropped, and so rolled back, before anything else is done; it may hold the commit lock.
            drop(call);
            let outcome = match finished.ending {
                // What never began has nothing to explain.
                Ending::Failed(error @ (Error::UnknownProcedure { .. } | Error::BadArguments { .. })) => {
                    return Err(error);
                }
                Ending::Fault(Fault::Clash) if clashes <= MOST_CLASHES => {
                    clashes += 1;
                    continue;
                }
                ending => ended(ending)?,
            };
            return Ok(Explanation::of(outcome, now, trace, log, total));
        }
    }
}

/// How a run begins that is traced and has clashed so often. It may write, on a read-only engine too: it never commits.
pub(super) fn tracing(clashes: u32) -> Mode {
    if clashes >= MOST_CLASHES { Mode::Alone } else { Mode::Optimistic }
}

/// The outcome that an ending stands for. Errors: the store failed.
pub(super) fn ended(ending: Ending) -> Result<Result<Outcome<Value>, Error>, Error> {
    match ending {
        Ending::Returned(value) => Ok(Ok(Outcome::Returned(value))),
        Ending::Denied(refusal) | Ending::Aborted(refusal) => Ok(Ok(Outcome::Refused(refusal))),
        Ending::Failed(error) => Ok(Err(error)),
        Ending::Fault(fault @ Fault::Budget(_)) => Ok(Err(fault_error(fault))),
        Ending::Fault(fault) => Err(fault_error(fault)),
    }
}
