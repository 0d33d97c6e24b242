//! A slow exact model of a bucket, to compare with: fractions of tokens, windows walked one by one, waits found by
//! trying instants. It shares no arithmetic with the limits; what it has in common with them is `limits.md`.

use jiff::ToSpan;
use jiff::civil::Weekday;

use crate::limit::{CalendarUnit, Kind, Limit, Start};

/// A fraction of tokens, `n / d` with `d` from 1 up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio(i128, i128);

impl Ratio {
    fn whole(n: i64) -> Ratio {
        Ratio(n.into(), 1)
    }

    fn plus(self, n: i128, d: i128) -> Ratio {
        let (mut a, mut b) = (self.0 * d + n * self.1, self.1 * d);
        let (num, den) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        if num <= 0 { Ratio(0, 1) } else { Ratio(num / a, den / a) }
    }

    fn is_zero(self) -> bool {
        self.0 == 0
    }

    fn ceil(self) -> i64 {
        i64::try_from((self.0 + self.1 - 1) / self.1).unwrap()
    }
}

/// What an operator has decided, but for other settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ruled {
    Allow,
    /// Until this instant.
    Ban(i64),
}

/// What is remembered of one bucket.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) limit: Limit,
    at: i64,
    spent: Ratio,
    /// Takes by their instant, or leases by their end: instant, tokens, lease.
    entries: Vec<(i64, i64, i64)>,
    last_lease: i64,
    window: Option<i64>,
    last: Option<i64>,
    block: Option<i64>,
    gone: i64,
    /// What holds just now.
    pub(super) ruling: Option<Ruled>,
    /// Until when something may hold.
    pub(super) ruled_until: Option<i64>,
    /// Whether the clock was put back so far that this has moved to it.
    pub(super) reanchored: bool,
}

impl Model {
    pub(super) fn new(limit: Limit) -> Model {
        Model {
            limit,
            at: 0,
            spent: Ratio(0, 1),
            entries: Vec::new(),
            last_lease: 0,
            window: None,
            last: None,
            block: None,
            gone: i64::MIN,
            ruling: None,
            ruled_until: None,
            reanchored: false,
        }
    }

    /// Whether an operator's ruling would be looked for.
    pub(super) fn is_ruled(&self, now: i64) -> bool {
        self.gone > now && self.ruled_until.is_some_and(|until| until > now)
    }

    /// The bucket at `now`, as `limit` sees it.
    pub(super) fn seen(&self, limit: &Limit, now: i64) -> Model {
        let same_kind = self.limit.kind() == limit.kind();
        let ruled_until = self.ruled_until.filter(|until| self.gone > now && *until > now);
        if self.gone <= now || !same_kind {
            return Model { at: now, gone: i64::MIN, ruling: self.ruling, ruled_until, ..Model::new(limit.clone()) };
        }
        let mut seen = Model { limit: limit.clone(), reanchored: false, ruled_until, ..self.clone() };
        if self.at > now && self.at - now > full_refill(limit) {
            let by = now - self.at;
            seen.at += by;
            seen.gone += by;
            seen.reanchored = true;
            seen.entries.iter_mut().for_each(|entry| entry.0 += by);
            for instant in [&mut seen.window, &mut seen.last, &mut seen.block].into_iter().flatten() {
                *instant += by;
            }
        }
        let period = limit.period_ms();
        if limit.kind() == Kind::SlidingCounter {
            let moved = seen.reanchored && (seen.at - self.at) % period != 0;
            if moved || period != self.limit.period_ms() {
                seen.entries = vec![(seen.at, self.left().ceil(), 0)];
                seen.entries.retain(|entry| entry.1 > 0);
            }
        }
        if limit.kind() == Kind::TokenBucket && self.limit.period_ms() != period {
            // Counted in the new period's units, rounded up.
            let units = Ratio(seen.spent.0 * i128::from(period), seen.spent.1).ceil();
            seen.spent = Ratio(0, 1).plus(units.into(), period.into());
        }
        let advance = seen.spent.plus((-self.limit.max_tokens()).into(), 1);
        let most = advance.plus(limit.max_tokens().into(), 1);
        if seen.spent.0 * most.1 > most.0 * seen.spent.1 {
            seen.spent = most;
        }
        let target = seen.at.max(now);
        match limit.kind() {
            Kind::TokenBucket => {
                seen.spent = seen.spent.plus(-i128::from(limit.rate()) * i128::from(target - seen.at), period.into());
                seen.at = target;
            }
            Kind::FixedWindow => seen.walk(target),
            Kind::CalendarQuota => {
                while !seen.spent.is_zero() && next_edge(limit, seen.at) <= target {
                    seen.at = next_edge(limit, seen.at);
                    seen.spent = seen.spent.plus(-i128::from(limit.rate()), 1);
                }
                seen.at = target;
            }
            _ => {
                seen.at = target;
                seen.entries.retain(|entry| match limit.kind() {
                    Kind::SlidingWindow => entry.0 + period > target,
                    Kind::SlidingCounter => entry.0.div_euclid(period) + 1 >= target.div_euclid(period),
                    _ => entry.0 > target,
                });
            }
        }
        seen
    }

    /// Tokens spent and left.
    fn left(&self) -> Ratio {
        let period = self.limit.period_ms();
        let all = |entries: &mut dyn Iterator<Item = &(i64, i64, i64)>| entries.map(|entry| i128::from(entry.1)).sum();
        match self.limit.kind() {
            Kind::SlidingWindow | Kind::Concurrency => Ratio(all(&mut self.entries.iter()), 1),
            Kind::SlidingCounter => {
                let window = self.at.div_euclid(period);
                let of_window = |entry: &&(i64, i64, i64), n: i64| entry.0.div_euclid(period) == n;
                let current: i128 = all(&mut self.entries.iter().filter(|entry| of_window(entry, window)));
                let previous: i128 = all(&mut self.entries.iter().filter(|entry| of_window(entry, window - 1)));
                let overlap = period - self.at.rem_euclid(period);
                let faded = Ratio(0, 1).plus(previous * i128::from(overlap), period.into()).ceil();
                Ratio(current + i128::from(faded), 1)
            }
            _ => self.spent,
        }
    }

    /// Walks to `target` from window to window.
    fn walk(&mut self, target: i64) {
        let period = self.limit.period_ms();
        while let Some(opened) = self.window_of(self.at) {
            if self.spent.0 == 0 && self.origin().is_some() {
                self.window = None;
                break;
            }
            if opened + period > target {
                self.window = Some(opened);
                break;
            }
            self.at = opened + period;
            self.spent = self.spent.plus(-i128::from(self.limit.rate()), 1);
            self.window = (self.spent.0 > 0 || self.origin().is_some()).then_some(self.at);
        }
        self.at = target;
    }

    fn origin(&self) -> Option<i64> {
        match self.limit.settings().start {
            Start::Epoch => Some(0),
            Start::At(instant) => Some(instant.as_millis()),
            _ => None,
        }
    }

    fn window_of(&self, instant: i64) -> Option<i64> {
        let period = self.limit.period_ms();
        let origin = self.origin().or(self.window)?;
        Some(origin + (instant - origin).div_euclid(period) * period)
    }

    fn cool(&self) -> bool {
        let interval = self.limit.settings().min_interval_ms;
        interval == 0 || self.last.is_none_or(|last| last + interval <= self.at)
    }

    fn free(&self) -> bool {
        self.block.is_none_or(|until| until <= self.at)
    }

    /// Whether `cost` fits now, `ahead` tokens of the future counted in.
    fn fits(&self, cost: i64, ahead: i64) -> bool {
        let room = i128::from(self.limit.max_tokens()) + i128::from(ahead) - i128::from(cost);
        let left = self.left();
        room >= 0 && left.0 <= room * left.1 && self.cool() && self.free()
    }

    /// The least wait after which `done` is true of the bucket when nobody touches it.
    fn wait(&self, now: i64, done: impl Fn(&Model) -> bool) -> i64 {
        let after = |ms: i64| done(&self.seen(&self.limit, now + ms));
        let (mut low, mut high) = (-1, 0);
        while !after(high) {
            (low, high) = (high, high * 2 + 1);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if after(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    /// `(allowed, retry_after)` for a bucket seen at `now`.
    pub(super) fn verdict(&self, now: i64, cost: i64, ahead: i64) -> (bool, i64) {
        let free = Model { ruling: None, ..self.clone() };
        match self.ruling {
            None => self.verdict_of_limit(now, cost, ahead),
            Some(Ruled::Allow) => (true, 0),
            Some(Ruled::Ban(end)) if self.limit.is_shadow() => (false, end - now),
            Some(Ruled::Ban(end)) => {
                let fits = i128::from(cost) <= i128::from(self.limit.max_tokens()) + i128::from(ahead);
                let holds = fits && end - now > free.wait(now, |bucket| bucket.fits(cost, ahead));
                if holds { (false, end - now) } else { self.verdict_of_limit(now, cost, ahead) }
            }
        }
    }

    fn verdict_of_limit(&self, now: i64, cost: i64, ahead: i64) -> (bool, i64) {
        if i128::from(cost) > i128::from(self.limit.max_tokens()) + i128::from(ahead) {
            return (false, 0);
        }
        // Written down as seen, so that a clock put back does not move it again while waiting.
        let wait = self.wait(now, |bucket| bucket.fits(cost, ahead));
        let block = self.limit.settings().block_for_ms;
        if wait > 0 && block > 0 && self.free() {
            // This refusal blocks, and what is written then lives on.
            let written = Model { gone: i64::MAX, ..self.clone() };
            return (false, written.wait(now, |bucket| bucket.fits(cost, ahead)).max(self.at - now + block));
        }
        (wait == 0, wait)
    }

    /// Whether a refusal of `cost` at `now` blocks.
    pub(super) fn blocks(&self, now: i64, cost: i64, ahead: i64) -> bool {
        if self.ruling.is_some() && self.verdict(now, cost, ahead) != self.verdict_of_limit(now, cost, ahead) {
            return false;
        }
        let ever = i128::from(cost) <= i128::from(self.limit.max_tokens()) + i128::from(ahead);
        ever && self.free() && !self.fits(cost, ahead) && self.limit.settings().block_for_ms > 0
    }

    /// Blocks, as a refusal does.
    pub(super) fn block_after_refusal(&mut self, now: i64) {
        self.block(Some(self.limit.settings().block_for_ms));
        self.written(now);
    }

    /// Spends what was allowed; returns what is stored then.
    pub(super) fn accept(&mut self, cost: i64, now: i64) -> Model {
        if self.ruling == Some(Ruled::Allow) {
            return self.kept(now);
        }
        self.spend(cost, true);
        self.written(now);
        self.clone()
    }

    pub(super) fn spend(&mut self, cost: i64, accepted: bool) {
        self.window = self.window_of(self.at).or(Some(self.at)).filter(|_| self.limit.kind() == Kind::FixedWindow);
        match self.limit.kind() {
            Kind::SlidingWindow | Kind::SlidingCounter => {
                self.entries.push((self.at, cost, 0));
                self.join();
            }
            Kind::Concurrency if !accepted => {}
            Kind::Concurrency => {
                self.last_lease = (self.last_lease + 1).max(self.at * 1_024);
                self.entries.push((self.at + self.limit.period_ms(), cost, self.last_lease));
            }
            _ => self.spent = self.spent.plus(cost.into(), 1),
        }
        // A cooldown counts from takes accepted while it was declared.
        if accepted && self.limit.settings().min_interval_ms > 0 {
            self.last = Some(self.at);
        }
    }

    /// Charges make no more entries than takes do: the oldest joins the next.
    fn join(&mut self) {
        let rate = usize::try_from(self.limit.rate()).unwrap();
        if self.limit.kind() == Kind::SlidingWindow {
            let mut joined: Vec<(i64, i64, i64)> = Vec::new();
            for entry in &self.entries {
                match joined.last_mut() {
                    Some(last) if last.0 == entry.0 => last.1 += entry.1,
                    _ => joined.push(*entry),
                }
            }
            while joined.len() > rate {
                let oldest = joined.remove(0);
                joined[0].1 += oldest.1;
            }
            self.entries = joined;
        }
    }

    /// Renews a lease or ends it; whether it was held.
    pub(super) fn on_lease(&mut self, lease: i64, renew: bool) -> bool {
        let held = self.entries.iter().any(|entry| entry.2 == lease);
        let until = self.at + self.limit.period_ms();
        self.entries.retain(|entry| renew || entry.2 != lease);
        self.entries.iter_mut().filter(|entry| entry.2 == lease).for_each(|entry| entry.0 = until);
        held
    }

    /// The lease given out last.
    pub(super) fn last_lease(&self) -> Option<i64> {
        (self.limit.kind() == Kind::Concurrency).then_some(self.last_lease)
    }

    pub(super) fn give(&mut self, tokens: i64) {
        if self.limit.kind() == Kind::Concurrency {
            return;
        }
        // What was spent this very millisecond first, then the oldest.
        for _ in 0..tokens {
            let at = self.at;
            let fresh = self.entries.iter().position(|entry| entry.0 >= at);
            if let Some(entry) = self.entries.get_mut(fresh.unwrap_or(0)) {
                entry.1 -= 1;
            }
            self.entries.retain(|entry| entry.1 > 0);
        }
        self.spent = self.spent.plus((-tokens).into(), 1);
        if self.spent.0 == 0 && self.origin().is_some() {
            self.window = None;
        }
    }

    pub(super) fn block(&mut self, until: Option<i64>) {
        self.block = until.map(|span| self.at + span);
    }

    /// After a write: when is there nothing left to remember?
    pub(super) fn written(&mut self, now: i64) {
        self.written_until(now, i64::MAX);
    }

    /// The same where the row is gone at `last`, whatever it remembers, but for a ruling.
    fn written_until(&mut self, now: i64, last: i64) {
        self.last = self.last.filter(|_| !self.cool());
        self.block = self.block.filter(|_| !self.free());
        self.gone = i64::MAX;
        let open = |bucket: &Model| bucket.limit.kind() == Kind::FixedWindow && bucket.origin().is_none();
        let over = |bucket: &Model| {
            let closed = !open(bucket) || bucket.window.is_none();
            let (leased, last) = (bucket.limit.kind() == Kind::Concurrency, bucket.last_lease);
            let outlived = !leased || last == 0 || last / 1_024 < bucket.at;
            bucket.left().is_zero() && closed && outlived && bucket.cool() && bucket.free()
        };
        self.gone = if over(self) { i64::MIN } else { last.min(now + self.wait(now, over)) };
        self.gone = self.gone.max(self.ruled_until.unwrap_or(i64::MIN));
    }

    /// What is stored by a write that changes nothing of what is spent: the row goes when it would have gone, or earlier,
    /// but for a ruling.
    pub(super) fn kept(&self, now: i64) -> Model {
        let mut stored = self.clone();
        stored.keep(now);
        stored
    }

    fn keep(&mut self, now: i64) {
        self.written_until(now, if self.gone == i64::MIN { i64::MAX } else { self.gone });
    }

    /// The bucket after it was reset; the leases given out are not forgotten as long as they could be told apart.
    pub(super) fn reset(&self, limit: &Limit, now: i64) -> Model {
        let mut seen = self.seen(limit, now);
        if self.gone == i64::MIN {
            return Model::new(limit.clone());
        }
        let last_lease = seen.last_lease;
        seen = Model { last_lease, at: seen.at, ruled_until: seen.ruled_until, ..Model::new(limit.clone()) };
        seen.written(now);
        seen
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left().is_zero() && self.window.is_none()
    }

    /// Forgets what has expired.
    pub(super) fn sweep(&mut self, now: i64) {
        if self.gone <= now {
            *self = Model::new(self.limit.clone());
        }
    }

    pub(super) fn used(&self) -> i64 {
        self.left().ceil()
    }

    pub(super) fn remaining(&self) -> i64 {
        (self.limit.max_tokens() - self.used()).max(0)
    }

    pub(super) fn delay(&self, now: i64) -> i64 {
        if self.ruling == Some(Ruled::Allow) {
            return 0;
        }
        let most = self.limit.max_tokens();
        self.wait(now, |bucket| bucket.left().0 <= Ratio::whole(most).0 * bucket.left().1)
    }

    pub(super) fn reset_at(&self, now: i64) -> i64 {
        now + self.wait(now, |bucket| bucket.left().is_zero())
    }
}

/// One full-refill time by counting: windows, or milliseconds of trickle.
fn full_refill(limit: &Limit) -> i64 {
    let (rate, period, capacity) = (limit.rate(), limit.period_ms(), limit.max_tokens());
    match limit.kind() {
        Kind::FixedWindow => (1..).find(|windows| windows * rate >= capacity).unwrap_or(0) * period,
        Kind::CalendarQuota => (1..).find(|periods| periods * rate >= capacity).unwrap_or(0) * period + 3_600_000,
        Kind::SlidingWindow | Kind::Concurrency => period,
        Kind::SlidingCounter => 2 * period,
        _ => (capacity * period + rate - 1) / rate,
    }
}

/// The first edge of the calendar after `instant`, by civil arithmetic.
fn next_edge(limit: &Limit, instant: i64) -> i64 {
    let calendar = limit.settings().calendar.as_ref().unwrap();
    let zoned = jiff::Timestamp::from_millisecond(instant).unwrap().in_tz(calendar.zone()).unwrap();
    let date = zoned.date();
    let next = match calendar.unit() {
        CalendarUnit::Hour => return (instant.div_euclid(3_600_000) + 1) * 3_600_000,
        CalendarUnit::Day => date.tomorrow().unwrap(),
        CalendarUnit::Week => date.nth_weekday(1, Weekday::Monday).unwrap(),
        CalendarUnit::Month => date.first_of_month().checked_add(1.month()).unwrap(),
        CalendarUnit::Year => date.first_of_year().checked_add(1.year()).unwrap(),
    };
    next.in_tz(calendar.zone()).unwrap().timestamp().as_millisecond()
}
