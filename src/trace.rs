//! Traces: what one run asked of limits and documents, step by step, for whoever explains it.
//!
//! A transaction carries a trace only when its beginner asked for one; an operation looks once whether there is one,
//! and tells it what it did when it is done. A trace decides nothing and is never stored.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::limit::{Decision, Key, Override};
use crate::time::Timestamp;
use crate::value::Map;

/// The most steps that a trace keeps; what comes after is counted only. A step takes about a kilobyte.
const MOST_STEPS: usize = 10_000;

/// One thing that a call did.
///
/// As JSON, `step` says which: `limit`, `read`, `write` or `job`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[non_exhaustive]
// Most steps are of limits, and who reads them takes them apart by pattern, which a box forbids.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    /// It asked a limit, or changed a bucket.
    Limit(Consulted),
    /// It looked for documents.
    Read(Looked),
    /// It wrote a document.
    Write(Wrote),
    /// It enqueued a job, or changed one.
    Job(Queued),
}

/// A limit that was asked about a key, or a bucket that was changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Consulted {
    /// What was asked, as scripts call it, such as `take`. Of `take_all` and its like each limit is a step.
    pub operation: &'static str,
    /// The limit's name.
    pub name: String,
    /// What the limit admits, in words; under an operator's override what that admits.
    pub describe: String,
    /// The key, or its keyed hash where the limit stores that.
    #[serde(serialize_with = "key")]
    pub key: Key,
    /// Tokens; none where the operation has no cost.
    pub cost: Option<i64>,
    /// The bucket before.
    pub before: Filling,
    /// The bucket after.
    pub after: Filling,
    /// What this limit answered; none where the operation asks nothing.
    pub decision: Option<Decision>,
    /// When the same cost (1 token, where there is none) fits next, after this step: the call's instant when it
    /// fits at once, none when it never does. Of a shadow limit too, which lets it pass all the same.
    pub passes_at: Option<Timestamp>,
    /// The operator's override in force for this key.
    #[serde(rename = "override")]
    pub ruling: Option<Override>,
    /// Whether the limit only counts and never refuses.
    pub shadow: bool,
    /// Whether the bucket was written.
    pub wrote: bool,
    /// Whether the call itself took this back: an `attempt` that failed.
    pub undone: bool,
    /// The time it took, in microseconds as JSON.
    #[serde(rename = "took_us", serialize_with = "micros")]
    pub took: Duration,
}

/// How full a bucket is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Filling {
    /// Spent and not yet worn off.
    pub used: i64,
    /// Left, from 0 to `limit`.
    pub remaining: i64,
    /// Most that can be there at once.
    pub limit: i64,
}

/// A search for documents, alone or as the first half of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Looked {
    /// What was asked, as scripts call it, such as `find_one`; of a search that a change begins with, the change.
    pub operation: &'static str,
    /// The collection.
    pub collection: String,
    /// The filter, as scripts write it.
    pub filter: Map,
    /// The index that served, `_id` for direct reads and ranges of ids; none when the collection was read whole.
    pub index: Option<String>,
    /// How it was served, in words.
    pub plan: String,
    /// What would serve better; none when nothing would.
    pub advice: Option<String>,
    /// Rows looked at, expired ones and index entries too: what the budget of documents read counts.
    pub scanned: u64,
    /// Documents that it came to.
    pub returned: u64,
    /// The time it took, in microseconds as JSON.
    #[serde(rename = "took_us", serialize_with = "micros")]
    pub took: Duration,
}

/// A document that was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Wrote {
    /// `insert`, `update` or `delete`.
    pub change: &'static str,
    /// The collection.
    pub collection: String,
    /// The document's `_id`.
    pub id: String,
    /// The document before; none of one that is new.
    pub before: Option<Map>,
    /// The document after; none of one that is gone.
    pub after: Option<Map>,
    /// Whether the call itself took this back: an `attempt` that failed, or an operation that failed half-way.
    pub undone: bool,
    /// The time it took, in microseconds as JSON.
    #[serde(rename = "took_us", serialize_with = "micros")]
    pub took: Duration,
}

/// A job that was enqueued or changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Queued {
    /// What was done, as scripts call it: `enqueue`, `cancel_job` or `retry_job`.
    pub operation: &'static str,
    /// The job's id.
    pub id: String,
    /// The procedure or action that does it.
    pub handler: String,
    /// When it is due from here on; none of one that is called off.
    pub due_at: Option<Timestamp>,
    /// Whether the call itself took this back: an `attempt` that failed.
    pub undone: bool,
    /// The time it took, in microseconds as JSON.
    #[serde(rename = "took_us", serialize_with = "micros")]
    pub took: Duration,
}

impl Step {
    /// The time the step took.
    pub fn took(&self) -> Duration {
        match self {
            Step::Limit(Consulted { took, .. })
            | Step::Read(Looked { took, .. })
            | Step::Write(Wrote { took, .. })
            | Step::Job(Queued { took, .. }) => *took,
        }
    }

    /// Whether what the step wrote was taken back.
    pub fn is_undone(&self) -> bool {
        match self {
            Step::Limit(Consulted { undone, .. })
            | Step::Write(Wrote { undone, .. })
            | Step::Job(Queued { undone, .. }) => *undone,
            Step::Read(_) => false,
        }
    }

    /// Marks what the step wrote as taken back.
    pub(crate) fn undo(&mut self) {
        match self {
            Step::Limit(consulted) => consulted.undone = consulted.wrote,
            Step::Write(wrote) => wrote.undone = true,
            Step::Job(queued) => queued.undone = true,
            Step::Read(_) => {}
        }
    }
}

/// The steps of one run so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Each with how many writes the transaction had made when it was done.
    steps: Vec<(usize, Step)>,
    omitted: u64,
}

impl Trace {
    /// Adds a step that was done when the transaction had made `writes` writes.
    pub(crate) fn add(&mut self, writes: usize, step: Step) {
        match self.steps.len() < MOST_STEPS {
            true => self.steps.push((writes, step)),
            false => self.omitted += 1,
        }
    }

    /// Marks what was written after the first `writes` writes as taken back.
    pub(crate) fn undo_to(&mut self, writes: usize) {
        // Steps stand in the order of time, but a rollback makes the count go down: all of them are looked at.
        self.steps.iter_mut().filter(|(at, _)| *at > writes).for_each(|(at, step)| {
            step.undo();
            *at = writes;
        });
    }

    /// The steps in order, and how many more there were.
    pub(crate) fn into_steps(self) -> (Vec<Step>, u64) {
        (self.steps.into_iter().map(|(_, step)| step).collect(), self.omitted)
    }
}

fn key<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
    key.to_value().serialize(serializer)
}

/// Whole microseconds.
fn micros<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(id: &str) -> Step {
        let (collection, id) = ("c".to_owned(), id.to_owned());
        let (before, after) = (None, None);
        Step::Write(Wrote { change: "insert", collection, id, before, after, undone: false, took: Duration::ZERO })
    }

    fn undone(trace: Trace) -> Vec<bool> {
        let steps = trace.into_steps().0.into_iter();
        steps.map(|step| matches!(step, Step::Write(Wrote { undone: true, .. }))).collect()
    }

    #[test]
    fn what_was_written_after_a_savepoint_is_marked_when_it_is_taken_back() {
        let mut trace = Trace::default();
        for writes in [2, 4, 6] {
            trace.add(writes, wrote("before and after"));
        }
        trace.undo_to(2);
        trace.add(4, wrote("again"));
        trace.undo_to(4);
        assert_eq!(undone(trace), [false, true, true, false]);
    }

    #[test]
    fn a_trace_is_bounded_and_says_what_it_leaves_out() {
        let mut trace = Trace::default();
        (0..MOST_STEPS + 3).for_each(|n| trace.add(n, wrote("x")));
        let (steps, omitted) = trace.into_steps();
        assert_eq!((steps.len(), omitted), (MOST_STEPS, 3));
    }
}
