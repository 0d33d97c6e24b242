//! Faults that users of other limiters met, each as a test named after what is right. Numbers as in their list.

// Steps that only lead up to what is tested need no look at their decisions.
#![allow(unused_must_use)]

use crate::limit::{Key, Kind, Limit, Start};
use crate::time::Timestamp;
use crate::value::Value;

use super::fixture::{Desk, cost, demand, fw, tb};

/// `(remaining, retry_after)` of a decision that must be of `allowed`.
#[track_caller]
fn told(decision: crate::limit::Decision, allowed: bool) -> (i64, i64) {
    assert_eq!(decision.allowed, allowed, "{decision:?}");
    (decision.remaining, decision.retry_after)
}

fn aligned(limit: Limit) -> Limit {
    limit.start(Start::Epoch).unwrap()
}

#[test]
fn fault_1_a_cost_above_capacity_is_never_and_not_a_wait() {
    let limit = tb("x", 1, 1_000).capacity(5).unwrap();
    let mut desk = Desk::new();
    let never = desk.take(&limit, "k", 6);
    assert_eq!((never.allowed, never.reason.as_str(), never.retry_after, never.remaining), (false, "never", 0, 5));
    assert!(desk.rows().is_empty());
    assert_eq!(told(desk.take(&limit, "k", 5), true), (0, 0));
    assert_eq!(desk.at(100_000).take(&limit, "k", 6).reason.as_str(), "never");
}

#[test]
fn fault_3_a_refused_call_shows_what_is_left_and_changes_no_expiry() {
    let limit = fw("x", 10, 60_000);
    let mut desk = Desk::new();
    assert_eq!(told(desk.take(&limit, "k", 8), true).0, 2);
    let before = desk.rows();
    assert_eq!(told(desk.take(&limit, "k", 5), false).0, 2);
    assert_eq!(told(desk.take(&limit, "k", 1_000_000), false).0, 2);
    assert_eq!(desk.rows(), before);
    assert_eq!(told(desk.take(&limit, "k", 2), true).0, 0);
    assert_eq!(told(desk.at(60_000).take(&limit, "k", 10), true).0, 0);
}

#[test]
fn fault_4_a_smaller_call_after_a_refused_larger_one_is_let_in() {
    let limit = fw("x", 10, 60_000);
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 8), true);
    told(desk.take(&limit, "k", 5), false);
    assert_eq!(told(desk.take(&limit, "k", 1), true).0, 1);
}

#[test]
fn fault_10_waiting_exactly_the_time_told_always_passes_and_a_tick_less_never() {
    for rate in [3, 7, 9, 60, 997] {
        let limit = tb("x", rate, 1_000).capacity(1).unwrap();
        let mut desk = Desk::new();
        told(desk.take(&limit, "k", 1), true);
        for _ in 0..10_000 {
            let wait = told(desk.take(&limit, "k", 1), false).1;
            desk.now += wait - 1;
            if wait > 1 {
                told(desk.take(&limit, "k", 1), false);
            }
            desk.now += 1;
            told(desk.take(&limit, "k", 1), true);
        }
    }
}

#[test]
fn fault_12_waits_below_a_second_are_exact() {
    let mut desk = Desk::new();
    let tenth = tb("a", 10, 1_000).capacity(1).unwrap();
    told(desk.take(&tenth, "k", 1), true);
    assert_eq!(told(desk.at(10).take(&tenth, "k", 1), false).1, 90);
    let slow = tb("b", 1, 1_500);
    told(desk.at(0).take(&slow, "k", 1), true);
    assert_eq!(told(desk.at(200).take(&slow, "k", 1), false).1, 1_300);
}

#[test]
fn fault_13_refill_is_continuous() {
    let limit = tb("x", 5, 1_000);
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 5), true);
    assert_eq!(told(desk.at(200).take(&limit, "k", 1), true).0, 0);
    assert_eq!(told(desk.at(390).take(&limit, "k", 1), false).1, 10);
    told(desk.at(400).take(&limit, "k", 1), true);
}

#[test]
fn fault_15_the_wait_is_what_is_left_of_the_window() {
    let limit = fw("x", 1, 60_000);
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 1), true);
    assert_eq!(told(desk.at(45_000).take(&limit, "k", 1), false).1, 15_000);
    assert_eq!(told(desk.at(59_999).take(&limit, "k", 1), false).1, 1);
    told(desk.at(60_000).take(&limit, "k", 1), true);
}

#[test]
fn fault_17_one_a_minute_admits_six_in_six_minutes() {
    for limit in [fw("x", 1, 60_000), tb("x", 1, 60_000)] {
        let mut desk = Desk::new();
        let admitted: Vec<i64> =
            (0..360).filter(|second| desk.at(second * 1_000).take(&limit, "k", 1).allowed).collect();
        assert_eq!(admitted, [0, 60, 120, 180, 240, 300]);
    }
}

#[test]
fn fault_19_the_long_run_rate_is_the_rate_declared() {
    let limit = tb("x", 3, 1_000);
    let mut desk = Desk::new();
    let admitted: Vec<i64> = (0..100).map(|i| i * 100).filter(|ms| desk.at(*ms).take(&limit, "k", 1).allowed).collect();
    assert_eq!(admitted.len(), 32);
    for start in &admitted {
        assert!(admitted.iter().filter(|ms| (*start..start + 1_000).contains(ms)).count() <= 6);
    }
}

#[test]
fn fault_26_a_windows_end_is_fixed_by_its_first_take() {
    let limit = fw("x", 3, 60_000);
    let mut desk = Desk::new();
    for second in [0, 59, 118, 177] {
        told(desk.at(second * 1_000).take(&limit, "k", 1), true);
    }
    let admitted: Vec<i64> = (0..30).filter(|i| desk.at(i * 20_000).take(&limit, "b", 1).allowed).collect();
    assert_eq!(admitted.len(), 30);
}

#[test]
fn fault_28_the_bound_at_a_window_edge_is_told() {
    let limit = aligned(fw("x", 10, 60_000));
    let mut desk = Desk::new();
    told(desk.at(59_000).take(&limit, "k", 10), true);
    told(desk.at(60_000).take(&limit, "k", 10), true);
    assert!(limit.describe().ends_with("at most 20 in any 60 s"), "{}", limit.describe());
    assert!(tb("x", 10, 60_000).describe().ends_with("at most 19 in any 60 s"));
}

#[test]
fn fault_30_the_wait_covers_the_whole_cost() {
    let limit = tb("x", 2, 1_000).capacity(10).unwrap();
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 10), true);
    assert_eq!(told(desk.take(&limit, "k", 7), false).1, 3_500);
    told(desk.at(3_499).take(&limit, "k", 7), false);
    assert_eq!(told(desk.at(3_500).take(&limit, "k", 7), true).0, 0);
}

#[test]
fn fault_31_a_clock_that_swings_mints_nothing() {
    let limit = tb("x", 1, 1_000).capacity(10).unwrap();
    let mut desk = Desk::new();
    told(desk.at(100_000).take(&limit, "k", 10), true);
    for _ in 0..20 {
        assert_eq!(told(desk.at(95_000).take(&limit, "k", 1), false).1, 6_000);
        told(desk.at(100_000).take(&limit, "k", 1), false);
    }
    told(desk.at(101_000).take(&limit, "k", 1), true);
}

#[test]
fn fault_32_a_clock_set_back_takes_nothing_away() {
    let limit = tb("x", 1, 1_000).capacity(10).unwrap();
    let mut desk = Desk::new();
    assert_eq!(told(desk.at(100_000).take(&limit, "k", 1), true).0, 9);
    assert_eq!(desk.at(97_000).peek(&limit, "k").remaining, 9);
    assert_eq!(told(desk.take(&limit, "k", 1), true).0, 8);
    assert_eq!(desk.at(100_000).peek(&limit, "k").remaining, 8);
}

#[test]
fn fault_35_a_start_in_the_future_is_a_phase() {
    let limit = fw("x", 10, 60_000).start(Start::At(Timestamp::from_millis(300_000))).unwrap();
    assert_eq!(told(Desk::new().take(&limit, "k", 1), true).0, 9);
}

#[test]
fn fault_36_two_limits_of_one_transaction_see_one_instant() {
    let day = 86_400_000;
    let (a, b) = (aligned(fw("a", 1, day)), aligned(fw("b", 1, day)));
    let mut desk = Desk::new();
    let decision = desk.at(day - 1).take_all(&[demand(&a, "k", 1), demand(&b, "k", 1)]);
    assert_eq!((decision.allowed, decision.reset_at.as_millis()), (true, day));
    assert_eq!(desk.peek(&a, "k").reset_at, desk.peek(&b, "k").reset_at);
}

#[test]
fn fault_39_long_idle_saturates_at_capacity() {
    let limit = tb("x", 1_000_000_000, 1_000).capacity(1_000_000).unwrap();
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 1_000_000), true);
    assert_eq!(desk.at(12 * 3_600_000).peek(&limit, "k").remaining, 1_000_000);
    told(desk.at(30 * 365 * 86_400_000).take(&limit, "k", 1_000_000), true);
    told(desk.take(&limit, "k", 1), false);
}

#[test]
fn fault_42_nothing_of_zero_can_be_declared() {
    for (kind, rate, period, field) in [
        (Kind::TokenBucket, 0, 60_000, "rate"),
        (Kind::FixedWindow, 0, 60_000, "rate"),
        (Kind::TokenBucket, 1, 0, "period"),
    ] {
        assert_eq!(Limit::of_ms(kind, "x", rate, period).unwrap_err().field, field);
    }
    assert_eq!(
        tb("x", 1, 1_000).capacity(0).unwrap_err().to_string(),
        r#"limit "x": capacity is 0, must be at least 1"#
    );
    assert_eq!(fw("x", 1, 1).apply_option("capacity", &Value::Float(0.5)).unwrap_err().field, "capacity");
    for name in ["", &"n".repeat(129)] {
        assert_eq!(Limit::of_ms(Kind::TokenBucket, name, 1, 1).unwrap_err().field, "name");
    }
}

#[test]
fn fault_44_a_period_of_a_year_limits() {
    let day = 86_400_000;
    let limit = tb("x", 1, 365 * day);
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 1), true);
    assert_eq!(told(desk.at(364 * day).take(&limit, "k", 1), false).1, day);
    told(desk.at(365 * day).take(&limit, "k", 1), true);
}

#[test]
fn fault_50_a_new_limit_holds_at_once_and_keeps_usage_and_window() {
    let mut desk = Desk::new();
    assert_eq!(told(desk.take(&fw("x", 100, 60_000), "k", 1), true).0, 99);
    assert_eq!(told(desk.at(1_000).take(&fw("x", 10, 60_000), "k", 1), true).0, 8);
    let five = desk.peek(&fw("x", 5, 60_000), "k");
    assert_eq!((five.remaining, five.reset_at.as_millis()), (3, 60_000));
}

#[test]
fn fault_52_lowering_a_limit_clamps_and_refills_go_on() {
    let mut desk = Desk::new();
    assert_eq!(desk.peek(&fw("x", 10, 1_000), "k").remaining, 10);
    let five = fw("x", 5, 1_000);
    for second in 0..4 {
        desk.now = second * 1_000;
        assert!((0..5).all(|_| desk.take(&five, "k", 1).allowed));
        told(desk.take(&five, "k", 1), false);
    }
    for kind in [tb, fw] {
        let mut desk = Desk::new();
        told(desk.take(&kind("y", 10, 10_000), "k", 10), true);
        let five = kind("y", 5, 10_000);
        assert_eq!(told(desk.take(&five, "k", 1), false).0, 0);
        assert_eq!(desk.at(10_000).peek(&five, "k").remaining, 5, "one new full-refill time later");
        let mut desk = Desk::new();
        told(desk.take(&kind("y", 10, 10_000), "k", 10), true);
        assert_eq!(desk.peek(&kind("y", 100, 10_000), "k").remaining, 90, "raised: the rest is there at once");
    }
}

#[test]
fn fault_54_the_same_settings_again_change_nothing() {
    let mut desk = Desk::new();
    told(desk.take(&tb("x", 1, 60_000).capacity(10).unwrap(), "k", 10), true);
    let before = desk.rows();
    for _ in 0..5 {
        told(desk.take(&tb("x", 1, 60_000).capacity(10).unwrap(), "k", 1), false);
    }
    assert_eq!(desk.rows(), before);
}

#[test]
fn fault_60_every_limit_counts_only_what_all_accepted() {
    let (s, m) = (fw("S", 1, 1_000), fw("M", 5, 60_000));
    let mut desk = Desk::new();
    let both = [demand(&s, "k", 1), demand(&m, "k", 1)];
    assert_eq!((0..7).filter(|_| desk.take_all(&both).allowed).count(), 1);
    assert_eq!(desk.peek(&m, "k").remaining, 4);
    assert!((1..5).all(|second| desk.at(second * 1_000).take_all(&both).allowed));
    let refused = desk.at(5_000).take_all(&both);
    assert_eq!((&*refused.violated[0].name, refused.violated.len(), refused.retry_after), ("M", 1, 55_000));
}

#[test]
fn fault_61_every_limit_that_refused_is_named_with_its_wait() {
    let (a, b) = (fw("A", 1, 10_000), fw("B", 1, 60_000));
    let mut desk = Desk::new();
    let both = [demand(&a, "k", 1), demand(&b, "k", 1)];
    assert!(desk.take_all(&both).allowed);
    let named = |decision: &crate::limit::Decision| -> Vec<(String, i64)> {
        decision.violated.iter().map(|violation| (violation.name.to_string(), violation.wait)).collect()
    };
    let refused = desk.at(5_000).take_all(&both);
    assert_eq!(named(&refused), [("A".into(), 5_000), ("B".into(), 55_000)]);
    assert_eq!(refused.retry_after, 55_000);
    let refused = desk.at(12_000).take_all(&both);
    assert_eq!(named(&refused), [("B".into(), 48_000)]);
    assert_eq!(refused.name.as_ref(), "B", "the tightest one's numbers");
}

#[test]
fn fault_66_giving_back_stops_at_full() {
    for limit in [fw("x", 10, 60_000), tb("x", 10, 60_000)] {
        let mut desk = Desk::new();
        assert_eq!(desk.refund(&limit, "k", 3).remaining, 10);
        assert!(desk.rows().is_empty(), "no bucket made");
        told(desk.take(&limit, "k", 2), true);
        assert_eq!(desk.refund(&limit, "k", 5).remaining, 10);
        told(desk.take(&limit, "k", 10), true);
        let full = desk.refund(&limit, "k", 1);
        assert_eq!((full.remaining, full.used), (1, 9));
        told(desk.take(&limit, "k", 1), true);
        told(desk.take(&limit, "k", 1), false);
    }
}

#[test]
fn fault_68_a_refund_does_not_restart_the_window() {
    let limit = fw("x", 10, 60_000);
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 2), true);
    desk.at(30_000).refund(&limit, "k", 2);
    told(desk.at(31_000).take(&limit, "k", 10), true);
    told(desk.at(60_000).take(&limit, "k", 10), true);
}

#[test]
fn fault_72_a_penalty_past_the_limit_and_a_block_both_hold() {
    let limit = fw("x", 5, 60_000);
    let mut desk = Desk::new();
    let charged = desk.charge(&limit, "k", 10);
    assert_eq!((charged.remaining, charged.used), (0, 10));
    assert_eq!(told(desk.take(&limit, "k", 1), false).1, 120_000);
    desk.run(|tx| super::block(tx, &limit, &"k".into(), 600_000));
    let blocked = desk.take(&limit, "k", 1);
    assert_eq!((blocked.reason.as_str(), blocked.retry_after), ("blocked", 600_000));
    assert_eq!(desk.at(61_000).take(&limit, "k", 1).reason.as_str(), "blocked");
    told(desk.at(601_000).take(&limit, "k", 1), true);
    desk.run(|tx| super::block(tx, &limit, &"b".into(), 600_000));
    desk.run(|tx| super::unblock(tx, &limit, &"b".into()));
    told(desk.take(&limit, "b", 1), true);
}

#[test]
fn fault_75_a_cancelled_reservation_gives_back_exactly_what_it_took() {
    let limit = tb("x", 10, 1_000).capacity(20).unwrap().max_reserved(10).unwrap();
    let mut desk = Desk::new();
    assert_eq!(told(desk.reserve(&limit, "k", 15), true).0, 5);
    let second = desk.at(100).reserve(&limit, "k", 10);
    assert_eq!((second.limit - second.used, second.delay), (-4, 400));
    let third = desk.at(200).reserve(&limit, "k", 2);
    assert_eq!((third.limit - third.used, third.delay), (-5, 500));
    assert_eq!(desk.refund(&limit, "k", 10).remaining, 5);
}

#[test]
fn fault_85_parts_of_keys_never_run_together() {
    let limit = fw("x", 1, 60_000);
    let mut desk = Desk::new();
    for text in [
        r#"["a","b/c"]"#,
        r#"["a/b","c"]"#,
        r#"["a",""]"#,
        r#"["","a"]"#,
        r#"["a:","b"]"#,
        r#"["a",":b"]"#,
        "[1]",
        r#"["1"]"#,
    ] {
        let key: Key = text.parse().unwrap();
        told(desk.take(&limit, &key, 1), true);
        told(desk.take(&limit, &key, 1), false);
        told(desk.take(&fw("other", 1, 60_000), &key, 1), true);
    }
    told(desk.take(&limit, Key::global(), 1), true);
    told(desk.take(&limit, "", 1), true);
}

#[test]
fn fault_90_refused_calls_make_no_buckets_of_keys_that_callers_choose() {
    let (tenant, address) = (fw("tenant", 120, 60_000), fw("ip", 130, 60_000));
    let mut desk = Desk::new();
    let admitted = (0..150)
        .filter(|n| desk.take_all(&[demand(&tenant, &n.to_string(), 1), demand(&address, "192.0.2.1", 1)]).allowed)
        .count();
    assert_eq!(admitted, 130);
    assert_eq!(desk.live(&tenant).len(), 130);
}

#[test]
fn fault_92_sweeping_removes_what_expired_and_only_that() {
    let (long, short) = (fw("long", 10, 60_000), fw("short", 10, 1_000));
    let mut desk = Desk::new();
    for n in 0..1_000 {
        desk.take(&long, n, 3);
        desk.take(&short, n, 3);
    }
    desk.now = 1_000;
    assert_eq!(desk.live(&short).len(), 0, "expired is invisible before the sweep");
    assert_eq!(desk.sweep(), 1_000);
    assert_eq!(desk.live(&long).len(), 1_000);
    assert!((0..1_000).all(|n| desk.peek(&long, n).remaining == 7));
    desk.now = 60_000;
    assert_eq!(desk.sweep(), 1_000);
    assert!(desk.rows().is_empty(), "fault 95: one-off keys leave nothing");
}

#[test]
fn a_wrong_clock_put_right_locks_nobody_out() {
    for limit in [tb("x", 1, 1_000).capacity(10).unwrap(), fw("x", 10, 10_000)] {
        let mut desk = Desk::new();
        desk.now = 4_000_000_000_000;
        told(desk.take(&limit, "k", 10), true);
        desk.now = 1_000_000_000_000;
        assert_eq!(desk.peek(&limit, "k").remaining, 0, "level kept");
        let wait = told(desk.take(&limit, "k", 1), false).1;
        assert!(wait <= 10_000);
        desk.now += wait - 1;
        told(desk.take(&limit, "k", 1), false);
        desk.now += 1;
        told(desk.take(&limit, "k", 1), true);
    }
}

#[test]
fn a_change_of_kind_starts_afresh() {
    let mut desk = Desk::new();
    told(desk.take(&fw("x", 10, 60_000), "k", 10), true);
    assert_eq!(told(desk.take(&tb("x", 10, 60_000), "k", 10), true).0, 0);
    assert_eq!(desk.peek(&fw("x", 10, 60_000), "k").remaining, 10);
}

#[test]
fn lists_go_on_behind_the_last_key() {
    let limit = fw("x", 10, 60_000);
    let mut desk = Desk::new();
    desk.take(&limit, Key::global(), 1);
    for n in 0..25 {
        desk.take(&limit, n, n % 5 + 1);
    }
    desk.take(&fw("x2", 10, 60_000), 1, 1);
    let mut seen = Vec::new();
    loop {
        let after = seen.last().cloned();
        let page = desk.run(|tx| super::list(tx, "x", after.as_ref(), 10));
        if page.is_empty() {
            break;
        }
        for listed in page {
            let looked = desk.run(|tx| Ok(super::look(tx, &limit, &listed).0));
            assert_eq!(looked, desk.peek(&limit, &listed.key));
            seen.push(listed.key);
        }
    }
    assert_eq!(seen.len(), 26);
    assert!(seen[0].is_global());
}

#[test]
fn a_key_too_long_never_gets_a_bucket() {
    let limit = fw("x", 10, 60_000);
    let desk = Desk::new();
    let mut tx = crate::transaction::Transaction::over(desk.store.clone(), Timestamp::EPOCH);
    let key = Key::from("k".repeat(2_000));
    assert!(super::take(&mut tx, &limit, &key, cost(1)).is_err());
}

#[test]
fn reset_forgets_spending_cooldown_and_block() {
    let limit = fw("x", 1, 60_000).min_interval(std::time::Duration::from_secs(5)).unwrap();
    let mut desk = Desk::new();
    told(desk.take(&limit, "k", 1), true);
    desk.run(|tx| super::block(tx, &limit, &"k".into(), 600_000));
    desk.run(|tx| super::reset(tx, &limit, &"k".into()));
    assert!(desk.rows().is_empty());
    told(desk.take(&limit, "k", 1), true);
}
