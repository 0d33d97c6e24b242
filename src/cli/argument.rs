//! Arguments of a call, as typed on the command line.

use std::io::Read;

use anyhow::{Context, Result};
use tollgate::{Arguments, Map, ParameterKind, Procedure, Timestamp, Value};

use super::exit::usage;

/// Reads `ARGS…`, given by position or as `name=value`, for a procedure (where it is known).
pub(crate) fn typed(words: &[String], procedure: Option<&Procedure>) -> Result<Arguments> {
    let kind_at = |index: usize| procedure.and_then(|p| p.parameters.get(index)).map(|p| p.kind);
    let kind_of = |name: &str| procedure.and_then(|p| p.parameters.iter().find(|p| p.name == name)).map(|p| p.kind);
    let mut positional = Vec::new();
    let mut named = Map::new();
    for word in words {
        match split_name(word) {
            Some((name, text)) => {
                if named.insert(name.to_owned(), typed_value(text, kind_of(name))?).is_some() {
                    return Err(usage(format!("the argument `{name}` is given twice")));
                }
            }
            None => positional.push(typed_value(word, kind_at(positional.len()))?),
        }
    }
    match (positional.is_empty(), named.keys().next()) {
        (_, None) => Ok(Arguments::Positional(positional)),
        (true, Some(_)) => Ok(Arguments::Named(named)),
        (false, Some(name)) => Err(usage(format!(
            "arguments are given by position and by name (`{name}=…`): use one way; \
             a text with `=` is given by position in JSON quotes, such as '\"{name}=…\"'"
        ))),
    }
}

/// `name=value` taken apart, when it is one.
fn split_name(word: &str) -> Option<(&str, &str)> {
    let (name, text) = word.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    let is_name = (first.is_ascii_alphabetic() || first == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, text))
}

/// A word as a value: what it is in JSON, else text. Where text is due it stays the text it is.
fn typed_value(text: &str, kind: Option<ParameterKind>) -> Result<Value> {
    match Value::from_json(text) {
        Ok(value @ Value::Text(_)) => Ok(value),
        _ if kind == Some(ParameterKind::Text) => Ok(Value::Text(text.to_owned())),
        Ok(value) => Ok(value),
        Err(why) => {
            let meant_as_json = text.starts_with(['{', '[', '"']) || is_json(text);
            if meant_as_json {
                return Err(usage(format!(
                    "the argument {text} cannot be read ({why}): to pass it as text, put it in JSON quotes"
                )));
            }
            Ok(Value::Text(text.to_owned()))
        }
    }
}

/// Whether a text is JSON by its form, such as a number beyond every range; `007` is not.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Reads `--args`: JSON text, `@file`, or `-` for stdin. An array is by position, an object by name.
pub(crate) fn document(given: &str) -> Result<Arguments> {
    match Value::from_json(&text_of(given)?) {
        Ok(Value::Array(values)) => Ok(Arguments::Positional(values)),
        Ok(Value::Map(map)) => Ok(Arguments::Named(map)),
        Ok(other) => Err(usage(format!("--args is {other}: give an array (by position) or an object (by name)"))),
        Err(why) => Err(usage(format!("--args is not JSON: {why}"))),
    }
}

/// The text behind JSON text, `@file` or `-`.
fn text_of(given: &str) -> Result<String> {
    if given == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
        return Ok(text);
    }
    match given.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read {path}")),
        None => Ok(given.to_owned()),
    }
}

/// Reads a JSON object, such as `--caller` takes.
pub(crate) fn object(what: &str, given: &str) -> Result<Map> {
    match Value::from_json(&text_of(given)?) {
        Ok(Value::Map(map)) => Ok(map),
        Ok(other) => Err(usage(format!("{what} is {other}: give a JSON object"))),
        Err(why) => Err(usage(format!("{what} is not JSON: {why}"))),
    }
}

/// Reads an instant: RFC 3339 text, or milliseconds since the epoch.
pub(crate) fn instant(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    let instant = match text.parse::<i64>() {
        Ok(ms) => Timestamp::from_millis(ms),
        Err(_) => text.parse().map_err(|why| format!("{why}, or milliseconds since the epoch"))?,
    };
    if instant > Timestamp::MAX || instant < MIN {
        return Err(format!("{text} is out of range: the years 0000 to 9999 are in it"));
    }
    Ok(instant)
}

/// The first instant that RFC 3339 can say: the beginning of the year 0.
const MIN: Timestamp = Timestamp::from_millis(-62_167_219_200_000);

#[cfg(test)]
mod tests {
    use tollgate::{Parameter, Position};

    use super::*;

    fn read(words: &[&str]) -> Result<String> {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        let parameter = |name: &str, kind: ParameterKind| Parameter { name: name.into(), kind, optional: false };
        let procedure = Procedure {
            name: "p".into(),
            parameters: vec![parameter("text", ParameterKind::Text), parameter("any", ParameterKind::Any)],
            documentation: String::new(),
            signature: String::new(),
            position: Position { file: "p.rhai".into(), line: 1, column: 1 },
        };
        Ok(match typed(&words, Some(&procedure))? {
            Arguments::Positional(values) => Value::Array(values).to_json(),
            Arguments::Named(map) => Value::Map(map).to_json(),
        })
    }

    #[test]
    fn words_become_values() {
        for (words, json) in [
            (&["42", "42"][..], r#"["42",42]"#),
            (&["\"42\"", "\"42\""], r#"["42","42"]"#),
            (&["a", "1.0"], r#"["a",1.0]"#),
            (&["any=5", "text=5"], r#"{"any":5,"text":"5"}"#),
            (&["x", "a b=c"], r#"["x","a b=c"]"#),
            (&["x", "\"a=b\""], r#"["x","a=b"]"#),
            (&["x", r#"{"a":[null,true]}"#], r#"["x",{"a":[null,true]}]"#),
            (&["99999999999999999999", "x"], r#"["99999999999999999999","x"]"#),
            (&["x", "007"], r#"["x","007"]"#),
            (&[], "[]"),
        ] {
            assert_eq!(read(words).unwrap(), json, "{words:?}");
        }
    }

    #[test]
    fn what_may_be_a_slip_is_refused() {
        for (words, part) in [
            (&["x", "any=5"][..], "one way"),
            (&["any=1", "any=2"], "twice"),
            (&["x", "99999999999999999999"], "beyond 64 bits"),
            (&["x", "[1,"], "JSON quotes"),
            (&["x", "1e999"], "JSON quotes"),
        ] {
            assert!(read(words).unwrap_err().to_string().contains(part), "{words:?}");
        }
    }

    #[test]
    fn instants_are_within_the_calendar() {
        assert_eq!(instant("1767225600000").unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(instant("2026-01-01T01:00:00+01:00").unwrap().to_string(), "2026-01-01T00:00:00Z");
        for text in ["tomorrow", "9223372036854775807", "-9223372036854775808", ""] {
            assert!(instant(text).is_err(), "{text}");
        }
    }
}
