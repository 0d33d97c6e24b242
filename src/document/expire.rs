//! Removal of documents whose time has come, by the sweeper or by whoever finds one in the way.

use crate::store::key;
use crate::transaction::Transaction;

use super::catalogue::Catalogue;
use super::collection::Collection;
use super::error::DocumentError;
use super::{index, row};

/// Deletes the document at `row_key` with its index entries if it has expired; says whether it did.
///
/// A row that is gone, alive, or no document is left alone. Spends no budget and does not make the commit wait
/// for the disk: a crash brings back only what nobody can see.
pub(crate) fn expire(tx: &mut Transaction, catalogue: &Catalogue, row_key: &[u8]) -> Result<bool, DocumentError> {
    let Some((name, id)) = row::split_key(row_key) else { return Ok(false) };
    let collection = catalogue.collection(tx, &name)?;
    match tx.get_any_row(row_key)? {
        Some(found) if found.expired(tx.now()) => remove_if_expired(tx, &collection, &id),
        _ => Ok(false),
    }
}

/// Removes the document `id` unless it is alive; false when it is. One that is not there counts as removed.
pub(super) fn remove_if_expired(
    tx: &mut Transaction,
    collection: &Collection,
    id: &str,
) -> Result<bool, DocumentError> {
    let key = key::document(&collection.name, id);
    let Some(found) = tx.get_any_row(&key)? else { return Ok(true) };
    if !found.expired(tx.now()) {
        return Ok(false);
    }
    let document = row::document(&key, &found)?;
    index::remove_entries(tx, collection, &document, None)?;
    tx.delete_row(&key)?;
    Ok(true)
}
