//! `tollgate explain`: a call run and rolled back, and everything it asked on the way.

use anyhow::Result;
use clap::Args;
use tollgate::{Consulted, Explanation, Filling, Looked, Step, Times, Timestamp, Value, Wrote};

use super::call::Call;
use super::console::{Console, Style};
use super::exit::Exit;
use super::limits::override_text;
use super::place::{Need, Place};
use super::{format, log};

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
    for (index, step) in explained.steps.iter().enumerate() {
        let (head, details) = match step {
            Step::Limit(consulted) => limit(consulted, explained.at),
            Step::Read(looked) => read(looked),
            Step::Write(wrote) => write(wrote),
            // A step of a kind that this command line does not know is still counted.
            _ => ("a step of another kind".to_owned(), Vec::new()),
        };
        lines.push(format!("{:>3}  {}", index + 1, console.styled(Style::Strong, &head)));
        lines.extend(details.into_iter().map(|detail| format!("     {detail}")));
    }
    if explained.omitted > 0 {
        lines.push(format!("     and {} more", format::count(clamped(explained.omitted), "step")));
    }
    if explained.steps.is_empty() {
        lines.push("     no limit was asked, and no document read or written".to_owned());
    }
    let Times { total, limits, documents, script, .. } = explained.times;
    let part = format::elapsed;
    let times = format!(
        "time {}: limits {}, documents {}, script {}",
        part(total),
        part(limits),
        part(documents),
        part(script)
    );
    lines.push(console.styled(Style::Dim, &times));
    lines.join("\n")
}

type Shown = (String, Vec<String>);

fn limit(consulted: &Consulted, now: Timestamp) -> Shown {
    let Consulted { operation, name, key, before, after, passes_at, .. } = consulted;
    let cost = consulted.cost.map_or_else(String::new, |cost| format!(", cost {cost}"));
    let head = format!("{operation} {name} {}{cost}: {}", format::value(&key.to_value()), answer(consulted));
    let mut details = vec![format!("{}; {}", levels(before, after), next(*passes_at, now))];
    details.push(format!("admits {}", consulted.describe));
    if let Some(ruling) = &consulted.ruling {
        details.push(format!("override: {}", override_text(ruling)));
    }
    if consulted.undone {
        details.push("taken back by the call itself".to_owned());
    }
    (head, details)
}

fn answer(consulted: &Consulted) -> String {
    let Some(decision) = &consulted.decision else { return "done".to_owned() };
    if !decision.allowed {
        return match decision.reason.as_str() {
            "limited" => "refused".to_owned(),
            reason => format!("refused, {reason}"),
        };
    }
    if !decision.would_refuse.is_empty() {
        return "allowed, would be refused".to_owned();
    }
    if decision.delay > 0 {
        return format!("allowed, work waits {}", format::span(decision.delay));
    }
    // Of several limits at once, one that allows is not charged when another refuses.
    let together = matches!(consulted.operation, "take_all" | "enforce_all");
    if together && !consulted.wrote { "allowed, not spent".to_owned() } else { "allowed".to_owned() }
}

fn levels(before: &Filling, after: &Filling) -> String {
    if before.limit == after.limit {
        return format!("{} -> {} of {} left", before.remaining, after.remaining, after.limit);
    }
    // An override set by the call itself changes the most there can be.
    format!("{} of {} -> {} of {} left", before.remaining, before.limit, after.remaining, after.limit)
}

fn next(passes_at: Option<Timestamp>, now: Timestamp) -> String {
    match passes_at {
        None => "never passes".to_owned(),
        Some(at) if at <= now => "passes again at once".to_owned(),
        Some(at) => format!("passes next in {}, at {at}", format::span(at.millis_since(now))),
    }
}

fn read(looked: &Looked) -> Shown {
    let Looked { operation, collection, filter, .. } = looked;
    let served = looked.index.as_ref().map_or_else(|| "scan".to_owned(), |index| format!("index {index}"));
    let head = format!("{operation} {collection} {}: {served}", format::value(&Value::Map(filter.clone())));
    let (scanned, returned) = (clamped(looked.scanned), clamped(looked.returned));
    let mut details = vec![
        format!("{} scanned, {returned} returned", format::count(scanned, "row")),
        format!("served by {}", format::plain(&looked.plan)),
    ];
    details.extend(looked.advice.as_ref().map(|advice| format!("better: {}", format::plain(advice))));
    (head, details)
}

fn write(wrote: &Wrote) -> Shown {
    let head = format!("{} {} {}", wrote.change, wrote.collection, Value::from(wrote.id.as_str()).to_json());
    let details = if wrote.undone { vec!["taken back by the call itself".to_owned()] } else { Vec::new() };
    (format!("write: {head}"), details)
}

/// A count for people, of which more than fit in memory there cannot be.
fn clamped(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
