//! A rule: how the tokens of one bucket wear off, whatever the kind.

use super::definition::Limit;
use super::key::Key;
use super::settings::Kind;
use super::{fixed_window, token_bucket};

/// What was spent, as each kind counts it. Present while something is spent or a window is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    FixedWindow(fixed_window::Window),
    TokenBucket(token_bucket::Drain),
}

impl Spent {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Spent::FixedWindow(_) => Kind::FixedWindow,
            Spent::TokenBucket(_) => Kind::TokenBucket,
        }
    }

    /// The same spending with its instants moved by `ms`.
    pub(super) fn moved(self, ms: i128) -> Spent {
        match self {
            Spent::FixedWindow(window) => {
                let opened_at = super::settings::clamp_i64(i128::from(window.opened_at).saturating_add(ms));
                Spent::FixedWindow(fixed_window::Window { opened_at, ..window })
            }
            Spent::TokenBucket(drain) => Spent::TokenBucket(drain),
        }
    }
}

/// How spent tokens wear off, for one bucket. Spending of another kind counts as none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    FixedWindow(fixed_window::Rule),
    TokenBucket(token_bucket::Rule),
}

impl Rule {
    pub(super) fn of(limit: &Limit, key: &Key) -> Rule {
        let settings = limit.settings();
        match settings.kind {
            Kind::FixedWindow => {
                let hash = || fixed_window::stable_hash(limit.name(), key.encoded());
                Rule::FixedWindow(fixed_window::Rule::new(settings, hash))
            }
            Kind::TokenBucket => Rule::TokenBucket(token_bucket::Rule::new(settings)),
        }
    }

    /// What is left at `now` of what was left at `at`.
    pub(super) fn wear(&self, spent: Spent, at: i64, now: i64) -> Option<Spent> {
        match (self, spent) {
            (Rule::FixedWindow(rule), Spent::FixedWindow(window)) => rule.wear(window, at, now).map(Spent::FixedWindow),
            (Rule::TokenBucket(rule), Spent::TokenBucket(drain)) => rule.wear(drain, at, now).map(Spent::TokenBucket),
            _ => None,
        }
    }

    /// Spends `tokens` at `now`, on top of what is left at `now`.
    pub(super) fn spend(&self, spent: Option<Spent>, now: i64, tokens: i64) -> Option<Spent> {
        match self {
            Rule::FixedWindow(rule) => {
                let window = match spent {
                    Some(Spent::FixedWindow(window)) => Some(window),
                    _ => None,
                };
                Some(Spent::FixedWindow(rule.spend(window, now, tokens)))
            }
            Rule::TokenBucket(rule) => {
                let drain = match spent {
                    Some(Spent::TokenBucket(drain)) => Some(drain),
                    _ => None,
                };
                rule.spend(drain, tokens).map(Spent::TokenBucket)
            }
        }
    }

    /// Gives back `tokens`, never beyond full.
    pub(super) fn give(&self, spent: Spent, tokens: i64) -> Option<Spent> {
        match (self, spent) {
            (Rule::FixedWindow(rule), Spent::FixedWindow(window)) => rule.give(window, tokens).map(Spent::FixedWindow),
            (Rule::TokenBucket(rule), Spent::TokenBucket(drain)) => rule.give(drain, tokens).map(Spent::TokenBucket),
            _ => None,
        }
    }

    /// Tokens spent, rounded up.
    pub(super) fn used(&self, spent: &Spent) -> i64 {
        match (self, spent) {
            (Rule::FixedWindow(_), Spent::FixedWindow(window)) => window.spent,
            (Rule::TokenBucket(rule), Spent::TokenBucket(drain)) => rule.used(drain),
            _ => 0,
        }
    }

    /// When at most `allowance` tokens are left of what is spent at `at`; not after `at` when they already are.
    pub(super) fn clears_at(&self, spent: &Spent, at: i64, allowance: i64) -> i64 {
        match (self, spent) {
            (Rule::FixedWindow(rule), Spent::FixedWindow(window)) => rule.clears_at(window, allowance),
            (Rule::TokenBucket(rule), Spent::TokenBucket(drain)) => rule.clears_at(drain, at, allowance),
            _ => at,
        }
    }

    /// When nothing is left to remember.
    pub(super) fn over_at(&self, spent: &Spent, at: i64) -> i64 {
        match (self, spent) {
            (Rule::FixedWindow(rule), Spent::FixedWindow(window)) => rule.over_at(window),
            _ => self.clears_at(spent, at, 0),
        }
    }

    /// Spending recorded under other settings, as these count it.
    pub(super) fn adapt(&self, spent: Spent, old_capacity: i64, capacity: i64) -> Option<Spent> {
        match (self, spent) {
            (Rule::FixedWindow(_), Spent::FixedWindow(window)) => {
                Some(Spent::FixedWindow(fixed_window::adapt(window, old_capacity, capacity)))
            }
            (Rule::TokenBucket(rule), Spent::TokenBucket(drain)) => {
                rule.adapt(drain, old_capacity, capacity).map(Spent::TokenBucket)
            }
            _ => None,
        }
    }
}
