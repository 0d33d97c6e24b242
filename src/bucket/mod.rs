//! Buckets: limits meet the store. Each operation reads the rows it needs, decides, and writes what changed.
//!
//! A bucket's row is keyed by the limit's name and the key, and expires when there is nothing left to remember.
//! A refused take writes nothing, with one exception that belongs to the clock and not to the take: a bucket whose
//! last change lies more than one full-refill time in the future moves to the present, or it would stay there.

pub(crate) mod census;
pub(crate) mod lease;
pub(crate) mod ruling;
mod secret;
mod told;

use std::borrow::Cow;

use crate::element::Encoded;
use crate::limit::{
    Change, Combination, Cost, Decision, Granted, Key, Limit, MAX_KEY_BYTES, Mode, Override, Ruling, Standing, State,
    Verdict,
};
use crate::store::key::{KeyBuffer, space};
use crate::store::{Bytes, Direction, Range, StoreError};
use crate::time::Timestamp;
use crate::transaction::row::Row;
use crate::transaction::{Fault, Spent, Transaction};

use secret::stored_key;
use told::{Account, Witness, tell};

/// One of several takes decided together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) limit: Limit,
    pub(crate) key: Key,
    pub(crate) cost: Cost,
}

/// A live bucket, for tools. [`look`] says how it stands under a limit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    /// The key, or its keyed hash.
    pub(crate) key: Key,
    pub(crate) state: State,
    /// What an operator has decided about it.
    pub(crate) ruling: Option<Override>,
}

/// A bucket as read.
struct Found<'k> {
    /// The key it is stored under.
    key: Cow<'k, Key>,
    row_key: KeyBuffer,
    /// The row that was there, expired or not.
    row: Option<Row>,
    /// What it remembers, while it lives.
    state: Option<State>,
    /// The limit with an operator's settings, where there are any.
    limit: Option<Limit>,
    ruling: Option<Ruling>,
    /// What that came from.
    ruled: Option<Override>,
}

/// Spends `cost`, if it fits.
pub(crate) fn take(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    spend_if_fits(tx, limit, key, cost, Mode::Take, "take")
}

/// [`take`], for a caller that ends the call when it is refused.
pub(crate) fn enforce(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    spend_if_fits(tx, limit, key, cost, Mode::Take, "enforce")
}

/// Spends `cost` now, even ahead of time within `max_reserved`: the decision's `delay` says how long the work must wait.
pub(crate) fn reserve(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    spend_if_fits(tx, limit, key, cost, Mode::Reserve, "reserve")
}

/// The answer a take would get, with the numbers as they stand. Writes nothing.
pub(crate) fn peek(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    ask(tx, limit, key, cost, Mode::Take, "peek")
}

/// The answer a reservation would get, its `delay` too, with the numbers as they stand. Writes nothing.
pub(crate) fn peek_reserve(tx: &mut Transaction, limit: &Limit, key: &Key, cost: Cost) -> Result<Decision, Fault> {
    ask(tx, limit, key, cost, Mode::Reserve, "peek_reserve")
}

/// Gives back `tokens`, never beyond full. The decision says how the bucket stands then.
pub(crate) fn refund(tx: &mut Transaction, limit: &Limit, key: &Key, tokens: Cost) -> Result<Decision, Fault> {
    change(tx, limit, key, ("refund", Some(tokens)), |standing| standing.give(tokens.tokens()))
}

/// Spends `tokens` without asking, past the limit too. The decision says how the bucket stands then.
pub(crate) fn charge(tx: &mut Transaction, limit: &Limit, key: &Key, tokens: Cost) -> Result<Decision, Fault> {
    change(tx, limit, key, ("charge", Some(tokens)), |standing| standing.spend(tokens.tokens(), false))
}

/// Refuses every take for `span_ms` milliseconds from now, in place of an earlier block. A span below 1 blocks nothing.
pub(crate) fn block(tx: &mut Transaction, limit: &Limit, key: &Key, span_ms: i64) -> Result<Decision, Fault> {
    change(tx, limit, key, ("block", None), |standing| standing.block(span_ms.max(0)))
}

/// Ends a block.
pub(crate) fn unblock(tx: &mut Transaction, limit: &Limit, key: &Key) -> Result<Decision, Fault> {
    change(tx, limit, key, ("unblock", None), |standing| standing.unblock())
}

/// Forgets the bucket: what was spent, cooldown, block and leases. A ruling of an operator stays.
pub(crate) fn reset(tx: &mut Transaction, limit: &Limit, key: &Key) -> Result<(), Fault> {
    let begun = tx.watch();
    let mut found = find(tx, limit, key)?;
    let wrote = found.row.is_some();
    if !wrote && begun.is_none() {
        return Ok(());
    }
    let state = found.state.take();
    let mut standing = standing_of(limit, &found, state, tx.now());
    let witness = Witness::of(begun, &standing);
    standing.reset();
    let account = Account { operation: "reset", cost: None, mode: Mode::Take, decision: None, wrote };
    let step = witness.map(|witness| witness.step(tx, limit, &found, &standing, account));
    if wrote {
        store(tx, standing, limit, &found)?;
    }
    tell(tx, step);
    Ok(())
}

/// Spends every demand if all of them fit, else nothing. The same bucket named twice is charged the sum.
pub(crate) fn take_all(tx: &mut Transaction, demands: &[Demand]) -> Result<Decision, Fault> {
    decide_all(tx, demands, true, "take_all")
}

/// [`take_all`], for a caller that ends the call when it is refused.
pub(crate) fn enforce_all(tx: &mut Transaction, demands: &[Demand]) -> Result<Decision, Fault> {
    decide_all(tx, demands, true, "enforce_all")
}

/// The answer [`take_all`] would get, with the numbers as they stand. Writes nothing.
pub(crate) fn peek_all(tx: &mut Transaction, demands: &[Demand]) -> Result<Decision, Fault> {
    decide_all(tx, demands, false, "peek_all")
}

/// How a listed bucket stands under `limit`: the answer to a take of one token, and until when all are refused.
pub(crate) fn look(tx: &Transaction, limit: &Limit, listed: &Listed) -> (Decision, Option<Timestamp>) {
    let (other, ruling) = listed.ruling.as_ref().map_or((None, None), |ruling| ruling.applied(limit));
    let limit = other.as_ref().unwrap_or(limit);
    let standing = Standing::new(limit, &listed.key, Some(listed.state.clone()), tx.now()).ruled(ruling);
    (standing.decision(standing.verdict(1, Mode::Take)), standing.blocked_until())
}

/// Whether a stored bucket is one that `limit` goes on with: of its kind, under a key as it stores them.
pub(crate) fn continues(limit: &Limit, listed: &Listed) -> bool {
    listed.key.is_hash() == limit.hashes_keys() && listed.state.kind == limit.kind()
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
            listed.extend(self::listed(tx, limit_name, &row_key, bytes)?);
        }
        if end {
            break;
        }
    }
    Ok(listed)
}

/// The bucket in a row of `limit_name`, with the ruling about it; none when it has expired.
fn listed(tx: &mut Transaction, limit_name: &str, row_key: &[u8], bytes: Bytes) -> Result<Option<Listed>, Fault> {
    let row = Row::decode(bytes)?;
    if row.expired(tx.now()) {
        return Ok(None);
    }
    let prefix = KeyBuffer::new(space::BUCKET).name(limit_name);
    let key = row_key
        .get(prefix.as_slice().len()..)
        .and_then(Key::decode)
        .ok_or_else(|| StoreError::Corrupt(format!("a bucket of {limit_name} has an unreadable key")))?;
    let state = state_of(&row)?;
    let ruling = match state.ruled_until {
        Some(_) => ruling::read(tx, limit_name, &key)?,
        None => None,
    };
    Ok(Some(Listed { key, state, ruling }))
}

fn ask(
    tx: &mut Transaction,
    limit: &Limit,
    key: &Key,
    cost: Cost,
    mode: Mode,
    operation: &'static str,
) -> Result<Decision, Fault> {
    let begun = tx.watch();
    let mut found = find(tx, limit, key)?;
    let state = found.state.take();
    let standing = standing_of(limit, &found, state, tx.now());
    let verdict = standing.verdict(cost.tokens().into(), mode);
    let mut decision = standing.decision(verdict);
    if mode == Mode::Reserve && verdict == Verdict::Fits {
        let mut reserved = standing.clone();
        reserved.spend(cost.tokens(), true);
        decision.delay = reserved.delay();
    }
    if let Some(witness) = Witness::of(begun, &standing) {
        let decision = Some(decision.clone());
        let account = Account { operation, cost: Some(cost.tokens()), mode, decision, wrote: false };
        let step = witness.step(tx, limit, &found, &standing, account);
        tell(tx, Some(step));
    }
    Ok(decision)
}

fn spend_if_fits(
    tx: &mut Transaction,
    limit: &Limit,
    key: &Key,
    cost: Cost,
    mode: Mode,
    operation: &'static str,
) -> Result<Decision, Fault> {
    let begun = tx.watch();
    let mut found = find(tx, limit, key)?;
    let state = found.state.take();
    let mut standing = standing_of(limit, &found, state, tx.now());
    let witness = Witness::of(begun, &standing);
    let verdict = standing.verdict(cost.tokens().into(), mode);
    let fits = verdict == Verdict::Fits;
    let mut changed = fits || standing.is_reanchored();
    if fits {
        standing.spend(cost.tokens(), true);
    } else if standing.blocks_after(verdict) {
        standing.block_after_refusal();
        changed = true;
    }
    let mut decision = standing.decision(verdict);
    if fits {
        grant(&mut decision, &standing);
        if mode == Mode::Reserve {
            decision.delay = standing.delay();
        }
    }
    let step = witness.map(|witness| {
        let decision = Some(decision.clone());
        let account = Account { operation, cost: Some(cost.tokens()), mode, decision, wrote: changed };
        witness.step(tx, limit, &found, &standing, account)
    });
    if changed {
        store(tx, standing, limit, &found)?;
    }
    tell(tx, step);
    Ok(decision)
}

/// Puts the lease that was just given out, where there is one, into its decision.
fn grant(decision: &mut Decision, standing: &Standing<'_>) {
    if let Some(lease) = standing.new_lease() {
        decision.leases.push(Granted { name: decision.name.clone(), lease });
    }
}

fn change(
    tx: &mut Transaction,
    limit: &Limit,
    key: &Key,
    (name, tokens): (&'static str, Option<Cost>),
    operation: impl FnOnce(&mut Standing<'_>),
) -> Result<Decision, Fault> {
    let begun = tx.watch();
    let mut found = find(tx, limit, key)?;
    let state = found.state.take();
    let mut standing = standing_of(limit, &found, state, tx.now());
    let witness = Witness::of(begun, &standing);
    operation(&mut standing);
    let decision = standing.decision(Verdict::Fits);
    let step = witness.map(|witness| {
        let (cost, decision) = (tokens.map(Cost::tokens), Some(decision.clone()));
        let account = Account { operation: name, cost, mode: Mode::Take, decision, wrote: true };
        witness.step(tx, limit, &found, &standing, account)
    });
    store(tx, standing, limit, &found)?;
    tell(tx, step);
    Ok(decision)
}

/// One bucket of a combination with everything that is demanded of it.
struct Member<'a> {
    limit: &'a Limit,
    tokens: i128,
    found: Found<'a>,
}

fn decide_all(
    tx: &mut Transaction,
    demands: &[Demand],
    spend: bool,
    operation: &'static str,
) -> Result<Decision, Fault> {
    let now = tx.now();
    let mut begun = tx.watch();
    let mut members: Vec<Member<'_>> = Vec::with_capacity(demands.len());
    for Demand { limit, key, cost } in demands {
        let tokens = i128::from(cost.tokens());
        let found = find(tx, limit, key)?;
        match members.iter_mut().find(|member| member.found.row_key == found.row_key && member.limit == limit) {
            Some(member) => member.tokens += tokens,
            None => members.push(Member { limit, tokens, found }),
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
    let states: Vec<Option<State>> = members.iter_mut().map(|member| member.found.state.take()).collect();
    let standings = members.iter().zip(states).zip(&shares);
    let judged: Vec<(Standing<'_>, Verdict)> = standings
        .map(|((member, state), (tokens, _))| {
            let standing = standing_of(member.limit, &member.found, state, now);
            let verdict = standing.verdict(*tokens, Mode::Take);
            (standing, verdict)
        })
        .collect();
    // What a shadow limit would refuse is not spent there, as if it had refused; the others do not care.
    let allowed = !judged.iter().any(|(standing, verdict)| *verdict != Verdict::Fits && !standing.is_shadow());
    let mut combination = Combination::default();
    for ((member, (tokens, writes)), (mut standing, verdict)) in members.iter().zip(shares).zip(judged) {
        let spends = spend && allowed && verdict == Verdict::Fits;
        let witness = Witness::of(begun, &standing);
        if spends {
            // What fits is at most the capacity, an `i64`.
            standing.spend(i64::try_from(tokens).unwrap_or(i64::MAX), true);
        }
        let blocks = spend && standing.blocks_after(verdict);
        if blocks {
            standing.block_after_refusal();
        }
        let mut decision = standing.decision(verdict);
        if spends {
            grant(&mut decision, &standing);
        }
        let changed = spend && writes && (spends || blocks || standing.is_reanchored());
        let step = witness.map(|witness| {
            let (cost, decision) = (Some(i64::try_from(tokens).unwrap_or(i64::MAX)), Some(decision.clone()));
            let account = Account { operation, cost, mode: Mode::Take, decision, wrote: changed };
            witness.step(tx, member.limit, &member.found, &standing, account)
        });
        combination.add(decision, standing.is_shadow());
        if changed {
            store(tx, standing, member.limit, &member.found)?;
        }
        // The limits were read and judged together: the first step carries that time.
        begun = tx.watch();
        tell(tx, step);
    }
    Ok(combination.decision(now))
}

fn find<'k>(tx: &mut Transaction, limit: &Limit, key: &'k Key) -> Result<Found<'k>, Fault> {
    let key = stored_key(tx, limit, key)?;
    let row_key = row_key(limit, &key)?;
    let row = tx.get_any_row(&row_key)?;
    let now = tx.now();
    let state = row.as_ref().filter(|row| !row.expired(now)).map(state_of).transpose()?;
    let ruled = state.as_ref().and_then(|state| state.ruled_until).is_some_and(|until| until > now.as_millis());
    let ruling = if ruled { ruling::read(tx, limit.name(), &key)? } else { None };
    let (other, applied) = ruling.as_ref().map_or((None, None), |ruling| ruling.applied(limit));
    Ok(Found { key, row_key, row, state, limit: other, ruling: applied, ruled: ruling })
}

/// The bucket as it stands, under what an operator has decided about it.
fn standing_of<'a>(limit: &'a Limit, found: &'a Found<'_>, state: Option<State>, now: Timestamp) -> Standing<'a> {
    Standing::new(found.limit.as_ref().unwrap_or(limit), &found.key, state, now).ruled(found.ruling)
}

/// Writes the bucket as it stands; a bucket with nothing to remember has no row.
fn store(tx: &mut Transaction, standing: Standing<'_>, limit: &Limit, found: &Found<'_>) -> Result<(), Fault> {
    match standing.change() {
        Change::Put(state) => {
            let mut body = Encoded::new();
            state.encode(&mut body);
            let expires_at = Timestamp::from_millis(state.expires_at);
            tx.put_row_over(&found.row_key, found.row.as_ref(), &body, Some(expires_at))?;
        }
        Change::Forget if found.row.is_some() => tx.delete_row(&found.row_key)?,
        Change::Forget => return Ok(()),
    }
    // An operator's settings win over the file's in this too.
    if found.limit.as_ref().unwrap_or(limit).is_durable() {
        tx.require_durable();
    }
    Ok(())
}

fn state_of(row: &Row) -> Result<State, StoreError> {
    let expiry = row.expiry.ok_or_else(|| StoreError::Corrupt("a bucket has no instant of expiry".into()))?;
    State::decode(row.body(), expiry.expires_at.as_millis()).map_err(|why| StoreError::Corrupt(why.to_string()))
}

fn row_key(limit: &Limit, key: &Key) -> Result<KeyBuffer, Fault> {
    // Scripts and hosts are told at the door, with a better message; past it, a long key still never gets a bucket.
    if key.check().is_err() {
        return Err(Fault::Budget(Spent { what: "bytes of a limit's key", allowed: MAX_KEY_BYTES as u64, hint: None }));
    }
    Ok(KeyBuffer::new(space::BUCKET).name(limit.name()).raw(key.encoded()))
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod faults_of_kinds;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod history;
#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod refunds;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod worst_case;
