//! Token bucket: spent tokens wear off continuously, `rate` per `period`.
//!
//! Counted in units of `token / period_ms`, of which `rate` wear off each millisecond: every level at every
//! millisecond is a whole number of them, so nothing is ever rounded but the waits, which round up.

use super::number::{clamp_i64, div_ceil};
use super::settings::Settings;
use super::wears::Wears;

/// What was spent and not yet worn off at the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    /// Tokens times `period_ms`; from 1 up, at most `i64::MAX` tokens.
    pub(super) units: i128,
    /// The period the units are of.
    pub(super) period_ms: i64,
}

/// The settings that the drain needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    rate: i64,
    period_ms: i64,
}

impl Rule {
    pub(super) fn new(settings: &Settings) -> Rule {
        Rule { rate: settings.rate, period_ms: settings.period_ms }
    }

    fn units(&self, tokens: i64) -> i128 {
        i128::from(tokens) * i128::from(self.period_ms)
    }

    fn drain(&self, units: i128) -> Option<Drain> {
        let units = units.min(self.units(i64::MAX));
        (units > 0).then_some(Drain { units, period_ms: self.period_ms })
    }
}

impl Wears for Rule {
    type Spent = Drain;

    fn wear(&self, drain: Drain, at: i64, now: i64) -> Option<Drain> {
        let elapsed = (i128::from(now) - i128::from(at)).max(0);
        self.drain(drain.units.saturating_sub(elapsed.saturating_mul(i128::from(self.rate))))
    }

    fn spend(&self, drain: Option<Drain>, _now: i64, tokens: i64) -> Option<Drain> {
        self.drain(drain.map_or(0, |drain| drain.units).saturating_add(self.units(tokens)))
    }

    fn give(&self, drain: Drain, _at: i64, tokens: i64) -> Option<Drain> {
        self.drain(drain.units.saturating_sub(self.units(tokens)))
    }

    /// A started token counts whole.
    fn used(&self, drain: &Drain, _at: i64) -> i64 {
        clamp_i64(div_ceil(drain.units, i128::from(self.period_ms)))
    }

    fn clears_at(&self, drain: &Drain, at: i64, allowance: i64) -> i64 {
        let excess = drain.units.saturating_sub(self.units(allowance)).max(0);
        clamp_i64(i128::from(at).saturating_add(div_ceil(excess, i128::from(self.rate))))
    }

    /// The same spending counted in units of this period, rounded up, and shrunk with the capacity: what was spent
    /// within the old one is at most the new one, what was spent in advance stays.
    fn adapt(&self, drain: Drain, _at: i64, old_capacity: i64, capacity: i64) -> Option<Drain> {
        let units = if drain.period_ms == self.period_ms {
            drain.units
        } else {
            // Whole tokens and the part of one, each small enough to be multiplied.
            let old = i128::from(drain.period_ms);
            let new = i128::from(self.period_ms);
            let whole = drain.units / old;
            let part = div_ceil(drain.units % old * new, old);
            (whole * new).saturating_add(part)
        };
        let advance = units.saturating_sub(self.units(old_capacity)).max(0);
        self.drain(units.min(self.units(capacity).saturating_add(advance)))
    }
}
