//! A kind of limit: how spent tokens wear off.

use std::fmt;

/// How the spent tokens of a limit wear off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `rate` tokens per window of `period`.
    FixedWindow,
    /// `capacity` at once, refilled continuously.
    TokenBucket,
    /// Never more than `rate` in any span of `period`, exactly.
    SlidingWindow,
    /// Two windows of `period`, the previous one weighted by how much of it still overlaps.
    SlidingCounter,
    /// `rate` per civil hour, day, week, month or year in a named time zone.
    CalendarQuota,
    /// At most `max` leases at once, each free again when it is not renewed for `ttl`.
    Concurrency,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] = [
        Kind::FixedWindow,
        Kind::TokenBucket,
        Kind::SlidingWindow,
        Kind::SlidingCounter,
        Kind::CalendarQuota,
        Kind::Concurrency,
    ];

    /// The name scripts declare it by.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::FixedWindow => "fixed_window",
            Kind::TokenBucket => "token_bucket",
            Kind::SlidingWindow => "sliding_window",
            Kind::SlidingCounter => "sliding_counter",
            Kind::CalendarQuota => "calendar_quota",
            Kind::Concurrency => "concurrency",
        }
    }

    /// What this kind calls its tokens a period, and its period.
    pub(super) const fn fields(self) -> (&'static str, &'static str) {
        match self {
            Kind::Concurrency => ("max", "ttl"),
            Kind::CalendarQuota => ("rate", "unit"),
            _ => ("rate", "period"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
