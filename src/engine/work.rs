//! Work: due jobs claimed, run and settled.
//!
//! A job of a procedure ends in the procedure's own transaction: its writes and the job's completion commit together
//! or not at all, so it is done exactly once, however often it is tried. An action reaches outside: it is done at least
//! once, and what it says counts only while its claim is the latest.

use std::sync::Arc;

use serde::Serialize;

use crate::error::Error;
use crate::job::change::{self, Settled, Verdict};
use crate::job::claim::{self, Claimed, Wanted};
use crate::job::{Job, JobError, JobState};
use crate::outcome::{Outcome, Refusal, RefusalKind};
use crate::script::{Arguments, Ending};
use crate::time::Timestamp;
use crate::transaction::{self, Mode, Quota};
use crate::value::{Map, Value};

use super::action::JobAnswer;
use super::call::Before;
use super::worker::{Heart, WorkerOptions};
use super::{CallOptions, Engine, fault_error};

/// What answers in place of an action, when it has an answer.
pub(crate) type StandIn<'a> = &'a mut dyn FnMut(&Job) -> Option<Result<JobAnswer, String>>;

/// What a batch of jobs came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WorkSummary {
    /// Jobs that were taken.
    pub claimed: u64,
    /// Those that are done.
    pub succeeded: u64,
    /// Those that were given up, and those whose worker was not heard of in their last attempt.
    pub failed: u64,
    /// Those that are tried again.
    pub retried: u64,
    /// Those that were put off without counting the attempt, and those that somebody else had by then.
    pub skipped: u64,
}

impl std::ops::AddAssign for WorkSummary {
    fn add_assign(&mut self, other: WorkSummary) {
        self.claimed += other.claimed;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.retried += other.retried;
        self.skipped += other.skipped;
    }
}

impl Engine {
    /// Enqueues what is due of schedules, claims up to `most` due jobs of every queue, runs them one after another, and
    /// says how they fared. A schedule that makes up for slots it missed goes on as long as `most` allows.
    ///
    /// Jobs whose handler is not there are left waiting. Errors: [`Error::Storage`]; a job that fails is no error.
    ///
    /// ```
    /// use tollgate::{Engine, JobAnswer, JobOptions};
    /// let engine = Engine::builder().memory().action("greet", |_| Ok(JobAnswer::Done)).open()?;
    /// engine.enqueue("greet", "ada", &JobOptions::new())?;
    /// let summary = engine.work_once(10)?;
    /// assert_eq!((summary.claimed, summary.succeeded), (1, 1));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn work_once(&self, most: usize) -> Result<WorkSummary, Error> {
        self.work_with(most, &mut |_| None)
    }

    /// [`Engine::work_once`], where `stand_in` may answer in place of an action that is registered.
    pub(crate) fn work_with(&self, most: usize, stand_in: StandIn<'_>) -> Result<WorkSummary, Error> {
        self.check_open()?;
        self.fire_due()?;
        let mut summary = WorkSummary::default();
        loop {
            let done = usize::try_from(summary.claimed).unwrap_or(usize::MAX);
            let pass = self.work_on(&[], most.saturating_sub(done), None, None, stand_in)?;
            summary += pass;
            // What was done may have been in the way of its schedule's next slot.
            if pass.claimed == 0 || summary.claimed >= most as u64 || self.fire_due()? == 0 {
                return Ok(summary);
            }
        }
    }

    /// Does what is due now, that of schedules too, batch after batch; what becomes due meanwhile is left for the next time.
    ///
    /// Errors: as [`Engine::work_once`].
    pub fn work_due(&self, options: &WorkerOptions) -> Result<WorkSummary, Error> {
        self.check_open()?;
        self.fire_due()?;
        let (mut total, begun) = (WorkSummary::default(), self.now());
        loop {
            let summary = self.work_on(&options.queues, options.batch, Some(begun), None, &mut |_| None)?;
            if summary == WorkSummary::default() {
                return Ok(total);
            }
            total += summary;
        }
    }

    /// [`Engine::work_once`] for some queues, with a heart that keeps the leases of what runs.
    pub(super) fn work_on(
        &self,
        queues: &[String],
        most: usize,
        due_by: Option<Timestamp>,
        heart: Option<&Heart>,
        stand_in: StandIn<'_>,
    ) -> Result<WorkSummary, Error> {
        self.check_open()?;
        let claimed = self.claim(queues, most, due_by)?;
        if claimed.jobs.is_empty() {
            return Ok(WorkSummary { failed: claimed.given_up, ..WorkSummary::default() });
        }
        let own = match heart {
            Some(_) => None,
            None => Some(Heart::start(self.clone(), Arc::default())?),
        };
        let heart = heart.or(own.as_ref());
        let summary = self.do_claimed(&claimed, heart, stand_in);
        if let Some(own) = own {
            own.end();
        }
        summary
    }

    fn do_claimed(
        &self,
        claimed: &Claimed,
        heart: Option<&Heart>,
        stand_in: StandIn<'_>,
    ) -> Result<WorkSummary, Error> {
        let mut summary =
            WorkSummary { claimed: claimed.jobs.len() as u64, failed: claimed.given_up, ..WorkSummary::default() };
        // From now on all of them are ours: those that wait for their turn must not be lost meanwhile.
        let beats: Vec<_> = claimed.jobs.iter().map(|job| heart.map(|heart| heart.beat(job))).collect();
        for (job, beat) in claimed.jobs.iter().zip(beats) {
            let settled = match heart.is_some_and(Heart::is_stopping) {
                true => self.alone(|tx| change::settle(tx, &job.id, job.token, &Verdict::Snoozed { for_ms: 0 })),
                false => self.do_job(job, stand_in),
            };
            drop(beat);
            match settled? {
                Settled::As(JobState::Succeeded) => summary.succeeded += 1,
                Settled::As(JobState::Failed) => summary.failed += 1,
                Settled::As(JobState::Retrying) if self.was_counted(job)? => summary.retried += 1,
                Settled::As(_) | Settled::Stale => summary.skipped += 1,
            }
        }
        Ok(summary)
    }

    /// When the next job is due that somebody here can do.
    pub(super) fn next_due(&self, queues: &[String]) -> Result<Option<Timestamp>, Error> {
        let has_handler = |name: &str| self.has_handler(name);
        let wanted = Wanted { queues, has_handler: &has_handler, due_by: None };
        let (next, _) = self.repeat(true, |tx| Ok(claim::next_due(tx, &self.inner.fronts, &wanted)?))?;
        Ok(next)
    }

    /// A transaction of its own that nobody can make clash: those who enqueue must not starve those who work.
    pub(super) fn alone<T>(
        &self,
        work: impl FnOnce(&mut transaction::Transaction) -> Result<T, JobError>,
    ) -> Result<T, Error> {
        let mut tx = self.inner.database.begin(Mode::Alone, self.now(), Quota::UNLIMITED);
        let value = work(&mut tx).map_err(job_error)?;
        let committed = tx.commit().map_err(fault_error)?;
        self.await_durability(committed, None)?;
        Ok(value)
    }

    fn claim(&self, queues: &[String], most: usize, due_by: Option<Timestamp>) -> Result<Claimed, Error> {
        let has_handler = |name: &str| self.has_handler(name);
        let wanted = Wanted { queues, has_handler: &has_handler, due_by };
        // Looked at first without keeping anybody waiting: mostly there is nothing to do.
        match self.next_due(queues)? {
            Some(due) if due <= self.now() => self.alone(|tx| claim::claim(tx, &self.inner.fronts, &wanted, most)),
            _ => Ok(Claimed::default()),
        }
    }

    fn was_counted(&self, job: &Job) -> Result<bool, Error> {
        Ok(self.job(&job.id)?.is_none_or(|now| now.attempt >= job.attempt))
    }

    /// Runs one claimed job and settles it.
    fn do_job(&self, job: &Job, stand_in: StandIn<'_>) -> Result<Settled, Error> {
        // A procedure goes before an action of its name, as it does where jobs are enqueued.
        let is_procedure = self.inner.loaded.load().program.procedure(&job.handler).is_some();
        if !is_procedure && let Some(answer) = stand_in(job).or_else(|| self.inner.actions.run(job)) {
            let verdict = verdict_of(answer);
            return self.alone(|tx| change::settle(tx, &job.id, job.token, &verdict));
        }
        let settled = self.do_procedure(job)?;
        match settled {
            Ok(settled) => Ok(settled),
            Err(verdict) => self.alone(|tx| change::settle(tx, &job.id, job.token, &verdict)),
        }
    }

    /// Runs a procedure with the job's completion in its transaction; the verdict that is still to be written, when
    /// nothing of it was kept.
    fn do_procedure(&self, job: &Job) -> Result<Result<Settled, Verdict>, Error> {
        let about = Map::from([
            ("id".to_owned(), Value::Text(job.id.clone())),
            ("attempt".to_owned(), Value::Int(job.attempt)),
        ]);
        let caller = Map::from([("job".to_owned(), Value::Map(about))]);
        let mut settled = None;
        let mut settle = |tx: &mut transaction::Transaction, ending: &Ending| {
            let verdict = match ending {
                Ending::Returned(_) => Verdict::Succeeded,
                Ending::Denied(refusal) => denied(refusal),
                _ => return Ok(Before::Commit),
            };
            match change::settle(tx, &job.id, job.token, &verdict) {
                Ok(how) => {
                    settled = Some(how);
                    Ok(if how == Settled::Stale { Before::RollBack } else { Before::Commit })
                }
                Err(JobError::Fault(fault)) => Err(fault),
                // A verdict has nothing to be invalid.
                Err(JobError::Invalid(_)) => Ok(Before::RollBack),
            }
        };
        let arguments = Arguments::of_payload(job.payload.clone());
        let options = CallOptions::new().caller(caller);
        let outcome = self.call_settling(&job.handler, arguments, &options, &mut settle);
        match outcome {
            Ok(Outcome::Refused(refusal)) if refusal.kind == RefusalKind::Aborted => {
                Ok(Err(Verdict::Retry { after_ms: wait_ms(&refusal), why: words(&refusal) }))
            }
            Ok(_) => Ok(Ok(settled.unwrap_or(Settled::Stale))),
            Err(error @ (Error::Storage(_) | Error::Closed | Error::ReadOnly)) => Err(error),
            Err(error) => Ok(Err(Verdict::Retry { after_ms: None, why: first_line(&error) })),
        }
    }
}

/// What a procedure that denies says of its job: with a wait, that it was too early; without one, that it must not be.
fn denied(refusal: &Refusal) -> Verdict {
    match wait_ms(refusal) {
        Some(for_ms) => Verdict::Snoozed { for_ms },
        None => Verdict::Failed { why: words(refusal) },
    }
}

/// Where and what; the source line and the calls that led there are for who reads a console.
fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn words(refusal: &Refusal) -> String {
    match refusal.message.is_empty() {
        true => refusal.code.clone(),
        false => format!("{}: {}", refusal.code, refusal.message),
    }
}

fn wait_ms(refusal: &Refusal) -> Option<i64> {
    refusal.retry_after.map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

fn verdict_of(answer: Result<JobAnswer, String>) -> Verdict {
    let millis = |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    match answer {
        Ok(JobAnswer::Done) => Verdict::Succeeded,
        Ok(JobAnswer::Retry { after, why }) => Verdict::Retry { after_ms: after.map(millis), why },
        Ok(JobAnswer::Fail { why }) => Verdict::Failed { why },
        Ok(JobAnswer::Snooze(span)) => Verdict::Snoozed { for_ms: millis(span) },
        Err(why) => Verdict::Retry { after_ms: None, why },
    }
}

pub(super) fn job_error(error: JobError) -> Error {
    match error {
        JobError::Invalid(invalid) => invalid.into(),
        JobError::Fault(fault) => fault_error(fault),
    }
}

/// A heartbeat of one job; false when its claim is not the latest any longer.
pub(super) fn beat(engine: &Engine, id: &str, token: i64) -> Result<bool, Error> {
    engine.alone(|tx| change::heartbeat(tx, id, token))
}
