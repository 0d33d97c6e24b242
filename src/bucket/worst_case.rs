//! The worst case that a limit states about itself: it is reached, and never passed, on small numbers tried throughout.

use proptest::prelude::*;

use crate::limit::{Kind, Limit, Start};
use crate::time::Timestamp;

use super::fixture::{Desk, of};
use super::model::Model;

/// Far from the epoch, and on no edge of any grid.
const BEGIN: i64 = 1_000_003;

fn small_limit() -> impl Strategy<Value = Limit> {
    let kinds = vec![Kind::FixedWindow, Kind::TokenBucket, Kind::SlidingWindow, Kind::SlidingCounter];
    let start = prop_oneof![Just(Start::First), Just(Start::Epoch), (0..9i64).prop_map(at)];
    (prop::sample::select(kinds), 1..12i64, 1..11i64, prop::option::of(1..12i64), 0..4i64, start).prop_map(
        |(kind, rate, period, capacity, ahead, start)| {
            let mut limit = of(kind, "x", rate, period);
            if kind == Kind::FixedWindow {
                limit = limit.start(start).unwrap();
            }
            if matches!(kind, Kind::FixedWindow | Kind::TokenBucket) {
                limit = limit.capacity(capacity.unwrap_or(rate)).unwrap().max_reserved(ahead).unwrap();
            }
            limit
        },
    )
}

fn at(ms: i64) -> Start {
    Start::At(Timestamp::from_millis(ms))
}

fn told(limit: &Limit) -> i64 {
    limit.describe().split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

/// Takes one token of the model, if it fits.
fn take(model: &mut Model, limit: &Limit, now: i64) -> bool {
    let mut seen = model.seen(limit, now);
    let fits = seen.verdict(now, 1, limit.settings().max_reserved).0;
    if fits {
        *model = seen.accept(1, now);
    }
    fits
}

/// What a caller gets who takes all that is there in each millisecond of a period, at the best instant to begin, and who
/// may have opened a window with one token before.
fn attack(limit: &Limit) -> i64 {
    let period = limit.period_ms();
    let mut best = 0;
    for begin in BEGIN..BEGIN + period {
        for opened in (begin - period..begin).map(Some).chain([None]) {
            let mut model = Model::new(limit.clone());
            if let Some(opened) = opened {
                assert!(take(&mut model, limit, opened));
            }
            let all = (begin..begin + period).map(|now| (0..).take_while(|_| take(&mut model, limit, now)).count());
            best = best.max(all.sum::<usize>() as i64);
        }
    }
    best
}

proptest! {
    #![proptest_config(super::properties::config(60))]

    #[test]
    fn the_most_in_a_period_that_is_told_is_reached(limit in small_limit()) {
        prop_assert_eq!(attack(&limit), told(&limit), "{}", limit.describe());
    }

    #[test]
    fn no_history_passes_it(limit in small_limit(), takes in prop::collection::vec((0..4i64, 1..9i64), 1..80)) {
        let mut desk = Desk::new();
        desk.now = BEGIN;
        let mut admitted = Vec::new();
        for (ms, n) in takes {
            desk.now += ms;
            if desk.reserve(&limit, "k", n).allowed {
                admitted.push((desk.now, n));
            }
        }
        for (start, _) in &admitted {
            let span = *start..start + limit.period_ms();
            let within: i64 = admitted.iter().filter(|(ms, _)| span.contains(ms)).map(|(_, n)| n).sum();
            prop_assert!(within <= told(&limit), "{} {:?}", limit.describe(), admitted);
        }
    }
}
