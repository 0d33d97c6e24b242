//! What dot-commands do.

use anyhow::Result;
use serde_json::json;
use tollgate::{JobFilter, JobState, Value};

use super::super::console::Console;
use super::super::exit::NotFoundError;
use super::super::format;
use super::super::jobs::{self, JobRecord};
use super::super::limits::{self, BucketRecord, LimitRecord};
use super::super::place::Source;
use super::super::procs::ProcedureRecord;
use super::desk::{Answer, Desk, to_json};
use super::dot::{ALL, Dot, Setting, Watching};
use super::watch;

/// Buckets that `.limits NAME` shows.
const MOST_BUCKETS: usize = 100;
/// Jobs that `.jobs` shows.
const MOST_JOBS: usize = 20;

/// Does what a dot-command says, and returns its answer where it has one.
pub(super) fn run(desk: &mut Desk, dot: Dot, console: &mut Console) -> Result<Option<Answer>> {
    Ok(match dot {
        Dot::Help(pattern) => Some(help(desk, pattern.as_deref())),
        Dot::Procs => Some(procedures(desk)),
        Dot::Limits { name, key } => Some(limits(desk, name.as_deref(), key.as_deref())?),
        Dot::Colls => Some(collections(desk)?),
        Dot::Jobs(state) => Some(jobs(desk, state)?),
        Dot::Source(procedure) => Some(source(desk, &procedure)?),
        Dot::Clock => {
            let now = desk.engine.now().to_string();
            Some(Answer { value: json!(now), text: now })
        }
        Dot::At(instant) => silently(|| desk.clock.stand_at(instant)),
        Dot::Advance(by) => silently(|| desk.clock.advance(by)),
        Dot::Freeze => silently(|| desk.clock.freeze()),
        Dot::Real => silently(|| desk.clock.make_real()),
        Dot::Begin => {
            desk.session.begin()?;
            None
        }
        Dot::Commit => {
            desk.session.commit()?;
            None
        }
        Dot::Rollback(None) => {
            desk.session.rollback()?;
            None
        }
        Dot::Rollback(Some(name)) => {
            desk.session.rollback_to(&name)?;
            None
        }
        Dot::Savepoint(name) => Some(savepoint(desk, name)?),
        Dot::Caller(Some(caller)) => silently(|| desk.set_caller(caller)),
        Dot::Caller(None) => {
            let caller = Value::Map(desk.caller.clone());
            Some(Answer { value: to_json(&caller), text: format::value(&caller) })
        }
        Dot::Reload => {
            match &desk.source {
                Source::Folder(folder) => desk.engine.load_dir(folder)?,
                Source::Release => desk.engine.reload()?,
            }
            super::warn(&desk.engine, console);
            None
        }
        Dot::Set(setting, wanted) => {
            let place = match setting {
                Setting::Diff => &mut desk.diff,
                Setting::Trace => &mut desk.trace,
                Setting::Json => &mut console.json,
                Setting::Timer => &mut desk.timer,
                Setting::Bail => &mut desk.bail,
            };
            match wanted {
                Some(wanted) => silently(|| *place = wanted),
                None => {
                    let on = *place;
                    Some(Answer { value: json!(on), text: if on { "on".into() } else { "off".into() } })
                }
            }
        }
        Dot::Open(path) => {
            desk.open(&path, console)?;
            None
        }
        Dot::Watch(Watching::Begin { limit, key }) => Some(watch::begin(desk, &limit, &key, console)?),
        Dot::Watch(Watching::Show) => Some(watch::show(desk, console)?),
        Dot::Watch(Watching::End) => silently(|| desk.watched.clear()),
        // The desk does these itself: they change how it reads.
        Dot::Read(_) | Dot::Explain(_) | Dot::Exit(_) => None,
    })
}

/// Marks a place in the open transaction; one without a name gets the next number.
fn savepoint(desk: &mut Desk, name: Option<String>) -> Result<Answer> {
    let taken = desk.session.savepoints();
    let name = name.unwrap_or_else(|| {
        let free = (1..).map(|number: u64| number.to_string()).find(|number| !taken.contains(number));
        free.unwrap_or_default()
    });
    desk.session.savepoint(&name)?;
    Ok(Answer { text: format!("savepoint {name}"), value: json!(name) })
}

fn silently(work: impl FnOnce()) -> Option<Answer> {
    work();
    None
}

fn help(desk: &Desk, pattern: Option<&str>) -> Answer {
    let procedures = desk.engine.procedures();
    let commands = ALL.iter().map(|(usage, what)| ((*usage).to_owned(), (*what).to_owned()));
    let matching: Vec<(String, String)> = match pattern {
        None => {
            let repeat = ("N INPUT".to_owned(), "repeat an input and sum up".to_owned());
            commands.chain([repeat]).collect()
        }
        Some(pattern) => commands
            .chain(procedures.iter().map(|procedure| (procedure.signature.clone(), doc_line(&procedure.documentation))))
            .filter(|(usage, what)| usage.contains(pattern) || what.contains(pattern))
            .collect(),
    };
    let width = matching.iter().map(|(usage, _)| usage.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> =
        matching.iter().map(|(usage, what)| format!("{usage:width$}  {what}").trim_end().to_owned()).collect();
    let value = matching.iter().map(|(usage, what)| json!({ "usage": usage, "what": what })).collect();
    let text = if lines.is_empty() { "nothing matches".to_owned() } else { lines.join("\n") };
    Answer { value, text }
}

fn doc_line(documentation: &str) -> String {
    documentation.lines().next().unwrap_or_default().to_owned()
}

fn procedures(desk: &Desk) -> Answer {
    let procedures = desk.engine.procedures();
    let width = procedures.iter().map(|procedure| procedure.signature.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = procedures
        .iter()
        .map(|procedure| format!("{:width$}  {}", procedure.signature, doc_line(&procedure.documentation)))
        .map(|line| line.trim_end().to_owned())
        .collect();
    let records: Vec<ProcedureRecord> = procedures.iter().map(ProcedureRecord::of).collect();
    Answer { value: to_json(&records), text: or_none(lines.join("\n"), "no procedures") }
}

fn limits(desk: &Desk, name: Option<&str>, key: Option<&str>) -> Result<Answer> {
    let Some(name) = name else {
        let declared = desk.engine.limits();
        let records: Vec<LimitRecord> = declared.iter().map(LimitRecord::of).collect();
        let text = if declared.is_empty() { "no limits".to_owned() } else { limits::limits_table(&declared) };
        return Ok(Answer { value: to_json(&records), text });
    };
    let limit = desk.engine.limit(name)?;
    let buckets = match key {
        Some(key) => vec![limits::look(&desk.engine, &limit, &limits::read_key(key)?)?],
        None => limits::page(&desk.engine, &limit, None, MOST_BUCKETS)?,
    };
    let records: Vec<BucketRecord> = buckets.iter().map(|bucket| BucketRecord::of(&limit, bucket)).collect();
    let text = match buckets.is_empty() {
        true => "no live buckets: nothing is spent".to_owned(),
        false => limits::buckets_table(&buckets, desk.engine.now()),
    };
    Ok(Answer { value: to_json(&records), text })
}

fn collections(desk: &Desk) -> Result<Answer> {
    let names = desk.engine.collections()?;
    Ok(Answer { value: json!(names), text: or_none(names.join("\n"), "no collections") })
}

fn jobs(desk: &Desk, state: Option<JobState>) -> Result<Answer> {
    let filter = JobFilter { state, ..JobFilter::default() };
    let jobs = desk.engine.jobs(&filter, None, MOST_JOBS)?;
    let records: Vec<JobRecord> = jobs.iter().map(JobRecord::of).collect();
    let text = match jobs.is_empty() {
        true => "no jobs".to_owned(),
        false => jobs::table(&jobs, desk.engine.now()),
    };
    Ok(Answer { value: to_json(&records), text })
}

fn source(desk: &Desk, procedure: &str) -> Result<Answer> {
    match desk.engine.source_of(procedure) {
        Some(text) => Ok(Answer { text: text.trim_end().to_owned(), value: json!(text) }),
        None => {
            Err(NotFoundError(format!("no procedure is named `{procedure}`: `.procs` lists those there are")).into())
        }
    }
}

fn or_none(text: String, none: &str) -> String {
    if text.is_empty() { none.to_owned() } else { text }
}
