//! Rows of documents: reading, writing and paging through them and their index entries.

use std::ops::Bound;

use crate::element;
use crate::store::key::{self, KeyBuffer, space};
use crate::store::{Bytes, Direction, Pair, Range, StoreError};
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};
use crate::value::{Map, Value};

/// Ends every range of keys that go on after a name or an element: none goes on with `FF`,
/// except where a name holds a zero byte, and then it is another name.
const PAST: &[u8] = &[0xFF];

/// The keys that go on exactly after `prefix`, which ends with a name or an element.
pub(super) fn going_on(prefix: &KeyBuffer) -> Range {
    let past = prefix.clone().raw(PAST);
    Range { low: Bound::Included(prefix.as_slice().into()), high: Bound::Excluded(past.as_slice().into()) }
}

/// The bound just after every key that goes on after `prefix`.
pub(super) fn past(prefix: KeyBuffer) -> Bytes {
    prefix.raw(PAST).into_vec().into()
}

/// The keys of all documents of a collection.
pub(super) fn all(collection: &str) -> Range {
    going_on(&KeyBuffer::new(space::DOCUMENT).name(collection))
}

/// The collection and the `_id` in a document's key.
pub(super) fn split_key(key: &[u8]) -> Option<(String, String)> {
    let rest = key.strip_prefix(&[space::DOCUMENT])?;
    let (collection, rest) = element::take_name(rest)?;
    let (id, rest) = element::take_name(rest)?;
    let text = |bytes| String::from_utf8(bytes).ok();
    if rest.is_empty() { Some((text(collection)?, text(id)?)) } else { None }
}

/// The document in a row.
pub(super) fn document(key: &[u8], row: &Row) -> Result<Map, Fault> {
    match Value::decode(row.body()) {
        Ok(Value::Map(map)) => Ok(map),
        Ok(_) => Err(damaged(key, "it is not a map").into()),
        Err(why) => Err(damaged(key, &why.to_string()).into()),
    }
}

pub(super) fn damaged(key: &[u8], why: &str) -> StoreError {
    StoreError::Corrupt(format!("{} is unreadable: {why}", key::describe(key)))
}

/// A range read page by page, so that a caller that stops early has read little.
pub(super) struct Pages {
    range: Range,
    direction: Direction,
    page: usize,
    ended: bool,
}

/// The most rows of a page: the largest documents then take 16 MiB.
const MOST_ROWS: usize = 64;

impl Pages {
    /// Pages of `range`, the first of about `first` rows.
    pub(super) fn of(range: Range, direction: Direction, first: usize) -> Pages {
        let ended = range.is_empty();
        Pages { range, direction, page: first.clamp(2, MOST_ROWS), ended }
    }

    /// The next rows; empty at the end.
    pub(super) fn next(&mut self, tx: &mut Transaction) -> Result<Vec<Pair>, Fault> {
        if self.ended {
            return Ok(Vec::new());
        }
        let rows = tx.scan(&self.range, self.direction, self.page)?;
        self.ended = rows.len() < self.page;
        if let Some((last, _)) = rows.last() {
            match self.direction {
                Direction::Ascending => self.range.low = Bound::Excluded(last.clone()),
                Direction::Descending => self.range.high = Bound::Excluded(last.clone()),
            }
        }
        // An empty range of two exclusive equal bounds must not reach a store: some maps panic on it.
        self.ended |= self.range.is_empty();
        self.page = (self.page * 2).min(MOST_ROWS);
        Ok(rows)
    }
}
