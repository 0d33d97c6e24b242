//! Sliding window: exact. Each accepted take is remembered for one period, so no span of that length admits more.
//!
//! A take at `t` counts in `[t, t + period)`. Takes of one millisecond are one entry. Takes that fit make at most
//! `rate` entries. Charges may make more: then the oldest entry joins the next one. What has `rate` tokens behind it
//! refuses every take anyway until those leave too, so this changes no answer but how soon `used` falls.
//!
//! A refund gives back what was spent this very millisecond, so that a take given back at once leaves no trace; and
//! then the oldest tokens. Whatever was spent is remembered longest in this order: of all ways to take `n` tokens out of
//! the trail it leaves the most in the end of it behind any instant, so never fewer than were kept of the work. The
//! newest first would let a refund of old work forget new work early.

use super::number::clamp_i64;
use super::settings::Settings;
use super::wears::Wears;

/// What was spent in the last period, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trail {
    pub(super) entries: Vec<Entry>,
}

/// What was spent in one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When, in ms.
    pub(super) at: i64,
    /// From 1 up.
    pub(super) tokens: i64,
}

impl Trail {
    /// All tokens of it.
    pub(super) fn tokens(&self) -> i64 {
        clamp_i64(self.total())
    }

    fn total(&self) -> i128 {
        self.entries.iter().map(|entry| i128::from(entry.tokens)).sum()
    }

    fn unless_empty(self) -> Option<Trail> {
        (!self.entries.is_empty()).then_some(self)
    }
}

/// The settings that the window needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    rate: i64,
    period_ms: i64,
}

impl Rule {
    pub(super) fn new(settings: &Settings) -> Rule {
        Rule { rate: settings.rate, period_ms: settings.period_ms }
    }

    fn leaves_at(&self, entry: &Entry) -> i64 {
        entry.at.saturating_add(self.period_ms)
    }
}

impl Wears for Rule {
    type Spent = Trail;

    fn wear(&self, mut trail: Trail, _at: i64, now: i64) -> Option<Trail> {
        let left = trail.entries.iter().take_while(|entry| self.leaves_at(entry) <= now).count();
        trail.entries.drain(..left);
        trail.unless_empty()
    }

    fn spend(&self, trail: Option<Trail>, now: i64, tokens: i64) -> Option<Trail> {
        let mut trail = trail.unwrap_or(Trail { entries: Vec::new() });
        match trail.entries.last_mut() {
            // The bucket's time never runs backwards: this is the same millisecond.
            Some(last) if last.at >= now => last.tokens = last.tokens.saturating_add(tokens),
            _ => trail.entries.push(Entry { at: now, tokens }),
        }
        let surplus = trail.entries.len().saturating_sub(usize::try_from(self.rate).unwrap_or(usize::MAX));
        if surplus > 0 {
            let joined: i128 = trail.entries.drain(..surplus).map(|entry| i128::from(entry.tokens)).sum();
            if let Some(oldest) = trail.entries.first_mut() {
                oldest.tokens = clamp_i64(joined + i128::from(oldest.tokens));
            }
        }
        Some(trail)
    }

    fn give(&self, mut trail: Trail, at: i64, tokens: i64) -> Option<Trail> {
        let mut rest = tokens;
        let mut give = |entry: &mut Entry| {
            let given = rest.min(entry.tokens);
            entry.tokens -= given;
            rest -= given;
        };
        trail.entries.last_mut().filter(|last| last.at >= at).into_iter().for_each(&mut give);
        trail.entries.iter_mut().for_each(give);
        trail.entries.retain(|entry| entry.tokens > 0);
        trail.unless_empty()
    }

    fn used(&self, trail: &Trail, _at: i64) -> i64 {
        trail.tokens()
    }

    fn clears_at(&self, trail: &Trail, at: i64, allowance: i64) -> i64 {
        let mut left = trail.total();
        let mut clear = at;
        for entry in &trail.entries {
            if left <= i128::from(allowance) {
                break;
            }
            left -= i128::from(entry.tokens);
            clear = self.leaves_at(entry);
        }
        clear
    }
}
