//! Conversion between the interpreter's values and ours: exhaustive, and refusing what has no equal.

use rhai::{Dynamic, FnPtr, ImmutableString};

use crate::value::{MAX_DEPTH, Map, Value};

use super::host::collections::CollectionValue;
use super::host::limits::{DecisionValue, LimitValue};

/// A value as scripts see it.
pub(super) fn to_dynamic(value: Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(b) => Dynamic::from_bool(b),
        Value::Int(n) => Dynamic::from_int(n),
        Value::Float(x) => Dynamic::from_float(x),
        Value::Text(text) => Dynamic::from(ImmutableString::from(text)),
        Value::Blob(bytes) => Dynamic::from_blob(bytes),
        Value::Array(items) => Dynamic::from_array(items.into_iter().map(to_dynamic).collect()),
        Value::Map(map) => Dynamic::from_map(to_map(map)),
    }
}

/// A map as scripts see it.
pub(super) fn to_map(map: Map) -> rhai::Map {
    map.into_iter().map(|(name, item)| (name.into(), to_dynamic(item))).collect()
}

/// A script's value as ours.
///
/// Errors: functions, limits and other values that exist only while a script runs, NaN and infinities, and
/// values nested too deeply.
pub(super) fn from_dynamic(value: &Dynamic) -> Result<Value, String> {
    convert(value, MAX_DEPTH)
}

/// A script's map as ours.
pub(super) fn from_map(map: &rhai::Map) -> Result<Map, String> {
    map.iter().map(|(name, item)| Ok((name.as_str().to_owned(), convert(item, MAX_DEPTH - 1)?))).collect()
}

fn convert(value: &Dynamic, depth: usize) -> Result<Value, String> {
    if depth == 0 {
        return Err(format!("a value is nested more than {MAX_DEPTH} deep"));
    }
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(n) = value.as_int() {
        return Ok(Value::Int(n));
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(Value::Text(text.as_str().to_owned()));
    }
    if let Ok(b) = value.as_bool() {
        return Ok(Value::Bool(b));
    }
    if let Ok(x) = value.as_float() {
        return if x.is_finite() { Ok(Value::Float(x)) } else { Err(format!("{x} is not a finite number")) };
    }
    if let Ok(map) = value.as_map_ref() {
        return map
            .iter()
            .map(|(name, item)| Ok((name.as_str().to_owned(), convert(item, depth - 1)?)))
            .collect::<Result<Map, String>>()
            .map(Value::Map);
    }
    if let Ok(items) = value.as_array_ref() {
        return items
            .iter()
            .map(|item| convert(item, depth - 1))
            .collect::<Result<Vec<Value>, String>>()
            .map(Value::Array);
    }
    if let Ok(c) = value.as_char() {
        return Ok(Value::Text(c.to_string()));
    }
    if let Ok(bytes) = value.as_blob_ref() {
        return Ok(Value::Blob(bytes.to_vec()));
    }
    if let Some(decision) = value.read_lock::<DecisionValue>() {
        return Ok(Value::Map(decision.to_map()));
    }
    if value.is::<LimitValue>() {
        return Err("a limit is not data: keep its name instead".into());
    }
    if value.is::<CollectionValue>() {
        return Err("a collection is not data: keep its name instead".into());
    }
    if value.is::<FnPtr>() {
        return Err("a function is not data".into());
    }
    Err(format!("a value of type {} is not data", value.type_name()))
}

/// What scripts call the type of a value.
pub(super) fn type_name(value: &Dynamic) -> &'static str {
    if value.is::<DecisionValue>() {
        return "decision";
    }
    if value.is::<LimitValue>() {
        return "limit";
    }
    if value.is::<CollectionValue>() {
        return "collection";
    }
    plain_type(value.type_name())
}

/// The name that scripts use for one of the interpreter's types.
pub(super) fn plain_type(name: &str) -> &'static str {
    match name {
        "i64" | "int" => "int",
        "f64" | "float" => "float",
        "()" => "()",
        "bool" => "bool",
        "char" => "char",
        "string" => "string",
        name if name.contains("ImmutableString") => "string",
        "array" => "array",
        "map" => "map",
        "blob" => "blob",
        "Fn" | "function" => "function",
        "collection" => "collection",
        "limit" => "limit",
        "decision" => "decision",
        name if name.contains("LimitValue") => "limit",
        name if name.contains("DecisionValue") => "decision",
        name if name.contains("Range") => "range",
        _ => "other",
    }
}

/// The first key that begins with `$`, at any depth: such keys are operators, and only a script's own text may make one.
pub(super) fn operator_key(value: &Value) -> Option<&str> {
    match value {
        Value::Map(map) => map
            .iter()
            .find_map(|(name, item)| if name.starts_with('$') { Some(name.as_str()) } else { operator_key(item) }),
        Value::Array(items) => items.iter().find_map(operator_key),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_there_and_back() {
        let value = Value::from_json(r#"{"a":[1,2.0,null,true,"x",{"b":[]}]}"#).unwrap();
        assert_eq!(from_dynamic(&to_dynamic(value.clone())), Ok(value));
    }

    #[test]
    fn what_is_not_data_is_refused() {
        assert!(from_dynamic(&Dynamic::from_float(f64::NAN)).is_err());
        assert!(from_dynamic(&Dynamic::from(1_u64)).is_err());
        assert!(from_dynamic(&Dynamic::from(FnPtr::new("f").unwrap())).is_err());
        let mut deep = Dynamic::UNIT;
        for _ in 0..100 {
            deep = Dynamic::from_array(vec![deep]);
        }
        assert!(from_dynamic(&deep).is_err());
    }

    #[test]
    fn operator_keys_are_found_at_any_depth() {
        let value = Value::from_json(r#"{"a":[{"$gt":""}]}"#).unwrap();
        assert_eq!(operator_key(&value), Some("$gt"));
        assert_eq!(operator_key(&Value::Text("$gt".into())), None);
    }
}
