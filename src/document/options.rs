//! Options of `find`: order, how many, and how many to pass over.

use crate::value::{Map, Value};

use super::error::DataError;
use super::path::Path;
use crate::spelling;

const OPTIONS: [&str; 3] = ["sort", "limit", "skip"];

/// What `find` is asked besides the filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FindOptions {
    pub(crate) sort: Sort,
    pub(crate) limit: Option<usize>,
    pub(crate) skip: usize,
}

/// An order of documents: by fields, each in its direction, then by `_id`. By default by `_id` alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sort {
    /// Paths, and whether each descends; never `_id`.
    pub(super) fields: Vec<(Path, bool)>,
    /// Ties, and everything when there are no fields, are in the order of `_id`; whether it descends.
    pub(super) id_descends: bool,
}

impl FindOptions {
    /// Reads options as scripts write them; every error is `bad_filter`.
    pub(crate) fn parse(map: &Map) -> Result<FindOptions, DataError> {
        let mut options = FindOptions::default();
        for (name, value) in map {
            match name.as_str() {
                "sort" => options.sort = Sort::parse(value)?,
                "limit" => options.limit = Some(count(name, value)?),
                "skip" => options.skip = count(name, value)?,
                _ => {
                    let why = format!("unknown option `{name}`: {}", spelling::advice(name, &OPTIONS));
                    return Err(DataError::bad_filter(why).with("option", name.as_str()));
                }
            }
        }
        Ok(options)
    }

    /// The first document only.
    pub(super) fn first() -> FindOptions {
        FindOptions { limit: Some(1), ..FindOptions::default() }
    }
}

impl Sort {
    /// Reads `"field"`, `"-field"`, `#{ field: 1 }`, `#{ field: -1 }`, or an array of those.
    fn parse(value: &Value) -> Result<Sort, DataError> {
        let mut all = Vec::new();
        match value {
            Value::Array(items) => {
                for item in items {
                    all.push(parse_field(item)?);
                }
            }
            value => all.push(parse_field(value)?),
        }
        let mut sort = Sort::default();
        for (path, descends) in all {
            sort.id_descends = descends;
            if path.is_id() {
                // No two documents share an `_id`: what follows it decides nothing.
                break;
            }
            if !sort.fields.iter().any(|(earlier, _)| *earlier == path) {
                sort.fields.push((path, descends));
            }
        }
        Ok(sort)
    }
}

fn parse_field(value: &Value) -> Result<(Path, bool), DataError> {
    let (name, descends) = match value {
        Value::Text(text) => match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text.as_str(), false),
        },
        Value::Map(map) => match map.iter().next() {
            // Maps forget the order in which they were written.
            Some(_) if map.len() > 1 => {
                let why = "`sort` by several fields needs an array, such as [\"plan\", \"-created_at\"], since maps have no order";
                return Err(DataError::bad_filter(why).with("option", "sort"));
            }
            Some((name, Value::Int(1))) => (name.as_str(), false),
            Some((name, Value::Int(-1))) => (name.as_str(), true),
            _ => return Err(bad_sort(value)),
        },
        other => return Err(bad_sort(other)),
    };
    let path = Path::parse(name).map_err(|why| DataError::bad_filter(why).with("option", "sort"))?;
    Ok((path, descends))
}

fn bad_sort(found: &Value) -> DataError {
    let found = super::error::shown(found);
    let why = format!("`sort` needs a field, \"-field\" to descend, #{{ field: 1 }} or #{{ field: -1 }}, not {found}");
    DataError::bad_filter(why).with("option", "sort")
}

fn count(name: &str, value: &Value) -> Result<usize, DataError> {
    value.as_int().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
        let why = format!("`{name}` needs a whole number not below 0, not {}", super::error::shown(value));
        DataError::bad_filter(why).with("option", name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<FindOptions, DataError> {
        FindOptions::parse(Value::from_json(json).unwrap().as_map().unwrap())
    }

    #[test]
    fn sorts_in_every_form() {
        let fields = |json: &str| {
            let sort = parse(json).unwrap().sort;
            let fields: Vec<String> = sort.fields.iter().map(|(path, down)| format!("{path} {down}")).collect();
            (fields.join(", "), sort.id_descends)
        };
        assert_eq!(fields(r#"{"sort":"a"}"#), ("a false".into(), false));
        assert_eq!(fields(r#"{"sort":"-a.b"}"#), ("a.b true".into(), true));
        assert_eq!(fields(r#"{"sort":{"a":-1}}"#), ("a true".into(), true));
        assert_eq!(fields(r#"{"sort":["a",{"b":-1}]}"#), ("a false, b true".into(), true));
        assert_eq!(fields(r#"{"sort":["a","-_id","b"]}"#), ("a false".into(), true));
        assert_eq!(fields(r#"{"sort":[]}"#), (String::new(), false));
    }

    #[test]
    fn mistakes_are_named() {
        for (options, part) in [
            (r#"{"sorted":"a"}"#, "did you mean `sort`?"),
            (r#"{"limit":-1}"#, "not below 0"),
            (r#"{"skip":1.5}"#, "not below 0"),
            (r#"{"sort":{"a":1,"b":1}}"#, "array"),
            (r#"{"sort":{"a":2}}"#, "needs a field"),
            (r#"{"sort":1}"#, "needs a field"),
            (r#"{"sort":"-"}"#, "empty"),
        ] {
            let error = parse(options).unwrap_err();
            assert_eq!(error.code, "bad_filter");
            assert!(error.message.contains(part), "{options}: {}", error.message);
        }
    }
}
