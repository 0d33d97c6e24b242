//! Explanations checked: what they show, in which order, and that nothing of them stays.

use std::sync::Arc;
use std::time::Duration;

use super::explain::Explanation;
use super::{CallOptions, Engine};
use crate::error::Error;
use crate::job::list::JobFilter;
use crate::limit::Decided;
use crate::outcome::Outcome;
use crate::script::{Arguments, Budget};
use crate::time::{ManualClock, Timestamp};
use crate::trace::{Consulted, Looked, Queued, Step, Wrote};
use crate::value::{Map, Value};

const FILE: &str = r#"
    const API = fixed_window("api", 2, "1m").start("epoch");
    const DAY = fixed_window("day", 1, "1h").start("epoch");
    const SHY = fixed_window("shy", 1, "1m").start("epoch").shadow();
    collection("users").index("email");
    fn several(user) { take_all([[API, user], [DAY, user]]).allowed }
    fn all_kinds(user) {
        API.peek(user); API.take(user); API.refund(user, 1); API.charge(user, 2); API.block(user, "5s"); API.unblock(user);
        API.reset(user); SHY.take(user); SHY.take(user);
    }
    fn guard(user) { API.enforce(user); API.enforce(user); API.enforce(user); }
    fn write_and_stop() { insert("users", #{ _id: "1" }); abort("no") }
    fn write_and_fail() { insert("users", #{ _id: "1" }); throw "no" }
    fn write(user) {
        API.take(user);
        insert("users", #{ _id: "1", email: "a@x", n: 1 });
        upsert("users", #{ email: "b@x" }, #{ "$set": #{ _id: "2" } });
        update("users", #{ email: "a@x" }, #{ "$set": #{ n: 2 } });
        let found = [get("users", "1").n, count("users", #{ n: #{ "$gte": 1, "$lt": 9 } }), exists("users", #{ n: 7 })];
        delete_one("users", #{ _id: "2" });
        print("done");
        found
    }
    fn tried(user) {
        API.take(user);
        attempt(|| { API.take(user); API.peek(user); insert("users", #{ _id: "9" }); throw "no" });
    }
    fn look() { find("users", #{ n: 7 }) }
    fn greedy() { for n in 0..5000 { API.peek("a"); API.peek("b"); API.peek("c"); } }
"#;

fn engine() -> (Engine, Arc<ManualClock>) {
    engine_of(FILE)
}

fn engine_of(file: &str) -> (Engine, Arc<ManualClock>) {
    let clock = ManualClock::at(Timestamp::from_millis(3_600_000));
    let engine = Engine::builder().memory().clock(clock.clone()).source("a.rhai", file).open().unwrap();
    (engine, clock)
}

fn explain(engine: &Engine, procedure: &str, args: &[&str]) -> Explanation {
    let arguments = Arguments::Positional(args.iter().map(|text| Value::from(*text)).collect());
    engine.explain(procedure, arguments, &CallOptions::new()).unwrap()
}

/// A step on one line.
fn line(step: &Step) -> String {
    let undone = |undone: bool| if undone { " undone" } else { "" };
    match step {
        Step::Limit(Consulted { operation, name, key, cost, before, after, decision, passes_at, wrote, .. }) => {
            format!(
                "{operation} {name} {key} {} {}->{} {} {}{}{}",
                cost.map_or("-".into(), |cost| cost.to_string()),
                before.remaining,
                after.remaining,
                decision.as_ref().map_or("-", |decision| if decision.allowed { "yes" } else { "no" }),
                passes_at.map_or("never".into(), |at| (at.as_millis() - 3_600_000).to_string()),
                if *wrote { " wrote" } else { "" },
                undone(matches!(step, Step::Limit(Consulted { undone: true, .. }))),
            )
        }
        Step::Read(Looked { operation, collection, filter, index, scanned, returned, .. }) => format!(
            "{operation} {collection} {} {} {scanned}->{returned}",
            Value::Map(filter.clone()).to_json(),
            index.as_deref().unwrap_or("scan"),
        ),
        Step::Write(Wrote { change, collection, id, undone: gone, .. }) => {
            format!("{change} {collection} {id}{}", undone(*gone))
        }
        Step::Job(Queued { operation, handler, due_at, undone: gone, .. }) => {
            let due = due_at.map_or("never".into(), |at| (at.as_millis() - 3_600_000).to_string());
            format!("{operation} {handler} {due}{}", undone(*gone))
        }
    }
}

#[test]
fn every_change_of_a_job_is_a_step() {
    let (engine, _) = engine_of(
        r#"fn mail(to) { to }
        fn run_it() {
            let id = enqueue("mail", #{ to: "a" });
            attempt(|| { enqueue("mail", #{ to: "b" }, #{ delay: "1m" }); throw "no" });
            enqueue("mail", #{ to: "c" }, #{ key: "k", delay: "1m" });
            // It waits already, and nothing of it changes.
            enqueue("mail", #{ to: "c" }, #{ key: "k", delay: "1m" });
            [cancel_job(id), cancel_job(id)]
        }"#,
    );
    let explained = explain(&engine, "run_it", &[]);
    let expected = ["enqueue mail 0", "enqueue mail 60000 undone", "enqueue mail 60000", "cancel_job mail never"];
    assert_eq!(lines(&explained), expected);
    assert_eq!(engine.jobs(&JobFilter::default(), None, 10).unwrap(), []);
}

#[test]
fn a_write_tells_the_document_before_and_after() {
    let (engine, _) = engine_of(
        r#"fn run_it() {
            insert("t", #{ _id: "1", n: 1 });
            update("t", #{ n: 1 }, #{ "$inc": #{ n: 1 } });
            update("t", #{ n: 2 }, #{ "$set": #{ n: 2 } });
            delete("t", #{ _id: "1" });
        }"#,
    );
    let explained = explain(&engine, "run_it", &[]);
    let writes = explained.steps.iter().filter_map(|step| match step {
        Step::Write(Wrote { before, after, .. }) => {
            let n = |document: &Option<Map>| document.as_ref().map(|document| document["n"].as_int().unwrap());
            Some((n(before), n(after)))
        }
        _ => None,
    });
    assert_eq!(writes.collect::<Vec<_>>(), [(None, Some(1)), (Some(1), Some(2)), (Some(2), None)]);
}

fn lines(explained: &Explanation) -> Vec<String> {
    explained.steps.iter().map(line).collect()
}

#[test]
fn every_operation_on_a_limit_is_a_step() {
    let (engine, _) = engine();
    let expected = [
        "peek api ada 1 2->2 yes 0",
        "take api ada 1 2->1 yes 0 wrote",
        "refund api ada 1 1->2 yes 0 wrote",
        "charge api ada 2 2->0 yes 60000 wrote",
        "block api ada - 0->0 yes 60000 wrote",
        "unblock api ada - 0->0 yes 60000 wrote",
        "reset api ada - 0->2 - 0 wrote",
        "take shy ada 1 1->0 yes 60000 wrote",
        "take shy ada 1 0->0 yes 60000",
    ];
    assert_eq!(lines(&explain(&engine, "all_kinds", &["ada"])), expected);
}

#[test]
fn of_several_limits_each_is_a_step_with_its_own_answer() {
    let (engine, _) = engine();
    let expected = ["take_all api ada 1 2->1 yes 0 wrote", "take_all day ada 1 1->0 yes 3600000 wrote"];
    assert_eq!(lines(&explain(&engine, "several", &["ada"])), expected);
    let _ = engine.call::<bool>("several", &("ada",)).unwrap();
    // One refuses, so that nothing is spent of the other either.
    let expected = ["take_all api ada 1 1->1 yes 0", "take_all day ada 1 0->0 no 3600000"];
    assert_eq!(lines(&explain(&engine, "several", &["ada"])), expected);
}

#[test]
fn every_read_and_write_is_a_step_and_nothing_of_it_stays() {
    let (engine, _) = engine();
    let expected = [
        "take api ada 1 2->1 yes 0 wrote",
        "insert users 1",
        r#"upsert users {"email":"b@x"} email 0->0"#,
        "insert users 2",
        r#"update users {"email":"a@x"} email 1->1"#,
        "update users 1",
        r#"get users {"_id":"1"} _id 1->1"#,
        r#"count users {"n":{"$gte":1,"$lt":9}} scan 2->1"#,
        r#"exists users {"n":7} scan 2->0"#,
        r#"delete_one users {"_id":"2"} _id 1->1"#,
        "delete users 2",
    ];
    for _ in 0..3 {
        let explained = explain(&engine, "write", &["ada"]);
        assert_eq!(lines(&explained), expected);
        assert_eq!(explained.log[0].message, "done");
        let value = Value::from_json("[2,1,false]").unwrap();
        assert_eq!(explained.outcome, Ok(Outcome::Returned(value)));
        let times = explained.times;
        assert_eq!(times.total, times.limits + times.documents + times.script);
    }
    assert_eq!(engine.read(|tx| tx.count("users", &Map::new())), Ok(0));
    assert!(engine.buckets("api", None, 1).unwrap().is_empty());
}

#[test]
fn every_ending_is_explained_and_rolled_back() {
    let (engine, _) = engine();
    let denied = explain(&engine, "guard", &["ada"]);
    assert_eq!(denied.outcome.as_ref().unwrap().refusal().unwrap().code, "rate_limited");
    assert_eq!(lines(&denied)[2], "enforce api ada 1 0->0 no 60000");
    let stopped = explain(&engine, "write_and_stop", &[]);
    assert_eq!(stopped.outcome.as_ref().unwrap().refusal().unwrap().code, "aborted");
    let failed = explain(&engine, "write_and_fail", &[]);
    assert!(matches!(failed.outcome, Err(Error::Script(_))));
    for explained in [&stopped, &failed] {
        assert_eq!(lines(explained), ["insert users 1"]);
    }
}

#[test]
fn a_search_that_spent_its_budget_shows_how_far_it_came() {
    let (engine, _) = engine();
    for n in 0..9 {
        engine.transaction(|tx| tx.insert("users", Map::from([("n".to_owned(), Value::Int(n))]))).unwrap();
    }
    let options = CallOptions::new().budget(Budget { documents_read: 3, ..Budget::default() });
    let explained = engine.explain("look", Arguments::Positional(Vec::new()), &options).unwrap();
    assert!(matches!(explained.outcome, Err(Error::Budget(_))));
    assert_eq!(lines(&explained), [r#"find users {"n":7} scan 3->0"#]);
    let Step::Read(looked) = &explained.steps[0] else { panic!("{explained:?}") };
    assert!(looked.advice.as_ref().unwrap().contains("index"), "{looked:?}");
}

#[test]
fn what_an_attempt_took_back_is_marked() {
    let (engine, _) = engine();
    let expected = [
        "take api ada 1 2->1 yes 0 wrote",
        "take api ada 1 1->0 yes 60000 wrote undone",
        "peek api ada 1 0->0 no 60000",
        "insert users 9 undone",
    ];
    assert_eq!(lines(&explain(&engine, "tried", &["ada"])), expected);
}

#[test]
fn an_override_in_force_shows_with_its_end() {
    let (engine, clock) = engine();
    let api = engine.limit("api").unwrap();
    let until = Timestamp::from_millis(3_700_000);
    let faster = Map::from([("rate".to_owned(), Value::Int(50))]);
    engine.transaction(|tx| tx.set_override(&api, "ada", &faster, until)).unwrap();
    engine.transaction(|tx| tx.ban(&api, "eve", Timestamp::MAX)).unwrap();
    let ruled = |user: &str| match explain(&engine, "several", &[user]).steps.swap_remove(0) {
        Step::Limit(consulted) => consulted,
        other => panic!("{other:?}"),
    };
    let ada = ruled("ada");
    assert_eq!(ada.ruling.as_ref().unwrap().decided, Decided::Settings(faster));
    assert_eq!(ada.ruling.as_ref().unwrap().until, until);
    assert!(ada.describe.starts_with("50 in each window") && ada.after.remaining == 49, "{ada:?}");
    let eve = ruled("eve");
    assert_eq!((eve.ruling.unwrap().decided, eve.passes_at), (Decided::Ban, Some(Timestamp::MAX)));
    assert_eq!(ruled("bob").ruling, None);
    clock.set(until);
    assert_eq!(ruled("ada").ruling, None, "it is over");
}

#[test]
fn a_read_only_engine_explains_writes() {
    let folder = tempfile::tempdir().unwrap();
    Engine::builder().path(folder.path().join("db")).open().unwrap().close().unwrap();
    let builder = Engine::builder().path(folder.path().join("db")).read_only();
    let engine = builder.source("a.rhai", r#"fn write() { insert("c", #{ _id: "1" }) }"#).open().unwrap();
    let explained = explain(&engine, "write", &[]);
    assert_eq!(lines(&explained), ["insert c 1"]);
    assert_eq!(explained.outcome, Ok(Outcome::Returned("1".into())));
}

#[test]
fn what_cannot_begin_is_an_error() {
    let (engine, _) = engine();
    let explain = |name: &str| engine.explain(name, Arguments::Positional(Vec::new()), &CallOptions::new());
    assert!(matches!(explain("nobody"), Err(Error::UnknownProcedure { .. })));
    assert!(matches!(explain("guard"), Err(Error::BadArguments { .. })));
}

#[test]
fn a_trace_that_is_too_long_says_so() {
    let (engine, _) = engine();
    let budget = Budget { time: Duration::from_secs(600), ..Budget::default() };
    let options = CallOptions::new().budget(budget);
    let explained = engine.explain("greedy", Arguments::Positional(Vec::new()), &options).unwrap();
    assert_eq!((explained.steps.len(), explained.omitted), (10_000, 5_000));
}

#[test]
fn the_json_has_every_key() {
    let (engine, _) = engine();
    for (procedure, status) in [("several", "returned"), ("guard", "denied"), ("greedy", "failed")] {
        let budget = Budget { operations: 2_000, ..Budget::default() };
        let arguments = Arguments::Positional(if status == "failed" { Vec::new() } else { vec!["ada".into()] });
        let explained = engine.explain(procedure, arguments, &CallOptions::new().budget(budget)).unwrap();
        let json = serde_json::to_value(&explained).unwrap();
        assert_eq!(json["status"], status);
        let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["status", "value", "code", "message", "retry_after", "violated", "data"].to_vec();
        expected.extend(["at", "steps", "omitted", "times"]);
        expected.sort_unstable();
        assert!(expected.iter().all(|key| keys.contains(key)) && keys.len() == expected.len(), "{keys:?}");
        assert_eq!(json["steps"][0]["step"], "limit");
        assert_eq!(json["steps"][0]["override"], serde_json::Value::Null);
    }
}
