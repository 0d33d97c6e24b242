//! Writing: inserting, changing and deleting documents, each operation whole or not at all.

use crate::store::key;
use crate::time::Stopwatch;
use crate::trace::{Step, Wrote};
use crate::transaction::Transaction;
use crate::value::{Map, Value};

use super::change::Change;
use super::collection::Collection;
use super::compare::{equal, or_null};
use super::error::{DataError, DocumentError, code, shown};
use super::filter::{Filter, Test};
use super::path::Path;
use super::{expire, find, form, index};

/// Makes the id of a document that brings none.
pub(crate) type NewId<'a> = &'a mut dyn FnMut() -> String;

/// Inserts a document and returns its `_id`, made by `new_id` unless the document brings one.
///
/// Errors: `bad_document`, `too_large`, `unique_violation` (of an index, or of `_id`).
pub(crate) fn insert(
    tx: &mut Transaction,
    collection: &Collection,
    mut document: Map,
    new_id: NewId<'_>,
) -> Result<String, DocumentError> {
    let id = settle_id(&mut document, new_id)?;
    whole(tx, |tx| put_new(tx, collection, &id, document))?;
    Ok(id)
}

/// Changes every document that matches; returns how many do.
///
/// What matches is settled first and uniqueness judged last, so that documents may pass values on to each other.
pub(crate) fn update(
    tx: &mut Transaction,
    collection: &Collection,
    filter: &Filter,
    change: &Change,
) -> Result<u64, DocumentError> {
    let found = find::all_matching(tx, collection, filter, "update")?;
    let matching = found.len() as u64;
    whole(tx, |tx| put_changed(tx, collection, found, change))?;
    Ok(matching)
}

/// Changes the first document that matches, in the order of `_id`; returns how many did: 0 or 1.
pub(crate) fn update_one(
    tx: &mut Transaction,
    collection: &Collection,
    filter: &Filter,
    change: &Change,
) -> Result<u64, DocumentError> {
    let found = find::first_matching(tx, collection, filter, "update_one")?;
    let matching = u64::from(found.is_some());
    whole(tx, |tx| put_changed(tx, collection, found.into_iter().collect(), change))?;
    Ok(matching)
}

/// Changes the first document that matches, or inserts one made of the fields that the filter binds by
/// equality and the change, `$setOnInsert` included. Returns the document's `_id`.
pub(crate) fn upsert(
    tx: &mut Transaction,
    collection: &Collection,
    filter: &Filter,
    change: &Change,
    new_id: NewId<'_>,
) -> Result<String, DocumentError> {
    if let Some(found) = find::first_matching(tx, collection, filter, "upsert")? {
        let id = own_id(&found).to_owned();
        whole(tx, |tx| put_changed(tx, collection, vec![found], change))?;
        return Ok(id);
    }
    let mut document = seed(filter)?;
    let seeded = document.get("_id").cloned();
    change.apply(&mut document, true)?;
    if let Some(seeded) = seeded {
        check_same_id(&seeded, &document)?;
    }
    let id = settle_id(&mut document, new_id)?;
    whole(tx, |tx| put_new(tx, collection, &id, document))?;
    Ok(id)
}

/// Deletes every document that matches; returns how many.
pub(crate) fn delete(tx: &mut Transaction, collection: &Collection, filter: &Filter) -> Result<u64, DocumentError> {
    let found = find::all_matching(tx, collection, filter, "delete")?;
    whole(tx, |tx| remove(tx, collection, &found))?;
    Ok(found.len() as u64)
}

/// Deletes the first document that matches, in the order of `_id`; returns how many did: 0 or 1.
pub(crate) fn delete_one(tx: &mut Transaction, collection: &Collection, filter: &Filter) -> Result<u64, DocumentError> {
    let found = find::first_matching(tx, collection, filter, "delete_one")?;
    let found: Vec<Map> = found.into_iter().collect();
    whole(tx, |tx| remove(tx, collection, &found))?;
    Ok(found.len() as u64)
}

/// Runs `operation`, of which nothing stays when it fails.
fn whole<T>(
    tx: &mut Transaction,
    operation: impl FnOnce(&mut Transaction) -> Result<T, DocumentError>,
) -> Result<T, DocumentError> {
    let before = tx.savepoint();
    let outcome = operation(tx);
    if outcome.is_err() {
        tx.rollback_to(before);
    }
    outcome
}

fn own_id(document: &Map) -> &str {
    or_null(document.get("_id")).as_str().unwrap_or_default()
}

/// Gives the document an `_id` unless it has one, and checks it.
fn settle_id(document: &mut Map, new_id: NewId<'_>) -> Result<String, DataError> {
    let id = document.entry("_id".to_owned()).or_insert_with(|| Value::Text(new_id()));
    form::check_id(id).map(str::to_owned)
}

/// What a filter says of the document that an upsert inserts.
fn seed(filter: &Filter) -> Result<Map, DataError> {
    let mut document = Map::new();
    let mut bound: Vec<(&Path, &Value)> = Vec::new();
    for (path, test) in filter.required() {
        let Test::Equal(value) = test else { continue };
        match bound.iter().find(|(other, _)| other.overlaps(path)) {
            Some((other, earlier)) if *other == path && equal(earlier, value) => {}
            Some((other, _)) => {
                let why = format!("an upsert cannot insert what the filter says: it binds `{path}` and `{other}`");
                return Err(DataError::bad_filter(why).with("field", path.as_str()));
            }
            None => {
                bound.push((path, value));
                path.set(&mut document, value.clone())
                    .map_err(|why| DataError::bad_filter(why).with("field", path.as_str()))?;
            }
        }
    }
    Ok(document)
}

fn check_same_id(id: &Value, changed: &Map) -> Result<(), DataError> {
    match changed.get("_id") {
        Some(same) if same == id => Ok(()),
        other => {
            let other = other.map_or_else(|| "nothing".to_owned(), shown);
            let why = format!("the change makes {other} of `_id` {}: an `_id` stays what it is", shown(id));
            Err(DataError::bad_change(why).with("field", "_id"))
        }
    }
}

fn put_new(tx: &mut Transaction, collection: &Collection, id: &str, document: Map) -> Result<(), DocumentError> {
    let begun = tx.watch();
    form::check_document(&document)?;
    let expires_at = collection.expires_at(&document)?;
    if !expire::remove_if_expired(tx, collection, id)? {
        let name = &collection.name;
        let why = format!("`{name}` has a document {id:?} already: leave `_id` out, or update that one");
        let error = DataError::new(code::UNIQUE_VIOLATION, why);
        return Err(error
            .with("collection", name.as_str())
            .with("index", "_id")
            .with("value", id)
            .with("id", id)
            .into());
    }
    tx.spend_writes(1)?;
    index::add_entries(tx, collection, None, &document)?;
    let after = begun.map(|_| document.clone());
    let body = form::encode(&Value::Map(document), tx.document_bytes())?;
    tx.put_row(&key::document(&collection.name, id), &body, expires_at)?;
    acknowledge(tx, collection);
    tell(tx, begun, collection, id, None, after);
    Ok(())
}

fn put_changed(
    tx: &mut Transaction,
    collection: &Collection,
    found: Vec<Map>,
    change: &Change,
) -> Result<(), DocumentError> {
    let mut pairs = Vec::with_capacity(found.len());
    for old in found {
        let mut new = old.clone();
        change.apply(&mut new, false)?;
        check_same_id(or_null(old.get("_id")), &new)?;
        // Exactly what it was, kinds of numbers included: there is nothing to write.
        if new != old {
            form::check_document(&new)?;
            pairs.push((old, new));
        }
    }
    for (old, new) in &pairs {
        index::remove_entries(tx, collection, old, Some(new))?;
    }
    for (old, new) in pairs {
        let begun = tx.watch();
        tx.spend_writes(1)?;
        index::add_entries(tx, collection, Some(&old), &new)?;
        let expires_at = collection.expires_at(&new)?;
        let key = key::document(&collection.name, own_id(&new));
        let after = begun.map(|_| new.clone());
        let body = form::encode(&Value::Map(new), tx.document_bytes())?;
        tx.put_row(&key, &body, expires_at)?;
        acknowledge(tx, collection);
        tell(tx, begun, collection, own_id(&old), Some(&old), after);
    }
    Ok(())
}

fn remove(tx: &mut Transaction, collection: &Collection, found: &[Map]) -> Result<(), DocumentError> {
    for document in found {
        let begun = tx.watch();
        tx.spend_writes(1)?;
        index::remove_entries(tx, collection, document, None)?;
        tx.delete_row(&key::document(&collection.name, own_id(document)))?;
        acknowledge(tx, collection);
        tell(tx, begun, collection, own_id(document), Some(document), None);
    }
    Ok(())
}

/// A call that wrote documents returns when they are on disk, unless the collection is buffered.
fn acknowledge(tx: &mut Transaction, collection: &Collection) {
    if !collection.buffered {
        tx.require_durable();
    }
}

/// Tells of a document that was written, when somebody wants to know.
fn tell(
    tx: &mut Transaction,
    begun: Option<Stopwatch>,
    collection: &Collection,
    id: &str,
    before: Option<&Map>,
    after: Option<Map>,
) {
    let Some(begun) = begun else { return };
    let change = match (before, &after) {
        (None, _) => "insert",
        (Some(_), Some(_)) => "update",
        (Some(_), None) => "delete",
    };
    let (collection, id, before) = (collection.name.clone(), id.to_owned(), before.cloned());
    tx.tell(Step::Write(Wrote { change, collection, id, before, after, undone: false, took: begun.elapsed() }));
}
