//! A rule: how the tokens of one bucket wear off, whatever the kind.

use super::definition::Limit;
use super::key::Key;
use super::kind::Kind;
use super::number::clamp_i64;
use super::wears::Wears;
use super::{calendar_quota, concurrency, fixed_window, sliding_counter, sliding_window, token_bucket};

/// What was spent, as each kind counts it. Present while there is something to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    FixedWindow(fixed_window::Window),
    TokenBucket(token_bucket::Drain),
    SlidingWindow(sliding_window::Trail),
    SlidingCounter(sliding_counter::Pair),
    CalendarQuota(calendar_quota::Quota),
    Concurrency(concurrency::Leases),
}

impl Spent {
    #[cfg(test)]
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Spent::FixedWindow(_) => Kind::FixedWindow,
            Spent::TokenBucket(_) => Kind::TokenBucket,
            Spent::SlidingWindow(_) => Kind::SlidingWindow,
            Spent::SlidingCounter(_) => Kind::SlidingCounter,
            Spent::CalendarQuota(_) => Kind::CalendarQuota,
            Spent::Concurrency(_) => Kind::Concurrency,
        }
    }

    /// The same spending with its instants moved by `ms`.
    pub(super) fn moved(mut self, ms: i128) -> Spent {
        let shift = |instant: &mut i64| *instant = clamp_i64(i128::from(*instant).saturating_add(ms));
        match &mut self {
            _ if ms == 0 => {}
            Spent::FixedWindow(window) => shift(&mut window.opened_at),
            Spent::TokenBucket(_) => {}
            Spent::SlidingWindow(trail) => trail.entries.iter_mut().for_each(|entry| shift(&mut entry.at)),
            Spent::SlidingCounter(pair) => shift(&mut pair.opened_at),
            // Civil periods do not move along: the end is found anew.
            Spent::CalendarQuota(quota) => quota.mark = 0,
            Spent::Concurrency(leases) => leases.held.iter_mut().for_each(|lease| shift(&mut lease.expires_at)),
        }
        self
    }
}

/// How spent tokens wear off, for one bucket. Spending of another kind counts as none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule<'a> {
    FixedWindow(fixed_window::Rule),
    TokenBucket(token_bucket::Rule),
    SlidingWindow(sliding_window::Rule),
    SlidingCounter(sliding_counter::Rule),
    CalendarQuota(calendar_quota::Rule<'a>),
    Concurrency(concurrency::Rule),
}

/// `$do` for the rule and what was spent where both are of one kind, `$else` where they are not.
macro_rules! of_one_kind {
    ($self:expr, $spent:expr, |$rule:ident, $it:ident, $wrap:ident| $do:expr, $else:expr) => {
        match ($self, $spent) {
            (Rule::FixedWindow($rule), Spent::FixedWindow($it)) => {
                let $wrap = Spent::FixedWindow;
                $do
            }
            (Rule::TokenBucket($rule), Spent::TokenBucket($it)) => {
                let $wrap = Spent::TokenBucket;
                $do
            }
            (Rule::SlidingWindow($rule), Spent::SlidingWindow($it)) => {
                let $wrap = Spent::SlidingWindow;
                $do
            }
            (Rule::SlidingCounter($rule), Spent::SlidingCounter($it)) => {
                let $wrap = Spent::SlidingCounter;
                $do
            }
            (Rule::CalendarQuota($rule), Spent::CalendarQuota($it)) => {
                let $wrap = Spent::CalendarQuota;
                $do
            }
            (Rule::Concurrency($rule), Spent::Concurrency($it)) => {
                let $wrap = Spent::Concurrency;
                $do
            }
            _ => $else,
        }
    };
}

impl<'a> Rule<'a> {
    pub(super) fn of(limit: &'a Limit, key: &Key) -> Rule<'a> {
        let settings = limit.settings();
        match (settings.kind, &settings.calendar) {
            (Kind::CalendarQuota, Some(calendar)) => Rule::CalendarQuota(calendar_quota::Rule::new(settings, calendar)),
            // A quota without a calendar cannot be declared.
            (Kind::FixedWindow | Kind::CalendarQuota, _) => {
                let hash = || fixed_window::stable_hash(limit.name(), key.encoded());
                Rule::FixedWindow(fixed_window::Rule::new(settings, hash))
            }
            (Kind::TokenBucket, _) => Rule::TokenBucket(token_bucket::Rule::new(settings)),
            (Kind::SlidingWindow, _) => Rule::SlidingWindow(sliding_window::Rule::new(settings)),
            (Kind::SlidingCounter, _) => Rule::SlidingCounter(sliding_counter::Rule::new(settings)),
            (Kind::Concurrency, _) => Rule::Concurrency(concurrency::Rule::new(settings)),
        }
    }

    /// What is left at `now` of what was left at `at`.
    pub(super) fn wear(&self, spent: Spent, at: i64, now: i64) -> Option<Spent> {
        of_one_kind!(self, spent, |rule, spent, wrap| rule.wear(spent, at, now).map(wrap), None)
    }

    /// Spends `tokens` at `now`, on top of what is left at `now`.
    pub(super) fn spend(&self, spent: Option<Spent>, now: i64, tokens: i64) -> Option<Spent> {
        match spent {
            Some(spent) => {
                of_one_kind!(self, spent, |rule, spent, wrap| rule.spend(Some(spent), now, tokens).map(wrap), None)
            }
            None => match self {
                Rule::FixedWindow(rule) => rule.spend(None, now, tokens).map(Spent::FixedWindow),
                Rule::TokenBucket(rule) => rule.spend(None, now, tokens).map(Spent::TokenBucket),
                Rule::SlidingWindow(rule) => rule.spend(None, now, tokens).map(Spent::SlidingWindow),
                Rule::SlidingCounter(rule) => rule.spend(None, now, tokens).map(Spent::SlidingCounter),
                Rule::CalendarQuota(rule) => rule.spend(None, now, tokens).map(Spent::CalendarQuota),
                Rule::Concurrency(rule) => rule.spend(None, now, tokens).map(Spent::Concurrency),
            },
        }
    }

    /// Gives back `tokens` at `at`, never beyond full.
    pub(super) fn give(&self, spent: Spent, at: i64, tokens: i64) -> Option<Spent> {
        of_one_kind!(self, spent, |rule, spent, wrap| rule.give(spent, at, tokens).map(wrap), None)
    }

    /// Tokens spent, rounded up.
    pub(super) fn used(&self, spent: &Spent, at: i64) -> i64 {
        of_one_kind!(self, spent, |rule, spent, _wrap| rule.used(spent, at), 0)
    }

    /// When at most `allowance` tokens are left of what is spent at `at`; not after `at` when they already are.
    pub(super) fn clears_at(&self, spent: &Spent, at: i64, allowance: i64) -> i64 {
        of_one_kind!(self, spent, |rule, spent, _wrap| rule.clears_at(spent, at, allowance), at)
    }

    /// When nothing is left to remember.
    pub(super) fn over_at(&self, spent: &Spent, at: i64) -> i64 {
        of_one_kind!(self, spent, |rule, spent, _wrap| rule.over_at(spent, at), at)
    }

    /// Spending recorded at `at` under other settings, as these count it.
    pub(super) fn adapt(&self, spent: Spent, at: i64, old_capacity: i64, capacity: i64) -> Option<Spent> {
        of_one_kind!(self, spent, |rule, spent, wrap| rule.adapt(spent, at, old_capacity, capacity).map(wrap), None)
    }
}
