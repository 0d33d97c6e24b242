//! Claims: due jobs handed to a worker.

use std::ops::Bound;

use crate::store::key::{self, space};
use crate::store::{Direction, Range};
use crate::time::Timestamp;
use crate::transaction::{Fault, Transaction};

use super::change::finish;
use super::row::{self, Place, due, put, split_place};
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
}

/// Claims up to `most` due jobs: counts their attempt, gives out a token, begins their lease.
pub(crate) fn claim(tx: &mut Transaction, wanted: &Wanted<'_>, most: usize) -> Result<Claimed, JobError> {
    let (now, most) = (tx.now(), most.min(MAX_CLAIM));
    let mut places = Vec::new();
    for (queue, handler) in served(tx, wanted)? {
        first_due(tx, &queue, &handler, now, most, &mut places)?;
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
pub(crate) fn next_due(tx: &mut Transaction, wanted: &Wanted<'_>) -> Result<Option<Timestamp>, Fault> {
    let mut next: Option<Timestamp> = None;
    for (queue, handler) in served(tx, wanted)? {
        each_priority(tx, &row::places_of(&queue, &handler), |_, place| {
            next = Some(next.map_or(place.due_at, |next| next.min(place.due_at)));
            Ok(())
        })?;
    }
    Ok(next)
}

/// The queues and handlers that jobs wait for, of those wanted. One look at the index for each.
fn served(tx: &mut Transaction, wanted: &Wanted<'_>) -> Result<Vec<(String, String)>, Fault> {
    let mut found = Vec::new();
    let mut range = Range::prefix(&[space::JOB_PLACE]);
    while let Some((place, _)) = tx.scan(&range, Direction::Ascending, 1)?.into_iter().next() {
        let Place { queue, handler, .. } = split_place(&place)?;
        let prefix = row::places_of(&queue, &handler);
        if (wanted.queues.is_empty() || wanted.queues.contains(&queue)) && (wanted.has_handler)(&handler) {
            found.push((queue, handler));
        }
        let Some(next) = key::successor(&prefix) else { break };
        range.low = Bound::Included(next.into());
    }
    Ok(found)
}

/// The first `most` due places of each priority.
fn first_due(
    tx: &mut Transaction,
    queue: &str,
    handler: &str,
    now: Timestamp,
    most: usize,
    places: &mut Vec<Place>,
) -> Result<(), Fault> {
    each_priority(tx, &row::places_of(queue, handler), |tx, first| {
        if first.due_at > now {
            return Ok(());
        }
        let prefix = row::places_of_priority(queue, handler, super::MAX_PRIORITY - i64::from(first.rank));
        for (key, _) in tx.scan(&due(&prefix, now), Direction::Ascending, most)? {
            places.push(split_place(&key)?);
        }
        Ok(())
    })
}

/// Calls `visit` with the first place of each priority below `prefix`.
fn each_priority(
    tx: &mut Transaction,
    prefix: &[u8],
    mut visit: impl FnMut(&mut Transaction, &Place) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut range = Range::prefix(prefix);
    while let Some((place, _)) = tx.scan(&range, Direction::Ascending, 1)?.into_iter().next() {
        let place = split_place(&place)?;
        visit(tx, &place)?;
        let mut of_priority = prefix.to_vec();
        of_priority.push(place.rank);
        let Some(next) = key::successor(&of_priority) else { break };
        range.low = Bound::Included(next.into());
    }
    Ok(())
}
