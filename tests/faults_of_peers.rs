//! Faults that users of other limiters met in transactions and scripts, each held against the public API.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use tollgate::{Budget, Clock, Engine, EngineBuilder, Error, ManualClock, Map, Outcome, RefusalKind, Timestamp, Value};

/// 2026-01-01T00:00:00Z.
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

fn builder(text: &str) -> EngineBuilder {
    Engine::builder().memory().clock(ManualClock::at(START)).source("a.rhai", text)
}

fn engine(text: &str) -> Engine {
    builder(text).open().unwrap_or_else(|error| panic!("{error}"))
}

fn value(engine: &Engine, procedure: &str) -> Value {
    match engine.call::<Value>(procedure, &()) {
        Ok(Outcome::Returned(value)) => value,
        other => panic!("{procedure}: {other:?}"),
    }
}

fn json(engine: &Engine, procedure: &str) -> String {
    value(engine, procedure).to_json()
}

/// A clock that moves on with every look at it.
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[test]
fn case_36_one_call_has_one_instant() {
    // The last millisecond of a day: a second look at the clock would see the next one.
    let last = "2026-01-31T23:59:59.999Z".parse::<Timestamp>().unwrap();
    let text = r#"
        const DAILY = fixed_window("daily", 50, "1d").start("epoch");
        const OTHER = fixed_window("other", 50, "1d").start("epoch");
        fn look() {
            let first = now();
            let day = DAILY.take("k").reset_at;
            for i in 0..10_000 { }
            [now() - first, OTHER.take("k").reset_at - day, start_of("day", now()) == start_of("day", first)]
        }
    "#;
    let clock = Arc::new(Ticking(AtomicI64::new(0)));
    let engine = Engine::builder().memory().clock(clock.clone()).source("a.rhai", text).open().unwrap();
    for _ in 0..20 {
        clock.0.store(last.as_millis(), Ordering::Relaxed);
        assert_eq!(json(&engine, "look"), "[0,0,true]");
    }
}

#[test]
fn case_58_a_bad_file_takes_no_limit_away() {
    let good = r#"const L = fixed_window("l", 2, "1m"); fn hit() { L.take("k").allowed }"#;
    let engine = engine(good);
    assert_eq!(json(&engine, "hit"), "true");
    for (bad, place, fault) in [
        ("fn hit() { true }\nfn broken( {", "a.rhai:2:", "expect"),
        (r#"const L = fixed_window("l", 0, "1m"); fn hit() { true }"#, "a.rhai:1:11", "rate is 0"),
        ("fn hit() { no_such_function() }", "a.rhai:1:12", "no_such_function"),
    ] {
        let error = engine.load("a.rhai", bad).unwrap_err();
        assert!(matches!(error, Error::Compile(_)), "{error}");
        let shown = error.to_string();
        assert!(shown.contains(place) && shown.contains(fault), "{shown}");
    }
    // The same program, and the same bucket: one of two tokens was left.
    assert_eq!(json(&engine, "hit"), "true");
    assert_eq!(json(&engine, "hit"), "false");
    engine.load("a.rhai", &good.replace("2,", "3,")).unwrap();
    assert_eq!(json(&engine, "hit"), "true");
    assert_eq!(json(&engine, "hit"), "false");
}

#[test]
fn case_70_an_attempt_that_is_denied_stays_counted_and_one_that_aborts_does_not() {
    let text = r#"
        const LOGIN = fixed_window("login", 5, "15m");
        fn with_deny() { LOGIN.enforce("k"); insert("audit", #{ at: now() }); deny("wrong password") }
        fn with_abort() { LOGIN.enforce("k"); insert("audit", #{ at: now() }); abort("wrong password") }
        fn used() { [LOGIN.peek("k").used, count("audit", #{})] }
    "#;
    let engine = engine(text);
    for _ in 0..100 {
        let refusal = engine.call::<Value>("with_abort", &()).unwrap().refusal().cloned().unwrap();
        assert_eq!((refusal.kind, refusal.code()), (RefusalKind::Aborted, "aborted"));
    }
    assert_eq!(json(&engine, "used"), "[0,0]");
    let codes: Vec<String> = (0..100)
        .map(|_| engine.call::<Value>("with_deny", &()).unwrap().refusal().unwrap().code().to_owned())
        .collect();
    assert_eq!(codes.iter().filter(|code| *code == "denied").count(), 5);
    assert_eq!(codes.iter().filter(|code| *code == "rate_limited").count(), 95);
    assert_eq!(json(&engine, "used"), "[5,5]");
    // The one that lets passwords be guessed for ever is pointed at.
    let warnings: Vec<&str> = engine.warnings().iter().map(|warning| warning.code).collect();
    assert_eq!(warnings, ["abort_after_take"]);
}

#[test]
fn case_100_a_script_that_fails_half_way_leaves_nothing() {
    let text = r#"
        const L = fixed_window("l", 5, "1m");
        fn half() { insert("rows", #{ _id: "x" }); L.take("k"); L.block("b", "1m"); upsert("n", #{ _id: "c" }, #{ n: 1 }); throw "no" }
        fn deep() { insert("rows", #{ _id: "x" }); let nothing = (); nothing.field }
        fn state() { [count("rows", #{}), L.peek("k").used, L.peek("b").reason, exists("n", #{})] }
    "#;
    let engine = engine(text);
    for procedure in ["half", "deep"] {
        assert!(matches!(engine.call::<Value>(procedure, &()), Err(Error::Script(_))));
        assert_eq!(json(&engine, "state"), r#"[0,0,"",false]"#);
    }
    assert_eq!(engine.buckets("l", None, 10).unwrap(), []);
    assert_eq!(engine.doctor().unwrap(), Vec::<String>::new());
}

#[test]
fn case_102_what_is_thrown_arrives_with_its_place_and_stack() {
    let text =
        "// Two calls deep.\n\nfn outer() {\n    1 + inner()\n}\nfn inner() {\n    throw #{ code: \"E1\", n: 3 };\n}\n";
    let Err(Error::Script(error)) = engine(text).call::<Value>("outer", &()) else { panic!("it did not fail") };
    assert_eq!((error.code.as_str(), error.value.get("n")), ("E1", Some(&Value::Int(3))));
    assert_eq!(error.position.as_ref().unwrap().to_string(), "a.rhai:7:5");
    assert_eq!(error.source_line.as_deref(), Some("    throw #{ code: \"E1\", n: 3 };"));
    let stack: Vec<String> =
        error.stack.iter().map(|frame| format!("{} {}", frame.function, frame.position.as_ref().unwrap())).collect();
    assert_eq!(stack, ["inner a.rhai:7:5", "outer a.rhai:4:9"]);
}

#[test]
fn case_105_an_endless_script_is_stopped_without_losing_or_stopping_anything() {
    let text = r#"
        fn endless() { insert("rows", #{ _id: "x" }); loop { } }
        fn recurse() { insert("rows", #{}); recurse() }
        fn grow() { insert("rows", #{ _id: "x" }); let s = "xxxxxxxx"; loop { s += s; } }
        fn rows() { count("rows", #{}) }
    "#;
    let engine = engine(text);
    for procedure in ["endless", "recurse", "grow"] {
        let endless = {
            let engine = engine.clone();
            thread::spawn(move || engine.call::<Value>(procedure, &()))
        };
        for _ in 0..50 {
            assert_eq!(json(&engine, "rows"), "0");
        }
        let error = endless.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Budget(_)) && error.code() == "budget", "{error}");
        assert!(error.to_string().starts_with("a.rhai:"), "{error}");
        assert_eq!(json(&engine, "rows"), "0");
    }
}

#[test]
fn case_107_an_attempt_is_a_savepoint_and_a_try_is_none() {
    let text = r#"
        const L = fixed_window("l", 5, "1m");
        fn inner() { insert("rows", #{ _id: "y" }); L.take("k"); throw "no" }
        fn with_attempt() { attempt(|| inner()); insert("rows", #{ _id: "z" }); }
        fn with_try() { try { inner() } catch { } }
        fn state() { [exists("rows", #{ _id: "y" }), exists("rows", #{ _id: "z" }), L.peek("k").used] }
    "#;
    let engine = engine(text);
    value(&engine, "with_attempt");
    assert_eq!(json(&engine, "state"), "[false,true,0]");
    value(&engine, "with_try");
    assert_eq!(json(&engine, "state"), "[true,true,1]");
}

#[test]
fn case_110_contention_shows_neither_as_an_error_nor_as_a_line_logged_twice() {
    let lines = Arc::new(AtomicUsize::new(0));
    let heard = lines.clone();
    let text = r#"
        const L = token_bucket("l", 1_000_000, "1s");
        fn hit() {
            log("info", "hit");
            let row = find_one("counters", #{ _id: "n" });
            upsert("counters", #{ _id: "n" }, #{ n: if row == () { 1 } else { row.n + 1 } });
            L.take("k").allowed
        }
        fn hits() { [get("counters", "n").n, L.peek("k").used] }
    "#;
    let engine = builder(text)
        .on_log(move |_, _| {
            heard.fetch_add(1, Ordering::Relaxed);
        })
        .durability(tollgate::Durability::Buffered)
        .budget(Budget { time: Duration::from_secs(30), ..Budget::default() })
        .open()
        .unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    assert_eq!(json(&engine, "hit"), "true");
                }
            });
        }
    });
    assert_eq!(lines.load(Ordering::Relaxed), 4000);
    assert_eq!(json(&engine, "hits"), "[4000,4000]");
}

#[test]
fn many_first_hits_on_one_key_admit_exactly_the_capacity_and_make_one_bucket() {
    let text = r#"const L = fixed_window("l", 10, "1m"); fn hit() { L.take("fresh").allowed }"#;
    let engine = builder(text).budget(Budget { time: Duration::from_secs(30), ..Budget::default() }).open().unwrap();
    let (start, admitted) = (Barrier::new(64), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                start.wait();
                if json(&engine, "hit") == "true" {
                    admitted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(admitted.load(Ordering::Relaxed), 10);
    let buckets = engine.buckets("l", None, 100).unwrap();
    assert_eq!((buckets.len(), buckets[0].decision.remaining), (1, 0));
}

#[test]
fn case_112_a_call_finishes_on_the_version_that_it_began_with() {
    let (paused, resumed) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (at_pause, at_resume) = (paused.clone(), resumed.clone());
    let version = |n: i64| {
        format!(
            "const V = {n};\nfn answer(wait) {{ let before = part(); if wait {{ pause() }} [before, part(), V] }}\nprivate fn part() {{ V }}"
        )
    };
    let engine = builder(&version(1))
        .register_fn("pause", 0, move |_| {
            at_pause.wait();
            at_resume.wait();
            Ok(Value::Null)
        })
        .budget(Budget { time: Duration::from_secs(30), ..Budget::default() })
        .open()
        .unwrap();
    let answer =
        |engine: &Engine, wait: bool| engine.call::<Value>("answer", &(wait,)).unwrap().returned().unwrap().to_json();
    let running = {
        let engine = engine.clone();
        thread::spawn(move || answer(&engine, true))
    };
    paused.wait();
    engine.load("a.rhai", &version(2)).unwrap();
    // The next call has the new version while the first still runs.
    assert_eq!(answer(&engine, false), "[2,2,2]");
    resumed.wait();
    assert_eq!(running.join().unwrap(), "[1,1,1]");
    assert_eq!(answer(&engine, false), "[2,2,2]");
}

#[test]
fn what_looks_like_code_or_an_operator_in_data_is_data() {
    let text = r#"
        fn keep(text) { let id = insert("texts", #{ text: text }); [get("texts", id).text, count("texts", #{ text: text })] }
        fn login(name, password) { exists("users", #{ name: name, password: password }) }
    "#;
    let engine = engine(text);
    for odd in ["$x", "__proto__", "${now()}", "'; drop", "\u{0}", "#{ a: 1 }"] {
        let kept: (String, i64) = engine.call("keep", &(odd,)).unwrap().returned().unwrap();
        assert_eq!(kept, (odd.to_owned(), 1));
    }
    let operator = Map::from([("$gt".to_owned(), Value::from(""))]);
    let error = engine.call::<bool>("login", &("ada", operator)).unwrap_err();
    assert_eq!(error.code(), "bad_arguments");
}

#[cfg(feature = "cli")]
#[test]
fn case_122_a_pipe_gets_data_only_and_errors_have_their_line() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let repl = |input: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["repl", "--memory", "--json"])
            .current_dir(std::env::temp_dir())
            .env_remove("TOLLGATE_SCRIPTS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, out, err) = repl("1 + 1\n[1, \"a\"]\n");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().count(), 2);
    assert!(out.lines().all(|line| Value::from_json(line).is_ok()), "{out}");

    let (code, out, err) = repl("1\nno_such_thing\n3\n");
    assert_eq!(code, Some(2));
    assert!(err.contains("<stdin>:2"), "{err}");
    assert!(out.lines().all(|line| Value::from_json(line).is_ok()), "{out}");

    let (code, _, err) = repl("fn open() {\n");
    assert_ne!(code, Some(0));
    assert!(!err.is_empty());
}
