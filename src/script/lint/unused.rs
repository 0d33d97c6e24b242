//! Unused limits: those that a file declares and no function takes from.

use std::collections::BTreeSet;

use rhai::{Dynamic, Expr, ImmutableString, Position};

use crate::error::Diagnostic;

use super::super::diagnostic::{hinted, warning};
use super::super::gather::DeclaredLimit;
use super::super::host::limits::LimitValue;
use super::file::{File, expressions, variable};

/// Tells of limits that nothing uses.
pub(super) fn lint(files: &[File], declared: &[DeclaredLimit], out: &mut Vec<Diagnostic>) {
    let texts = texts(files);
    for file in files {
        let used = names(file);
        for (name, constant) in &file.constants {
            let limits = limits(&constant.value);
            if !limits.is_empty() && !used.contains(name) && !limits.iter().any(|limit| texts.contains(limit)) {
                let what = if constant.value.is::<LimitValue>() { "limit" } else { "list of limits" };
                let message = format!("no function uses the {what} `{name}`");
                tell(file, constant.position, message, out);
            }
        }
        for one in declared.iter().filter(|one| one.position.file == file.source.path) {
            let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            let place = Position::new(narrow(one.position.line), narrow(one.position.column));
            let named = file.constants.values().any(|constant| constant.position == place);
            if !named && !texts.contains(one.limit.name()) {
                tell(
                    file,
                    place,
                    format!("no constant holds the limit `{}`, so no function can use it", one.limit.name()),
                    out,
                );
            }
        }
    }
}

fn tell(file: &File, place: Position, message: String, out: &mut Vec<Diagnostic>) {
    let hint = "take it out, or allow it where the host alone uses it";
    out.push(hinted(warning(file.source, place, "unused_limit", message), Some(hint)));
}

/// The names of the limits in a value.
fn limits(value: &Dynamic) -> Vec<String> {
    if let Some(limit) = value.read_lock::<LimitValue>() {
        return vec![limit.name().to_owned()];
    }
    if let Ok(items) = value.as_array_ref() {
        return items.iter().flat_map(limits).collect();
    }
    value.as_map_ref().map_or_else(|_| Vec::new(), |map| map.values().flat_map(limits).collect())
}

/// The names that the functions of a file read, and its constants of each other.
fn names(file: &File) -> BTreeSet<ImmutableString> {
    let mut names = BTreeSet::new();
    file.each_expression(&mut |expr| names.extend(variable(expr).cloned()));
    names
}

/// The texts in the functions of all files: a limit may be built again by its name, or looked up by it.
fn texts(files: &[File]) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for function in files.iter().flat_map(|file| file.functions.values()) {
        expressions(&function.body, &mut |expr| {
            if let Expr::StringConstant(text, _) = expr {
                texts.insert(text.to_string());
            }
        });
    }
    texts
}
