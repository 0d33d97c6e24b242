//! Work in script tests: due jobs run, with closures of the test in place of actions.

use crate::engine::JobAnswer;
use crate::job::Job;
use crate::script::CallClosure;
use crate::time::parse_duration;
use crate::value::{Map, Value};

use super::world::World;

/// Jobs of one `work()`.
const MOST_JOBS: usize = 100;

/// Runs the jobs that are due, once: the summary.
pub(super) fn work(world: &World, call: CallClosure<'_>) -> Result<Value, String> {
    let mut stand_in = |job: &Job| call(&job.handler, &[job.to_value()]).map(|answer| answer.and_then(answer_of));
    let summary = world.engine().work_with(MOST_JOBS, &mut stand_in).map_err(|error| error.to_string())?;
    let count = |name: &str, jobs: u64| (name.to_owned(), Value::Int(i64::try_from(jobs).unwrap_or(i64::MAX)));
    Ok(Value::Map(Map::from([
        count("claimed", summary.claimed),
        count("succeeded", summary.succeeded),
        count("failed", summary.failed),
        count("retried", summary.retried),
        count("skipped", summary.skipped),
    ])))
}

/// What a closure's value says: `#{ retry: "5m" | true, why }`, `#{ fail: "why" }`, `#{ snooze: "1m" }`; anything else
/// is done.
fn answer_of(value: Value) -> Result<JobAnswer, String> {
    let Value::Map(map) = &value else { return Ok(JobAnswer::Done) };
    let span = |name: &str, value: &Value| match value {
        Value::Int(ms) => u64::try_from(*ms)
            .map(std::time::Duration::from_millis)
            .map_err(|_| format!("`{name}` is at least 0 ms, not {ms}")),
        Value::Text(text) => parse_duration(text).map_err(|why| format!("`{name}`: {why}")),
        other => Err(format!("`{name}` is a duration such as \"5m\", not {}", other.type_name())),
    };
    let why = map.get("why").and_then(Value::as_str).unwrap_or("the test says so").to_owned();
    match (map.get("retry"), map.get("fail"), map.get("snooze")) {
        (Some(Value::Bool(true)), None, None) => Ok(JobAnswer::Retry { after: None, why }),
        (Some(after), None, None) => Ok(JobAnswer::Retry { after: Some(span("retry", after)?), why }),
        (None, Some(Value::Text(why)), None) => Ok(JobAnswer::Fail { why: why.clone() }),
        (None, None, Some(after)) => Ok(JobAnswer::Snooze(span("snooze", after)?)),
        _ => Ok(JobAnswer::Done),
    }
}
