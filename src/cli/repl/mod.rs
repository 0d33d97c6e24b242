//! `tollgate repl`: procedures and limits at a prompt, or a session read from stdin.

mod candidate;
mod clock;
mod command;
mod desk;
mod dot;
mod helper;
mod highlight;
mod history;
mod interactive;
mod repeat;
mod script;
mod shown;
mod watch;

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::FalseyValueParser;
use tollgate::{Budget, Engine, EngineBuilder, Timestamp, parse_duration};

use super::argument;
use super::console::Console;
use super::exit::Exit;
use super::place::{Need, Place};

use clock::ReplClock;
use desk::Desk;

/// A prompt that takes Rhai; each input is one call. Type `.help` there. When stdin or stdout is not a terminal it
/// reads a session, one input a line or block, prints one JSON object an input, and exits with the worst outcome.
#[derive(Args)]
pub(crate) struct Repl {
    /// Stop a session read from stdin at its first error.
    #[arg(long, env = "TOLLGATE_BAIL", value_parser = FalseyValueParser::new())]
    bail: bool,
    /// What `caller()` gives: a JSON object, or `@file`.
    #[arg(long, value_name = "JSON", env = "TOLLGATE_CALLER")]
    caller: Option<String>,
    /// Begin with the clock standing at this instant.
    #[arg(long, value_name = "TIME", env = "TOLLGATE_AT", value_parser = argument::instant)]
    at: Option<Timestamp>,
    /// How long an input may run, such as `10s`, however many steps it takes [default: 100ms and 200000 steps].
    #[arg(long, value_name = "DUR", env = "TOLLGATE_DEADLINE", value_parser = parse_duration)]
    deadline: Option<Duration>,
}

impl Repl {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let clock = ReplClock::new();
        if let Some(at) = self.at {
            clock.stand_at(at);
        }
        let (deadline, its_clock) = (self.deadline, clock.clone());
        let set = move |builder: EngineBuilder| {
            let builder = builder.clock(its_clock.clone());
            match deadline {
                Some(time) => builder.budget(Budget { time, operations: u64::MAX, ..Budget::default() }),
                None => builder,
            }
        };
        let (engine, source) = place.open_with(Need::Procedures, &set)?;
        warn(&engine, console);
        let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        // A session that nobody sits at is read by programs.
        console.json |= !interactive;
        let here = place.clone();
        let opener = move |path: &Path| here.at(path).open_with(Need::Procedures, &set);
        let mut desk = Desk::new(engine, source, clock, Box::new(opener));
        if let Some(caller) = &self.caller {
            desk.set_caller(argument::object("--caller", caller)?);
        }
        let exit = if interactive {
            desk.timer = true;
            interactive::run(&mut desk, console)?
        } else {
            desk.bail = self.bail;
            script::run_stdin(&mut desk, console)?
        };
        desk.engine.close()?;
        Ok(exit)
    }
}

/// Shows what a person should look at in the loaded files. What no procedure uses, the prompt may.
fn warn(engine: &Engine, console: &Console) {
    let mut warnings = engine.warnings();
    warnings.retain(|warning| !["unused_limit", "unused_collection"].contains(&warning.code));
    warnings.iter().for_each(|warning| console.diagnostic(warning));
}
