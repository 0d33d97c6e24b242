//! Actions: effects that the host registers and workers run, since a procedure can have none.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::error::Error;
use crate::job::{InvalidJob, Job};
use crate::script::{Arguments, Handlers, Program};
use crate::spelling;
use crate::value::{Map, Value};

use super::Engine;

/// What an action says about an attempt. An error is a failed attempt, tried again by the job's backoff.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobAnswer {
    /// Done.
    Done,
    /// It failed: again after this long, or by the job's backoff.
    Retry {
        /// How long to wait.
        after: Option<Duration>,
        /// What went wrong.
        why: String,
    },
    /// It failed and would fail again: given up at once.
    Fail {
        /// What went wrong.
        why: String,
    },
    /// It was too early: again after this long, and this attempt is not counted.
    Snooze(Duration),
}

type Action = Arc<dyn Fn(&Job) -> Result<JobAnswer, String> + Send + Sync>;

/// The actions of an engine, by name.
#[derive(Default)]
pub(super) struct Actions {
    by_name: RwLock<BTreeMap<String, Action>>,
    /// Names of actions that another process has.
    elsewhere: RwLock<BTreeSet<String>>,
}

impl Actions {
    pub(super) fn insert(
        &self,
        name: &str,
        handler: impl Fn(&Job) -> Result<JobAnswer, String> + Send + Sync + 'static,
    ) {
        self.by_name.write().insert(name.to_owned(), Arc::new(handler));
    }

    pub(super) fn insert_elsewhere(&self, name: &str) {
        self.elsewhere.write().insert(name.to_owned());
    }

    /// Whether jobs may name it: it is here, or said to be elsewhere.
    fn is_known(&self, name: &str) -> bool {
        self.contains(name) || self.elsewhere.read().contains(name)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.read().contains_key(name)
    }

    fn names(&self) -> Vec<String> {
        self.by_name.read().keys().chain(&*self.elsewhere.read()).cloned().collect()
    }

    /// Runs an action; none when it is not registered. A panic in it is a failed attempt.
    pub(super) fn run(&self, job: &Job) -> Option<Result<JobAnswer, String>> {
        let action = self.by_name.read().get(&job.handler).cloned()?;
        let answer = catch_unwind(AssertUnwindSafe(|| action(job)));
        Some(answer.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(format!("the action panicked: {}", text.unwrap_or("no text")))
        }))
    }
}

/// Who can do jobs while a program is loaded.
pub(super) struct LoadedHandlers {
    pub(super) program: Arc<Program>,
    pub(super) actions: Arc<Actions>,
}

impl Handlers for LoadedHandlers {
    fn check(&self, handler: &str, payload: &Value) -> Result<(), InvalidJob> {
        check_handler(&self.program, &self.actions, handler, payload)
    }
}

/// Refuses a handler that is not there, and a payload that a procedure would not take.
pub(super) fn check_handler(
    program: &Program,
    actions: &Actions,
    handler: &str,
    payload: &Value,
) -> Result<(), InvalidJob> {
    if program.procedure(handler).is_some() {
        let fits = program.check_arguments(handler, Arguments::of_payload(payload.clone()));
        return fits.map_err(|error| InvalidJob::new("bad_arguments", error.to_string()));
    }
    if actions.is_known(handler) {
        return Ok(());
    }
    let actions = actions.names();
    let known = program.procedures().iter().map(|p| p.name.as_str()).chain(actions.iter().map(String::as_str));
    let hint = spelling::nearest(handler, known).map(|near| format!(": did you mean `{near}`?"));
    Err(InvalidJob::new(
        "unknown_handler",
        format!(
            "no procedure and no action is named `{handler}`{}",
            hint.unwrap_or_else(|| ": load the file of the one, or register the other".to_owned())
        ),
    ))
}

impl Engine {
    /// Registers an effect that workers run from the outbox, at least once for each job and under the job's lease;
    /// jobs name it as their handler. It replaces one of the same name. A panic in it is a failed attempt.
    ///
    /// ```
    /// use tollgate::{Engine, JobAnswer, JobOptions};
    /// let engine = Engine::builder().memory().open()?;
    /// engine.action("greet", |job| {
    ///     println!("hello {}", job.payload);
    ///     Ok(JobAnswer::Done)
    /// });
    /// engine.enqueue("greet", "ada", &JobOptions::new())?;
    /// assert_eq!(engine.work_once(10)?.succeeded, 1);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn action(&self, name: &str, handler: impl Fn(&Job) -> Result<JobAnswer, String> + Send + Sync + 'static) {
        self.inner.actions.insert(name, handler);
        self.inner.jobs_changed.raise();
    }

    /// [`Engine::action`] for a handler that is a future. It is awaited on the worker's own thread and on no runtime:
    /// where it needs one, enter it in the handler, as `let _guard = runtime.enter();` does with tokio's.
    ///
    /// ```
    /// use tollgate::{Engine, JobAnswer, JobOptions};
    /// let engine = Engine::builder().memory().open()?;
    /// engine.action_async("greet", |job| async move { Ok(if job.attempt > 0 { JobAnswer::Done } else { unreachable!() }) });
    /// engine.enqueue("greet", (), &JobOptions::new())?;
    /// assert_eq!(engine.work_once(10)?.succeeded, 1);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn action_async<F>(&self, name: &str, handler: impl Fn(Job) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<JobAnswer, String>>,
    {
        self.action(name, move |job| pollster::block_on(handler(job.clone())));
    }

    /// Says that an action of this name runs in a later process: jobs for it are enqueued, and wait.
    ///
    /// ```
    /// use tollgate::{Engine, JobOptions};
    /// let engine = Engine::builder().memory().open()?;
    /// engine.action_elsewhere("push");
    /// engine.enqueue("push", "ada", &JobOptions::new())?;
    /// assert_eq!(engine.work_once(10)?.claimed, 0);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn action_elsewhere(&self, name: &str) {
        self.inner.actions.insert_elsewhere(name);
    }

    /// Registers the action `log`: it writes each job as a JSON object on a line of its own, `{"at", "attempt", "id",
    /// "payload", "queue"}`, and fails the attempt when that cannot be written.
    ///
    /// ```
    /// use tollgate::{Engine, JobOptions};
    /// let engine = Engine::builder().memory().open()?;
    /// engine.log_action(std::io::stderr());
    /// engine.enqueue("log", "hello", &JobOptions::new())?;
    /// assert_eq!(engine.work_once(10)?.succeeded, 1);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn log_action(&self, out: impl Write + Send + 'static) {
        let (out, clock) = (Mutex::new(out), self.inner.clock.clone());
        self.action("log", move |job| {
            let line = Value::Map(Map::from([
                ("at".to_owned(), Value::Text(clock.now().to_string())),
                ("id".to_owned(), Value::Text(job.id.clone())),
                ("attempt".to_owned(), Value::Int(job.attempt)),
                ("queue".to_owned(), Value::Text(job.queue.clone())),
                ("payload".to_owned(), job.payload.clone()),
            ]));
            let mut out = out.lock();
            let written = writeln!(out, "{}", line.to_json()).and_then(|()| out.flush());
            written.map(|()| JobAnswer::Done).map_err(|cause| format!("the line could not be written: {cause}"))
        });
    }

    /// Whether a procedure or an action has this name.
    pub(super) fn has_handler(&self, name: &str) -> bool {
        self.inner.actions.contains(name) || self.inner.loaded.load().program.procedure(name).is_some()
    }
}

impl From<InvalidJob> for Error {
    fn from(invalid: InvalidJob) -> Error {
        Error::Data { code: invalid.code, message: invalid.message, data: Box::default() }
    }
}
