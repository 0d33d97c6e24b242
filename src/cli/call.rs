//! `tollgate call`: one call of a procedure.

use anyhow::Result;
use clap::Args;
use tollgate::{Arguments, CallOptions, Engine, Outcome, Timestamp};

use super::argument;
use super::console::{Console, Style};
use super::exit::Exit;
use super::format;
use super::place::{Need, Place};
use super::record::OutcomeRecord;

/// One call. Values are JSON where they read as JSON, else text; where a procedure asks for a string they stay text.
#[derive(Args)]
pub(crate) struct Call {
    /// The procedure.
    #[arg(value_name = "PROC")]
    pub(crate) procedure: String,
    /// Arguments by position, or all by name as `name=value`.
    #[arg(value_name = "ARGS", allow_negative_numbers = true, conflicts_with = "args")]
    words: Vec<String>,
    /// Arguments as a JSON array or object, `@file`, or `-` for stdin.
    #[arg(long, value_name = "JSON", env = "TOLLGATE_ARGS")]
    args: Option<String>,
    /// What `caller()` gives: a JSON object, or `@file`.
    #[arg(long, value_name = "JSON", env = "TOLLGATE_CALLER")]
    caller: Option<String>,
    /// The instant of the call, instead of now.
    #[arg(long, value_name = "TIME", env = "TOLLGATE_AT", value_parser = argument::instant)]
    at: Option<Timestamp>,
}

impl Call {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let options = self.options()?;
        let engine = place.open(Need::Procedures)?;
        let arguments = self.arguments(&engine)?;
        let result = engine.call_values(&self.procedure, arguments, &options);
        let exit = match result {
            Ok(outcome) => {
                print(&outcome, console)?;
                Exit::of_outcome(&outcome)
            }
            Err(error) => {
                if console.json {
                    console.record(&OutcomeRecord::of_error(&error))?;
                }
                console.engine_error(&error);
                Exit::of_engine_error(&error)
            }
        };
        engine.close()?;
        Ok(exit)
    }

    /// Who calls, and when.
    pub(crate) fn options(&self) -> Result<CallOptions> {
        let mut options = CallOptions::new();
        if let Some(caller) = &self.caller {
            options = options.caller(argument::object("--caller", caller)?);
        }
        if let Some(at) = self.at {
            options = options.at(at);
        }
        Ok(options)
    }

    /// The arguments, read for the procedure of this engine.
    pub(crate) fn arguments(&self, engine: &Engine) -> Result<Arguments> {
        match &self.args {
            Some(given) => argument::document(given),
            None => {
                let procedures = engine.procedures();
                let procedure = procedures.iter().find(|procedure| procedure.name == self.procedure);
                argument::typed(&self.words, procedure)
            }
        }
    }
}

fn print(outcome: &Outcome, console: &mut Console) -> Result<()> {
    if console.json {
        console.record(&OutcomeRecord::of_outcome(outcome))?;
        return Ok(());
    }
    let text = format::outcome(outcome);
    let line = if outcome.is_refused() { console.styled(Style::Warning, &text) } else { text };
    console.line(line)?;
    Ok(())
}
