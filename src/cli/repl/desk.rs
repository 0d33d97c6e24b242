//! The desk: what a REPL holds between inputs, and how one input is worked through.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tollgate::{CancelHandle, Engine, Error, Map, Outcome, Position, Session, Stopwatch, Value};

use super::super::console::{Console, Style};
use super::super::exit::{Exit, usage};
use super::super::place::Source;
use super::super::record::OutcomeRecord;
use super::super::{explain, format, log, steps};
use super::clock::ReplClock;
use super::dot::Dot;
use super::repeat::{self, Tally};
use super::watch::{self, Watched};
use super::{command, shown};

/// What a REPL holds between inputs.
pub(crate) struct Desk {
    pub(super) engine: Engine,
    pub(super) session: Session,
    pub(super) source: Source,
    pub(super) clock: Arc<ReplClock>,
    /// Stops the input that runs.
    pub(super) cancel: CancelHandle,
    pub(super) caller: Map,
    pub(super) timer: bool,
    pub(super) bail: bool,
    /// Whether to show what each input changed.
    pub(super) diff: bool,
    /// Whether to show everything each input touched.
    pub(super) trace: bool,
    /// The buckets whose levels are shown after each input.
    pub(super) watched: Vec<Watched>,
    opener: Opener,
    /// How many inputs there were.
    inputs: u64,
    /// How deep `.read` is in files.
    pub(super) depth: usize,
    /// The worst that an input came to; see [`Exit::worse`].
    pub(super) worst: Exit,
}

/// Opens another store, with the clock and the procedures of this session.
pub(crate) type Opener = Box<dyn Fn(&Path) -> Result<(Engine, Source)>>;

/// An input, and where it begins.
pub(crate) struct Input<'a> {
    pub(crate) text: &'a str,
    /// What stands for its file, such as `<stdin>`.
    pub(crate) name: &'a str,
    /// Its first line in that file, from 1.
    pub(crate) line: usize,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With the next input.
    Next,
    /// The input failed.
    Failed,
    /// Leave, with the worst outcome so far or as the user chose.
    Leave(Option<u8>),
}

/// What a dot-command answers.
pub(crate) struct Answer {
    pub(crate) value: serde_json::Value,
    pub(crate) text: String,
}

#[derive(Serialize)]
struct InputRecord {
    input: u64,
    #[serde(flatten)]
    outcome: OutcomeRecord,
}

#[derive(Serialize)]
struct CommandRecord<'a> {
    input: u64,
    command: &'a str,
    value: serde_json::Value,
}

impl Desk {
    pub(crate) fn new(engine: Engine, source: Source, clock: Arc<ReplClock>, opener: Opener) -> Desk {
        let mut session = engine.session();
        let cancel = CancelHandle::new();
        session.set_cancel(cancel.clone());
        Desk {
            engine,
            session,
            source,
            clock,
            cancel,
            caller: Map::new(),
            timer: false,
            bail: false,
            diff: false,
            trace: false,
            watched: Vec::new(),
            opener,
            inputs: 0,
            depth: 0,
            worst: Exit::Returned,
        }
    }

    /// Sets what `caller()` gives from here on.
    pub(crate) fn set_caller(&mut self, caller: Map) {
        self.caller = caller.clone();
        self.session.set_caller(caller);
    }

    /// Goes over to another store. Nothing is left behind where that cannot be opened.
    ///
    /// Errors: a transaction is open, the other store cannot be opened.
    pub(super) fn open(&mut self, path: &Path, console: &Console) -> Result<()> {
        if self.session.in_transaction() {
            return Err(usage("a transaction is open: commit it or roll it back first".to_owned()));
        }
        let (engine, source) = (self.opener)(path)?;
        super::warn(&engine, console);
        let left = std::mem::replace(&mut self.engine, engine);
        self.source = source;
        self.session = self.engine.session();
        self.session.set_cancel(self.cancel.clone());
        self.session.set_caller(self.caller.clone());
        self.watched.clear();
        Ok(left.close()?)
    }

    /// The prompt: a star in a transaction, the time when it is not the real one.
    pub(crate) fn prompt(&self) -> String {
        let star = if self.session.in_transaction() { "*" } else { "" };
        match self.clock.is_real() {
            true => format!("tollgate{star}> "),
            false => format!("tollgate{star} {}> ", self.engine.now()),
        }
    }

    /// Works through one input. Errors: stdout cannot be written.
    pub(crate) fn submit(&mut self, input: &Input<'_>, console: &mut Console) -> io::Result<Flow> {
        self.inputs += 1;
        let number = self.inputs;
        let flow = if input.text.trim_start().starts_with('.') {
            self.dot(input, number, console)?
        } else {
            let flow = match repeat::split(input.text) {
                Some((times, text)) => self.repeat(times, &Input { text, ..*input }, number, console)?,
                None => self.call(input, number, console)?,
            };
            watch::follow(self, number, console)?;
            flow
        };
        console.flush()?;
        Ok(flow)
    }

    /// Reports an input that never became one.
    pub(crate) fn reject(&mut self, input: &Input<'_>, message: &str, console: &mut Console) -> io::Result<()> {
        self.inputs += 1;
        self.fault(self.inputs, input, "syntax", message, Exit::Script, console)?;
        console.flush()
    }

    fn call(&mut self, input: &Input<'_>, number: u64, console: &mut Console) -> io::Result<Flow> {
        let begun = Stopwatch::start();
        self.session.set_tracing(self.diff || self.trace);
        let result = self.eval(input, console);
        let flow = match result {
            Ok(outcome) => {
                self.worst = self.worst.worse(Exit::of_outcome(&outcome));
                if console.json {
                    let outcome = OutcomeRecord::of_outcome(&outcome);
                    console.record(&InputRecord { input: number, outcome })?;
                } else {
                    self.show(&outcome, begun.elapsed(), console)?;
                }
                Flow::Next
            }
            Err(error) => self.failed(number, input, error, console)?,
        };
        self.show_steps(number, console)?;
        Ok(flow)
    }

    /// Shows what the last input touched and changed, as far as that is wanted.
    fn show_steps(&mut self, number: u64, console: &mut Console) -> io::Result<()> {
        if !self.diff && !self.trace {
            return Ok(());
        }
        let now = self.engine.now();
        let (done, omitted) = self.session.take_steps();
        if self.trace {
            let text = steps::lines(&done, omitted, now, console).join("\n");
            self.answer(number, "trace", Answer { value: to_json(&done), text }, console)?;
        }
        if self.diff {
            let lines = steps::changes(&done, now, console);
            let text = if lines.is_empty() { "nothing changed".to_owned() } else { lines.join("\n") };
            let changed: Vec<_> = done.iter().filter(|step| steps::is_change(step)).collect();
            self.answer(number, "diff", Answer { value: to_json(&changed), text }, console)?;
        }
        Ok(())
    }

    /// Runs an input for its explanation alone.
    fn explain(&mut self, text: &str, input: &Input<'_>, number: u64, console: &mut Console) -> io::Result<Flow> {
        self.session.set_name(input.name);
        // Where the command stood are blanks, so that the columns of an error are those of the line.
        let command = input.text.chars().count() - text.chars().count();
        let mut explained = match self.session.explain(&format!("{}{text}", " ".repeat(command))) {
            Ok(explained) => explained,
            Err(error) => return self.failed(number, input, error, console),
        };
        explained.log.iter().for_each(|line| console.note(log::text(line)));
        let (value, text) = (to_json(&explained), explain::text(&explained, console));
        self.answer(number, "explain", Answer { value, text }, console)?;
        match &mut explained.outcome {
            Ok(outcome) => self.worst = self.worst.worse(Exit::of_outcome(outcome)),
            Err(error) => {
                self.worst = self.worst.worse(Exit::of_engine_error(error));
                shift(error, input);
                self.report(error, input, console);
            }
        }
        Ok(Flow::Next)
    }

    fn eval(&mut self, input: &Input<'_>, console: &Console) -> Result<Outcome<Value>, Error> {
        self.session.set_name(input.name);
        let result = self.session.eval(input.text);
        for line in self.session.take_log() {
            console.note(log::text(&line));
        }
        result
    }

    fn show(&self, outcome: &Outcome<Value>, took: Duration, console: &mut Console) -> io::Result<()> {
        let took = match self.timer {
            true => console.styled(Style::Dim, &format!("  ({})", format::elapsed(took))),
            false => String::new(),
        };
        let text = match outcome {
            Outcome::Returned(value) => shown::value(value, self.engine.now()),
            Outcome::Refused(_) => format::outcome(outcome),
        };
        match outcome {
            // Nothing came back, as of a `let`: there is nothing to say but the time.
            Outcome::Returned(Value::Null) => console.line(format!("{}{took}", console.styled(Style::Dim, &text))),
            Outcome::Returned(_) => console.line(format!("{text}{took}")),
            Outcome::Refused(_) => console.line(format!("{}{took}", console.styled(Style::Warning, &text))),
        }
    }

    fn repeat(&mut self, times: u32, input: &Input<'_>, number: u64, console: &mut Console) -> io::Result<Flow> {
        if times > repeat::MOST {
            let message = format!("{times} repeats are too many: the most is {}", repeat::MOST);
            return self.fault(number, input, "usage", &message, Exit::Usage, console);
        }
        self.session.set_tracing(false);
        let begun = Stopwatch::start();
        let mut tally = Tally::default();
        for _ in 0..times {
            match self.eval(input, console) {
                Ok(outcome) => {
                    self.worst = self.worst.worse(Exit::of_outcome(&outcome));
                    tally.add(&outcome);
                }
                Err(error) => return self.failed(number, input, error, console),
            }
        }
        let took = match self.timer {
            true => format!("  ({})", format::elapsed(begun.elapsed())),
            false => String::new(),
        };
        // A tally has no part that JSON cannot hold.
        let value = serde_json::to_value(&tally).unwrap_or_default();
        self.answer(number, "repeat", Answer { value, text: format!("{}{took}", tally.text()) }, console)?;
        Ok(Flow::Next)
    }

    fn dot(&mut self, input: &Input<'_>, number: u64, console: &mut Console) -> io::Result<Flow> {
        let dot = match Dot::parse(input.text) {
            Ok(dot) => dot,
            Err(message) => return self.fault(number, input, "usage", &message, Exit::Usage, console),
        };
        let (name, moves) = (dot.answers_as(), dot.moves_levels());
        if let Dot::Exit(code) = dot {
            return Ok(Flow::Leave(code));
        }
        if let Dot::Read(path) = dot {
            return super::script::run_file(self, &path, input, number, console);
        }
        if let Dot::Explain(text) = dot {
            return self.explain(&text, input, number, console);
        }
        match command::run(self, dot, console) {
            Ok(Some(answer)) => {
                self.answer(number, name, answer, console)?;
                Ok(Flow::Next)
            }
            Ok(None) => {
                if moves {
                    watch::follow(self, number, console)?;
                }
                Ok(Flow::Next)
            }
            Err(error) => match error.downcast::<Error>() {
                Ok(error) => self.failed(number, input, error, console),
                Err(error) => {
                    let exit = Exit::of_error(&error);
                    let code = if exit == Exit::NotFound { "not_found" } else { "usage" };
                    self.fault(number, input, code, &format!("{error:#}"), exit, console)
                }
            },
        }
    }

    pub(super) fn answer(
        &mut self,
        number: u64,
        command: &str,
        answer: Answer,
        console: &mut Console,
    ) -> io::Result<()> {
        if console.json {
            console.record(&CommandRecord { input: number, command, value: answer.value })
        } else {
            console.line(answer.text)
        }
    }

    /// Reports an error of the engine: at its place in the input, in the data when programs read it.
    fn failed(&mut self, number: u64, input: &Input<'_>, mut error: Error, console: &mut Console) -> io::Result<Flow> {
        self.worst = self.worst.worse(Exit::of_engine_error(&error));
        shift(&mut error, input);
        if console.json {
            console.record(&InputRecord { input: number, outcome: OutcomeRecord::of_error(&error) })?;
        }
        self.report(&error, input, console);
        Ok(Flow::Failed)
    }

    /// Writes an error of the engine for people, at its place in the input.
    fn report(&self, error: &Error, input: &Input<'_>, console: &Console) {
        if console.draw(error) {
            return;
        }
        match first_place(error) {
            Some(place) if &*place.file == input.name => console.fault(&error.to_string()),
            // The error came up out of a procedure: say first which input led there.
            _ => {
                let (line, column) = call_site(error, input.name).unwrap_or((input.line, 1));
                console.fault(&format!("{}:{line}:{column}: {error}", input.name));
            }
        }
    }

    /// Reports an input that did not reach the engine.
    pub(super) fn fault(
        &mut self,
        number: u64,
        input: &Input<'_>,
        code: &str,
        message: &str,
        exit: Exit,
        console: &mut Console,
    ) -> io::Result<Flow> {
        self.worst = self.worst.worse(exit);
        if console.json {
            console.record(&InputRecord { input: number, outcome: OutcomeRecord::of_fault(code, message) })?;
        }
        console.fault(&format!("{}:{}:1: {message}", input.name, input.line));
        Ok(Flow::Failed)
    }
}

/// A record as JSON; ours have no part that JSON cannot hold.
pub(super) fn to_json(record: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(record).unwrap_or_default()
}

/// Moves the positions of an error from lines of the input to lines of its file.
fn shift(error: &mut Error, input: &Input<'_>) {
    let by = input.line.saturating_sub(1);
    let shift = |position: &mut Option<Position>| {
        if let Some(position) = position
            && &*position.file == input.name
        {
            position.line += by;
        }
    };
    match error {
        Error::Script(script) | Error::Budget(script) | Error::Cancelled(script) => {
            shift(&mut script.position);
            script.stack.iter_mut().for_each(|frame| shift(&mut frame.position));
        }
        Error::Compile(faults) => faults.iter_mut().for_each(|fault| shift(&mut fault.position)),
        _ => {}
    }
}

fn first_place(error: &Error) -> Option<&Position> {
    match error {
        Error::Script(script) | Error::Budget(script) | Error::Cancelled(script) => script.position.as_ref(),
        Error::Compile(faults) => faults.first().and_then(|fault| fault.position.as_ref()),
        _ => None,
    }
}

/// Where in the input the call was that led to the error.
fn call_site(error: &Error, name: &str) -> Option<(usize, usize)> {
    let (Error::Script(script) | Error::Budget(script) | Error::Cancelled(script)) = error else { return None };
    let frame = script.stack.iter().rev().find_map(|frame| frame.position.as_ref().filter(|p| &*p.file == name))?;
    Some((frame.line, frame.column))
}
