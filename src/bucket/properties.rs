//! The properties of `limits.md`, section 8, tried on random histories. `PROPTEST_CASES` says how many.

// Steps that only lead up to what is tested need no look at their decisions.
#![allow(unused_must_use)]

use proptest::prelude::*;

use crate::limit::{Cost, Decision, Kind, Limit, Start};
use crate::time::Timestamp;
use crate::value::Value;

use super::Demand;
use super::fixture::{Desk, cost, demand, fw, tb};
use super::model::Model;

/// One step of a history.
#[derive(Clone, Debug)]
enum Op {
    Forward(i64),
    Back(i64),
    Take(i64),
    Peek(i64),
    Reserve(i64),
    Refund(i64),
    Charge(i64),
    Block(i64),
    Unblock,
    Reset,
    Sweep,
    /// Both limits at once.
    Both(i64, i64),
    /// From here on the limit has these settings.
    Declare(usize),
}

fn with(limit: Limit, options: &[(&str, i64)]) -> Limit {
    options.iter().fold(limit, |limit, (option, n)| limit.apply_option(option, &Value::Int(*n)).unwrap())
}

/// Settings that one name gets in turn.
fn limits() -> Vec<Limit> {
    vec![
        tb("x", 3, 1_000),
        with(tb("x", 7, 1_000), &[("capacity", 20)]),
        with(tb("x", 1, 6_000), &[("capacity", 2), ("max_reserved", 3)]),
        with(tb("x", 997, 1_000), &[("capacity", 5), ("min_interval", 150)]),
        with(tb("x", 3, 700), &[("capacity", 9), ("max_reserved", 4), ("min_interval", 90)]),
        fw("x", 10, 1_000),
        with(fw("x", 3, 1_000), &[("capacity", 8)]),
        fw("x", 5, 700).start(Start::Epoch).unwrap(),
        with(fw("x", 5, 1_000), &[("capacity", 3), ("max_reserved", 6)]),
        with(fw("x", 4, 900), &[("min_interval", 250), ("start", 123)]),
        with(fw("x", 2, 400), &[("capacity", 7), ("min_interval", 3_000)]),
    ]
}

/// Steps of the clock that are often just at an edge.
fn span() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..400i64,
        2 => 0..3_000i64,
        2 => prop::sample::select(vec![1, 99, 100, 143, 333, 334, 700, 999, 1_000, 1_001, 6_000]),
        1 => 0..100_000i64,
    ]
}

fn tokens() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 1..4i64, 1 => 1..12i64]
}

fn steady_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => span().prop_map(Op::Forward),
        8 => tokens().prop_map(Op::Take),
        2 => tokens().prop_map(Op::Peek),
        3 => tokens().prop_map(Op::Reserve),
        3 => tokens().prop_map(Op::Refund),
        1 => tokens().prop_map(Op::Charge),
        1 => span().prop_map(Op::Block),
        1 => Just(Op::Unblock),
        1 => Just(Op::Reset),
        2 => Just(Op::Sweep),
        3 => (tokens(), tokens()).prop_map(|(a, b)| Op::Both(a, b)),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => steady_op(),
        2 => span().prop_map(Op::Back),
        2 => (0..limits().len()).prop_map(Op::Declare),
    ]
}

fn other() -> Limit {
    fw("y", 4, 1_500)
}

/// Runs one step on the engine; the answer, if the step has one.
fn step(desk: &mut Desk, limit: &mut Limit, op: &Op) -> Option<Decision> {
    Some(match op {
        Op::Forward(ms) => {
            desk.now += ms;
            return None;
        }
        Op::Back(ms) => {
            desk.now -= ms;
            return None;
        }
        Op::Declare(i) => {
            *limit = limits().swap_remove(*i);
            return None;
        }
        Op::Sweep => {
            desk.sweep();
            return None;
        }
        Op::Reset => {
            desk.run(|tx| super::reset(tx, limit, &"k".into()));
            return None;
        }
        Op::Take(n) => desk.take(limit, "k", *n),
        Op::Peek(n) => desk.run(|tx| super::peek(tx, limit, &"k".into(), cost(*n))),
        Op::Reserve(n) => desk.reserve(limit, "k", *n),
        Op::Refund(n) => desk.refund(limit, "k", *n),
        Op::Charge(n) => desk.charge(limit, "k", *n),
        Op::Block(ms) => desk.run(|tx| super::block(tx, limit, &"k".into(), *ms)),
        Op::Unblock => desk.run(|tx| super::unblock(tx, limit, &"k".into())),
        Op::Both(a, b) => desk.take_all(&[demand(limit, "k", *a), demand(&other(), "k", *b)]),
    })
}

/// The same step on the model: `(allowed, retry_after, remaining, used, reset_at, delay)`.
fn model_step(model: &mut Model, second: &mut Model, limit: &Limit, op: &Op, now: i64) -> Option<[i64; 6]> {
    let mut seen = model.seen(limit, now);
    let ahead = limit.settings().max_reserved;
    let mut delay = 0;
    let verdict = match op {
        Op::Forward(_) | Op::Back(_) | Op::Declare(_) => return None,
        Op::Reset => {
            *model = Model::new(limit.clone());
            return None;
        }
        // What is swept stays forgotten even when the clock is put back.
        Op::Sweep => {
            for bucket in [model, second] {
                bucket.sweep(now);
            }
            return None;
        }
        Op::Peek(n) => seen.verdict(now, *n, 0),
        Op::Take(n) | Op::Reserve(n) => {
            let reserve = matches!(op, Op::Reserve(_));
            let verdict = seen.verdict(now, *n, if reserve { ahead } else { 0 });
            if verdict.0 {
                seen.spend(*n, true);
                seen.written(now);
                delay = if reserve { seen.delay(now) } else { 0 };
                *model = seen.clone();
            } else if seen.reanchored {
                seen.kept(now);
                *model = seen.clone();
            }
            verdict
        }
        Op::Refund(_) | Op::Charge(_) | Op::Block(_) | Op::Unblock => {
            let untouched = matches!(op, Op::Refund(_)) && seen.is_empty() || matches!(op, Op::Unblock);
            match op {
                Op::Refund(n) => seen.give(*n),
                Op::Charge(n) => seen.spend(*n, false),
                Op::Block(ms) => seen.block(Some(*ms)),
                _ => seen.block(None),
            }
            if untouched {
                seen.kept(now)
            } else {
                seen.written(now)
            };
            *model = seen.clone();
            (true, 0)
        }
        Op::Both(a, b) => {
            let mut seen_other = second.seen(&other(), now);
            let (first, then) = (seen.verdict(now, *a, 0), seen_other.verdict(now, *b, 0));
            let never = [(a, &first), (b, &then)].iter().any(|(_, verdict)| !verdict.0 && verdict.1 == 0);
            if first.0 && then.0 {
                for (bucket, n) in [(&mut seen, a), (&mut seen_other, b)] {
                    bucket.spend(*n, true);
                    bucket.written(now);
                }
            }
            for (stored, bucket) in [(model, &mut seen), (second, &mut seen_other)] {
                if first.0 && then.0 {
                    *stored = bucket.clone();
                } else if bucket.reanchored {
                    bucket.kept(now);
                    *stored = bucket.clone();
                }
            }
            let wait = if never { 0 } else { first.1.max(then.1) };
            if seen_other.remaining() < seen.remaining() {
                seen = seen_other;
            }
            (first.0 && then.0, wait)
        }
    };
    Some([verdict.0.into(), verdict.1, seen.remaining(), seen.used(), seen.reset_at(now), delay])
}

fn numbers(decision: &Decision) -> [i64; 6] {
    let reset_at = decision.reset_at.as_millis();
    [decision.allowed.into(), decision.retry_after, decision.remaining, decision.used, reset_at, decision.delay]
}

fn config(cases: u32) -> ProptestConfig {
    // The environment wins over the number given here. What fails becomes a test with a name, not a file of seeds.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(400))]

    /// All of it at once, properties 2 and 6 included: the model finds waits by trying.
    #[test]
    fn every_answer_is_the_models(first in 0..limits().len(), ops in prop::collection::vec(any_op(), 1..60)) {
        let mut desk = Desk::new();
        desk.now = 1_000_000;
        let mut limit = limits().swap_remove(first);
        let (mut model, mut second) = (Model::new(limit.clone()), Model::new(other()));
        for (i, op) in ops.iter().enumerate() {
            let decision = step(&mut desk, &mut limit, op);
            let right = model_step(&mut model, &mut second, &limit, op, desk.now);
            prop_assert_eq!(decision.as_ref().map(numbers), right, "step {} {:?} at {} {:?}", i, op, desk.now, limit);
            if let Some(decision) = decision {
                prop_assert!(0 <= decision.remaining && decision.remaining <= decision.limit);
                prop_assert_eq!(decision.allowed, decision.violated.is_empty());
            }
        }
    }

    /// Property 3: a refusal is invisible.
    #[test]
    fn dropping_refused_calls_changes_no_later_answer(
        first in 0..limits().len(), ops in prop::collection::vec(steady_op(), 1..60),
    ) {
        let (mut all, mut kept) = (Desk::new(), Desk::new());
        let mut limit = limits().swap_remove(first);
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
        first in 0..limits().len(), ops in prop::collection::vec(steady_op(), 1..60), declare in 0..limits().len(),
    ) {
        let (mut swept, mut never) = (Desk::new(), Desk::new());
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
        spent in prop::collection::vec((0..4usize, tokens()), 0..12),
        wanted in prop::collection::vec((0..4usize, tokens()), 1..6).prop_shuffle(),
        turn in 0..6usize,
        now in 0..2_000i64,
    ) {
        let limits = [fw("a", 6, 1_000), tb("b", 5, 700), with(tb("c", 4, 900), &[("min_interval", 300)]), fw("d", 6, 800)];
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
            answers.push((decision, desk.rows()));
        }
        prop_assert_eq!(&answers[0], &answers[1]);
    }

    /// Property 1: what any span admits.
    #[test]
    fn no_span_admits_more_than_its_bound(
        first in 0..limits().len(), takes in prop::collection::vec((0..300i64, 1..5i64), 1..120), width in 1..4_000i64,
    ) {
        let limit = limits().swap_remove(first);
        let mut desk = Desk::new();
        let mut admitted = Vec::new();
        for (ms, n) in takes {
            desk.now += ms;
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
            prop_assert!(within(period) <= told);
        }
    }

    /// Properties 6 and 7: right or refused, at the ends of every range.
    #[test]
    fn extremes_are_right_or_refused(
        kind in prop::sample::select(vec![Kind::FixedWindow, Kind::TokenBucket]),
        settings in [extreme(), extreme(), extreme(), extreme(), extreme()],
        steps in prop::collection::vec((extreme(), extreme(), 0..6u8), 1..12),
    ) {
        let [rate, period, capacity, ahead, start] = settings;
        let made = Limit::of_ms(kind, "x", rate, period)
            .and_then(|limit| limit.capacity(capacity))
            .and_then(|limit| limit.max_reserved(ahead));
        let Ok(mut limit) = made else { return Ok(()) };
        if kind == Kind::FixedWindow && start % 2 == 0 {
            limit = limit.start(Start::At(Timestamp::from_millis(start))).unwrap();
        }
        prop_assert!(rate >= 1 && period >= 1 && capacity >= 1 && ahead >= 0);
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
