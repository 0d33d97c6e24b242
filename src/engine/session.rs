//! Sessions: inputs evaluated one after another, with variables that last and transactions over several inputs.

use std::sync::Arc;

use crate::error::Error;
use crate::outcome::Outcome;
use crate::script::{self, Call, CancelHandle, Ending, LogLine};
use crate::transaction::{Fault, Mode, Transaction};
use crate::value::{Map, Value};

use super::contention::MOST_CLASHES;
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
    open: Option<Transaction>,
    log: Vec<LogLine>,
    name: String,
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
        }
    }
}

impl Session {
    /// Evaluates one input as a call of its own, or as a step of the open transaction. A step that fails or aborts
    /// undoes only itself.
    pub fn eval(&mut self, input: &str) -> Result<Outcome<Value>, Error> {
        self.engine.check_open()?;
        self.cancel.check()?;
        let program = self.engine.inner.loaded.load().program.clone();
        if !Arc::ptr_eq(&program, &self.program) {
            self.variables.rebase(&program);
            self.program = program;
        }
        match self.open.take() {
            Some(open) => self.step(open, input),
            None => self.one_call(input),
        }
    }

    fn one_call(&mut self, input: &str) -> Result<Outcome<Value>, Error> {
        let engine = self.engine.clone();
        let inner = &*engine.inner;
        let (now, seed) = (inner.clock.now(), inner.next_seed());
        let mut clashes = 0;
        loop {
            let transaction = inner.database.begin(inner.mode(clashes, false), now, inner.budget.quota());
            let before = self.variables.clone();
            let (ending, call) = self.run(transaction, seed, input);
            let (outcome, keep) = match judge(ending) {
                Ok(judged) => judged,
                Err(Fault::Clash) if clashes <= MOST_CLASHES => {
                    clashes += 1;
                    self.variables = before;
                    continue;
                }
                Err(fault) => return Err(fault_error(fault)),
            };
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

    fn step(&mut self, mut open: Transaction, input: &str) -> Result<Outcome<Value>, Error> {
        let savepoint = open.savepoint();
        let seed = self.engine.inner.next_seed();
        let (ending, call) = self.run(open, seed, input);
        let Call { mut transaction, log, .. } = *call;
        match judge(ending) {
            Ok((outcome, keep)) => {
                if !keep {
                    transaction.rollback_to(savepoint);
                }
                self.log.extend(log);
                self.open = Some(transaction);
                outcome
            }
            // What was read before is no longer so, and cannot be read again: the transaction is over.
            Err(Fault::Clash) => Err(lost()),
            Err(fault) => Err(fault_error(fault)),
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
        self.open = Some(inner.database.begin(mode, inner.clock.now(), inner.budget.quota()));
        Ok(())
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
        self.open.take().ok_or_else(|| Error::Config("no transaction is open: begin one first".into()))
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

fn lost() -> Error {
    Error::Config("others changed what this transaction had read, so it was rolled back: begin it again".into())
}
