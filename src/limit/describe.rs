//! A limit in words: `one every 200 ms, 10 at once; at most 15 in any 1 s`.

use super::kind::Kind;
use super::number::div_ceil;
use super::settings::{Settings, Start};

/// What the limit admits, and the most of it in any span of one period.
pub(super) fn describe(settings: &Settings) -> String {
    let Settings { rate, period_ms, capacity, max_reserved, min_interval_ms, .. } = *settings;
    let mut text = match settings.kind {
        Kind::TokenBucket => {
            let pace = if period_ms % rate == 0 {
                format!("one every {}", span(period_ms / rate))
            } else {
                format!("{rate} every {}", span(period_ms))
            };
            format!("{pace}, {capacity} at once")
        }
        Kind::FixedWindow => {
            let windows = match settings.start {
                Start::First => "from the first take".to_owned(),
                Start::Epoch => "on the grid of the epoch".to_owned(),
                Start::Random => "on a grid of the key's own".to_owned(),
                Start::At(instant) => format!("on the grid through {instant}"),
            };
            let mut text = format!("{rate} in each window of {}, {windows}", span(period_ms));
            if capacity != rate {
                text.push_str(&format!(", {capacity} at once"));
            }
            text
        }
        Kind::SlidingWindow => format!("{rate} in every {}", span(period_ms)),
        Kind::SlidingCounter => format!("{rate} in {}, counted in two windows", span(period_ms)),
        Kind::CalendarQuota => {
            let mut text = match &settings.calendar {
                Some(calendar) => format!("{rate} in each {calendar}"),
                None => format!("{rate} in each {}", span(period_ms)),
            };
            if capacity != rate {
                text.push_str(&format!(", {capacity} at once"));
            }
            text
        }
        Kind::Concurrency => format!("{rate} at once, each for {} unless it is renewed", span(period_ms)),
    };
    if min_interval_ms > 0 {
        text.push_str(&format!(", {} apart", span(min_interval_ms)));
    }
    if max_reserved > 0 {
        text.push_str(&format!(", {max_reserved} ahead"));
    }
    if settings.block_for_ms > 0 {
        text.push_str(&format!(", once refused none for {}", span(settings.block_for_ms)));
    }
    // Leases are held, not spent: what a span admits has no bound when they are given back early.
    let most = most_in_a_period(settings);
    match &settings.calendar {
        Some(calendar) => text.push_str(&format!("; at most {most} in any {}", span(calendar.shortest_ms()))),
        None if settings.kind == Kind::Concurrency => text.push_str(&format!("; at most {most} held at any instant")),
        None => text.push_str(&format!("; at most {most} in any {}", span(period_ms))),
    }
    if settings.shadow {
        text.push_str(" (shadow: it refuses nothing)");
    }
    text
}

/// The most tokens admitted in any half-open span of one period (of the shortest civil one), exactly; charges and
/// refunds aside, and without the pause of a `min_interval`, which can only make it less.
fn most_in_a_period(settings: &Settings) -> i128 {
    let Settings { rate, period_ms, capacity, max_reserved, .. } = *settings;
    let (rate, period) = (i128::from(rate), i128::from(period_ms));
    // A reservation takes what will be there as a take what is there.
    let ceiling = i128::from(capacity) + i128::from(max_reserved);
    match settings.kind {
        Kind::TokenBucket => burst_and_refill(ceiling, rate, period),
        Kind::SlidingWindow | Kind::Concurrency => rate,
        // The span is one instant, and meets no edge with something on both sides.
        Kind::FixedWindow if period == 1 => ceiling,
        // The take that opens a window lies a whole period before its edge, outside of a span across that edge.
        Kind::FixedWindow if settings.start == Start::First => ceiling - 1 + rate.min(ceiling),
        // A span across an edge meets what is there before it and what wears off at it.
        Kind::FixedWindow | Kind::CalendarQuota => ceiling + rate.min(ceiling),
        // All of it in the last millisecond of one window, and in the next what has faded by the last but one.
        Kind::SlidingCounter => rate + rate - div_ceil(2 * rate, period).min(rate),
    }
}

/// What a token bucket admits in `period` instants from a full bucket on, whatever is there taken at each of them.
fn burst_and_refill(ceiling: i128, rate: i128, period: i128) -> i128 {
    // The refill of the last millisecond comes when the span is over.
    let refills = period - 1;
    // What comes in a millisecond beyond all but one of the tokens that have room.
    let beyond = rate - (ceiling - 1) * period;
    match beyond {
        // There is always room for the next millisecond's.
        beyond if beyond <= 1 => ceiling + rate * refills / period,
        // Every millisecond fills it.
        beyond if beyond >= period => ceiling * period,
        // It is full each time that what is beyond has made up one token; the rest of that millisecond is lost.
        beyond => ceiling + refills * (ceiling - 1) + refills / div_ceil(period, beyond),
    }
}

/// A span in the largest unit of which it is at least two (one, for seconds) and a whole number.
fn span(ms: i64) -> String {
    for (unit, least, name) in [(86_400_000, 2, "d"), (3_600_000, 2, "h"), (60_000, 2, "min"), (1_000, 1, "s")] {
        if ms % unit == 0 && ms / unit >= least {
            return format!("{} {name}", ms / unit);
        }
    }
    format!("{ms} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_words() {
        let words = |kind, rate, ms, change: fn(&mut Settings)| {
            let mut settings = Settings::new(kind, rate, ms);
            change(&mut settings);
            describe(&settings)
        };
        assert_eq!(
            words(Kind::TokenBucket, 5, 1_000, |s| s.capacity = 5),
            "one every 200 ms, 5 at once; at most 9 in any 1 s"
        );
        assert_eq!(
            words(Kind::TokenBucket, 7, 60_000, |s| s.max_reserved = 3),
            "7 every 60 s, 7 at once, 3 ahead; at most 16 in any 60 s"
        );
        assert_eq!(
            words(Kind::FixedWindow, 10, 60_000, |s| s.start = Start::Epoch),
            "10 in each window of 60 s, on the grid of the epoch; at most 20 in any 60 s"
        );
        assert_eq!(
            words(Kind::FixedWindow, 5, 3_600_000, |s| s.min_interval_ms = 300_000),
            "5 in each window of 60 min, from the first take, 5 min apart; at most 9 in any 60 min"
        );
        assert_eq!(
            words(Kind::FixedWindow, 100, 86_400_000, |s| s.capacity = 150),
            "100 in each window of 24 h, from the first take, 150 at once; at most 249 in any 24 h"
        );
    }
}
