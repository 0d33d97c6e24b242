//! Changes: what an update does to a document.
//!
//! A map without operators merges: `#{ a: 1, "b.c": 2 }` is `#{ "$set": #{ a: 1, "b.c": 2 } }`. Numbers stay ints
//! while both are; an overflow, NaN or an infinity is an error. Paths make maps on the way and stop with an
//! error at anything that is none. Two operators on one field, or on a field and one inside it, are an error.

use crate::value::{Map, Value};

use super::compare::{compare, compare_within_type, equal};
use super::error::{DataError, shown};
use super::form;
use super::path::Path;
use crate::spelling;

const OPERATORS: [&str; 12] = [
    "$set",
    "$unset",
    "$inc",
    "$mul",
    "$min",
    "$max",
    "$push",
    "$pull",
    "$addToSet",
    "$pop",
    "$rename",
    "$setOnInsert",
];

/// What an update does: one step a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change(Vec<(Path, Step)>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Set(Value),
    SetOnInsert(Value),
    Unset,
    Inc(Value),
    Mul(Value),
    Min(Value),
    Max(Value),
    Push(Value),
    Pull(Value),
    AddToSet(Value),
    PopFirst,
    PopLast,
    Rename(Path),
}

impl Change {
    /// Reads a change as scripts write it. Every error is `bad_change` and names the operator or field.
    pub(crate) fn parse(map: &Map) -> Result<Change, DataError> {
        let mut steps = Vec::new();
        match (map.keys().find(|name| name.starts_with('$')), map.keys().find(|name| !name.starts_with('$'))) {
            (Some(operator), Some(plain)) => {
                return Err(DataError::bad_change(format!(
                    "a change mixes `{operator}` with the field `{plain}`: write the field inside `$set`"
                )));
            }
            (None, _) => parse_operator("$set", map, &mut steps)?,
            (Some(_), None) => {
                for (operator, fields) in map {
                    let Value::Map(fields) = fields else {
                        let found = fields.type_name();
                        let why = format!("`{operator}` needs a map, #{{ field: value }}, not {found}");
                        return Err(DataError::bad_change(why).with("operator", operator.as_str()));
                    };
                    parse_operator(operator, fields, &mut steps)
                        .map_err(|error| error.with("operator", operator.as_str()))?;
                }
            }
        }
        check_overlaps(&steps)?;
        Ok(Change(steps))
    }

    /// Does the change to `document`. After an error the document is as good as lost: work on a copy.
    pub(super) fn apply(&self, document: &mut Map, inserting: bool) -> Result<(), DataError> {
        for (path, step) in &self.0 {
            apply(path, step, document, inserting)
                .map_err(|why| DataError::bad_change(why).with("field", path.as_str()))?;
        }
        Ok(())
    }
}

fn parse_operator(operator: &str, fields: &Map, steps: &mut Vec<(Path, Step)>) -> Result<(), DataError> {
    for (name, value) in fields {
        let step = parse_step(operator, name, value)
            .and_then(|step| Ok((Path::parse(name)?, step)))
            .map_err(|why| DataError::bad_change(why).with("field", name.as_str()))?;
        steps.push(step);
    }
    match OPERATORS.contains(&operator) {
        true => Ok(()),
        // Also where it holds no field at all.
        false => Err(DataError::bad_change(unknown(operator))),
    }
}

fn parse_step(operator: &str, name: &str, value: &Value) -> Result<Step, String> {
    let kept = || {
        form::check_value(value, 2).map_err(|why| format!("`{operator}` of `{name}`: {why}"))?;
        Ok::<Value, String>(value.clone())
    };
    let number = || match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Float(x) if x.is_finite() => Ok(value.clone()),
        other => Err(format!("`{operator}` of `{name}` needs a number, not {}", shown(other))),
    };
    Ok(match operator {
        "$set" => Step::Set(kept()?),
        "$setOnInsert" => Step::SetOnInsert(kept()?),
        "$unset" => Step::Unset,
        "$inc" => Step::Inc(number()?),
        "$mul" => Step::Mul(number()?),
        "$min" => Step::Min(kept()?),
        "$max" => Step::Max(kept()?),
        "$push" => Step::Push(kept()?),
        "$pull" => Step::Pull(kept()?),
        "$addToSet" => Step::AddToSet(kept()?),
        "$pop" => match value {
            Value::Int(1) => Step::PopLast,
            Value::Int(-1) => Step::PopFirst,
            other => {
                return Err(format!("`$pop` of `{name}` needs 1 (the last) or -1 (the first), not {}", shown(other)));
            }
        },
        "$rename" => match value {
            Value::Text(target) => Step::Rename(Path::parse(target)?),
            other => return Err(format!("`$rename` of `{name}` needs the new name, not {}", shown(other))),
        },
        operator => return Err(unknown(operator)),
    })
}

fn unknown(operator: &str) -> String {
    format!("unknown operator `{operator}`: {}", spelling::advice(operator, &OPERATORS))
}

/// Refuses steps whose outcome would hang on their order.
fn check_overlaps(steps: &[(Path, Step)]) -> Result<(), DataError> {
    let mut paths: Vec<&Path> = Vec::new();
    for (path, step) in steps {
        paths.push(path);
        if let Step::Rename(target) = step {
            paths.push(target);
        }
    }
    // By segments, a path stands directly before those that lead through it.
    paths.sort_by(|a, b| a.as_str().split('.').cmp(b.as_str().split('.')));
    match paths.windows(2).find(|pair| pair[0].overlaps(pair[1])) {
        None => Ok(()),
        Some(pair) => {
            let why = match pair[0] == pair[1] {
                true => format!("two operators change `{}`: keep one", pair[0]),
                false => format!("one operator changes `{}`, another `{}` inside it: keep one", pair[0], pair[1]),
            };
            Err(DataError::bad_change(why).with("field", pair[1].as_str()))
        }
    }
}

fn apply(path: &Path, step: &Step, document: &mut Map, inserting: bool) -> Result<(), String> {
    match step {
        Step::Set(value) => path.set(document, value.clone()),
        Step::SetOnInsert(value) if inserting => path.set(document, value.clone()),
        Step::SetOnInsert(_) => Ok(()),
        Step::Unset => {
            path.remove(document);
            Ok(())
        }
        Step::Inc(by) => match path.find(document) {
            None => path.set(document, by.clone()),
            Some(value) => {
                let sum = calculate(path, "$inc", value, by, i64::checked_add, |a, b| a + b)?;
                path.set(document, sum)
            }
        },
        Step::Mul(by) => match path.find(document) {
            None => path.set(document, if let Value::Float(_) = by { Value::Float(0.0) } else { Value::Int(0) }),
            Some(value) => {
                let product = calculate(path, "$mul", value, by, i64::checked_mul, |a, b| a * b)?;
                path.set(document, product)
            }
        },
        Step::Min(bound) => keep_extreme(path, "$min", bound, document, |found, bound| compare(bound, found).is_lt()),
        Step::Max(bound) => keep_extreme(path, "$max", bound, document, |found, bound| compare(bound, found).is_gt()),
        Step::Push(value) => match items(path, "$push", document)? {
            Some(items) => {
                items.push(value.clone());
                Ok(())
            }
            None => path.set(document, Value::Array(vec![value.clone()])),
        },
        Step::AddToSet(value) => match items(path, "$addToSet", document)? {
            Some(items) => {
                if !items.iter().any(|item| equal(item, value)) {
                    items.push(value.clone());
                }
                Ok(())
            }
            None => path.set(document, Value::Array(vec![value.clone()])),
        },
        Step::Pull(value) => {
            if let Some(items) = items(path, "$pull", document)? {
                items.retain(|item| !equal(item, value));
            }
            Ok(())
        }
        Step::PopLast => {
            if let Some(items) = items(path, "$pop", document)? {
                items.pop();
            }
            Ok(())
        }
        Step::PopFirst => {
            if let Some(items) = items(path, "$pop", document)?
                && !items.is_empty()
            {
                items.remove(0);
            }
            Ok(())
        }
        Step::Rename(target) => match path.remove(document) {
            Some(value) => target.set(document, value),
            None => Ok(()),
        },
    }
}

fn calculate(
    path: &Path,
    operator: &str,
    value: &Value,
    by: &Value,
    ints: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Value, String> {
    let result = match (value, by) {
        (Value::Int(a), Value::Int(b)) => ints(*a, *b).map(Value::Int),
        (Value::Int(a), Value::Float(b)) => Some(Value::Float(floats(*a as f64, *b))),
        (Value::Float(a), Value::Int(b)) => Some(Value::Float(floats(*a, *b as f64))),
        (Value::Float(a), Value::Float(b)) => Some(Value::Float(floats(*a, *b))),
        (other, _) => {
            return Err(format!("`{operator}` of `{path}` needs a number there, the document has {}", shown(other)));
        }
    };
    match result {
        Some(Value::Float(x)) if !x.is_finite() => {
            Err(format!("`{operator}` of `{path}`: {value} with {by} is not a finite number"))
        }
        Some(result) => Ok(result),
        None => Err(format!("`{operator}` of `{path}`: {value} with {by} is beyond 64 bits with a sign")),
    }
}

fn keep_extreme(
    path: &Path,
    operator: &str,
    bound: &Value,
    document: &mut Map,
    replaces: fn(&Value, &Value) -> bool,
) -> Result<(), String> {
    match path.find(document) {
        None => path.set(document, bound.clone()),
        Some(found) if compare_within_type(found, bound).is_none() => {
            let (found, bound) = (shown(found), shown(bound));
            Err(format!("`{operator}` of `{path}` compares values of one type: the document has {found}, not {bound}"))
        }
        Some(found) if replaces(found, bound) => path.set(document, bound.clone()),
        Some(_) => Ok(()),
    }
}

/// The array at `path`; none when nothing is there.
fn items<'a>(path: &Path, operator: &str, document: &'a mut Map) -> Result<Option<&'a mut Vec<Value>>, String> {
    match path.find_mut(document) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(format!("`{operator}` of `{path}` needs an array there, the document has {}", shown(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(json: &str) -> Map {
        Value::from_json(json).unwrap().as_map().unwrap().clone()
    }

    fn changed(doc: &str, change: &str, inserting: bool) -> Result<Map, DataError> {
        let mut doc = map(doc);
        Change::parse(&map(change))?.apply(&mut doc, inserting)?;
        Ok(doc)
    }

    #[test]
    fn changes() {
        for (doc, change, expected) in [
            (r#"{"a":1}"#, r#"{"b":2,"c.d":3}"#, r#"{"a":1,"b":2,"c":{"d":3}}"#),
            (r#"{"a":{"x":1}}"#, r#"{"a":{"y":2}}"#, r#"{"a":{"y":2}}"#),
            (r#"{"a":1}"#, r#"{}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{"$set":{"a":null}}"#, r#"{"a":null}"#),
            (r#"{"a":1,"b":{"c":1}}"#, r#"{"$unset":{"a":"","b.c":"","x.y":""}}"#, r#"{"b":{}}"#),
            (r#"{"n":1}"#, r#"{"$inc":{"n":2,"m":-5,"k.l":1.5}}"#, r#"{"k":{"l":1.5},"m":-5,"n":3}"#),
            (r#"{"n":1}"#, r#"{"$inc":{"n":0.5}}"#, r#"{"n":1.5}"#),
            (r#"{"n":3,"x":2.0}"#, r#"{"$mul":{"n":4,"x":2,"m":7,"y":0.5}}"#, r#"{"m":0,"n":12,"x":4.0,"y":0.0}"#),
            (r#"{"n":3,"m":3}"#, r#"{"$min":{"n":2,"m":4,"k":1}}"#, r#"{"k":1,"m":3,"n":2}"#),
            (r#"{"n":3,"m":3}"#, r#"{"$max":{"n":2,"m":4.5}}"#, r#"{"m":4.5,"n":3}"#),
            (r#"{"l":[1]}"#, r#"{"$push":{"l":[2],"k":{"x":1}}}"#, r#"{"k":[{"x":1}],"l":[1,[2]]}"#),
            (r#"{"l":[1,2,1.0,"1"]}"#, r#"{"$pull":{"l":1,"k":1}}"#, r#"{"l":[2,"1"]}"#),
            (r#"{"l":[1]}"#, r#"{"$addToSet":{"l":1.0,"k":1}}"#, r#"{"k":[1],"l":[1]}"#),
            (r#"{"l":[1,2,3],"e":[]}"#, r#"{"$pop":{"l":-1,"e":1,"m":1}}"#, r#"{"e":[],"l":[2,3]}"#),
            (r#"{"l":[1,2,3]}"#, r#"{"$pop":{"l":1}}"#, r#"{"l":[1,2]}"#),
            (r#"{"a":1}"#, r#"{"$rename":{"a":"b.c","x":"y"}}"#, r#"{"b":{"c":1}}"#),
            (r#"{"a":1}"#, r#"{"$setOnInsert":{"b":1}}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(changed(doc, change, false).unwrap(), map(expected), "{doc} {change}");
        }
        assert_eq!(changed("{}", r#"{"$setOnInsert":{"b":1}}"#, true).unwrap(), map(r#"{"b":1}"#));
    }

    #[test]
    fn mistakes_are_named() {
        for (doc, change, part) in [
            ("{}", r#"{"$set":{"a":1},"b":2}"#, "mixes"),
            ("{}", r#"{"$sett":{"a":1}}"#, "did you mean `$set`?"),
            ("{}", r#"{"$each":{}}"#, "unknown operator `$each`"),
            ("{}", r#"{"$set":1}"#, "needs a map"),
            ("{}", r#"{"$set":{"a":1},"$inc":{"a":1}}"#, "two operators change `a`"),
            ("{}", r#"{"$set":{"a":1},"$unset":{"a.b":1}}"#, "inside it"),
            ("{}", r#"{"$set":{"a-b":1,"a":1},"$unset":{"a.b":1}}"#, "inside it"),
            ("{}", r#"{"a":1,"a.b":2}"#, "inside it"),
            ("{}", r#"{"$rename":{"a":"b"},"$set":{"b":1}}"#, "two operators change `b`"),
            ("{}", r#"{"$rename":{"a":"a"}}"#, "two operators change `a`"),
            ("{}", r#"{"$rename":{"a":1}}"#, "new name"),
            ("{}", r#"{"a":{"$gt":1}}"#, "begins with `$`"),
            ("{}", r#"{"$push":{"l":{"$each":[1]}}}"#, "begins with `$`"),
            ("{}", r#"{"$set":{"$a":1}}"#, "begins with `$`"),
            ("{}", r#"{"$set":{"":1}}"#, "empty"),
            ("{}", r#"{"$pop":{"l":2}}"#, "needs 1"),
            ("{}", r#"{"$inc":{"n":"1"}}"#, "needs a number"),
            (r#"{"n":"1"}"#, r#"{"$inc":{"n":1}}"#, "needs a number there"),
            (r#"{"n":null}"#, r#"{"$inc":{"n":1}}"#, "needs a number there"),
            (r#"{"n":9223372036854775807}"#, r#"{"$inc":{"n":1}}"#, "beyond 64 bits"),
            (r#"{"n":9223372036854775807}"#, r#"{"$mul":{"n":2}}"#, "beyond 64 bits"),
            (r#"{"n":1e308}"#, r#"{"$mul":{"n":10}}"#, "not a finite number"),
            (r#"{"n":1}"#, r#"{"$set":{"n.a":1}}"#, "not a map"),
            (r#"{"n":1}"#, r#"{"$push":{"n":1}}"#, "needs an array"),
            (r#"{"n":1}"#, r#"{"$max":{"n":"a"}}"#, "one type"),
        ] {
            let error = changed(doc, change, false).unwrap_err();
            assert_eq!(error.code, "bad_change");
            assert!(error.message.contains(part), "{change}: {}", error.message);
        }
    }
}
