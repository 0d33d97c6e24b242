//! Checks of what is stored of jobs, for `doctor`.

use crate::store::key::{self, space};
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};

use super::row::{by_key, decode, get, has_place, id_of, place_of, split_place};

/// What is wrong with one row of the spaces of jobs, if anything.
pub(crate) fn fault_of(tx: &mut Transaction, key: &[u8], bytes: crate::store::Bytes) -> Result<Option<String>, Fault> {
    let row = key::describe(key);
    match key.first() {
        Some(&space::JOB) => {
            let stored = Row::decode(bytes)?;
            let job = decode(&stored)?;
            if id_of(key).as_deref() != Some(&job.id) {
                return Ok(Some(format!("{row} holds the job {:?}", job.id)));
            }
            if stored.expiry.is_some() != job.state.is_finished() {
                return Ok(Some(format!("{row} is {} and {}", job.state, expires(stored.expiry.is_some()))));
            }
            if has_place(&job) && tx.get(&place_of(&job))?.is_none() {
                return Ok(Some(format!("{row} is {} and no worker would find it", job.state)));
            }
            if let Some(idempotency) = &job.key
                && has_place(&job)
                && by_key(tx, &job.handler, idempotency)?.is_none_or(|other| other.id != job.id)
            {
                return Ok(Some(format!("{row} is not found by its key {idempotency:?}")));
            }
            Ok(None)
        }
        Some(&space::JOB_PLACE) => {
            let place = split_place(key)?;
            let right = get(tx, &place.id)?.is_some_and(|job| has_place(&job) && *place_of(&job) == *key);
            Ok((!right).then(|| format!("{row} leads to no job that waits there")))
        }
        Some(&space::SCHEDULE) => Ok(super::fire::fault_of(key, bytes)),
        _ => Ok(None),
    }
}

fn expires(does: bool) -> &'static str {
    if does { "would expire" } else { "would stay for ever" }
}

/// The spaces of keys that [`fault_of`] checks.
pub(crate) const SPACES: [u8; 3] = [space::JOB, space::JOB_PLACE, space::SCHEDULE];
