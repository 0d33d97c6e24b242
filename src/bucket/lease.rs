//! Leases: the operations that only a concurrency limit has.

use crate::limit::{Cost, Decision, Key, Kind, Limit, Mode, Standing, Verdict};
use crate::transaction::{Fault, Transaction};

use super::told::{Account, Witness, tell};
use super::{find, standing_of, store};

/// Takes `cost` slots, if they are free. The decision holds the lease; of another kind of limit, a plain take.
pub(crate) fn acquire(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    super::spend_if_fits(tx, limit, key, cost, Mode::Take, "acquire")
}

/// Holds a lease for another `ttl` from now on. One that is over, or of another key, changes nothing: `stale`.
pub(crate) fn renew(tx: &mut Transaction, limit: &Limit, key: &Key, lease: i64) -> Result<Decision, Fault> {
    on_lease(tx, limit, key, "renew", |standing| standing.renew(lease))
}

/// Ends a lease. One that is over, or of another key, changes nothing: `stale`.
pub(crate) fn release(tx: &mut Transaction, limit: &Limit, key: &Key, lease: i64) -> Result<Decision, Fault> {
    on_lease(tx, limit, key, "release", |standing| standing.release(lease))
}

fn on_lease(
    tx: &mut Transaction,
    limit: &Limit,
    key: &Key,
    name: &'static str,
    operation: impl FnOnce(&mut Standing<'_>) -> bool,
) -> Result<Decision, Fault> {
    debug_assert!(limit.kind() == Kind::Concurrency, "scripts and hosts are told before");
    let begun = tx.watch();
    let mut found = find(tx, limit, key)?;
    let state = found.state.take();
    let mut standing = standing_of(limit, &found, state, tx.now());
    let witness = Witness::of(begun, &standing);
    let held = operation(&mut standing);
    let decision = if held { standing.decision(Verdict::Fits) } else { standing.stale() };
    let changed = held || standing.is_reanchored();
    let step = witness.map(|witness| {
        let decision = Some(decision.clone());
        let account = Account { operation: name, cost: None, mode: Mode::Take, decision, wrote: changed };
        witness.step(tx, limit, &found, &standing, account)
    });
    if changed {
        store(tx, standing, limit, &found)?;
    }
    tell(tx, step);
    Ok(decision)
}

#[cfg(test)]
mod tests {
    // Steps that only lead up to what is tested need no look at their decisions.
    #![allow(unused_must_use)]

    use super::super::fixture::{Desk, cost, demand, fw, of};
    use super::*;

    fn acquire_at(desk: &mut Desk, limit: &Limit, second: i64) -> Decision {
        desk.at(second * 1_000).run(|tx| acquire(tx, limit, &"k".into(), Cost::ONE))
    }

    fn on(desk: &mut Desk, limit: &Limit, lease: i64, renews: bool) -> Decision {
        let key = "k".into();
        desk.run(|tx| if renews { renew(tx, limit, &key, lease) } else { release(tx, limit, &key, lease) })
    }

    #[test]
    fn fault_78_a_lease_is_held_while_it_is_renewed_and_free_when_not() {
        let limit = of(Kind::Concurrency, "x", 1, 60_000);
        let mut desk = Desk::new();
        let a = acquire_at(&mut desk, &limit, 0).lease().unwrap();
        assert_eq!(acquire_at(&mut desk, &limit, 10).retry_after, 50_000);
        assert!(on(desk.at(50_000), &limit, a, true).allowed);
        assert_eq!(acquire_at(&mut desk, &limit, 70).retry_after, 40_000);
        assert!(acquire_at(&mut desk, &limit, 110).allowed);
        assert_eq!(limit.describe(), "1 at once, each for 60 s unless it is renewed; at most 1 held at any instant");
    }

    #[test]
    fn a_stale_or_foreign_lease_changes_nothing_and_says_so() {
        let limit = of(Kind::Concurrency, "x", 1, 60_000);
        let mut desk = Desk::new();
        let a = acquire_at(&mut desk, &limit, 0).lease().unwrap();
        let b = acquire_at(&mut desk, &limit, 60).lease().unwrap();
        assert!(b > a);
        let before = desk.rows();
        for (lease, renews) in [(a, true), (a, false), (b + 1, true), (0, false), (i64::MIN, false), (i64::MAX, true)] {
            let stale = on(&mut desk, &limit, lease, renews);
            assert_eq!((stale.allowed, stale.reason.as_str(), stale.retry_after), (false, "stale", 0));
            assert_eq!((&*stale.violated[0].name, stale.remaining), ("x", 0));
        }
        assert_eq!(desk.rows(), before);
        let other = desk.run(|tx| release(tx, &limit, &"other".into(), b));
        assert_eq!(other.reason.as_str(), "stale");
        assert_eq!(on(&mut desk, &limit, b, false).remaining, 1);
        assert_eq!(on(&mut desk, &limit, b, false).reason.as_str(), "stale", "released twice");
    }

    #[test]
    fn leases_grow_across_releases_resets_sweeps_and_expiry() {
        let limit = of(Kind::Concurrency, "x", 2, 10);
        let mut desk = Desk::new();
        let mut last = 0;
        for n in 0..5_000 {
            let lease = desk.take(&limit, "k", 1).lease().unwrap();
            assert!(lease > last, "{lease} after {last} at {}", desk.now);
            last = lease;
            match n % 7 {
                0 => desk.run(|tx| super::super::reset(tx, &limit, &"k".into())),
                1 => desk.now += 25,
                2 if n % 2 == 0 => drop(desk.sweep()),
                _ => drop(on(&mut desk, &limit, lease, false)),
            }
            if n % 7 == 2 {
                on(&mut desk, &limit, lease, false);
            }
        }
        desk.now += 10_000;
        desk.sweep();
        assert!(desk.rows().is_empty(), "nothing is remembered when the last lease is over");
        assert!(desk.take(&limit, "k", 1).lease().unwrap() > last);
    }

    #[test]
    fn costs_are_slots_and_a_lowered_max_waits_for_leases_to_end() {
        let mut desk = Desk::new();
        let ten = of(Kind::Concurrency, "x", 10, 1_000);
        let six = desk.take(&ten, "k", 6);
        assert_eq!((six.remaining, six.limit, six.reset_at.as_millis()), (4, 10, 1_000));
        assert_eq!(desk.take(&ten, "k", 5).retry_after, 1_000);
        assert_eq!(desk.take(&ten, "k", 11).reason.as_str(), "never");
        let three = of(Kind::Concurrency, "x", 3, 1_000);
        let lowered = desk.at(400).peek(&three, "k");
        assert_eq!((lowered.remaining, lowered.used, lowered.retry_after), (0, 6, 600));
        assert_eq!(on(&mut desk, &three, six.lease().unwrap(), false).remaining, 3);
        assert_eq!(desk.refund(&three, "k", 5).remaining, 3, "slots come back with their lease and not otherwise");
        assert_eq!(desk.charge(&three, "k", 5).remaining, 3, "nobody would know of the lease of a charge");
    }

    #[test]
    fn a_lease_among_several_limits_is_given_only_when_all_allow() {
        let (slots, rate) = (of(Kind::Concurrency, "slots", 5, 60_000), fw("rate", 1, 60_000));
        let mut desk = Desk::new();
        let both = [demand(&slots, "k", 1), demand(&rate, "k", 1)];
        let decision = desk.take_all(&both);
        assert_eq!((&*decision.leases[0].name, decision.leases.len()), ("slots", 1));
        let refused = desk.take_all(&both);
        assert!(refused.leases.is_empty() && !refused.allowed);
        assert_eq!(desk.peek(&slots, "k").used, 1);
        let lease = decision.lease().unwrap();
        assert!(desk.run(|tx| release(tx, &slots, &"k".into(), lease)).allowed);
        assert_eq!(desk.run(|tx| super::super::peek(tx, &slots, &"k".into(), cost(5))).remaining, 5);
    }
}
