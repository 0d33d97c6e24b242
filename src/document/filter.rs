//! Filters: which documents are meant.
//!
//! A field with a plain value asks for equality of the whole value (arrays and maps too: never of an element);
//! `()` equals a missing field. A field with a map of operators asks for all of them. `$gt $gte $lt $lte`
//! match values of the operand's own type only; `$ne`, `$nin` and `$not` match wherever the plain form does not,
//! missing fields included.

use std::cmp::Ordering;

use crate::value::{MAX_DEPTH, Map, Value};

use super::compare::{compare_within_type, equal, or_null};
use super::error::DataError;
use super::form;
use super::path::Path;
use crate::spelling;

const FIELD_OPERATORS: [&str; 10] = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not"];
const FILTER_OPERATORS: [&str; 3] = ["$and", "$or", "$not"];

/// Which documents are meant; an empty `And` means all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    Field(Path, Test),
}

/// What is asked of one field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    Equal(Value),
    Range(Bound, Value),
    In(Vec<Value>),
    Exists(bool),
}

/// The side of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Filter {
    /// Reads a filter as scripts write it. Every error is `bad_filter` and names the operator or field.
    pub(crate) fn parse(map: &Map) -> Result<Filter, DataError> {
        parse(map, 1)
    }

    /// Whether `document` is meant.
    pub(crate) fn matches(&self, document: &Map) -> bool {
        match self {
            Filter::And(parts) => parts.iter().all(|part| part.matches(document)),
            Filter::Or(parts) => parts.iter().any(|part| part.matches(document)),
            Filter::Not(part) => !part.matches(document),
            Filter::Field(path, test) => test.matches(path.find(document)),
        }
    }

    /// The filter as scripts write it; read again, it means the same.
    pub(crate) fn to_map(&self) -> Map {
        match self {
            Filter::And(parts) => {
                let mut map = Map::new();
                for part in parts.iter().map(Filter::to_map) {
                    if !merge(&mut map, &part) {
                        // Two parts ask for one thing in ways that no map holds side by side.
                        let parts = parts.iter().map(|part| Value::Map(part.to_map())).collect();
                        return Map::from([("$and".to_owned(), Value::Array(parts))]);
                    }
                }
                map
            }
            Filter::Or(parts) => {
                let parts = parts.iter().map(|part| Value::Map(part.to_map())).collect();
                Map::from([("$or".to_owned(), Value::Array(parts))])
            }
            Filter::Not(part) => match &**part {
                Filter::Field(path, Test::Equal(value)) => on_field(path, "$ne", value.clone()),
                Filter::Field(path, Test::In(values)) => on_field(path, "$nin", Value::Array(values.clone())),
                other => Map::from([("$not".to_owned(), Value::Map(other.to_map()))]),
            },
            Filter::Field(path, test) => match test {
                Test::Equal(value) => Map::from([(path.as_str().to_owned(), value.clone())]),
                Test::In(values) => on_field(path, "$in", Value::Array(values.clone())),
                Test::Exists(wanted) => on_field(path, "$exists", Value::Bool(*wanted)),
                Test::Range(bound, value) => {
                    let operator = match bound {
                        Bound::Above => "$gt",
                        Bound::AtLeast => "$gte",
                        Bound::Below => "$lt",
                        Bound::AtMost => "$lte",
                    };
                    on_field(path, operator, value.clone())
                }
            },
        }
    }

    /// The tests that every document meant must pass, as far as they are written plainly.
    pub(super) fn required(&self) -> Vec<(&Path, &Test)> {
        fn collect<'a>(filter: &'a Filter, out: &mut Vec<(&'a Path, &'a Test)>) {
            match filter {
                Filter::And(parts) => parts.iter().for_each(|part| collect(part, out)),
                Filter::Field(path, test) => out.push((path, test)),
                Filter::Or(_) | Filter::Not(_) => {}
            }
        }
        let mut out = Vec::new();
        collect(self, &mut out);
        out
    }
}

fn on_field(path: &Path, operator: &str, value: Value) -> Map {
    Map::from([(path.as_str().to_owned(), Value::Map(Map::from([(operator.to_owned(), value)])))])
}

/// Adds the parts of one filter to another; false when both ask for the same thing.
fn merge(map: &mut Map, part: &Map) -> bool {
    // No value to compare with has such names.
    let operators = |value: &Value| matches!(value, Value::Map(map) if map.keys().any(|name| name.starts_with('$')));
    for (name, value) in part {
        match (map.get_mut(name), value) {
            (None, value) => {
                map.insert(name.clone(), value.clone());
            }
            (Some(there), Value::Map(more)) if operators(there) && operators(value) && !name.starts_with('$') => {
                let Value::Map(there) = there else { return false };
                if more.keys().any(|operator| there.contains_key(operator)) {
                    return false;
                }
                there.extend(more.clone());
            }
            _ => return false,
        }
    }
    true
}

impl Test {
    fn matches(&self, field: Option<&Value>) -> bool {
        match self {
            Test::Equal(value) => equal(or_null(field), value),
            Test::In(values) => values.iter().any(|value| equal(or_null(field), value)),
            Test::Exists(wanted) => field.is_some() == *wanted,
            Test::Range(bound, value) => {
                let order = field.and_then(|field| compare_within_type(field, value));
                order.is_some_and(|order| match bound {
                    Bound::Above => order == Ordering::Greater,
                    Bound::AtLeast => order != Ordering::Less,
                    Bound::Below => order == Ordering::Less,
                    Bound::AtMost => order != Ordering::Greater,
                })
            }
        }
    }
}

fn parse(map: &Map, depth: usize) -> Result<Filter, DataError> {
    if depth > MAX_DEPTH {
        return Err(DataError::bad_filter(format!("filters nest deeper than {MAX_DEPTH}")));
    }
    let mut parts = Vec::with_capacity(map.len());
    for (name, value) in map {
        match name.as_str() {
            "$and" => parts.push(Filter::And(parse_list(name, value, depth)?)),
            "$or" => parts.push(Filter::Or(parse_list(name, value, depth)?)),
            "$not" => match value {
                Value::Map(map) => parts.push(Filter::Not(Box::new(parse(map, depth + 1)?))),
                other => return Err(needs(name, "a filter, such as #{ field: value }", other)),
            },
            name if name.starts_with('$') => {
                let why = match FIELD_OPERATORS.contains(&name) {
                    true => format!(
                        "`{name}` stands beside fields: write it inside one, #{{ field: #{{ \"{name}\": … }} }}"
                    ),
                    false => format!("unknown operator `{name}`: {}", spelling::advice(name, &FILTER_OPERATORS)),
                };
                return Err(DataError::bad_filter(why).with("operator", name));
            }
            name => {
                let path = Path::parse(name).map_err(|why| DataError::bad_filter(why).with("field", name))?;
                parse_field(&path, value, depth, &mut parts).map_err(|error| {
                    if error.data.contains_key("field") { error } else { error.with("field", name) }
                })?;
            }
        }
    }
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => Filter::And(parts),
    })
}

fn parse_list(name: &str, value: &Value, depth: usize) -> Result<Vec<Filter>, DataError> {
    match value {
        // An empty list could be read as "all" and as "none"; a list built by a loop must not open a gate.
        Value::Array(items) if items.is_empty() => {
            Err(DataError::bad_filter(format!("`{name}` has no filters: give it one at least")).with("operator", name))
        }
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::Map(map) => parse(map, depth + 1),
                other => Err(needs(name, "an array of filters", other)),
            })
            .collect(),
        other => Err(needs(name, "an array of filters", other)),
    }
}

/// Adds to `parts` what the map or value beside `path` asks for.
fn parse_field(path: &Path, value: &Value, depth: usize, parts: &mut Vec<Filter>) -> Result<(), DataError> {
    let operators = match value {
        Value::Map(map) if map.keys().any(|name| name.starts_with('$')) => map,
        plain => {
            parts.push(Filter::Field(path.clone(), Test::Equal(operand(plain)?)));
            return Ok(());
        }
    };
    if depth > MAX_DEPTH {
        return Err(DataError::bad_filter(format!("filters nest deeper than {MAX_DEPTH}")));
    }
    if let Some(plain) = operators.keys().find(|name| !name.starts_with('$')) {
        return Err(DataError::bad_filter(format!(
            "`{path}` mixes operators with the field `{plain}`: write the path `{path}.{plain}` for a field inside it"
        )));
    }
    for (name, value) in operators {
        let field = |test| Filter::Field(path.clone(), test);
        let range = |bound| match value {
            Value::Null => Err(needs(name, "a value to compare with", value)),
            value => Ok(field(Test::Range(bound, operand(value)?))),
        };
        let list = || match value {
            Value::Array(items) => Ok(field(Test::In(items.iter().map(operand).collect::<Result<_, _>>()?))),
            other => Err(needs(name, "an array of values", other)),
        };
        parts.push(match name.as_str() {
            "$eq" => field(Test::Equal(operand(value)?)),
            "$ne" => Filter::Not(Box::new(field(Test::Equal(operand(value)?)))),
            "$gt" => range(Bound::Above)?,
            "$gte" => range(Bound::AtLeast)?,
            "$lt" => range(Bound::Below)?,
            "$lte" => range(Bound::AtMost)?,
            "$in" => list()?,
            "$nin" => Filter::Not(Box::new(list()?)),
            "$exists" => match value {
                Value::Bool(wanted) => field(Test::Exists(*wanted)),
                other => return Err(needs(name, "true or false", other)),
            },
            "$not" => match value {
                Value::Map(inner) if inner.keys().any(|name| name.starts_with('$')) => {
                    let mut negated = Vec::new();
                    parse_field(path, value, depth + 1, &mut negated)?;
                    Filter::Not(Box::new(Filter::And(negated)))
                }
                other => return Err(needs(name, "a map of operators (or write `$ne`)", other)),
            },
            "$and" | "$or" => {
                let why =
                    format!("`{name}` stands inside the field `{path}`: write it beside fields, with whole filters");
                return Err(DataError::bad_filter(why).with("operator", name.as_str()));
            }
            _ => {
                let why = format!("unknown operator `{name}`: {}", spelling::advice(name, &FIELD_OPERATORS));
                return Err(DataError::bad_filter(why).with("operator", name.as_str()));
            }
        });
    }
    Ok(())
}

/// A value to compare with; no document holds one that `form` refuses, so asking for it is a mistake.
fn operand(value: &Value) -> Result<Value, DataError> {
    form::check_value(value, 1).map_err(DataError::bad_filter)?;
    Ok(value.clone())
}

fn needs(operator: &str, wanted: &str, found: &Value) -> DataError {
    let found = found.type_name();
    DataError::bad_filter(format!("`{operator}` needs {wanted}, not {found}")).with("operator", operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(json: &str) -> Map {
        Value::from_json(json).unwrap().as_map().unwrap().clone()
    }

    #[test]
    fn matching() {
        let doc = map(r#"{"_id":"1","n":3,"x":2.0,"t":"b","a":[1,2],"m":{"k":1},"nil":null,"big":9007199254740993}"#);
        for (filter, expected) in [
            (r#"{}"#, true),
            (r#"{"n":3}"#, true),
            (r#"{"n":3.0}"#, true),
            (r#"{"x":2}"#, true),
            (r#"{"n":"3"}"#, false),
            (r#"{"big":9007199254740992.0}"#, false),
            (r#"{"big":{"$gt":9007199254740992.0}}"#, true),
            (r#"{"a":[1,2]}"#, true),
            (r#"{"a":[1.0,2]}"#, true),
            (r#"{"a":1}"#, false),
            (r#"{"m":{"k":1}}"#, true),
            (r#"{"m":{}}"#, false),
            (r#"{"m.k":1}"#, true),
            (r#"{"nil":null}"#, true),
            (r#"{"missing":null}"#, true),
            (r#"{"n":null}"#, false),
            (r#"{"missing":{"$exists":false}}"#, true),
            (r#"{"nil":{"$exists":true}}"#, true),
            (r#"{"missing":{"$ne":1}}"#, true),
            (r#"{"missing":{"$ne":null}}"#, false),
            (r#"{"missing":{"$nin":[1,2]}}"#, true),
            (r#"{"n":{"$in":[1,3.0]}}"#, true),
            (r#"{"n":{"$in":[]}}"#, false),
            (r#"{"n":{"$nin":[]}}"#, true),
            (r#"{"n":{"$gt":2,"$lte":3}}"#, true),
            (r#"{"n":{"$gt":3}}"#, false),
            (r#"{"n":{"$lt":"z"}}"#, false),
            (r#"{"t":{"$gte":"b"}}"#, true),
            (r#"{"missing":{"$lt":5}}"#, false),
            (r#"{"missing":{"$not":{"$lt":5}}}"#, true),
            (r#"{"n":{"$not":{"$gt":1,"$lt":5}}}"#, false),
            (r#"{"$or":[{"n":1},{"t":"b"}]}"#, true),
            (r#"{"$and":[{"n":3},{"t":"c"}]}"#, false),
            (r#"{"$not":{"n":1}}"#, true),
        ] {
            let parsed = Filter::parse(&map(filter)).unwrap();
            assert_eq!(parsed.matches(&doc), expected, "{filter}");
            let again = Filter::parse(&parsed.to_map()).unwrap();
            assert_eq!(again.matches(&doc), expected, "{filter}");
            assert_eq!(again.to_map(), parsed.to_map(), "{filter}");
        }
    }

    #[test]
    fn filters_are_written_as_scripts_write_them() {
        for (filter, written) in [
            (r#"{"a":1,"b":{"$gte":1,"$lt":9}}"#, r#"{"a":1,"b":{"$gte":1,"$lt":9}}"#),
            (r#"{"a":{"$ne":1,"$nin":[2]}}"#, r#"{"a":{"$ne":1,"$nin":[2]}}"#),
            (r#"{"$and":[{"a":{"$gt":1}},{"a":{"$lt":5}}]}"#, r#"{"a":{"$gt":1,"$lt":5}}"#),
            (r#"{"$and":[{"a":1},{"a":2}]}"#, r#"{"$and":[{"a":1},{"a":2}]}"#),
            (r#"{"$and":[{"a":{}},{"a":{"$lt":5}}]}"#, r#"{"$and":[{"a":{}},{"a":{"$lt":5}}]}"#),
            (
                r#"{"$or":[{"a":1},{"b":{"$exists":true}}],"c":null}"#,
                r#"{"$or":[{"a":1},{"b":{"$exists":true}}],"c":null}"#,
            ),
            (r#"{"a":{"$not":{"$gt":5}}}"#, r#"{"$not":{"a":{"$gt":5}}}"#),
            ("{}", "{}"),
        ] {
            assert_eq!(Value::Map(Filter::parse(&map(filter)).unwrap().to_map()).to_json(), written, "{filter}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (filter, part) in [
            (r#"{"n":{"$gt":1,"x":2}}"#, "mixes operators"),
            (r#"{"n":{"$gtt":1}}"#, "did you mean `$gt`?"),
            (r#"{"n":{"$regex":"a"}}"#, "unknown operator `$regex`"),
            (r#"{"$eq":1}"#, "write it inside"),
            (r#"{"$nor":[]}"#, "did you mean"),
            (r#"{"$or":[]}"#, "one at least"),
            (r#"{"$or":{"a":1}}"#, "an array of filters"),
            (r#"{"$and":[1]}"#, "an array of filters"),
            (r#"{"n":{"$in":1}}"#, "an array of values"),
            (r#"{"n":{"$exists":1}}"#, "true or false"),
            (r#"{"n":{"$gt":null}}"#, "a value to compare with"),
            (r#"{"n":{"$not":1}}"#, "a map of operators"),
            (r#"{"n":{"$or":[]}}"#, "beside fields"),
            (r#"{"n":{"m":{"$gt":""}}}"#, "begins with `$`"),
            (r#"{"n":{"$eq":{"$gt":""}}}"#, "begins with `$`"),
            (r#"{"n":{"$in":[{"$gt":""}]}}"#, "begins with `$`"),
            (r#"{"a..b":1}"#, "empty"),
        ] {
            let error = Filter::parse(&map(filter)).unwrap_err();
            assert_eq!(error.code, "bad_filter");
            assert!(error.message.contains(part), "{filter}: {}", error.message);
        }
    }

    #[test]
    fn a_filter_nested_without_end_is_refused() {
        let mut filter = map(r#"{"a":1}"#);
        for _ in 0..100 {
            filter = Map::from([("$not".to_owned(), Value::Map(filter))]);
        }
        assert!(Filter::parse(&filter).is_err());
    }
}
