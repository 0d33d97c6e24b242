//! Allowing: comments by which a file says that a lint is wrong about a line, or about the whole file.
//!
//! `// allow(dropped_decision): why` holds for its own line, or for the next one when it stands alone;
//! `//! allow(…): why` for the file. What names no lint and what allows nothing is told of, so that no comment outlives
//! its reason.

use std::collections::BTreeSet;

use crate::error::{Diagnostic, Severity};
use crate::spelling;

use super::super::diagnostic::{hinted, warning};
use super::super::source::SourceFile;
use super::comments::{Comment, comments};
use super::rule::Rule;

/// A code that a comment allows.
struct Allowed<'a> {
    code: &'a str,
    place: rhai::Position,
    /// The line it holds for; the whole file, when none.
    line: Option<usize>,
    used: bool,
}

/// Takes out of `warnings` what the files allow, and adds what is wrong with the comments.
///
/// `complete` says whether every lint ran: only then can it be known that a comment allows nothing.
pub(super) fn apply(files: &[&SourceFile], warnings: Vec<Diagnostic>, complete: bool) -> Vec<Diagnostic> {
    let mut allowed: Vec<(&SourceFile, Vec<Allowed>)> = files.iter().map(|file| (*file, read(file))).collect();
    let mut out: Vec<Diagnostic> = Vec::new();
    for warning in warnings {
        if warning.severity != Severity::Warning || !take(&mut allowed, &warning) {
            out.push(warning);
        }
    }
    for (file, allowed) in &allowed {
        out.extend(allowed.iter().filter_map(|one| fault(file, one, complete)));
    }
    out
}

/// Whether a warning is allowed; what allows it is marked as used.
fn take(allowed: &mut [(&SourceFile, Vec<Allowed>)], warning: &Diagnostic) -> bool {
    let Some(position) = &warning.position else { return false };
    let mut any = false;
    let of_file = allowed.iter_mut().filter(|(file, _)| file.path == position.file);
    for one in of_file.flat_map(|(_, allowed)| allowed) {
        if one.code == warning.code && one.line.is_none_or(|line| line == position.line) {
            one.used = true;
            any = true;
        }
    }
    any
}

/// What is wrong with a comment that allows something.
fn fault(file: &SourceFile, one: &Allowed, complete: bool) -> Option<Diagnostic> {
    let told = |code, message: String, hint: String| Some(hinted(warning(file, one.place, code, message), Some(hint)));
    match Rule::of(one.code) {
        Some(rule) if !rule.may_be_allowed() => told(
            "unknown_allow",
            format!("`{}` cannot be allowed", one.code),
            "only lints can: correct what it stands for".to_owned(),
        ),
        None => {
            let codes: Vec<&str> = Rule::all().filter(|rule| rule.may_be_allowed()).map(|rule| rule.code).collect();
            told(
                "unknown_allow",
                format!("there is no lint `{}` to allow", one.code),
                spelling::nearest(one.code, codes).map_or("`tollgate check --explain` lists them".to_owned(), |near| {
                    format!("did you mean `{near}`?")
                }),
            )
        }
        Some(_) if complete && !one.used => told(
            "unused_allow",
            format!("this allows `{}`, which is not raised here", one.code),
            "take the comment out, or move it to the line it is about".to_owned(),
        ),
        Some(_) => None,
    }
}

/// What the comments of a file allow.
fn read(file: &SourceFile) -> Vec<Allowed<'_>> {
    comments(&file.text).iter().flat_map(|comment| of_comment(file, comment)).collect()
}

fn of_comment<'a>(file: &SourceFile, comment: &Comment<'a>) -> Vec<Allowed<'a>> {
    let (whole, said) = match comment.text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, comment.text),
    };
    let listed = said.trim_start().strip_prefix("allow(").and_then(|rest| rest.split_once(')'));
    let Some((listed, _)) = listed else { return Vec::new() };
    let line = match (whole, comment.alone) {
        (true, _) => None,
        (false, false) => Some(comment.line),
        (false, true) => Some(behind(file, comment.line)),
    };
    let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let place = rhai::Position::new(narrow(comment.line), narrow(comment.column));
    let codes: BTreeSet<&str> = listed.split(',').map(str::trim).collect();
    codes.into_iter().map(|code| Allowed { code, place, line, used: false }).collect()
}

/// The first line behind a comment that is no comment itself.
fn behind(file: &SourceFile, line: usize) -> usize {
    let comments = file.text.lines().skip(line).take_while(|text| text.trim_start().starts_with("//")).count();
    line + 1 + comments
}
