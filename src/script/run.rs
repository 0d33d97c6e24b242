//! Runs: a procedure called with arguments, from the door to the ending.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rhai::{Caches, Dynamic, EvalAltResult, EvalContext, Expression, GlobalRuntimeState, Position, Scope};

use crate::error::{Error, Frame, ScriptError};
use crate::outcome::RefusalKind;
use crate::time::Deadline;

use super::arguments::Arguments;
use super::budget::Budget;
use super::call::{Autocommit, Call, Current, Detached, End, Entered, LogLine};
use super::ending::{Ending, Finished};
use super::program::{Compiled, Program};
use super::{cancel, convert, diagnostic, failure};

/// The interpreter's state for one program, kept by a thread between calls: what functions resolved to stays resolved.
struct Machine {
    program: u64,
    global: GlobalRuntimeState,
    caches: Caches,
}

thread_local! {
    static MACHINE: Cell<Option<Box<Machine>>> = const { Cell::new(None) };
}

impl Machine {
    fn of(program: &Program) -> Box<Machine> {
        match MACHINE.take() {
            Some(mut machine) if machine.program == program.id => {
                machine.global.num_operations = 0;
                machine.global.level = 0;
                machine.global.scope_level = 0;
                machine.global.always_search_scope = false;
                machine.global.lib.truncate(1);
                machine
            }
            _ => {
                let mut global = program.engine.new_global_runtime_state();
                global.lib.push(program.library.clone());
                Box::new(Machine { program: program.id, global, caches: Caches::new() })
            }
        }
    }
}

/// What the interpreter came to, or the text of a panic.
type Evaluated = Result<Dynamic, Box<EvalAltResult>>;

impl Program {
    /// Runs a procedure and hands the call back with how it ended.
    pub(crate) fn run(&self, procedure: &str, arguments: Arguments, call: Box<Call>) -> Finished {
        let entered = self.place_of(procedure).and_then(|place| {
            let arguments = arguments.enter(&self.procedures()[place], self.budget().argument_bytes)?;
            Ok((&self.compiled[place], arguments))
        });
        match entered {
            Ok((compiled, arguments)) => {
                let entered = Entered::new(Current::Running(call));
                let result = self.evaluate(compiled, arguments);
                self.conclude(procedure, &compiled.path, entered, result)
            }
            Err(error) => Finished { ending: Ending::Failed(error), call },
        }
    }

    /// Whether a procedure is there and takes these arguments.
    pub(crate) fn check_arguments(&self, procedure: &str, arguments: Arguments) -> Result<(), Error> {
        let place = self.place_of(procedure)?;
        arguments.enter(&self.procedures()[place], self.budget().argument_bytes).map(drop)
    }

    /// Runs a procedure outside of any call: each host function in it is a transaction of its own.
    ///
    /// Returns the value or the error, and the lines it logged.
    pub(crate) fn run_detached(
        &self,
        procedure: &str,
        arguments: Arguments,
        budget: &Budget,
        autocommit: Arc<dyn Autocommit>,
    ) -> (Result<crate::value::Value, Error>, Vec<LogLine>) {
        let entered = self.place_of(procedure).and_then(|place| {
            let arguments = arguments.enter(&self.procedures()[place], self.budget().argument_bytes)?;
            Ok((&self.compiled[place], arguments))
        });
        let (compiled, arguments) = match entered {
            Ok(entered) => entered,
            Err(error) => return (Err(error), Vec::new()),
        };
        let deadline = Deadline::after(budget.time);
        let detached = Detached { autocommit, budget: budget.clone(), deadline, log: Vec::new(), end: None };
        let entered = Entered::new(Current::Detached(Box::new(detached)));
        let result = self.evaluate(compiled, arguments);
        let (log, end) = match entered.leave() {
            Current::Detached(detached) => (detached.log, detached.end),
            _ => (Vec::new(), None),
        };
        let value = match (end, result) {
            (Some(End::Spent { message, position }), result) => {
                Err(Error::Budget(self.stopped(procedure, &compiled.path, "budget", message, position, result.err())))
            }
            (_, Ok(value)) => self.value(procedure, &compiled.path, &value),
            (_, Err(error)) => Err(failure::of_run(self, self, procedure, &compiled.path, *error)),
        };
        (value, log)
    }

    fn evaluate(&self, compiled: &Compiled, arguments: Vec<Dynamic>) -> Evaluated {
        let mut machine = Machine::of(self);
        let mut scope = Scope::new();
        for (name, value) in compiled.parameters.iter().zip(arguments) {
            scope.push_dynamic(name.clone(), value);
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            let context =
                &mut EvalContext::new(&self.engine, &mut machine.global, &mut machine.caches, &mut scope, None);
            context.eval_expression_tree(&Expression::from(&compiled.body))
        }));
        match result {
            Ok(result) => {
                MACHINE.set(Some(machine));
                returned(result)
            }
            // The state of the interpreter is not to be trusted after a panic; the next call makes a new one.
            Err(_) => panicked(),
        }
    }

    /// Ends a run: what is recorded in the call decides first, what the interpreter returned second.
    pub(super) fn conclude(&self, function: &str, path: &Arc<str>, entered: Entered, result: Evaluated) -> Finished {
        let mut call = match entered.leave() {
            Current::Running(call) => call,
            // Every guard puts back what it took, so the call is there; if not, the process cannot go on.
            _ => unreachable!("a run keeps its call"),
        };
        let ending = match call.end.take() {
            Some(End::Refused(refusal)) => match refusal.kind {
                RefusalKind::Denied => Ending::Denied(refusal),
                RefusalKind::Aborted => Ending::Aborted(refusal),
            },
            Some(End::Spent { message, position }) => {
                Ending::Failed(Error::Budget(self.stopped(function, path, "budget", message, position, result.err())))
            }
            Some(End::Cancelled) => {
                let message = cancel::MESSAGE.to_owned();
                let script = self.stopped(function, path, cancel::CODE, message, Position::NONE, result.err());
                Ending::Failed(Error::Cancelled(script))
            }
            Some(End::Fault(fault)) => Ending::Fault(fault),
            None => match result {
                Ok(value) => match self.value(function, path, &value) {
                    Ok(value) => Ending::Returned(value),
                    Err(error) => Ending::Failed(error),
                },
                Err(error) => Ending::Failed(failure::of_run(self, self, function, path, *error)),
            },
        };
        Finished { ending, call }
    }

    fn value(&self, function: &str, path: &Arc<str>, value: &Dynamic) -> Result<crate::value::Value, Error> {
        convert::from_dynamic(value).map_err(|why| {
            Error::Script(Box::new(ScriptError {
                code: "bad_value".into(),
                message: format!("`{function}` cannot return this: {why}"),
                stack: vec![Frame { function: function.to_owned(), position: None }],
                position: self.procedure(function).map(|procedure| procedure.position.clone()),
                source_line: self
                    .procedure(function)
                    .and_then(|procedure| self.line(path, procedure.position.line))
                    .map(str::to_owned),
                ..ScriptError::default()
            }))
        })
    }

    /// The error of a run that was stopped: placed where the interpreter stopped, else where it was recorded.
    fn stopped(
        &self,
        function: &str,
        path: &Arc<str>,
        code: &str,
        message: String,
        position: Position,
        stopped: Option<Box<EvalAltResult>>,
    ) -> Box<ScriptError> {
        let mut script = match stopped.map(|error| failure::of_run(self, self, function, path, *error)) {
            Some(Error::Script(script) | Error::Budget(script)) => script,
            _ => Box::new(ScriptError {
                stack: vec![Frame { function: function.to_owned(), position: diagnostic::position(path, position) }],
                ..ScriptError::default()
            }),
        };
        script.code = code.to_owned();
        script.message = message;
        script.hint = None;
        script.value = crate::value::Value::Null;
        script
    }
}

/// A `return` of the outermost body comes up as an error.
pub(super) fn returned(result: Evaluated) -> Evaluated {
    match result {
        Err(error) => match *error {
            EvalAltResult::Return(value, _) | EvalAltResult::Exit(value, _) => Ok(value),
            other => Err(Box::new(other)),
        },
        ok => ok,
    }
}

pub(super) fn panicked() -> Evaluated {
    let message = "the engine panicked while it ran this; the call was undone".to_owned();
    Err(super::raised::Raised::new("panic", message).into_error(Position::NONE))
}
