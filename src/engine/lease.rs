//! Leases in host code: slots of a concurrency limit, held until they are released or not renewed.

use crate::bucket::lease;
use crate::error::Error;
use crate::limit::{Decision, Key, Kind, Limit};

use super::Transaction;
use super::transaction::checked;

impl Transaction<'_> {
    /// Takes `slots` of `key`, if they are free: the decision's [`lease`](Decision::lease) is what renews and releases
    /// them. There is none where an operator has allowed everything, since then nothing counts.
    ///
    /// Errors: [`Error::Config`], when the limit is not a concurrency limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Engine, Error, Limit};
    /// let engine = Engine::builder().memory().open()?;
    /// let exports = Limit::concurrency("exports", 1, Duration::from_secs(60))?;
    /// let lease = engine.transaction(|tx| Ok::<_, Error>(tx.acquire(&exports, "ada", 1)?.lease()))?;
    /// let lease = lease.expect("the slot was free");
    /// assert!(engine.transaction(|tx| tx.renew(&exports, "ada", lease))?.allowed);
    /// assert!(engine.transaction(|tx| tx.release(&exports, "ada", lease))?.allowed);
    /// assert_eq!(engine.transaction(|tx| tx.release(&exports, "ada", lease))?.reason.as_str(), "stale");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn acquire(&mut self, limit: &Limit, key: impl Into<Key>, slots: i64) -> Result<Decision, Error> {
        leased(limit, "acquire")?;
        self.on_bucket(limit, key, slots, lease::acquire)
    }

    /// Holds a lease for another `ttl` from now on. One that is over, or of another key, changes nothing: `stale`.
    ///
    /// Errors: [`Error::Config`], when the limit is not a concurrency limit.
    pub fn renew(&mut self, limit: &Limit, key: impl Into<Key>, lease: i64) -> Result<Decision, Error> {
        leased(limit, "renew")?;
        let key = checked(key)?;
        let result = lease::renew(self.inner, limit, &key, lease);
        self.settle(result)
    }

    /// Ends a lease. One that is over, or of another key, changes nothing: `stale`.
    ///
    /// Errors: [`Error::Config`], when the limit is not a concurrency limit.
    pub fn release(&mut self, limit: &Limit, key: impl Into<Key>, lease: i64) -> Result<Decision, Error> {
        leased(limit, "release")?;
        let key = checked(key)?;
        let result = lease::release(self.inner, limit, &key, lease);
        self.settle(result)
    }
}

fn leased(limit: &Limit, operation: &str) -> Result<(), Error> {
    match limit.kind() {
        Kind::Concurrency => Ok(()),
        kind => Err(Error::Config(format!(
            "`{operation}` is for a concurrency limit, and `{}` is a {kind}: take and refund its tokens",
            limit.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::Engine;

    #[test]
    fn leases_of_other_kinds_are_refused_by_name() {
        let engine = Engine::builder().memory().open().unwrap();
        let window = Limit::fixed_window("logins", 1, Duration::from_secs(60)).unwrap();
        let refused = |run: fn(&mut Transaction<'_>, &Limit) -> Result<Decision, Error>| {
            engine.transaction(|tx| run(tx, &window)).unwrap_err().to_string()
        };
        for (name, message) in [
            ("acquire", refused(|tx, limit| tx.acquire(limit, "k", 1))),
            ("renew", refused(|tx, limit| tx.renew(limit, "k", 1))),
            ("release", refused(|tx, limit| tx.release(limit, "k", 1))),
        ] {
            let due = "is for a concurrency limit, and `logins` is a fixed_window: take and refund its tokens";
            assert_eq!(message, format!("`{name}` {due}"));
        }
    }
}
