//! Rows of jobs: keys, places in the claim index, and what is read and written of them.

use crate::element::take_name;
use crate::store::key::{KeyBuffer, ordered_i64, space};
use crate::store::{Bytes, StoreError};
use crate::time::Timestamp;
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};
use crate::value::Value;

use super::{Job, MAX_PRIORITY};

/// The key of a job's row.
pub(super) fn job_key(id: &str) -> Vec<u8> {
    KeyBuffer::new(space::JOB).name(id).into_vec()
}

/// The key of the row that leads from an idempotency key to its job.
pub(super) fn idempotency_key(handler: &str, key: &str) -> Vec<u8> {
    KeyBuffer::new(space::JOB_KEY).name(handler).name(key).into_vec()
}

/// The id in the key of a job's row.
pub(super) fn id_of(key: &[u8]) -> Option<String> {
    let (id, rest) = take_name(key.strip_prefix(&[space::JOB])?)?;
    rest.is_empty().then(|| String::from_utf8(id).ok()).flatten()
}

/// What every place of one priority begins with. Ranks are priorities upside down: the most urgent comes first.
pub(super) fn places_of_rank(queue: &str, handler: &str, rank: u8) -> KeyBuffer {
    KeyBuffer::new(space::JOB_PLACE).name(queue).name(handler).raw(&[rank])
}

/// The place of a job that waits or is claimed.
pub(super) fn place_of(job: &Job) -> KeyBuffer {
    let rank = u8::try_from(MAX_PRIORITY - job.priority).unwrap_or(u8::MAX);
    places_of_rank(&job.queue, &job.handler, rank)
        .raw(&ordered_i64(job.due_at.as_millis()))
        .raw(&ordered_i64(job.created_at.as_millis()))
        .raw(&job.ordinal.to_be_bytes())
        .name(&job.id)
}

/// A place taken apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Lower is more urgent.
    pub(super) rank: u8,
    pub(super) due_at: Timestamp,
    pub(super) created_at: Timestamp,
    pub(super) ordinal: u32,
    pub(super) id: String,
    pub(super) queue: String,
    pub(super) handler: String,
}

/// Reads the key of a place.
pub(super) fn split_place(key: &[u8]) -> Result<Place, StoreError> {
    let read = || {
        let (queue, rest) = take_name(key.strip_prefix(&[space::JOB_PLACE])?)?;
        let (handler, rest) = take_name(rest)?;
        let (rank, rest) = rest.split_first()?;
        let (due, rest) = rest.split_first_chunk::<8>()?;
        let (created, rest) = rest.split_first_chunk::<8>()?;
        let (ordinal, rest) = rest.split_first_chunk::<4>()?;
        let (id, rest) = take_name(rest)?;
        let instant = |bytes: &[u8; 8]| Timestamp::from_millis((u64::from_be_bytes(*bytes) ^ (1 << 63)) as i64);
        rest.is_empty().then_some(())?;
        Some(Place {
            rank: *rank,
            due_at: instant(due),
            created_at: instant(created),
            ordinal: u32::from_be_bytes(*ordinal),
            id: String::from_utf8(id).ok()?,
            queue: String::from_utf8(queue).ok()?,
            handler: String::from_utf8(handler).ok()?,
        })
    };
    read().ok_or_else(|| StoreError::Corrupt(format!("{} cannot be read", crate::store::key::describe(key))))
}

/// The least key behind every place below `prefix` that is due at `now`.
pub(super) fn before_due(prefix: &[u8], now: Timestamp) -> Bytes {
    let mut high = prefix.to_vec();
    high.extend_from_slice(&ordered_i64(now.saturating_add_millis(1).as_millis()));
    high.into()
}

/// Whether a job has a place in the claim index.
pub(super) fn has_place(job: &Job) -> bool {
    !job.state.is_finished()
}

/// The job `id`, unless there is none or it is not kept any longer.
pub(crate) fn get(tx: &mut Transaction, id: &str) -> Result<Option<Job>, Fault> {
    tx.get_row(&job_key(id))?.map(|row| decode(&row)).transpose()
}

/// Reads a job's row.
pub(super) fn decode(row: &Row) -> Result<Job, Fault> {
    let job = Value::decode(row.body()).and_then(Value::into_serde);
    Ok(job.map_err(|why| StoreError::Corrupt(format!("a job is unreadable: {why}")))?)
}

/// Writes a job in place of what it was before, with its place in the claim index and its idempotency key's row.
pub(super) fn put(tx: &mut Transaction, before: Option<&Job>, job: &Job) -> Result<(), Fault> {
    let value = Value::from_serde(job).map_err(|why| StoreError::io("storing a job", why))?;
    let mut body = Vec::new();
    value.encode(&mut body);
    let expires_at = job.finished_at.map(|at| at.saturating_add_millis(job.keep_ms));
    tx.put_row(&job_key(&job.id), &body, expires_at)?;
    let old = before.filter(|job| has_place(job)).map(place_of);
    let new = has_place(job).then(|| place_of(job));
    if old != new {
        if let Some(old) = old {
            tx.delete(&old)?;
        }
        if let Some(new) = new {
            tx.put(&new, &[])?;
            tx.note_place(new.into());
        }
    }
    // Only its expiry ever changes, and that only when the job is finished or armed again.
    let was_finished = before.is_some_and(|job| job.state.is_finished());
    if let Some(key) = &job.key
        && (before.is_none() || was_finished != job.state.is_finished())
    {
        tx.put_row(&idempotency_key(&job.handler, key), job.id.as_bytes(), expires_at)?;
    }
    tx.require_durable();
    Ok(())
}

/// Removes a job with all that belongs to it.
pub(super) fn remove(tx: &mut Transaction, job: &Job) -> Result<(), Fault> {
    if has_place(job) {
        tx.delete(&place_of(job))?;
    }
    if let Some(key) = &job.key {
        tx.delete_row(&idempotency_key(&job.handler, key))?;
    }
    tx.delete_row(&job_key(&job.id))
}

/// The job of an idempotency key.
pub(super) fn by_key(tx: &mut Transaction, handler: &str, key: &str) -> Result<Option<Job>, Fault> {
    let Some(row) = tx.get_row(&idempotency_key(handler, key))? else { return Ok(None) };
    let id = String::from_utf8_lossy(row.body()).into_owned();
    get(tx, &id)
}
