//! Schedules of an engine: due slots enqueued by whoever works, and what is known of each.

use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Serialize;

use crate::error::{Diagnostic, Error, Severity};
use crate::id::new_id;
use crate::job::MissedSlots;
use crate::job::fire;
use crate::job::schedule::Schedule;
use crate::script::Program;
use crate::time::Timestamp;

use super::action::{Actions, check_handler};
use super::{Engine, Loaded};

/// What is known of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScheduleInfo {
    /// Its name: that of its handler, unless its declaration says another.
    pub name: String,
    /// The procedure or action that its jobs are for.
    pub handler: String,
    /// When it comes: `every 1m`, or a cron pattern.
    pub pattern: String,
    /// The time zone whose clocks a cron pattern reads.
    pub zone: Option<String>,
    /// What becomes of slots that came while nobody worked.
    pub missed: MissedSlots,
    /// The slot that is enqueued next: one that is due, else the first to come; none when the calendar has no other.
    pub next_slot: Option<Timestamp>,
    /// The slot that was enqueued last.
    pub last_slot: Option<Timestamp>,
    /// The id of that slot's job, while it waits or runs; no other slot is enqueued until it is finished.
    pub job: Option<String>,
}

fn schedules_of(program: &Program) -> Vec<&Schedule> {
    program.schedules().iter().map(|declared| &declared.schedule).collect()
}

impl Engine {
    /// The schedules that the loaded files declare, by name.
    ///
    /// Errors: [`Error::Storage`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Engine, ManualClock, Timestamp};
    /// let clock = ManualClock::at(Timestamp::EPOCH);
    /// let engine = Engine::builder()
    ///     .memory()
    ///     .clock(clock.clone())
    ///     .source("tidy.rhai", r#"
    ///         every("1m", "tidy");
    ///         fn tidy() { insert("runs", #{}) }
    ///     "#)
    ///     .open()?;
    /// assert_eq!(engine.work_once(10)?.succeeded, 0);
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(engine.work_once(10)?.succeeded, 1);
    /// let tidy = engine.schedules()?.remove(0);
    /// assert_eq!((&*tidy.name, &*tidy.pattern), ("tidy", "every 1m"));
    /// assert_eq!(tidy.last_slot, Some(Timestamp::from_millis(60_000)));
    /// assert_eq!(tidy.next_slot, Some(Timestamp::from_millis(120_000)));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn schedules(&self) -> Result<Vec<ScheduleInfo>, Error> {
        self.check_open()?;
        let loaded = self.inner.loaded.load_full();
        let (infos, _) = self.repeat(true, |tx| {
            let mut infos = Vec::new();
            for schedule in schedules_of(&loaded.program) {
                let outlook = fire::outlook(tx, schedule)?;
                infos.push(ScheduleInfo {
                    name: schedule.name.clone(),
                    handler: schedule.handler.clone(),
                    pattern: schedule.timing.pattern(),
                    zone: schedule.timing.zone().map(str::to_owned),
                    missed: schedule.missed,
                    next_slot: outlook.due.or(outlook.next),
                    last_slot: outlook.last,
                    job: outlook.job,
                });
            }
            Ok(infos)
        })?;
        Ok(infos)
    }

    /// Begins with the schedules of what was just loaded.
    pub(super) fn begin_schedules(&self) -> Result<(), Error> {
        let loaded = self.inner.loaded.load_full();
        if self.inner.read_only || loaded.program.schedules().is_empty() {
            return Ok(());
        }
        self.alone(|tx| Ok(fire::begin(tx, &schedules_of(&loaded.program))?))
    }

    /// Enqueues a job for each schedule that is due; how many.
    pub(super) fn fire_due(&self) -> Result<u64, Error> {
        if self.inner.read_only {
            return Ok(0);
        }
        let loaded = self.inner.loaded.load_full();
        let schedules = schedules_of(&loaded.program);
        // Looked at first without keeping anybody waiting: mostly there is nothing to do.
        if !self.repeat(true, |tx| Ok(fire::is_waited_for(tx, &schedules)?))?.0 {
            return Ok(0);
        }
        let mut random = ChaCha12Rng::from_seed(self.inner.next_seed());
        self.alone(|tx| {
            // Files were loaded meanwhile: what they say counts, and the next look finds it.
            if !Arc::ptr_eq(&loaded, &self.inner.loaded.load()) {
                return Ok(0);
            }
            let now = tx.now();
            fire::fire(tx, &schedules, || new_id(now, &mut random))
        })
    }

    /// When the next slot is to be enqueued.
    pub(super) fn next_slot(&self) -> Result<Option<Timestamp>, Error> {
        let loaded: Arc<Loaded> = self.inner.loaded.load_full();
        if self.inner.read_only || loaded.program.schedules().is_empty() {
            return Ok(None);
        }
        let (next, _) = self.repeat(true, |tx| {
            let mut next: Option<Timestamp> = None;
            for schedule in schedules_of(&loaded.program) {
                let outlook = fire::outlook(tx, schedule)?;
                if let Some(slot) = outlook.due.or(outlook.next).filter(|_| outlook.job.is_none()) {
                    next = Some(next.map_or(slot, |next| next.min(slot)));
                }
            }
            Ok(next)
        })?;
        Ok(next)
    }
}

/// Refuses schedules whose handler is not there, or would not take their payload.
pub(super) fn check(program: &Program, actions: &Actions) -> Result<(), Error> {
    let mut faults = Vec::new();
    for declared in program.schedules() {
        let Schedule { name, handler, payload, .. } = &declared.schedule;
        let Err(why) = check_handler(program, actions, handler, payload) else { continue };
        let place = &declared.position;
        let hint = match why.code {
            "unknown_handler" => {
                "register an action before the files are loaded, or schedule a procedure that enqueues it"
            }
            _ => "what the procedure is given is the `payload` of the schedule",
        };
        faults.push(Diagnostic {
            code: "bad_schedule",
            severity: Severity::Error,
            message: format!("schedule `{name}`: {}", why.message),
            position: Some(place.clone()),
            source_line: program.line(&place.file, place.line).map(str::to_owned),
            hint: Some(hint.to_owned()),
        });
    }
    if faults.is_empty() { Ok(()) } else { Err(Error::Compile(faults)) }
}
