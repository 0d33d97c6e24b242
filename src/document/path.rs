//! Paths: dotted names of fields, such as `address.city`.
//!
//! A path goes through maps only. A numeric segment is a field name like any other: there are no paths into arrays.

use std::fmt;

use crate::value::{Map, Value};

use super::form;

/// The longest path, in bytes.
const MAX_PATH_BYTES: usize = 1_024;

/// The name of a field, dotted where it lies inside maps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(String);

impl Path {
    /// Reads a path; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Path, String> {
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("a path of {} bytes is too long: at most {MAX_PATH_BYTES}", text.len()));
        }
        for segment in text.split('.') {
            form::check_name(segment).map_err(|why| match text.contains('.') {
                true => format!("path `{text}`: {why}"),
                false => why,
            })?;
        }
        Ok(Path(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `_id`.
    pub(super) fn is_id(&self) -> bool {
        self.0 == "_id"
    }

    /// The field's value.
    pub(super) fn find<'a>(&self, map: &'a Map) -> Option<&'a Value> {
        let mut segments = self.0.split('.');
        let mut value = map.get(segments.next()?)?;
        for segment in segments {
            value = value.get(segment)?;
        }
        Some(value)
    }

    /// The field's place, when it is there.
    pub(super) fn find_mut<'a>(&self, map: &'a mut Map) -> Option<&'a mut Value> {
        let mut segments = self.0.split('.');
        let mut value = map.get_mut(segments.next()?)?;
        for segment in segments {
            value = match value {
                Value::Map(map) => map.get_mut(segment)?,
                _ => return None,
            };
        }
        Some(value)
    }

    /// Sets the field, making maps on the way. The error says what stands in the way.
    pub(super) fn set(&self, map: &mut Map, value: Value) -> Result<(), String> {
        let (parents, last) = match self.0.rsplit_once('.') {
            Some((parents, last)) => (Some(parents), last),
            None => (None, self.0.as_str()),
        };
        let mut inner = map;
        for segment in parents.into_iter().flat_map(|parents| parents.split('.')) {
            inner = match inner.entry(segment.to_owned()).or_insert_with(|| Value::Map(Map::new())) {
                Value::Map(map) => map,
                other => {
                    let found = other.type_name();
                    return Err(format!("`{}` leads through `{segment}`, which is {found} and not a map", self.0));
                }
            };
        }
        inner.insert(last.to_owned(), value);
        Ok(())
    }

    /// Takes the field out.
    pub(super) fn remove(&self, map: &mut Map) -> Option<Value> {
        match self.0.rsplit_once('.') {
            None => map.remove(&self.0),
            Some((parents, last)) => match Path(parents.to_owned()).find_mut(map)? {
                Value::Map(map) => map.remove(last),
                _ => None,
            },
        }
    }

    /// Whether one path is the other or leads through it.
    pub(super) fn overlaps(&self, other: &Path) -> bool {
        let mut shared = self.0.split('.').zip(other.0.split('.'));
        shared.all(|(a, b)| a == b)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(json: &str) -> Map {
        Value::from_json(json).unwrap().as_map().unwrap().clone()
    }

    #[test]
    fn paths_go_through_maps_only() {
        let doc = map(r#"{"a":{"b":{"0":1}},"list":[1,2]}"#);
        let find = |path: &str| Path::parse(path).unwrap().find(&doc).cloned();
        assert_eq!(find("a.b.0"), Some(Value::Int(1)));
        assert_eq!(find("list.0"), None);
        assert_eq!(find("a.c"), None);
    }

    #[test]
    fn setting_makes_maps_and_stops_at_what_is_none() {
        let mut doc = map(r#"{"n":1}"#);
        Path::parse("a.b.c").unwrap().set(&mut doc, Value::Int(2)).unwrap();
        assert_eq!(doc, map(r#"{"a":{"b":{"c":2}},"n":1}"#));
        assert!(Path::parse("n.x").unwrap().set(&mut doc, Value::Int(2)).is_err());
        assert_eq!(Path::parse("a.b.c").unwrap().remove(&mut doc), Some(Value::Int(2)));
        assert_eq!(Path::parse("n.x").unwrap().remove(&mut doc), None);
    }

    #[test]
    fn overlapping_paths() {
        let overlap = |a: &str, b: &str| Path::parse(a).unwrap().overlaps(&Path::parse(b).unwrap());
        assert!(overlap("a", "a") && overlap("a", "a.b") && overlap("a.b.c", "a.b"));
        assert!(!overlap("a", "ab") && !overlap("a.b", "a.c"));
    }

    #[test]
    fn bad_paths_are_refused() {
        for text in ["", ".", "a..b", "a.", "$a", "a.$b", &"x".repeat(129), &"x.".repeat(600)] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
    }
}
