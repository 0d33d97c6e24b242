//! Assertions of script tests: what they compare, and what they say when it does not hold.

use crate::value::Value;

/// Checks that two values are equal. Errors: both values.
pub(super) fn equal(left: &Value, right: &Value, message: Option<&Value>) -> Result<(), String> {
    if is_equal(left, right) {
        return Ok(());
    }
    let mut text =
        format!("{}\n   left:  {}\n   right: {}", or_text(message, "the two values differ"), shown(left), shown(right));
    if let Some(difference) = first_difference(left, right, "") {
        text.push_str(&format!("\n   first difference: {difference}"));
    }
    Err(text)
}

/// Checks a condition. Errors: the message.
pub(super) fn holds(condition: &Value, message: Option<&Value>) -> Result<(), String> {
    match condition {
        Value::Bool(true) => Ok(()),
        Value::Bool(false) => Err(or_text(message, "the condition does not hold")),
        other => Err(format!("`assert` takes a bool, not {}: {}", other.type_name(), shown(other))),
    }
}

/// Checks that an outcome is of a status, and of a code where one is given. Errors: what it is instead.
pub(super) fn ended(outcome: &Value, status: &str, code: Option<&Value>) -> Result<(), String> {
    let text = |name: &str| outcome.get(name).and_then(Value::as_str).unwrap_or_default();
    if outcome.get("status").is_none() {
        return Err(format!("this is no outcome of `run`: {}", shown(outcome)));
    }
    let wanted = code.map(|code| code.as_str().map_or_else(|| shown(code), str::to_owned));
    if text("status") == status && wanted.as_deref().is_none_or(|wanted| wanted == text("code")) {
        return Ok(());
    }
    let wanted = wanted.map_or_else(|| status.to_owned(), |code| format!("{status} with code {code}"));
    Err(format!("the call was to end as {wanted}, but: {}", describe(outcome)))
}

/// An outcome in a few words.
fn describe(outcome: &Value) -> String {
    let text = |name: &str| outcome.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("status") {
        "returned" => format!("returned {}", outcome.get("value").map(shown).unwrap_or_default()),
        status => format!("{status} with code {}: {}", text("code"), text("message")),
    }
}

/// Equality as scripts know it: integers and floats compare as numbers.
fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            // Exact: a float that is whole and within reach of an integer is that integer.
            *float == float.trunc() && float.abs() < 9.3e18 && *float as i128 == i128::from(*int)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_equal(left, right))
        }
        (Value::Map(left), Value::Map(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|((a, left), (b, right))| a == b && is_equal(left, right))
        }
        (left, right) => left == right,
    }
}

/// Where two containers differ first; none for plain values, which are shown whole.
fn first_difference(left: &Value, right: &Value, path: &str) -> Option<String> {
    match (left, right) {
        (Value::Map(a), Value::Map(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match (a.get(name), b.get(name)) {
                    (Some(x), Some(y)) if is_equal(x, y) => None,
                    (Some(x), Some(y)) => first_difference(x, y, &path).or_else(|| Some(differ(&path, x, y))),
                    (Some(_), None) => Some(format!("{path} is only on the left")),
                    _ => Some(format!("{path} is only on the right")),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).position(|(x, y)| !is_equal(x, y));
            match unequal {
                Some(index) => {
                    let path = format!("{path}[{index}]");
                    let (x, y) = (&a[index], &b[index]);
                    first_difference(x, y, &path).or_else(|| Some(differ(&path, x, y)))
                }
                None if a.len() != b.len() => Some(format!("{path} has {} elements, and {}", a.len(), b.len())),
                None => None,
            }
        }
        _ => None,
    }
}

fn differ(path: &str, left: &Value, right: &Value) -> String {
    format!("{path} is {} and {}", shown(left), shown(right))
}

fn or_text(message: Option<&Value>, usual: &str) -> String {
    match message {
        Some(Value::Text(text)) => text.clone(),
        Some(other) => shown(other),
        None => usual.to_owned(),
    }
}

/// A value as scripts write it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "()".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entries: Vec<String> = map.iter().map(|(name, item)| format!("{name}: {}", shown(item))).collect();
            format!("#{{{}}}", entries.join(", "))
        }
        other => other.to_json(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    #[test]
    fn numbers_compare_as_numbers() {
        for (left, right, same) in [
            ("1", "1.0", true),
            ("[1,{\"a\":2.0}]", "[1.0,{\"a\":2}]", true),
            ("9223372036854775807", "9223372036854775808.0", false),
            ("1", "1.5", false),
            ("1", "\"1\"", false),
            ("null", "null", true),
        ] {
            assert_eq!(is_equal(&value(left), &value(right)), same, "{left} {right}");
            assert_eq!(is_equal(&value(right), &value(left)), same, "{right} {left}");
        }
    }

    #[test]
    fn differences_are_pointed_at() {
        let error = equal(&value(r#"{"a":[1,{"b":2}]}"#), &value(r#"{"a":[1,{"b":3}]}"#), None).unwrap_err();
        assert!(error.ends_with("first difference: a[1].b is 2 and 3"), "{error}");
        let error = equal(&value("[1]"), &value("[1,2]"), Some(&"counts".into())).unwrap_err();
        assert!(error.starts_with("counts\n"), "{error}");
    }

    #[test]
    fn outcomes_say_what_they_are() {
        let outcome = value(r#"{"status":"denied","code":"rate_limited","message":"wait"}"#);
        assert_eq!(ended(&outcome, "denied", None), Ok(()));
        let error = ended(&outcome, "failed", Some(&"bad".into())).unwrap_err();
        assert_eq!(error, "the call was to end as failed with code bad, but: denied with code rate_limited: wait");
        assert!(ended(&Value::Null, "denied", None).is_err());
    }
}
