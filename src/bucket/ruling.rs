//! Rulings: what an operator has decided about one key of a limit, until an instant. It wins over the file.
//!
//! A ruling is a row of its own that expires. So that takes of all other keys need not look for one, the bucket of
//! the key says that there is one, and lives at least as long. Resetting the bucket leaves the ruling.

use std::ops::Bound;

use crate::limit::{Key, Limit, Ruling};
use crate::store::key::{KeyBuffer, space};
use crate::store::{Direction, Range, StoreError};
use crate::time::Timestamp;
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};
use crate::value::{Map, Value};

use super::secret::stored_key;
use super::{find, standing_of, store};

const VERSION: u8 = 1;
const SETTINGS: u8 = 1;
const ALLOW: u8 = 2;
const BLOCK: u8 = 3;

/// What was decided about a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decided {
    /// Other settings than the file's, as `Limit::with` takes them.
    Settings(Map),
    /// Everything is allowed, and nothing counts.
    Allow,
    /// Everything is refused.
    Block,
}

/// A ruling as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Override {
    pub(crate) decided: Decided,
    pub(crate) until: Timestamp,
}

impl Override {
    /// `limit` under this ruling. Settings that the limit can no longer have, because the file has changed since,
    /// leave it as it is: never without a limit.
    pub(super) fn applied(&self, limit: &Limit) -> (Option<Limit>, Option<Ruling>) {
        match &self.decided {
            Decided::Settings(changes) => (limit.with(changes).ok(), None),
            Decided::Allow => (None, Some(Ruling::Allow)),
            Decided::Block => (None, Some(Ruling::BlockUntil(self.until.as_millis()))),
        }
    }

    fn encode(&self) -> Vec<u8> {
        match &self.decided {
            Decided::Settings(changes) => {
                let mut body = vec![VERSION, SETTINGS];
                body.extend_from_slice(Value::Map(changes.clone()).to_json().as_bytes());
                body
            }
            Decided::Allow => vec![VERSION, ALLOW],
            Decided::Block => vec![VERSION, BLOCK],
        }
    }

    fn decode(row: &Row) -> Option<Override> {
        let until = row.expiry?.expires_at;
        let decided = match row.body() {
            [VERSION, SETTINGS, json @ ..] => match Value::from_json(std::str::from_utf8(json).ok()?).ok()? {
                Value::Map(changes) => Decided::Settings(changes),
                _ => return None,
            },
            [VERSION, ALLOW] => Decided::Allow,
            [VERSION, BLOCK] => Decided::Block,
            _ => return None,
        };
        Some(Override { decided, until })
    }
}

/// Stores what an operator decided about `key`, in place of an earlier ruling. The settings must be ones that
/// [`Limit::with`] takes; check that first. What ends by now is the same as [`revoke`].
pub(crate) fn rule(tx: &mut Transaction, limit: &Limit, key: &Key, ruling: &Override) -> Result<(), Fault> {
    set(tx, limit, key, Some(ruling).filter(|ruling| ruling.until > tx.now()))
}

/// Forgets the ruling about `key`.
pub(crate) fn revoke(tx: &mut Transaction, limit: &Limit, key: &Key) -> Result<(), Fault> {
    set(tx, limit, key, None)
}

/// The ruling about `key`, while it holds.
pub(crate) fn ruling_of(tx: &mut Transaction, limit: &Limit, key: &Key) -> Result<Option<Override>, Fault> {
    let key = stored_key(tx, limit, key)?;
    read(tx, limit.name(), &key)
}

/// The first `max` rulings about keys of a limit behind the key `after`, in the order of the keys.
pub(crate) fn rulings(
    tx: &mut Transaction,
    limit_name: &str,
    after: Option<&Key>,
    max: usize,
) -> Result<Vec<(Key, Override)>, Fault> {
    let prefix = KeyBuffer::new(space::RULING).name(limit_name);
    let mut range = Range::prefix(prefix.as_slice());
    if let Some(after) = after {
        range.low = Bound::Excluded(prefix.clone().raw(after.encoded()).into_vec().into());
    }
    let now = tx.now();
    let mut listed = Vec::new();
    while listed.len() < max {
        let wanted = max - listed.len();
        let rows = tx.scan(&range, Direction::Ascending, wanted)?;
        let end = rows.len() < wanted;
        if let Some((last, _)) = rows.last() {
            range.low = Bound::Excluded(last.clone());
        }
        for (row_key, bytes) in rows {
            let row = Row::decode(bytes)?;
            if !row.expired(now) {
                let key = Key::decode(&row_key[prefix.as_slice().len()..]).ok_or_else(|| unreadable(limit_name))?;
                listed.push((key, Override::decode(&row).ok_or_else(|| unreadable(limit_name))?));
            }
        }
        if end {
            break;
        }
    }
    Ok(listed)
}

pub(super) fn read(tx: &mut Transaction, limit_name: &str, key: &Key) -> Result<Option<Override>, Fault> {
    let row = tx.get_row(&row_key(limit_name, key))?;
    row.map(|row| Override::decode(&row).ok_or_else(|| unreadable(limit_name).into())).transpose()
}

fn set(tx: &mut Transaction, limit: &Limit, key: &Key, ruling: Option<&Override>) -> Result<(), Fault> {
    let mut found = find(tx, limit, key)?;
    let row_key = row_key(limit.name(), &found.key);
    match ruling {
        Some(ruling) => tx.put_row(&row_key, &ruling.encode(), Some(ruling.until))?,
        None => tx.delete_row(&row_key)?,
    }
    // Under the file's own settings: what was spent is kept whatever was ruled.
    let state = found.state.take();
    let mut standing = standing_of(limit, &found, state, tx.now());
    standing.rule_until(ruling.map(|ruling| ruling.until.as_millis()));
    store(tx, standing, limit, &found)?;
    tx.require_durable();
    Ok(())
}

fn row_key(limit_name: &str, key: &Key) -> Vec<u8> {
    KeyBuffer::new(space::RULING).name(limit_name).raw(key.encoded()).into_vec()
}

fn unreadable(limit_name: &str) -> StoreError {
    StoreError::Corrupt(format!("a ruling about a key of {limit_name} is unreadable: restore it from a backup"))
}
