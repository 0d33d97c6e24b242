//! Renaming: a file's constants and private functions get names that no other file can say.
//!
//! The functions of all files live in one library. The name `LOGIN` of the third file becomes `LOGIN__file3`
//! while the file's tokens are read, at the places that the first pass found. A file that itself writes such a
//! name does not load, so nothing reaches another file's constants and helpers.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rhai::{Engine, Token};

use super::check::Places;
use super::compare;

/// Stands before the number of the file in a renamed name. Files may not write it; see [`written_in`].
const MARK: &str = "__file";

/// Where a text writes the mark: line and column.
pub(super) fn written_in(text: &str) -> Option<(usize, usize)> {
    let at = text.find(MARK)?;
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    Some((text[..at].matches('\n').count() + 1, text[line_start..at].chars().count() + 1))
}

/// The name of a file's own thing.
pub(super) fn own(name: &str, file: usize) -> String {
    format!("{name}{MARK}{file}")
}

/// The name as the file wrote it.
pub(super) fn written(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// Whether the name was made here.
pub(super) fn is_own(name: &str) -> bool {
    name.contains(MARK)
}

/// A message with every renamed name as it was written.
pub(super) fn plain(message: &str) -> String {
    let mut parts = message.split(MARK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// What the token hook renames while a file is compiled; empty otherwise.
#[derive(Default)]
pub(super) struct Renaming {
    places: Places,
    privates: BTreeSet<String>,
    file: usize,
    before: Before,
}

/// The tokens before: the name after `private fn` is that of a private function.
#[derive(Clone, Copy, Default, PartialEq)]
enum Before {
    #[default]
    Other,
    Private,
    PrivateFn,
}

/// The hook's state, shared between the interpreter and the compiler of files.
pub(super) type Shared = Arc<Mutex<Option<Renaming>>>;

impl Renaming {
    pub(super) fn new(places: Places, privates: BTreeSet<String>, file: usize) -> Renaming {
        Renaming { places, privates, file, before: Before::Other }
    }
}

/// Makes an interpreter rename tokens as `shared` says.
pub(super) fn install(engine: &mut Engine, shared: &Shared) {
    let shared = shared.clone();
    #[allow(deprecated)] // Marked volatile, not deprecated; the version of the interpreter is pinned by the lock file.
    engine.on_parse_token(move |token, position, _| {
        if let Some(ours) = compare::replaced(&token) {
            return ours;
        }
        // The language keeps the word for itself and has no use for it; it is a method of limits.
        if matches!(&token, Token::Reserved(word) if word.as_str() == "with") {
            return Token::Identifier(Box::new("with".into()));
        }
        let mut guard = shared.lock();
        let Some(renaming) = guard.as_mut() else { return token };
        let defines = renaming.before == Before::PrivateFn;
        renaming.before = match (&token, renaming.before) {
            (Token::Private, _) => Before::Private,
            (Token::Fn, Before::Private) => Before::PrivateFn,
            _ => Before::Other,
        };
        match &token {
            Token::Identifier(name) => {
                let place = (position.line().unwrap_or(0), position.position().unwrap_or(0));
                if (defines && renaming.privates.contains(name.as_str())) || renaming.places.contains(&place) {
                    return Token::Identifier(Box::new(own(name, renaming.file).into()));
                }
                token
            }
            _ => token,
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_names_as_written() {
        assert_eq!(plain("no `LIMIT__file3` in helper__file12"), "no `LIMIT` in helper");
        assert_eq!(plain("nothing to do"), "nothing to do");
        assert_eq!(written("f__file1"), "f");
        assert_eq!(written_in("a\n b__file1"), Some((2, 3)));
    }
}
