//! Failures: the interpreter's errors as ours, with code, place, source line and call stack.

use std::sync::Arc;

use rhai::{EvalAltResult, Position};

use crate::error::{Error, Frame, ScriptError};
use crate::value::{MAX_DEPTH, Map, Value};

use super::call::spent;
use super::program::Program;
use super::{convert, diagnostic, rename, sandbox};
use crate::spelling;

/// An error of the interpreter in our words, without its place.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) value: Value,
    pub(super) hint: Option<String>,
    /// The name of the function that was not there.
    pub(super) unknown_function: Option<String>,
    pub(super) budget: bool,
}

/// Where the functions of an error are written.
pub(super) trait Places {
    /// The file of a function, by the name it has in the library.
    fn file_of(&self, function: &str) -> Option<Arc<str>>;
    /// A line of a file.
    fn line_of(&self, path: &str, line: usize) -> Option<String>;
}

/// The error of a run that began in `function`, written in `path`.
pub(super) fn of_run(
    places: &impl Places,
    program: &Program,
    function: &str,
    path: &Arc<str>,
    mut error: EvalAltResult,
) -> Error {
    let mut stack = Vec::new();
    let mut function = function.to_owned();
    let mut path = path.clone();
    let place = loop {
        match error {
            EvalAltResult::ErrorInFunctionCall(inner, _, cause, position) => {
                // Functions of the language that call back, such as `map`, wrap errors too and have no file.
                if let Some(file) = places.file_of(&inner) {
                    stack.push(frame(&function, &path, position));
                    path = file;
                    function = inner;
                }
                error = *cause;
            }
            EvalAltResult::ErrorInModule(_, cause, _) => error = *cause,
            other => {
                error = other;
                break error.position();
            }
        }
    };
    stack.push(frame(&function, &path, place));
    stack.reverse();
    let described = describe(error, program);
    let position = diagnostic::position(&path, place);
    let source_line = position.as_ref().and_then(|at| places.line_of(&path, at.line));
    let script = ScriptError {
        code: described.code,
        message: described.message,
        value: described.value,
        position,
        stack,
        source_line,
        hint: described.hint,
    };
    if described.budget { Error::Budget(Box::new(script)) } else { Error::Script(Box::new(script)) }
}

fn frame(function: &str, path: &Arc<str>, place: Position) -> Frame {
    let name = rename::written(function);
    // Closures have made-up names.
    let function = if rhai::is_valid_identifier(name) || name.starts_with('<') { name } else { "a closure" };
    Frame { function: function.to_owned(), position: diagnostic::position(path, place) }
}

/// The error of a statement at file level, and its place.
pub(super) fn at_load(mut error: EvalAltResult) -> (Described, Position) {
    loop {
        match error {
            EvalAltResult::ErrorInFunctionCall(_, _, cause, _) => error = *cause,
            other => {
                let place = other.position();
                return (describe_with(other, 0, 0, 0, 0), place);
            }
        }
    }
}

/// The innermost error of a closure, as `attempt` reports it.
pub(super) fn innermost(error: EvalAltResult) -> Described {
    at_load(error).0
}

fn describe(error: EvalAltResult, program: &Program) -> Described {
    let budget = program.budget();
    let mut described = describe_with(error, budget.depth, budget.text_bytes, budget.array_items, budget.map_items);
    if described.hint.is_none() {
        described.hint = described.unknown_function.as_deref().and_then(|name| program.known.hint(name));
    }
    described
}

fn describe_with(mut error: EvalAltResult, depth: usize, text: usize, array: usize, map: usize) -> Described {
    use EvalAltResult as E;
    let script = |message: String| Described { code: "script".into(), message, ..Described::default() };
    let budget = |message: String| Described { code: "budget".into(), message, budget: true, ..Described::default() };
    match error {
        E::ErrorRuntime(value, _) => thrown(&value),
        E::ErrorTerminated(..) => budget("the call was stopped".into()),
        E::ErrorTooManyOperations(_) => budget("budget spent: operations".into()),
        E::ErrorStackOverflow(_) => budget(spent("call depth", depth)),
        E::ErrorTooManyVariables(_) => budget(spent("variables", 256)),
        E::ErrorDataTooLarge(what, _) => {
            let what = what.to_lowercase();
            let factor = super::budget::WHOLE_VALUE;
            budget(if what.contains("string") {
                spent("bytes of text in one value", text.saturating_mul(super::budget::WHOLE_TEXT))
            } else if what.contains("map") {
                spent("map entries in one value", map.saturating_mul(factor))
            } else {
                spent("array elements in one value", array.saturating_mul(factor))
            })
        }
        E::ErrorFunctionNotFound(signature, _) => not_found(&signature),
        E::ErrorPropertyNotFound(name, _) => Described {
            hint: Some(format!(
                "use `.get(\"{name}\")`, which gives `()`, or `\"{name}\" in map` when it may be missing"
            )),
            ..script(format!("the map has no property `{name}`"))
        },
        E::ErrorIndexNotFound(name, _) => script(format!("there is nothing under `{name}`")),
        E::ErrorVariableNotFound(name, _) => script(format!("there is no variable `{}`", rename::plain(&name))),
        E::ErrorMismatchDataType(wanted, got, _) => {
            let (wanted, got) = (convert::plain_type(&wanted), convert::plain_type(&got));
            script(format!("expected {wanted}, not {got}"))
        }
        E::ErrorArrayBounds(length, index, _) => script(format!("index {index} is outside an array of {length}")),
        E::ErrorStringBounds(length, index, _) => script(format!("index {index} is outside a text of {length}")),
        E::ErrorArithmetic(what, _) => script(lower(&what)),
        E::ErrorNonPureMethodCallOnConstant(name, _) => script(format!("`{name}` would change a constant")),
        E::ErrorAssignmentToConstant(name, _) => {
            script(format!("`{}` is a constant and cannot be assigned to", rename::plain(&name)))
        }
        E::ErrorDotExpr(text, _) => {
            // `Unknown property 'foo' - a getter is not registered for type 'i64'`
            let quoted: Vec<&str> = text.split('\'').collect();
            match quoted[..] {
                [_, name, _, kind, ..] => {
                    let kind = convert::plain_type(kind);
                    let message = format!("a value of type {kind} has no property `{name}`");
                    Described { hint: property_hint(kind, name), ..script(message) }
                }
                _ => script(lower(&text)),
            }
        }
        E::ErrorDataRace(..) => script("a shared value is in use where it would be changed".into()),
        _ => {
            error.set_position(Position::NONE);
            script(lower(&rename::plain(&error.to_string())))
        }
    }
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}

/// What `throw value` carries: a map may say code and message.
fn thrown(value: &rhai::Dynamic) -> Described {
    let value = match convert::from_dynamic(value) {
        Ok(value) => value,
        Err(why) => {
            return Described {
                code: "script".into(),
                message: format!("what was thrown is not data: {why}"),
                ..Described::default()
            };
        }
    };
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let code = text("code").filter(|code| !code.is_empty()).unwrap_or_else(|| "script".into());
    let message = match &value {
        Value::Text(text) => text.clone(),
        Value::Map(_) => text("message").unwrap_or_else(|| format!("thrown: {value}")),
        Value::Null => "thrown".into(),
        other => format!("thrown: {other}"),
    };
    let hint = text("hint");
    let budget = code == "budget";
    Described { code, message, value, hint, unknown_function: None, budget }
}

/// `name (i64, string)`: no function takes these.
fn not_found(signature: &str) -> Described {
    let signature = rename::plain(signature);
    let (name, types) = signature.split_once('(').unwrap_or((&signature, ""));
    let name = name.trim();
    let types: Vec<&str> = types
        .strip_suffix(')')
        .unwrap_or(types)
        .split(", ")
        .filter(|kind| !kind.is_empty())
        .map(|kind| convert::plain_type(kind.trim_start_matches("&mut ").trim()))
        .collect();
    let (message, hint) = match (name, &types[..]) {
        ("==" | "!=" | "<" | "<=" | ">" | ">=", [a, b]) => (
            format!("cannot compare {a} with {b} by `{name}`"),
            (*a == "()" || *b == "()").then(|| "a value is missing here: ask `x == ()` first".to_owned()),
        ),
        (_, [a, b]) if !rhai::is_valid_identifier(name) && !name.contains('$') => {
            (format!("`{name}` cannot take {a} and {b}"), operator_hint(a, b))
        }
        (_, [a]) if !rhai::is_valid_identifier(name) && !name.contains('$') => {
            (format!("`{name}` cannot take {a}"), None)
        }
        (_, []) => (format!("there is no function `{name}`"), None),
        (_, types) => (format!("`{name}` cannot take ({})", types.join(", ")), None),
    };
    Described { code: "script".into(), message, hint, unknown_function: Some(name.to_owned()), ..Described::default() }
}

/// What to do about a property that a value of this kind does not have.
fn property_hint(kind: &str, name: &str) -> Option<String> {
    match (kind, name) {
        ("()", _) => Some("there is nothing here: ask `x == ()` first, as `find_one` and `get` give `()`".into()),
        ("array" | "string" | "map", "length" | "size" | "count") => Some("use `.len()`".into()),
        ("decision", _) => spelling::nearest(name, DECISION).map(|near| format!("did you mean `{near}`?")),
        _ if sandbox::host_names().contains(name) => Some(format!("`{name}` is a function: call it, `{name}(…)`")),
        _ => None,
    }
}

/// The fields of a decision.
const DECISION: [&str; 11] = [
    "allowed",
    "delay",
    "lease",
    "limit",
    "reason",
    "remaining",
    "reset_at",
    "retry_after",
    "used",
    "violated",
    "would_refuse",
];

/// What to do about an operator between two kinds of values.
fn operator_hint(a: &str, b: &str) -> Option<String> {
    Some(match (a, b) {
        ("()", _) | (_, "()") => "a value is missing here: ask `x == ()` first".into(),
        ("int" | "float", "string") | ("string", "int" | "float") => {
            "make a number of the text first: `parse_int(text)`, or `duration(\"5m\")` of a span".into()
        }
        _ => return None,
    })
}

/// A thrown map's entries that are not its code and message: the data of an outcome.
pub(super) fn data_of(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let rest: Map = map
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "code" | "message"))
                .take(MAX_DEPTH * MAX_DEPTH)
                .map(|(name, item)| (name.clone(), item.clone()))
                .collect();
            if rest.is_empty() { Value::Null } else { Value::Map(rest) }
        }
        _ => Value::Null,
    }
}
