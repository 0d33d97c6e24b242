//! Lints: what is allowed in procedure files and yet hardly ever meant.
//!
//! They look at files that have been parsed, and run nothing. A false alarm costs more than a fault that is missed: people
//! stop reading. So each lint keeps quiet where it cannot be sure, and each can be allowed by a comment, see [`allow`].
//! What every code stands for, with an example that raises it and one that does not, is in [`rule`].

mod allow;
mod chain;
mod comments;
mod data;
mod dropped;
mod errors;
mod file;
mod flow;
mod lints;
#[cfg(test)]
mod model;

mod rule;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod unused;

use rhai::{AST, Dynamic, ImmutableString, Position};

use crate::error::Diagnostic;

use super::gather::{DeclaredCollection, DeclaredLimit};
use super::procedure::Procedure;
use super::source::SourceFile;

use file::{Constant, File};
use summary::Summaries;

pub use rule::Rule;

/// What all files declare together; known only where they all load.
pub(super) struct Declared<'a> {
    /// The constants: the number of the file, the name, the value and where it is declared.
    pub(super) constants: Vec<(usize, ImmutableString, Dynamic, Position)>,
    pub(super) limits: &'a [DeclaredLimit],
    pub(super) collections: &'a [DeclaredCollection],
    pub(super) procedures: &'a [Procedure],
}

/// What a person should look at in some parsed files, by position; `found` is what is known already.
///
/// Without what they declare only the lints run that need nothing else.
pub(super) fn lint(
    parsed: &[(&SourceFile, &AST)],
    declared: Option<&Declared>,
    found: &[Diagnostic],
) -> Vec<Diagnostic> {
    let mut files: Vec<File> = parsed.iter().map(|(source, ast)| File::new(source, ast)).collect();
    for (number, name, value, position) in declared.into_iter().flat_map(|declared| &declared.constants) {
        if let Some(file) = files.get_mut(*number) {
            file.constants.insert(name.clone(), Constant { value: value.clone(), position: *position });
        }
    }
    let mut out = found.to_vec();
    let summaries = Summaries::of(&files);
    for (number, file) in files.iter().enumerate() {
        flow::lint(file, number, &summaries, &mut out);
        // Which limits are shadows, that refuse nothing, is known with their declarations.
        if declared.is_some() {
            dropped::lint(file, number, &summaries, &mut out);
        }
    }
    if let Some(declared) = declared {
        data::lint(&files, declared.collections, &mut out);
        unused::lint(&files, declared.limits, &mut out);
        files.iter().for_each(|file| data::whole_filters(file, declared.procedures, &mut out));
    }
    let sources: Vec<&SourceFile> = parsed.iter().map(|(source, _)| *source).collect();
    let mut out = allow::apply(&sources, out, declared.is_some());
    out.sort_by(|a, b| (&a.position, a.code).cmp(&(&b.position, b.code)));
    out
}
