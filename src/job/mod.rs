//! Jobs: work that a transaction asks for and that is done after it has committed.
//!
//! A job is a row, written by the transaction that enqueues it: it commits or rolls back with the rest. A worker
//! claims due jobs in a transaction of its own, which counts the attempt and gives out a *token*; whatever the worker
//! says later with an older token changes nothing. A worker that is not heard of for the job's lease has lost it: the
//! job stands in the same index at the end of its lease as a waiting one at its due time, so whoever claims next finds
//! it, and nothing needs to recover it.
//!
//! | row | key | |
//! |---|---|---|
//! | job | id | the job, [`Job`]; one that is finished expires `keep` later |
//! | place | queue, handler, priority downwards, instant, age, id | one for each job that waits or is claimed |
//! | key | handler, idempotency key | the id of the job; expires with it |
//! | schedule | name | the slot that was enqueued last, [`fire`] |
//!
//! A claim looks only at the first places of each priority of the handlers that are there, so it costs the same
//! whether ten jobs wait or a million, and jobs of a handler that is not there cost nothing.
//!
//! A schedule names instants, its *slots*; whoever works next after one of them enqueues a job for it. Slots are counted
//! on a fixed grid or calendar and never from the last run, so they do not drift; the last one is stored, so restarts
//! neither leave one out nor run one twice. A schedule has one job at a time: while that waits or runs, no other slot
//! is enqueued, and what becomes of the slots that pass meanwhile is the schedule's choice, [`MissedSlots`].
//!
//! Not here: running anything. The engine does, and decides from the outcome what to settle.

mod backoff;
pub(crate) mod change;
pub(crate) mod claim;
mod cron;
mod error;
pub(crate) mod fire;
pub(crate) mod front;
pub(crate) mod list;
#[cfg(test)]
mod model_test;
mod options;
mod record;
mod row;
pub(crate) mod schedule;
mod slot;
#[cfg(test)]
mod tests;
pub(crate) mod verify;

pub use backoff::Backoff;
pub(crate) use error::JobError;
pub use options::{InvalidJob, JobOptions};
pub use record::{Job, JobFault, JobState};
pub(crate) use row::get;
pub use schedule::MissedSlots;

/// The longest idempotency key, in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 512;
/// The longest name of a queue, in bytes.
pub(crate) const MAX_QUEUE_BYTES: usize = 128;
/// The highest priority; the lowest is its negative.
pub(crate) const MAX_PRIORITY: i64 = 100;
/// The most attempts of a job.
pub(crate) const MAX_ATTEMPTS: i64 = 1_000;
/// Faults remembered of a job, the latest.
pub(crate) const MAX_FAULTS: usize = 20;
/// The longest text of a fault that is remembered, in bytes.
pub(crate) const MAX_FAULT_BYTES: usize = 2_000;
/// The longest delay, lease, backoff and `keep`: ten years, in ms.
pub(crate) const MAX_SPAN_MS: i64 = 10 * 366 * 86_400_000;
/// The most jobs of one claim.
pub(crate) const MAX_CLAIM: usize = 1_000;
/// The shortest period of a schedule, in ms: each slot is a job, and so a write to the disk.
pub(crate) const MIN_PERIOD_MS: i64 = 1_000;
/// How late a slot may be enqueued by a schedule that leaves out what it missed, in ms.
pub(crate) const MISSED_AFTER_MS: i64 = 60_000;
/// The most slots that a schedule makes up for, the latest.
pub(crate) const MAX_MISSED: usize = 100;
/// The longest name of a schedule, in bytes.
pub(crate) const MAX_SCHEDULE_BYTES: usize = 128;
/// The longest pattern of a schedule, in bytes.
pub(crate) const MAX_PATTERN_BYTES: usize = 256;
/// How far a clock may step back before a schedule takes the time before the step for wrong, in ms.
pub(crate) const MAX_CLOCK_STEP_MS: i64 = 3_600_000;
