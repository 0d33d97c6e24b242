//! Random histories of one bucket: their steps, run on the engine and on the model.

use proptest::prelude::*;

use crate::limit::{CalendarUnit, Decision, Kind, Limit, Start};
use crate::time::Timestamp;
use crate::value::{Map, Value};

use super::fixture::{Desk, cost, demand, fw, of, tb};
use super::model::{Model, Ruled};
use super::ruling;
use crate::limit::{Decided, Override};

/// One step of a history.
#[derive(Clone, Debug)]
pub(super) enum Op {
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
    /// An operator decides this, for so long.
    Rule(usize, i64),
    Revoke,
}

pub(super) fn with(limit: Limit, options: &[(&str, i64)]) -> Limit {
    options.iter().fold(limit, |limit, (option, n)| limit.apply_option(option, &Value::Int(*n)).unwrap())
}

/// Settings that one name gets in turn.
pub(super) fn limits() -> Vec<Limit> {
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

/// What an operator decides in turn; what makes refusals block the key comes last.
fn decided() -> Vec<Decided> {
    let settings = |fields: &[(&str, Value)]| {
        Decided::Settings(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Map>())
    };
    vec![
        Decided::Allow,
        Decided::Ban,
        settings(&[("rate", Value::Int(6))]),
        settings(&[("max", Value::Int(1))]),
        settings(&[("capacity", Value::Int(12))]),
        settings(&[("rate", Value::Int(2)), ("period", Value::Int(1_700))]),
        settings(&[("capacity", Value::Int(2)), ("max_reserved", Value::Int(5))]),
        settings(&[("shadow", Value::Bool(true))]),
        settings(&[("shadow", Value::Bool(false)), ("min_interval", Value::Int(120))]),
        settings(&[("block_for", Value::Int(450))]),
    ]
}

fn berlin(unit: CalendarUnit, rate: i64) -> Limit {
    Limit::calendar_quota("x", rate, unit, "Europe/Berlin").unwrap()
}

/// The limits whose refusals change nothing.
pub(super) fn plain() -> Vec<Limit> {
    limits().into_iter().filter(|limit| limit.settings().block_for_ms == 0).collect()
}

/// Some while after the epoch, before summer time begins in Berlin, and in December.
pub(super) fn beginning() -> impl Strategy<Value = i64> {
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

pub(super) fn tokens() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 1..4i64, 1 => 1..12i64]
}

pub(super) fn steady_op() -> impl Strategy<Value = Op> {
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
        2 => (0..decided().len() - 1, span()).prop_map(|(i, ms)| Op::Rule(i, ms)),
        1 => Just(Op::Revoke),
    ]
}

pub(super) fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => steady_op(),
        2 => span().prop_map(Op::Back),
        2 => (0..limits().len()).prop_map(Op::Declare),
        1 => (0..decided().len(), span()).prop_map(|(i, ms)| Op::Rule(i, ms)),
    ]
}

pub(super) fn other() -> Limit {
    fw("y", 4, 1_500)
}

/// The lease given out `ago` leases ago; one that never was when there are not so many.
fn lease(desk: &Desk, ago: usize) -> i64 {
    desk.leases.iter().rev().nth(ago).copied().unwrap_or(77)
}

/// Runs one step on the engine; the answer, if the step has one.
pub(super) fn step(desk: &mut Desk, limit: &mut Limit, op: &Op) -> Option<Decision> {
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
        Op::Rule(i, ms) => {
            let until = Timestamp::from_millis(desk.now + ms);
            let ruling = Override { decided: decided().swap_remove(*i), until };
            desk.run(|tx| ruling::rule(tx, limit, &key, &ruling));
            return None;
        }
        Op::Revoke => {
            desk.run(|tx| ruling::revoke(tx, limit, &key));
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
pub(super) fn model_step(
    model: &mut Model,
    second: &mut Model,
    stored: &mut Option<(Decided, i64)>,
    file: &Limit,
    op: &Op,
    now: i64,
    leases: &[i64],
) -> Option<[i64; 6]> {
    // Settings that the limit cannot have leave it as it is.
    let decided = stored.as_ref().filter(|(_, until)| *until > now && model.is_ruled(now)).cloned();
    let other_limit = match &decided {
        Some((Decided::Settings(changes), _)) => file.with(changes).ok(),
        _ => None,
    };
    let limit = other_limit.as_ref().unwrap_or(file);
    let ruled = match decided {
        Some((Decided::Allow, _)) => Some(Ruled::Allow),
        Some((Decided::Ban, until)) => Some(Ruled::Ban(until)),
        _ => None,
    };
    let banned = matches!(ruled, Some(Ruled::Ban(_)));
    let mut seen = model.seen(limit, now);
    seen.ruling = ruled;
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
            *stored = stored.take().filter(|(_, until)| *until > now);
            return None;
        }
        Op::Rule(_, _) | Op::Revoke => {
            *stored = match op {
                Op::Rule(i, ms) if *ms > 0 => Some((self::decided().swap_remove(*i), now + ms)),
                _ => None,
            };
            seen.ruled_until = stored.as_ref().map(|(_, until)| *until);
            *model = seen.kept(now);
            return None;
        }
        Op::Peek(n) => seen.verdict(now, *n, 0),
        Op::Take(n) | Op::Reserve(n) => {
            let reserve = matches!(op, Op::Reserve(_));
            let ahead = if reserve { ahead } else { 0 };
            let verdict = seen.verdict(now, *n, ahead);
            if verdict.0 {
                *model = seen.accept(*n, now);
                delay = if reserve { seen.delay(now) } else { 0 };
            } else if seen.blocks(now, *n, ahead) {
                seen.block_after_refusal(now);
                *model = seen.clone();
            } else if seen.reanchored {
                *model = seen.kept(now);
            }
            verdict
        }
        Op::Renew(ago) | Op::Release(ago) => {
            let lease = leases.iter().rev().nth(*ago).copied().unwrap_or(77);
            let lifted = lease == 0 && ruled == Some(Ruled::Allow);
            let held = lifted || seen.on_lease(lease, matches!(op, Op::Renew(_)));
            if lifted {
                *model = seen.kept(now);
            } else if held {
                seen.written(now);
                *model = seen.clone();
            } else if seen.reanchored {
                *model = seen.kept(now);
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
                *model = seen.kept(now);
            } else {
                seen.written(now);
                *model = seen.clone();
            }
            (true, 0)
        }
        Op::Both(a, b) => {
            let mut seen_other = second.seen(&other(), now);
            let (first, then) = (seen.verdict(now, *a, 0), seen_other.verdict(now, *b, 0));
            let blocks = seen.blocks(now, *a, 0);
            let shadow = limit.is_shadow() && !banned;
            let never = [(first, shadow), (then, false)]
                .iter()
                .any(|(verdict, shadow)| !verdict.0 && verdict.1 == 0 && !shadow);
            let allowed = (first.0 || shadow) && then.0;
            for (stored, bucket, n, fits) in [(model, &mut seen, a, first.0), (second, &mut seen_other, b, then.0)] {
                *stored = if allowed && fits {
                    bucket.accept(*n, now)
                } else if !fits && bucket.limit.name() == limit.name() && blocks {
                    bucket.block_after_refusal(now);
                    bucket.clone()
                } else if bucket.reanchored {
                    bucket.kept(now)
                } else {
                    continue;
                };
            }
            let wait = if never { 0 } else { if shadow { 0 } else { first.1 }.max(then.1) };
            if shadow || seen_other.remaining() < seen.remaining() {
                seen = seen_other;
            }
            (allowed, wait)
        }
    };
    if limit.is_shadow() && !banned && !matches!(op, Op::Both(..)) {
        verdict = (true, 0);
    }
    Some([verdict.0.into(), verdict.1, seen.remaining(), seen.used(), seen.reset_at(now), delay])
}

pub(super) fn numbers(decision: &Decision) -> [i64; 6] {
    let reset_at = decision.reset_at.as_millis();
    [decision.allowed.into(), decision.retry_after, decision.remaining, decision.used, reset_at, decision.delay]
}
