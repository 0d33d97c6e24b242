//! Buckets: limits meet the store. Each operation reads the rows it needs, decides, and writes what changed.
//!
//! A bucket's row is keyed by the limit's name and the key, and expires when there is nothing left to remember.
//! A refused take writes nothing, with one exception that belongs to the clock and not to the take: a bucket whose
//! last change lies more than one full-refill time in the future moves to the present, or it would stay there.

use crate::limit::{Change, Combination, Cost, Decision, Key, Limit, MAX_KEY_BYTES, Mode, Standing, State, Verdict};
use crate::store::key::{KeyBuffer, space};
use crate::store::{Direction, Range, StoreError};
use crate::transaction::row::Row;
use crate::transaction::{Fault, Spent, Transaction};

/// One of several takes decided together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) limit: Limit,
    pub(crate) key: Key,
    pub(crate) cost: Cost,
}

/// A live bucket, for tools. [`look`] says how it stands under a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) key: Key,
    pub(crate) state: State,
}

/// A bucket as read: its row's key, the row that was there (expired or not), the state while it lives.
struct Found {
    row_key: Vec<u8>,
    row: Option<Row>,
    state: Option<State>,
}

/// Spends `cost`, if it fits.
pub(crate) fn take(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    spend_if_fits(tx, limit, key, cost, Mode::Take)
}

/// Spends `cost` now, even ahead of time within `max_reserved`: the decision's `delay` says how long the work must wait.
pub(crate) fn reserve(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    spend_if_fits(tx, limit, key, cost, Mode::Reserve)
}

/// The answer a take would get, with the numbers as they stand. Writes nothing.
pub(crate) fn peek(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    let found = find(tx, limit, key)?;
    let standing = Standing::new(limit, key, found.state.as_ref(), tx.now());
    Ok(standing.decision(standing.verdict(cost.tokens().into(), Mode::Take)))
}

/// The answer a reservation would get, its `delay` too, with the numbers as they stand. Writes nothing.
pub(crate) fn peek_reserve(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    let found = find(tx, limit, key)?;
    let standing = Standing::new(limit, key, found.state.as_ref(), tx.now());
    let verdict = standing.verdict(cost.tokens().into(), Mode::Reserve);
    let mut decision = standing.decision(verdict);
    if verdict == Verdict::Fits {
        let mut reserved = standing;
        reserved.spend(cost.tokens(), true);
        decision.delay = reserved.delay();
    }
    Ok(decision)
}

/// Gives back `tokens`, never beyond full. The decision says how the bucket stands then.
pub(crate) fn refund(tx: &mut Transaction, limit: &Limit, key: &Key, tokens: Cost) -> Result<Decision, Fault> {
    change(tx, limit, key, |standing| standing.give(tokens.tokens()))
}

/// Spends `tokens` without asking, past the limit too. The decision says how the bucket stands then.
pub(crate) fn charge(tx: &mut Transaction, limit: &Limit, key: &Key, tokens: Cost) -> Result<Decision, Fault> {
    change(tx, limit, key, |standing| standing.spend(tokens.tokens(), false))
}

/// Refuses every take for `span_ms` milliseconds from now, in place of an earlier block. A span below 1 blocks nothing.
pub(crate) fn block(tx: &mut Transaction, limit: &Limit, key: &Key, span_ms: i64) -> Result<Decision, Fault> {
    change(tx, limit, key, |standing| standing.block(span_ms.max(0)))
}

/// Ends a block.
pub(crate) fn unblock(tx: &mut Transaction, limit: &Limit, key: &Key) -> Result<Decision, Fault> {
    change(tx, limit, key, |standing| standing.unblock())
}

/// Forgets the bucket: what was spent, cooldown and block.
pub(crate) fn reset(tx: &mut Transaction, limit: &Limit, key: &Key) -> Result<(), Fault> {
    let row_key = row_key(limit, key)?;
    if tx.get_any_row(&row_key)?.is_some() {
        tx.delete_row(&row_key)?;
        if limit.is_durable() {
            tx.require_durable();
        }
    }
    Ok(())
}

/// Spends every demand if all of them fit, else nothing. The same bucket named twice is charged the sum.
pub(crate) fn take_all(tx: &mut Transaction, demands: &[Demand]) -> Result<Decision, Fault> {
    decide_all(tx, demands, true)
}

/// The answer [`take_all`] would get, with the numbers as they stand. Writes nothing.
pub(crate) fn peek_all(tx: &mut Transaction, demands: &[Demand]) -> Result<Decision, Fault> {
    decide_all(tx, demands, false)
}

/// How a listed bucket stands under `limit`, as the answer to a take of one token.
pub(crate) fn look(tx: &Transaction, limit: &Limit, listed: &Listed) -> Decision {
    let standing = Standing::new(limit, &listed.key, Some(&listed.state), tx.now());
    standing.decision(standing.verdict(1, Mode::Take))
}

/// The first `max` live buckets of a limit behind the key `after`, in the order of the keys.
pub(crate) fn list(
    tx: &mut Transaction,
    limit_name: &str,
    after: Option<&Key>,
    max: usize,
) -> Result<Vec<Listed>, Fault> {
    let prefix = KeyBuffer::new(space::BUCKET).name(limit_name);
    let mut range = Range::prefix(prefix.as_slice());
    if let Some(after) = after {
        let last = prefix.clone().raw(after.encoded()).into_vec();
        range.low = std::ops::Bound::Excluded(last.into());
    }
    let now = tx.now();
    let mut listed = Vec::new();
    while listed.len() < max {
        // Expired rows do not count, so there may be more to read than was asked for.
        let wanted = max - listed.len();
        let rows = tx.scan(&range, Direction::Ascending, wanted)?;
        let end = rows.len() < wanted;
        if let Some((last, _)) = rows.last() {
            range.low = std::ops::Bound::Excluded(last.clone());
        }
        for (row_key, bytes) in rows {
            let row = Row::decode(bytes)?;
            if !row.expired(now) {
                let key = Key::decode(&row_key[prefix.as_slice().len()..])
                    .ok_or_else(|| StoreError::Corrupt(format!("a bucket of {limit_name} has an unreadable key")))?;
                listed.push(Listed { key, state: state_of(&row)? });
            }
        }
        if end {
            break;
        }
    }
    Ok(listed)
}

fn spend_if_fits(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost, mode: Mode) -> Result<Decision, Fault> {
    let found = find(tx, limit, key)?;
    let mut standing = Standing::new(limit, key, found.state.as_ref(), tx.now());
    let verdict = standing.verdict(cost.tokens().into(), mode);
    if verdict == Verdict::Fits {
        standing.spend(cost.tokens(), true);
        store(tx, &standing, limit, &found)?;
    } else if standing.is_reanchored() {
        store(tx, &standing, limit, &found)?;
    }
    let mut decision = standing.decision(verdict);
    if verdict == Verdict::Fits && mode == Mode::Reserve {
        decision.delay = standing.delay();
    }
    Ok(decision)
}

fn change(
    tx: &mut Transaction,
    limit: &Limit,
    key: &Key,
    operation: impl FnOnce(&mut Standing<'_>),
) -> Result<Decision, Fault> {
    let found = find(tx, limit, key)?;
    let mut standing = Standing::new(limit, key, found.state.as_ref(), tx.now());
    operation(&mut standing);
    store(tx, &standing, limit, &found)?;
    Ok(standing.decision(Verdict::Fits))
}

/// One bucket of a combination with everything that is demanded of it.
struct Member<'a> {
    limit: &'a Limit,
    tokens: i128,
    found: Found,
    standing: Standing<'a>,
}

fn decide_all(tx: &mut Transaction, demands: &[Demand], spend: bool) -> Result<Decision, Fault> {
    let now = tx.now();
    let mut members: Vec<Member<'_>> = Vec::with_capacity(demands.len());
    for Demand { limit, key, cost } in demands {
        let tokens = i128::from(cost.tokens());
        let found = find(tx, limit, key)?;
        match members.iter_mut().find(|member| member.found.row_key == found.row_key && member.limit == limit) {
            Some(member) => member.tokens += tokens,
            None => {
                let standing = Standing::new(limit, key, found.state.as_ref(), now);
                members.push(Member { limit, tokens, found, standing });
            }
        }
    }
    // A limit built inside a function may name one bucket with several settings: each of them must allow the sum.
    let shared = |member: &Member<'_>| {
        let (mut tokens, mut writes) = (0, true);
        for other in members.iter().filter(|other| other.found.row_key == member.found.row_key) {
            tokens += other.tokens;
            // One of them writes, and not the one that happens to come last.
            writes &= member.limit.settings() <= other.limit.settings();
        }
        (tokens, writes)
    };
    let shares: Vec<(i128, bool)> = members.iter().map(shared).collect();
    let verdicts: Vec<Verdict> =
        members.iter().zip(&shares).map(|(member, (tokens, _))| member.standing.verdict(*tokens, Mode::Take)).collect();
    let allowed = verdicts.iter().all(|verdict| *verdict == Verdict::Fits);
    let mut combination = Combination::default();
    for ((member, (tokens, writes)), verdict) in members.iter_mut().zip(shares).zip(verdicts) {
        if spend && allowed {
            // What fits is at most the capacity, an `i64`.
            member.standing.spend(i64::try_from(tokens).unwrap_or(i64::MAX), true);
        }
        if spend && writes && (allowed || member.standing.is_reanchored()) {
            store(tx, &member.standing, member.limit, &member.found)?;
        }
        combination.add(member.standing.decision(verdict));
    }
    Ok(combination.decision(now))
}

fn find(tx: &mut Transaction, limit: &Limit, key: &Key) -> Result<Found, Fault> {
    let row_key = row_key(limit, key)?;
    let row = tx.get_any_row(&row_key)?;
    let now = tx.now();
    let state = row.as_ref().filter(|row| !row.expired(now)).map(state_of).transpose()?;
    Ok(Found { row_key, row, state })
}

/// Writes the bucket as it stands; a bucket with nothing to remember has no row.
fn store(tx: &mut Transaction, standing: &Standing<'_>, limit: &Limit, found: &Found) -> Result<(), Fault> {
    match standing.change() {
        Change::Put(state) => {
            let mut body = Vec::with_capacity(48);
            state.encode(&mut body);
            let expires_at = crate::time::Timestamp::from_millis(state.expires_at);
            tx.put_row_over(&found.row_key, found.row.as_ref(), &body, Some(expires_at))?;
        }
        Change::Forget if found.row.is_some() => tx.delete_row(&found.row_key)?,
        Change::Forget => return Ok(()),
    }
    if limit.is_durable() {
        tx.require_durable();
    }
    Ok(())
}

fn state_of(row: &Row) -> Result<State, StoreError> {
    let expiry = row.expiry.ok_or_else(|| StoreError::Corrupt("a bucket has no instant of expiry".into()))?;
    State::decode(row.body(), expiry.expires_at.as_millis())
}

fn row_key(limit: &Limit, key: &Key) -> Result<Vec<u8>, Fault> {
    // Scripts and hosts are told at the door, with a better message; past it, a long key still never gets a bucket.
    if key.check().is_err() {
        return Err(Fault::Budget(Spent { what: "bytes of a limit's key", allowed: MAX_KEY_BYTES as u64 }));
    }
    Ok(KeyBuffer::new(space::BUCKET).name(limit.name()).raw(key.encoded()).into_vec())
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod vectors;
