//! Claims: due jobs handed to a worker.

use std::ops::Bound;

use crate::store::{Direction, Range};
use crate::time::Timestamp;
use crate::transaction::{Fault, Transaction};

use super::change::finish;
use super::front::{Front, Fronts};
use super::row::{self, before_due, put, split_place};
use super::{Job, JobError, JobState, MAX_CLAIM};

/// What a claim came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Claimed {
    /// The jobs that are the worker's now, the most urgent first.
    pub(crate) jobs: Vec<Job>,
    /// Jobs that were given up, because the worker of their last attempt was not heard of.
    pub(crate) given_up: u64,
}

/// Which jobs a worker wants.
pub(crate) struct Wanted<'a> {
    /// The queues it serves; none is every queue.
    pub(crate) queues: &'a [String],
    /// Whether a handler is there.
    pub(crate) has_handler: &'a dyn Fn(&str) -> bool,
    /// Only what is due by then, where that is before now.
    pub(crate) due_by: Option<Timestamp>,
}

impl Wanted<'_> {
    fn fronts(&self, fronts: &Fronts) -> Vec<Front> {
        let mut all = fronts.all();
        all.retain(|front| {
            (self.queues.is_empty() || self.queues.contains(&front.queue)) && (self.has_handler)(&front.handler)
        });
        all
    }
}

/// Claims up to `most` due jobs: counts their attempt, gives out a token, begins their lease. Only in a transaction
/// that runs alone.
pub(crate) fn claim(
    tx: &mut Transaction,
    fronts: &Fronts,
    wanted: &Wanted<'_>,
    most: usize,
) -> Result<Claimed, JobError> {
    let (now, most) = (tx.now(), most.min(MAX_CLAIM));
    let due_by = wanted.due_by.map_or(now, |due_by| due_by.min(now));
    let mut places = Vec::new();
    for front in wanted.fronts(fronts) {
        let range = Range {
            low: Bound::Included(front.from.clone()),
            high: Bound::Excluded(before_due(&front.prefix, due_by)),
        };
        let rows = tx.scan(&range, Direction::Ascending, most)?;
        if let Some((first, _)) = rows.first() {
            fronts.raise(&front, first.clone());
        }
        for (key, _) in rows {
            places.push(split_place(&key)?);
        }
    }
    places.sort_unstable();
    places.truncate(most);
    let mut claimed = Claimed::default();
    for place in places {
        let Some(before) = row::get(tx, &place.id)? else { continue };
        let mut job = before.clone();
        if before.state == JobState::Processing {
            let silent = format!("its worker was not heard of for {} ms", job.lease_ms);
            job.note(now, &silent);
            if job.attempt >= job.max_attempts {
                finish(&mut job, JobState::Failed, now);
                claimed.given_up += 1;
            }
        }
        job.token += 1;
        if !job.state.is_finished() {
            job.state = JobState::Processing;
            job.attempt += 1;
            job.due_at = now.saturating_add_millis(job.lease_ms);
        }
        put(tx, Some(&before), &job)?;
        if !job.state.is_finished() {
            claimed.jobs.push(job);
        }
    }
    Ok(claimed)
}

/// When the next job of those wanted is due, as far as it is known now.
pub(crate) fn next_due(tx: &mut Transaction, fronts: &Fronts, wanted: &Wanted<'_>) -> Result<Option<Timestamp>, Fault> {
    let mut next: Option<Timestamp> = None;
    for front in wanted.fronts(fronts) {
        let mut range = Range::prefix(&front.prefix);
        range.low = Bound::Included(front.from.clone());
        if let Some((key, _)) = tx.scan(&range, Direction::Ascending, 1)?.into_iter().next() {
            let due_at = split_place(&key)?.due_at;
            next = Some(next.map_or(due_at, |next| next.min(due_at)));
        }
    }
    Ok(next)
}
