//! `tollgate jobs`: the jobs there are, and what an operator does to one.

use anyhow::Result;
use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};
use serde::Serialize;
use tollgate::{Engine, Job, JobFilter, JobState, Timestamp, Value};

use super::console::Console;
use super::exit::{Exit, NotFoundError};
use super::format;
use super::place::{Need, Place};

/// Lists jobs, the newest first.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Jobs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    wanted: Wanted,
    /// List at most so many.
    #[arg(long, value_name = "N", env = "TOLLGATE_LIMIT", default_value_t = 50)]
    limit: usize,
    /// How many there are in each state, instead.
    #[arg(long, env = "TOLLGATE_COUNTS", value_parser = FalseyValueParser::new())]
    counts: bool,
    /// The schedules that the procedures declare, instead.
    #[arg(long, env = "TOLLGATE_SCHEDULES", value_parser = FalseyValueParser::new(), conflicts_with = "counts")]
    schedules: bool,
}

#[derive(Subcommand)]
enum Action {
    /// One job, with its payload and what went wrong.
    Show {
        /// Its id.
        id: String,
    },
    /// Make a job due now; a finished one begins again from its first attempt.
    Retry {
        /// Its id.
        id: String,
    },
    /// Call a job off.
    Cancel {
        /// Its id.
        id: String,
    },
    /// Remove finished jobs before their time.
    Purge {
        #[command(flatten)]
        wanted: Wanted,
    },
}

/// Which jobs are meant.
#[derive(Args)]
struct Wanted {
    /// In this state: pending, processing, retrying, succeeded, failed, cancelled.
    #[arg(long, value_name = "STATE", env = "TOLLGATE_STATE", value_parser = state)]
    state: Option<JobState>,
    /// Of this queue.
    #[arg(long, value_name = "NAME", env = "TOLLGATE_QUEUE")]
    queue: Option<String>,
    /// Of this procedure or action.
    #[arg(long, value_name = "NAME", env = "TOLLGATE_HANDLER")]
    handler: Option<String>,
}

/// Reads the name of a state.
pub(crate) fn state(text: &str) -> Result<JobState, String> {
    JobState::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
        let known: Vec<&str> = JobState::ALL.into_iter().map(JobState::as_str).collect();
        format!("a job is {}", known.join(", "))
    })
}

/// A job, as programs read it. Instants are milliseconds.
#[derive(Serialize)]
pub(crate) struct JobRecord {
    id: String,
    handler: String,
    state: &'static str,
    queue: String,
    priority: i64,
    key: Option<String>,
    attempt: i64,
    max_attempts: i64,
    due_at: i64,
    created_at: i64,
    finished_at: Option<i64>,
    payload: Value,
    errors: Vec<FaultRecord>,
}

#[derive(Serialize)]
struct FaultRecord {
    attempt: i64,
    at: i64,
    message: String,
}

#[derive(Serialize)]
struct CountRecord {
    state: &'static str,
    jobs: u64,
}

#[derive(Serialize)]
struct DoneRecord<'a> {
    id: Option<&'a str>,
    done: &'static str,
    jobs: u64,
}

impl JobRecord {
    pub(crate) fn of(job: &Job) -> JobRecord {
        JobRecord {
            id: job.id.clone(),
            handler: job.handler.clone(),
            state: job.state.as_str(),
            queue: job.queue.clone(),
            priority: job.priority,
            key: job.key.clone(),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            due_at: job.due_at.as_millis(),
            created_at: job.created_at.as_millis(),
            finished_at: job.finished_at.map(|at| at.as_millis()),
            payload: job.payload.clone(),
            errors: job
                .faults
                .iter()
                .map(|fault| FaultRecord {
                    attempt: fault.attempt,
                    at: fault.at.as_millis(),
                    message: fault.message.clone(),
                })
                .collect(),
        }
    }
}

impl Wanted {
    fn filter(self) -> JobFilter {
        JobFilter { state: self.state, queue: self.queue, handler: self.handler }
    }
}

impl Jobs {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let need = if self.schedules { Need::ExistingProcedures } else { Need::ExistingStore };
        let engine = place.open(need)?;
        match self.action {
            None if self.schedules => print_schedules(&engine, console)?,
            None if self.counts => print_counts(&engine, self.wanted.filter(), console)?,
            None => print(&engine, &self.wanted.filter(), self.limit, console)?,
            Some(Action::Show { id }) => show(&found(&engine, &id)?, console)?,
            Some(Action::Retry { id }) => {
                let job = found(&engine, &id)?;
                let done = engine.retry_job(&id)?;
                changed(done, "retried", "is running: wait for its end, or cancel it", &job, console)?;
            }
            Some(Action::Cancel { id }) => {
                let job = found(&engine, &id)?;
                let done = engine.cancel_job(&id)?;
                changed(done, "cancelled", "is finished already", &job, console)?;
            }
            Some(Action::Purge { wanted }) => {
                let jobs = engine.purge_jobs(&wanted.filter())?;
                match console.json {
                    true => console.record(&DoneRecord { id: None, done: "purged", jobs })?,
                    false => {
                        let count = format::count(usize::try_from(jobs).unwrap_or(usize::MAX), "finished job");
                        console.line(format!("{count} removed"))?;
                    }
                }
            }
        }
        engine.close()?;
        Ok(Exit::Returned)
    }
}

fn found(engine: &Engine, id: &str) -> Result<Job> {
    let missing = || NotFoundError(format!("there is no job {id:?}: `tollgate jobs` lists them"));
    Ok(engine.job(id)?.ok_or_else(missing)?)
}

fn changed(did: bool, what: &'static str, otherwise: &str, job: &Job, console: &mut Console) -> Result<()> {
    if !did {
        anyhow::bail!("job {} {otherwise}", job.id);
    }
    match console.json {
        true => console.record(&DoneRecord { id: Some(&job.id), done: what, jobs: 1 })?,
        false => console.line(format!("{} {what}", job.id))?,
    }
    Ok(())
}

/// Prints jobs, the newest first.
fn print(engine: &Engine, filter: &JobFilter, most: usize, console: &mut Console) -> Result<()> {
    let jobs = engine.jobs(filter, None, most)?;
    if console.json {
        return Ok(jobs.iter().try_for_each(|job| console.record(&JobRecord::of(job)))?);
    }
    if jobs.is_empty() {
        console.note("no such jobs");
        return Ok(());
    }
    Ok(console.line(table(&jobs, engine.now()))?)
}

/// Jobs as a table, one a line.
pub(crate) fn table(jobs: &[Job], now: Timestamp) -> String {
    let rows = jobs.iter().map(|job| {
        let due = match job.state.is_finished() {
            true => String::new(),
            false => format!("in {}", format::span(seconds_up(job.due_at.millis_since(now)))),
        };
        let error = job.last_fault().map_or_else(String::new, |fault| format::plain(&shortened(&fault.message)));
        vec![
            job.id.clone(),
            job.state.to_string(),
            format::plain(&job.handler),
            format::plain(&job.queue),
            format!("{} of {}", job.attempt, job.max_attempts),
            due,
            error,
        ]
    });
    format::table(&["id", "state", "handler", "queue", "attempt", "due", "last error"], rows)
}

/// Whole seconds, rounded up: nobody reads a table by the millisecond.
fn seconds_up(ms: i64) -> i64 {
    ms.max(0).saturating_add(999) / 1_000 * 1_000
}

/// The first line, and of that as much as a table shows well.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    match line.chars().count() > MOST {
        true => line.chars().take(MOST - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

fn print_counts(engine: &Engine, filter: JobFilter, console: &mut Console) -> Result<()> {
    /// Jobs that are read at once.
    const PAGE: usize = 1_000;
    let mut counts = JobState::ALL.map(|state| (state, 0_u64));
    let mut before: Option<String> = None;
    loop {
        let jobs = engine.jobs(&filter, before.as_deref(), PAGE)?;
        for job in &jobs {
            for (_, count) in counts.iter_mut().filter(|(state, _)| *state == job.state) {
                *count += 1;
            }
        }
        if jobs.len() < PAGE {
            break;
        }
        before = jobs.last().map(|job| job.id.clone());
    }
    for (state, jobs) in counts {
        match console.json {
            true => console.record(&CountRecord { state: state.as_str(), jobs })?,
            false => console.line(format!("{:<10} {jobs}", state.as_str()))?,
        }
    }
    Ok(())
}

fn print_schedules(engine: &Engine, console: &mut Console) -> Result<()> {
    let schedules = engine.schedules()?;
    if console.json {
        return Ok(schedules.iter().try_for_each(|schedule| console.record(schedule))?);
    }
    if schedules.is_empty() {
        console.note("no file declares a schedule");
        return Ok(());
    }
    let instant = |at: Option<Timestamp>| at.map_or_else(|| "none".to_owned(), |at| at.to_string());
    let rows = schedules.iter().map(|schedule| {
        let zone = schedule.zone.as_deref().map_or_else(String::new, |zone| format!(" {zone}"));
        vec![
            schedule.name.clone(),
            schedule.handler.clone(),
            format!("{}{zone}", schedule.pattern),
            instant(schedule.next_slot),
            instant(schedule.last_slot),
            schedule.missed.as_str().to_owned(),
        ]
    });
    Ok(console.line(format::table(&["schedule", "handler", "when", "next", "last", "missed"], rows))?)
}

fn show(job: &Job, console: &mut Console) -> Result<()> {
    if console.json {
        return Ok(console.record(&JobRecord::of(job))?);
    }
    let mut rows = vec![
        ("id", job.id.clone()),
        ("handler", format::plain(&job.handler)),
        ("state", job.state.to_string()),
        ("attempt", format!("{} of {}", job.attempt, job.max_attempts)),
        ("queue", format!("{}, priority {}", format::plain(&job.queue), job.priority)),
        ("created", job.created_at.to_string()),
    ];
    match (job.state, job.finished_at) {
        (_, Some(at)) => rows.push(("finished", at.to_string())),
        (JobState::Processing, None) => rows.push(("leased until", job.due_at.to_string())),
        _ => rows.push(("due", job.due_at.to_string())),
    }
    if let Some(key) = &job.key {
        rows.push(("key", format::plain(key)));
    }
    rows.push(("payload", format::value(&job.payload)));
    for (name, value) in rows {
        console.line(format!("{name:<12} {value}"))?;
    }
    for fault in &job.faults {
        console.line(format!("attempt {:<4} {} {}", fault.attempt, fault.at, format::plain(&fault.message)))?;
    }
    Ok(())
}
