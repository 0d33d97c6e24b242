//! Building: the work between a declaration and its effect, in small steps, each a transaction of its own.
//!
//! From the commit of the declaration on every write maintains a new index, so that a step only has to add the
//! entries of documents that are older. A step that clashes with a write runs again. How far the work has come is
//! stored, so that it goes on after a restart.

use std::ops::Bound;

use crate::store::{Direction, Range};
use crate::transaction::Transaction;
use crate::transaction::row::Row;
use crate::value::{Map, Value};

use super::catalogue::{self, Work};
use super::collection::{Collection, IndexState, StoredCollection};
use super::error::{DataError, DocumentError};
use super::{expire, index, row};

/// The most rows of one step: a group of writes to the store stays small.
pub(crate) const MOST_ROWS: usize = 64;

/// What a step did. Commit its transaction whatever it says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Progress {
    /// So many rows are done in all; go on.
    Working {
        /// Rows done by this and all earlier steps.
        done: u64,
    },
    /// The work is finished: the index serves, documents have their expiry.
    Ready,
    /// An index is gone.
    Dropped,
    /// The data does not allow what was declared. An index is being dropped: go on with the same work to be rid of it.
    Refused(DataError),
}

/// Does the next step of a work over at most `most` rows; see [`catalogue::pending`] for the work there is.
///
/// A work that is not pending (any more) is `Ready`.
pub(crate) fn build_step(
    tx: &mut Transaction,
    collection: &str,
    work: &Work,
    most: usize,
) -> Result<Progress, DocumentError> {
    let most = most.clamp(1, MOST_ROWS);
    let Some(stored) = catalogue::stored(tx, collection)? else { return Ok(Progress::Ready) };
    let ready = Collection::stored(collection, &stored).map_err(DataError::bad_document)?;
    match work {
        Work::Ttl if stored.ttl_pending => retime(tx, &ready, stored, most),
        Work::Ttl => Ok(Progress::Ready),
        Work::Index(name) => {
            let state = stored.indexes.iter().find(|index| index.spec.name == *name).map(|index| index.state);
            match state {
                Some(IndexState::Building) => add(tx, &ready, stored, name, most),
                Some(IndexState::Dropping { rebuild }) => drop(tx, collection, stored, name, rebuild, most),
                Some(IndexState::Ready) | None => Ok(Progress::Ready),
            }
        }
    }
}

/// Rows done, and the key of the last one.
fn progress(tx: &mut Transaction, collection: &str, work: &Work) -> Result<(u64, Option<Vec<u8>>), DocumentError> {
    let key = catalogue::progress_key(collection, work);
    let Some(bytes) = tx.get(&key)? else { return Ok((0, None)) };
    match bytes.split_first_chunk::<8>() {
        Some((done, after)) => Ok((u64::from_be_bytes(*done), Some(after.to_vec()))),
        None => Err(row::damaged(&key, "it is too short").into()),
    }
}

/// The live documents of one step, and the rows done in all.
struct Step {
    documents: Vec<(Vec<u8>, Map)>,
    done: u64,
}

/// The next documents of a build; none when this was the end.
///
/// Expired ones are removed on the way: left without an entry, they would come back by halves if the clock stepped back.
fn next_documents(
    tx: &mut Transaction,
    collection: &Collection,
    work: &Work,
    most: usize,
) -> Result<Option<Step>, DocumentError> {
    let (done, after) = progress(tx, &collection.name, work)?;
    let mut range = row::all(&collection.name);
    if let Some(after) = after {
        range.low = Bound::Excluded(after.into());
    }
    let rows = tx.scan(&range, Direction::Ascending, most)?;
    let Some((last, _)) = rows.last() else { return Ok(None) };
    let done = done.saturating_add(rows.len() as u64);
    let mut bytes = done.to_be_bytes().to_vec();
    bytes.extend_from_slice(last);
    tx.put(&catalogue::progress_key(&collection.name, work), &bytes)?;
    let mut documents = Vec::with_capacity(rows.len());
    for (key, bytes) in rows {
        let found = Row::decode(bytes)?;
        let document = row::document(&key, &found)?;
        if found.expired(tx.now()) {
            let (_, id) = row::split_key(&key).ok_or_else(|| row::damaged(&key, "it holds no id"))?;
            expire::remove_if_expired(tx, collection, &id)?;
        } else {
            documents.push((key.to_vec(), document));
        }
    }
    Ok(Some(Step { documents, done }))
}

/// Adds the entries of the next documents to an index.
fn add(
    tx: &mut Transaction,
    collection: &Collection,
    mut stored: StoredCollection,
    name: &str,
    most: usize,
) -> Result<Progress, DocumentError> {
    let work = Work::Index(name.to_owned());
    let Some(index) = collection.indexes.iter().find(|index| index.name == name) else { return Ok(Progress::Ready) };
    let Some(Step { documents, done }) = next_documents(tx, collection, &work, most)? else {
        set_state(tx, &collection.name, &mut stored, name, Some(IndexState::Ready))?;
        return Ok(Progress::Ready);
    };
    for (_, document) in documents {
        let entry = index.entry(&collection.name, &document);
        let refusal = match index.check_length(&collection.name, &entry, &document) {
            Err(error) => Some(error),
            Ok(()) => index.rival(tx, collection, &document)?.map(|rival| {
                let second = document.get("_id").cloned().unwrap_or_default();
                let value = super::error::shown(&index.values(&document));
                let mut error = index.violation(&collection.name, &document, &rival);
                error.message = format!(
                    "unique index `{name}` of `{}` is refused: documents {rival:?} and {second} both have {value}; change or delete one",
                    collection.name
                );
                error.with("first", rival).with("second", second)
            }),
        };
        if let Some(error) = refusal {
            set_state(tx, &collection.name, &mut stored, name, Some(IndexState::Dropping { rebuild: false }))?;
            return Ok(Progress::Refused(error));
        }
        tx.put(&entry, &[])?;
    }
    Ok(Progress::Working { done })
}

/// Removes the next entries of an index.
fn drop(
    tx: &mut Transaction,
    collection: &str,
    mut stored: StoredCollection,
    name: &str,
    rebuild: bool,
    most: usize,
) -> Result<Progress, DocumentError> {
    let range: Range = row::going_on(&index::prefix(collection, name));
    let entries = tx.scan(&range, Direction::Ascending, most)?;
    if entries.is_empty() {
        let next = rebuild.then_some(IndexState::Building);
        set_state(tx, collection, &mut stored, name, next)?;
        return Ok(if rebuild { Progress::Working { done: 0 } } else { Progress::Dropped });
    }
    let work = Work::Index(name.to_owned());
    let done = progress(tx, collection, &work)?.0.saturating_add(entries.len() as u64);
    tx.put(&catalogue::progress_key(collection, &work), &done.to_be_bytes())?;
    for (entry, _) in entries {
        tx.delete(&entry)?;
    }
    Ok(Progress::Working { done })
}

/// Gives the next documents the expiry that the ttl says.
fn retime(
    tx: &mut Transaction,
    collection: &Collection,
    mut stored: StoredCollection,
    most: usize,
) -> Result<Progress, DocumentError> {
    let Some(Step { documents, done }) = next_documents(tx, collection, &Work::Ttl, most)? else {
        stored.ttl_pending = false;
        catalogue::forget_progress(tx, &collection.name, &Work::Ttl)?;
        catalogue::store(tx, &collection.name, &stored)?;
        return Ok(Progress::Ready);
    };
    for (key, document) in documents {
        match collection.expires_at(&document) {
            Ok(expires_at) => {
                let mut body = Vec::with_capacity(256);
                Value::Map(document).encode(&mut body);
                tx.put_row(&key, &body, expires_at)?;
            }
            Err(error) => {
                // Without the ttl no document is at fault. The work stays pending and begins anew: it frees those
                // that were given an expiry.
                stored.ttl = None;
                catalogue::forget_progress(tx, &collection.name, &Work::Ttl)?;
                catalogue::store(tx, &collection.name, &stored)?;
                let id = document.get("_id").cloned().unwrap_or_default();
                return Ok(Progress::Refused(error.with("id", id)));
            }
        }
    }
    Ok(Progress::Working { done })
}

/// Puts an index into its next state, or forgets it.
fn set_state(
    tx: &mut Transaction,
    collection: &str,
    stored: &mut StoredCollection,
    name: &str,
    state: Option<IndexState>,
) -> Result<(), DocumentError> {
    match state {
        Some(state) => {
            stored.indexes.iter_mut().filter(|index| index.spec.name == name).for_each(|index| index.state = state);
        }
        None => stored.indexes.retain(|index| index.spec.name != name),
    }
    catalogue::forget_progress(tx, collection, &Work::Index(name.to_owned()))?;
    catalogue::store(tx, collection, stored)
}
