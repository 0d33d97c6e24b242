//! Outcomes in scripts: `deny`, `abort`, and `attempt`, which makes one out of a closure.

use std::time::Duration;

use rhai::{Dynamic, EvalAltResult, FnPtr, Map as Fields, Module, NativeCallContext};

use crate::limit::{AllAsked, Violation};
use crate::outcome::{Refusal, RefusalKind};
use crate::time::parse_duration_ms;
use crate::value::{Map, Value};

use super::super::budget::MOST_DEPTH;
use super::super::call::{self, End, with, with_end, with_own_call};
use super::super::convert::{self, type_name};
use super::super::raised::{Failure, Raised, raise};
use super::super::{failure, run};
use super::limits::DecisionValue;

type Answer<T> = Result<T, Box<EvalAltResult>>;

pub(super) fn register(module: &mut Module) {
    for (name, kind) in [("deny", RefusalKind::Denied), ("abort", RefusalKind::Aborted)] {
        module.set_native_fn(name, move |context: NativeCallContext| -> Answer<()> {
            with(&context, |_| Err(Failure::refused(refusal(&Dynamic::UNIT, kind)?)))
        });
        module.set_native_fn(name, move |context: NativeCallContext, why: Dynamic| -> Answer<()> {
            with(&context, |_| Err(Failure::refused(refusal(&why, kind)?)))
        });
    }
    module.set_native_fn("attempt", |context: NativeCallContext, closure: FnPtr| -> Answer<Dynamic> {
        with_own_call(&context, || attempt(&context, &closure))
    });
}

/// A refusal of what a script says: a text, a map or a decision.
fn refusal(why: &Dynamic, kind: RefusalKind) -> Result<Refusal, Failure> {
    if let Some(decision) = why.read_lock::<DecisionValue>() {
        return Ok(decision.refusal(kind));
    }
    let mut refusal = Refusal {
        kind,
        code: kind.as_str().to_owned(),
        message: String::new(),
        retry_after: None,
        violated: Vec::new(),
        data: Value::Null,
        asked: AllAsked::default(),
    };
    if why.is_unit() {
        return Ok(refusal);
    }
    if let Ok(text) = why.as_immutable_string_ref() {
        refusal.message = text.to_string();
        return Ok(refusal);
    }
    let Ok(map) = why.as_map_ref() else {
        return raise("bad_refusal", format!("a refusal is a text, a map or a decision, not {}", type_name(why)));
    };
    let map = convert::from_map(&map).map_err(|why| Raised::new("bad_refusal", why))?;
    for (name, value) in map {
        match (name.as_str(), value) {
            ("code", Value::Text(code)) if !code.is_empty() => refusal.code = code,
            ("message", Value::Text(message)) => refusal.message = message,
            ("data", data) => refusal.data = data,
            ("retry_after", Value::Null) => {}
            ("retry_after", Value::Int(ms)) if ms >= 0 => refusal.retry_after = Some(Duration::from_millis(ms as u64)),
            ("retry_after", Value::Text(text)) => {
                let ms = parse_duration_ms(&text).map_err(|why| Raised::new("bad_refusal", why.to_string()))?;
                refusal.retry_after = Some(Duration::from_millis(ms as u64));
            }
            ("code" | "message" | "retry_after", value) => {
                return raise("bad_refusal", format!("`{name}` of a refusal cannot be {value}"));
            }
            _ => {
                let message = format!("a refusal has no `{name}`: it has code, message, retry_after and data");
                return raise("bad_refusal", message);
            }
        }
    }
    Ok(refusal)
}

/// Runs a closure as a nested transaction and returns its outcome.
fn attempt(context: &NativeCallContext, closure: &FnPtr) -> Answer<Dynamic> {
    let savepoint = with(context, |call| {
        if call.attempts >= MOST_DEPTH {
            return raise("too_deep", format!("attempts are nested more than {MOST_DEPTH} deep"));
        }
        call.attempts += 1;
        Ok(call.transaction.savepoint())
    })?;
    let result = run::returned(closure.call_within_context::<Dynamic>(context, ()));
    let refused = with_end(|call| {
        call.attempts = call.attempts.saturating_sub(1);
        match call.end.take() {
            Some(End::Refused(refusal)) => {
                if refusal.kind == RefusalKind::Aborted {
                    call.transaction.rollback_to(savepoint);
                }
                Ok(Some(refusal))
            }
            // Spent budgets, a caller's wish to stop and faults of the store are the whole call's.
            Some(end) => {
                call.end = Some(end);
                Err(())
            }
            None => {
                if result.is_err() {
                    call.transaction.rollback_to(savepoint);
                }
                Ok(None)
            }
        }
    });
    match (refused, result) {
        (None | Some(Err(())), result) => {
            // The record in the call ends it; this only carries the news up.
            Err(result.err().unwrap_or_else(|| call::stopped(context.call_position())))
        }
        (Some(Ok(Some(refusal))), _) => Ok(refused_map(refusal)),
        (Some(Ok(None)), Ok(value)) => {
            let mut map = outcome("returned");
            map.insert("value".into(), value);
            Ok(Dynamic::from_map(map))
        }
        (Some(Ok(None)), Err(error)) => {
            let uncatchable = error.is_system_error();
            if uncatchable {
                return Err(error);
            }
            let described = failure::innermost(*error);
            let mut map = outcome("failed");
            map.insert("code".into(), described.code.into());
            map.insert("message".into(), described.message.into());
            map.insert("data".into(), convert::to_dynamic(failure::data_of(&described.value)));
            Ok(Dynamic::from_map(map))
        }
    }
}

/// Errors that no script may see past.
trait SystemError {
    fn is_system_error(&self) -> bool;
}

impl SystemError for EvalAltResult {
    fn is_system_error(&self) -> bool {
        match self {
            // Callbacks wrap what passes through them.
            EvalAltResult::ErrorInFunctionCall(_, _, cause, _) => cause.is_system_error(),
            other => other.is_system_exception(),
        }
    }
}

fn outcome(status: &'static str) -> Fields {
    let mut map = Fields::new();
    map.insert("status".into(), status.into());
    for name in ["value", "code", "message", "data", "retry_after"] {
        map.insert(name.into(), Dynamic::UNIT);
    }
    map.insert("violated".into(), Dynamic::from_array(Vec::new()));
    map
}

fn refused_map(refusal: Refusal) -> Dynamic {
    let ms = |wait: Duration| Value::Int(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
    let mut map = outcome(refusal.kind.as_str());
    map.insert("code".into(), refusal.code.into());
    map.insert("message".into(), refusal.message.into());
    map.insert("data".into(), convert::to_dynamic(refusal.data));
    map.insert("retry_after".into(), refusal.retry_after.map_or(Dynamic::UNIT, |wait| convert::to_dynamic(ms(wait))));
    let violated = refusal.violated.into_iter().map(|Violation { name, wait, .. }| {
        Value::Map(Map::from([("name".to_owned(), Value::from(&*name)), ("wait".to_owned(), Value::Int(wait))]))
    });
    map.insert("violated".into(), convert::to_dynamic(Value::Array(violated.collect())));
    Dynamic::from_map(map)
}
