//! Concurrency: leases. Each holds some of `max` slots until it is released, or `ttl` after it was last renewed.
//!
//! A lease is known by its token, a number that only ever grows within a bucket: whoever keeps the greatest one seen
//! can tell a holder whose lease is over from the one after it (*fencing*). New tokens start from the clock, and a
//! bucket is remembered until the clock is past its last one, so a bucket made anew does not repeat the tokens of the
//! one that was forgotten.

use super::number::clamp_i64;
use super::settings::Settings;
use super::wears::Wears;

/// How many tokens a millisecond has to itself.
const TOKENS_PER_MS: i64 = 1_024;

/// The leases of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leases {
    /// The last token given out; from 1 up.
    pub(super) last_token: i64,
    /// Those held, in the order in which they end.
    pub(super) held: Vec<Lease>,
}

/// One lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(super) token: i64,
    /// Slots, from 1 up.
    pub(super) slots: i64,
    /// In ms.
    pub(super) expires_at: i64,
}

impl Leases {
    /// All slots held.
    pub(super) fn slots(&self) -> i64 {
        clamp_i64(self.total())
    }

    fn total(&self) -> i128 {
        self.held.iter().map(|lease| i128::from(lease.slots)).sum()
    }

    /// The first instant at which the clock alone makes greater tokens.
    fn outlived_at(&self) -> i64 {
        self.last_token / TOKENS_PER_MS + 1
    }

    fn hold(&mut self, lease: Lease) {
        let place = self.held.partition_point(|other| other.expires_at <= lease.expires_at);
        self.held.insert(place, lease);
    }

    /// Ends the lease with this token; whether it was held.
    pub(super) fn release(&mut self, token: i64) -> bool {
        let place = self.held.iter().position(|lease| lease.token == token);
        place.map(|place| self.held.remove(place)).is_some()
    }
}

/// The settings that leases need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    ttl_ms: i64,
}

impl Rule {
    pub(super) fn new(settings: &Settings) -> Rule {
        Rule { ttl_ms: settings.period_ms }
    }

    /// Holds a lease for another `ttl` from `now` on; whether it was held.
    pub(super) fn renew(&self, leases: &mut Leases, now: i64, token: i64) -> bool {
        let Some(place) = leases.held.iter().position(|lease| lease.token == token) else { return false };
        let lease = leases.held.remove(place);
        leases.hold(Lease { expires_at: now.saturating_add(self.ttl_ms), ..lease });
        true
    }
}

impl Wears for Rule {
    type Spent = Leases;

    fn wear(&self, mut leases: Leases, _at: i64, now: i64) -> Option<Leases> {
        let over = leases.held.partition_point(|lease| lease.expires_at <= now);
        leases.held.drain(..over);
        // While there is a row, for whatever reason, its tokens go on.
        Some(leases)
    }

    fn spend(&self, leases: Option<Leases>, now: i64, slots: i64) -> Option<Leases> {
        let mut leases = leases.unwrap_or(Leases { last_token: 0, held: Vec::new() });
        leases.last_token = leases.last_token.saturating_add(1).max(now.saturating_mul(TOKENS_PER_MS));
        let (token, expires_at) = (leases.last_token, now.saturating_add(self.ttl_ms));
        leases.hold(Lease { token, slots, expires_at });
        Some(leases)
    }

    /// Slots are given back by the lease that holds them, and by nothing else.
    fn give(&self, leases: Leases, _at: i64, _slots: i64) -> Option<Leases> {
        Some(leases)
    }

    fn used(&self, leases: &Leases, _at: i64) -> i64 {
        leases.slots()
    }

    fn clears_at(&self, leases: &Leases, at: i64, allowance: i64) -> i64 {
        let mut left = leases.total();
        let mut clear = at;
        for lease in &leases.held {
            if left <= i128::from(allowance) {
                break;
            }
            left -= i128::from(lease.slots);
            clear = lease.expires_at;
        }
        clear
    }

    fn over_at(&self, leases: &Leases, _at: i64) -> i64 {
        let last = leases.held.last().map_or(i64::MIN, |lease| lease.expires_at);
        last.max(leases.outlived_at())
    }
}
