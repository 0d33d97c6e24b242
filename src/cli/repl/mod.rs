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

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::FalseyValueParser;
use tollgate::{Budget, Timestamp, parse_duration};

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
        let (engine, source) = place.open_with(Need::Procedures, |builder| {
            let builder = builder.clock(clock.clone());
            match self.deadline {
                Some(time) => builder.budget(Budget { time, operations: u64::MAX, ..Budget::default() }),
                None => builder,
            }
        })?;
        engine.warnings().iter().for_each(|warning| console.diagnostic(warning));
        let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        // A session that nobody sits at is read by programs.
        console.json |= !interactive;
        let mut desk = Desk::new(engine.clone(), source, clock);
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
        engine.close()?;
        Ok(exit)
    }
}
