//! Index entries: which a document has, keeping them, and what a unique index forbids.

use crate::element;
use crate::store::Direction;
use crate::store::key::{KeyBuffer, space};
use crate::transaction::Transaction;
use crate::value::{Map, Value};

use super::collection::{Collection, Index};
use super::compare::or_null;
use super::error::{DataError, DocumentError, code, shown};
use super::row::{self, Pages};

/// The most bytes of one entry's indexed values: keys are held in memory many times over.
const MAX_INDEXED_BYTES: usize = 4_096;

impl Index {
    /// What the keys of all entries begin with.
    pub(super) fn prefix(&self, collection: &str) -> KeyBuffer {
        prefix(collection, &self.name)
    }

    /// What the keys of the entries begin with that hold the values of `document`.
    pub(super) fn values_prefix(&self, collection: &str, document: &Map) -> KeyBuffer {
        let prefix = self.prefix(collection);
        self.fields.iter().fold(prefix, |key, field| key.element(or_null(field.find(document))))
    }

    /// The key of the entry of `document`.
    pub(super) fn entry(&self, collection: &str, document: &Map) -> Vec<u8> {
        let id = or_null(document.get("_id")).as_str().unwrap_or_default();
        self.values_prefix(collection, document).name(id).into_vec()
    }

    /// The `_id` in an entry's key, of which `known` bytes hold the names and the first `bound` values.
    pub(super) fn id_of(&self, key: &[u8], known: usize, bound: usize) -> Option<String> {
        let mut rest = key.get(known..)?;
        for _ in bound..self.fields.len() {
            rest = element::take_element(rest)?.1;
        }
        let (id, rest) = element::take_name(rest)?;
        if rest.is_empty() { String::from_utf8(id).ok() } else { None }
    }

    /// The indexed values as messages and errors carry them: the value itself, or an array of several.
    pub(super) fn values(&self, document: &Map) -> Value {
        let mut values: Vec<Value> = self.fields.iter().map(|field| or_null(field.find(document)).clone()).collect();
        match values.len() {
            1 => values.remove(0),
            _ => Value::Array(values),
        }
    }

    /// Whether uniqueness binds `document`: one with a missing or `()` field is let through.
    pub(super) fn binds(&self, document: &Map) -> bool {
        self.unique && self.fields.iter().all(|field| !or_null(field.find(document)).is_null())
    }

    /// The `_id` of another live document with the values of `document`. Expired ones in the way are removed.
    pub(super) fn rival(
        &self,
        tx: &mut Transaction,
        collection: &Collection,
        document: &Map,
    ) -> Result<Option<String>, DocumentError> {
        if !self.binds(document) {
            return Ok(None);
        }
        let own = or_null(document.get("_id")).as_str().unwrap_or_default();
        let prefix = self.values_prefix(&collection.name, document);
        let known = prefix.as_slice().len();
        let mut pages = Pages::of(row::going_on(&prefix), Direction::Ascending, 2);
        loop {
            let entries = pages.next(tx)?;
            if entries.is_empty() {
                return Ok(None);
            }
            for (entry, _) in entries {
                let id = self
                    .id_of(&entry, known, self.fields.len())
                    .ok_or_else(|| row::damaged(&entry, "it holds no id"))?;
                if id != own && !super::expire::remove_if_expired(tx, collection, &id)? {
                    return Ok(Some(id));
                }
            }
        }
    }

    /// The error of a document whose values `rival` has already.
    pub(super) fn violation(&self, collection: &str, document: &Map, rival: &str) -> DataError {
        let value = self.values(document);
        let index = &self.name;
        let why = format!("`{collection}` has {} in unique index `{index}` already: document {rival:?}", shown(&value));
        DataError::new(code::UNIQUE_VIOLATION, why)
            .with("collection", collection)
            .with("index", index.as_str())
            .with("value", value)
            .with("id", rival)
    }

    /// Refuses values too long to be kept in order.
    pub(super) fn check_length(&self, collection: &str, entry: &[u8], document: &Map) -> Result<(), DataError> {
        let id = or_null(document.get("_id")).as_str().unwrap_or_default();
        let length = entry.len() - self.prefix(collection).as_slice().len();
        if length <= MAX_INDEXED_BYTES + id.len() {
            return Ok(());
        }
        let index = &self.name;
        let why =
            format!("{length} bytes are too many for index `{index}` of `{collection}`: at most {MAX_INDEXED_BYTES}");
        Err(DataError::new(code::TOO_LARGE, why).with("index", index.as_str()).with("id", id))
    }
}

/// What the keys of all entries of an index begin with.
pub(super) fn prefix(collection: &str, index: &str) -> KeyBuffer {
    KeyBuffer::new(space::INDEX).name(collection).name(index)
}

/// Removes the entries that `old` has and `new` has not.
pub(super) fn remove_entries(
    tx: &mut Transaction,
    collection: &Collection,
    old: &Map,
    new: Option<&Map>,
) -> Result<(), DocumentError> {
    for index in &collection.indexes {
        let entry = index.entry(&collection.name, old);
        if new.is_none_or(|new| index.entry(&collection.name, new) != entry) {
            tx.delete(&entry)?;
        }
    }
    Ok(())
}

/// Adds the entries that `new` has and `old` has not, if no unique index forbids it.
pub(super) fn add_entries(
    tx: &mut Transaction,
    collection: &Collection,
    old: Option<&Map>,
    new: &Map,
) -> Result<(), DocumentError> {
    for index in &collection.indexes {
        let entry = index.entry(&collection.name, new);
        if old.is_some_and(|old| index.entry(&collection.name, old) == entry) {
            continue;
        }
        index.check_length(&collection.name, &entry, new)?;
        if let Some(rival) = index.rival(tx, collection, new)? {
            return Err(index.violation(&collection.name, new, &rival).into());
        }
        tx.put(&entry, &[])?;
    }
    Ok(())
}
