//! The properties of `limits.md`, section 8, tried on random histories. `PROPTEST_CASES` says how many.

// Steps that only lead up to what is tested need no look at their decisions.
#![allow(unused_must_use)]

use proptest::prelude::*;

use crate::limit::{CalendarUnit, Cost, Decision, Kind, Limit, Start};
use crate::time::Timestamp;
use crate::value::Value;

use super::Demand;
use super::fixture::{Desk, cost, demand, fw, of, tb};
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
    /// With the lease given out so many leases ago.
    Renew(usize),
    Release(usize),
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
        of(Kind::SlidingWindow, "x", 4, 1_000),
        with(of(Kind::SlidingWindow, "x", 9, 700), &[("min_interval", 90)]),
        of(Kind::SlidingCounter, "x", 5, 1_000),
        with(of(Kind::SlidingCounter, "x", 10, 333), &[("min_interval", 40)]),
        of(Kind::Concurrency, "x", 3, 1_000),
        with(of(Kind::Concurrency, "x", 8, 400), &[("min_interval", 100)]),
        of(Kind::CalendarQuota, "x", 4, 0),
        with(berlin(CalendarUnit::Day, 3), &[("capacity", 7), ("max_reserved", 2)]),
        with(berlin(CalendarUnit::Week, 5), &[("min_interval", 1_000)]),
        with(berlin(CalendarUnit::Month, 5), &[("capacity", 2)]),
        with(fw("x", 3, 1_000), &[("block_for", 2_500)]),
        with(tb("x", 5, 1_000), &[("block_for", 700), ("min_interval", 50), ("max_reserved", 2)]),
        with(of(Kind::SlidingWindow, "x", 3, 800), &[("block_for", 300)]),
        with(of(Kind::Concurrency, "x", 2, 800), &[("block_for", 300)]),
        fw("x", 3, 1_000).shadow().unwrap(),
        with(of(Kind::SlidingCounter, "x", 4, 600).shadow().unwrap(), &[("block_for", 900)]),
    ]
}

fn berlin(unit: CalendarUnit, rate: i64) -> Limit {
    Limit::calendar_quota("x", rate, unit, "Europe/Berlin").unwrap()
}

/// The limits whose refusals change nothing.
fn plain() -> Vec<Limit> {
    limits().into_iter().filter(|limit| limit.settings().block_for_ms == 0).collect()
}

/// Some while after the epoch, before summer time begins in Berlin, and in December.
fn beginning() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![1_000_000, 1_774_736_000_000, 1_798_671_599_000])
}

/// Steps of the clock that are often just at an edge.
fn span() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..400i64,
        2 => 0..3_000i64,
        2 => prop::sample::select(vec![1, 99, 100, 143, 333, 334, 700, 999, 1_000, 1_001, 6_000]),
        1 => 0..100_000i64,
        1 => prop::sample::select(vec![1_800_000, 3_599_999, 3_600_000, 82_800_000, 86_400_000, 700_000_000]),
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
        2 => (0..4usize).prop_map(Op::Renew),
        2 => (0..4usize).prop_map(Op::Release),
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

/// The lease given out `ago` leases ago; one that never was when there are not so many.
fn lease(desk: &Desk, ago: usize) -> i64 {
    desk.leases.iter().rev().nth(ago).copied().unwrap_or(77)
}

/// Runs one step on the engine; the answer, if the step has one.
fn step(desk: &mut Desk, limit: &mut Limit, op: &Op) -> Option<Decision> {
    let key = "k".into();
    let decision = match op {
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
        Op::Renew(_) | Op::Release(_) if limit.kind() != Kind::Concurrency => return None,
        Op::Renew(ago) => {
            let lease = lease(desk, *ago);
            desk.run(|tx| super::lease::renew(tx, limit, &key, lease))
        }
        Op::Release(ago) => {
            let lease = lease(desk, *ago);
            desk.run(|tx| super::lease::release(tx, limit, &key, lease))
        }
        Op::Both(a, b) => desk.take_all(&[demand(limit, "k", *a), demand(&other(), "k", *b)]),
    };
    desk.leases.extend(decision.lease());
    Some(decision)
}

/// The same step on the model: `(allowed, retry_after, remaining, used, reset_at, delay)`.
fn model_step(
    model: &mut Model,
    second: &mut Model,
    limit: &Limit,
    op: &Op,
    now: i64,
    leases: &[i64],
) -> Option<[i64; 6]> {
    let mut seen = model.seen(limit, now);
    let ahead = limit.settings().max_reserved;
    let mut delay = 0;
    let mut verdict = match op {
        Op::Forward(_) | Op::Back(_) | Op::Declare(_) => return None,
        Op::Renew(_) | Op::Release(_) if limit.kind() != Kind::Concurrency => return None,
        Op::Reset => {
            *model = model.reset(limit, now);
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
            let ahead = if reserve { ahead } else { 0 };
            let verdict = seen.verdict(now, *n, ahead);
            if verdict.0 {
                seen.spend(*n, true);
                seen.written(now);
                delay = if reserve { seen.delay(now) } else { 0 };
                *model = seen.clone();
            } else if seen.blocks(*n, ahead) {
                seen.block_after_refusal(now);
                *model = seen.clone();
            } else if seen.reanchored {
                seen.kept(now);
                *model = seen.clone();
            }
            verdict
        }
        Op::Renew(ago) | Op::Release(ago) => {
            let lease = leases.iter().rev().nth(*ago).copied().unwrap_or(77);
            let held = seen.on_lease(lease, matches!(op, Op::Renew(_)));
            if held {
                seen.written(now);
                *model = seen.clone();
            } else if seen.reanchored {
                seen.kept(now);
                *model = seen.clone();
            }
            return Some([held.into(), 0, seen.remaining(), seen.used(), seen.reset_at(now), 0]);
        }
        Op::Refund(_) | Op::Charge(_) | Op::Block(_) | Op::Unblock => {
            let leased = limit.kind() == Kind::Concurrency && matches!(op, Op::Refund(_) | Op::Charge(_));
            let untouched = matches!(op, Op::Refund(_)) && seen.is_empty() || matches!(op, Op::Unblock) || leased;
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
            let blocks = seen.blocks(*a, 0);
            let shadow = limit.is_shadow();
            let never = [(first, shadow), (then, false)]
                .iter()
                .any(|(verdict, shadow)| !verdict.0 && verdict.1 == 0 && !shadow);
            let allowed = (first.0 || shadow) && then.0;
            for (stored, bucket, n, fits) in [(model, &mut seen, a, first.0), (second, &mut seen_other, b, then.0)] {
                if allowed && fits {
                    bucket.spend(*n, true);
                    bucket.written(now);
                } else if !fits && bucket.limit.name() == limit.name() && blocks {
                    bucket.block_after_refusal(now);
                } else if bucket.reanchored {
                    bucket.kept(now);
                } else {
                    continue;
                }
                *stored = bucket.clone();
            }
            let wait = if never { 0 } else { if shadow { 0 } else { first.1 }.max(then.1) };
            if shadow || seen_other.remaining() < seen.remaining() {
                seen = seen_other;
            }
            (allowed, wait)
        }
    };
    if limit.is_shadow() && !matches!(op, Op::Both(..)) {
        verdict = (true, 0);
    }
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
    fn every_answer_is_the_models(
        first in 0..limits().len(), begins in beginning(), ops in prop::collection::vec(any_op(), 1..60),
    ) {
        let mut desk = Desk::new();
        desk.now = begins;
        let mut limit = limits().swap_remove(first);
        let (mut model, mut second) = (Model::new(limit.clone()), Model::new(other()));
        for (i, op) in ops.iter().enumerate() {
            let leases = desk.leases.clone();
            let decision = step(&mut desk, &mut limit, op);
            let right = model_step(&mut model, &mut second, &limit, op, desk.now, &leases);
            prop_assert_eq!(decision.as_ref().map(numbers), right, "step {} {:?} at {} {:?}", i, op, desk.now, limit);
            if let Some(decision) = decision {
                prop_assert!(0 <= decision.remaining && decision.remaining <= decision.limit);
                prop_assert_eq!(decision.allowed, decision.violated.is_empty());
                prop_assert!(decision.lease().is_none() || decision.lease() == model.last_lease());
                // Another kind of limit writes over the row that remembers the last lease.
                let one_kind = !ops.iter().any(|op| matches!(op, Op::Declare(_)));
                let repeats = decision.lease().is_some_and(|lease| leases.contains(&lease));
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
            answers.push((decision, desk.rows()));
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
