//! Refunds: however tokens come back, no more work is kept than the limit admits.

// Steps that only lead up to what is tested need no look at their decisions.
#![allow(unused_must_use)]

use proptest::prelude::*;

use crate::limit::{Kind, Limit};

use super::fixture::{Desk, fw, of, tb};

/// Work that was admitted: when, and for how many tokens.
type Work = Vec<(i64, i64)>;

#[derive(Clone, Debug)]
enum Step {
    Take(i64),
    /// One of the earlier takes that still count, whichever.
    GiveBack(usize),
    /// It fails at once.
    Fail(i64),
}

fn steps() -> impl Strategy<Value = Vec<(i64, Step)>> {
    let step = prop_oneof![
        4 => (1..6i64).prop_map(Step::Take),
        2 => (0..20usize).prop_map(Step::GiveBack),
        1 => (1..6i64).prop_map(Step::Fail),
    ];
    prop::collection::vec((1..400i64, step), 1..60)
}

/// Tokens of `work` that count at `now`, by what the kind promises.
fn counted(limit: &Limit, work: &Work, now: i64) -> i64 {
    let period = limit.period_ms();
    let sum = |of: &dyn Fn(i64) -> bool| -> i64 { work.iter().filter(|(ms, _)| of(*ms)).map(|(_, n)| n).sum() };
    if limit.kind() == Kind::SlidingWindow {
        return sum(&|ms| ms + period > now);
    }
    let window = now.div_euclid(period);
    let previous = sum(&|ms| ms.div_euclid(period) == window - 1);
    let overlap = period - now.rem_euclid(period);
    (previous * overlap + period - 1) / period + sum(&|ms| ms.div_euclid(period) == window)
}

/// Whether a take at `ms` still counts at `now`.
fn counts(limit: &Limit, ms: i64, now: i64) -> bool {
    let period = limit.period_ms();
    match limit.kind() {
        Kind::SlidingWindow => ms + period > now,
        _ => ms.div_euclid(period) + 1 >= now.div_euclid(period),
    }
}

proptest! {
    #![proptest_config(super::properties::config(400))]

    /// Property 1 with refunds counted as not admitted, of every refund of what still counts.
    #[test]
    fn no_order_of_refunds_keeps_more_work_than_is_admitted(
        sliding in any::<bool>(), rate in 1..12i64, period in prop::sample::select(vec![333, 1_000, 1_600]), steps in steps(),
    ) {
        let limit = of(if sliding { Kind::SlidingWindow } else { Kind::SlidingCounter }, "x", rate, period);
        let mut desk = Desk::new();
        let mut kept = Work::new();
        for (ms, step) in steps {
            desk.now += ms;
            match step {
                Step::Take(n) if desk.take(&limit, "k", n).allowed => kept.push((desk.now, n)),
                Step::Take(_) => {}
                Step::GiveBack(which) => {
                    let open: Vec<usize> = (0..kept.len()).filter(|i| counts(&limit, kept[*i].0, desk.now)).collect();
                    if !open.is_empty() {
                        let (_, n) = kept.remove(open[which % open.len()]);
                        desk.refund(&limit, "k", n);
                    }
                }
                Step::Fail(n) => {
                    if desk.take(&limit, "k", n).allowed {
                        desk.refund(&limit, "k", n);
                    }
                }
            }
            let counted = counted(&limit, &kept, desk.now);
            prop_assert!(counted <= rate, "{} at {} of {:?}", counted, desk.now, kept);
            prop_assert!(counted <= desk.peek(&limit, "k").used, "what was kept is remembered");
        }
    }

    /// Fault 75: a take given back at once leaves no trace, whatever was spent before.
    #[test]
    fn a_take_given_back_at_once_leaves_no_trace(
        kind in 0..5usize, before in prop::collection::vec((0..400i64, 1..4i64), 1..8), then in 0..700i64, n in 1..6i64,
        later in prop::collection::vec(0..2_500i64, 1..6),
    ) {
        let limit = [
            of(Kind::SlidingWindow, "x", 9, 1_000),
            of(Kind::SlidingCounter, "x", 9, 600),
            of(Kind::CalendarQuota, "x", 9, 0),
            tb("x", 9, 1_000),
            fw("x", 9, 1_000),
        ][kind].clone();
        let (mut with, mut without) = (Desk::new(), Desk::new());
        for (ms, n) in before {
            with.now += ms;
            without.now = with.now;
            prop_assert_eq!(with.take(&limit, "k", n), without.take(&limit, "k", n));
        }
        with.now += then;
        // A take that opens a window leaves it open: a refund does not begin it anew.
        prop_assume!(with.peek(&limit, "k").used > 0);
        if with.take(&limit, "k", n).allowed {
            with.refund(&limit, "k", n);
        }
        for ms in later {
            let now = with.now + ms;
            prop_assert_eq!(with.at(now).peek(&limit, "k"), without.at(now).peek(&limit, "k"));
        }
    }
}

/// Three tokens of work that failed late come back after two of work that goes on: those two still hold their place for
/// a whole period.
#[test]
fn a_refund_of_old_work_does_not_forget_new_work() {
    let limit = of(Kind::SlidingWindow, "x", 5, 1_000);
    let mut desk = Desk::new();
    desk.take(&limit, "k", 3);
    desk.at(900).take(&limit, "k", 2);
    assert_eq!(desk.at(950).refund(&limit, "k", 3).remaining, 3);
    assert_eq!(desk.at(1_000).peek(&limit, "k").remaining, 3);
    assert_eq!(desk.at(1_899).peek(&limit, "k").remaining, 3);
    assert_eq!(desk.at(1_900).peek(&limit, "k").remaining, 5);
}
