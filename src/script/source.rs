//! Source files: the text of procedure files, read from a folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rhai::{ParseError, ParseErrorType};

use crate::error::{Diagnostic, Position, Severity};

/// One procedure file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The file's name as it was given, with `/` between folders.
    pub path: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
}

impl SourceFile {
    /// A file of this text. A byte order mark and a `#!` line are taken off; lines keep their numbers.
    pub fn new(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: plain(text).into() }
    }

    /// The `.rhai` files of a folder and the folders in it, in the order of their names, without script tests.
    ///
    /// Errors: each folder or file that cannot be read, or is not UTF-8.
    pub fn read_folder(folder: &Path) -> Result<Vec<SourceFile>, Vec<Diagnostic>> {
        read(folder, |path| !is_test(path))
    }

    /// The script tests of a folder: files in a `tests` folder and those named `*_test.rhai`.
    ///
    /// Errors: as [`read_folder`](SourceFile::read_folder).
    pub fn read_tests(folder: &Path) -> Result<Vec<SourceFile>, Vec<Diagnostic>> {
        read(folder, is_test)
    }

    /// Compiles the text; `///` before anything but a function is a plain comment.
    ///
    /// People document constants and declarations too; the interpreter takes documentation of functions only.
    pub(super) fn compile<T>(&self, compile: impl Fn(&str) -> Result<T, ParseError>) -> Result<T, ParseError> {
        let mut code = self.text.to_string();
        loop {
            let error = match compile(&code) {
                Err(error) if *error.0 == ParseErrorType::WrongDocComment => error,
                other => return other,
            };
            // The same length, so that no position moves. A text that cannot be changed has its error.
            let Some(at) = byte_at(&code, error.1).filter(|at| code[*at..].starts_with("///")) else {
                return Err(error);
            };
            code.replace_range(at..at + 3, "// ");
        }
    }

    /// The text of a line, counted from 1.
    pub(crate) fn line(&self, number: usize) -> Option<&str> {
        number.checked_sub(1).and_then(|index| self.text.lines().nth(index))
    }
}

/// Folders within folders that are read; a link that leads back up ends here.
const DEEPEST: usize = 16;

fn is_test(path: &str) -> bool {
    path.ends_with("_test.rhai") || path.split('/').rev().skip(1).any(|folder| folder == "tests")
}

fn read(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<SourceFile>, Vec<Diagnostic>> {
    let (mut paths, mut faults) = (Vec::new(), Vec::new());
    list(folder, "", DEEPEST, &mut paths, &mut faults);
    paths.sort();
    let mut files = Vec::new();
    for path in paths.into_iter().filter(|path| wanted(path)) {
        match fs::read(folder.join(&path)) {
            Err(cause) => faults.push(unreadable(&path, format!("cannot read the file: {cause}"), None)),
            Ok(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => files.push(SourceFile::new(&path, text)),
                Err(fault) => {
                    let good = &bytes[..fault.valid_up_to()];
                    let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
                    let last = good.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
                    let column = 1 + String::from_utf8_lossy(last).chars().count();
                    faults.push(unreadable(&path, "the file is not UTF-8 text".into(), Some((line, column))));
                }
            },
        }
    }
    if faults.is_empty() { Ok(files) } else { Err(faults) }
}

fn list(folder: &Path, prefix: &str, depth: usize, paths: &mut Vec<String>, faults: &mut Vec<Diagnostic>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) => {
            let name = if prefix.is_empty() { folder.display().to_string() } else { prefix.to_owned() };
            return faults.push(unreadable(&name, format!("cannot read the folder: {cause}"), None));
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if entry.path().is_dir() {
            // Hidden folders belong to version control and editors.
            if depth > 0 && !name.starts_with('.') {
                list(&entry.path(), &path, depth - 1, paths, faults);
            }
        } else if name.ends_with(".rhai") && !name.starts_with('.') {
            paths.push(path);
        }
    }
}

fn unreadable(path: &str, message: String, place: Option<(usize, usize)>) -> Diagnostic {
    Diagnostic {
        code: "unreadable",
        severity: Severity::Error,
        message: if place.is_some() { message } else { format!("{path}: {message}") },
        position: place.map(|(line, column)| Position { file: path.into(), line, column }),
        source_line: None,
        hint: None,
    }
}

fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with("#!") {
        // The line becomes a comment of the same length, so that no position moves.
        return format!("//{}", &text[2..]);
    }
    text.to_owned()
}

/// The byte at a position of a text.
fn byte_at(text: &str, position: rhai::Position) -> Option<usize> {
    let (line, column) = (position.line()?, position.position()?);
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let (at, _) = text[start..].char_indices().nth(column - 1)?;
    Some(start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_can_be_documented_and_texts_stay_as_they_are() {
        let text =
            "/// One.\n/// More.\n\nconst A = 1;\n  /// Two.\nlet a = `\n/// text\n` + A;\n/// Three.\nfn f() {\n}\na";
        let file = SourceFile::new("a.rhai", text);
        let engine = rhai::Engine::new();
        let ast = file.compile(|code| engine.compile(code)).unwrap();
        assert_eq!(engine.eval_ast::<String>(&ast).unwrap(), "/// text\n1");
        assert_eq!(ast.iter_functions().next().unwrap().comments, ["/// Three."]);
        assert!(SourceFile::new("a.rhai", "/// x\nlet").compile(|code| engine.compile(code)).is_err());
    }

    #[test]
    fn folders_are_read_in_order_without_tests() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub/tests")).unwrap();
        for (name, text) in [
            ("b.rhai", "fn b() {}"),
            ("a.rhai", "\u{feff}#!/usr/bin/env tollgate\nfn a() {}"),
            ("sub/c.rhai", ""),
            ("a_test.rhai", ""),
            ("sub/tests/d.rhai", ""),
            ("note.txt", ""),
        ] {
            fs::write(at(name), text).unwrap();
        }
        let names = |files: Vec<SourceFile>| files.iter().map(|f| f.path.to_string()).collect::<Vec<_>>();
        let files = SourceFile::read_folder(folder.path()).unwrap();
        assert_eq!(files[0].line(2), Some("fn a() {}"));
        assert_eq!(names(files), ["a.rhai", "b.rhai", "sub/c.rhai"]);
        assert_eq!(names(SourceFile::read_tests(folder.path()).unwrap()), ["a_test.rhai", "sub/tests/d.rhai"]);

        fs::write(at("bad.rhai"), b"fn a() {}\n// \xff").unwrap();
        let faults = SourceFile::read_folder(folder.path()).unwrap_err();
        assert_eq!(faults[0].to_string(), "bad.rhai:2:4: error: the file is not UTF-8 text");
    }
}
