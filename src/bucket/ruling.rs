//! Rulings: what an operator has decided about one key of a limit, until an instant. It wins over the file.
//!
//! A ruling is a row of its own that expires. So that takes of all other keys need not look for one, the bucket of
//! the key says that there is one, and lives at least as long. Resetting the bucket leaves the ruling.

use std::ops::Bound;

use crate::limit::{InvalidLimit, Key, Limit, Ruling};
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

/// What an operator has decided about one key of a limit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decided {
    /// Other settings than the file's, as [`Limit::with`] takes them.
    Settings(Map),
    /// Everything is allowed, and nothing counts.
    Allow,
    /// Everything is refused.
    Ban,
}

/// A decision of an operator, which wins over the file until its end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Override {
    /// What was decided.
    pub decided: Decided,
    /// The first instant at which the file's limit holds again.
    pub until: Timestamp,
}

/// Why an override cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidOverride {
    #[error(transparent)]
    Limit(#[from] InvalidLimit),
    #[error("an override of limit {0:?} changes no setting: name at least one, such as rate")]
    Empty(String),
    #[error(
        "an override until {until} is over, for it is {now} already: give a later instant, or revoke the one there is"
    )]
    Past { until: Timestamp, now: Timestamp },
    #[error("an override until {} ms is beyond the year 9999: end it earlier", .0.as_millis())]
    Far(Timestamp),
}

impl Override {
    /// An override that [`rule`] may store.
    ///
    /// Errors: settings that `limit` cannot have, none at all, and an end that is not from `now` to the year 9999.
    pub(crate) fn new(
        limit: &Limit,
        decided: Decided,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<Override, InvalidOverride> {
        if let Decided::Settings(changes) = &decided {
            if changes.is_empty() {
                return Err(InvalidOverride::Empty(limit.name().to_owned()));
            }
            limit.with(changes)?;
        }
        match until {
            until if until > Timestamp::MAX => Err(InvalidOverride::Far(until)),
            until if until <= now => Err(InvalidOverride::Past { until, now }),
            until => Ok(Override { decided, until }),
        }
    }

    /// Whether `limit` can have what was decided.
    pub(crate) fn fits(&self, limit: &Limit) -> bool {
        match &self.decided {
            Decided::Settings(changes) => limit.with(changes).is_ok(),
            Decided::Allow | Decided::Ban => true,
        }
    }

    /// `limit` under this ruling. Settings that the limit can no longer have, because the file has changed since,
    /// leave it as it is: never without a limit.
    pub(super) fn applied(&self, limit: &Limit) -> (Option<Limit>, Option<Ruling>) {
        match &self.decided {
            Decided::Settings(changes) => (limit.with(changes).ok(), None),
            Decided::Allow => (None, Some(Ruling::Allow)),
            Decided::Ban => (None, Some(Ruling::BlockUntil(self.until.as_millis()))),
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
            Decided::Ban => vec![VERSION, BLOCK],
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
            [VERSION, BLOCK] => Decided::Ban,
            _ => return None,
        };
        Some(Override { decided, until })
    }
}

/// Stores what an operator decided about `key`, in place of an earlier ruling. [`Override::new`] has checked it.
/// What ends by now is the same as [`revoke`].
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

#[cfg(test)]
mod tests {
    // Steps that only lead up to what is tested need no look at their decisions.
    #![allow(unused_must_use)]

    use super::super::fixture::{Desk, demand, fw, of, tb};
    use super::*;
    use crate::limit::Kind;

    fn until(decided: Decided, ms: i64) -> Override {
        Override { decided, until: Timestamp::from_millis(ms) }
    }

    fn rate(rate: i64) -> Decided {
        Decided::Settings(Map::from([("rate".into(), Value::Int(rate))]))
    }

    #[test]
    fn other_settings_win_over_the_file_until_they_end() {
        let limit = tb("x", 10, 1_000);
        let mut desk = Desk::new();
        desk.take(&limit, "k", 10);
        desk.run(|tx| rule(tx, &limit, &"k".into(), &until(rate(100), 5_000)));
        let raised = desk.peek(&limit, "k");
        assert_eq!((raised.limit, raised.remaining), (100, 90), "what was spent is kept");
        assert!(desk.take(&limit, "k", 90).allowed);
        assert_eq!(desk.take(&limit, "other", 11).reason.as_str(), "never", "it is of one key");
        assert_eq!(desk.at(4_999).peek(&limit, "k").limit, 100);
        assert_eq!(desk.at(5_000).peek(&limit, "k").limit, 10);
        desk.sweep();
        assert!(desk.rows().iter().all(|(key, _)| key[0] != space::RULING));
    }

    #[test]
    fn a_ban_holds_through_resets_and_an_allowance_counts_nothing() {
        let limit = fw("x", 1, 1_000);
        let mut desk = Desk::new();
        desk.run(|tx| rule(tx, &limit, &"k".into(), &until(Decided::Ban, 60_000)));
        desk.run(|tx| super::super::reset(tx, &limit, &"k".into()));
        desk.run(|tx| super::super::unblock(tx, &limit, &"k".into()));
        let banned = desk.at(59_000).take(&limit, "k", 1);
        assert_eq!((banned.reason.as_str(), banned.retry_after), ("blocked", 1_000));
        assert!(!desk.take_all(&[demand(&limit, "k", 1)]).allowed);
        assert!(desk.at(60_000).take(&limit, "k", 1).allowed);

        desk.run(|tx| rule(tx, &limit, &"k".into(), &until(Decided::Allow, 100_000)));
        for _ in 0..50 {
            assert!(desk.take(&limit, "k", 7).allowed);
            assert!(desk.take_all(&[demand(&limit, "k", 1)]).allowed);
        }
        assert_eq!(desk.peek(&limit, "k").used, 1);
        desk.run(|tx| revoke(tx, &limit, &"k".into()));
        assert!(!desk.take(&limit, "k", 1).allowed);
        desk.at(70_000).sweep();
        assert!(desk.rows().is_empty(), "what is revoked leaves nothing");
    }

    #[test]
    fn rulings_are_listed_and_shown_with_their_buckets() {
        let limit = tb("x", 10, 1_000);
        let mut desk = Desk::new();
        for n in 0..5 {
            desk.run(|tx| rule(tx, &limit, &n.into(), &until(rate(n + 1), 50_000)));
        }
        desk.run(|tx| rule(tx, &limit, &7.into(), &until(Decided::Allow, 10)));
        desk.run(|tx| rule(tx, &tb("x2", 1, 1), &7.into(), &until(Decided::Ban, 10)));
        let all = desk.run(|tx| rulings(tx, "x", None, 100));
        assert_eq!(all.len(), 6);
        let page = desk.run(|tx| rulings(tx, "x", Some(&all[1].0), 2));
        assert_eq!(page, all[2..4]);
        for listed in desk.live(&limit) {
            let looked = desk.run(|tx| Ok(super::super::look(tx, &limit, &listed).0));
            assert_eq!(looked, desk.peek(&limit, &listed.key));
            assert!(listed.ruling.is_some());
        }
        assert_eq!(desk.at(10).run(|tx| rulings(tx, "x", None, 100)).len(), 5, "expired is invisible");
        assert_eq!(desk.run(|tx| ruling_of(tx, &limit, &7.into())), None);
    }

    #[test]
    fn a_ruling_outlives_refills_clock_steps_and_changes_of_the_file() {
        let mut desk = Desk::new();
        let limit = tb("x", 10, 1_000);
        desk.at(100_000).run(|tx| rule(tx, &limit, &"k".into(), &until(rate(50), 900_000)));
        for (ms, limit) in [
            (200_000, tb("x", 10, 1_000)),
            (300_000, fw("x", 10, 1_000)),
            (20_000, fw("x", 10, 1_000)),
            (400_000, of(Kind::SlidingWindow, "x", 10, 1_000)),
            (899_000, of(Kind::SlidingCounter, "x", 10, 100)),
        ] {
            assert_eq!(desk.at(ms).take(&limit, "k", 50).limit, 50, "{limit:?}");
            desk.sweep();
        }
        let narrow = of(Kind::SlidingWindow, "x", 10, 1_000);
        desk.run(|tx| rule(tx, &narrow, &"k".into(), &until(rate(1_000_000), 950_000)));
        assert_eq!(desk.at(930_000).take(&narrow, "k", 1).limit, 10, "settings that cannot be leave the file's");
    }

    #[test]
    fn a_ruling_about_a_hashed_key_is_of_that_key() {
        let limit = tb("x", 10, 1_000).hash_keys().unwrap();
        let mut desk = Desk::new();
        desk.run(|tx| rule(tx, &limit, &"ada".into(), &until(Decided::Ban, 1_000)));
        assert!(!desk.take(&limit, "ada", 1).allowed && desk.take(&limit, "bob", 1).allowed);
        assert!(desk.run(|tx| ruling_of(tx, &limit, &"ada".into())).is_some());
        assert!(desk.run(|tx| rulings(tx, "x", None, 9))[0].0.is_hash());
    }
}
