//! A fixture for tests: a memory store and a clock; every operation is a transaction of its own.

use std::sync::Arc;

use crate::limit::{CalendarUnit, Cost, Decision, Key, Kind, Limit};
use crate::store::key::{space, split_expiry};
use crate::store::{Direction, MemoryStore, Range, Store};
use crate::time::Timestamp;
use crate::transaction::{Fault, Transaction};

use super::{Demand, Listed};

pub(super) struct Desk {
    pub(super) store: Arc<dyn Store>,
    /// What the clock shows, in ms.
    pub(super) now: i64,
    /// The leases given out so far.
    pub(super) leases: Vec<i64>,
}

/// A token bucket of `rate` per `period_ms`.
pub(super) fn tb(name: &str, rate: i64, period_ms: i64) -> Limit {
    Limit::of_ms(Kind::TokenBucket, name, rate, period_ms).unwrap()
}

/// A fixed window of `rate` per `period_ms`, opened by its first take.
pub(super) fn fw(name: &str, rate: i64, period_ms: i64) -> Limit {
    Limit::of_ms(Kind::FixedWindow, name, rate, period_ms).unwrap()
}

/// Any kind of `rate` per `period_ms`; a calendar quota by the hour.
pub(super) fn of(kind: Kind, name: &str, rate: i64, period_ms: i64) -> Limit {
    match kind {
        Kind::CalendarQuota => Limit::calendar_quota(name, rate, CalendarUnit::Hour, "UTC").unwrap(),
        kind => Limit::of_ms(kind, name, rate, period_ms).unwrap(),
    }
}

pub(super) fn cost(tokens: i64) -> Cost {
    Cost::new(tokens).unwrap()
}

pub(super) fn demand(limit: &Limit, key: &str, tokens: i64) -> Demand {
    Demand { limit: limit.clone(), key: key.into(), cost: cost(tokens) }
}

impl Desk {
    pub(super) fn new() -> Desk {
        Desk { store: Arc::new(MemoryStore::new()), now: 0, leases: Vec::new() }
    }

    pub(super) fn at(&mut self, ms: i64) -> &mut Desk {
        self.now = ms;
        self
    }

    pub(super) fn run<T>(&mut self, work: impl FnOnce(&mut Transaction) -> Result<T, Fault>) -> T {
        let mut tx = Transaction::over(self.store.clone(), Timestamp::from_millis(self.now));
        let result = work(&mut tx).unwrap();
        let _ = tx.commit().unwrap();
        result
    }

    pub(super) fn take(&mut self, limit: &Limit, key: impl Into<Key>, tokens: i64) -> Decision {
        let key = key.into();
        self.run(|tx| super::take(tx, limit, &key, cost(tokens)))
    }

    pub(super) fn peek(&mut self, limit: &Limit, key: impl Into<Key>) -> Decision {
        let key = key.into();
        self.run(|tx| super::peek(tx, limit, &key, Cost::ONE))
    }

    pub(super) fn reserve(&mut self, limit: &Limit, key: impl Into<Key>, tokens: i64) -> Decision {
        let key = key.into();
        self.run(|tx| super::reserve(tx, limit, &key, cost(tokens)))
    }

    pub(super) fn refund(&mut self, limit: &Limit, key: impl Into<Key>, tokens: i64) -> Decision {
        let key = key.into();
        self.run(|tx| super::refund(tx, limit, &key, cost(tokens)))
    }

    pub(super) fn charge(&mut self, limit: &Limit, key: impl Into<Key>, tokens: i64) -> Decision {
        let key = key.into();
        self.run(|tx| super::charge(tx, limit, &key, cost(tokens)))
    }

    pub(super) fn take_all(&mut self, demands: &[Demand]) -> Decision {
        self.run(|tx| super::take_all(tx, demands))
    }

    pub(super) fn live(&mut self, limit: &Limit) -> Vec<Listed> {
        self.run(|tx| super::list(tx, limit.name(), None, usize::MAX))
    }

    /// Every row there is, the expiry index included. (Through a transaction: without a flusher the store has none.)
    pub(super) fn rows(&self) -> Vec<crate::store::Pair> {
        let mut tx = Transaction::over(self.store.clone(), Timestamp::from_millis(self.now));
        tx.scan(&Range::prefix(&[]), Direction::Ascending, usize::MAX).unwrap()
    }

    /// Deletes what has expired, as a sweeper does; returns how many rows.
    pub(super) fn sweep(&mut self) -> usize {
        let now = Timestamp::from_millis(self.now);
        self.run(|tx| {
            let mut swept = 0;
            for (entry, _) in tx.scan(&Range::prefix(&[space::EXPIRY]), Direction::Ascending, usize::MAX)? {
                let (at, row_key) = split_expiry(&entry).unwrap();
                let Some(row) = tx.get_any_row(row_key)? else { panic!("an expiry entry without a row") };
                assert!(row.expiry.unwrap().indexed_at == at && at <= row.expiry.unwrap().expires_at);
                if row.expired(now) {
                    tx.delete_row(row_key)?;
                    swept += 1;
                }
            }
            Ok(swept)
        })
    }
}
