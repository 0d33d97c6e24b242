//! Fingerprints: what a procedure does, as text that stays the same where only layout and comments differ.
//!
//! A procedure does what its body says, with the constants and private functions of its file that it names, and
//! that those name. Two programs are compared by these texts. Other procedures and declared limits and collections
//! are left out: a change of theirs is told as theirs.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{Dynamic, FnPtr, ImmutableString, Position, ScriptFuncDef, Shared};

use super::host::collections::CollectionValue;
use super::host::limits::LimitValue;
use super::program::Program;
use super::rename;
use super::source::SourceFile;

/// What a file has that its procedures may name: a constant or a function, by its plain name.
pub(super) struct Part {
    pub(super) file: usize,
    pub(super) name: ImmutableString,
    pub(super) is: PartKind,
}

pub(super) enum PartKind {
    /// Its value, and where its declaration begins.
    Constant(Dynamic, Position),
    Function(Shared<ScriptFuncDef>),
}

/// What a procedure does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) body: String,
    /// What of its file it uses, by name.
    pub(crate) helpers: BTreeMap<String, String>,
}

impl Program {
    /// What each procedure does, by its name.
    pub(crate) fn fingerprints(&self) -> BTreeMap<String, Fingerprint> {
        let mut parts: BTreeMap<(usize, &str), String> = BTreeMap::new();
        for part in self.parts() {
            if let Some(text) = self.text_of(part) {
                let written = parts.entry((part.file, rename::written(&part.name))).or_default();
                // Functions of one name and several arities are one part.
                written.push_str(&text);
            }
        }
        let is_procedure = |name: &str| self.procedure(name).is_some();
        let mut found = BTreeMap::new();
        for ((file, name), body) in parts.iter().filter(|((_, name), _)| is_procedure(name)) {
            if self.file_number(name) != Some(*file) {
                continue;
            }
            let mut helpers: BTreeMap<String, String> = BTreeMap::new();
            let mut unread: Vec<&str> = vec![body];
            while let Some(text) = unread.pop() {
                for word in words(text) {
                    // A private function may have the name of another file's procedure.
                    let own_procedure = is_procedure(word) && self.file_number(word) == Some(*file);
                    if let Some(text) = parts.get(&(*file, word))
                        && !own_procedure
                        && !helpers.contains_key(word)
                    {
                        helpers.insert(word.to_owned(), text.clone());
                        unread.push(text);
                    }
                }
            }
            found.insert((*name).to_owned(), Fingerprint { body: body.clone(), helpers });
        }
        found
    }

    /// The text of a part; none for what is told on its own.
    fn text_of(&self, part: &Part) -> Option<String> {
        match &part.is {
            PartKind::Function(function) => {
                let file = self.files().get(part.file)?;
                let body = body(&file.text[byte_at(file, function.body.start_position())?..]);
                Some(format!("({}) {}", function.params.join(", "), plain(body)))
            }
            PartKind::Constant(value, position) => {
                if let Some(LimitValue(limit)) = value.read_lock::<LimitValue>().as_deref() {
                    let declared = self.limits().iter().any(|other| other.limit.0 == *limit);
                    return (!declared).then(|| format!("{limit:?}"));
                }
                if value.is::<CollectionValue>() {
                    return None;
                }
                // A closure's value is a name made of what it holds, places included: its declaration says more.
                if value.is::<FnPtr>() {
                    let file = self.files().get(part.file)?;
                    return Some(plain(body(&file.text[byte_at(file, *position)?..])));
                }
                Some(rename::plain(&format!("{value:?}")))
            }
        }
    }
}

/// The byte of a file at a position.
fn byte_at(file: &SourceFile, position: Position) -> Option<usize> {
    let (line, column) = (position.line()?, position.position()?);
    let before: usize = file.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let (offset, _) = file.text[before..].char_indices().nth(column.checked_sub(1)?)?;
    Some(before + offset)
}

/// What a text begins with: a block up to its end, or a declaration up to its semicolon.
fn body(text: &str) -> &str {
    let block = text.starts_with('{');
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        match c {
            '"' | '`' | '\'' => at += quoted(rest, c) - c.len_utf8(),
            _ if rest.starts_with("//") => at += rest.find('\n').unwrap_or(rest.len()) - c.len_utf8(),
            _ if rest.starts_with("/*") => at += comment(rest) - c.len_utf8(),
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' if depth == 0 => return &text[..at],
            '}' | ')' | ']' => {
                depth -= 1;
                if block && depth == 0 {
                    return &text[..=at];
                }
            }
            ';' if depth == 0 => return &text[..at],
            _ => {}
        }
        at += c.len_utf8();
    }
    text
}

/// The names in a text, those in its strings too: a string may hold code.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

/// A text without comments, and with one space wherever it has any. One with code in its strings stays as it is.
fn plain(text: &str) -> String {
    if text.contains("${") {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' | '`' | '\'' => {
                let length = quoted(rest, c);
                out.push_str(&rest[..length]);
                length
            }
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => comment(rest),
            c if c.is_whitespace() => c.len_utf8(),
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        let between = c.is_whitespace() || rest.starts_with("//") || rest.starts_with("/*");
        if between && !out.ends_with(' ') {
            out.push(' ');
        }
        rest = &rest[length..];
    }
    out.truncate(out.trim_end().len());
    out
}

/// The length of the string that a text begins with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote != '`' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of the comment that a text begins with; comments nest.
fn comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest.starts_with("*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::super::{Budget, Natives};
    use super::*;

    fn of(text: &str) -> BTreeMap<String, Fingerprint> {
        let file = SourceFile::new("a.rhai", text);
        Program::compile(vec![file], &Natives::new(), &Budget::default()).unwrap().fingerprints()
    }

    const BEFORE: &str = r#"
        const API = fixed_window("api", 2, "1m");
        const MOST = 3;
        const TWICE = |n| n * 2;
        private fn doubled(n) { n * MOST }
        fn f(a) { API.take(a); let text = "a  // b"; doubled(a) }
        fn g() { TWICE.call(1) }
    "#;

    #[test]
    fn layout_and_comments_change_nothing() {
        for (from, to) in [
            ("fn f(a) { ", "/// Does it.\n fn f(a) {\n\n   /* so /* it */ is */ "),
            ("doubled(a) }", "doubled(a) // as said\n }"),
            ("fn g", "fn h() { 1 }\nfn g"),
            ("|n| n * 2", "|n|  n * 2 /* twice */"),
            ("\"api\", 2", "\"api\", 3"),
        ] {
            let mut after = of(&BEFORE.replace(from, to));
            after.remove("h");
            assert_eq!(after, of(BEFORE), "{from} to {to}");
        }
    }

    #[test]
    fn what_is_done_otherwise_shows_in_the_procedures_that_do_it() {
        for (from, to, changed) in [
            ("a  // b", "a // b", vec!["f"]),
            ("n * MOST", "n + MOST", vec!["f"]),
            ("MOST = 3", "MOST = 4", vec!["f"]),
            ("n * 2", "n * 3", vec!["g"]),
            ("n * 2", "2 * 2", vec!["g"]),
            ("TWICE.call(1)", "TWICE.call(2)", vec!["g"]),
        ] {
            let (before, after) = (of(BEFORE), of(&BEFORE.replace(from, to)));
            let differ: Vec<&str> =
                before.iter().filter(|(name, one)| after[*name] != **one).map(|(name, _)| name.as_str()).collect();
            assert_eq!(differ, changed, "{from} to {to}");
        }
        assert_eq!(of(BEFORE)["f"].helpers.keys().collect::<Vec<_>>(), ["MOST", "doubled"]);
    }

    #[test]
    fn texts_end_where_they_end() {
        for text in ["\"a", "/* a", "'", "`a\\", "/*", "a/", "\"\\", "é//é", "/*é*/é", "{", "}", "{\"é", "{/*é", "//"]
        {
            plain(text);
            body(text);
        }
        for (text, ends) in [
            ("{ a } b", "{ a }"),
            ("const F = f(a, b); c", "const F = f(a, b)"),
            ("{ \"}\" /*}*/ } }", "{ \"}\" /*}*/ }"),
        ] {
            assert_eq!(body(text), ends);
        }
        assert_eq!(plain("a  \n\tb /*c*/ d//e\nf `  ` '\"' \"\\\"//\""), "a b d f `  ` '\"' \"\\\"//\"");
    }
}
