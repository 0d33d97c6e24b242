//! Firing: due slots made jobs, and what is stored of each schedule.
//!
//! A schedule's row holds the slot that was enqueued last, written by the transaction that enqueues it, so no restart
//! leaves a slot out or runs it twice. It also holds since when the pattern is what it is: slots before that are none
//! of the schedule's. The row of a schedule that is declared no longer goes when somebody works next; who only looks
//! at the store with other files, or with none, changes nothing.

use serde::{Deserialize, Serialize};

use crate::store::key::{self, KeyBuffer, space};
use crate::store::{Bytes, Direction, Range, StoreError};
use crate::time::Timestamp;
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};
use crate::value::Value;

use super::change::{self, Wish};
use super::schedule::Schedule;
use super::{JobError, MAX_CLOCK_STEP_MS};

/// What is stored of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// The pattern and the zone.
    mark: String,
    /// Since when it is scheduled by this pattern.
    since: Timestamp,
    /// The slot that was enqueued last.
    pub(crate) last_slot: Option<Timestamp>,
    /// Its job.
    pub(crate) job: Option<String>,
}

impl Standing {
    fn new(schedule: &Schedule, now: Timestamp) -> Standing {
        Standing { mark: schedule.mark(), since: now, last_slot: None, job: None }
    }

    /// Up to when no slot is left to be run.
    fn done(&self) -> Timestamp {
        self.last_slot.map_or(self.since, |slot| slot.max(self.since))
    }

    /// What it is to be from `now` on, if that is something else.
    fn renewed(&self, schedule: &Schedule, now: Timestamp) -> Option<Standing> {
        let mut new = self.clone();
        if new.mark != schedule.mark() {
            (new.mark, new.since) = (schedule.mark(), now);
        }
        // The clock was far ahead and was put right: slots must not wait until that time comes again.
        if new.done().millis_since(now) > MAX_CLOCK_STEP_MS {
            (new.since, new.last_slot) = (now, None);
        }
        (new != *self).then_some(new)
    }
}

fn row_key(name: &str) -> Vec<u8> {
    KeyBuffer::new(space::SCHEDULE).name(name).into_vec()
}

fn decode(bytes: Bytes) -> Result<Standing, Fault> {
    let row = Row::decode(bytes)?;
    let standing = Value::decode(row.body()).and_then(Value::into_serde);
    Ok(standing.map_err(|why| StoreError::Corrupt(format!("a schedule is unreadable: {why}")))?)
}

fn put(tx: &mut Transaction, name: &str, standing: &Standing) -> Result<(), Fault> {
    let value = Value::from_serde(standing).map_err(|why| StoreError::io("storing a schedule", why))?;
    let mut body = Vec::new();
    value.encode(&mut body);
    tx.require_durable();
    tx.put_row(&row_key(name), &body, None)
}

pub(crate) fn standing(tx: &mut Transaction, name: &str) -> Result<Option<Standing>, Fault> {
    tx.get(&row_key(name))?.map(decode).transpose()
}

/// What is wrong with the row of a schedule, for `doctor`.
pub(super) fn fault_of(key: &[u8], bytes: Bytes) -> Option<String> {
    decode(bytes).err().map(|why| format!("{}: {why}", key::describe(key)))
}

/// Where a schedule stands now.
pub(crate) struct Outlook {
    /// The slot that is to be enqueued.
    pub(crate) due: Option<Timestamp>,
    /// The next slot that is to come.
    pub(crate) next: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
    /// The job of the last slot, while it waits or runs.
    pub(crate) job: Option<String>,
    /// Whether the row is to be written before anything is due.
    stale: bool,
}

/// Looks at a schedule.
pub(crate) fn outlook(tx: &mut Transaction, schedule: &Schedule) -> Result<Outlook, Fault> {
    let now = tx.now();
    let next = schedule.timing.after(now);
    let stored = standing(tx, &schedule.name)?;
    let last = stored.as_ref().and_then(|standing| standing.last_slot);
    let Some(standing) = stored.filter(|standing| standing.renewed(schedule, now).is_none()) else {
        return Ok(Outlook { due: None, next, last, job: None, stale: true });
    };
    let job = match &standing.job {
        Some(id) => super::get(tx, id)?,
        None => None,
    };
    let busy = job.as_ref().is_some_and(|job| !job.state.is_finished());
    // What is to come by a clock that went back was in nobody's way.
    let freed = job.as_ref().and_then(|job| job.finished_at).filter(|at| *at <= now);
    let due = match busy {
        true => None,
        false => schedule.timing.due(schedule.missed, standing.done(), freed, now),
    };
    Ok(Outlook { due, next, last, job: job.filter(|_| busy).map(|job| job.id), stale: false })
}

/// Whether [`fire`] has anything to do.
pub(crate) fn is_waited_for(tx: &mut Transaction, schedules: &[&Schedule]) -> Result<bool, Fault> {
    for schedule in schedules {
        let outlook = outlook(tx, schedule)?;
        if outlook.stale || outlook.due.is_some() {
            return Ok(true);
        }
    }
    Ok(!strays(tx, schedules)?.is_empty())
}

/// Begins with schedules that are new, and with those whose pattern is: their first slot is the next one.
pub(crate) fn begin(tx: &mut Transaction, schedules: &[&Schedule]) -> Result<(), Fault> {
    let now = tx.now();
    for schedule in schedules {
        let new = match standing(tx, &schedule.name)? {
            None => Some(Standing::new(schedule, now)),
            Some(standing) => standing.renewed(schedule, now),
        };
        if let Some(new) = new {
            put(tx, &schedule.name, &new)?;
        }
    }
    Ok(())
}

/// Enqueues a job for each schedule that is due; how many. Only in a transaction that runs alone.
pub(crate) fn fire(
    tx: &mut Transaction,
    schedules: &[&Schedule],
    mut new_id: impl FnMut() -> String,
) -> Result<u64, JobError> {
    begin(tx, schedules)?;
    let mut fired = 0;
    for schedule in schedules {
        let Some(slot) = outlook(tx, schedule)?.due else { continue };
        let wish = Wish {
            handler: &schedule.handler,
            payload: schedule.payload.clone(),
            options: &schedule.job_options(slot),
            id: new_id(),
            ordinal: u32::try_from(fired).unwrap_or(u32::MAX),
        };
        let job = change::enqueue(tx, wish)?;
        if let Some(standing) = standing(tx, &schedule.name)? {
            put(tx, &schedule.name, &Standing { last_slot: Some(slot), job: Some(job), ..standing })?;
        }
        fired += 1;
    }
    for key in strays(tx, schedules)? {
        tx.delete_row(&key)?;
    }
    Ok(fired)
}

/// The rows of schedules that are declared no longer.
fn strays(tx: &mut Transaction, schedules: &[&Schedule]) -> Result<Vec<Bytes>, Fault> {
    /// Rows looked at; there are as many as schedules, and a few more where some were removed.
    const SPARE_ROWS: usize = 64;
    let rows = tx.scan(&Range::prefix(&[space::SCHEDULE]), Direction::Ascending, schedules.len() + SPARE_ROWS)?;
    let known: std::collections::BTreeSet<Vec<u8>> = schedules.iter().map(|schedule| row_key(&schedule.name)).collect();
    Ok(rows.into_iter().map(|(key, _)| key).filter(|key| !known.contains(&key[..])).collect())
}
