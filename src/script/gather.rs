//! Gathering: what the files of a program declare, put together by name.

use crate::document::collection::CollectionSpec;
use crate::error::{Diagnostic, Position};
use crate::job::schedule::Schedule;

use super::diagnostic::{at, hinted, position};
use super::host::collections::{self, CollectionValue};
use super::host::limits::LimitValue;
use super::host::schedules::ScheduleValue;
use super::source::SourceFile;

/// A limit that a file declares.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredLimit {
    pub(crate) limit: LimitValue,
    pub(crate) position: Position,
}

/// A collection that files declare, of all of them together.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredCollection {
    pub(crate) spec: CollectionSpec,
    /// Where it is declared first.
    pub(crate) position: Position,
}

/// A schedule that a file declares.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredSchedule {
    pub(crate) schedule: Schedule,
    pub(crate) position: Position,
}

/// Keeps a declared limit, unless another place declares the same name otherwise.
pub(super) fn declare_limit(
    limits: &mut Vec<DeclaredLimit>,
    limit: LimitValue,
    file: &SourceFile,
    place: rhai::Position,
    faults: &mut Vec<Diagnostic>,
) {
    let Some(position) = position(&file.path, place) else { return };
    match limits.binary_search_by(|other| other.limit.name().cmp(limit.name())) {
        Err(at) => limits.insert(at, DeclaredLimit { limit, position }),
        Ok(same) if limits[same].limit == limit => {}
        Ok(other) => {
            let other = &limits[other];
            let message = format!(
                "limit `{}` is declared twice with different settings: here and at {}",
                limit.name(),
                other.position
            );
            let hint = format!("there it is {}, here {}", other.limit.describe(), limit.describe());
            faults.push(hinted(at(file, place, "bad_limit", message), Some(hint)));
        }
    }
}

/// Adds what is declared of a collection to what other places declare of it.
pub(super) fn declare_collection(
    collections: &mut Vec<DeclaredCollection>,
    CollectionValue(spec): CollectionValue,
    file: &SourceFile,
    place: rhai::Position,
    faults: &mut Vec<Diagnostic>,
) {
    let Some(position) = position(&file.path, place) else { return };
    match collections.binary_search_by(|other| other.spec.name.cmp(&spec.name)) {
        Err(at) => collections.insert(at, DeclaredCollection { spec, position }),
        Ok(other) => match collections::merged(collections[other].spec.clone(), &spec) {
            Ok(merged) => collections[other].spec = merged,
            Err(why) => {
                let message = format!("{why}: here and at {}", collections[other].position);
                faults.push(at(file, place, "bad_collection", message));
            }
        },
    }
}

/// Keeps a declared schedule, unless another place declares one of the same name.
pub(super) fn declare_schedule(
    schedules: &mut Vec<DeclaredSchedule>,
    ScheduleValue(schedule): ScheduleValue,
    file: &SourceFile,
    place: rhai::Position,
    faults: &mut Vec<Diagnostic>,
) {
    let Some(position) = position(&file.path, place) else { return };
    match schedules.binary_search_by(|other| other.schedule.name.cmp(&schedule.name)) {
        Err(at) => schedules.insert(at, DeclaredSchedule { schedule, position }),
        Ok(other) => {
            let message =
                format!("schedule `{}` is declared twice: here and at {}", schedule.name, schedules[other].position);
            let hint = "a schedule is named after its handler: give one of them a name, as in `#{ name: \"weekly\" }`";
            faults.push(hinted(at(file, place, "bad_schedule", message), Some(hint)));
        }
    }
}
