//! A choice: what can be chained on a limit, and on which kind it makes sense.

use super::kind::Kind;

/// What can be chained on a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Capacity,
    MaxReserved,
    MinInterval,
    Start,
    BlockFor,
    Shadow,
    Durable,
    Shards,
    HashKeys,
}

impl Choice {
    pub(crate) const ALL: [Choice; 9] = [
        Choice::Capacity,
        Choice::MaxReserved,
        Choice::MinInterval,
        Choice::Start,
        Choice::BlockFor,
        Choice::Shadow,
        Choice::Durable,
        Choice::Shards,
        Choice::HashKeys,
    ];

    /// What says where a bucket is, and so cannot be other for one call or one key.
    pub(super) const DECLARED: [Choice; 2] = [Choice::Start, Choice::HashKeys];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Choice::Capacity => "capacity",
            Choice::MaxReserved => "max_reserved",
            Choice::MinInterval => "min_interval",
            Choice::Start => "start",
            Choice::BlockFor => "block_for",
            Choice::Shadow => "shadow",
            Choice::Durable => "durable",
            Choice::Shards => "shards",
            Choice::HashKeys => "hash_keys",
        }
    }

    /// Why this choice makes no sense on `kind`: the one place that says which option goes with which kind.
    pub(super) const fn senseless_on(self, kind: Kind) -> Option<&'static str> {
        match (self, kind) {
            (Choice::MinInterval | Choice::BlockFor | Choice::Shadow | Choice::Durable | Choice::HashKeys, _) => None,

            (Choice::Start, Kind::FixedWindow) => None,
            (Choice::Start, Kind::SlidingCounter) => Some("whose windows lie on the grid of the epoch"),
            (Choice::Start, Kind::CalendarQuota) => Some("whose periods begin where the calendar says"),
            (Choice::Start, _) => Some("which has no windows"),

            // What is spent in advance needs a bucket that wears off on its own, whatever was spent when.
            (
                Choice::Capacity | Choice::MaxReserved | Choice::Shards,
                Kind::FixedWindow | Kind::TokenBucket | Kind::CalendarQuota,
            ) => None,
            (Choice::Shards, Kind::SlidingCounter) => None,
            (Choice::Shards, Kind::SlidingWindow) => Some("which is exact over all takes of its key"),
            (Choice::Capacity | Choice::MaxReserved, Kind::SlidingWindow | Kind::SlidingCounter) => {
                Some("which admits its rate in a period and no more")
            }
            (Choice::Capacity, Kind::Concurrency) => Some("which has as many leases as its max"),
            (Choice::MaxReserved | Choice::Shards, Kind::Concurrency) => Some("whose leases are held now and once"),
        }
    }
}
