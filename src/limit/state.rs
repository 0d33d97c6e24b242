//! The state of a bucket as it is stored.
//!
//! Form: version byte `1`, kind (`1` fixed window, `2` token bucket), flags, then numbers as LEB128 (seven bits a
//! byte, least first; those with a sign zigzag): `at`, `capacity`, and where their flag is set, in this order:
//! spent (`1`; fixed window: tokens, opened_at; token bucket: units, period), last_take (`2`), blocked_until (`4`).
//! The instant of expiry is the row's.

use crate::store::StoreError;

use super::rule::Spent;
use super::settings::Kind;
use super::{fixed_window, token_bucket};

const VERSION: u8 = 1;
const FIXED_WINDOW: u8 = 1;
const TOKEN_BUCKET: u8 = 2;
const SPENT: u8 = 1;
const LAST_TAKE: u8 = 2;
const BLOCKED: u8 = 4;

/// What a bucket remembers. Instants are in ms; no state is a full bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// When nothing of this is left to remember.
    pub(crate) expires_at: i64,
}

impl State {
    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.extend_from_slice(&[
            VERSION,
            match self.kind {
                Kind::FixedWindow => FIXED_WINDOW,
                Kind::TokenBucket => TOKEN_BUCKET,
            },
            flag(self.spent.is_some(), SPENT)
                | flag(self.last_take.is_some(), LAST_TAKE)
                | flag(self.blocked_until.is_some(), BLOCKED),
        ]);
        put_signed(out, self.at);
        put_signed(out, self.capacity);
        match self.spent {
            Some(Spent::FixedWindow(window)) => {
                put_signed(out, window.spent);
                put_signed(out, window.opened_at);
            }
            Some(Spent::TokenBucket(drain)) => {
                put(out, drain.units.unsigned_abs());
                put_signed(out, drain.period_ms);
            }
            None => {}
        }
        for instant in [self.last_take, self.blocked_until].into_iter().flatten() {
            put_signed(out, instant);
        }
    }

    /// Reads the stored form; `expires_at` is the row's, in ms.
    pub(crate) fn decode(bytes: &[u8], expires_at: i64) -> Result<State, StoreError> {
        try_decode(bytes, expires_at)
            .ok_or_else(|| StoreError::Corrupt("a bucket has an unreadable state: restore it from a backup".into()))
    }

    /// The instant the spending counts from: the opening of the window, or the last change.
    pub(crate) fn since(&self) -> i64 {
        match self.spent {
            Some(Spent::FixedWindow(window)) => window.opened_at,
            _ => self.at,
        }
    }

    /// Tokens spent at the last change, a started one counting whole.
    pub(crate) fn used(&self) -> i64 {
        match self.spent {
            Some(Spent::FixedWindow(window)) => window.spent,
            Some(Spent::TokenBucket(drain)) => {
                super::settings::clamp_i64(super::settings::div_ceil(drain.units, i128::from(drain.period_ms)))
            }
            None => 0,
        }
    }
}

fn try_decode(bytes: &[u8], expires_at: i64) -> Option<State> {
    let [VERSION, kind, flags, rest @ ..] = bytes else { return None };
    let kind = match *kind {
        FIXED_WINDOW => Kind::FixedWindow,
        TOKEN_BUCKET => Kind::TokenBucket,
        _ => return None,
    };
    let mut rest = rest;
    let at = take_signed(&mut rest)?;
    let capacity = take_signed(&mut rest).filter(|capacity| *capacity >= 1)?;
    let spent = match kind {
        _ if flags & SPENT == 0 => None,
        Kind::FixedWindow => {
            let spent = take_signed(&mut rest).filter(|spent| *spent >= 0)?;
            Some(Spent::FixedWindow(fixed_window::Window { spent, opened_at: take_signed(&mut rest)? }))
        }
        Kind::TokenBucket => {
            let units = i128::try_from(take(&mut rest)?).ok().filter(|units| *units >= 1)?;
            let period_ms = take_signed(&mut rest).filter(|period| *period >= 1)?;
            // The bound that keeps all later arithmetic in range.
            if units > i128::from(i64::MAX) * i128::from(period_ms) {
                return None;
            }
            Some(Spent::TokenBucket(token_bucket::Drain { units, period_ms }))
        }
    };
    let mut instant = |bit| match flags & bit {
        0 => Some(None),
        _ => take_signed(&mut rest).map(Some),
    };
    let last_take = instant(LAST_TAKE)?;
    let blocked_until = instant(BLOCKED)?;
    let whole = rest.is_empty() && flags & !(SPENT | LAST_TAKE | BLOCKED) == 0;
    whole.then_some(State { kind, at, capacity, spent, last_take, blocked_until, expires_at })
}

fn put(out: &mut Vec<u8>, mut n: u128) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Zigzag: small numbers of either sign become small ones without.
fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, u128::from(((n << 1) ^ (n >> 63)) as u64));
}

fn take(bytes: &mut &[u8]) -> Option<u128> {
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
    let n = u64::try_from(take(bytes)?).ok()?;
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
        let spent = prop_oneof![window, drain];
        (spent, any::<bool>(), any::<i64>(), 1..=i64::MAX, any::<[Option<i64>; 2]>(), any::<i64>()).prop_map(
            |(spent, keep, at, capacity, [last_take, blocked_until], expires_at)| State {
                kind: spent.kind(),
                at,
                capacity,
                spent: keep.then_some(spent),
                last_take,
                blocked_until,
                expires_at,
            },
        )
    }

    proptest! {
        #[test]
        fn stored_states_round_trip(state in states()) {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            prop_assert_eq!(State::decode(&bytes, state.expires_at).unwrap(), state);
            prop_assert!(State::decode(&bytes[..bytes.len() - 1], 0).is_err());
            bytes.push(0);
            prop_assert!(State::decode(&bytes, 0).is_err());
        }

        #[test]
        fn damaged_states_are_errors_and_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = State::decode(&bytes, 0);
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
