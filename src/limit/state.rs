//! The state of a bucket as it is stored.
//!
//! Form: version byte `1`, kind, flags, then numbers as LEB128 (seven bits a byte, least first; those with a sign
//! zigzag): `at`, `capacity`, and where their flag is set, in this order: spent (`1`), last_take (`2`),
//! blocked_until (`4`), ruled_until (`8`), and of a sliding counter the fresh tokens (`16`). What is spent, by kind:
//!
//! | kind | | numbers |
//! |---|---|---|
//! | fixed window | `1` | tokens, opened_at |
//! | token bucket | `2` | units, period |
//! | sliding window | `3` | entries, then each from the newest on: ms before the one after it (the first: before `at`), tokens |
//! | sliding counter | `4` | opened_at, period, previous, current |
//! | calendar quota | `5` | tokens, ends_at, mark of the calendar |
//! | concurrency | `6` | last token, leases, then each: token below the last, slots, ms from the one before (the first: from `at`) to its end |
//!
//! The instant of expiry is the row's.

use crate::element::Encoded;
use crate::value::InvalidValue;

use super::kind::Kind;
use super::rule::Spent;
use super::settings::MAX_ENTRIES;
use super::{calendar_quota, concurrency, fixed_window, sliding_counter, sliding_window, token_bucket};

const VERSION: u8 = 1;
const SPENT: u8 = 1;
const LAST_TAKE: u8 = 2;
const BLOCKED: u8 = 4;
const RULED: u8 = 8;
const FRESH: u8 = 16;

const fn code(kind: Kind) -> u8 {
    match kind {
        Kind::FixedWindow => 1,
        Kind::TokenBucket => 2,
        Kind::SlidingWindow => 3,
        Kind::SlidingCounter => 4,
        Kind::CalendarQuota => 5,
        Kind::Concurrency => 6,
    }
}

/// What a bucket remembers. Instants are in ms; no state is a full bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) kind: Kind,
    /// The instant of the last change, at which everything below is true.
    pub(crate) at: i64,
    /// The capacity it was written under.
    pub(crate) capacity: i64,
    pub(crate) spent: Option<Spent>,
    /// The last accepted take, kept where a cooldown counts from it.
    pub(crate) last_take: Option<i64>,
    pub(crate) blocked_until: Option<i64>,
    /// Until when an operator's ruling is stored for this key.
    pub(crate) ruled_until: Option<i64>,
    /// When nothing of this is left to remember.
    pub(crate) expires_at: i64,
}

impl State {
    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Encoded) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let fresh = match &self.spent {
            Some(Spent::SlidingCounter(pair)) if pair.fresh > 0 => Some(pair.fresh),
            _ => None,
        };
        out.extend_from_slice(&[
            VERSION,
            code(self.kind),
            flag(self.spent.is_some(), SPENT)
                | flag(self.last_take.is_some(), LAST_TAKE)
                | flag(self.blocked_until.is_some(), BLOCKED)
                | flag(self.ruled_until.is_some(), RULED)
                | flag(fresh.is_some(), FRESH),
        ]);
        put_signed(out, self.at);
        put_signed(out, self.capacity);
        if let Some(spent) = &self.spent {
            self.encode_spent(spent, out);
        }
        for n in [self.last_take, self.blocked_until, self.ruled_until, fresh].into_iter().flatten() {
            put_signed(out, n);
        }
    }

    fn encode_spent(&self, spent: &Spent, out: &mut Encoded) {
        match spent {
            Spent::FixedWindow(window) => {
                put_signed(out, window.spent);
                put_signed(out, window.opened_at);
            }
            Spent::TokenBucket(drain) => {
                put_wide(out, drain.units.unsigned_abs());
                put_signed(out, drain.period_ms);
            }
            Spent::SlidingWindow(trail) => {
                out.reserve(2 + trail.entries.len() * 4);
                put(out, trail.entries.len() as u64);
                let mut after = self.at;
                // Differences are modulo 2^64: adding them up again gives the same instants, whatever those are.
                for entry in trail.entries.iter().rev() {
                    put_signed(out, after.wrapping_sub(entry.at));
                    put_signed(out, entry.tokens);
                    after = entry.at;
                }
            }
            Spent::SlidingCounter(pair) => {
                for n in [pair.opened_at, pair.period_ms, pair.previous, pair.current] {
                    put_signed(out, n);
                }
            }
            Spent::CalendarQuota(quota) => {
                put_signed(out, quota.spent);
                put_signed(out, quota.ends_at);
                put(out, quota.mark.into());
            }
            Spent::Concurrency(leases) => {
                put_signed(out, leases.last_token);
                put(out, leases.held.len() as u64);
                let mut before = self.at;
                for lease in &leases.held {
                    put_signed(out, leases.last_token.wrapping_sub(lease.token));
                    put_signed(out, lease.slots);
                    put_signed(out, lease.expires_at.wrapping_sub(before));
                    before = lease.expires_at;
                }
            }
        }
    }

    /// Reads the stored form; `expires_at` is the row's, in ms.
    pub(crate) fn decode(bytes: &[u8], expires_at: i64) -> Result<State, InvalidValue> {
        State::try_decode(bytes, expires_at)
            .ok_or_else(|| InvalidValue("a bucket has an unreadable state: restore it from a backup".into()))
    }

    fn try_decode(bytes: &[u8], expires_at: i64) -> Option<State> {
        let [VERSION, kind, flags, rest @ ..] = bytes else { return None };
        let kind = Kind::ALL.into_iter().find(|known| code(*known) == *kind)?;
        let mut rest = rest;
        let at = take_signed(&mut rest)?;
        let capacity = take_signed(&mut rest).filter(|capacity| *capacity >= 1)?;
        let mut spent = match flags & SPENT {
            0 => None,
            _ => Some(decode_spent(kind, at, &mut rest)?),
        };
        let mut number = |bit| match flags & bit {
            0 => Some(None),
            _ => take_signed(&mut rest).map(Some),
        };
        let last_take = number(LAST_TAKE)?;
        let blocked_until = number(BLOCKED)?;
        let ruled_until = number(RULED)?;
        if let Some(fresh) = number(FRESH)? {
            match &mut spent {
                Some(Spent::SlidingCounter(pair)) if (1..=pair.current).contains(&fresh) => pair.fresh = fresh,
                _ => return None,
            }
        }
        let whole = rest.is_empty() && flags & !(SPENT | LAST_TAKE | BLOCKED | RULED | FRESH) == 0;
        whole.then_some(State { kind, at, capacity, spent, last_take, blocked_until, ruled_until, expires_at })
    }
}

/// What tests look at; the engine asks a standing, which knows the limit and the time.
#[cfg(test)]
impl State {
    /// The instant the spending counts from: the opening of the window, the oldest entry, or the last change.
    pub(crate) fn since(&self) -> i64 {
        match &self.spent {
            Some(Spent::FixedWindow(window)) => window.opened_at,
            Some(Spent::SlidingCounter(pair)) => pair.opened_at,
            Some(Spent::SlidingWindow(trail)) => trail.entries.first().map_or(self.at, |entry| entry.at),
            _ => self.at,
        }
    }

    /// Tokens spent at the last change, a started one counting whole.
    pub(crate) fn used(&self) -> i64 {
        match &self.spent {
            Some(Spent::FixedWindow(window)) => window.spent,
            Some(Spent::TokenBucket(drain)) => {
                super::number::clamp_i64(super::number::div_ceil(drain.units, i128::from(drain.period_ms)))
            }
            Some(Spent::SlidingWindow(trail)) => trail.tokens(),
            Some(Spent::SlidingCounter(pair)) => pair.used_at(self.at),
            Some(Spent::CalendarQuota(quota)) => quota.spent,
            Some(Spent::Concurrency(leases)) => leases.slots(),
            None => 0,
        }
    }
}

fn decode_spent(kind: Kind, at: i64, rest: &mut &[u8]) -> Option<Spent> {
    let tokens = |rest: &mut &[u8]| take_signed(rest).filter(|tokens| *tokens >= 1);
    Some(match kind {
        Kind::FixedWindow => {
            let spent = take_signed(rest).filter(|spent| *spent >= 0)?;
            Spent::FixedWindow(fixed_window::Window { spent, opened_at: take_signed(rest)? })
        }
        Kind::TokenBucket => {
            let units = i128::try_from(take_wide(rest)?).ok().filter(|units| *units >= 1)?;
            let period_ms = take_signed(rest).filter(|period| *period >= 1)?;
            // The bound that keeps all later arithmetic in range.
            if units > i128::from(i64::MAX) * i128::from(period_ms) {
                return None;
            }
            Spent::TokenBucket(token_bucket::Drain { units, period_ms })
        }
        Kind::SlidingWindow => {
            let count = take_count(rest)?;
            // Room for one more: a take is what mostly follows.
            let mut entries = Vec::with_capacity(count + 1);
            let mut after = at;
            for _ in 0..count {
                after = after.wrapping_sub(take_signed(rest)?);
                entries.push(sliding_window::Entry { at: after, tokens: tokens(rest)? });
            }
            entries.reverse();
            Spent::SlidingWindow(sliding_window::Trail { entries })
        }
        Kind::SlidingCounter => {
            let opened_at = take_signed(rest)?;
            let period_ms = take_signed(rest).filter(|period| *period >= 1)?;
            let previous = take_signed(rest).filter(|tokens| *tokens >= 0)?;
            let current = take_signed(rest).filter(|tokens| *tokens >= 0)?;
            Spent::SlidingCounter(sliding_counter::Pair { opened_at, period_ms, previous, current, fresh: 0 })
        }
        Kind::CalendarQuota => {
            let (spent, ends_at) = (tokens(rest)?, take_signed(rest)?);
            let mark = u32::try_from(take(rest)?).ok()?;
            Spent::CalendarQuota(calendar_quota::Quota { spent, ends_at, mark })
        }
        Kind::Concurrency => {
            let last_token = take_signed(rest).filter(|token| *token >= 1)?;
            let count = take_count(rest)?;
            let mut held = Vec::with_capacity(count + 1);
            let mut before = at;
            for _ in 0..count {
                let token = last_token.wrapping_sub(take_signed(rest)?);
                let slots = tokens(rest)?;
                before = before.wrapping_add(take_signed(rest)?);
                held.push(concurrency::Lease { token, slots, expires_at: before });
            }
            Spent::Concurrency(concurrency::Leases { last_token, held })
        }
    })
}

/// How many entries follow: no more than are ever remembered, so that damaged bytes ask for no memory.
fn take_count(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(take(rest)?).ok().filter(|count| *count <= MAX_ENTRIES as usize)
}

fn put(out: &mut Encoded, mut n: u64) {
    let (mut bytes, mut len) = ([0; 10], 0);
    while n >= 0x80 {
        bytes[len] = n as u8 | 0x80;
        len += 1;
        n >>= 7;
    }
    bytes[len] = n as u8;
    out.extend_from_slice(&bytes[..=len]);
}

fn put_wide(out: &mut Encoded, mut n: u128) {
    while n > u128::from(u64::MAX) {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    put(out, n as u64);
}

/// Zigzag: small numbers of either sign become small ones without.
fn put_signed(out: &mut Encoded, n: i64) {
    put(out, ((n << 1) ^ (n >> 63)) as u64);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut n, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        // The tenth byte holds the last bit of 64.
        if shift == 63 && *byte > 1 {
            return None;
        }
        n |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
        shift += 7;
    }
}

fn take_wide(bytes: &mut &[u8]) -> Option<u128> {
    let mut n: u128 = 0;
    for shift in (0..126).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u128::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    // At most 2^126 is ever written.
    None
}

fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let n = take(bytes)?;
    Some((n >> 1) as i64 ^ -((n & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn states() -> impl Strategy<Value = State> {
        let window = (0..=i64::MAX, any::<i64>())
            .prop_map(|(spent, opened_at)| Spent::FixedWindow(fixed_window::Window { spent, opened_at }));
        let drain = (1..=i64::MAX, 1..=i64::MAX).prop_map(|(tokens, period_ms)| {
            let units = i128::from(tokens) * i128::from(period_ms);
            Spent::TokenBucket(token_bucket::Drain { units, period_ms })
        });
        let entry = (any::<i64>(), 1..=i64::MAX).prop_map(|(at, tokens)| sliding_window::Entry { at, tokens });
        let trail = prop::collection::vec(entry, 1..5)
            .prop_map(|entries| Spent::SlidingWindow(sliding_window::Trail { entries }));
        let pair = (any::<i64>(), 1..=i64::MAX, 0..=i64::MAX, 0..=i64::MAX, any::<bool>()).prop_map(
            |(opened_at, period_ms, previous, current, fresh)| {
                let fresh = if fresh { current } else { 0 };
                Spent::SlidingCounter(sliding_counter::Pair { opened_at, period_ms, previous, current, fresh })
            },
        );
        let quota = (1..=i64::MAX, any::<i64>(), any::<u32>())
            .prop_map(|(spent, ends_at, mark)| Spent::CalendarQuota(calendar_quota::Quota { spent, ends_at, mark }));
        let lease = (any::<i64>(), 1..=i64::MAX, any::<i64>())
            .prop_map(|(token, slots, expires_at)| concurrency::Lease { token, slots, expires_at });
        let leases = (1..=i64::MAX, prop::collection::vec(lease, 0..5))
            .prop_map(|(last_token, held)| Spent::Concurrency(concurrency::Leases { last_token, held }));
        let spent = prop_oneof![window, drain, trail, pair, quota, leases];
        (spent, any::<bool>(), any::<i64>(), 1..=i64::MAX, any::<[Option<i64>; 3]>(), any::<i64>()).prop_map(
            |(spent, keep, at, capacity, [last_take, blocked_until, ruled_until], expires_at)| State {
                kind: spent.kind(),
                at,
                capacity,
                spent: keep.then_some(spent),
                last_take,
                blocked_until,
                ruled_until,
                expires_at,
            },
        )
    }

    proptest! {
        #[test]
        fn stored_states_round_trip(state in states()) {
            let mut bytes = Encoded::new();
            state.encode(&mut bytes);
            prop_assert_eq!(State::decode(&bytes, state.expires_at).unwrap(), state);
            prop_assert!(State::decode(&bytes[..bytes.len() - 1], 0).is_err());
            bytes.push(0);
            prop_assert!(State::decode(&bytes, 0).is_err());
        }

        #[test]
        fn damaged_states_are_errors_and_never_panics(
            head in (0..3u8, 0..8u8, 0..64u8), rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = State::decode(&rest, 0);
            let bytes = [&[head.0, head.1, head.2][..], &rest].concat();
            if let Ok(state) = State::decode(&bytes, 0) {
                let _ = (state.used(), state.since());
            }
        }
    }

    #[test]
    fn a_state_has_a_longest_form() {
        let (most, late) = (i64::MAX, crate::time::Timestamp::MAX.as_millis());
        let longest = super::super::settings::MAX_REFILL_MS;
        let drain = token_bucket::Drain { units: i128::from(most) * i128::from(longest), period_ms: longest };
        for (spent, bytes) in [
            (Spent::FixedWindow(fixed_window::Window { spent: most, opened_at: late }), 60),
            (Spent::TokenBucket(drain), 72),
            (
                Spent::SlidingCounter(sliding_counter::Pair {
                    opened_at: late,
                    period_ms: longest,
                    previous: most,
                    current: most,
                    fresh: most,
                }),
                90,
            ),
            (Spent::CalendarQuota(calendar_quota::Quota { spent: most, ends_at: late, mark: u32::MAX }), 65),
        ] {
            let state = State {
                kind: spent.kind(),
                at: late,
                capacity: most,
                spent: Some(spent),
                last_take: Some(late),
                blocked_until: Some(late + longest),
                ruled_until: Some(late),
                expires_at: late + longest,
            };
            let mut stored = Encoded::new();
            state.encode(&mut stored);
            assert!(stored.len() <= bytes, "{} bytes of {state:?}", stored.len());
        }
    }

    #[test]
    fn a_stored_state_of_version_1_reads_for_ever() {
        let bytes = [1, 2, 3, 0x80, 0x89, 0x7A, 20, 0xE8, 0x07, 0xD0, 0x0F, 0x80, 0x89, 0x7A];
        let state = State::decode(&bytes, 5).unwrap();
        assert_eq!((state.at, state.capacity, state.used()), (1_000_000, 10, 1));
        assert_eq!((state.last_take, state.blocked_until, state.expires_at), (Some(1_000_000), None, 5));
    }
}
