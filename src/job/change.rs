//! Changes of a job: enqueued, called off, armed again, settled.

use crate::time::{Stopwatch, Timestamp};
use crate::trace::{Queued, Step};
use crate::transaction::Transaction;
use crate::value::Value;

use super::row::{by_key, get, put, remove};
use super::{InvalidJob, Job, JobError, JobOptions, JobState};

/// What is known of a new job before it is enqueued.
pub(crate) struct Wish<'a> {
    pub(crate) handler: &'a str,
    pub(crate) payload: Value,
    pub(crate) options: &'a JobOptions,
    /// The id it gets, unless its key leads to one that is there.
    pub(crate) id: String,
    /// How many jobs the transaction has enqueued before.
    pub(crate) ordinal: u32,
}

/// Enqueues a job, or does to the job of its key what its state asks for; the id of the one or the other.
pub(crate) fn enqueue(tx: &mut Transaction, wish: Wish<'_>) -> Result<String, JobError> {
    let Wish { handler, payload, options, id, ordinal } = wish;
    let begun = tx.watch();
    options.check()?;
    tx.spend_writes(1)?;
    let bytes = payload.to_json().len() as u64;
    if bytes > tx.document_bytes() {
        let most = tx.document_bytes();
        return Err(InvalidJob::new("bad_job", format!("the payload has {bytes} bytes, and {most} at most")).into());
    }
    let now = tx.now();
    let there = match &options.key {
        Some(key) => by_key(tx, handler, key)?,
        None => None,
    };
    let Some(before) = there else {
        let job = fresh(id, ordinal, handler, payload, options, now);
        put(tx, None, &job)?;
        tell(tx, begun, "enqueue", &job);
        return Ok(job.id);
    };
    let mut job = before.clone();
    match before.state {
        JobState::Pending | JobState::Retrying => {
            job.payload = payload;
            if options.force {
                job.due_at = start(options, now);
            }
        }
        JobState::Processing if options.force => {
            job.payload = payload;
            job.again = true;
        }
        JobState::Processing => {}
        JobState::Succeeded if !options.force => {}
        JobState::Succeeded | JobState::Failed | JobState::Cancelled => {
            let token = job.token;
            job = Job { token, ..fresh(before.id.clone(), ordinal, handler, payload, options, now) };
        }
    }
    if job != before {
        put(tx, Some(&before), &job)?;
        tell(tx, begun, "enqueue", &job);
    }
    Ok(job.id)
}

/// Tells of a job that was written, when somebody wants to know.
fn tell(tx: &mut Transaction, begun: Option<Stopwatch>, operation: &'static str, job: &Job) {
    let Some(begun) = begun else { return };
    let due_at = (!job.state.is_finished()).then_some(job.due_at);
    let (id, handler) = (job.id.clone(), job.handler.clone());
    tx.tell(Step::Job(Queued { operation, id, handler, due_at, undone: false, took: begun.elapsed() }));
}

fn start(options: &JobOptions, now: Timestamp) -> Timestamp {
    options.at.unwrap_or(now.saturating_add_millis(options.delay_ms)).max(now)
}

fn fresh(id: String, ordinal: u32, handler: &str, payload: Value, options: &JobOptions, now: Timestamp) -> Job {
    Job {
        id,
        handler: handler.to_owned(),
        payload,
        queue: options.queue.clone(),
        priority: options.priority,
        key: options.key.clone(),
        state: JobState::Pending,
        attempt: 0,
        max_attempts: options.max_attempts,
        backoff: options.backoff,
        lease_ms: options.lease_ms,
        keep_ms: options.keep_ms,
        due_at: start(options, now),
        created_at: now,
        finished_at: None,
        faults: Vec::new(),
        token: 0,
        ordinal,
        again: false,
    }
}

/// Calls a job off; false when it is finished already, or not there. What runs is not stopped: its end is stale.
pub(crate) fn cancel(tx: &mut Transaction, id: &str) -> Result<bool, JobError> {
    let begun = tx.watch();
    let Some(before) = get(tx, id)?.filter(|job| !job.state.is_finished()) else { return Ok(false) };
    tx.spend_writes(1)?;
    let mut job = before.clone();
    finish(&mut job, JobState::Cancelled, tx.now());
    job.token += 1;
    job.again = false;
    put(tx, Some(&before), &job)?;
    tell(tx, begun, "cancel_job", &job);
    Ok(true)
}

/// Makes a job due now, a finished one from attempt 0; false when it is running, or not there.
pub(crate) fn retry(tx: &mut Transaction, id: &str) -> Result<bool, JobError> {
    let begun = tx.watch();
    let Some(before) = get(tx, id)?.filter(|job| job.state != JobState::Processing) else { return Ok(false) };
    let mut job = before.clone();
    if job.state.is_finished() {
        arm(&mut job, tx.now());
    }
    job.due_at = tx.now();
    put(tx, Some(&before), &job)?;
    tell(tx, begun, "retry_job", &job);
    Ok(true)
}

/// Removes a finished job; false when it is not finished, or not there.
pub(crate) fn purge(tx: &mut Transaction, id: &str) -> Result<bool, JobError> {
    match get(tx, id)? {
        Some(job) if job.state.is_finished() => {
            remove(tx, &job)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Succeeded,
    /// It failed; the next attempt comes by the backoff, or after so many ms.
    Retry {
        after_ms: Option<i64>,
        why: String,
    },
    /// It failed and would fail again.
    Failed {
        why: String,
    },
    /// It was too early: try again in so many ms, and do not count this attempt.
    Snoozed {
        for_ms: i64,
    },
}

/// What became of a job whose attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is in this state now.
    As(JobState),
    /// The claim is not the latest one, or the job is gone: nothing was changed.
    Stale,
}

/// Ends the attempt that was claimed with `token`.
pub(crate) fn settle(tx: &mut Transaction, id: &str, token: i64, verdict: &Verdict) -> Result<Settled, JobError> {
    let Some(before) = claimed(tx, id, token)? else { return Ok(Settled::Stale) };
    let now = tx.now();
    let mut job = before.clone();
    match verdict {
        Verdict::Succeeded => finish(&mut job, JobState::Succeeded, now),
        Verdict::Failed { why } => {
            job.note(now, why);
            finish(&mut job, JobState::Failed, now);
        }
        Verdict::Retry { after_ms, why } => {
            job.note(now, why);
            if job.attempt >= job.max_attempts {
                finish(&mut job, JobState::Failed, now);
            } else {
                let wait = after_ms.unwrap_or_else(|| job.backoff.wait_ms(&job.id, job.attempt));
                job.state = JobState::Retrying;
                job.due_at = now.saturating_add_millis(wait.max(0));
            }
        }
        Verdict::Snoozed { for_ms } => {
            job.attempt = (job.attempt - 1).max(0);
            job.state = if job.attempt == 0 { JobState::Pending } else { JobState::Retrying };
            job.due_at = now.saturating_add_millis((*for_ms).max(0));
        }
    }
    let settled = Settled::As(job.state);
    if job.again && job.state.is_finished() {
        arm(&mut job, now);
    }
    put(tx, Some(&before), &job)?;
    Ok(settled)
}

/// Holds a claimed job for another lease from now on; false when the claim is not the latest one.
pub(crate) fn heartbeat(tx: &mut Transaction, id: &str, token: i64) -> Result<bool, JobError> {
    let Some(before) = claimed(tx, id, token)? else { return Ok(false) };
    let mut job = before.clone();
    job.due_at = tx.now().saturating_add_millis(job.lease_ms);
    put(tx, Some(&before), &job)?;
    Ok(true)
}

/// The job `id`, if the claim with `token` still holds.
fn claimed(tx: &mut Transaction, id: &str, token: i64) -> Result<Option<Job>, JobError> {
    Ok(get(tx, id)?.filter(|job| job.state == JobState::Processing && job.token == token))
}

pub(super) fn finish(job: &mut Job, state: JobState, now: Timestamp) {
    job.state = state;
    job.finished_at = Some(now);
}

fn arm(job: &mut Job, now: Timestamp) {
    job.state = JobState::Pending;
    job.attempt = 0;
    job.finished_at = None;
    job.again = false;
    job.created_at = now;
    job.due_at = now;
}
