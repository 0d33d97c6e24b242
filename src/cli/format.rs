//! Text for people: values, outcomes and waits on one line.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{Table, presets};
use tollgate::{Outcome, Refusal, Value};

/// A value on one line, such as `{allowed: true, count: 1}`.
pub(crate) fn value(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("()"),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Map(map) => {
            text.push('{');
            for (index, (name, item)) in map.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                if is_plain_name(name) {
                    text.push_str(name);
                } else {
                    text.push_str(&Value::from(name.as_str()).to_json());
                }
                text.push_str(": ");
                write_value(text, item);
            }
            text.push('}');
        }
        Value::Blob(bytes) => {
            // Writing to a string cannot fail.
            let _ = write!(text, "blob of {} bytes", bytes.len());
        }
        // Text in quotes and escaped: `"5"` is not `5`, and no text may steer the terminal.
        Value::Text(_) | Value::Bool(_) | Value::Int(_) | Value::Float(_) => text.push_str(&value.to_json()),
    }
}

fn is_plain_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An outcome on one line.
pub(crate) fn outcome(outcome: &Outcome<Value>) -> String {
    match outcome {
        Outcome::Returned(returned) => value(returned),
        Outcome::Refused(refused) => refusal(refused),
    }
}

/// A refusal on one line: kind, code, message, wait, and which limits it came from.
pub(crate) fn refusal(refusal: &Refusal) -> String {
    let kind = refusal.kind.as_str();
    let mut text = kind.to_owned();
    if refusal.code != kind {
        let _ = write!(text, " ({})", refusal.code);
    }
    if !refusal.message.is_empty() && refusal.message != kind {
        let _ = write!(text, ": {}", plain(&refusal.message));
    }
    // What a limit says of itself names its wait already.
    if let Some(wait) = refusal.retry_after.filter(|_| refusal.violated.is_empty()) {
        let _ = write!(text, "; retry after {}", duration(wait));
    }
    if refusal.violated.len() > 1 {
        let limits: Vec<String> = refusal
            .violated
            .iter()
            .map(|violation| match violation.wait {
                0 => format!("{} never", violation.name),
                wait => format!("{} {}", violation.name, span(wait)),
            })
            .collect();
        let _ = write!(text, " [{}]", limits.join(", "));
    }
    if !refusal.data.is_null() {
        let _ = write!(text, " {}", value(&refusal.data));
    }
    text
}

/// A text on one line, with nothing in it that steers a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Whole milliseconds, rounded up: who waits that long has waited long enough.
pub(crate) fn whole_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A wait for people: the two largest units, such as `4m 59s`, rounded up in the last of them.
pub(crate) fn duration(duration: Duration) -> String {
    span(whole_ms(duration))
}

/// A number of milliseconds for people; see [`duration`].
pub(crate) fn span(ms: i64) -> String {
    const UNITS: [(i64, &str); 5] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let Some(largest) = UNITS.iter().position(|(size, _)| ms >= *size) else { return "0s".into() };
    let last = (largest + 1).min(UNITS.len() - 1);
    // Rounding up may carry into a larger unit, so units are chosen again afterwards.
    let (step, _) = UNITS[last];
    let ms = ms.checked_add(step - 1).map_or(ms, |up| up / step * step);
    let mut parts = Vec::new();
    let mut rest = ms;
    for (size, unit) in UNITS {
        let count = rest / size;
        if count > 0 {
            parts.push(format!("{count}{unit}"));
            rest %= size;
        }
    }
    parts.join(" ")
}

/// A time that something took, such as `1.2 ms`.
pub(crate) fn elapsed(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 0.001 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.0} µs", seconds * 1e6)
    }
}

/// Rows under a header, aligned.
pub(crate) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    // Cells are padded on both sides; at the ends of a line that is of no use to anybody.
    let trimmed = |line: String| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned();
    table.lines().map(trimmed).collect::<Vec<_>>().join("\n")
}

/// `1 test`, `2 tests`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_well() {
        for (json, text) in [
            (r#"{"allowed":true,"count":1,"a b":null}"#, r#"{"a b": (), allowed: true, count: 1}"#),
            (r#"["x",1.0,{}]"#, r#"["x", 1.0, {}]"#),
            ("\"a\\u001b[31m\"", "\"a\\u001b[31m\""),
            ("null", "()"),
        ] {
            assert_eq!(value(&Value::from_json(json).unwrap()), text);
        }
    }

    #[test]
    fn waits_have_two_units_and_round_up() {
        for (ms, text) in [
            (0, "0s"),
            (1, "1ms"),
            (1_500, "1s 500ms"),
            (299_001, "5m"),
            (300_000, "5m"),
            (3_600_001, "1h 1m"),
            (3_599_999, "1h"),
            (90_061_001, "1d 2h"),
        ] {
            assert_eq!(span(ms), text, "{ms}");
        }
        assert!(!span(i64::MAX).is_empty());
    }
}
