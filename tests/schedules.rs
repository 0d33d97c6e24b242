//! Schedules: declared in files, fired by whoever works, one job at a time, neither left out nor run twice.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{
    Engine, EngineBuilder, Error, JobAnswer, JobFilter, JobState, ManualClock, MemoryStore, ScheduleInfo, Store,
    Timestamp, WorkerOptions,
};

const START: &str = "2026-01-01T00:00:00Z";

/// A procedure that leaves a document at each run.
const TICK: &str = r#"fn tick() { insert("runs", #{ at: now() }); }"#;

struct Desk {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
}

impl Desk {
    fn new() -> Desk {
        Desk { store: Arc::new(MemoryStore::new()), clock: ManualClock::at(START.parse().unwrap()) }
    }

    fn builder(&self) -> EngineBuilder {
        let store: Arc<dyn Store> = self.store.clone();
        Engine::builder().store(store).clock(self.clock.clone())
    }

    /// An engine on the same store whose one file declares this, beside `tick`.
    fn open(&self, declarations: &str) -> Engine {
        self.builder().source("tick.rhai", &format!("{declarations}\n{TICK}")).open().unwrap()
    }

    fn pass(&self, text: &str) {
        self.clock.advance(tollgate::parse_duration(text).unwrap());
    }
}

fn work(engine: &Engine) -> u64 {
    engine.work_once(1_000).unwrap().succeeded
}

fn only(engine: &Engine) -> ScheduleInfo {
    let mut schedules = engine.schedules().unwrap();
    assert_eq!(schedules.len(), 1);
    schedules.remove(0)
}

fn at(text: &str) -> Option<Timestamp> {
    Some(text.parse().unwrap())
}

/// The slots that were enqueued, from the keys of their jobs, the first first.
fn slots(engine: &Engine) -> Vec<String> {
    let jobs = engine.jobs(&JobFilter::default(), None, 10_000).unwrap();
    let mut keys: Vec<String> = jobs.into_iter().filter_map(|job| job.key).collect();
    keys.sort();
    keys.iter().map(|key| key.split_once(":2026-").unwrap().1.to_owned()).collect()
}

#[test]
fn fault_112_a_file_that_is_loaded_ten_times_leaves_one_schedule() {
    let desk = Desk::new();
    let engine = desk.open(r#"every("1m", "tick");"#);
    for _ in 0..10 {
        engine.reload().unwrap();
        engine.load("tick.rhai", &format!("every(\"1m\", \"tick\");\n{TICK}")).unwrap();
    }
    assert_eq!(only(&engine).next_slot, at("2026-01-01T00:01:00Z"));
    desk.pass("1m");
    engine.reload().unwrap();
    assert_eq!((work(&engine), work(&engine)), (1, 0));
    engine.reload().unwrap();
    assert_eq!(work(&engine), 0);
    assert_eq!(only(&engine).last_slot, at("2026-01-01T00:01:00Z"));
    assert!(engine.doctor().unwrap().is_empty());
}

#[test]
fn fault_117_slots_neither_drift_nor_double_nor_pile_up_however_often_it_is_restarted() {
    let desk = Desk::new();
    // Opened anew every 25 s, the schedule has come each minute all the same, and once.
    let mut runs = 0;
    for _ in 0..24 {
        let engine = desk.open(r#"every("1m", "tick");"#);
        runs += work(&engine) + work(&engine);
        engine.close().unwrap();
        desk.pass("25s");
    }
    let engine = desk.open(r#"every("1m", "tick");"#);
    runs += work(&engine);
    assert_eq!(runs, 10);
    let expected: Vec<String> = (1..=10).map(|minute| format!("01-01T00:{minute:02}:00Z")).collect();
    assert_eq!(slots(&engine), expected);

    // One that always fails waits for its next attempt, and no other job of it waits beside that.
    let failing = r#"every("1m", "broken", #{ missed: "all", max_attempts: 1000 }); fn broken() { throw "no"; }"#;
    let engine = desk.builder().source("broken.rhai", failing).open().unwrap();
    for _ in 0..200 {
        desk.pass("30s");
        engine.work_once(100).unwrap();
    }
    let filter = JobFilter { handler: Some("broken".into()), ..JobFilter::default() };
    let jobs = engine.jobs(&filter, None, 100).unwrap();
    assert_eq!((jobs.len(), jobs[0].state), (1, JobState::Retrying));
    assert_eq!(only(&engine).job.as_ref(), Some(&jobs[0].id));
}

#[test]
fn a_new_schedule_begins_with_its_next_slot() {
    let desk = Desk::new();
    desk.pass("30s");
    for missed in ["skip", "latest", "all"] {
        let engine = Desk { store: Arc::default(), clock: desk.clock.clone() }
            .open(&format!(r#"every("1m", "tick", #{{ missed: "{missed}" }});"#));
        assert_eq!(work(&engine), 0, "{missed}");
        assert_eq!((only(&engine).last_slot, only(&engine).next_slot.is_some()), (None, true));
    }
}

#[test]
fn slots_that_came_while_nobody_worked_are_made_up_for_as_the_schedule_says() {
    for (missed, runs, first) in
        [("skip", 0, "01-04T03:00:00Z"), ("latest", 1, "01-03T03:00:00Z"), ("all", 3, "01-01T03:00:00Z")]
    {
        let desk = Desk::new();
        let declared = format!(r#"cron("0 3 * * *", "tick", #{{ missed: "{missed}" }});"#);
        desk.open(&declared).close().unwrap();
        desk.pass("3d");
        let engine = desk.open(&declared);
        assert_eq!(work(&engine), runs, "{missed}");
        assert_eq!(work(&engine), 0, "{missed}");
        desk.pass("3h");
        assert_eq!(work(&engine), 1, "{missed}: the next slot comes in time");
        assert_eq!(slots(&engine)[0], first);
    }
    // What is made up for has a bound.
    let desk = Desk::new();
    let engine = desk.open(r#"every("1m", "tick", #{ missed: "all" });"#);
    desk.pass("1d");
    assert_eq!(engine.work_once(30).unwrap().succeeded, 30, "as many as are asked for");
    assert_eq!(work(&engine), 70);
    assert_eq!(work(&engine), 0);
}

#[test]
fn one_job_at_a_time() {
    for (missed, late) in [("skip", None), ("latest", Some("01-01T00:05:00Z")), ("all", Some("01-01T00:02:00Z"))] {
        let desk = Desk::new();
        let declared = format!(r#"every("1m", "send", #{{ missed: "{missed}" }});"#);
        let slow = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let answer = slow.clone();
        let engine = desk
            .builder()
            .action("send", move |_| {
                let early = answer.load(std::sync::atomic::Ordering::SeqCst);
                Ok(if early { JobAnswer::Snooze(Duration::from_secs(1)) } else { JobAnswer::Done })
            })
            .source("send.rhai", &declared)
            .open()
            .unwrap();
        for _ in 0..5 {
            desk.pass("1m");
            assert_eq!(work(&engine), 0);
        }
        assert_eq!(slots(&engine), ["01-01T00:01:00Z"], "{missed}");
        slow.store(false, std::sync::atomic::Ordering::SeqCst);
        desk.pass("1s");
        work(&engine);
        assert_eq!(slots(&engine).get(1).map(String::as_str), late, "{missed}");
        desk.pass("59s");
        work(&engine);
        assert_eq!(slots(&engine).last().map(String::as_str), Some("01-01T00:06:00Z"), "{missed}");
    }
}

#[test]
fn a_changed_pattern_keeps_the_last_slot_and_begins_with_its_own_next_one() {
    let desk = Desk::new();
    let engine = desk.open(r#"cron("0 3 * * *", "tick", #{ missed: "all" });"#);
    desk.pass("3h");
    assert_eq!(work(&engine), 1);
    desk.pass("5h");
    engine.load("tick.rhai", &format!("every(\"1m\", \"tick\", #{{ missed: \"all\" }});\n{TICK}")).unwrap();
    let schedule = only(&engine);
    assert_eq!((schedule.last_slot, schedule.next_slot), (at("2026-01-01T03:00:00Z"), at("2026-01-01T08:01:00Z")));
    assert_eq!(work(&engine), 0, "the minutes before were none of its slots");
    desk.pass("2m");
    assert_eq!(work(&engine), 2);
    // Other options leave what is due as it is.
    desk.pass("2m");
    engine.load("tick.rhai", &format!("every(\"1m\", \"tick\", #{{ missed: \"latest\" }});\n{TICK}")).unwrap();
    assert_eq!(work(&engine), 1);
}

#[test]
fn a_schedule_that_is_removed_comes_no_more_and_begins_anew_when_it_is_back() {
    let desk = Desk::new();
    let declared = r#"every("1m", "tick", #{ missed: "all" });"#;
    let engine = desk.open(declared);
    desk.pass("1m");
    assert_eq!(work(&engine), 1);
    engine.load("tick.rhai", TICK).unwrap();
    assert!(engine.schedules().unwrap().is_empty());
    desk.pass("10m");
    assert_eq!(work(&engine), 0);
    engine.load("tick.rhai", &format!("{declared}\n{TICK}")).unwrap();
    assert_eq!(only(&engine).last_slot, None);
    assert_eq!(work(&engine), 0);
    desk.pass("1m");
    assert_eq!(work(&engine), 1);
    // Who only looks at the store with no files takes nothing away.
    engine.close().unwrap();
    desk.builder().open().unwrap().close().unwrap();
    let engine = desk.open(declared);
    assert_eq!(only(&engine).last_slot, at("2026-01-01T00:12:00Z"));
}

#[test]
fn two_schedules_of_one_handler_have_names_and_payloads_of_their_own() {
    let desk = Desk::new();
    let text = r#"
        cron("0 9 * * MON-FRI", "note", #{ payload: #{ text: "work" }, queue: "calm", priority: 7 });
        cron("0 11 * * SAT", "note", #{ name: "weekend", payload: ["rest"], zone: "Europe/Berlin" });
        fn note(text) { insert("notes", #{ text: text }); }
    "#;
    let engine = desk.builder().source("note.rhai", text).open().unwrap();
    let schedules = engine.schedules().unwrap();
    let shown: Vec<_> = schedules.iter().map(|s| (&*s.name, &*s.pattern, s.zone.as_deref(), s.next_slot)).collect();
    assert_eq!(
        shown,
        [
            ("note", "0 9 * * MON-FRI", Some("UTC"), at("2026-01-01T09:00:00Z")),
            ("weekend", "0 11 * * SAT", Some("Europe/Berlin"), at("2026-01-03T10:00:00Z")),
        ]
    );
    for _ in 0..(24 * 7) {
        desk.pass("1h");
        work(&engine);
    }
    let count = |text: &str| {
        let filter = tollgate::Map::from([("text".to_owned(), text.into())]);
        engine.transaction(|tx| tx.count("notes", &filter)).unwrap()
    };
    assert_eq!((count("work"), count("rest")), (5, 1));
    let filter = JobFilter { queue: Some("calm".into()), ..JobFilter::default() };
    let calm = engine.jobs(&filter, None, 100).unwrap();
    assert_eq!((calm.len(), calm[0].priority), (5, 7));
}

#[test]
fn what_cannot_be_a_schedule_is_refused_with_its_place() {
    let desk = Desk::new();
    for (declared, message) in [
        (
            r#"every("1m", "tock");"#,
            "schedule `tock`: no procedure and no action is named `tock`: did you mean `tick`?",
        ),
        (r#"every("500ms", "tick");"#, "the period is 500 ms, and goes from 1000 to 316224000000 ms"),
        (r#"every("soon", "tick");"#, "`soon` is not a duration: "),
        (r#"every(true, "tick");"#, "a period is text such as \"5m\" or milliseconds, not bool"),
        (r#"every("1m", 5);"#, "the handler of a schedule is a text, not "),
        (r#"cron("0 3 * *", "tick");"#, "`0 3 * *` is no cron pattern ("),
        (r#"cron("0 25 * * *", "tick");"#, "`0 25 * * *` is no cron pattern ("),
        (r#"cron("0 3 * * *", "tick", #{ zone: "Mars/Base" });"#, "`Mars/Base` is not a known time zone: "),
        (r#"cron("0 3 * * *", "tick", #{ mised: "all" });"#, "`mised` is no option of a schedule: did you mean"),
        (r#"every("1m", "tick", #{ payload: [1] });"#, "schedule `tick`: "),
        (
            "every(\"1m\", \"tick\", #{ name: \"a\" });\nevery(\"2m\", \"tick\", #{ name: \"a\" });",
            "schedule `a` is declared twice: here and at tick.rhai:2:",
        ),
    ] {
        let opened = desk.builder().source("tick.rhai", &format!("\n{declared}\n{TICK}")).open();
        let Err(Error::Compile(faults)) = opened else { panic!("{declared} is loaded") };
        assert_eq!(faults.len(), 1, "{declared}: {faults:?}");
        let place = faults[0].position.clone().unwrap();
        assert!(faults[0].message.starts_with(message), "{declared}: {}", faults[0].message);
        let line = if declared.contains('\n') { 3 } else { 2 };
        assert_eq!((faults[0].code, &*place.file, place.line), ("bad_schedule", "tick.rhai", line), "{declared}");
        assert_eq!(faults[0].source_line.as_deref(), declared.lines().nth(line - 2));
    }
    let inside = r#"fn tick() { every("1m", "tick"); }"#;
    let engine = desk.builder().source("tick.rhai", inside).open().unwrap();
    let refused = engine.call::<()>("tick", &()).unwrap_err().to_string();
    assert!(refused.contains("`every` is a declaration: write it at file level"), "{refused}");
}

#[test]
fn who_may_only_read_enqueues_nothing() {
    let desk = Desk::new();
    let declared = r#"every("1m", "tick");"#;
    desk.open(declared).close().unwrap();
    desk.pass("1m");
    let engine = desk.builder().read_only().source("tick.rhai", &format!("{declared}\n{TICK}")).open().unwrap();
    assert_eq!(work(&engine), 0);
    assert_eq!(only(&engine).next_slot, at("2026-01-01T00:01:00Z"), "but it sees that it is due");
    engine.close().unwrap();
    assert_eq!(work(&desk.open(declared)), 1);
}

#[test]
fn a_clock_that_was_far_ahead_and_is_put_right_stops_no_schedule() {
    let desk = Desk::new();
    let engine = desk.open(r#"every("1m", "tick");"#);
    desk.pass("1000d");
    assert_eq!(work(&engine), 1);
    desk.clock.set(START.parse().unwrap());
    assert_eq!(work(&engine), 0);
    desk.pass("1m");
    assert_eq!(work(&engine), 1);
    // A small step back runs nothing twice.
    desk.clock.set(START.parse().unwrap());
    assert_eq!(work(&engine), 0);
    desk.pass("1m");
    assert_eq!(work(&engine), 0);
    desk.pass("1m");
    assert_eq!(work(&engine), 1);
}

#[test]
fn several_workers_enqueue_each_slot_once() {
    let desk = Desk::new();
    let (done, heard) = std::sync::mpsc::channel();
    let engine = desk
        .builder()
        .action("send", move |job| done.send(job.key.clone()).map(|()| JobAnswer::Done).map_err(|why| why.to_string()))
        .source("send.rhai", r#"every("1m", "send");"#)
        .open()
        .unwrap();
    let workers: Vec<_> = (0..3).map(|_| engine.spawn_worker(WorkerOptions::new().threads(2)).unwrap()).collect();
    for minute in 1..=5 {
        desk.pass("1m");
        let key = heard.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(key, Some(format!("schedule:send:2026-01-01T00:{minute:02}:00Z")));
        // The next slot is only enqueued when this job is over.
        while only(&engine).job.is_some() {
            std::thread::yield_now();
        }
    }
    let total: u64 = workers.into_iter().map(|worker| worker.shutdown().unwrap().succeeded).sum();
    assert_eq!(total, 5);
}
