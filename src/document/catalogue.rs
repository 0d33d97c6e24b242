//! The catalogue: what the store remembers of each collection, shared in memory while it stays the same.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::element;
use crate::store::key::{KeyBuffer, space};
use crate::store::{Bytes, Direction, Range};
use crate::transaction::Transaction;
use crate::transaction::row::Row;

use super::collection::{Collection, CollectionSpec, IndexState, StoredCollection, StoredIndex};
use super::error::{DataError, DocumentError, code};
use super::row;

/// The decoded catalogue rows, one for each collection asked for. One catalogue serves one store.
#[derive(Default)]
pub(crate) struct Catalogue {
    known: RwLock<HashMap<String, Known>>,
}

/// A catalogue row, none for a collection that was never declared, with what it says.
type Known = (Option<Bytes>, Arc<Collection>);

/// The most decoded collections kept: names come from scripts, and may be made up.
const MOST_KNOWN: usize = 1_024;

impl Catalogue {
    /// An empty catalogue.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The collection `name` as this transaction sees it, declared or not. Costs one `tx.get`.
    pub(crate) fn collection(&self, tx: &mut Transaction, name: &str) -> Result<Arc<Collection>, DocumentError> {
        let row = tx.get(&row_key(name))?;
        if let Some((bytes, collection)) = self.known.read().get(name)
            && same(bytes.as_ref(), row.as_ref())
        {
            return Ok(collection.clone());
        }
        let collection = Arc::new(match &row {
            None => Collection::undeclared(name)?,
            Some(bytes) => {
                Collection::stored(name, &decode(bytes.clone())?).map_err(|why| row::damaged(&row_key(name), &why))?
            }
        });
        let mut known = self.known.write();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(name.to_owned(), (row, collection.clone()));
        Ok(collection)
    }
}

/// Whether two rows are the same bytes; mostly they are the same memory.
fn same(a: Option<&Bytes>, b: Option<&Bytes>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        _ => false,
    }
}

/// A step that stands between a declaration and its effect; see `build::build_step`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// The index of this name is being built or dropped.
    Index(String),
    /// Documents are being given the expiry that the ttl declaration says.
    Ttl,
}

/// Makes the store remember `spec` and returns the work that it starts. Nothing is written when nothing changed.
///
/// An index that is new is ready at once on an empty collection, else it has to be built. One that the store has
/// and `spec` has not goes on being maintained and serving until [`drop_index`]. Ttl and buffering are
/// those of the latest declaration.
pub(crate) fn declare(tx: &mut Transaction, spec: &CollectionSpec) -> Result<Vec<Work>, DocumentError> {
    spec.check()?;
    let before = stored(tx, &spec.name)?;
    let Declared { after, anew } = declared(tx, before.clone().unwrap_or_default(), spec)?;
    for work in anew {
        forget_progress(tx, &spec.name, &work)?;
    }
    if before.as_ref() != Some(&after) {
        store(tx, &spec.name, &after)?;
    }
    Ok(pending_of(&after))
}

/// The work that [`declare`] would start. Writes nothing.
pub(crate) fn foresee(tx: &mut Transaction, spec: &CollectionSpec) -> Result<Vec<Work>, DocumentError> {
    spec.check()?;
    let before = stored(tx, &spec.name)?.unwrap_or_default();
    Ok(pending_of(&declared(tx, before, spec)?.after))
}

/// Makes the store remember `spec` and nothing besides: as [`declare`], and indexes that it has not are dropped.
pub(crate) fn restore(tx: &mut Transaction, spec: &CollectionSpec) -> Result<Vec<Work>, DocumentError> {
    declare(tx, spec)?;
    let mut now = stored(tx, &spec.name)?.unwrap_or_default();
    let mut dropped = Vec::new();
    for index in &mut now.indexes {
        if !spec.indexes.iter().any(|wanted| wanted.name == index.spec.name) {
            index.state = IndexState::Dropping { rebuild: false };
            dropped.push(Work::Index(index.spec.name.clone()));
        }
    }
    for work in &dropped {
        forget_progress(tx, &spec.name, work)?;
    }
    if !dropped.is_empty() {
        store(tx, &spec.name, &now)?;
    }
    Ok(pending_of(&now))
}

/// Forgets that a collection was declared, when nothing is left of the declaration.
pub(crate) fn forget(tx: &mut Transaction, collection: &str) -> Result<(), DocumentError> {
    if stored(tx, collection)? == Some(StoredCollection::default()) {
        tx.require_durable();
        tx.delete_row(&row_key(collection))?;
    }
    Ok(())
}

/// What the store is to remember once a collection is declared, and the work that begins anew with it.
struct Declared {
    after: StoredCollection,
    anew: Vec<Work>,
}

fn declared(
    tx: &mut Transaction,
    mut after: StoredCollection,
    spec: &CollectionSpec,
) -> Result<Declared, DocumentError> {
    let empty = tx.scan(&row::all(&spec.name), Direction::Ascending, 1)?.is_empty();
    let fresh = if empty { IndexState::Ready } else { IndexState::Building };
    let mut anew = Vec::new();
    for wanted in &spec.indexes {
        match after.indexes.iter_mut().find(|index| index.spec.name == wanted.name) {
            None => after.indexes.push(StoredIndex { spec: wanted.clone(), state: fresh }),
            Some(index) => {
                let same_fields = index.spec.fields == wanted.fields;
                let stricter = wanted.unique && !index.spec.unique;
                if let IndexState::Dropping { rebuild } = &mut index.state {
                    *rebuild = true;
                } else if !same_fields {
                    index.state = IndexState::Dropping { rebuild: true };
                    anew.push(Work::Index(wanted.name.clone()));
                } else if stricter {
                    // The entries stand; building over them once more finds what violates uniqueness.
                    index.state = fresh;
                    anew.push(Work::Index(wanted.name.clone()));
                }
                index.spec = wanted.clone();
            }
        }
    }
    if after.ttl != spec.ttl {
        after.ttl = spec.ttl.clone();
        after.ttl_pending = !empty;
        anew.push(Work::Ttl);
    }
    after.buffered = spec.buffered;
    Ok(Declared { after, anew })
}

/// The work that stands between the declarations of `collection` and their effect.
pub(crate) fn pending(tx: &mut Transaction, collection: &str) -> Result<Vec<Work>, DocumentError> {
    Ok(stored(tx, collection)?.map(|stored| pending_of(&stored)).unwrap_or_default())
}

fn pending_of(stored: &StoredCollection) -> Vec<Work> {
    let unready = stored.indexes.iter().filter(|index| index.state != IndexState::Ready);
    let ttl = stored.ttl_pending.then_some(Work::Ttl);
    unready.map(|index| Work::Index(index.spec.name.clone())).chain(ttl).collect()
}

/// Stops serving and maintaining an index; its entries go by the steps of `build::build_step`.
pub(crate) fn drop_index(tx: &mut Transaction, collection: &str, index: &str) -> Result<Work, DocumentError> {
    let mut now = stored(tx, collection)?.unwrap_or_default();
    let Some(found) = now.indexes.iter_mut().find(|stored| stored.spec.name == index) else {
        let known: Vec<&str> = now.indexes.iter().map(|stored| stored.spec.name.as_str()).collect();
        let why = match known.is_empty() {
            true => format!("`{collection}` has no indexes"),
            false => format!("`{collection}` has no index `{index}`: it has {}", known.join(", ")),
        };
        return Err(DataError::new(code::NOT_FOUND, why).with("index", index).into());
    };
    found.state = IndexState::Dropping { rebuild: false };
    let work = Work::Index(index.to_owned());
    forget_progress(tx, collection, &work)?;
    store(tx, collection, &now)?;
    Ok(work)
}

/// What the store remembers of `collection`; none when it was never declared.
pub(crate) fn stored(tx: &mut Transaction, collection: &str) -> Result<Option<StoredCollection>, DocumentError> {
    Ok(tx.get(&row_key(collection))?.map(decode).transpose()?)
}

/// The names of all collections, declared or with documents, in order.
pub(crate) fn collections(tx: &mut Transaction) -> Result<Vec<String>, DocumentError> {
    let mut names = names_in(tx, space::COLLECTION)?;
    names.extend(names_in(tx, space::DOCUMENT)?);
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// The names that begin the keys of a space, in order.
pub(super) fn names_in(tx: &mut Transaction, space: u8) -> Result<Vec<String>, DocumentError> {
    let mut names = Vec::new();
    let mut range = Range::prefix(&[space]);
    while let Some((found, _)) = tx.scan(&range, Direction::Ascending, 1)?.first() {
        let (name, _) = element::take_name(&found[1..]).ok_or_else(|| row::damaged(found, "it holds no name"))?;
        let name = String::from_utf8(name).map_err(|_| row::damaged(found, "its name is not text"))?;
        // From one name straight to the next, whatever goes on after it.
        range.low = std::ops::Bound::Included(row::past(KeyBuffer::new(space).name(&name)));
        names.push(name);
    }
    Ok(names)
}

pub(super) fn store(tx: &mut Transaction, collection: &str, stored: &StoredCollection) -> Result<(), DocumentError> {
    tx.require_durable();
    Ok(tx.put_row(&row_key(collection), &stored.encode(), None)?)
}

/// How far a work has come is kept beside the catalogue, so that its steps clash with no caller.
pub(super) fn progress_key(collection: &str, work: &Work) -> Vec<u8> {
    let (kind, name) = match work {
        Work::Index(name) => ("index", name.as_str()),
        Work::Ttl => ("ttl", ""),
    };
    KeyBuffer::new(space::META).name("progress").name(collection).name(kind).name(name).into_vec()
}

pub(super) fn forget_progress(tx: &mut Transaction, collection: &str, work: &Work) -> Result<(), DocumentError> {
    let key = progress_key(collection, work);
    if tx.get(&key)?.is_some() {
        tx.delete(&key)?;
    }
    Ok(())
}

fn row_key(collection: &str) -> Vec<u8> {
    KeyBuffer::new(space::COLLECTION).name(collection).into_vec()
}

fn decode(bytes: Bytes) -> Result<StoredCollection, crate::store::StoreError> {
    StoredCollection::decode(Row::decode(bytes)?.body())
}
