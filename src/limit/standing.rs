//! A bucket as it stands at one instant: what is spent by then, and the operations on it.
//!
//! The clock: a bucket's time never runs backwards by small steps. When the clock shows less than the last change,
//! by up to one full-refill time, the bucket's time stands still; by more, the earlier reading was wrong, and
//! everything remembered moves along to the new reading, levels kept.
//!
//! Changed settings: what was spent is kept, counted as the new settings count, from the last change on. The
//! stored instant of expiry still holds, because at it the row is gone whether or not a sweeper ran.

use std::sync::Arc;

use crate::time::Timestamp;

use super::asked::{AllAsked, Asked};
use super::decision::{Decision, Reason, Violation};
use super::definition::Limit;
use super::key::Key;
use super::kind::Kind;
use super::number::clamp_i64;
use super::rule::{Rule, Spent};
use super::state::State;

/// The lease of a key that an operator has allowed everything: held while that lasts, and stale after it.
const UNCOUNTED: i64 = 0;

/// How far an operation may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only what is there.
    Take,
    /// What will be there too, up to `max_reserved` tokens ahead.
    Reserve,
}

/// Whether a cost fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fits,
    Refused {
        reason: Reason,
        /// Milliseconds until it fits; 0 when it never does.
        wait: i64,
    },
}

/// What becomes of the stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// There is something to remember.
    Put(State),
    /// There is nothing to remember.
    Forget,
}

/// What an operator has decided about one key, instead of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Everything is allowed, and nothing counts.
    Allow,
    /// Everything is refused until this instant, in ms.
    BlockUntil(i64),
}

/// One bucket at one instant.
#[derive(Clone, Debug)]
pub(crate) struct Standing<'a> {
    limit: &'a Limit,
    rule: Rule<'a>,
    /// What the clock shows.
    now: i64,
    /// The bucket's own time: `now`, or the last change where that is later.
    at: i64,
    spent: Option<Spent>,
    last_take: Option<i64>,
    blocked_until: Option<i64>,
    /// When the stored row is gone, whatever these settings say; nothing once it is to be written anew.
    gone_at: Option<i64>,
    reanchored: bool,
    ruling: Option<Ruling>,
    ruled_until: Option<i64>,
}

impl<'a> Standing<'a> {
    /// The bucket of `limit` and `key` at `now`, from what is stored.
    pub(crate) fn new(limit: &'a Limit, key: &Key, state: Option<State>, now: Timestamp) -> Standing<'a> {
        let now = now.as_millis();
        let settings = limit.settings();
        let rule = Rule::of(limit, key);
        let mut standing = Standing {
            limit,
            rule,
            now,
            at: now,
            spent: None,
            last_take: None,
            blocked_until: None,
            gone_at: None,
            reanchored: false,
            ruling: None,
            // What an operator decided holds whatever becomes of the bucket, and by the calendar.
            ruled_until: state.as_ref().and_then(|state| state.ruled_until).filter(|until| *until > now),
        };
        // An expired state and an absent one are the same thing; another kind starts afresh.
        let Some(state) = state.filter(|state| state.expires_at > now && state.kind == settings.kind) else {
            return standing;
        };
        let back = i128::from(state.at) - i128::from(now);
        let reanchored = back > 0 && back > i128::from(settings.full_refill_ms());
        let by = if reanchored { -back } else { 0 };
        let moved = |instant: i64| clamp_i64(i128::from(instant).saturating_add(by));
        let stored_at = moved(state.at);
        let at = stored_at.max(now);
        standing.spent = state
            .spent
            .map(|spent| spent.moved(by))
            .and_then(|spent| rule.adapt(spent, stored_at, state.capacity, settings.capacity))
            .and_then(|spent| rule.wear(spent, stored_at, at));
        standing.at = at;
        standing.last_take = state.last_take.map(moved);
        standing.blocked_until = state.blocked_until.map(moved);
        standing.gone_at = Some(moved(state.expires_at));
        standing.reanchored = reanchored;
        standing
    }

    /// The same bucket under what an operator has decided.
    pub(crate) fn ruled(mut self, ruling: Option<Ruling>) -> Standing<'a> {
        self.ruling = ruling;
        self
    }

    /// Remembers until when a ruling is stored.
    pub(crate) fn rule_until(&mut self, until: Option<i64>) {
        self.ruled_until = until;
    }

    /// Forgets what was spent, cooldown and block. The tokens of leases go on where they were.
    pub(crate) fn reset(&mut self) {
        self.spent = match self.spent.take() {
            Some(Spent::Concurrency(mut leases)) => {
                leases.held.clear();
                Some(Spent::Concurrency(leases))
            }
            _ => None,
        };
        (self.last_take, self.blocked_until, self.gone_at) = (None, None, None);
    }

    /// Whether the clock was put back so far that what is stored must move to it, even when a take is refused:
    /// else a refusal, which writes nothing, would find the same future again for ever.
    pub(crate) fn is_reanchored(&self) -> bool {
        self.reanchored
    }

    /// Whether `tokens` fit. (More than `i64` happens when one bucket is named several times.)
    pub(crate) fn verdict(&self, tokens: i128, mode: Mode) -> Verdict {
        let settings = self.limit.settings();
        if self.ruling == Some(Ruling::Allow) {
            return Verdict::Fits;
        }
        // A ban is all that a shadow limit refuses for, and all that is to be waited for there.
        if let Some(end) = self.banned_until().filter(|_| settings.shadow) {
            return Verdict::Refused { reason: Reason::Blocked, wait: end.saturating_sub(self.now) };
        }
        let ceiling = i128::from(settings.capacity)
            + match mode {
                Mode::Take => 0,
                Mode::Reserve => i128::from(settings.max_reserved),
            };
        if tokens > ceiling {
            return Verdict::Refused { reason: Reason::Never, wait: 0 };
        }
        let clear = self.clears_at(clamp_i64(ceiling - tokens));
        let cool = self.cool_at().unwrap_or(self.at);
        let free = self.blocked_until.unwrap_or(self.at);
        let reason = if free > self.at {
            Reason::Blocked
        } else if cool > clear {
            Reason::Cooldown
        } else {
            Reason::Limited
        };
        let clear_of_all = clear.max(cool).max(free);
        let mut until = self.bounded(clear_of_all);
        // A ban is over by the calendar, whatever the bucket's own time is.
        let fits_at = if until <= self.at { self.now } else { until };
        if let Some(end) = self.banned_until().filter(|end| *end > fits_at) {
            return Verdict::Refused { reason: Reason::Blocked, wait: end.saturating_sub(self.now) };
        }
        if until <= self.at {
            return Verdict::Fits;
        }
        if reason != Reason::Blocked && settings.block_for_ms > 0 {
            // This refusal blocks the key, and so has the bucket written anew.
            until = clear_of_all.max(self.at.saturating_add(settings.block_for_ms));
        }
        Verdict::Refused { reason, wait: until.saturating_sub(self.now) }
    }

    /// Until when an operator has everything refused.
    fn banned_until(&self) -> Option<i64> {
        match self.ruling {
            Some(Ruling::BlockUntil(end)) if end > self.now => Some(end),
            _ => None,
        }
    }

    /// Whether the limit only says what it would refuse. A ban is no try: somebody has decided it, and it holds.
    pub(crate) fn is_shadow(&self) -> bool {
        self.limit.is_shadow() && self.banned_until().is_none()
    }

    /// Whether a refusal of this verdict is one that blocks the key.
    pub(crate) fn blocks_after(&self, verdict: Verdict) -> bool {
        let starts = matches!(verdict, Verdict::Refused { reason: Reason::Limited | Reason::Cooldown, .. });
        starts && self.limit.settings().block_for_ms > 0
    }

    /// Begins the block that follows a refusal.
    pub(crate) fn block_after_refusal(&mut self) {
        self.block(self.limit.settings().block_for_ms);
    }

    /// Spends `tokens`, asked or not. An accepted take starts the cooldown, a charge does not; and a charge holds no
    /// lease, since nobody would know of it. What an operator has allowed is not counted.
    pub(crate) fn spend(&mut self, tokens: i64, accepted: bool) {
        let leases = self.limit.kind() == Kind::Concurrency;
        if accepted && self.ruling == Some(Ruling::Allow) || leases && !accepted {
            return;
        }
        self.spent = self.rule.spend(self.spent.take(), self.at, tokens);
        if accepted && self.limit.settings().min_interval_ms > 0 {
            self.last_take = Some(self.at);
        }
        self.gone_at = None;
    }

    /// Gives back `tokens`, never beyond full.
    pub(crate) fn give(&mut self, tokens: i64) {
        if self.limit.kind() == Kind::Concurrency {
            // Slots are given back by the lease that holds them.
            return;
        }
        if let Some(spent) = self.spent.take() {
            self.spent = self.rule.give(spent, self.at, tokens);
            self.gone_at = None;
        }
    }

    /// The token of the lease that was just taken; none where leases are not what is spent, or nothing was.
    pub(crate) fn new_lease(&self) -> Option<i64> {
        match &self.spent {
            // Something to renew and release by is due where nothing counts, too.
            _ if self.ruling == Some(Ruling::Allow) => (self.limit.kind() == Kind::Concurrency).then_some(UNCOUNTED),
            Some(Spent::Concurrency(leases)) => Some(leases.last_token),
            _ => None,
        }
    }

    /// Holds a lease for another `ttl`. Whether it was held still; nothing changes when not.
    pub(crate) fn renew(&mut self, token: i64) -> bool {
        if self.is_uncounted(token) {
            return true;
        }
        let held = match (&self.rule, &mut self.spent) {
            (Rule::Concurrency(rule), Some(Spent::Concurrency(leases))) => rule.renew(leases, self.at, token),
            _ => false,
        };
        self.gone_at = self.gone_at.filter(|_| !held);
        held
    }

    fn is_uncounted(&self, token: i64) -> bool {
        token == UNCOUNTED && self.ruling == Some(Ruling::Allow)
    }

    /// Ends a lease. Whether it was held still; nothing changes when not.
    pub(crate) fn release(&mut self, token: i64) -> bool {
        if self.is_uncounted(token) {
            return true;
        }
        let held = match &mut self.spent {
            Some(Spent::Concurrency(leases)) => leases.release(token),
            _ => false,
        };
        self.gone_at = self.gone_at.filter(|_| !held);
        held
    }

    /// Refuses everything for `span_ms` from now; this replaces an earlier block.
    pub(crate) fn block(&mut self, span_ms: i64) {
        self.blocked_until = Some(self.at.saturating_add(span_ms));
        self.gone_at = None;
    }

    /// Ends a block.
    pub(crate) fn unblock(&mut self) {
        self.blocked_until = None;
    }

    /// Until when everything is refused, by a block or an operator's ban; nothing where an operator allows everything.
    pub(crate) fn blocked_until(&self) -> Option<Timestamp> {
        if self.ruling == Some(Ruling::Allow) {
            return None;
        }
        let block = self.blocked_until.map(|until| self.bounded(until)).filter(|until| *until > self.at);
        block.max(self.banned_until()).map(Timestamp::from_millis)
    }

    /// How long what has just been spent is ahead of what is there, in ms.
    pub(crate) fn delay(&self) -> i64 {
        if self.ruling == Some(Ruling::Allow) {
            return 0;
        }
        match self.clears_at(self.limit.settings().capacity) {
            until if until <= self.at => 0,
            until => until.saturating_sub(self.now),
        }
    }

    /// The answer: the numbers are those of the bucket as it stands now.
    pub(crate) fn decision(&self, verdict: Verdict) -> Decision {
        let capacity = self.limit.settings().capacity;
        let used = self.spent.as_ref().map_or(0, |spent| self.rule.used(spent, self.at));
        let full_at = match self.bounded(self.clears_at(0)) {
            until if until <= self.at => self.now,
            until => until,
        };
        let name = self.limit.shared_name();
        let mut would_refuse = Vec::new();
        let (reason, retry_after, violated) = match verdict {
            Verdict::Fits => (Reason::None, 0, Vec::new()),
            Verdict::Refused { .. } if self.is_shadow() => {
                would_refuse.push(Arc::clone(name));
                (Reason::None, 0, Vec::new())
            }
            Verdict::Refused { reason, wait } => (reason, wait, vec![Violation { name: Arc::clone(name), wait }]),
        };
        let remaining = (capacity - used).max(0);
        let asked = if self.is_shadow() || self.ruling == Some(Ruling::Allow) {
            AllAsked::default()
        } else {
            let refused = !violated.is_empty();
            let until = if retry_after > 0 { self.now.saturating_add(retry_after) } else { full_at };
            AllAsked::one(Asked {
                limit: self.limit.clone(),
                remaining,
                refused,
                now: Timestamp::from_millis(self.now),
                until: Timestamp::from_millis(until),
            })
        };
        Decision {
            allowed: violated.is_empty(),
            limit: capacity,
            remaining,
            used,
            retry_after,
            reset_at: Timestamp::from_millis(full_at),
            delay: 0,
            reason,
            violated,
            would_refuse,
            leases: Vec::new(),
            name: Arc::clone(name),
            asked,
        }
    }

    /// The answer about a lease that is not held.
    pub(crate) fn stale(&self) -> Decision {
        let name = Arc::clone(self.limit.shared_name());
        let violated = vec![Violation { name, wait: 0 }];
        Decision { allowed: false, reason: Reason::Stale, violated, ..self.decision(Verdict::Fits) }
    }

    /// What is to be stored of the bucket as it stands now.
    pub(crate) fn change(self) -> Change {
        let settings = self.limit.settings();
        let spent_until = self.spent.as_ref().map(|spent| self.rule.over_at(spent, self.at));
        let cool_at = self.cool_at();
        let over_at = [spent_until, cool_at, self.blocked_until].into_iter().flatten().max();
        let over_at = over_at.map(|over_at| self.bounded(over_at)).filter(|over_at| *over_at > self.at);
        let Some(expires_at) = over_at.max(self.ruled_until) else { return Change::Forget };
        // What lives on for a ruling alone has nothing else to remember, but for the last token of leases.
        let lives = over_at.is_some() || settings.kind == Kind::Concurrency;
        Change::Put(State {
            kind: settings.kind,
            at: self.at,
            capacity: settings.capacity,
            spent: self.spent.filter(|_| lives),
            last_take: self.last_take.filter(|_| cool_at.is_some_and(|cool| cool > self.at)),
            blocked_until: self.blocked_until.filter(|until| *until > self.at),
            ruled_until: self.ruled_until,
            expires_at,
        })
    }

    /// When at most `allowance` tokens are left spent.
    fn clears_at(&self, allowance: i64) -> i64 {
        self.spent.as_ref().map_or(self.at, |spent| self.rule.clears_at(spent, self.at, allowance))
    }

    /// When the cooldown is over.
    fn cool_at(&self) -> Option<i64> {
        let interval = self.limit.settings().min_interval_ms;
        self.last_take.filter(|_| interval > 0).map(|last| last.saturating_add(interval))
    }

    fn bounded(&self, instant: i64) -> i64 {
        self.gone_at.map_or(instant, |gone_at| instant.min(gone_at))
    }
}
