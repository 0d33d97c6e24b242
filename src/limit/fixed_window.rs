//! Fixed window: spent tokens wear off `rate` at a time, at the edges between windows of `period`.
//!
//! With `capacity` up to `rate` every edge fills the bucket; with more, what was not used rolls over. A window is
//! half-open, `[opened_at, opened_at + period)`. With `Start::First` the accepted take of a full bucket opens it and
//! it then stays open to its end, even when everything spent in it is given back: a refund must not restart it.

use super::number::{clamp_i64, div_ceil, div_floor};
use super::settings::{Settings, Start};
use super::wears::Wears;

/// What was spent and not yet worn off, and the window of the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Tokens, from 0 up.
    pub(super) spent: i64,
    /// When the window opened, in ms.
    pub(super) opened_at: i64,
}

/// The settings that windows need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    rate: i64,
    period_ms: i64,
    /// An instant at which a window begins, for all windows of the key; none when takes open them.
    origin: Option<i64>,
}

impl Rule {
    /// `hash` gives the stable hash of name and key; only `Start::Random` asks for it.
    pub(super) fn new(settings: &Settings, hash: impl FnOnce() -> u64) -> Rule {
        let origin = match settings.start {
            Start::First => None,
            Start::Epoch => Some(0),
            Start::At(instant) => Some(instant.as_millis()),
            // The period is from 1 up, and a remainder by it fits `i64`.
            Start::Random => Some((hash() % settings.period_ms as u64) as i64),
        };
        Rule { rate: settings.rate, period_ms: settings.period_ms, origin }
    }

    /// The number of the window that `instant` lies in, on the grid through `origin`.
    fn index(&self, origin: i64, instant: i64) -> i128 {
        div_floor(i128::from(instant) - i128::from(origin), self.period_ms)
    }

    fn edge(&self, origin: i64, index: i128) -> i64 {
        clamp_i64(i128::from(origin).saturating_add(index.saturating_mul(i128::from(self.period_ms))))
    }
}

impl Wears for Rule {
    type Spent = Window;

    /// None when nothing is left and no window is open.
    fn wear(&self, window: Window, at: i64, now: i64) -> Option<Window> {
        let origin = self.origin.unwrap_or(window.opened_at);
        let (before, index) = (self.index(origin, at), self.index(origin, now));
        let passed = (index - before).max(0);
        let worn = passed.saturating_mul(i128::from(self.rate));
        let spent = clamp_i64((i128::from(window.spent) - worn).max(0));
        let still_open = self.origin.is_none() && passed == 0;
        (spent > 0 || still_open).then(|| Window { spent, opened_at: self.edge(origin, index) })
    }

    /// Opens a window where none is open.
    fn spend(&self, window: Option<Window>, now: i64, tokens: i64) -> Option<Window> {
        Some(match window {
            Some(window) => Window { spent: window.spent.saturating_add(tokens), ..window },
            None => {
                let opened_at = self.origin.map_or(now, |origin| self.edge(origin, self.index(origin, now)));
                Window { spent: tokens, opened_at }
            }
        })
    }

    fn give(&self, window: Window, _at: i64, tokens: i64) -> Option<Window> {
        let spent = window.spent.saturating_sub(tokens).max(0);
        (spent > 0 || self.origin.is_none()).then_some(Window { spent, ..window })
    }

    fn used(&self, window: &Window, _at: i64) -> i64 {
        window.spent
    }

    /// The window's own opening, which is past, when no more are spent.
    fn clears_at(&self, window: &Window, _at: i64, allowance: i64) -> i64 {
        let excess = i128::from(window.spent) - i128::from(allowance);
        self.edge(window.opened_at, div_ceil(excess.max(0), i128::from(self.rate)))
    }

    /// When nothing is spent, and the window closed.
    fn over_at(&self, window: &Window, _at: i64) -> i64 {
        let edges = div_ceil(i128::from(window.spent), i128::from(self.rate)).max(1);
        self.edge(window.opened_at, edges)
    }

    /// What was spent within a capacity shrinks with it; what was spent in advance stays.
    fn adapt(&self, window: Window, _at: i64, old_capacity: i64, capacity: i64) -> Option<Window> {
        let advance = (window.spent - old_capacity).max(0);
        Some(Window { spent: window.spent.min(capacity.saturating_add(advance)), ..window })
    }
}

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo; public domain; <http://www.isthe.com/chongo/tech/comp/fnv/>) of a limit's
/// name, a zero byte, and a key. It decides where stored windows begin, so it never changes.
pub(super) fn stable_hash(name: &str, key: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes().chain([0]).chain(key.iter().copied()) {
        hash ^= u64::from(byte);
        // The hash is defined modulo 2^64: this product is meant to wrap.
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(stable_hash("", b""), 0xaf63_bd4c_8601_b7df, "FNV-1a of one zero byte");
        assert_eq!(stable_hash("login", b"\x06a\0"), stable_hash("login", b"\x06a\0"));
        assert_ne!(stable_hash("login", b"a"), stable_hash("logina", b""));
    }
}
