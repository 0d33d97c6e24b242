//! `tollgate explain`: a call run and rolled back, and everything it asked on the way.

use anyhow::Result;
use clap::Args;
use tollgate::{Explanation, Times};

use super::call::Call;
use super::console::{Console, Style};
use super::exit::Exit;
use super::place::{Need, Place};
use super::{format, log, steps};

/// Runs the call as `call` does, and rolls it back whatever it comes to. The exit code is that of the call.
#[derive(Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    call: Call,
}

impl Explain {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        // Nothing is to be written, so no store is made either.
        let engine = place.open(Need::ExistingProcedures)?;
        let (arguments, options) = (self.call.arguments(&engine)?, self.call.options()?);
        let explained = engine.explain(&self.call.procedure, arguments, &options)?;
        explained.log.iter().for_each(|line| console.note(log::text(line)));
        if console.json {
            console.record(&explained)?;
        } else {
            console.line(text(&explained, console))?;
        }
        let exit = match &explained.outcome {
            Ok(outcome) => Exit::of_outcome(outcome),
            Err(error) => {
                console.engine_error(error);
                Exit::of_engine_error(error)
            }
        };
        engine.close()?;
        Ok(exit)
    }
}

/// An explanation for people: the outcome, the steps, the times.
pub(crate) fn text(explained: &Explanation, console: &Console) -> String {
    let mut lines = vec![match &explained.outcome {
        Ok(outcome) if outcome.is_refused() => console.styled(Style::Warning, &format::outcome(outcome)),
        Ok(outcome) => format::outcome(outcome),
        // What failed and where is an error, and goes with errors.
        Err(_) => console.styled(Style::Bad, "failed"),
    }];
    lines.push(format!("at {}, rolled back", explained.at));
    lines.extend(steps::lines(&explained.steps, explained.omitted, explained.at, console));
    let Times { total, limits, documents, jobs, script, .. } = explained.times;
    let part = format::elapsed;
    let times = format!(
        "time {}: limits {}, documents {}, jobs {}, script {}",
        part(total),
        part(limits),
        part(documents),
        part(jobs),
        part(script)
    );
    lines.push(console.styled(Style::Dim, &times));
    lines.join("\n")
}
