//! Steps of a call for people: what it asked and wrote, and what was changed by it in the end.

use tollgate::{Consulted, Filling, Looked, Map, Queued, Step, Timestamp, Value, Wrote};

use super::console::{Console, Style};
use super::format;
use super::limits::override_text;

/// The steps of a call that began at `now`, numbered, each with its details below it.
pub(crate) fn lines(steps: &[Step], omitted: u64, now: Timestamp, console: &Console) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (head, details) = match step {
            Step::Limit(consulted) => limit(consulted, now),
            Step::Read(looked) => read(looked),
            Step::Write(wrote) => write(wrote),
            Step::Job(queued) => job(queued, now),
            // A step of a kind that this command line does not know is still counted.
            _ => ("a step of another kind".to_owned(), Vec::new()),
        };
        lines.push(format!("{:>3}  {}", index + 1, console.styled(Style::Strong, &head)));
        lines.extend(details.into_iter().map(|detail| format!("     {detail}")));
        if step.is_undone() {
            lines.push("     taken back by the call itself".to_owned());
        }
    }
    if omitted > 0 {
        lines.push(format!("     and {} more", format::count(clamped(omitted), "step")));
    }
    if steps.is_empty() {
        lines.push("     no limit was asked, and no document or job read or written".to_owned());
    }
    lines
}

/// Whether a step changed something, and that stays.
pub(crate) fn is_change(step: &Step) -> bool {
    let wrote = match step {
        Step::Limit(consulted) => consulted.wrote,
        Step::Write(_) | Step::Job(_) => true,
        _ => false,
    };
    wrote && !step.is_undone()
}

/// What the steps changed that stays, a line each: `+` what is new, `-` what is gone, `~` what is different.
pub(crate) fn changes(steps: &[Step], now: Timestamp, console: &Console) -> Vec<String> {
    let kept = steps.iter().filter(|step| is_change(step));
    kept.filter_map(|step| match step {
        Step::Limit(Consulted { name, key, before, after, .. }) => {
            let line = format!("~ {name} {}  {}", format::value(&key.to_value()), levels(before, after));
            Some(console.styled(Style::Warning, &line))
        }
        Step::Write(Wrote { collection, id, before, after, .. }) => {
            let id = Value::from(id.as_str()).to_json();
            Some(match (before, after) {
                (None, Some(after)) => {
                    let fields = format::value(&Value::Map(after.clone()));
                    console.styled(Style::Good, &format!("+ {collection} {id}  {fields}"))
                }
                (Some(before), None) => {
                    let fields = format::value(&Value::Map(before.clone()));
                    console.styled(Style::Bad, &format!("- {collection} {id}  {fields}"))
                }
                (before, after) => {
                    let fields = before.as_ref().zip(after.as_ref()).map(|(old, new)| fields(old, new));
                    let line = format!("~ {collection} {id}  {}", fields.unwrap_or_default().join(", "));
                    console.styled(Style::Warning, &line)
                }
            })
        }
        Step::Job(queued) => {
            let sign = if queued.due_at.is_some() { "+" } else { "-" };
            let line = format!("{sign} job {} {}{}", queued.handler, queued.id, due(queued, now));
            Some(console.styled(if sign == "+" { Style::Good } else { Style::Bad }, &line))
        }
        _ => None,
    })
    .collect()
}

/// The fields that differ, each as `name: old -> new`.
fn fields(before: &Map, after: &Map) -> Vec<String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), format::value);
    names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| format!("{}: {} -> {}", format::plain(name), shown(before.get(name)), shown(after.get(name))))
        .collect()
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
    let head = format!("write: {} {} {}", wrote.change, wrote.collection, Value::from(wrote.id.as_str()).to_json());
    let detail = match (&wrote.before, &wrote.after) {
        (Some(before), Some(after)) => fields(before, after).join(", "),
        (None, Some(document)) | (Some(document), None) => format::value(&Value::Map(document.clone())),
        (None, None) => return (head, Vec::new()),
    };
    (head, vec![detail])
}

fn job(queued: &Queued, now: Timestamp) -> Shown {
    let head = format!("{} {} {}{}", queued.operation, queued.handler, queued.id, due(queued, now));
    (head, Vec::new())
}

fn due(queued: &Queued, now: Timestamp) -> String {
    match queued.due_at {
        None => String::new(),
        Some(at) if at <= now => ", due now".to_owned(),
        Some(at) => format!(", due in {}", format::span(at.millis_since(now))),
    }
}

/// A count for people, of which more than fit in memory there cannot be.
fn clamped(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
