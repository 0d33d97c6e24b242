//! `tollgate plan`: what a deploy would change, before it is done.

use anyhow::Result;
use clap::Args;
use tollgate::{
    BucketMove, BucketsPlan, Change, CollectionPlan, Engine, LimitPlan, Plan, ProcedurePlan, SettingPlan, Value,
};

use super::console::Console;
use super::exit::Exit;
use super::place::Place;
use super::{Folder, Strictness, check, format};

/// Shows what a deploy of a folder would change, and who gains or loses tokens by it. Nothing is written.
#[derive(Args)]
pub(crate) struct PlanOf {
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    strictness: Strictness,
}

impl PlanOf {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let folder = place.folder(self.folder.dir.as_deref())?;
        let engine = match place.open_to_look()? {
            Some(engine) => engine,
            None => {
                console.note("there is no store yet: a deploy makes it");
                Engine::builder().memory().source("nothing.rhai", "").read_only().open()?
            }
        };
        let plan = engine.plan(&folder)?;
        let warned = check::warn(&folder, console)?;
        if console.json {
            console.record(&plan)?;
        } else {
            for line in lines(&plan) {
                console.line(line)?;
            }
        }
        engine.close()?;
        self.strictness.judge(warned, "a deploy would store nothing")?;
        Ok(Exit::Returned)
    }
}

/// The plan for people.
fn lines(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(match (&plan.unloadable, plan.against) {
        (Some(why), _) => format!("{why}; shown as if no release were stored"),
        (None, Some(number)) => format!("against release {number}"),
        (None, None) => "no release is stored yet".to_owned(),
    });
    if plan.is_empty() {
        lines.push("nothing changes".to_owned());
    }
    for (title, of_kind) in [
        ("procedures", plan.procedures.iter().flat_map(procedure).collect::<Vec<_>>()),
        ("limits", plan.limits.iter().flat_map(limit).collect()),
        ("collections", plan.collections.iter().flat_map(collection).collect()),
    ] {
        if !of_kind.is_empty() {
            lines.push(title.to_owned());
            lines.extend(of_kind.into_iter().map(|line| format!("  {line}")));
        }
    }
    let undeclared = &plan.undeclared;
    if undeclared.buckets > 0 {
        let more = if undeclared.limits > undeclared.names.len() as u64 { ", …" } else { "" };
        lines.push(format!(
            "not compared: {} of limits that no file declares ({}{more}); those that procedures build are known when they run",
            many(undeclared.buckets, "live bucket"),
            format::plain(&undeclared.names.join(", ")),
        ));
    }
    lines
}

fn procedure(plan: &ProcedurePlan) -> Vec<String> {
    let (before, after) = (plan.before.as_deref().unwrap_or_default(), plan.after.as_deref().unwrap_or_default());
    if plan.change != Change::Changed {
        return vec![format!("{} {}", sign(plan.change), if after.is_empty() { before } else { after })];
    }
    let mut differs = Vec::new();
    if plan.body {
        differs.push("its body".to_owned());
    }
    differs.extend(plan.helpers.iter().map(|helper| format!("`{helper}`")));
    let mut line = format!("{} {before}", sign(plan.change));
    if before != after {
        line.push_str(&format!(" → {after}"));
    }
    if !differs.is_empty() {
        line.push_str(&format!(": {}", differs.join(", ")));
    }
    vec![line]
}

fn limit(plan: &LimitPlan) -> Vec<String> {
    let buckets = &plan.buckets;
    let described = plan.after.as_deref().or(plan.before.as_deref()).unwrap_or_default();
    let mut lines = vec![format!("{} {}: {described}", sign(plan.change), format::plain(&plan.limit))];
    lines.extend(plan.settings.iter().map(|one| format!("    {}", setting(one))));
    if buckets.live > 0 {
        let live = many(buckets.live, "live bucket");
        let what = match plan.change {
            Change::Added => format!("{live}: what was spent under this name counts"),
            Change::Removed => format!("{live}: no take asks for them, and they expire"),
            _ => format!("{live}: {}", moves(buckets)),
        };
        lines.push(format!("    {what}"));
        lines.extend(notes(buckets).into_iter().map(|note| format!("    {note}")));
    }
    lines
}

fn moves(buckets: &BucketsPlan) -> String {
    let tokens = |n: u64, word: &str| if n == 0 { String::new() } else { format!(" ({} {word})", many(n, "token")) };
    let verb = |n: u64, verb: &str| if n == 1 { format!("1 {verb}s") } else { format!("{n} {verb}") };
    format!(
        "{}{}, {}{}, {}",
        verb(buckets.gain, "gain"),
        tokens(buckets.tokens_gained, "more"),
        verb(buckets.lose, "lose"),
        tokens(buckets.tokens_lost, "less"),
        verb(buckets.stay, "stay"),
    )
}

fn notes(buckets: &BucketsPlan) -> Vec<String> {
    let mut notes = Vec::new();
    let moved = |list: &[BucketMove]| {
        let one = |one: &BucketMove| format!("{} {} → {}", one.key, one.before, one.after);
        list.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    for (title, list) in [("gain most", &buckets.winners), ("lose most", &buckets.losers)] {
        if !list.is_empty() {
            notes.push(format!("{title}: {}", moved(list)));
        }
    }
    for (n, what) in [
        (buckets.afresh, "afresh: of another kind, or keys are stored otherwise"),
        (buckets.unblocked, "no longer blocked"),
        (buckets.overridden, "with an override, which wins over the file"),
        (buckets.overrides_lost, "with an override that would no longer hold"),
    ] {
        if n > 0 {
            notes.push(format!("{n} {what}"));
        }
    }
    notes
}

fn collection(plan: &CollectionPlan) -> Vec<String> {
    let kept = if plan.change == Change::Removed { " (its documents stay)" } else { "" };
    let mut lines = vec![format!("{} {}{kept}", sign(plan.change), format::plain(&plan.collection))];
    lines.extend(plan.settings.iter().map(|one| format!("    {}", setting(one))));
    for index in &plan.indexes {
        let mut line = format!("    {} index {}", sign(index.change), format::plain(&index.index));
        if index.unique {
            line.push_str(", unique");
        }
        if index.change == Change::Removed {
            line.push_str(" (it stays until it is dropped)");
        }
        if index.reads > 0 {
            line.push_str(&format!(": its build reads {}", many(index.reads, "document")));
        }
        lines.push(line);
    }
    if plan.retimed > 0 {
        lines.push(format!("    the expiry of {} is set anew", many(plan.retimed, "document")));
    }
    lines
}

/// A setting before and after, such as `rate 10 → 100`.
fn setting(plan: &SettingPlan) -> String {
    let text = |value: &Option<Value>| match value {
        Some(Value::Text(text)) => format::plain(text),
        Some(other) => format::value(other),
        None => "none".to_owned(),
    };
    format!("{} {} → {}", plan.setting, text(&plan.before), text(&plan.after))
}

fn sign(change: Change) -> &'static str {
    match change {
        Change::Added => "+",
        Change::Removed => "-",
        _ => "~",
    }
}

fn many(n: u64, noun: &str) -> String {
    format::count(usize::try_from(n).unwrap_or(usize::MAX), noun)
}
