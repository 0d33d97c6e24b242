//! Data: collections that are named wrongly or never, filters that no index serves, filters that callers choose.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{Expr, FnCallExpr, ImmutableString, Position, Stmt};

use crate::document::collection::{Collection, CollectionSpec};
use crate::document::filter::Filter;
use crate::document::options::FindOptions;
use crate::document::plan;
use crate::error::Diagnostic;
use crate::spelling;
use crate::value::{Map, Value};

use super::super::convert;
use super::super::diagnostic::{hinted, warning};
use super::super::gather::DeclaredCollection;
use super::super::procedure::{ParameterKind, Procedure};
use super::file::{File, expressions, variable};

/// Functions that take a collection first.
const ON_COLLECTIONS: [&str; 11] =
    ["find", "find_one", "get", "count", "exists", "update", "update_one", "delete", "delete_one", "insert", "upsert"];
/// Those of them that make documents, and so the collection.
const MAKING: [&str; 2] = ["insert", "upsert"];
/// Those of them that take a filter next.
const FILTERING: [&str; 9] =
    ["find", "find_one", "count", "exists", "update", "update_one", "upsert", "delete", "delete_one"];

/// A call of a function on a collection.
struct Use<'a> {
    file: &'a File<'a>,
    call: FnCallExpr,
    position: Position,
    /// The collection, unless only running it tells.
    collection: Option<ImmutableString>,
}

/// Tells of collections that are unknown or unused, and of filters that can only scan.
pub(super) fn lint(files: &[File], declared: &[DeclaredCollection], out: &mut Vec<Diagnostic>) {
    let uses: Vec<Use> = files.iter().flat_map(uses).collect();
    uses.iter().for_each(|one| scans(one, declared, out));
    // A name that is made while a procedure runs may be any.
    if uses.iter().all(|one| one.collection.is_some()) {
        unknown(&uses, declared, out);
        unused(files, &uses, declared, out);
    }
}

/// The calls on collections of a file.
fn uses<'a>(file: &'a File<'a>) -> Vec<Use<'a>> {
    let mut found: BTreeMap<(usize, usize), Use> = BTreeMap::new();
    file.each_expression(&mut |expr| {
        if let Expr::FnCall(call, position) = expr
            && ON_COLLECTIONS.contains(&call.name.as_str())
            && let Some(first) = call.args.first()
        {
            let collection = match first {
                Expr::StringConstant(name, _) => Some(name.clone()),
                other => variable(other).and_then(|name| text_constant(file, name)),
            };
            let place = (position.line().unwrap_or(0), position.position().unwrap_or(0));
            found.insert(place, Use { file, call: (**call).clone(), position: *position, collection });
        }
    });
    found.into_values().collect()
}

fn text_constant(file: &File, name: &str) -> Option<ImmutableString> {
    file.constants.get(name).and_then(|constant| constant.value.clone().try_cast::<ImmutableString>())
}

fn unknown(uses: &[Use], declared: &[DeclaredCollection], out: &mut Vec<Diagnostic>) {
    let made = uses.iter().filter(|one| MAKING.contains(&one.call.name.as_str()));
    let known: BTreeSet<&str> = made
        .filter_map(|one| one.collection.as_deref())
        .chain(declared.iter().map(|declared| declared.spec.name.as_str()))
        .collect();
    for one in uses {
        let Some(name) = one.collection.as_deref().filter(|name| !known.contains(name)) else { continue };
        let place = one.call.args.first().map_or(one.position, Expr::position);
        let message = format!("no file declares or fills the collection `{name}`");
        let hint = match spelling::nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it where the host fills it: `collection(\"{name}\");`"),
        };
        out.push(hinted(warning(one.file.source, place, "unknown_collection", message), Some(hint)));
    }
}

fn unused(files: &[File], uses: &[Use], declared: &[DeclaredCollection], out: &mut Vec<Diagnostic>) {
    let used: BTreeSet<&str> = uses.iter().filter_map(|one| one.collection.as_deref()).collect();
    for one in declared.iter().filter(|one| !used.contains(one.spec.name.as_str())) {
        let Some(file) = files.iter().find(|file| file.source.path == one.position.file) else { continue };
        let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let place = Position::new(narrow(one.position.line), narrow(one.position.column));
        let message = format!("no procedure uses the collection `{}`", one.spec.name);
        let hint = "take the declaration out, or allow it where the host alone uses it";
        out.push(hinted(warning(file.source, place, "unused_collection", message), Some(hint)));
    }
}

/// Tells of a filter that is written out and that no index serves.
fn scans(one: &Use, declared: &[DeclaredCollection], out: &mut Vec<Diagnostic>) {
    let (Some(name), [_, filter @ Expr::Map(fields, _), rest @ ..]) = (&one.collection, &one.call.args[..]) else {
        return;
    };
    // Without a condition all documents are meant.
    if !FILTERING.contains(&one.call.name.as_str()) || (fields.0.is_empty() && fields.1.is_empty()) {
        return;
    }
    let none = CollectionSpec::new(name.as_str());
    let spec = declared.iter().map(|one| &one.spec).find(|spec| spec.name == name.as_str()).unwrap_or(&none);
    let (Ok(collection), Some(filter)) = (Collection::declared(spec), known_filter(filter)) else { return };
    let options = match (one.call.name.as_str(), rest) {
        ("find", [options]) => match map_of(options).map(|map| FindOptions::parse(&map)) {
            Some(Ok(options)) => Some(options),
            // Options that are not written out may well be served.
            _ => return,
        },
        _ => None,
    };
    let plan = plan::plan(&collection, &filter, options.as_ref());
    if plan.index().is_none() {
        let message = format!("no index of `{name}` serves this `{}`: it reads every document", one.call.name);
        let hint = Some(plan.advice().to_owned()).filter(|advice| !advice.is_empty());
        out.push(hinted(warning(one.file.source, one.position, "scan_only", message), hint));
    }
}

fn known_filter(expr: &Expr) -> Option<Filter> {
    Filter::parse(&map_of(expr)?).ok()
}

/// A map that is written out. What only running it tells is some text: its type decides nothing about a plan.
fn map_of(expr: &Expr) -> Option<Map> {
    match value_of(expr) {
        Value::Map(map) => Some(map),
        _ => None,
    }
}

fn value_of(expr: &Expr) -> Value {
    match expr {
        Expr::Map(fields, _) => Value::Map(
            fields.0.iter().map(|(name, value)| (name.name.to_string(), of_field(&name.name, value))).collect(),
        ),
        Expr::Array(items, _) => Value::Array(items.iter().map(value_of).collect()),
        other => {
            let literal = other.get_literal_value(None).and_then(|value| convert::from_dynamic(&value).ok());
            literal.unwrap_or_else(|| Value::from("?"))
        }
    }
}

/// The value of a field; operators that take a list or a truth have one, whatever it is.
fn of_field(name: &str, expr: &Expr) -> Value {
    match (name, value_of(expr)) {
        ("$in" | "$nin", Value::Text(text)) => Value::Array(vec![Value::Text(text)]),
        ("$exists", Value::Text(_)) => Value::Bool(true),
        (_, value) => value,
    }
}

/// Tells of procedures whose caller chooses a whole filter, other than by a declared `filter` parameter.
pub(super) fn whole_filters(file: &File, procedures: &[Procedure], out: &mut Vec<Diagnostic>) {
    for function in file.functions.values().filter(|function| !function.private && !function.is_closure()) {
        let declared = procedures.iter().find(|procedure| procedure.name == function.name.as_str());
        let Some(procedure) = declared.filter(|procedure| procedure.position.file == file.source.path) else {
            continue;
        };
        let chosen: BTreeSet<&str> = procedure
            .parameters
            .iter()
            .filter(|parameter| parameter.kind != ParameterKind::Filter)
            .map(|parameter| parameter.name.as_str())
            .filter(|name| !is_set(&function.body, name))
            .collect();
        expressions(&function.body, &mut |expr| {
            let Expr::FnCall(call, _) = expr else { return };
            if !FILTERING.contains(&call.name.as_str()) {
                return;
            }
            let Some(filter) = call.args.get(1) else { return };
            let Some(name) = variable(filter).filter(|name| chosen.contains(name.as_str())) else { return };
            let message = format!("the argument `{name}` is the whole filter of this `{}`", call.name);
            let hint =
                format!("filter by fields, as in `#{{ user_id: {name} }}`; or say so: `/// @param {name} filter`");
            let fault = hinted(warning(file.source, filter.position(), "whole_filter", message), Some(hint));
            if !out.contains(&fault) {
                out.push(fault);
            }
        });
    }
}

/// Whether a name is given another value somewhere in some statements.
fn is_set(statements: &[Stmt], name: &str) -> bool {
    let mut set = false;
    for stmt in statements {
        stmt.walk(&mut Vec::new(), &mut |path| {
            if let Some(rhai::ASTNode::Stmt(stmt)) = path.last() {
                set |= match stmt {
                    Stmt::Var(variable, ..) => variable.0.name == name,
                    Stmt::Assignment(assignment) => variable(&assignment.1.lhs).is_some_and(|other| other == name),
                    _ => false,
                };
            }
            true
        });
    }
    set
}
