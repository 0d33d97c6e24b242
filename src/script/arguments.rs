//! Arguments: what a caller hands to a procedure, checked at the door.

use rhai::Dynamic;

use crate::error::Error;
use crate::value::{Map, Value};

use super::convert;
use super::procedure::{ParameterKind, Procedure};
use crate::spelling;

/// What a caller hands to a procedure.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// One for each parameter, in their order.
    Positional(Vec<Value>),
    /// By the names of the parameters.
    Named(Map),
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments::Positional(Vec::new())
    }
}

impl Arguments {
    /// What a job's payload is to a procedure: a map by name, an array by position, anything else its one argument.
    pub(crate) fn of_payload(payload: Value) -> Arguments {
        match payload {
            Value::Null => Arguments::default(),
            Value::Map(map) => Arguments::Named(map),
            Value::Array(values) => Arguments::Positional(values),
            other => Arguments::Positional(vec![other]),
        }
    }

    /// Checks the arguments against a procedure and puts them in the order of its parameters.
    pub(super) fn enter(self, procedure: &Procedure, most_bytes: usize) -> Result<Vec<Dynamic>, Error> {
        let bad = |message: String| Error::BadArguments {
            procedure: procedure.name.clone(),
            message,
            signature: procedure.signature.clone(),
        };
        let values = self.in_order(procedure).map_err(bad)?;
        let mut size = 0_usize;
        for (parameter, value) in procedure.parameters.iter().zip(&values) {
            if parameter.optional && value.is_null() {
                continue;
            }
            if !parameter.kind.accepts(value) {
                let (name, wanted, got) = (&parameter.name, parameter.kind.as_str(), value.type_name());
                return Err(bad(format!("`{name}` takes {wanted}, not {got}")));
            }
            let mut measure = Measure { left: most_bytes.saturating_sub(size), name: &parameter.name };
            measure.value(value, parameter.kind == ParameterKind::Filter, 0).map_err(|fault| {
                bad(fault.unwrap_or_else(|| format!("the arguments are larger than {most_bytes} bytes")))
            })?;
            size = most_bytes - measure.left;
        }
        Ok(values.into_iter().map(convert::to_dynamic).collect())
    }

    fn in_order(self, procedure: &Procedure) -> Result<Vec<Value>, String> {
        let parameters = &procedure.parameters;
        match self {
            Arguments::Positional(mut values) => {
                if values.len() > parameters.len() {
                    let (most, count) = (parameters.len(), values.len());
                    return Err(format!("{count} arguments are given, and it takes {most}"));
                }
                for parameter in &parameters[values.len()..] {
                    if !parameter.optional {
                        return Err(format!("`{}` is missing", parameter.name));
                    }
                    values.push(Value::Null);
                }
                Ok(values)
            }
            Arguments::Named(mut map) => {
                let mut values = Vec::with_capacity(parameters.len());
                for parameter in parameters {
                    match map.remove(&parameter.name) {
                        Some(value) => values.push(value),
                        None if parameter.optional => values.push(Value::Null),
                        // A misspelt name is more to the point than the one it leaves missing.
                        None if map.keys().any(|name| !parameters.iter().any(|p| p.name == *name)) => break,
                        None => return Err(format!("`{}` is missing", parameter.name)),
                    }
                }
                let unknown = map.keys().find(|name| !parameters.iter().any(|p| p.name == **name));
                match unknown {
                    None => Ok(values),
                    Some(name) => {
                        let near = spelling::nearest(name, parameters.iter().map(|p| p.name.as_str()));
                        let hint = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
                        Err(format!("it has no parameter `{name}`{hint}"))
                    }
                }
            }
        }
    }
}

/// Adds up the size of arguments and looks for what may not be in them.
struct Measure<'a> {
    left: usize,
    name: &'a str,
}

impl Measure<'_> {
    /// Errors: none when too large, else why the value is refused.
    fn value(&mut self, value: &Value, operators: bool, depth: usize) -> Result<(), Option<String>> {
        if depth > crate::value::MAX_DEPTH {
            return Err(Some(format!("`{}` is nested more than {} deep", self.name, crate::value::MAX_DEPTH)));
        }
        let own = match value {
            Value::Text(text) => text.len() + 2,
            Value::Blob(bytes) => bytes.len() + 2,
            Value::Array(items) => items.len() + 2,
            Value::Map(map) => map.keys().map(|name| name.len() + 4).sum::<usize>() + 2,
            Value::Null | Value::Bool(_) => 4,
            Value::Int(_) | Value::Float(_) => 8,
        };
        self.left = self.left.checked_sub(own).ok_or(None)?;
        match value {
            Value::Float(x) if !x.is_finite() => Err(Some(format!("`{}` holds {x}, which is no number", self.name))),
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item, operators, depth + 1)),
            Value::Map(map) => map.iter().try_for_each(|(key, item)| {
                if key.starts_with('$') && !operators {
                    return Err(Some(format!(
                        "`{0}` holds the key `{key}`: keys with `$` are operators, and only a parameter declared `@param {0} filter` takes them",
                        self.name
                    )));
                }
                self.value(item, operators, depth + 1)
            }),
            _ => Ok(()),
        }
    }
}
