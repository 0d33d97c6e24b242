//! Tests of jobs on rows alone: every operation in every state.

use std::sync::Arc;

use crate::store::MemoryStore;
use crate::time::Timestamp;
use crate::transaction::{Database, Mode, Pace, Quota, Transaction};
use crate::value::{Map, Value};

use super::change::{self, Settled, Verdict, Wish};
use super::claim::{self, Wanted};
use super::front::Fronts;
use super::{Job, JobError, JobOptions, JobState};

/// A store of jobs whose clock is moved by hand.
struct Desk {
    database: Database,
    fronts: Fronts,
    now: i64,
    made: u32,
}

impl Desk {
    fn new() -> Desk {
        let database = Database::open(Arc::new(MemoryStore::new()), Pace::default()).unwrap();
        Desk { database, fronts: Fronts::default(), now: 1_000_000, made: 0 }
    }

    fn at(&mut self, ms: i64) -> &mut Desk {
        self.now = ms;
        self
    }

    fn run<T>(&mut self, work: impl FnOnce(&mut Transaction, &Fronts) -> Result<T, JobError>) -> Result<T, JobError> {
        let mut tx = self.database.begin(Mode::Alone, Timestamp::from_millis(self.now), Quota::UNLIMITED);
        let value = work(&mut tx, &self.fronts)?;
        let committed = tx.commit().map_err(JobError::Fault)?;
        self.fronts.lower(&committed.places);
        Ok(value)
    }

    fn enqueue(&mut self, handler: &str, payload: &str, options: &str) -> Result<String, String> {
        self.made += 1;
        let id = format!("job-{:04}", self.made);
        let options = match Value::from_json(options).unwrap() {
            Value::Map(map) => map,
            _ => Map::new(),
        };
        let options = JobOptions::parse(&options).map_err(|why| why.to_string())?;
        let wish = Wish { handler, payload: payload.into(), options: &options, id, ordinal: self.made };
        self.run(|tx, _| change::enqueue(tx, wish)).map_err(|why| why.to_string())
    }

    fn claim(&mut self, most: usize) -> Vec<Job> {
        let wanted = Wanted { queues: &[], has_handler: &|name| name != "missing", due_by: None };
        self.run(|tx, fronts| claim::claim(tx, fronts, &wanted, most)).unwrap().jobs
    }

    fn ids(&mut self, most: usize) -> Vec<String> {
        self.claim(most).into_iter().map(|job| job.id).collect()
    }

    fn settle(&mut self, job: &Job, verdict: Verdict) -> Settled {
        self.run(|tx, _| change::settle(tx, &job.id, job.token, &verdict)).unwrap()
    }

    fn job(&mut self, id: &str) -> Job {
        self.run(|tx, _| Ok(super::get(tx, id)?)).unwrap().unwrap()
    }

    fn fail(&mut self, job: &Job) -> Settled {
        self.settle(job, Verdict::Retry { after_ms: None, why: "no".into() })
    }
}

const PLAIN: &str = r#"{"backoff": {"jitter": 0}}"#;

#[test]
fn em_life_a_mail_is_tried_five_times_with_growing_waits() {
    let mut desk = Desk::new();
    let start = desk.now;
    let options = r#"{"key": "u1", "backoff": {"jitter": 0}}"#;
    let id = desk.enqueue("mail", "one", options).unwrap();
    assert_eq!((desk.job(&id).state, desk.job(&id).attempt), (JobState::Pending, 0));
    assert_eq!(desk.enqueue("mail", "two", options).unwrap(), id);
    assert_eq!(desk.job(&id).payload, Value::from("two"));
    let mut due = start;
    for (attempt, minutes) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
        assert!(desk.at(due - 1).claim(9).is_empty(), "attempt {attempt} is early");
        let job = desk.at(due).claim(9).remove(0);
        assert_eq!((job.attempt, job.state), (attempt, JobState::Processing));
        assert_eq!(desk.fail(&job), Settled::As(JobState::Retrying));
        due += minutes * 60_000;
        assert_eq!(desk.job(&id).due_at.as_millis(), due);
    }
    let last = desk.at(due).claim(9).remove(0);
    assert_eq!(desk.fail(&last), Settled::As(JobState::Failed));
    assert!(desk.at(due + 86_400_000).claim(9).is_empty());
    assert_eq!(desk.job(&id).faults.len(), 5);
    // Failed: the same key arms it again from the first attempt.
    assert_eq!(desk.enqueue("mail", "three", options).unwrap(), id);
    let again = desk.claim(9).remove(0);
    assert_eq!((again.attempt, again.payload.as_str()), (1, Some("three")));
    assert_eq!(desk.settle(&again, Verdict::Succeeded), Settled::As(JobState::Succeeded));
    // Sent: nothing happens, unless forced.
    assert_eq!(desk.enqueue("mail", "four", options).unwrap(), id);
    assert!(desk.claim(9).is_empty());
    assert_eq!(desk.enqueue("mail", "five", r#"{"key": "u1", "force": true}"#).unwrap(), id);
    assert_eq!(desk.claim(9).remove(0).payload.as_str(), Some("five"));
}

#[test]
fn fault_113_a_silent_worker_loses_its_job_and_its_word_is_stale() {
    let mut desk = Desk::new();
    let id = desk.enqueue("mail", "x", r#"{"lease": "30s"}"#).unwrap();
    let t = desk.now;
    let first = desk.claim(1).remove(0);
    assert!(desk.at(t + 29_999).claim(1).is_empty());
    assert!(desk.run(|tx, _| change::heartbeat(tx, &id, first.token)).unwrap());
    assert!(desk.at(t + 59_998).claim(1).is_empty(), "a heartbeat keeps it");
    let second = desk.at(t + 59_999).claim(1).remove(0);
    assert_eq!((second.attempt, second.token > first.token), (2, true));
    assert_eq!(desk.settle(&first, Verdict::Succeeded), Settled::Stale);
    assert!(!desk.run(|tx, _| change::heartbeat(tx, &id, first.token)).unwrap());
    assert_eq!(desk.job(&id).state, JobState::Processing);
    assert_eq!(desk.settle(&second, Verdict::Succeeded), Settled::As(JobState::Succeeded));
    assert_eq!(desk.job(&id).last_fault().unwrap().message, "its worker was not heard of for 30000 ms");
}

#[test]
fn a_job_whose_last_worker_was_silent_is_given_up_by_the_next_claim() {
    let mut desk = Desk::new();
    let id = desk.enqueue("mail", "x", r#"{"max_attempts": 1}"#).unwrap();
    desk.claim(1);
    desk.now += 60_000;
    let wanted = Wanted { queues: &[], has_handler: &|_| true, due_by: None };
    let claimed = desk.run(|tx, fronts| claim::claim(tx, fronts, &wanted, 9)).unwrap();
    assert_eq!((claimed.jobs.len(), claimed.given_up), (0, 1));
    assert_eq!(desk.job(&id).state, JobState::Failed);
}

#[test]
fn the_most_urgent_goes_first_then_what_was_due_first_then_the_oldest() {
    let mut desk = Desk::new();
    let t = desk.now;
    for options in [
        r#"{"priority": -5}"#,
        r#"{"delay": 100}"#,
        r#"{"priority": 7, "delay": 200}"#,
        r#"{}"#,
        r#"{}"#,
        r#"{"priority": 7, "delay": 50}"#,
        r#"{"delay": "1h", "priority": 100}"#,
    ] {
        desk.enqueue("mail", "x", options).unwrap();
    }
    desk.enqueue("missing", "x", r#"{"priority": 100}"#).unwrap();
    assert_eq!(desk.at(t + 1_000).ids(4), ["job-0006", "job-0003", "job-0004", "job-0005"]);
    assert_eq!(desk.ids(9), ["job-0002", "job-0001"]);
    assert!(desk.ids(9).is_empty(), "what nobody can do is left waiting");
    // What is enqueued later and due earlier is found all the same.
    desk.at(t).enqueue("mail", "x", r#"{"priority": 7}"#).unwrap();
    assert_eq!(desk.at(t + 1_000).ids(9), ["job-0009"]);
}

#[test]
fn each_operation_in_each_state() {
    use JobState::*;
    let mut desk = Desk::new();
    let mut made = |state: JobState| {
        let id = desk.enqueue("mail", "x", PLAIN).unwrap();
        if state != Pending {
            let job = desk.claim(1).remove(0);
            assert_eq!(job.id, id);
            match state {
                Retrying => drop(desk.settle(&job, Verdict::Retry { after_ms: Some(3_600_000), why: "no".into() })),
                Succeeded => drop(desk.settle(&job, Verdict::Succeeded)),
                Failed => drop(desk.settle(&job, Verdict::Failed { why: "never".into() })),
                Cancelled => assert!(desk.run(|tx, _| change::cancel(tx, &id)).unwrap()),
                _ => {}
            }
        }
        assert_eq!(desk.job(&id).state, state);
        let token = desk.job(&id).token;
        let cancelled = desk.run(|tx, _| {
            let savepoint = tx.savepoint();
            let did = change::cancel(tx, &id)?;
            tx.rollback_to(savepoint);
            Ok(did)
        });
        let purged = desk.run(|tx, _| {
            let savepoint = tx.savepoint();
            let did = change::purge(tx, &id)?;
            tx.rollback_to(savepoint);
            Ok(did)
        });
        let retried = desk.run(|tx, _| change::retry(tx, &id)).unwrap();
        let after = desk.job(&id);
        let beats = desk.run(|tx, _| change::heartbeat(tx, &id, token)).unwrap();
        desk.run(|tx, _| change::cancel(tx, &id)).unwrap();
        (cancelled.unwrap(), purged.unwrap(), retried, after.state, beats)
    };
    assert_eq!(made(Pending), (true, false, true, Pending, false));
    assert_eq!(made(Processing), (true, false, false, Processing, true));
    assert_eq!(made(Retrying), (true, false, true, Retrying, false));
    assert_eq!(made(Succeeded), (false, true, true, Pending, false));
    assert_eq!(made(Failed), (false, true, true, Pending, false));
    assert_eq!(made(Cancelled), (false, true, true, Pending, false));
}

#[test]
fn a_snoozed_attempt_is_not_counted() {
    let mut desk = Desk::new();
    let id = desk.enqueue("mail", "x", r#"{"max_attempts": 1}"#).unwrap();
    for _ in 0..10 {
        let job = desk.claim(1).remove(0);
        assert_eq!(job.attempt, 1);
        assert_eq!(desk.settle(&job, Verdict::Snoozed { for_ms: 500 }), Settled::As(JobState::Pending));
        assert!(desk.claim(1).is_empty());
        desk.now += 500;
    }
    assert!(desk.job(&id).faults.is_empty());
}

#[test]
fn a_forced_job_that_runs_runs_once_more() {
    let mut desk = Desk::new();
    let id = desk.enqueue("mail", "one", r#"{"key": "k"}"#).unwrap();
    let first = desk.claim(1).remove(0);
    desk.enqueue("mail", "two", r#"{"key": "k"}"#).unwrap();
    desk.enqueue("mail", "three", r#"{"key": "k", "force": true}"#).unwrap();
    assert!(desk.claim(1).is_empty(), "not beside the one that runs");
    assert_eq!(desk.settle(&first, Verdict::Succeeded), Settled::As(JobState::Succeeded));
    let second = desk.claim(1).remove(0);
    assert_eq!((second.id == id, second.attempt, second.payload.as_str()), (true, 1, Some("three")));
    desk.settle(&second, Verdict::Succeeded);
    assert!(desk.claim(1).is_empty());
}

#[test]
fn keys_are_of_their_handler_and_end_with_their_job() {
    let mut desk = Desk::new();
    let one = desk.enqueue("mail", "x", r#"{"key": "k", "keep": "1h"}"#).unwrap();
    let other = desk.enqueue("push", "x", r#"{"key": "k", "keep": "1h"}"#).unwrap();
    assert_ne!(one, other);
    for job in desk.claim(9) {
        desk.settle(&job, Verdict::Succeeded);
    }
    desk.now += 3_599_999;
    assert_eq!(desk.enqueue("mail", "x", r#"{"key": "k"}"#).unwrap(), one);
    desk.now += 1;
    assert_ne!(desk.enqueue("mail", "x", r#"{"key": "k"}"#).unwrap(), one);
}

#[test]
fn what_cannot_be_is_refused_by_name_and_bound() {
    let mut desk = Desk::new();
    for (options, message) in [
        (r#"{"priorty": 1}"#, "`priorty` is no option of a job: did you mean `priority`?"),
        (r#"{"priority": 101}"#, "`priority` is 101, and goes from -100 to 100"),
        (r#"{"max_attempts": 0}"#, "`max_attempts` is 0, and goes from 1 to 1000"),
        (r#"{"delay": "soon"}"#, "`delay`: "),
        (r#"{"delay": -1}"#, "`delay` is -1 ms, and goes from 0 to 316224000000 ms"),
        (r#"{"delay": 1, "at": 2}"#, "`delay` and `at` both say when it may start: give one of them"),
        (r#"{"lease": 0}"#, "`lease` is 0 ms, and goes from 1 to"),
        (r#"{"force": true}"#, "`force` runs the job of a `key` again: there is no key"),
        (r#"{"key": ""}"#, "the key of a job has 1 to 512 bytes, not 0"),
        (r#"{"key": 3}"#, "`key` is a text, not int"),
        (r#"{"queue": ""}"#, "the name of a queue has 1 to 128 bytes, not 0"),
        (r#"{"backoff": 3}"#, "`backoff` is a map such as #{ first: \"1m\", factor: 2 }, not int"),
        (r#"{"backoff": {"frist": 3}}"#, "`frist` is nothing of a backoff: did you mean `first`?"),
        (r#"{"backoff": {"factor": 0.5}}"#, "`backoff.factor` is 500 thousandths, and goes from 1000 to"),
        (r#"{"backoff": {"jitter": 2}}"#, "`backoff.jitter` is 2000 thousandths, and goes from 0 to 1000"),
        (r#"{"backoff": {"first": "2m", "max": "1m"}}"#, "`backoff.max` is 60000 ms, and goes from 120000 to"),
    ] {
        let refused = desk.enqueue("mail", "x", options).unwrap_err();
        assert!(refused.starts_with(message), "{options}: {refused}");
    }
    assert!(desk.claim(9).is_empty());
}
