//! Functions that script tests have besides the host functions.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::outcome::Outcome;
use crate::script::Natives;
use crate::time::{Timestamp, parse_duration};
use crate::value::{Map, Value};

use super::assertion;
use super::work;
use super::world::World;

/// The functions of one test's world. Errors: two of them have one name, which is a fault of this file.
pub(super) fn natives(world: &Arc<World>) -> Result<Natives, String> {
    let mut natives = Natives::new();
    let add = |natives: &mut Natives, name, arity, body: fn(&World, &[Value]) -> Result<Value, String>| {
        let world = world.clone();
        natives.register(name, arity, move |arguments| body(&world, arguments))
    };
    for arity in 1..=3 {
        add(&mut natives, "run", arity, run)?;
    }
    add(&mut natives, "advance", 1, |world, given| {
        let by = span(&given[0])?;
        let now = world.engine().now();
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        world.clock.set(now.saturating_add_millis(ms).min(Timestamp::MAX));
        Ok(Value::Null)
    })?;
    add(&mut natives, "set_clock", 1, |world, given| {
        world.clock.set(instant(&given[0])?);
        Ok(Value::Null)
    })?;
    add(&mut natives, "as_caller", 1, |world, given| {
        world.set_caller(map("as_caller", &given[0])?);
        Ok(Value::Null)
    })?;
    add(&mut natives, "sweep", 0, |world, _| {
        let summary = world.engine().sweep().map_err(|error| error.to_string())?;
        let count = |rows: u64| Value::Int(i64::try_from(rows).unwrap_or(i64::MAX));
        let removed = ("removed".to_owned(), count(summary.removed));
        Ok(Value::Map(Map::from([removed, ("moved".to_owned(), count(summary.moved))])))
    })?;
    natives.register_keeping("on_action", {
        let world = world.clone();
        move |given| {
            if let Some(Value::Text(name)) = given.first() {
                world.add_action(name);
            }
            Ok(Value::Null)
        }
    })?;
    natives.register_calling("work", 0, {
        let world = world.clone();
        move |_, call| work::work(&world, call)
    })?;
    add(&mut natives, "reopen", 0, |world, _| {
        world.reopen().map_err(|error| error.to_string())?;
        Ok(Value::Null)
    })?;
    for arity in 1..=2 {
        add(&mut natives, "assert", arity, |world, given| judged(world, assertion::holds(&given[0], given.get(1))))?;
    }
    for arity in 2..=3 {
        add(&mut natives, "assert_eq", arity, |world, given| {
            judged(world, assertion::equal(&given[0], &given[1], given.get(2)))
        })?;
    }
    for arity in 1..=2 {
        add(&mut natives, "assert_denied", arity, |world, given| {
            judged(world, assertion::ended(&given[0], "denied", given.get(1)))
        })?;
        add(&mut natives, "assert_aborted", arity, |world, given| {
            judged(world, assertion::ended(&given[0], "aborted", given.get(1)))
        })?;
        add(&mut natives, "assert_fails", arity, |world, given| {
            judged(world, assertion::ended(&given[0], "failed", given.get(1)))
        })?;
    }
    Ok(natives)
}

fn judged(world: &World, verdict: Result<(), String>) -> Result<Value, String> {
    if let Err(message) = &verdict {
        world.note_failed(message);
    }
    verdict.map(|()| Value::Null)
}

/// `run(procedure[, args[, caller]])`: the outcome map of one call.
fn run(world: &World, given: &[Value]) -> Result<Value, String> {
    let Some(Value::Text(procedure)) = given.first() else {
        return Err("`run` takes the name of a procedure first".into());
    };
    let caller = given.get(2).map(|caller| map("run", caller)).transpose()?;
    let result = world.run(procedure, given.get(1).unwrap_or(&Value::Null), caller)?;
    Ok(outcome_map(result))
}

/// The outcome as scripts see it, every field always there; of `attempt` it is the same.
fn outcome_map(result: Result<Outcome<Value>, Error>) -> Value {
    let mut map = Map::new();
    for name in ["value", "code", "message", "data", "retry_after"] {
        map.insert(name.into(), Value::Null);
    }
    map.insert("violated".into(), Value::Array(Vec::new()));
    let mut set = |name: &str, value: Value| map.insert(name.to_owned(), value);
    match result {
        Ok(Outcome::Returned(value)) => {
            set("status", "returned".into());
            set("value", value);
        }
        Ok(Outcome::Refused(refusal)) => {
            set("status", refusal.kind.as_str().into());
            set("code", refusal.code.into());
            set("message", refusal.message.into());
            set("data", refusal.data);
            if let Some(wait) = refusal.retry_after {
                set("retry_after", Value::Int(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)));
            }
            let violated = refusal.violated.iter().map(|violation| {
                let name = ("name".to_owned(), Value::from(&*violation.name));
                Value::Map(Map::from([name, ("wait".to_owned(), Value::Int(violation.wait))]))
            });
            set("violated", Value::Array(violated.collect()));
        }
        Err(error) => {
            set("status", "failed".into());
            set("code", error.code().into());
            match error {
                Error::Script(script) | Error::Budget(script) | Error::Cancelled(script) => {
                    set("message", script.message.into());
                    set("data", script.value);
                }
                other => {
                    set("message", other.to_string().into());
                }
            }
        }
    }
    Value::Map(map)
}

fn span(value: &Value) -> Result<Duration, String> {
    match value {
        Value::Int(ms) => u64::try_from(*ms)
            .map(Duration::from_millis)
            .map_err(|_| format!("`advance` cannot go back by {ms} ms: use `set_clock`")),
        Value::Text(text) => parse_duration(text).map_err(|why| why.to_string()),
        other => Err(format!("`advance` takes milliseconds or text such as \"5m\", not {}", other.type_name())),
    }
}

fn instant(value: &Value) -> Result<Timestamp, String> {
    match value {
        Value::Int(ms) if *ms <= Timestamp::MAX.as_millis() => Ok(Timestamp::from_millis(*ms)),
        Value::Int(ms) => Err(format!("{ms} is after the year 9999")),
        Value::Text(text) => text.parse().map_err(|why: crate::time::InvalidTime| why.to_string()),
        other => Err(format!("`set_clock` takes milliseconds or RFC 3339 text, not {}", other.type_name())),
    }
}

fn map(function: &str, value: &Value) -> Result<Map, String> {
    match value {
        Value::Map(map) => Ok(map.clone()),
        Value::Null => Ok(Map::new()),
        other => Err(format!("`{function}` takes the caller as a map, not {}", other.type_name())),
    }
}
