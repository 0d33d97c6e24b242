//! Verification: every invariant of documents, their indexes and their expiry, for `doctor`.

use std::collections::BTreeSet;

use crate::element;
use crate::store::key::{self, KeyBuffer, space};
use crate::store::{Bytes, Direction, Range};
use crate::transaction::Transaction;
use crate::transaction::row::Row;
use crate::value::Map;

use super::catalogue::{self, Catalogue, Work};
use super::collection::{Collection, Index};
use super::compare::or_null;
use super::error::DocumentError;
use super::row::{self, Pages};
use super::{form, index};

/// The most lines reported: a damaged store must not fill the memory with its story.
const MOST_LINES: usize = 1_000;

/// Says what is wrong with the documents of the whole store, one line each; empty when nothing is.
///
/// Reads everything, page by page, and spends no budget. Errors are of the store itself; an unreadable document is a line.
pub(crate) fn verify(tx: &mut Transaction) -> Result<Vec<String>, DocumentError> {
    let mut wrong = Vec::new();
    let catalogue = Catalogue::new();
    let mut names: BTreeSet<String> = catalogue::collections(tx)?.into_iter().collect();
    names.extend(catalogue::names_in(tx, space::INDEX)?);
    for name in names {
        let collection = match catalogue.collection(tx, &name) {
            Ok(collection) => collection,
            Err(error) => {
                wrong.push(format!("collection {name}: {error}"));
                continue;
            }
        };
        documents(tx, &collection, &mut wrong)?;
        entries(tx, &collection, &mut wrong)?;
        if wrong.len() >= MOST_LINES {
            break;
        }
    }
    expiry(tx, &mut wrong)?;
    if wrong.len() > MOST_LINES {
        wrong.truncate(MOST_LINES);
        wrong.push("and more".to_owned());
    }
    Ok(wrong)
}

/// Each document is well-formed, has its entries, and its expiry entry where it says.
fn documents(tx: &mut Transaction, collection: &Collection, wrong: &mut Vec<String>) -> Result<(), DocumentError> {
    let stored = catalogue::stored(tx, &collection.name)?.unwrap_or_default();
    let mut built = Vec::new();
    for index in &collection.indexes {
        // A build has added the entries of the documents up to its progress; later ones may have theirs.
        let key = catalogue::progress_key(&collection.name, &Work::Index(index.name.clone()));
        let up_to: Option<Bytes> = if index.ready { None } else { Some(tx.get(&key)?.unwrap_or_else(|| [].into())) };
        built.push((index, up_to.map(|bytes| bytes.get(8..).unwrap_or_default().to_vec())));
    }
    let mut pages = Pages::of(row::all(&collection.name), Direction::Ascending, usize::MAX);
    loop {
        let rows = pages.next(tx)?;
        if rows.is_empty() || wrong.len() >= MOST_LINES {
            return Ok(());
        }
        for (at, bytes) in rows {
            let (found, document) = match readable(&at, bytes) {
                Ok(both) => both,
                Err(error) => {
                    wrong.push(error.to_string());
                    continue;
                }
            };
            let described = key::describe(&at);
            let id = row::split_key(&at).map(|(_, id)| id);
            if id.as_deref() != or_null(document.get("_id")).as_str() {
                wrong.push(format!("{described} says its _id is {}", or_null(document.get("_id"))));
            }
            if let Err(error) = form::check_document(&document) {
                wrong.push(format!("{described}: {error}"));
            }
            match collection.expires_at(&document) {
                _ if stored.ttl_pending => {}
                Ok(expires_at) if expires_at == found.expiry.map(|expiry| expiry.expires_at) => {}
                Ok(_) => wrong.push(format!("{described} does not expire when its ttl field says")),
                Err(error) => wrong.push(format!("{described}: {error}")),
            }
            if let Some(expiry) = found.expiry {
                if expiry.indexed_at > expiry.expires_at {
                    wrong.push(format!("{described} has its expiry entry after its expiry"));
                }
                if tx.get(&key::expiry(expiry.indexed_at, &at))?.is_none() {
                    wrong.push(format!("{described} has no expiry entry at {}", expiry.indexed_at));
                }
            }
            for (index, up_to) in &built {
                let due = up_to.as_ref().is_none_or(|up_to| at[..] <= up_to[..]);
                if due && tx.get(&index.entry(&collection.name, &document))?.is_none() {
                    wrong.push(format!("{described} has no entry in index {}", index.name));
                }
            }
        }
    }
}

fn readable(at: &[u8], bytes: Bytes) -> Result<(Row, Map), DocumentError> {
    let found = Row::decode(bytes)?;
    let document = row::document(at, &found)?;
    Ok((found, document))
}

/// Each entry belongs to an index that is known and to a document that has its values; unique values are.
fn entries(tx: &mut Transaction, collection: &Collection, wrong: &mut Vec<String>) -> Result<(), DocumentError> {
    let stored = catalogue::stored(tx, &collection.name)?.unwrap_or_default();
    let all = row::going_on(&KeyBuffer::new(space::INDEX).name(&collection.name));
    let mut pages = Pages::of(all, Direction::Ascending, usize::MAX);
    // The values of the last entry of a unique index that a live document has, to be compared with the next.
    let mut last: Option<Vec<u8>> = None;
    loop {
        let rows = pages.next(tx)?;
        if rows.is_empty() || wrong.len() >= MOST_LINES {
            return Ok(());
        }
        for (entry, _) in rows {
            let described = key::describe(&entry);
            let Some(name) = index_name(&entry) else {
                wrong.push(format!("{described} is unreadable"));
                continue;
            };
            let Some(index) = collection.indexes.iter().find(|index| index.name == name) else {
                // Those of an index that is being dropped go with it.
                if !stored.indexes.iter().any(|index| index.spec.name == name) {
                    wrong.push(format!("{described} belongs to no index"));
                }
                continue;
            };
            match owner(tx, collection, index, &entry)? {
                Err(why) => wrong.push(format!("{described}: {why}")),
                Ok(None) => {}
                Ok(Some(values)) => {
                    if last.as_ref() == Some(&values) {
                        wrong.push(format!("{described} is unique and has two documents with the same value"));
                    }
                    last = Some(values);
                }
            }
        }
    }
}

/// What is wrong with an entry; else, for a live document in a ready unique index that binds it, the entry without the id.
fn owner(
    tx: &mut Transaction,
    collection: &Collection,
    index: &Index,
    entry: &[u8],
) -> Result<Result<Option<Vec<u8>>, String>, DocumentError> {
    let known = index::prefix(&collection.name, &index.name);
    let Some(id) = index.id_of(entry, known.as_slice().len(), 0) else {
        return Ok(Err("it holds no id".to_owned()));
    };
    let at = key::document(&collection.name, &id);
    let Some(bytes) = tx.get(&at)? else {
        return Ok(Err(format!("its document {id:?} is not there")));
    };
    // An unreadable document has its line already.
    let Ok((found, document)) = readable(&at, bytes) else { return Ok(Ok(None)) };
    if index.entry(&collection.name, &document) != entry {
        return Ok(Err(format!("its document {id:?} has other values")));
    }
    let judged = index.ready && index.binds(&document) && !found.expired(tx.now());
    Ok(Ok(judged.then(|| index.values_prefix(&collection.name, &document).into_vec())))
}

/// Each expiry entry of a document is the one that the document names.
fn expiry(tx: &mut Transaction, wrong: &mut Vec<String>) -> Result<(), DocumentError> {
    let mut pages = Pages::of(Range::prefix(&[space::EXPIRY]), Direction::Ascending, usize::MAX);
    loop {
        let rows = pages.next(tx)?;
        if rows.is_empty() || wrong.len() >= MOST_LINES {
            return Ok(());
        }
        for (entry, _) in rows {
            let described = key::describe(&entry);
            match key::split_expiry(&entry) {
                None => wrong.push(format!("{described} is unreadable")),
                // Buckets look after their own.
                Some((_, at)) if at.first() != Some(&space::DOCUMENT) => {}
                Some((instant, at)) => match tx.get(at)?.map(Row::decode) {
                    None => wrong.push(format!("{described}: the document is not there")),
                    Some(Ok(found)) if found.expiry.is_none_or(|expiry| expiry.indexed_at != instant) => {
                        wrong.push(format!("{described}: the document names another entry"));
                    }
                    Some(_) => {}
                },
            }
        }
    }
}

fn index_name(entry: &[u8]) -> Option<String> {
    let (_, rest) = element::take_name(entry.get(1..)?)?;
    String::from_utf8(element::take_name(rest)?.0).ok()
}
