//! Sessions: inputs evaluated one after another, with variables that last and transactions over several inputs.

use std::sync::Arc;

use crate::bucket;
use crate::error::Error;
use crate::limit::{Cost, Decision, Key, Limit};
use crate::outcome::Outcome;
use crate::script::{self, Call, CancelHandle, Ending, LogLine};
use crate::time::Stopwatch;
use crate::trace::Step;
use crate::transaction::{Fault, Mode, Savepoint, Transaction};
use crate::value::{Map, Value};

use super::contention::MOST_CLASHES;
use super::explain::{Explanation, ended, tracing};
use super::transaction::checked;
use super::{Engine, fault_error};

/// What a REPL works with: each input is one call, or one step of a transaction that was begun.
///
/// ```
/// use tollgate::{Engine, Outcome, Value};
/// let engine = Engine::builder().memory().open()?;
/// let mut session = engine.session();
/// let _ = session.eval("let n = 2;")?;
/// assert_eq!(session.eval("n + 1")?, Outcome::Returned(Value::Int(3)));
/// # Ok::<(), tollgate::Error>(())
/// ```
pub struct Session {
    engine: Engine,
    variables: script::Session,
    program: Arc<script::Program>,
    caller: Arc<Map>,
    cancel: CancelHandle,
    open: Option<Open>,
    log: Vec<LogLine>,
    name: String,
    /// What the last input did, when that is wanted.
    steps: Option<(Vec<Step>, u64)>,
}

/// A transaction over several inputs.
struct Open {
    transaction: Transaction,
    /// Those that one can go back to, each with its name.
    savepoints: Vec<(String, Savepoint)>,
}

impl Engine {
    /// Begins a session.
    pub fn session(&self) -> Session {
        let program = self.inner.loaded.load().program.clone();
        Session {
            engine: self.clone(),
            variables: script::Session::new(&program),
            program,
            caller: Arc::default(),
            cancel: CancelHandle::new(),
            open: None,
            log: Vec::new(),
            name: "<input>".into(),
            steps: None,
        }
    }
}

impl Session {
    /// Evaluates one input as a call of its own, or as a step of the open transaction. A step that fails or aborts
    /// undoes only itself.
    pub fn eval(&mut self, input: &str) -> Result<Outcome<Value>, Error> {
        self.prepare()?;
        match self.open.take() {
            Some(open) => self.step(open, input),
            None => self.one_call(input),
        }
    }

    /// Evaluates one input as [`eval`](Session::eval) does, rolls it back whatever it came to, variables too, and says
    /// what it asked of limits and documents. In an open transaction it sees what that wrote.
    ///
    /// Errors: the store failed, others changed what the open transaction had read, the engine is closed. That the input
    /// itself failed is no error here but the explanation's outcome.
    ///
    /// ```
    /// use tollgate::{Engine, Step};
    /// let engine = Engine::builder().memory().open()?;
    /// let mut session = engine.session();
    /// let explained = session.explain(r#"insert("users", #{ name: "ada" })"#)?;
    /// assert!(matches!(&explained.steps[..], [Step::Write(wrote)] if wrote.collection == "users"));
    /// assert_eq!(session.eval(r#"count("users", #{})"#)?, tollgate::Outcome::Returned(0.into()));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn explain(&mut self, input: &str) -> Result<Explanation, Error> {
        self.prepare()?;
        let engine = self.engine.clone();
        let (now, seed) = (engine.inner.clock.now(), engine.inner.next_seed());
        let before = self.variables.clone();
        let mut clashes = 0;
        loop {
            let (mut transaction, savepoints) = match self.open.take() {
                Some(open) => (open.transaction, Some(open.savepoints)),
                None => (engine.inner.database.begin(tracing(clashes), now, engine.inner.budget.quota()), None),
            };
            let savepoint = transaction.savepoint();
            transaction.begin_trace();
            let begun = Stopwatch::start();
            let (ending, call) = self.run(transaction, seed, input);
            let total = begun.elapsed();
            self.variables = before.clone();
            let Call { mut transaction, log, .. } = *call;
            let (at, trace) = (transaction.now(), transaction.end_trace());
            match (ending, savepoints) {
                (Ending::Fault(Fault::Clash), Some(_)) => return Err(lost()),
                (Ending::Fault(Fault::Clash), None) if clashes <= MOST_CLASHES => {
                    clashes += 1;
                    continue;
                }
                (ending, savepoints) => {
                    if let Some(savepoints) = savepoints {
                        transaction.rollback_to(savepoint);
                        self.open = Some(Open { transaction, savepoints });
                    }
                    return Ok(Explanation::of(ended(ending)?, at, trace, log, total));
                }
            }
        }
    }

    /// The decision that a take of 1 would get now; in an open transaction by what that wrote.
    ///
    /// Errors: the store failed, others changed what the open transaction had read, the engine is closed.
    pub fn peek(&mut self, limit: &Limit, key: &Key) -> Result<Decision, Error> {
        self.engine.check_open()?;
        let key = checked(key.clone())?;
        let Some(mut open) = self.open.take() else { return self.engine.read(|tx| tx.peek(limit, key.clone(), 1)) };
        match bucket::peek(&mut open.transaction, limit, &key, Cost::ONE) {
            Ok(decision) => {
                self.open = Some(open);
                Ok(decision)
            }
            Err(Fault::Clash) => Err(lost()),
            Err(fault) => Err(fault_error(fault)),
        }
    }

    /// Checks that there is something to run on, and takes the procedures that are loaded now.
    fn prepare(&mut self) -> Result<(), Error> {
        self.engine.check_open()?;
        self.cancel.check()?;
        let program = self.engine.inner.loaded.load().program.clone();
        if !Arc::ptr_eq(&program, &self.program) {
            self.variables.rebase(&program);
            self.program = program;
        }
        Ok(())
    }

    fn one_call(&mut self, input: &str) -> Result<Outcome<Value>, Error> {
        let engine = self.engine.clone();
        let inner = &*engine.inner;
        let (now, seed) = (inner.clock.now(), inner.next_seed());
        let mut clashes = 0;
        loop {
            let mut transaction = inner.database.begin(inner.mode(clashes, false), now, inner.budget.quota());
            self.begin_steps(&mut transaction);
            let before = self.variables.clone();
            let (ending, mut call) = self.run(transaction, seed, input);
            let (outcome, keep) = match judge(ending) {
                Ok(judged) => judged,
                Err(Fault::Clash) if clashes <= MOST_CLASHES => {
                    clashes += 1;
                    self.variables = before;
                    continue;
                }
                Err(fault) => return Err(fault_error(fault)),
            };
            self.end_steps(&mut call.transaction, keep);
            let Call { transaction, log, .. } = *call;
            if keep {
                match transaction.commit() {
                    Ok(committed) => engine.await_durability(committed, None)?,
                    Err(Fault::Clash) if clashes <= MOST_CLASHES => {
                        clashes += 1;
                        self.variables = before;
                        continue;
                    }
                    Err(fault) => return Err(fault_error(fault)),
                }
            }
            self.log.extend(log);
            return outcome;
        }
    }

    fn step(&mut self, open: Open, input: &str) -> Result<Outcome<Value>, Error> {
        let Open { mut transaction, savepoints } = open;
        let savepoint = transaction.savepoint();
        self.begin_steps(&mut transaction);
        let seed = self.engine.inner.next_seed();
        let (ending, call) = self.run(transaction, seed, input);
        let Call { mut transaction, log, .. } = *call;
        match judge(ending) {
            Ok((outcome, keep)) => {
                self.end_steps(&mut transaction, keep);
                if !keep {
                    transaction.rollback_to(savepoint);
                }
                self.log.extend(log);
                self.open = Some(Open { transaction, savepoints });
                outcome
            }
            // What was read before is no longer so, and cannot be read again: the transaction is over.
            Err(Fault::Clash) => Err(lost()),
            Err(fault) => Err(fault_error(fault)),
        }
    }

    fn begin_steps(&mut self, transaction: &mut Transaction) {
        if let Some(steps) = &mut self.steps {
            *steps = (Vec::new(), 0);
            transaction.begin_trace();
        }
    }

    /// Takes the steps of an input that is done; what was written by one that is not kept was taken back.
    fn end_steps(&mut self, transaction: &mut Transaction, keep: bool) {
        if let Some(kept) = &mut self.steps {
            *kept = transaction.end_trace().into_steps();
            if !keep {
                kept.0.iter_mut().for_each(Step::undo);
            }
        }
    }

    fn run(&mut self, transaction: Transaction, seed: [u8; 32], input: &str) -> (Ending, Box<Call>) {
        let inner = &self.engine.inner;
        let (catalogue, caller, budget) = (inner.catalogue.clone(), self.caller.clone(), inner.budget.clone());
        let mut call = Call::new(transaction, catalogue, caller, seed, budget);
        call.set_cancel(Some(self.cancel.clone()));
        call.set_handlers(inner.loaded.load().handlers.clone());
        let finished = self.program.eval(input, &self.name, &mut self.variables, call);
        (finished.ending, finished.call)
    }

    /// Begins a transaction over the inputs that follow.
    ///
    /// Errors: [`Error::Config`], when one is open.
    pub fn begin(&mut self) -> Result<(), Error> {
        if self.open.is_some() {
            return Err(Error::Config("a transaction is open: commit it or roll it back first".into()));
        }
        let inner = &self.engine.inner;
        let mode = if inner.read_only { Mode::ReadOnly } else { Mode::Optimistic };
        let transaction = inner.database.begin(mode, inner.clock.now(), inner.budget.quota());
        self.open = Some(Open { transaction, savepoints: Vec::new() });
        Ok(())
    }

    /// Marks a place in the open transaction to go back to; one of the same name is moved here.
    ///
    /// Errors: [`Error::Config`], when no transaction is open.
    ///
    /// ```
    /// use tollgate::{Engine, Outcome};
    /// let engine = Engine::builder().memory().open()?;
    /// let mut session = engine.session();
    /// session.begin()?;
    /// let _ = session.eval(r#"insert("t", #{ n: 1 })"#)?;
    /// session.savepoint("one")?;
    /// let _ = session.eval(r#"insert("t", #{ n: 2 })"#)?;
    /// session.rollback_to("one")?;
    /// session.commit()?;
    /// assert_eq!(session.eval(r#"count("t", #{})"#)?, Outcome::Returned(1.into()));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn savepoint(&mut self, name: &str) -> Result<(), Error> {
        let open = self.open.as_mut().ok_or_else(none_open)?;
        open.savepoints.retain(|(other, _)| other != name);
        let savepoint = open.transaction.savepoint();
        open.savepoints.push((name.to_owned(), savepoint));
        Ok(())
    }

    /// Undoes what the open transaction wrote since a savepoint, which stays, as those before it do. Variables of the
    /// session stay as they are.
    ///
    /// Errors: [`Error::Config`], when no transaction is open or it has no savepoint of that name.
    pub fn rollback_to(&mut self, name: &str) -> Result<(), Error> {
        let open = self.open.as_mut().ok_or_else(none_open)?;
        let Some(at) = open.savepoints.iter().position(|(other, _)| other == name) else {
            let known: Vec<String> = open.savepoints.iter().map(|(name, _)| format!("`{name}`")).collect();
            let known = if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
            return Err(Error::Config(format!("the transaction has no savepoint `{name}`: {known}")));
        };
        open.savepoints.truncate(at + 1);
        open.transaction.rollback_to(open.savepoints[at].1);
        Ok(())
    }

    /// The names of the open transaction's savepoints, the newest last.
    pub fn savepoints(&self) -> Vec<String> {
        let savepoints = self.open.as_ref().map(|open| &*open.savepoints).unwrap_or_default();
        savepoints.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Commits the open transaction.
    ///
    /// Errors: [`Error::Config`], when none is open, or when others changed what it read: then it is rolled back.
    pub fn commit(&mut self) -> Result<(), Error> {
        match self.take_open()?.commit() {
            Ok(committed) => self.engine.await_durability(committed, None),
            Err(Fault::Clash) => Err(lost()),
            Err(fault) => Err(fault_error(fault)),
        }
    }

    /// Rolls the open transaction back.
    ///
    /// Errors: [`Error::Config`], when none is open.
    pub fn rollback(&mut self) -> Result<(), Error> {
        self.take_open().map(drop)
    }

    fn take_open(&mut self) -> Result<Transaction, Error> {
        self.open.take().map(|open| open.transaction).ok_or_else(none_open)
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// What `caller()` gives from here on.
    pub fn set_caller(&mut self, caller: Map) {
        self.caller = Arc::new(caller);
    }

    /// What stops the input that runs: see [`CancelHandle`]. Once cancelled, it is to be reset before the next input.
    pub fn set_cancel(&mut self, cancel: CancelHandle) {
        self.cancel = cancel;
    }

    /// What stands for the file in errors, such as `<stdin>`.
    pub fn set_name(&mut self, name: &str) {
        self.name = name.to_owned();
    }

    /// The lines logged since this was last asked.
    pub fn take_log(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.log)
    }

    /// Whether to keep what each input does; see [`take_steps`](Session::take_steps).
    pub fn set_tracing(&mut self, wanted: bool) {
        self.steps = wanted.then(|| self.steps.take().unwrap_or_default());
    }

    /// What the last input did, and how many more steps there were than are kept: 10 000 are. Nothing, unless it is
    /// wanted. What an input wrote that failed or aborted is marked as undone.
    ///
    /// ```
    /// use tollgate::{Engine, Step};
    /// let engine = Engine::builder().memory().open()?;
    /// let mut session = engine.session();
    /// session.set_tracing(true);
    /// let _ = session.eval(r#"insert("t", #{ n: 1 })"#)?;
    /// assert!(matches!(&session.take_steps().0[..], [Step::Write(wrote)] if wrote.change == "insert"));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn take_steps(&mut self) -> (Vec<Step>, u64) {
        self.steps.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The names of the session's variables, the newest last.
    pub fn variables(&self) -> Vec<String> {
        self.variables.variables()
    }

    /// Whether an input is the beginning of something longer, so that the reader should go on.
    pub fn is_incomplete(input: &str) -> bool {
        script::incomplete(input)
    }
}

/// What the caller sees, and whether the writes are kept.
type Judged = (Result<Outcome<Value>, Error>, bool);

fn judge(ending: Ending) -> Result<Judged, Fault> {
    Ok(match ending {
        Ending::Returned(value) => (Ok(Outcome::Returned(value)), true),
        Ending::Denied(refusal) => (Ok(Outcome::Refused(refusal)), true),
        Ending::Aborted(refusal) => (Ok(Outcome::Refused(refusal)), false),
        Ending::Failed(error) => (Err(error), false),
        Ending::Fault(fault) => return Err(fault),
    })
}

fn none_open() -> Error {
    Error::Config("no transaction is open: begin one first".into())
}

fn lost() -> Error {
    Error::Config("others changed what this transaction had read, so it was rolled back: begin it again".into())
}
