//! The form of documents: names, ids, depth and size.

use crate::value::{MAX_DEPTH, Map, Value};

use super::error::{DataError, code, shown};

/// The longest name of a collection or a field, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// The longest `_id`, in bytes.
const MAX_ID_BYTES: usize = 1_024;

/// Checks the name of a field (one segment of a path).
pub(super) fn check_name(name: &str) -> Result<(), String> {
    match name.len() {
        0 => Err("a field name is empty: give it 1 to 128 bytes".to_owned()),
        1..=MAX_NAME_BYTES if name.starts_with('$') => {
            Err(format!("field name `{name}` begins with `$`, which is kept for operators"))
        }
        1..=MAX_NAME_BYTES => Ok(()),
        long => Err(format!("a field name of {long} bytes is too long: at most {MAX_NAME_BYTES}")),
    }
}

/// Checks the name of a collection.
pub(super) fn check_collection_name(name: &str) -> Result<(), DataError> {
    match name.len() {
        0 => Err(DataError::bad_document("a collection name is empty: give it 1 to 128 bytes")),
        1..=MAX_NAME_BYTES => Ok(()),
        long => Err(DataError::bad_document(format!(
            "a collection name of {long} bytes is too long: at most {MAX_NAME_BYTES}"
        ))),
    }
}

/// Checks an `_id`.
pub(super) fn check_id(id: &Value) -> Result<&str, DataError> {
    let why = match id {
        Value::Text(text) if text.is_empty() => "`_id` is empty: give it 1 to 1024 bytes, or leave it out".to_owned(),
        Value::Text(text) if text.len() > MAX_ID_BYTES => {
            format!("an `_id` of {} bytes is too long: at most {MAX_ID_BYTES}", text.len())
        }
        Value::Text(text) => return Ok(text),
        other => format!("`_id` is {} ({}): it must be text, or left out", shown(other), other.type_name()),
    };
    Err(DataError::bad_document(why).with("field", "_id"))
}

/// Checks a value that is to be kept: no `$` names at any depth, no NaN, not too deep.
///
/// `depth` is how many containers deep the value itself is, should it be one.
pub(super) fn check_value(value: &Value, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH && matches!(value, Value::Array(_) | Value::Map(_)) {
        return Err(format!("values nest deeper than {MAX_DEPTH} arrays and maps"));
    }
    match value {
        Value::Float(x) if !x.is_finite() => Err(format!("{x} is not a finite number")),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, depth + 1)),
        Value::Map(map) => map.iter().try_for_each(|(name, item)| {
            check_name(name)?;
            check_value(item, depth + 1)
        }),
        _ => Ok(()),
    }
}

/// Checks a whole document but its `_id`.
///
/// A dot at the top level is refused, since no filter could reach such a field; in maps further in,
/// which serve as dictionaries too, it is data, and no path leads there.
pub(super) fn check_document(document: &Map) -> Result<(), DataError> {
    for (name, value) in document {
        let check = match name.contains('.') {
            true => Err(format!("field name `{name}` has a dot: dots separate the fields of a path, so nest a map")),
            false => check_name(name),
        };
        check
            .and_then(|()| check_value(value, 2))
            .map_err(|why| DataError::bad_document(why).with("field", name.as_str()))?;
    }
    Ok(())
}

/// Encodes a document for its row, at most `most` bytes.
pub(super) fn encode(document: &Value, most: u64) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::with_capacity(256);
    document.encode(&mut bytes);
    if bytes.len() as u64 > most {
        let why = format!("a document of {} bytes is too large: at most {most}", bytes.len());
        return Err(DataError::new(code::TOO_LARGE, why).with("bytes", bytes.len() as i64));
    }
    Ok(bytes)
}
