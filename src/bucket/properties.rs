//! The properties of `limits.md`, section 8, tried on random histories. `PROPTEST_CASES` says how many.

// Steps that only lead up to what is tested need no look at their decisions.
#![allow(unused_must_use)]

use proptest::prelude::*;

use crate::limit::{AllAsked, CalendarUnit, Cost, Kind, Limit, Start};
use crate::time::Timestamp;

use super::Demand;
use super::fixture::{Desk, demand, fw, of, tb};
use super::history::{Op, any_op, beginning, limits, model_step, numbers, other, plain, steady_op, step, tokens, with};
use super::model::Model;

pub(super) fn config(cases: u32) -> ProptestConfig {
    // The environment wins over the number given here. What fails becomes a test with a name, not a file of seeds.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(400))]

    /// All of it at once, properties 2 and 6 included: the model finds waits by trying.
    #[test]
    fn every_answer_is_the_models(
        first in 0..limits().len(), begins in beginning(), ops in prop::collection::vec(any_op(), 1..60),
    ) {
        let mut desk = Desk::new();
        desk.now = begins;
        let mut limit = limits().swap_remove(first);
        let (mut model, mut second, mut ruled) = (Model::new(limit.clone()), Model::new(other()), None);
        for (i, op) in ops.iter().enumerate() {
            let leases = desk.leases.clone();
            let decision = step(&mut desk, &mut limit, op);
            let right = model_step(&mut model, &mut second, &mut ruled, &limit, op, desk.now, &leases);
            prop_assert_eq!(decision.as_ref().map(numbers), right, "step {} {:?} at {} {:?}", i, op, desk.now, limit);
            if let Some(decision) = decision {
                prop_assert!(0 <= decision.remaining && decision.remaining <= decision.limit);
                prop_assert_eq!(decision.allowed, decision.violated.is_empty());
                // Where an operator has lifted the limit, every lease is 0.
                let lease = decision.lease().filter(|lease| *lease != 0);
                prop_assert!(lease.is_none() || lease == model.last_lease());
                // Another kind of limit writes over the row that remembers the last lease.
                let one_kind = !ops.iter().any(|op| matches!(op, Op::Declare(_)));
                let repeats = lease.is_some_and(|lease| leases.contains(&lease));
                prop_assert!(!(one_kind && repeats), "leases never repeat");
            }
        }
    }

    /// Property 3: a refusal is invisible.
    #[test]
    fn dropping_refused_calls_changes_no_later_answer(
        first in 0..plain().len(), begins in beginning(), ops in prop::collection::vec(steady_op(), 1..60),
    ) {
        let (mut all, mut kept) = (Desk::new(), Desk::new());
        (all.now, kept.now) = (begins, begins);
        let mut limit = plain().swap_remove(first);
        for op in &ops {
            let before = all.rows();
            let decision = step(&mut all, &mut limit, op);
            if decision.as_ref().is_some_and(|decision| !decision.allowed) {
                prop_assert_eq!(before, all.rows());
                continue;
            }
            prop_assert_eq!(decision, step(&mut kept, &mut limit, op));
        }
    }

    /// Property 4: sweeping at any moment, or never, changes no answer.
    #[test]
    fn sweeping_changes_no_answer(
        first in 0..limits().len(), begins in beginning(), ops in prop::collection::vec(steady_op(), 1..60),
        declare in 0..limits().len(),
    ) {
        let (mut swept, mut never) = (Desk::new(), Desk::new());
        (swept.now, never.now) = (begins, begins);
        let mut limit = limits().swap_remove(first);
        for (i, op) in ops.iter().enumerate() {
            if i == ops.len() / 2 {
                limit = limits().swap_remove(declare);
            }
            swept.sweep();
            let decision = step(&mut swept, &mut limit, op);
            if !matches!(op, Op::Sweep) {
                prop_assert_eq!(decision, step(&mut never, &mut limit, op));
            }
        }
        for row in swept.rows() {
            prop_assert!(row.0[0] != b'b' || swept.rows().len().is_multiple_of(2), "each row has one entry");
        }
    }

    /// Property 5: permuting changes nothing but the order of names.
    #[test]
    fn the_order_of_a_combination_changes_nothing(
        spent in prop::collection::vec((0..8usize, tokens()), 0..16),
        wanted in prop::collection::vec((0..8usize, tokens()), 1..6).prop_shuffle(),
        turn in 0..6usize,
        now in 0..2_000i64,
    ) {
        let limits = [
            of(Kind::SlidingWindow, "a", 6, 1_000),
            tb("b", 5, 700),
            with(tb("c", 4, 900), &[("min_interval", 300)]),
            fw("d", 6, 800),
            of(Kind::SlidingCounter, "e", 6, 800),
            of(Kind::Concurrency, "f", 6, 900),
            of(Kind::CalendarQuota, "g", 6, 0),
            fw("h", 2, 800).shadow().unwrap(),
        ];
        let demands: Vec<Demand> = wanted.iter().map(|(i, n)| demand(&limits[*i], "k", *n)).collect();
        let mut turned = demands.clone();
        turned.rotate_left(turn % demands.len());
        turned.reverse();
        let mut answers = Vec::new();
        for list in [&demands, &turned] {
            let mut desk = Desk::new();
            for (i, n) in &spent {
                desk.take(&limits[*i], "k", *n);
            }
            let peeked = desk.at(now).run(|tx| super::peek_all(tx, list));
            let mut decision = desk.take_all(list);
            prop_assert_eq!((peeked.allowed, peeked.retry_after, peeked.reason), (decision.allowed, decision.retry_after, decision.reason));
            if !decision.allowed && decision.retry_after > 0 {
                let wait = decision.retry_after;
                prop_assert!(!desk.at(now + wait - 1).run(|tx| super::peek_all(tx, list)).allowed);
                prop_assert!(desk.at(now + wait).run(|tx| super::peek_all(tx, list)).allowed);
            }
            decision.violated.sort_by(|a, b| a.name.cmp(&b.name));
            decision.would_refuse.sort();
            decision.leases.sort_by(|a, b| a.name.cmp(&b.name));
            let headers = decision.headers_with_legacy();
            decision.asked = AllAsked::default();
            answers.push((decision, headers, desk.rows()));
        }
        prop_assert_eq!(&answers[0], &answers[1]);
    }

    /// Property 1: what any span admits.
    #[test]
    fn no_span_admits_more_than_its_bound(
        first in 0..limits().len(), takes in prop::collection::vec((0..300i64, 1..5i64), 1..120), width in 1..4_000i64,
        begins in beginning(), slow in prop::sample::select(vec![1, 1, 100, 40_000, 250_000]),
    ) {
        let limit = limits().swap_remove(first);
        // Leases are not spent but held, and a shadow limit has no bound.
        if limit.kind() == Kind::Concurrency || limit.is_shadow() {
            return Ok(());
        }
        let mut desk = Desk::new();
        desk.now = begins;
        let mut admitted = Vec::new();
        for (ms, n) in takes {
            desk.now += if limit.kind() == Kind::CalendarQuota { ms * slow } else { ms };
            if desk.take(&limit, "k", n).allowed {
                admitted.push((desk.now, n));
            }
        }
        let (rate, period, capacity) = (limit.rate(), limit.period_ms(), limit.max_tokens());
        for (start, _) in &admitted {
            let within = |span: i64| -> i64 {
                admitted.iter().filter(|(ms, _)| (*start..start + span).contains(ms)).map(|(_, n)| n).sum()
            };
            if limit.kind() == Kind::TokenBucket {
                prop_assert!(within(width) * period <= capacity * period + rate * width);
            }
            let told: i64 = limit.describe().split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            let told_span = if limit.kind() == Kind::CalendarQuota { civil_span(&limit) } else { period };
            prop_assert!(within(told_span) <= told, "{} {:?}", limit.describe(), admitted);
        }
    }

    /// Properties 6 and 7: right or refused, at the ends of every range.
    #[test]
    fn extremes_are_right_or_refused(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        unit in prop::sample::select(CalendarUnit::ALL.to_vec()),
        settings in [extreme(), extreme(), extreme(), extreme(), extreme()],
        steps in prop::collection::vec((extreme(), extreme(), 0..6u8), 1..12),
    ) {
        let [rate, period, capacity, ahead, start] = settings;
        let made = match kind {
            Kind::CalendarQuota => Limit::calendar_quota("x", rate, unit, "Europe/Berlin"),
            kind => Limit::of_ms(kind, "x", rate, period),
        };
        let Ok(mut limit) = made else { return Ok(()) };
        if [Kind::FixedWindow, Kind::TokenBucket, Kind::CalendarQuota].contains(&kind) {
            let Ok(other) = limit.capacity(capacity).and_then(|limit| limit.max_reserved(ahead)) else { return Ok(()) };
            limit = other;
        }
        if kind == Kind::FixedWindow && start % 2 == 0 {
            limit = limit.start(Start::At(Timestamp::from_millis(start))).unwrap();
        }
        prop_assert!(limit.rate() >= 1 && limit.period_ms() >= 1 && limit.max_tokens() >= 1);
        let mut desk = Desk::new();
        let key = "k".into();
        for (now, n, what) in steps {
            desk.now = now;
            let n = Cost::new(n).unwrap_or(Cost::ONE);
            let decision = desk.run(|tx| match what {
                0 | 1 => super::take(tx, &limit, &key, n),
                2 => super::reserve(tx, &limit, &key, n),
                3 => super::refund(tx, &limit, &key, n),
                4 => super::charge(tx, &limit, &key, n),
                _ => super::block(tx, &limit, &key, n.tokens()),
            });
            prop_assert!(0 <= decision.remaining && decision.remaining <= limit.max_tokens());
            prop_assert!(decision.retry_after >= 0 && decision.delay >= 0);
            let then = now.saturating_add(decision.retry_after);
            let exact = now.unsigned_abs() <= Timestamp::MAX.as_millis() as u64 && then < i64::MAX && what <= 2;
            if exact && !decision.allowed && decision.retry_after > 0 {
                let mode = |tx: &mut _| match what {
                    2 => super::peek_reserve(tx, &limit, &key, n),
                    _ => super::peek(tx, &limit, &key, n),
                };
                prop_assert!(desk.at(then).run(mode).allowed, "{:?} {:?} {:?}", limit, now, decision);
                prop_assert!(!desk.at(then - 1).run(mode).allowed, "{:?} {:?} {:?}", limit, now, decision);
            }
        }
    }
}

/// A span that every period of a calendar quota has at least.
fn civil_span(limit: &Limit) -> i64 {
    let hour = 3_600_000;
    match limit.settings().calendar.as_ref().unwrap().unit() {
        CalendarUnit::Hour => hour,
        CalendarUnit::Day => 23 * hour,
        CalendarUnit::Week => 167 * hour,
        _ => (28 * 24 - 1) * hour,
    }
}

/// Numbers that like the ends: of `i64`, of the calendar, and the small ones.
fn extreme() -> impl Strategy<Value = i64> {
    let ends =
        vec![i64::MIN, i64::MAX, i64::MAX - 1, 0, 1, 2, 3, 997, 1_000, 1 << 61, 253_402_300_799_999, 31_536_000_000];
    prop_oneof![
        3 => prop::sample::select(ends),
        3 => 1..100_000i64,
        2 => 0..253_402_300_799_999i64,
        1 => any::<i64>(),
    ]
}
