//! Collections: what is declared of one, what the store remembers of it, and its ready-to-use form.

use serde::{Deserialize, Serialize};

use crate::store::StoreError;
use crate::time::Timestamp;
use crate::value::{Map, Value};

use super::error::{DataError, shown};
use super::form;
use super::path::Path;

/// The most fields of one index.
const MAX_INDEX_FIELDS: usize = 8;
/// The most indexes of one collection.
const MAX_INDEXES: usize = 32;
/// The longest name of an index, in bytes.
const MAX_INDEX_NAME_BYTES: usize = 1_024;

/// What a file declares of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CollectionSpec {
    pub(crate) name: String,
    pub(crate) indexes: Vec<IndexSpec>,
    pub(crate) ttl: Option<Ttl>,
    /// Whether writes may be forgotten by a crash within the flush interval.
    pub(crate) buffered: bool,
}

/// What is declared of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexSpec {
    pub(crate) name: String,
    /// Dotted paths, in the order of the index.
    pub(crate) fields: Vec<String>,
    pub(crate) unique: bool,
}

/// When documents expire: at the instant in `field`, or `after_ms` later than it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ttl {
    pub(crate) field: String,
    pub(crate) after_ms: Option<i64>,
}

impl CollectionSpec {
    /// A collection without indexes and expiry.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        CollectionSpec { name: name.into(), ..CollectionSpec::default() }
    }

    /// Checks names and limits; the error is `bad_document`.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        form::check_collection_name(&self.name)?;
        if self.indexes.len() > MAX_INDEXES {
            let why = format!("{} indexes on `{}` are too many: at most {MAX_INDEXES}", self.indexes.len(), self.name);
            return Err(DataError::bad_document(why));
        }
        for (at, index) in self.indexes.iter().enumerate() {
            index.check().map_err(|why| DataError::bad_document(why).with("collection", self.name.as_str()))?;
            if self.indexes[..at].iter().any(|other| other.name == index.name) {
                let why = format!("index `{}` is declared twice on `{}`: remove one", index.name, self.name);
                return Err(DataError::bad_document(why));
            }
        }
        if let Some(ttl) = &self.ttl {
            Path::parse(&ttl.field).map_err(DataError::bad_document)?;
        }
        Ok(())
    }
}

impl IndexSpec {
    /// An index named by its fields: `plan,created_at`.
    pub(crate) fn new(fields: Vec<String>, unique: bool) -> Self {
        IndexSpec { name: fields.join(","), fields, unique }
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        match self.fields.len() {
            0 => return Err(format!("index `{name}` has no fields: name one at least")),
            1..=MAX_INDEX_FIELDS => {}
            many => return Err(format!("index `{name}` has {many} fields: at most {MAX_INDEX_FIELDS}")),
        }
        if name.is_empty() || name.len() > MAX_INDEX_NAME_BYTES {
            return Err(format!("an index name of {} bytes does not do: 1 to {MAX_INDEX_NAME_BYTES}", name.len()));
        }
        for (at, field) in self.fields.iter().enumerate() {
            Path::parse(field)?;
            if self.fields[..at].contains(field) {
                return Err(format!("index `{name}` has the field `{field}` twice"));
            }
        }
        Ok(())
    }
}

/// Where an index stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexState {
    /// Its entries are complete; it serves.
    Ready,
    /// Writes maintain it, entries of older documents are still being added; it does not serve.
    Building,
    /// Its entries are being removed; nobody maintains it.
    Dropping {
        /// Whether it is to be built (again) afterwards.
        rebuild: bool,
    },
}

/// What the store remembers of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredIndex {
    pub(crate) spec: IndexSpec,
    pub(crate) state: IndexState,
}

/// What the store remembers of a collection: the body of its catalogue row. A row of an older version may lack fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredCollection {
    pub(crate) indexes: Vec<StoredIndex>,
    pub(crate) ttl: Option<Ttl>,
    /// Whether documents older than the ttl declaration still have to be given their expiry.
    pub(crate) ttl_pending: bool,
    pub(crate) buffered: bool,
}

impl StoredCollection {
    /// The declaration that the store remembers, without indexes that are on their way out.
    pub(crate) fn into_spec(self, name: &str) -> CollectionSpec {
        let leaving = IndexState::Dropping { rebuild: false };
        let indexes = self.indexes.into_iter().filter(|index| index.state != leaving).map(|index| index.spec).collect();
        CollectionSpec { name: name.to_owned(), indexes, ttl: self.ttl, buffered: self.buffered }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |why: String| StoreError::Corrupt(format!("a catalogue row is unreadable: {why}"));
        let value = Value::decode(bytes).map_err(|e| damaged(e.to_string()))?;
        value.into_serde().map_err(|e| damaged(e.to_string()))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Names, booleans and i64: everything here has a form as a value.
        Value::from_serde(self).expect("a catalogue row is made of plain values").encode(&mut bytes);
        bytes
    }
}

/// An index, ready to use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(super) fields: Vec<Path>,
    pub(crate) unique: bool,
    /// Whether its entries are complete.
    pub(crate) ready: bool,
}

/// A collection, ready to use: see the module's essay for how to get one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Collection {
    pub(crate) name: String,
    /// What is maintained: ready indexes and those being built.
    pub(crate) indexes: Vec<Index>,
    pub(super) ttl: Option<(Path, Option<i64>)>,
    pub(crate) buffered: bool,
}

impl Collection {
    /// A collection of which nothing is declared.
    pub(crate) fn undeclared(name: &str) -> Result<Collection, DataError> {
        form::check_collection_name(name)?;
        Ok(Collection { name: name.to_owned(), indexes: Vec::new(), ttl: None, buffered: false })
    }

    /// The collection as if all that is declared were ready: for checks without a store.
    pub(crate) fn declared(spec: &CollectionSpec) -> Result<Collection, DataError> {
        spec.check()?;
        let indexes = spec.indexes.iter().map(|spec| StoredIndex { spec: spec.clone(), state: IndexState::Ready });
        let stored = StoredCollection {
            indexes: indexes.collect(),
            ttl: spec.ttl.clone(),
            ttl_pending: false,
            buffered: spec.buffered,
        };
        Self::stored(&spec.name, &stored).map_err(DataError::bad_document)
    }

    /// The collection as the store remembers it.
    pub(super) fn stored(name: &str, stored: &StoredCollection) -> Result<Collection, String> {
        let mut indexes = Vec::new();
        for StoredIndex { spec, state } in &stored.indexes {
            let ready = match state {
                IndexState::Ready => true,
                IndexState::Building => false,
                IndexState::Dropping { .. } => continue,
            };
            let fields = spec.fields.iter().map(|field| Path::parse(field)).collect::<Result<_, _>>()?;
            indexes.push(Index { name: spec.name.clone(), fields, unique: spec.unique, ready });
        }
        let ttl = match &stored.ttl {
            Some(ttl) => Some((Path::parse(&ttl.field)?, ttl.after_ms)),
            None => None,
        };
        Ok(Collection { name: name.to_owned(), indexes, ttl, buffered: stored.buffered })
    }

    /// When `document` expires, by the collection's ttl.
    pub(super) fn expires_at(&self, document: &Map) -> Result<Option<Timestamp>, DataError> {
        let Some((path, after_ms)) = &self.ttl else { return Ok(None) };
        let instant = match path.find(document) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Int(ms)) => Ok(Timestamp::from_millis(*ms)),
            Some(Value::Text(text)) => text.parse::<Timestamp>().map_err(|error| error.to_string()),
            Some(other) => Err(format!("{} is {}", shown(other), other.type_name())),
        };
        let instant = instant.map_err(|why| {
            let name = &self.name;
            let why = format!("ttl field `{path}` of `{name}` holds ms, RFC 3339 text or (): {why}");
            DataError::bad_document(why).with("field", path.as_str())
        })?;
        Ok(Some(instant.saturating_add_millis(after_ms.unwrap_or(0))))
    }
}
