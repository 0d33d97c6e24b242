//! The record of a job: what is to be done, how far it has come, and what went wrong.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::value::{Map, Value};

use super::{Backoff, MAX_FAULT_BYTES, MAX_FAULTS};

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum JobState {
    /// It waits for its first attempt.
    Pending,
    /// A worker has it.
    Processing,
    /// An attempt failed, and it waits for the next one.
    Retrying,
    /// Done.
    Succeeded,
    /// Given up.
    Failed,
    /// Called off.
    Cancelled,
}

impl JobState {
    /// Every state, in the order of a job's life.
    pub const ALL: [JobState; 6] = [
        JobState::Pending,
        JobState::Processing,
        JobState::Retrying,
        JobState::Succeeded,
        JobState::Failed,
        JobState::Cancelled,
    ];

    /// The word for it, as scripts and tools say it.
    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Pending => "pending",
            JobState::Processing => "processing",
            JobState::Retrying => "retrying",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }

    /// Whether it waits for a worker.
    pub fn is_waiting(self) -> bool {
        matches!(self, JobState::Pending | JobState::Retrying)
    }

    /// Whether nothing more happens to it by itself.
    pub fn is_finished(self) -> bool {
        matches!(self, JobState::Succeeded | JobState::Failed | JobState::Cancelled)
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What went wrong in an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobFault {
    /// Which attempt.
    pub attempt: i64,
    /// When it was known.
    pub at: Timestamp,
    /// What was said.
    pub message: String,
}

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The procedure or action that does it.
    pub handler: String,
    /// What the handler is given.
    pub payload: Value,
    /// The queue that workers take it from.
    pub queue: String,
    /// Among due jobs of a queue the highest goes first.
    pub priority: i64,
    /// The idempotency key.
    pub key: Option<String>,
    /// Where it stands.
    pub state: JobState,
    /// Attempts so far, the running one included.
    pub attempt: i64,
    /// After this many failed attempts it is given up.
    pub max_attempts: i64,
    /// How long it waits after a failed attempt.
    pub backoff: Backoff,
    /// How long a worker may be silent before it has lost the job, in ms.
    pub lease_ms: i64,
    /// How long it is kept once it is finished, in ms.
    pub keep_ms: i64,
    /// The earliest start of the next attempt; while a worker has it, the end of the lease.
    pub due_at: Timestamp,
    /// When it was enqueued, or armed again.
    pub created_at: Timestamp,
    /// When it was finished.
    pub finished_at: Option<Timestamp>,
    /// What went wrong in earlier attempts, the latest last.
    pub faults: Vec<JobFault>,
    /// The number of the latest claim: what is said with an older one is stale.
    pub token: i64,
    /// Its place among the jobs of the transaction that enqueued it.
    pub(super) ordinal: u32,
    /// Asked to run once more when the attempt that is running ends.
    pub(super) again: bool,
}

impl Job {
    /// The latest thing that went wrong.
    pub fn last_fault(&self) -> Option<&JobFault> {
        self.faults.last()
    }

    /// The job as scripts and tools see it.
    pub(crate) fn to_value(&self) -> Value {
        let text = |text: &str| Value::Text(text.to_owned());
        let faults = self.faults.iter().map(|fault| {
            Value::Map(Map::from([
                ("attempt".to_owned(), Value::Int(fault.attempt)),
                ("at".to_owned(), Value::Int(fault.at.as_millis())),
                ("message".to_owned(), text(&fault.message)),
            ]))
        });
        Value::Map(Map::from([
            ("id".to_owned(), text(&self.id)),
            ("handler".to_owned(), text(&self.handler)),
            ("payload".to_owned(), self.payload.clone()),
            ("queue".to_owned(), text(&self.queue)),
            ("priority".to_owned(), Value::Int(self.priority)),
            ("key".to_owned(), self.key.as_deref().map_or(Value::Null, text)),
            ("state".to_owned(), text(self.state.as_str())),
            ("attempt".to_owned(), Value::Int(self.attempt)),
            ("max_attempts".to_owned(), Value::Int(self.max_attempts)),
            ("due_at".to_owned(), Value::Int(self.due_at.as_millis())),
            ("created_at".to_owned(), Value::Int(self.created_at.as_millis())),
            ("finished_at".to_owned(), self.finished_at.map_or(Value::Null, |at| Value::Int(at.as_millis()))),
            ("last_error".to_owned(), self.last_fault().map_or(Value::Null, |fault| text(&fault.message))),
            ("errors".to_owned(), Value::Array(faults.collect())),
        ]))
    }

    /// Remembers what went wrong in the attempt that was running.
    pub(super) fn note(&mut self, at: Timestamp, message: &str) {
        let cut = (0..=MAX_FAULT_BYTES.min(message.len())).rev().find(|end| message.is_char_boundary(*end));
        let message = message[..cut.unwrap_or(0)].to_owned();
        self.faults.push(JobFault { attempt: self.attempt, at, message });
        let surplus = self.faults.len().saturating_sub(MAX_FAULTS);
        self.faults.drain(..surplus);
    }
}
