//! Leases: the operations that only a concurrency limit has.

use crate::limit::{Cost, Decision, Key, Kind, Limit, Standing, Verdict};
use crate::transaction::{Fault, Transaction};

use super::{find, standing_of, store};

/// Takes `cost` slots, if they are free. The decision holds the lease; of another kind of limit, a plain take.
pub(crate) fn acquire(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    super::take(tx, limit, key, cost)
}

/// Holds a lease for another `ttl` from now on. One that is over, or of another key, changes nothing: `stale`.
pub(crate) fn renew(tx: &mut Transaction, limit: &Limit, key: &Key, lease: i64) -> Result<Decision, Fault> {
    on_lease(tx, limit, key, |standing| standing.renew(lease))
}

/// Ends a lease. One that is over, or of another key, changes nothing: `stale`.
pub(crate) fn release(tx: &mut Transaction, limit: &Limit, key: &Key, lease: i64) -> Result<Decision, Fault> {
    on_lease(tx, limit, key, |standing| standing.release(lease))
}

fn on_lease(
    tx: &mut Transaction,
    limit: &Limit,
    key: &Key,
    operation: impl FnOnce(&mut Standing<'_>) -> bool,
) -> Result<Decision, Fault> {
    debug_assert!(limit.kind() == Kind::Concurrency, "scripts and hosts are told before");
    let mut found = find(tx, limit, key)?;
    let state = found.state.take();
    let mut standing = standing_of(limit, &found, state, tx.now());
    let held = operation(&mut standing);
    let decision = if held { standing.decision(Verdict::Fits) } else { standing.stale() };
    if held || standing.is_reanchored() {
        store(tx, standing, limit, &found)?;
    }
    Ok(decision)
}
