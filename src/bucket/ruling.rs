//! Rulings: what an operator has decided about one key of a limit, until an instant. It wins over the file.
//!
//! A ruling is a row of its own that expires. So that takes of all other keys need not look for one, the bucket of
//! the key says that there is one, and lives at least as long. Resetting the bucket leaves the ruling.

use std::ops::Bound;

use crate::limit::{Decided, InvalidLimit, Key, Limit, Mode, Override, Ruling};
use crate::store::key::{KeyBuffer, space};
use crate::store::{Direction, Range, StoreError};
use crate::time::Timestamp;
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};
use crate::value::Value;

use super::secret::stored_key;
use super::told::{Account, Witness, tell};
use super::{find, standing_of, store};

const VERSION: u8 = 1;
const SETTINGS: u8 = 1;
const ALLOW: u8 = 2;
const BLOCK: u8 = 3;

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
    let begun = tx.watch();
    let mut found = find(tx, limit, key)?;
    let row_key = row_key(limit.name(), &found.key);
    match ruling {
        Some(ruling) => tx.put_row(&row_key, &ruling.encode(), Some(ruling.until))?,
        None => tx.delete_row(&row_key)?,
    }
    // Under the file's own settings: what was spent is kept whatever was ruled.
    let state = found.state.take();
    let mut standing = standing_of(limit, &found, state, tx.now());
    let witness = Witness::of(begun, &standing);
    standing.rule_until(ruling.map(|ruling| ruling.until.as_millis()));
    store(tx, standing, limit, &found)?;
    if let Some(witness) = witness {
        let operation = match ruling.map(|ruling| &ruling.decided) {
            Some(Decided::Settings(_)) => "set_override",
            Some(Decided::Allow) => "allow",
            Some(Decided::Ban) => "ban",
            None => "revoke",
        };
        // What holds from now on is read anew, as the next operation would.
        let mut found = find(tx, limit, key)?;
        let state = found.state.take();
        let standing = standing_of(limit, &found, state, tx.now());
        let account = Account { operation, cost: None, mode: Mode::Take, decision: None, wrote: true };
        let step = witness.step(tx, limit, &found, &standing, account);
        tell(tx, Some(step));
    }
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
    use crate::value::Map;

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
    fn a_ban_refuses_on_a_shadow_limit_too_and_only_the_ban() {
        let limit = fw("x", 1, 60_000).shadow().unwrap();
        let mut desk = Desk::new();
        desk.take(&limit, "k", 1);
        desk.run(|tx| rule(tx, &limit, &"k".into(), &until(Decided::Ban, 5_000)));
        for cost in [1, 100] {
            let banned = desk.at(1_000).take(&limit, "k", cost);
            assert_eq!((banned.allowed, banned.reason.as_str(), banned.retry_after), (false, "blocked", 4_000));
            assert_eq!(banned.headers()[2], ("Retry-After", "4".to_owned()));
            assert!(banned.would_refuse.is_empty());
        }
        let other = tb("y", 5, 1_000);
        let both = [demand(&limit, "k", 1), demand(&other, "k", 1)];
        assert!(!desk.take_all(&both).allowed);
        assert_eq!(desk.peek(&other, "k").used, 0, "nothing is spent where one refuses");
        let after = desk.at(5_000).take(&limit, "k", 1);
        assert_eq!((after.allowed, after.would_refuse.len()), (true, 1), "it tries out again");
        // What the limit itself blocks is still only said.
        desk.run(|tx| super::super::block(tx, &limit, &"k".into(), 1_000));
        assert!(desk.take(&limit, "k", 1).allowed);
    }

    #[test]
    fn an_override_decides_whether_a_limit_among_others_refuses() {
        let shadow = |on| Decided::Settings(Map::from([("shadow".into(), Value::Bool(on))]));
        let (real, tried) = (fw("x", 1, 60_000), fw("y", 1, 60_000).shadow().unwrap());
        let third = tb("z", 5, 1_000);
        let mut desk = Desk::new();
        for limit in [&real, &tried] {
            desk.take(limit, "k", 1);
        }
        let lists = [[demand(&real, "k", 1), demand(&third, "k", 1)], [demand(&tried, "k", 1), demand(&third, "k", 1)]];
        assert_eq!(lists.each_ref().map(|list| desk.take_all(list).allowed), [false, true]);
        desk.run(|tx| rule(tx, &real, &"k".into(), &until(shadow(true), 9_000)));
        desk.run(|tx| rule(tx, &tried, &"k".into(), &until(shadow(false), 9_000)));
        assert_eq!(lists.each_ref().map(|list| desk.take_all(list).allowed), [true, false]);
        assert_eq!(desk.peek(&third, "k").used, 2, "it is charged when, and only when, all allow");
    }

    #[test]
    fn where_leases_are_not_counted_there_is_one_to_give_back() {
        let limit = of(Kind::Concurrency, "x", 1, 60_000);
        let mut desk = Desk::new();
        let held = desk.take(&limit, "k", 1).lease().unwrap();
        desk.run(|tx| rule(tx, &limit, &"k".into(), &until(Decided::Allow, 5_000)));
        let lease = desk.take(&limit, "k", 1).lease().unwrap();
        let on = |desk: &mut Desk, lease| {
            let renewed = desk.run(|tx| super::super::lease::renew(tx, &limit, &"k".into(), lease));
            let released = desk.run(|tx| super::super::lease::release(tx, &limit, &"k".into(), lease));
            (renewed.allowed, released.allowed, released.used)
        };
        assert_eq!(on(&mut desk, lease), (true, true, 1));
        assert_eq!(on(desk.at(5_000), lease), (false, false, 1), "when it counts again, nobody holds that one");
        assert_eq!(on(&mut desk, held), (true, true, 0));
    }

    #[test]
    fn what_is_allowed_is_not_told_to_wait_for_what_others_spent() {
        let limit = tb("x", 1, 1_000).max_reserved(5).unwrap();
        let mut desk = Desk::new();
        assert_eq!(desk.reserve(&limit, "k", 3).delay, 2_000);
        desk.run(|tx| rule(tx, &limit, &"k".into(), &until(Decided::Allow, 5_000)));
        assert_eq!(desk.reserve(&limit, "k", 1).delay, 0);
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
