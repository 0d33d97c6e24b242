//! Calendar quota: spent tokens wear off `rate` at a time, where one civil period ends and the next begins.
//!
//! As in a fixed window, `capacity` above `rate` lets what was not used roll over.

use super::calendar::Calendar;
use super::number::{clamp_i64, div_ceil};
use super::settings::Settings;
use super::wears::Wears;

/// What was spent and not yet worn off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    /// Tokens, from 1 up.
    pub(super) spent: i64,
    /// When the period of the last change ends, in ms: kept, so that most takes ask no calendar.
    pub(super) ends_at: i64,
    /// The calendar that says so; 0 when the end is to be found anew.
    pub(super) mark: u32,
}

/// The settings that the quota needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'a> {
    rate: i64,
    calendar: &'a Calendar,
}

impl<'a> Rule<'a> {
    pub(super) fn new(settings: &Settings, calendar: &'a Calendar) -> Rule<'a> {
        Rule { rate: settings.rate, calendar }
    }

    fn quota(&self, spent: i64, now: i64) -> Option<Quota> {
        let ends_at = || self.calendar.edge(self.calendar.index(now).saturating_add(1));
        (spent > 0).then(|| Quota { spent, ends_at: ends_at(), mark: self.calendar.mark() })
    }
}

impl Wears for Rule<'_> {
    type Spent = Quota;

    fn wear(&self, quota: Quota, at: i64, now: i64) -> Option<Quota> {
        if now < quota.ends_at {
            return Some(quota);
        }
        let passed = i128::from(self.calendar.index(now)) - i128::from(self.calendar.index(at));
        let worn = passed.max(0).saturating_mul(self.rate.into());
        self.quota(clamp_i64(i128::from(quota.spent) - worn), now)
    }

    fn spend(&self, quota: Option<Quota>, now: i64, tokens: i64) -> Option<Quota> {
        match quota {
            Some(quota) => Some(Quota { spent: quota.spent.saturating_add(tokens), ..quota }),
            None => self.quota(tokens, now),
        }
    }

    fn give(&self, quota: Quota, _at: i64, tokens: i64) -> Option<Quota> {
        let spent = quota.spent.saturating_sub(tokens);
        (spent > 0).then_some(Quota { spent, ..quota })
    }

    fn used(&self, quota: &Quota, _at: i64) -> i64 {
        quota.spent
    }

    fn clears_at(&self, quota: &Quota, at: i64, allowance: i64) -> i64 {
        let excess = i128::from(quota.spent) - i128::from(allowance);
        match div_ceil(excess.max(0), self.rate.into()) {
            0 => at,
            1 => quota.ends_at,
            periods => self.calendar.edge(clamp_i64(i128::from(self.calendar.index(at)) + periods)),
        }
    }

    fn adapt(&self, quota: Quota, at: i64, old_capacity: i64, capacity: i64) -> Option<Quota> {
        // As in a fixed window: what was spent in advance stays.
        let advance = quota.spent.saturating_sub(old_capacity).max(0);
        let spent = quota.spent.min(capacity.saturating_add(advance));
        if quota.mark == self.calendar.mark() { Some(Quota { spent, ..quota }) } else { self.quota(spent, at) }
    }
}
