//! Values as a person at the prompt reads them: decisions as a sentence, documents as a table, long maps in lines.

use tollgate::{Map, Timestamp, Value};

use super::super::format;

/// What fits on a line of most terminals.
const LINE: usize = 100;

/// The most columns that a table of documents has.
const MOST_COLUMNS: usize = 10;

/// A value, over several lines where one would be long.
pub(super) fn value(value: &Value, now: Timestamp) -> String {
    match value {
        Value::Map(map) => decision(map, now).unwrap_or_else(|| fields(map)),
        Value::Array(items) if items.len() > 1 => documents(items).unwrap_or_else(|| format::value(value)),
        other => format::value(other),
    }
}

/// A decision of a limit, such as `allowed: 4 of 5 left, full in 1m`; none when the map is something else.
fn decision(map: &Map, now: Timestamp) -> Option<String> {
    let number = |name: &str| map.get(name).and_then(Value::as_int);
    let allowed = map.get("allowed").and_then(Value::as_bool)?;
    let reason = map.get("reason").and_then(Value::as_str)?;
    let (remaining, limit) = (number("remaining")?, number("limit")?);
    let (retry_after, reset_at, delay) = (number("retry_after")?, number("reset_at")?, number("delay")?);
    let mut text = match (allowed, reason) {
        (true, _) => "allowed".to_owned(),
        (false, "limited") => "refused".to_owned(),
        (false, reason) => format!("refused ({})", format::plain(reason)),
    };
    text += &format!(": {remaining} of {limit} left");
    if delay > 0 {
        text += &format!(", the work waits {}", format::span(delay));
    }
    if !allowed && retry_after > 0 {
        text += &format!(", try again in {}", format::span(retry_after));
    }
    if reset_at > now.as_millis() {
        text += &format!(", full in {}", format::span(reset_at.saturating_sub(now.as_millis())));
    }
    if let Some(lease) = number("lease") {
        text += &format!(", lease {lease}");
    }
    for (name, label) in [("violated", "refused by"), ("would_refuse", "would be refused by")] {
        let Some(Value::Array(items)) = map.get(name) else { continue };
        let names: Vec<String> = items
            .iter()
            .filter_map(|item| item.as_str().or_else(|| item.get("name").and_then(Value::as_str)))
            .map(format::plain)
            .collect();
        // Of one limit alone there is nothing to tell apart.
        if names.len() > 1 || (name == "would_refuse" && !names.is_empty()) {
            text += &format!(", {label} {}", names.join(", "));
        }
    }
    Some(text)
}

/// A map on one line where it fits, else a field a line, aligned.
fn fields(map: &Map) -> String {
    let line = format::value(&Value::Map(map.clone()));
    if line.chars().count() <= LINE {
        return line;
    }
    let width = map.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let field = |(name, value): (&String, &Value)| format!("{:width$}  {}", format::plain(name), format::value(value));
    map.iter().map(field).collect::<Vec<_>>().join("\n")
}

/// Maps as a table, their `_id` first; none when they are no maps or too different for one.
fn documents(items: &[Value]) -> Option<String> {
    let maps: Vec<&Map> = items.iter().map(|item| item.as_map()).collect::<Option<_>>()?;
    let mut columns: Vec<&str> = Vec::new();
    for name in maps.iter().flat_map(|map| map.keys()) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    columns.sort_by_key(|name| *name != "_id");
    let fits = |map: &&Map| format::value(&Value::Map((*map).clone())).chars().count() <= 2 * LINE;
    if columns.is_empty() || columns.len() > MOST_COLUMNS || !maps.iter().all(fits) {
        // One a line is still easier to read than all on one.
        return Some(items.iter().map(format::value).collect::<Vec<_>>().join("\n"));
    }
    let header: Vec<String> = columns.iter().map(|name| format::plain(name)).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let cell = |map: &Map, name: &&str| map.get(*name).map_or_else(String::new, format::value);
    Some(format::table(&header, maps.iter().map(|map| columns.iter().map(|name| cell(map, name)).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        value(&Value::from_json(json).unwrap(), Timestamp::from_millis(1_000))
    }

    #[test]
    fn decisions_are_sentences() {
        let refused = r#"{"allowed":false,"limit":5,"remaining":0,"used":5,"retry_after":300,"reset_at":61000,
            "delay":0,"reason":"limited","violated":[{"name":"a","wait":300},{"name":"b","wait":1}],"would_refuse":["c"]}"#;
        assert_eq!(
            text(refused),
            "refused: 0 of 5 left, try again in 300ms, full in 1m, refused by a, b, would be refused by c"
        );
        let lease = r#"{"allowed":true,"limit":5,"remaining":4,"used":1,"retry_after":0,"reset_at":61000,
            "delay":1500,"reason":"ok","violated":[],"would_refuse":[],"lease":7}"#;
        assert_eq!(text(lease), "allowed: 4 of 5 left, the work waits 1s 500ms, full in 1m, lease 7");
        // A map of one's own that says `allowed` is no decision.
        assert_eq!(text(r#"{"allowed":true,"count":1}"#), "{allowed: true, count: 1}");
    }

    #[test]
    fn documents_are_a_table() {
        let found = r#"[{"a":1,"_id":"x"},{"_id":"y","b":"two\nlines"}]"#;
        assert_eq!(text(found), "_id  a  b\n\"x\"  1\n\"y\"     \"two\\nlines\"");
        assert_eq!(text("[1,2]"), "[1, 2]");
        assert_eq!(text("[{},{}]"), "{}\n{}");
    }

    #[test]
    fn long_maps_take_a_line_a_field() {
        let long = "x".repeat(100);
        assert_eq!(text(&format!(r#"{{"name":"{long}","n":1}}"#)), format!("n     1\nname  \"{long}\""));
    }
}
