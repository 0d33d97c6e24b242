//! The one reader of `tests/cases/limiter-vectors.json`: what other limiters answer, row by row.
//!
//! Where a row says `D`, or `limits.md` says otherwise, the table of corrections below holds the right answer.

// Steps that only lead up to what is tested need no look at their decisions.
#![allow(unused_must_use)]

use serde_json::{Value as Json, json};

use crate::limit::{Key, Limit, Start};
use crate::time::Timestamp;

use super::fixture::{Desk, cost, demand, fw, tb};

const VECTORS: &str = include_str!("../../tests/cases/limiter-vectors.json");

/// Rows of other layers: jobs, and whole calls.
const LATER: [&str; 4] = ["EM-BACKOFF", "EM-LIFE", "EM-COMP", "TX"];

/// Rows about many buckets for one key, of which this store needs none: the corrections say what one bucket answers.
const SHARDED: [&str; 2] = ["SH-2DEAD", "SH-4FRESH"];

/// Rows in words, each a test of its own below.
const IN_WORDS: [&str; 6] = ["NEG", "DEGENERATE", "MB-LEAK", "MB-ORDER", "GETVALUE", "SH-1"];

/// The right answer at (row, step) where the row's own is not: by its `D`, or by the design.
fn correction(id: &str, step: usize) -> Option<Json> {
    Some(match (id, step) {
        // Exact integers: ten tokens a minute are there after a minute; a wait is a whole number of ms.
        ("TB-DRIFT", 2) => json!({"ok": true}),
        ("TB-FRAC", 1) => json!({"ok": false, "ra": 334}),
        // Small steps back: time stands still.
        ("TB-CLOCKBACK", 1) => json!({"ok": true, "v": 7, "ts": 60000}),
        ("TB-CLOCKBACK", 2) => json!({"ok": true, "v": 6}),
        ("FW-CLOCKBACK", 1) => json!({"ok": true, "v": 7}),
        ("FW-CLOCKBACK", 2) => json!({"ok": true, "v": 6}),
        // A start in the future is a phase.
        ("FW-FUTURE", 0) => json!({"ok": true, "v": 9}),
        ("FW-FUTURE", 1) => json!({"ok": true, "v": 8}),
        // The same reservation fits when one token of debt has worn off; the row gives the wait of a plain take.
        ("TB-RSVMAX", 3) => json!({"ok": false, "ra": 3_600_000}),
        // What is reserved never throws; without `max_reserved` it never fits.
        ("THROWS", 0) => json!({"error": "never"}),
        ("THROWS", 2) => json!({"ok": false, "ra": 3_600_000}),
        // What fits the capacity fits a fresh key, and again when it is full.
        (id, _) if SHARDED.contains(&id) => json!({"ok": true}),
        _ => return None,
    })
}

fn limit(id: &str, row: &Json, kind: &str) -> Limit {
    let cfg = &row["cfg"];
    let (rate, period) = (cfg["rate"].as_i64().unwrap(), cfg["period"].as_i64().unwrap());
    let mut limit = if kind == "token" { tb(id, rate, period) } else { fw(id, rate, period) };
    if let Some(capacity) = cfg["capacity"].as_i64() {
        limit = limit.capacity(capacity).unwrap();
    }
    if let Some(shards) = cfg["shards"].as_i64() {
        limit = limit.shards(shards).unwrap();
    }
    let reserves = row.to_string().contains("\"rsv\":true") && id != "THROWS" || row["pure"].is_array();
    match cfg["maxReserved"].as_i64() {
        Some(tokens) => limit = limit.max_reserved(tokens).unwrap(),
        None if reserves => limit = limit.max_reserved(1_000).unwrap(),
        None => {}
    }
    if let Some(start) = cfg["start"].as_i64() {
        limit = limit.start(Start::At(Timestamp::from_millis(start))).unwrap();
    }
    if let Some(share) = row["rand"].as_f64() {
        // The row's random grid: at 100 000 the window had begun a quarter of a period before.
        let first = 100_000 - (period as f64 * share) as i64;
        limit = limit.start(Start::At(Timestamp::from_millis(first))).unwrap();
    }
    limit
}

fn steps(id: &str, row: &Json, limit: &Limit) {
    let mut desk = Desk::new();
    if let Some(debt) = row["pre"]["key"]["v"].as_i64() {
        desk.charge(limit, "key", limit.max_tokens() - debt);
    }
    for (i, step) in row["steps"].as_array().unwrap().iter().enumerate() {
        let at = format!("{id} step {i} {step}");
        desk.now = step[0].as_i64().unwrap();
        let key = step[2]["key"].as_str().map_or(Key::global(), Key::from);
        if step[1] == "R" {
            desk.run(|tx| super::reset(tx, limit, &key));
            continue;
        }
        let tokens = step[2]["n"].as_i64().unwrap_or(1);
        let reserve = step[2]["rsv"] == true;
        // A cost of 0 is an error here; those rows only look.
        let write = step[1] == "L" && tokens > 0;
        let n = cost(tokens.max(1));
        let decision = desk.run(|tx| match (write, reserve) {
            (true, true) => super::reserve(tx, limit, &key, n),
            (true, false) => super::take(tx, limit, &key, n),
            (false, true) => super::peek_reserve(tx, limit, &key, n),
            (false, false) => super::peek(tx, limit, &key, n),
        });
        let right = correction(id, i).unwrap_or_else(|| step[3].clone());
        if !right["error"].is_null() {
            assert_eq!((decision.reason.as_str(), decision.retry_after), ("never", 0), "{at}");
            continue;
        }
        assert_eq!(Some(decision.allowed), right["ok"].as_bool(), "{at}: {decision:?}");
        if let Some(wait) = right["ra"].as_i64() {
            let told = if decision.allowed { decision.delay } else { decision.retry_after };
            assert_eq!(told, wait, "{at}: {decision:?}");
        }
        if let Some(left) = right["v"].as_i64() {
            assert_eq!(decision.limit - decision.used, left, "{at}: {decision:?}");
            assert_eq!(decision.remaining, left.max(0), "{at}");
        }
        if let Some(since) = right["ts"].as_i64() {
            let listed = desk.live(limit).into_iter().find(|listed| listed.key == key).unwrap();
            assert_eq!(listed.state.since(), since, "{at}");
        }
    }
}

/// Rows `[state, _, n, result]`: what is left after spending `n` with a state of some age.
fn pure(id: &str, row: &Json, limit: &Limit) {
    for case in row["pure"].as_array().unwrap() {
        let at = format!("{id} {case}");
        let mut desk = Desk::new();
        desk.now = 1_000_000;
        if let Some(left) = case[0]["v"].as_i64() {
            desk.take(limit, "k", limit.max_tokens() - left);
        }
        desk.now += case[0]["age"].as_i64().unwrap_or(0);
        let n = case[2].as_i64().unwrap();
        let decision = if n == 0 { desk.peek(limit, "k") } else { desk.reserve(limit, "k", n) };
        assert_eq!(Some(decision.limit - decision.used), case[3]["v"].as_i64(), "{at}");
        assert_eq!(decision.delay, case[3]["ra"].as_i64().unwrap_or(0), "{at}");
        if case[3]["ts"] == "same" {
            assert_eq!(desk.live(limit)[0].state.since(), 1_000_000, "{at}");
        }
    }
}

/// Rows of a cooldown with a quota, and of an aligned window: `[now, answer, wait]`.
fn words(id: &str, row: &Json) {
    let cfg = &row["cfg"];
    let most = cfg["max"].as_i64().or(cfg["limit"].as_i64()).unwrap();
    let made = Limit::of_ms(crate::limit::Kind::FixedWindow, id, most, cfg["win"].as_i64().unwrap());
    if id == "CD-MAX0" {
        // D: a quota of nothing is an error of the declaration.
        assert_eq!(made.unwrap_err().field, "rate");
        return;
    }
    let mut limit = made.unwrap();
    if let Some(ms) = cfg["min"].as_i64() {
        limit = limit.apply_option("min_interval", &ms.into()).unwrap();
    }
    if cfg["aligned"] == true {
        limit = limit.start(Start::Epoch).unwrap();
    }
    let mut desk = Desk::new();
    for step in row["steps"].as_array().unwrap() {
        desk.now = step[0].as_i64().unwrap();
        let decision = desk.take(&limit, "k", 1);
        let told = (decision.reason.as_str(), decision.retry_after);
        let seconds = (told.1 + 999) / 1_000;
        match step[1].as_str().unwrap() {
            "quota" => assert_eq!(told, ("limited", step[2].as_i64().unwrap()), "{id} {step}"),
            "cooldown" => assert_eq!(told, ("cooldown", step[2].as_i64().unwrap()), "{id} {step}"),
            "deny" => assert_eq!(Some(seconds), step[2]["retryAfterSeconds"].as_i64(), "{id} {step}"),
            ok => assert!(ok.starts_with("ok") && decision.allowed, "{id} {step}: {decision:?}"),
        }
    }
}

#[test]
fn every_row_of_the_vectors() {
    let rows: Vec<Json> = serde_json::from_str(VECTORS).unwrap();
    let mut read = 0;
    for row in &rows {
        let id = row["id"].as_str().unwrap();
        if LATER.contains(&id) || IN_WORDS.contains(&id) {
            continue;
        }
        read += 1;
        if row["cfg"]["kind"].is_null() {
            words(id, row);
            continue;
        }
        let kind = row["cfg"]["kind"].as_str().unwrap();
        for kind in if kind == "both" { vec!["token", "window"] } else { vec![kind] } {
            let limit = limit(id, row, kind);
            if row["pure"].is_array() { pure(id, row, &limit) } else { steps(id, row, &limit) }
        }
    }
    assert_eq!(read + LATER.len() + IN_WORDS.len(), rows.len(), "a listed row is not in the file");
}

#[test]
fn neg_a_negative_cost_is_refused_and_credit_stops_at_full() {
    assert!(crate::limit::Cost::new(-3).is_err());
    let limit = tb("NEG", 5, 1_000);
    let mut desk = Desk::new();
    assert_eq!(desk.refund(&limit, "k", 3).remaining, 5);
}

#[test]
fn sh_1_one_bucket_answers_for_all_its_shards() {
    for shards in 1..=4 {
        let spread = |limit: Limit| if shards > 1 { limit.shards(shards).unwrap() } else { limit };
        let limit = spread(tb("SH-1", 1, 1_000).capacity(10 * shards).unwrap().max_reserved(10).unwrap());
        let mut desk = Desk::new();
        desk.take(&limit, "k", 10 * shards - shards);
        assert!(desk.take(&limit, "k", 1).allowed);
        assert_eq!(desk.live(&limit).len(), 1, "one row");
        let mut desk = Desk::new();
        desk.take(&limit, "k", 10 * shards);
        let ahead = desk.reserve(&limit, "k", 1);
        assert!(ahead.allowed && ahead.delay >= 1_000);
        let narrow = spread(tb("SH-1", 1, 1_000).capacity(10 * shards).unwrap().max_reserved(1).unwrap());
        let mut desk = Desk::new();
        desk.take(&narrow, "k", 10 * shards - shards);
        let refused = desk.reserve(&narrow, "k", shards + 2);
        assert!(!refused.allowed && refused.retry_after >= 1_000);
    }
}

#[test]
fn degenerate_settings_are_refused_at_definition() {
    use crate::limit::Kind::{FixedWindow, TokenBucket};
    use crate::value::Value::{self, Float, Int};
    for kind in [TokenBucket, FixedWindow] {
        for (rate, period, field) in [
            (Int(1), Int(0), "period"),
            (Int(1), Int(-1), "period"),
            (Int(1), Float(1e3), "period"),
            (Int(1), "5".into(), "period"),
            (Int(1), Value::Null, "period"),
            (Int(0), Int(1), "rate"),
            (Int(i64::MIN), Int(1), "rate"),
            (Float(0.4), Int(1), "rate"),
            (Value::Null, Int(1), "rate"),
            ("1".into(), Int(1), "rate"),
        ] {
            assert_eq!(Limit::declare(kind, "x", &rate, &period).unwrap_err().field, field, "{rate} {period}");
        }
        let whole = Limit::declare(kind, "x", &Int(1), &"1s".into()).unwrap();
        for (option, value) in [
            ("capacity", Int(0)),
            ("capacity", Float(2.0)),
            ("capacity", Value::Null),
            ("max_reserved", Int(-1)),
            ("max_reserved", Int(i64::MAX)),
            ("min_interval", Int(0)),
            ("min_interval", "5".into()),
            ("min_interval", Int(i64::MAX)),
            ("start", "noon".into()),
            ("start", Float(0.0)),
            ("durable", Int(1)),
            ("capcity", Int(1)),
        ] {
            assert!(whole.apply_option(option, &value).is_err(), "{option} {value}");
        }
    }
    let senseless = tb("x", 1, 1).start(Start::Epoch).unwrap_err();
    let text =
        r#"limit "x": start is "epoch", which makes no sense on a token_bucket, which has no windows; leave it out"#;
    assert_eq!(senseless.to_string(), text);
}

#[test]
fn mb_leak_a_refused_combination_spends_nothing() {
    let (thread, global) = (fw("thread", 3, 1_000), fw("global", 1, 1_000));
    let mut desk = Desk::new();
    assert!(desk.take_all(&[demand(&thread, "B", 1), demand(&global, "", 1)]).allowed);
    let refused = desk.take_all(&[demand(&thread, "A", 1), demand(&global, "", 1)]);
    assert!(!refused.allowed && &*refused.violated[0].name == "global" && refused.violated.len() == 1);
    assert_eq!(desk.peek(&thread, "A").remaining, 3);
    assert_eq!(desk.live(&thread).len(), 1, "the refused key has no bucket");
    desk.now = 1_000;
    assert!(desk.take_all(&[demand(&thread, "A", 1), demand(&global, "", 1)]).allowed);
    assert_eq!(desk.peek(&thread, "A").remaining, 2);
}

#[test]
fn mb_order_the_same_bucket_twice_is_charged_the_sum() {
    let limit = tb("x", 2, 1_000);
    let mut desk = Desk::new();
    desk.take(&limit, "k", 1);
    let twice = [demand(&limit, "k", 1), demand(&limit, "k", 1)];
    let refused = desk.take_all(&twice);
    assert_eq!((refused.allowed, refused.retry_after, refused.violated.len()), (false, 500, 1));
    assert_eq!(desk.peek(&limit, "k").remaining, 1);
    assert!(desk.at(500).take_all(&twice).allowed);
    let overflow: Vec<_> = (0..3).map(|_| demand(&limit, "k", i64::MAX)).collect();
    assert_eq!(desk.take_all(&overflow).reason.as_str(), "never");
}

#[test]
fn one_bucket_named_with_several_settings_is_charged_the_sum() {
    let (small, large) = (tb("x", 5, 1_000), tb("x", 9, 1_000));
    let mut answers = Vec::new();
    for (first, second) in [(&small, &large), (&large, &small)] {
        let mut desk = Desk::new();
        let decision = desk.take_all(&[demand(first, "k", 2), demand(second, "k", 2)]);
        assert_eq!((decision.allowed, desk.peek(&small, "k").used), (true, 4));
        answers.push((decision, desk.take_all(&[demand(first, "k", 1), demand(second, "k", 1)]), desk.rows()));
    }
    assert!(!answers[0].1.allowed);
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn getvalue_what_an_unused_bucket_shows() {
    for limit in [tb("GETVALUE", 10, 1_000), fw("GETVALUE", 10, 1_000)] {
        let mut desk = Desk::new();
        let fresh = desk.peek(&limit, "k");
        assert_eq!((fresh.limit, fresh.remaining, fresh.used, fresh.reset_at.as_millis()), (10, 10, 0, 0));
        desk.take(&limit, "k", 4);
        assert_eq!(desk.peek(&limit, "k").remaining, 6);
    }
}

#[test]
fn randstart_the_grid_is_stable_and_spread() {
    let limit = fw("FW-RANDSTART", 10, 60_000).start(Start::Random).unwrap();
    let mut desk = Desk::new();
    let mut starts = Vec::new();
    for key in 0..50 {
        desk.now = 100_000;
        desk.take(&limit, key, 1);
        let since = desk.live(&limit).into_iter().find(|listed| listed.key == Key::from(key)).unwrap().state.since();
        assert!(since > 40_000 && since <= 100_000);
        starts.push(since);
        desk.at(since + 60_000).take(&limit, key, 10);
        assert_eq!(desk.peek(&limit, key).reset_at.as_millis(), since + 120_000, "the same grid again");
    }
    starts.sort_unstable();
    starts.dedup();
    assert!(starts.len() > 40, "keys share their grid: {starts:?}");
}
