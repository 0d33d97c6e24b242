//! Faults that users of other limiters met with sliding windows, calendars, options and keys, each as a test named
//! after what is right. Numbers as in their list.

// Steps that only lead up to what is tested need no look at their decisions.
#![allow(unused_must_use)]

use std::time::Duration;

use crate::limit::{CalendarUnit, Kind, Limit};
use crate::time::Timestamp;
use crate::value::{Map, Value};

use super::fixture::{Desk, cost, demand, fw, of, tb};

fn at(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millis()
}

fn quota(rate: i64, unit: CalendarUnit, zone: &str) -> Limit {
    Limit::calendar_quota("x", rate, unit, zone).unwrap()
}

#[test]
fn fault_4_a_steady_caller_of_a_sliding_window_gets_its_rate() {
    let limit = of(Kind::SlidingWindow, "x", 10, 600_000);
    let mut desk = Desk::new();
    let admitted = (0..240).filter(|n| desk.at(n * 30_000).take(&limit, "k", 1).allowed).count();
    assert_eq!(admitted, 120);
}

#[test]
fn fault_6_costs_are_summed_and_leave_one_by_one() {
    let limit = of(Kind::SlidingWindow, "x", 10, 60_000);
    let mut desk = Desk::new();
    assert_eq!(desk.at(0).take(&limit, "k", 3).remaining, 7);
    assert_eq!(desk.at(1_000).take(&limit, "k", 4).remaining, 3);
    assert_eq!(desk.at(2_000).take(&limit, "k", 4).retry_after, 58_000);
    assert_eq!(desk.take(&limit, "k", 3).remaining, 0);
    for (second, left) in [(59, 0), (60, 3), (61, 7), (62, 10)] {
        assert_eq!(desk.at(second * 1_000).peek(&limit, "k").remaining, left, "@{second}");
    }
}

#[test]
fn fault_22_sliding_kinds_recover_to_their_rate() {
    let exact = of(Kind::SlidingWindow, "x", 5, 10_000);
    let weighted = of(Kind::SlidingCounter, "y", 5, 10_000);
    for (limit, least) in [(exact, 1.0), (weighted, 0.8)] {
        let mut desk = Desk::new();
        assert_eq!((0..10).filter(|_| desk.take(&limit, "k", 1).allowed).count(), 5);
        let answers: Vec<(i64, bool)> =
            (1..=100).map(|n| (n * 2, desk.at(n * 2_000).take(&limit, "k", 1).allowed)).collect();
        assert!(answers.iter().take_while(|(second, _)| *second < 10).all(|(_, allowed)| !allowed));
        let settled: Vec<bool> =
            answers.iter().filter(|(second, _)| *second >= 20).map(|(_, allowed)| *allowed).collect();
        let share = settled.iter().filter(|allowed| **allowed).count() as f64 / settled.len() as f64;
        assert!(share >= least, "{} admits {share}", limit.kind());
        if limit.kind() == Kind::SlidingWindow {
            assert!(answers.iter().filter(|(second, _)| *second >= 10).all(|(_, allowed)| *allowed));
        }
    }
}

#[test]
fn fault_28_a_sliding_window_admits_no_more_around_an_edge() {
    let limit = of(Kind::SlidingWindow, "x", 10, 60_000);
    let mut desk = Desk::new();
    assert!(desk.at(59_000).take(&limit, "k", 10).allowed);
    assert_eq!(desk.at(60_000).take(&limit, "k", 10).retry_after, 59_000);
    assert_eq!(limit.describe(), "10 in every 60 s; at most 10 in any 60 s");
}

#[test]
fn a_sliding_counter_says_what_it_admits_at_worst() {
    let limit = of(Kind::SlidingCounter, "x", 10, 1_000);
    let told = "10 in 1 s, counted in two windows; at most 19 in any 1 s";
    assert_eq!(limit.describe(), told);
    let mut desk = Desk::new();
    assert!(desk.at(999).take(&limit, "k", 10).allowed);
    let mut admitted = 10;
    for ms in 1_000..1_999 {
        admitted += i64::from(desk.at(ms).take(&limit, "k", 1).allowed);
    }
    assert_eq!(admitted, 19, "the bound is reached, and no more");
}

#[test]
fn fault_48_a_long_gap_leaves_nothing_and_never_less() {
    let limit = of(Kind::SlidingCounter, "x", 10, 60_000);
    let mut desk = Desk::new();
    assert!(desk.take(&limit, "k", 10).allowed);
    let later = desk.at(1_000_000).peek(&limit, "k");
    assert_eq!((later.remaining, later.used), (10, 0));
    assert!(desk.take(&limit, "k", 10).allowed);
    assert!(!desk.take(&limit, "k", 1).allowed);
}

#[test]
fn fault_63_a_shadow_limit_counts_and_reports_and_never_decides() {
    let (a, b) = (fw("A", 1, 60_000).shadow().unwrap(), fw("B", 3, 60_000));
    let mut desk = Desk::new();
    let both = [demand(&a, "k", 1), demand(&b, "k", 1)];
    let mut reported = 0;
    for n in 0..5 {
        let peeked = desk.run(|tx| super::peek_all(tx, &both));
        let decision = desk.take_all(&both);
        assert_eq!((peeked.allowed, peeked.would_refuse), (decision.allowed, decision.would_refuse.clone()));
        assert_eq!(decision.allowed, n < 3);
        assert!(decision.violated.iter().all(|violation| &*violation.name == "B"));
        assert_eq!(
            decision.would_refuse.iter().map(|name| &**name).collect::<Vec<_>>(),
            ["A"; 1][..usize::from(n > 0)]
        );
        assert_eq!(&*decision.name, "B", "the numbers are of a limit that decides");
        reported += decision.would_refuse.len();
    }
    assert_eq!(reported, 4);
    let alone = desk.take(&a, "k", 1);
    assert_eq!((alone.allowed, alone.retry_after, alone.reason.as_str(), alone.remaining), (true, 0, "", 0));
    assert_eq!(desk.peek(&a, "k").used, 1, "what it would refuse is not spent");
    let never = desk.take(&a, "k", 2);
    assert!(never.allowed && never.would_refuse.len() == 1);
}

#[test]
fn fault_72_any_refusal_blocks_for_the_time_declared() {
    let limit = fw("x", 5, 60_000).block_for(Duration::from_secs(600)).unwrap();
    let mut desk = Desk::new();
    desk.charge(&limit, "k", 10);
    let peeked = desk.peek(&limit, "k");
    let refused = desk.take(&limit, "k", 1);
    assert_eq!(peeked, refused, "a look tells the same, and begins nothing");
    assert_eq!((refused.allowed, refused.retry_after, refused.reason.as_str()), (false, 600_000, "limited"));
    let later = desk.at(61_000).take(&limit, "k", 1);
    assert_eq!(
        (later.reason.as_str(), later.retry_after),
        ("blocked", 539_000),
        "a refusal while blocked adds nothing"
    );
    assert!(!desk.at(599_999).take(&limit, "k", 1).allowed);
    assert!(desk.at(600_000).take(&limit, "k", 1).allowed);
    let mut desk = Desk::new();
    assert_eq!(desk.take(&limit, "k", 6).reason.as_str(), "never");
    assert!(desk.take(&limit, "k", 5).allowed, "what can never fit blocks nobody");
    let both = [demand(&limit, "k", 1), demand(&fw("y", 1, 1_000), "k", 1)];
    assert_eq!(desk.take_all(&both).retry_after, 600_000);
    assert_eq!(desk.at(599_999).peek(&limit, "k").reason.as_str(), "blocked", "refused among others, it blocks too");
    assert!(limit.describe().contains("once refused none for 10 min"), "{}", limit.describe());
}

#[test]
fn fault_75_a_take_given_back_leaves_every_kind_as_it_was() {
    for kind in [Kind::SlidingWindow, Kind::SlidingCounter, Kind::CalendarQuota] {
        let limit = of(kind, "x", 10, 1_000);
        let mut desk = Desk::new();
        desk.take(&limit, "k", 3);
        desk.now = 700;
        let before = desk.peek(&limit, "k");
        desk.take(&limit, "k", 5);
        let after = desk.refund(&limit, "k", 5);
        assert_eq!((after.used, after.reset_at), (before.used, before.reset_at), "{kind}");
        assert_eq!(desk.at(2_200).peek(&limit, "k").used, if kind == Kind::CalendarQuota { 3 } else { 0 });
    }
}

#[test]
fn fault_80_a_day_goes_on_after_its_first_edge() {
    let limit = quota(5, CalendarUnit::Day, "UTC");
    let mut desk = Desk::new();
    assert!(desk.at(at("2026-01-31T23:59:59.900Z")).take(&limit, "k", 5).allowed);
    assert_eq!(desk.take(&limit, "k", 1).retry_after, 100);
    let next = desk.at(at("2026-02-01T00:00:00Z")).take(&limit, "k", 1);
    assert_eq!((next.remaining, next.reset_at.to_string().as_str()), (4, "2026-02-02T00:00:00Z"));
    assert_eq!(desk.at(at("2026-02-01T00:00:01Z")).peek(&limit, "k").remaining, 4);
}

#[test]
fn fault_82_a_quota_begins_anew_at_the_midnight_of_its_zone() {
    let limit = quota(1, CalendarUnit::Day, "Asia/Tokyo");
    let mut desk = Desk::new();
    assert!(desk.at(at("2026-06-01T14:59:59Z")).take(&limit, "k", 1).allowed);
    assert!(desk.at(at("2026-06-01T15:00:00Z")).take(&limit, "k", 1).allowed);
    let refused = desk.at(at("2026-06-01T23:59:59Z")).take(&limit, "k", 1);
    assert_eq!((refused.allowed, refused.reset_at.to_string().as_str()), (false, "2026-06-02T15:00:00Z"));
}

#[test]
fn days_have_23_and_25_hours_where_clocks_change() {
    let limit = quota(1, CalendarUnit::Day, "Europe/Berlin");
    for (midnight, hours) in [("2026-03-28T23:00:00Z", 23), ("2026-10-24T22:00:00Z", 25), ("2026-01-01T23:00:00Z", 24)]
    {
        let mut desk = Desk::new();
        assert!(desk.at(at(midnight)).take(&limit, "k", 1).allowed);
        assert_eq!(desk.take(&limit, "k", 1).retry_after, hours * 3_600_000, "{midnight}");
        desk.now += hours * 3_600_000 - 1;
        assert!(!desk.take(&limit, "k", 1).allowed);
        desk.now += 1;
        assert!(desk.take(&limit, "k", 1).allowed);
    }
    assert_eq!(limit.describe(), "1 in each day in Europe/Berlin; at most 2 in any 23 h");
}

#[test]
fn a_quota_that_changes_its_zone_or_unit_keeps_what_was_spent() {
    let mut desk = Desk::new();
    desk.at(at("2026-06-01T12:00:00Z")).take(&quota(5, CalendarUnit::Day, "UTC"), "k", 3);
    let tokyo = desk.peek(&quota(5, CalendarUnit::Day, "Asia/Tokyo"), "k");
    assert_eq!((tokyo.remaining, tokyo.reset_at.to_string().as_str()), (2, "2026-06-01T15:00:00Z"));
    let hourly = quota(5, CalendarUnit::Hour, "UTC");
    assert_eq!(desk.at(at("2026-06-01T13:00:00Z")).peek(&hourly, "k").remaining, 5);
}

#[test]
fn what_makes_no_sense_is_refused_with_field_and_value() {
    let hour = Duration::from_secs(3_600);
    for (refused, text) in [
        (
            Limit::sliding_window("x", 10_001, hour),
            r#"limit "x": rate is 10001, must be at most 10000, since each take is remembered; declare a sliding_counter"#,
        ),
        (
            of(Kind::SlidingWindow, "x", 5, 1_000).capacity(9),
            r#"limit "x": capacity is 9, which makes no sense on a sliding_window, which admits its rate in a period and no more; leave it out"#,
        ),
        (Limit::concurrency("x", 0, hour), r#"limit "x": max is 0, must be at least 1"#),
        (Limit::concurrency("x", 1, Duration::ZERO), r#"limit "x": ttl is 0 ms, must be at least 1 ms"#),
        (
            tb("x", 10, 1_000).shards(3),
            r#"limit "x": shards is 3, must divide the capacity, which is 10; set that first"#,
        ),
        (tb("x", 10, 1_000).shards(1), r#"limit "x": shards is 1, must be at least 2"#),
        (
            Limit::calendar_quota("x", 1, CalendarUnit::Day, "Mars/Olympus"),
            r#"limit "x": zone is "Mars/Olympus", but `Mars/Olympus` is not a known time zone: write an IANA name such as `Europe/Berlin` or `UTC`"#,
        ),
        (
            Limit::declare_quota("x", &1.into(), &"decade".into(), &"UTC".into()),
            r#"limit "x": unit is "decade", must be "hour", "day", "week", "month" or "year""#,
        ),
        (
            tb("x", 10, 1_000).with(&Map::from([("rat".into(), Value::Int(1))])),
            r#"limit "x": option is "rat", which is unknown; there are rate, period, capacity, max_reserved, min_interval, block_for, shadow, durable, shards"#,
        ),
        (
            tb("x", 10, 1_000).with(&Map::from([("rate".into(), Value::Int(0))])),
            r#"limit "x": rate is 0, must be at least 1"#,
        ),
        (
            tb("x", 10, 1_000).with(&Map::from([("hash_keys".into(), Value::Bool(true))])),
            r#"limit "x": hash_keys is true, which belongs to the declaration; change it there"#,
        ),
    ] {
        assert_eq!(refused.unwrap_err().to_string(), text);
    }
    for option in ["max_reserved", "start", "shards"] {
        let limit = of(Kind::Concurrency, "x", 4, 1_000);
        assert!(limit.apply_option(option, &Value::Int(2)).is_err(), "{option}");
    }
    for kind in Kind::ALL {
        let limit = of(kind, "x", 4, 1_000);
        for (option, value) in [
            ("min_interval", 5.into()),
            ("block_for", "1m".into()),
            ("shadow", Value::Null),
            ("durable", Value::Null),
            ("hash_keys", Value::Null),
        ] {
            limit.apply_option(option, &value).unwrap();
        }
    }
}

#[test]
fn one_call_may_have_other_settings_and_spends_from_the_same_bucket() {
    let limit = tb("x", 10, 1_000);
    let plan = Map::from([
        ("rate".into(), Value::Int(100)),
        ("period".into(), "1s".into()),
        ("max_reserved".into(), Value::Int(5)),
    ]);
    let paid = limit.with(&plan).unwrap();
    assert_eq!((paid.max_tokens(), paid.settings().max_reserved), (100, 5));
    let mut desk = Desk::new();
    assert_eq!(desk.take(&limit, "k", 10).remaining, 0);
    assert_eq!(desk.take(&paid, "k", 1).remaining, 89);
    let kept = tb("x", 10, 1_000).capacity(20).unwrap().with(&Map::from([("rate".into(), Value::Int(5))])).unwrap();
    assert_eq!(kept.max_tokens(), 20, "a capacity of its own does not follow the rate");
}

#[test]
fn shards_answer_as_one_bucket() {
    // SH-1 (all that is one bucket's), SH-2DEAD and SH-4FRESH: a cost up to the capacity on a fresh key is admitted.
    for (shards, rate, n) in [(2, 10, 8), (4, 40, 15), (4, 40, 40)] {
        let limit = tb("x", rate, 1_000).shards(shards).unwrap();
        let mut desk = Desk::new();
        assert!(desk.take(&limit, "k", n).allowed);
        assert!(desk.at(100_000).take(&limit, "k", n).allowed);
        assert_eq!(desk.live(&limit).len(), 1);
        assert_eq!(desk.take(&limit, "k", rate + 1).reason.as_str(), "never");
    }
}

#[test]
fn hashed_keys_are_kept_apart_and_never_stored() {
    let limit = fw("x", 1, 60_000).hash_keys().unwrap();
    let mut desk = Desk::new();
    assert!(desk.peek(&limit, "ada@example.com").allowed);
    for key in ["ada@example.com", "bob@example.com"] {
        assert!(desk.take(&limit, key, 1).allowed);
        assert!(!desk.take(&limit, key, 1).allowed);
    }
    let listed = desk.live(&limit);
    assert_eq!(listed.len(), 2);
    for bucket in &listed {
        assert!(bucket.key.is_hash() && bucket.key.to_string().len() == "hash:".len() + 64, "{}", bucket.key);
        let looked = desk.run(|tx| Ok(super::look(tx, &limit, bucket).0));
        assert!(!looked.allowed);
        assert_eq!(desk.peek(&limit, &bucket.key), looked, "a listed key is looked up as it is");
    }
    let stored: Vec<u8> = desk.rows().iter().flat_map(|(key, value)| [&key[..], &value[..]].concat()).collect();
    assert!(!stored.windows(3).any(|bytes| bytes == b"ada"));
    desk.run(|tx| super::reset(tx, &limit, &"ada@example.com".into()));
    assert!(desk.take(&limit, "ada@example.com", 1).allowed);
    let mut other = Desk::new();
    other.take(&limit, "ada@example.com", 1);
    assert!(!listed.iter().any(|bucket| bucket.key == other.live(&limit)[0].key), "each store has its own secret");
}

#[test]
fn a_look_at_a_hashed_key_writes_nothing() {
    use crate::transaction::Transaction;
    let limit = fw("x", 1, 60_000).hash_keys().unwrap();
    let desk = Desk::new();
    let mut tx = Transaction::over(desk.store.clone(), Timestamp::EPOCH);
    assert!(super::peek(&mut tx, &limit, &"k".into(), cost(1)).unwrap().allowed);
    drop(tx);
    assert!(desk.rows().is_empty());
}

#[test]
fn what_a_sliding_window_remembers_is_bounded_by_its_rate() {
    let limit = of(Kind::SlidingWindow, "x", 100, 60_000);
    let mut desk = Desk::new();
    let size = |desk: &Desk| desk.rows().iter().map(|(key, value)| key.len() + value.len()).max().unwrap();
    for ms in 0..3_000 {
        desk.at(ms * 7).take(&limit, "k", 1);
    }
    let full = size(&desk);
    assert!(full < 100 * 4 + 60, "{full} bytes for a hundred takes");
    for ms in 0..3_000 {
        desk.at(21_000 + ms).charge(&limit, "k", 1);
    }
    assert!(size(&desk) <= full + 100, "charges grow it no further: {}", size(&desk));
    let charged = desk.peek(&limit, "k");
    assert_eq!((charged.used, charged.remaining), (3_100, 0));
    let mut desk = Desk::new();
    (0..1_000).for_each(|_| drop(desk.charge(&limit, "k", 1)));
    assert!(size(&desk) < 60, "one millisecond is one entry");
    for kind in [Kind::FixedWindow, Kind::TokenBucket, Kind::SlidingCounter, Kind::CalendarQuota] {
        let limit = of(kind, "x", 1_000, 60_000).min_interval(Duration::from_millis(1)).unwrap();
        let mut desk = Desk::new();
        (0..500).for_each(|n| drop(desk.at(1_767_225_600_000 + n * 131).take(&limit, "k", 1)));
        desk.run(|tx| super::block(tx, &limit, &"k".into(), 600_000));
        let (key, value) = desk.rows().into_iter().find(|(key, _)| key[0] == b'b').unwrap();
        assert!(value.len() <= 18 + 60, "{kind}: {} bytes under a key of {}", value.len(), key.len());
    }
}

#[test]
fn limits_whose_names_begin_alike_are_listed_apart() {
    let mut desk = Desk::new();
    for name in ["a", "ab", "a\0b", "a\u{1}"] {
        for key in [1, 2] {
            desk.take(&fw(name, 5, 1_000), key, 1);
        }
        desk.take(&fw(name, 5, 1_000), crate::limit::Key::global(), 1);
    }
    for name in ["a", "ab", "a\0b", "a\u{1}"] {
        assert_eq!(desk.live(&fw(name, 5, 1_000)).len(), 3, "{name:?}");
    }
}

#[test]
fn fault_120_fields_tell_of_every_limit_with_its_own_numbers() {
    let (burst, daily) = (fw("burst", 100, 60_000), fw("daily", 1_000, 86_400_000));
    let mut desk = Desk::new();
    desk.take(&daily, "k", 9);
    desk.at(10_000).take(&burst, "k", 49);
    for list in [[demand(&burst, "k", 1), demand(&daily, "k", 1)], [demand(&daily, "k", 1), demand(&burst, "k", 1)]] {
        let taken = desk.at(40_000).run(|tx| super::peek_all(tx, &list));
        assert_eq!(
            taken.headers()[0],
            ("RateLimit-Policy", r#""burst";q=100;w=60, "daily";q=1000;w=86400"#.to_owned())
        );
        assert_eq!(taken.headers()[1], ("RateLimit", r#""burst";r=51;t=30, "daily";r=991;t=86360"#.to_owned()));
    }
    let both = [demand(&burst, "k", 1), demand(&daily, "k", 1)];
    assert_eq!(desk.take_all(&both).headers()[1].1, r#""burst";r=50;t=30, "daily";r=990;t=86360"#);
    assert!(desk.take(&burst, "k", 50).allowed);
    let refused = desk.at(40_001).take_all(&both);
    assert_eq!(refused.headers()[1].1, r#""burst";r=0;t=30, "daily";r=990;t=86360"#);
    assert_eq!(refused.headers()[2], ("Retry-After", "30".to_owned()));
    assert_eq!(
        refused.headers_with_legacy()[3..],
        [
            ("X-RateLimit-Limit", "100".to_owned()),
            ("X-RateLimit-Remaining", "0".to_owned()),
            ("X-RateLimit-Reset", "70".to_owned()),
        ]
    );
    // One limit asked about two keys is told once, as the tighter of them stands.
    let keys = [demand(&burst, "fresh", 1), demand(&burst, "k", 1)];
    assert_eq!(desk.run(|tx| super::peek_all(tx, &keys)).headers()[1].1, r#""burst";r=0;t=30"#);
}
