//! Rulings: what operators decide about one key of a limit until an instant, from host code.

use crate::bucket::ruling::{self, InvalidOverride};
use crate::error::Error;
use crate::limit::{Decided, Key, Limit, Override};
use crate::time::Timestamp;
use crate::value::Map;

use super::transaction::checked;
use super::{Engine, Transaction};

/// An override that holds, and whose it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OverrideInfo {
    /// The key, or its keyed hash where the limit stores that.
    pub key: Key,
    /// What was decided, and until when.
    pub ruling: Override,
}

impl Transaction<'_> {
    /// Gives `key` other settings than the file's until an instant, in place of an earlier override. What it has spent
    /// is kept. It is on disk when the transaction returns.
    ///
    /// Errors: [`Error::Config`], for what [`Limit::with`] refuses, no setting at all, and an end that is not after
    /// [`now`](Transaction::now) and within the year 9999.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Engine, Error, Limit, Map, Value};
    /// let engine = Engine::builder().memory().open()?;
    /// let api = Limit::token_bucket("api", 10, Duration::from_secs(1))?;
    /// let paid = Map::from([("rate".into(), Value::Int(100))]);
    /// engine.transaction(|tx| {
    ///     let tomorrow = tx.now().saturating_add_millis(86_400_000);
    ///     tx.set_override(&api, "ada", &paid, tomorrow)?;
    ///     assert_eq!(tx.peek(&api, "ada", 1)?.remaining, 100);
    ///     Ok::<_, Error>(())
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_override(
        &mut self,
        limit: &Limit,
        key: impl Into<Key>,
        changes: &Map,
        until: Timestamp,
    ) -> Result<(), Error> {
        self.rule(limit, key, Decided::Settings(changes.clone()), until)
    }

    /// Allows `key` everything until an instant, and counts nothing. It lifts a block for as long, and a ban for good.
    ///
    /// Errors: [`Error::Config`], for an end that is not after [`now`](Transaction::now) and within the year 9999.
    pub fn allow(&mut self, limit: &Limit, key: impl Into<Key>, until: Timestamp) -> Result<(), Error> {
        self.rule(limit, key, Decided::Allow, until)
    }

    /// Refuses `key` everything until an instant. Other than a [`block`](Transaction::block) it outlives a
    /// [`reset`](Transaction::reset), and only [`revoke`](Transaction::revoke) or another override lifts it.
    ///
    /// Errors: [`Error::Config`], for an end that is not after [`now`](Transaction::now) and within the year 9999.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Engine, Error, Limit, Timestamp};
    /// let engine = Engine::builder().memory().open()?;
    /// let logins = Limit::fixed_window("logins", 5, Duration::from_secs(60))?;
    /// engine.transaction(|tx| tx.ban(&logins, "mallory", Timestamp::MAX))?;
    /// let refused = engine.transaction(|tx| tx.take(&logins, "mallory", 1))?;
    /// assert_eq!(refused.reason.as_str(), "blocked");
    /// engine.transaction(|tx| tx.revoke(&logins, "mallory"))?;
    /// assert!(engine.transaction(|tx| tx.take(&logins, "mallory", 1))?.allowed);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn ban(&mut self, limit: &Limit, key: impl Into<Key>, until: Timestamp) -> Result<(), Error> {
        self.rule(limit, key, Decided::Ban, until)
    }

    /// Ends the override of `key`, whatever it is; without one, nothing changes.
    pub fn revoke(&mut self, limit: &Limit, key: impl Into<Key>) -> Result<(), Error> {
        let key = checked(key)?;
        let result = ruling::revoke(self.inner, limit, &key);
        self.settle(result)
    }

    /// The override of `key`, while one holds.
    pub fn override_of(&mut self, limit: &Limit, key: impl Into<Key>) -> Result<Option<Override>, Error> {
        let key = checked(key)?;
        let result = ruling::ruling_of(self.inner, limit, &key);
        self.settle(result)
    }

    fn rule(&mut self, limit: &Limit, key: impl Into<Key>, decided: Decided, until: Timestamp) -> Result<(), Error> {
        let key = checked(key)?;
        let invalid = |why: InvalidOverride| Error::Config(why.to_string());
        let ruling = Override::new(limit, decided, until, self.now()).map_err(invalid)?;
        let result = ruling::rule(self.inner, limit, &key, &ruling);
        self.settle(result)
    }
}

impl Engine {
    /// The overrides of a limit that hold now in the order of their keys, the first `most` behind the key `after`.
    ///
    /// Errors: [`Error::NotFound`], when no loaded file declares the limit and it has no override either.
    ///
    /// ```
    /// use tollgate::{Decided, Engine, Error, Timestamp};
    /// let engine = Engine::builder().memory().source("a.rhai", r#"const API = fixed_window("api", 9, "1m");"#).open()?;
    /// let api = engine.limit("api")?;
    /// engine.transaction(|tx| tx.allow(&api, "ada", Timestamp::MAX))?;
    /// let listed = engine.overrides("api", None, 10)?;
    /// assert_eq!(listed[0].key, "ada".into());
    /// assert_eq!(listed[0].ruling.decided, Decided::Allow);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn overrides(&self, limit: &str, after: Option<&Key>, most: usize) -> Result<Vec<OverrideInfo>, Error> {
        let rulings = self.repeat(true, |tx| Ok(ruling::rulings(tx, limit, after, most)?))?.0;
        if rulings.is_empty() {
            // A limit built inside a function is declared nowhere; only a name that nothing knows is a slip.
            self.limit(limit)?;
        }
        Ok(rulings.into_iter().map(|(key, ruling)| OverrideInfo { key, ruling }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ManualClock;
    use crate::value::Value;

    const FILE: &str = r#"const API = fixed_window("api", 2, "1m"); const JOBS = concurrency("jobs", 1, "1m");"#;

    fn engine() -> (Engine, std::sync::Arc<ManualClock>) {
        let clock = ManualClock::at(Timestamp::from_millis(1_000_000));
        let engine = Engine::builder().memory().clock(clock.clone()).source("a.rhai", FILE).open().unwrap();
        (engine, clock)
    }

    fn settings(field: &str, value: Value) -> Map {
        Map::from([(field.to_owned(), value)])
    }

    #[test]
    fn overrides_hold_until_their_end_and_show_with_their_buckets() {
        let (engine, clock) = engine();
        let api = engine.limit("api").unwrap();
        let until = Timestamp::from_millis(1_010_000);
        engine
            .transaction(|tx| {
                tx.set_override(&api, "rich", &settings("rate", Value::Int(100)), until)?;
                tx.ban(&api, "mallory", until)?;
                tx.allow(&api, "root", until)
            })
            .unwrap();
        let listed = engine.overrides("api", None, 10).unwrap();
        assert_eq!(listed.iter().map(|info| info.key.to_string()).collect::<Vec<_>>(), ["mallory", "rich", "root"]);
        assert!(listed.iter().all(|info| info.ruling.until == until));
        assert_eq!(engine.overrides("api", Some(&"mallory".into()), 1).unwrap(), listed[1..2]);
        let buckets = engine.buckets("api", None, 10).unwrap();
        assert_eq!(buckets.iter().map(|bucket| bucket.blocked_until).collect::<Vec<_>>(), [Some(until), None, None]);
        assert_eq!(buckets[1].decision.remaining, 100);
        for (bucket, info) in buckets.iter().zip(&listed) {
            assert_eq!(bucket.ruling.as_ref(), Some(&info.ruling));
            let of = engine.transaction(|tx| tx.override_of(&api, &info.key)).unwrap();
            assert_eq!(of.as_ref(), Some(&info.ruling));
        }
        clock.set(until);
        assert_eq!(engine.overrides("api", None, 10).unwrap(), []);
        assert_eq!(engine.transaction(|tx| tx.override_of(&api, "rich")).unwrap(), None);
        assert!(matches!(engine.overrides("nope", None, 1), Err(Error::NotFound(_))));
    }

    #[test]
    fn what_cannot_hold_is_refused_and_leaves_what_there_is() {
        let (engine, _) = engine();
        let api = engine.limit("api").unwrap();
        let (now, later) = (Timestamp::from_millis(1_000_000), Timestamp::from_millis(1_000_001));
        engine.transaction(|tx| tx.ban(&api, "k", later)).unwrap();
        for (changes, until, part) in [
            (settings("rate", Value::Int(0)), later, "rate is 0, must be at least 1"),
            (settings("speed", Value::Int(1)), later, "option is \"speed\""),
            (settings("start", Value::from("epoch")), later, "belongs to the declaration"),
            (Map::new(), later, "name at least one, such as rate"),
            (settings("rate", Value::Int(9)), now, "is over, for it is 1970-01-01T00:16:40Z already"),
            (settings("rate", Value::Int(9)), Timestamp::from_millis(i64::MIN), "is over, for"),
            (settings("rate", Value::Int(9)), Timestamp::NEVER, "beyond the year 9999"),
        ] {
            let refused = engine.transaction(|tx| tx.set_override(&api, "k", &changes, until)).unwrap_err();
            assert!(refused.to_string().contains(part), "{refused}");
        }
        assert_eq!(engine.overrides("api", None, 2).unwrap()[0].ruling.decided, Decided::Ban);
    }

    #[test]
    fn where_all_is_allowed_leases_do_not_count_and_those_given_before_still_end() {
        let (engine, clock) = engine();
        let jobs = engine.limit("jobs").unwrap();
        let until = Timestamp::from_millis(1_010_000);
        let lease = engine.transaction(|tx| tx.acquire(&jobs, "k", 1)).unwrap().lease().unwrap();
        engine.transaction(|tx| tx.allow(&jobs, "k", until)).unwrap();
        let free = engine.transaction(|tx| tx.acquire(&jobs, "k", 1)).unwrap();
        assert!(free.allowed && free.lease() == Some(0));
        assert!(engine.transaction(|tx| tx.release(&jobs, "k", lease)).unwrap().allowed);
        clock.set(until);
        assert!(engine.transaction(|tx| tx.acquire(&jobs, "k", 1)).unwrap().lease().is_some());
    }
}
