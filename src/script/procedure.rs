//! Procedures: what may be called by name, and how.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Position;
use crate::value::Value;

/// A function of a file that hosts, the command line and other procedures may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Procedure {
    /// Its name, unique in the program.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Its documentation without the comment marks and without the `@param` lines.
    pub documentation: String,
    /// How it is called, such as `login_attempt(email, password_hash: string)`.
    pub signature: String,
    /// Where it is defined.
    pub position: Position,
}

/// A parameter of a procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub kind: ParameterKind,
    /// Whether it may be left out; it is `()` then.
    pub optional: bool,
}

/// What a parameter takes, as `@param` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParameterKind {
    /// Anything.
    #[default]
    Any,
    /// A whole number.
    Int,
    /// A whole or decimal number.
    Number,
    /// Text.
    Text,
    /// True or false.
    Bool,
    /// An array.
    Array,
    /// A map.
    Map,
    /// A map whose keys may be operators such as `$gt`.
    Filter,
}

impl ParameterKind {
    fn parse(word: &str) -> Option<ParameterKind> {
        Some(match word {
            "any" => ParameterKind::Any,
            "int" => ParameterKind::Int,
            "number" => ParameterKind::Number,
            "string" => ParameterKind::Text,
            "bool" => ParameterKind::Bool,
            "array" => ParameterKind::Array,
            "map" => ParameterKind::Map,
            "filter" => ParameterKind::Filter,
            _ => return None,
        })
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ParameterKind::Any => "any",
            ParameterKind::Int => "int",
            ParameterKind::Number => "number",
            ParameterKind::Text => "string",
            ParameterKind::Bool => "bool",
            ParameterKind::Array => "array",
            ParameterKind::Map => "map",
            ParameterKind::Filter => "filter",
        }
    }

    pub(super) fn accepts(self, value: &Value) -> bool {
        match self {
            ParameterKind::Any => true,
            ParameterKind::Int => matches!(value, Value::Int(_)),
            ParameterKind::Number => matches!(value, Value::Int(_) | Value::Float(_)),
            ParameterKind::Text => matches!(value, Value::Text(_)),
            ParameterKind::Bool => matches!(value, Value::Bool(_)),
            ParameterKind::Array => matches!(value, Value::Array(_)),
            ParameterKind::Map | ParameterKind::Filter => matches!(value, Value::Map(_)),
        }
    }
}

impl Procedure {
    /// A procedure from its name, parameters and comments. Errors: what is wrong with a `@param` line.
    pub(super) fn new<'a>(
        name: &str,
        parameters: impl IntoIterator<Item = &'a str>,
        comments: impl IntoIterator<Item = &'a str>,
        position: Position,
    ) -> (Procedure, Vec<String>) {
        let mut faults = Vec::new();
        let mut parameters: Vec<Parameter> = parameters
            .into_iter()
            .map(|name| Parameter { name: name.to_owned(), kind: ParameterKind::Any, optional: false })
            .collect();
        let mut lines = Vec::new();
        for line in comments.into_iter().flat_map(comment_lines) {
            match line.trim().strip_prefix("@param") {
                None => lines.push(line),
                Some(rest) => {
                    if let Err(fault) = apply(&mut parameters, rest) {
                        faults.push(format!("{fault} (in the comment of `{name}`)"));
                    }
                }
            }
        }
        let signature = signature(name, &parameters);
        let documentation = lines.join("\n").trim().to_owned();
        (Procedure { name: name.to_owned(), parameters, documentation, signature, position }, faults)
    }

    /// Its name, and how it is called by its number of parameters.
    pub(super) fn signatures(&self) -> (String, Signatures) {
        (self.name.clone(), Signatures::from([(self.parameters.len(), self.signature.clone())]))
    }

    /// The file it is defined in.
    pub fn file(&self) -> &Arc<str> {
        &self.position.file
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if self.kind != ParameterKind::Any || self.optional {
            write!(f, ": {}", self.kind.as_str())?;
        }
        if self.optional { f.write_str("?") } else { Ok(()) }
    }
}

/// How the functions of one name are called, such as `pay(from, to)`, by their numbers of parameters.
pub(super) type Signatures = BTreeMap<usize, String>;

/// How a function is called, such as `pay(from, amount: int)`.
pub(super) fn signature(name: &str, parameters: &[impl ToString]) -> String {
    let list: Vec<String> = parameters.iter().map(ToString::to_string).collect();
    format!("{name}({})", list.join(", "))
}

/// Reads ` name type?` into the parameter of that name. What follows the type is for people.
fn apply(parameters: &mut [Parameter], rest: &str) -> Result<(), String> {
    let mut words = rest.split_whitespace();
    let (Some(name), Some(kind)) = (words.next(), words.next()) else {
        return Err("`@param` needs a name and a type".into());
    };
    // A comma or full stop after the type belongs to the sentence.
    let kind = kind.trim_end_matches([',', '.', ':', ';']);
    let (word, optional) = match kind.strip_suffix('?') {
        Some(word) => (word, true),
        None => (kind, false),
    };
    let Some(kind) = ParameterKind::parse(word) else {
        return Err(format!(
            "`@param {name}` has the unknown type `{word}`: use int, number, string, bool, array, map, filter or any"
        ));
    };
    match parameters.iter_mut().find(|parameter| parameter.name == name) {
        Some(parameter) => {
            parameter.kind = kind;
            parameter.optional = optional;
            Ok(())
        }
        None => Err(format!("`@param {name}` names no parameter")),
    }
}

/// The lines of a `///` or `/** */` comment without its marks.
fn comment_lines(comment: &str) -> Vec<String> {
    if let Some(block) = comment.strip_prefix("/**") {
        let block = block.strip_suffix("*/").unwrap_or(block);
        return block.lines().map(|line| line.trim().trim_start_matches('*').trim().to_owned()).collect();
    }
    comment
        .lines()
        .map(|line| {
            let line = line.trim_start().trim_start_matches('/');
            line.strip_prefix(' ').unwrap_or(line).to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_give_documentation_and_types() {
        let position = Position { file: "a.rhai".into(), line: 1, column: 1 };
        let (procedure, faults) = Procedure::new(
            "pay",
            ["from", "amount", "note"],
            ["/// Moves money.\n/// @param amount int in cents\n/// @param note string?\n/// @param nobody int"],
            position,
        );
        assert_eq!(procedure.signature, "pay(from, amount: int, note: string?)");
        assert_eq!(procedure.documentation, "Moves money.");
        assert_eq!(faults, ["`@param nobody` names no parameter (in the comment of `pay`)"]);
    }
}
