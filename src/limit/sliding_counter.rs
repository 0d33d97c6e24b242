//! Sliding counter: two windows on the grid of the epoch, the previous one weighted by how much of it still overlaps.
//!
//! With `e` ms of the current window gone by, `ceil(previous * (period - e) / period) + current` tokens count as
//! spent. Rounding up never admits too many. The sum only ever falls while nobody spends, so waits are found exactly.
//!
//! A refund gives back what was spent this very millisecond, so that a take given back at once leaves no trace; then of
//! the previous window, which has faded in part, and last of the current one. As in a sliding window, what is left then
//! never counts as fewer than were kept of the work, now or later.

use super::number::{clamp_i64, div_ceil, div_floor};
use super::settings::Settings;
use super::wears::Wears;

/// What was spent in the window of the last change and in the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// When the current window opened, in ms.
    pub(super) opened_at: i64,
    /// The period of the windows; from 1 up.
    pub(super) period_ms: i64,
    /// Tokens, from 0 up.
    pub(super) previous: i64,
    /// Tokens, from 0 up.
    pub(super) current: i64,
    /// How many of the current ones were spent in the millisecond of the last change. It tells what a refund gives back
    /// where there are previous ones too, and is 0 where there are none.
    pub(super) fresh: i64,
}

impl Pair {
    /// Tokens that count as spent at `at`.
    pub(super) fn used_at(&self, at: i64) -> i64 {
        let period = i128::from(self.period_ms);
        let left = (period - (i128::from(at) - i128::from(self.opened_at))).clamp(0, period);
        clamp_i64(div_ceil(i128::from(self.previous) * left, period) + i128::from(self.current))
    }
}

/// The settings that the counter needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    period_ms: i64,
}

impl Rule {
    pub(super) fn new(settings: &Settings) -> Rule {
        Rule { period_ms: settings.period_ms }
    }

    fn opening(&self, instant: i64) -> i64 {
        clamp_i64(div_floor(instant.into(), self.period_ms) * i128::from(self.period_ms))
    }

    fn pair(&self, opened_at: i64, previous: i64, current: i64) -> Option<Pair> {
        let period_ms = self.period_ms;
        (previous > 0 || current > 0).then_some(Pair { opened_at, period_ms, previous, current, fresh: 0 })
    }

    /// How far into a window `tokens` of the one before count as at most `allowance`: from 0 to the whole period.
    fn faded_ms(&self, tokens: i64, allowance: i64) -> i64 {
        if tokens <= allowance {
            return 0;
        }
        let period = i128::from(self.period_ms);
        clamp_i64(period - i128::from(allowance.max(0)) * period / i128::from(tokens))
    }
}

impl Wears for Rule {
    type Spent = Pair;

    fn wear(&self, pair: Pair, at: i64, now: i64) -> Option<Pair> {
        if now == at {
            return Some(pair);
        }
        let opened_at = self.opening(now);
        match i128::from(opened_at) - i128::from(pair.opened_at) {
            passed if passed <= 0 => self.pair(pair.opened_at, pair.previous, pair.current),
            passed if passed <= i128::from(self.period_ms) => self.pair(opened_at, pair.current, 0),
            _ => None,
        }
    }

    fn spend(&self, pair: Option<Pair>, now: i64, tokens: i64) -> Option<Pair> {
        match pair {
            Some(pair) => {
                let fresh = if pair.previous > 0 { pair.fresh.saturating_add(tokens) } else { 0 };
                Some(Pair { current: pair.current.saturating_add(tokens), fresh, ..pair })
            }
            None => self.pair(self.opening(now), 0, tokens),
        }
    }

    fn give(&self, pair: Pair, _at: i64, tokens: i64) -> Option<Pair> {
        let of_fresh = tokens.min(pair.fresh);
        let of_previous = (tokens - of_fresh).min(pair.previous);
        let previous = pair.previous - of_previous;
        let current = pair.current - of_fresh;
        let current = current - (tokens - of_fresh - of_previous).min(current);
        let fresh = if previous > 0 { pair.fresh - of_fresh } else { 0 };
        Some(Pair { fresh, ..self.pair(pair.opened_at, previous, current)? })
    }

    fn used(&self, pair: &Pair, at: i64) -> i64 {
        pair.used_at(at)
    }

    fn clears_at(&self, pair: &Pair, at: i64, allowance: i64) -> i64 {
        let faded = if pair.current <= allowance {
            self.faded_ms(pair.previous, allowance - pair.current)
        } else {
            self.period_ms.saturating_add(self.faded_ms(pair.current, allowance))
        };
        pair.opened_at.saturating_add(faded).max(at)
    }

    /// Windows of another period, or off the grid because the clock was put back: what counts as spent at the last
    /// change is spent in the window of that instant.
    fn adapt(&self, pair: Pair, at: i64, _old_capacity: i64, _capacity: i64) -> Option<Pair> {
        let opened_at = self.opening(at);
        if pair.period_ms == self.period_ms && pair.opened_at == opened_at {
            return Some(pair);
        }
        self.pair(opened_at, 0, pair.used_at(at))
    }
}
