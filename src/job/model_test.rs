//! Jobs against a plain model: random operations and clock steps, compared after each.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::store::MemoryStore;
use crate::time::Timestamp;
use crate::transaction::{Database, Mode, Pace, Quota, Transaction};
use crate::value::Value;

use super::change::{self, Settled, Verdict, Wish};
use super::claim::{self, Wanted};
use super::front::Fronts;
use super::{JobError, JobOptions, JobState, list, verify};

#[derive(Clone, Debug)]
enum Step {
    Enqueue { key: Option<u8>, force: bool, delay: i64, priority: i64, max_attempts: i64, handler: u8 },
    Claim { most: usize },
    Settle { pick: usize, verdict: Verdict },
    Heartbeat { pick: usize },
    Cancel { pick: usize },
    Retry { pick: usize },
    Purge { pick: usize },
    Advance(i64),
    Sweep,
}

/// A job as the model knows it: what the table of jobs.md says, and nothing of rows.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    handler: String,
    key: Option<u8>,
    payload: i64,
    priority: i64,
    state: JobState,
    attempt: i64,
    max_attempts: i64,
    due: i64,
    created: i64,
    ordinal: u32,
    finished: Option<i64>,
    token: i64,
    again: bool,
}

const LEASE: i64 = 50;
const KEEP: i64 = 200;

#[derive(Default)]
struct Model {
    jobs: BTreeMap<String, Plain>,
}

impl Model {
    fn live(&self, id: &str, now: i64) -> Option<&Plain> {
        self.jobs.get(id).filter(|job| job.finished.is_none_or(|at| at + KEEP > now))
    }

    fn change(&mut self, id: &str, now: i64, change: impl FnOnce(&mut Plain) -> bool) -> bool {
        if self.live(id, now).is_none() {
            return false;
        }
        self.jobs.get_mut(id).is_some_and(change)
    }
}

fn settle(job: &mut Plain, verdict: &Verdict, now: i64) {
    match verdict {
        Verdict::Succeeded => (job.state, job.finished) = (JobState::Succeeded, Some(now)),
        Verdict::Failed { .. } => (job.state, job.finished) = (JobState::Failed, Some(now)),
        Verdict::Retry { .. } if job.attempt >= job.max_attempts => {
            (job.state, job.finished) = (JobState::Failed, Some(now));
        }
        Verdict::Retry { after_ms, .. } => (job.state, job.due) = (JobState::Retrying, now + after_ms.unwrap_or(0)),
        Verdict::Snoozed { for_ms } => {
            job.attempt -= 1;
            job.state = if job.attempt == 0 { JobState::Pending } else { JobState::Retrying };
            job.due = now + for_ms;
        }
    }
    if job.again && job.state.is_finished() {
        arm(job, now);
    }
}

fn arm(job: &mut Plain, now: i64) {
    (job.state, job.attempt, job.finished, job.again) = (JobState::Pending, 0, None, false);
    (job.created, job.due) = (now, now);
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdict = prop_oneof![
        Just(Verdict::Succeeded),
        Just(Verdict::Failed { why: "never".into() }),
        (0..80i64).prop_map(|ms| Verdict::Retry { after_ms: Some(ms), why: "no".into() }),
        (0..80i64).prop_map(|for_ms| Verdict::Snoozed { for_ms }),
    ];
    let enqueue = (proptest::option::of(0..4u8), any::<bool>(), 0..60i64, -2..3i64, 1..4i64, 0..2u8);
    let step = prop_oneof![
        4 => enqueue.prop_map(|(key, force, delay, priority, max_attempts, handler)| Step::Enqueue {
            key, force: force && key.is_some(), delay, priority, max_attempts, handler
        }),
        4 => (1..4usize).prop_map(|most| Step::Claim { most }),
        4 => (any::<usize>(), verdict).prop_map(|(pick, verdict)| Step::Settle { pick, verdict }),
        1 => any::<usize>().prop_map(|pick| Step::Heartbeat { pick }),
        1 => any::<usize>().prop_map(|pick| Step::Cancel { pick }),
        1 => any::<usize>().prop_map(|pick| Step::Retry { pick }),
        1 => any::<usize>().prop_map(|pick| Step::Purge { pick }),
        3 => (1..90i64).prop_map(Step::Advance),
        1 => Just(Step::Sweep),
    ];
    proptest::collection::vec(step, 1..80)
}

struct World {
    database: Database,
    fronts: Fronts,
    model: Model,
    now: i64,
    made: u32,
    /// Every claim ever made, the stale ones too.
    claims: Vec<(String, i64)>,
}

impl World {
    fn run<T>(&mut self, work: impl FnOnce(&mut Transaction, &Fronts) -> Result<T, JobError>) -> T {
        let mut tx = self.database.begin(Mode::Alone, Timestamp::from_millis(self.now), Quota::UNLIMITED);
        let value = work(&mut tx, &self.fronts).unwrap();
        self.fronts.lower(&tx.commit().unwrap().places);
        value
    }

    fn id(&self, pick: usize) -> String {
        format!("job-{:04}", 1 + pick % (self.made as usize).max(1))
    }

    fn step(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Enqueue { key, force, delay, priority, max_attempts, handler } => {
                self.made += 1;
                let (id, ordinal, payload) = (format!("job-{:04}", self.made), self.made, i64::from(self.made));
                let handler = format!("h{handler}");
                let mut options = JobOptions::new()
                    .delay(std::time::Duration::from_millis(*delay as u64))
                    .priority(*priority)
                    .max_attempts(*max_attempts)
                    .lease(std::time::Duration::from_millis(LEASE as u64))
                    .keep(std::time::Duration::from_millis(KEEP as u64));
                if let Some(key) = key {
                    options = options.key(key.to_string());
                }
                if *force {
                    options = options.force();
                }
                let wish = Wish {
                    handler: &handler,
                    payload: Value::Int(payload),
                    options: &options,
                    id: id.clone(),
                    ordinal,
                };
                let got = self.run(|tx, _| change::enqueue(tx, wish));
                let fresh = Plain {
                    handler: handler.clone(),
                    key: *key,
                    payload,
                    priority: *priority,
                    state: JobState::Pending,
                    attempt: 0,
                    max_attempts: *max_attempts,
                    due: now + delay,
                    created: now,
                    ordinal,
                    finished: None,
                    token: 0,
                    again: false,
                };
                let there = key.and_then(|key| {
                    let same = |id: &&String| {
                        self.model.live(id, now).is_some_and(|job| job.handler == handler && job.key == Some(key))
                    };
                    self.model.jobs.keys().find(same).cloned()
                });
                let Some(there) = there else {
                    assert_eq!(got, id);
                    self.model.jobs.insert(id, fresh);
                    return;
                };
                assert_eq!(got, there);
                let job = self.model.jobs.get_mut(&there).unwrap();
                match job.state {
                    JobState::Pending | JobState::Retrying => {
                        job.payload = payload;
                        if *force {
                            job.due = now + delay;
                        }
                    }
                    JobState::Processing if *force => (job.payload, job.again) = (payload, true),
                    JobState::Processing => {}
                    JobState::Succeeded if !force => {}
                    _ => *job = Plain { token: job.token, ..fresh },
                }
            }
            Step::Claim { most } => {
                let wanted = Wanted { queues: &[], has_handler: &|_| true, due_by: None };
                let got = self.run(|tx, fronts| claim::claim(tx, fronts, &wanted, *most));
                let mut due: Vec<_> = self
                    .model
                    .jobs
                    .iter()
                    .filter(|(_, job)| !job.state.is_finished() && job.due <= now)
                    .map(|(id, job)| ((-job.priority, job.due, job.created, job.ordinal), id.clone()))
                    .collect();
                due.sort();
                due.truncate(*most);
                let mut expected = Vec::new();
                for (_, id) in due {
                    let job = self.model.jobs.get_mut(&id).unwrap();
                    job.token += 1;
                    if job.state == JobState::Processing && job.attempt >= job.max_attempts {
                        (job.state, job.finished) = (JobState::Failed, Some(now));
                    } else {
                        job.state = JobState::Processing;
                        job.attempt += 1;
                        job.due = now + LEASE;
                        expected.push((id.clone(), job.token));
                        self.claims.push((id, job.token));
                    }
                }
                let got: Vec<_> = got.jobs.into_iter().map(|job| (job.id, job.token)).collect();
                assert_eq!(got, expected);
            }
            Step::Settle { pick, verdict } => {
                let Some((id, token)) =
                    (!self.claims.is_empty()).then(|| self.claims[pick % self.claims.len()].clone())
                else {
                    return;
                };
                let got = self.run(|tx, _| change::settle(tx, &id, token, verdict));
                let did = self.model.change(&id, now, |job| {
                    let holds = job.state == JobState::Processing && job.token == token;
                    if holds {
                        settle(job, verdict, now);
                    }
                    holds
                });
                assert_eq!(got != Settled::Stale, did);
            }
            Step::Heartbeat { pick } => {
                let Some((id, token)) =
                    (!self.claims.is_empty()).then(|| self.claims[pick % self.claims.len()].clone())
                else {
                    return;
                };
                let got = self.run(|tx, _| change::heartbeat(tx, &id, token));
                let did = self.model.change(&id, now, |job| {
                    let holds = job.state == JobState::Processing && job.token == token;
                    if holds {
                        job.due = now + LEASE;
                    }
                    holds
                });
                assert_eq!(got, did);
            }
            Step::Cancel { pick } => {
                let id = self.id(*pick);
                let got = self.run(|tx, _| change::cancel(tx, &id));
                let did = self.model.change(&id, now, |job| {
                    let open = !job.state.is_finished();
                    if open {
                        (job.state, job.finished, job.again) = (JobState::Cancelled, Some(now), false);
                        job.token += 1;
                    }
                    open
                });
                assert_eq!(got, did);
            }
            Step::Retry { pick } => {
                let id = self.id(*pick);
                let got = self.run(|tx, _| change::retry(tx, &id));
                let did = self.model.change(&id, now, |job| {
                    let idle = job.state != JobState::Processing;
                    if idle && job.state.is_finished() {
                        arm(job, now);
                    }
                    if idle {
                        job.due = now;
                    }
                    idle
                });
                assert_eq!(got, did);
            }
            Step::Purge { pick } => {
                let id = self.id(*pick);
                let got = self.run(|tx, _| change::purge(tx, &id));
                let finished = self.model.live(&id, now).is_some_and(|job| job.state.is_finished());
                if finished {
                    self.model.jobs.remove(&id);
                }
                assert_eq!(got, finished);
            }
            Step::Advance(ms) => self.now += ms,
            Step::Sweep => {
                // What a sweep removes is invisible already, so the model has nothing to do.
                self.run(|tx, _| {
                    use crate::store::key::{self, space};
                    let range = crate::store::Range::prefix(&[space::EXPIRY]);
                    for (entry, _) in tx.scan(&range, crate::store::Direction::Ascending, 64)? {
                        let (_, row) = key::split_expiry(&entry).unwrap();
                        if tx.get_any_row(row)?.is_some_and(|found| found.expired(tx.now())) {
                            tx.delete_row(row)?;
                        }
                    }
                    Ok(())
                });
            }
        }
    }

    fn compare(&mut self) {
        let now = self.now;
        let found = self.run(|tx, _| Ok(list::page(tx, &list::JobFilter::default(), None, usize::MAX)?.jobs));
        let found: BTreeMap<String, Plain> = found
            .into_iter()
            .map(|job| {
                let plain = Plain {
                    handler: job.handler,
                    key: job.key.map(|key| key.parse().unwrap()),
                    payload: job.payload.as_int().unwrap(),
                    priority: job.priority,
                    state: job.state,
                    attempt: job.attempt,
                    max_attempts: job.max_attempts,
                    due: job.due_at.as_millis(),
                    created: job.created_at.as_millis(),
                    ordinal: job.ordinal,
                    finished: job.finished_at.map(|at| at.as_millis()),
                    token: job.token,
                    again: job.again,
                };
                (job.id, plain)
            })
            .collect();
        let expected: BTreeMap<String, Plain> = self
            .model
            .jobs
            .iter()
            .filter(|(id, _)| self.model.live(id, now).is_some())
            .map(|(id, job)| (id.clone(), job.clone()))
            .collect();
        assert_eq!(found, expected);
        let wrong = self.run(|tx, _| {
            let mut wrong = Vec::new();
            for space in verify::SPACES {
                let range = crate::store::Range::prefix(&[space]);
                for (key, bytes) in tx.scan(&range, crate::store::Direction::Ascending, usize::MAX)? {
                    wrong.extend(verify::fault_of(tx, &key, bytes)?);
                }
            }
            Ok(wrong)
        });
        assert_eq!(wrong, Vec::<String>::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn jobs_are_what_the_model_says(steps in steps()) {
        let database = Database::open(Arc::new(MemoryStore::new()), Pace::default()).unwrap();
        let (fronts, model) = (Fronts::default(), Model::default());
        let mut world = World { database, fronts, model, now: 1_000, made: 0, claims: Vec::new() };
        for step in &steps {
            world.step(step);
            world.compare();
        }
    }
}
