//! Errors of documents: what a script can catch, and what ends its call.

use crate::store::StoreError;
use crate::transaction::{Fault, Spent};
use crate::value::{Map, Value};

/// Why an operation on documents failed. Whatever the variant, it has written nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum DocumentError {
    /// The data or the request is at fault; a script can catch it.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The transaction cannot go on; no script can catch it.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The documents-read budget was spent; no script can catch it. A `Fault::Budget` with advice.
    #[error("{spent}: {hint}")]
    Overrun {
        /// The budget.
        spent: Spent,
        /// Which collection was read and what would serve it.
        hint: String,
    },
}

impl From<StoreError> for DocumentError {
    fn from(error: StoreError) -> Self {
        DocumentError::Fault(Fault::Store(error))
    }
}

/// An error of data, catchable: a code, a message and what it is about.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct DataError {
    /// One of the codes in [`code`].
    pub(crate) code: &'static str,
    /// What happened, the bound, and what to do.
    pub(crate) message: String,
    /// The particulars: `index`, `value`, `field`, `id`, …
    pub(crate) data: Map,
}

/// The codes of data errors.
pub(crate) mod code {
    pub(crate) const UNIQUE_VIOLATION: &str = "unique_violation";
    pub(crate) const BAD_FILTER: &str = "bad_filter";
    pub(crate) const BAD_CHANGE: &str = "bad_change";
    pub(crate) const BAD_DOCUMENT: &str = "bad_document";
    pub(crate) const TOO_LARGE: &str = "too_large";
    pub(crate) const NOT_FOUND: &str = "not_found";
}

impl DataError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        DataError { code, message: message.into(), data: Map::new() }
    }

    pub(super) fn bad_filter(message: impl Into<String>) -> Self {
        Self::new(code::BAD_FILTER, message)
    }

    pub(super) fn bad_change(message: impl Into<String>) -> Self {
        Self::new(code::BAD_CHANGE, message)
    }

    pub(super) fn bad_document(message: impl Into<String>) -> Self {
        Self::new(code::BAD_DOCUMENT, message)
    }

    /// Adds one of the particulars.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }
}

/// A value as messages show it: its JSON, cut where it gets long.
pub(super) fn shown(value: &Value) -> String {
    const MOST_CHARS: usize = 80;
    let json = match value {
        Value::Null => return "()".to_owned(),
        value => value.to_json(),
    };
    match json.char_indices().nth(MOST_CHARS) {
        Some((cut, _)) => format!("{}…", &json[..cut]),
        None => json,
    }
}
