//! Sessions: snippets evaluated one after another over a program, with variables that last.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rhai::{Dynamic, LexError, ParseErrorType, Scope};

use crate::error::{Diagnostic, Error, Severity};

use super::call::{Call, Current, Entered};
use super::check::{self, Names, Places};
use super::ending::{Ending, Finished};
use super::procedure::{self, Procedure, Signatures};
use super::program::Program;
use super::source::SourceFile;
use super::{diagnostic, rename, run};

/// The variables of a session.
#[derive(Clone)]
pub(crate) struct Session {
    scope: Scope<'static>,
    constants: usize,
}

impl Session {
    /// A session that sees the constants of a program's files; of equal names the first file's.
    pub(crate) fn new(program: &Program) -> Session {
        let mut session = Session { scope: Scope::new(), constants: 0 };
        session.rebase(program);
        session
    }

    /// Moves the session to another program and keeps its variables: for a reload.
    pub(crate) fn rebase(&mut self, program: &Program) {
        let mut scope = Scope::new();
        for (name, value) in &program.constants {
            scope.push_constant_dynamic(name.clone(), value.clone());
        }
        let constants = scope.len();
        for (name, constant, value) in self.scope.iter().skip(self.constants) {
            match constant {
                true => scope.push_constant_dynamic(name, value),
                false => scope.push_dynamic(name, value),
            };
        }
        self.scope = scope;
        self.constants = constants;
    }

    /// The names of the session's own variables, the newest last.
    pub(crate) fn variables(&self) -> Vec<String> {
        self.scope.iter().skip(self.constants).map(|(name, _, _)| name.to_owned()).collect()
    }

    /// The value of a variable, when there is one and it is data.
    #[cfg(test)]
    pub(crate) fn variable(&self, name: &str) -> Option<crate::value::Value> {
        self.scope.get(name).and_then(|value| super::convert::from_dynamic(value).ok())
    }
}

/// Variables a session may hold: each new one is looked at by name.
const MOST_VARIABLES: usize = 200;

impl Program {
    /// Evaluates a snippet as one call. Procedures, constants and host functions are there; what it declares
    /// with `let` stays in the session, unless the snippet failed or aborted.
    ///
    /// `name` stands for the file in errors, such as `<stdin>`.
    pub(crate) fn eval(&self, snippet: &str, name: &str, session: &mut Session, call: Box<Call>) -> Finished {
        let file = SourceFile::new(name, snippet);
        if rename::written_in(snippet).is_some() {
            let place = rhai::Position::new(1, 1);
            let message = "names with `__file` in them are made by the engine";
            let fault = diagnostic::at(&file, place, "reserved_name", message);
            return Finished { ending: Ending::Failed(Error::Compile(vec![fault])), call };
        }
        let ast = match file.compile(|code| self.engine.compile_with_scope(&session.scope, code)) {
            Ok(ast) => ast,
            Err(error) => {
                let fault = diagnostic::syntax(&file, &error);
                return Finished { ending: Ending::Failed(Error::Compile(vec![fault])), call };
            }
        };
        let faults = self.snippet_faults(&file, &ast);
        if !faults.is_empty() {
            return Finished { ending: Ending::Failed(Error::Compile(faults)), call };
        }
        let before = session.scope.clone();
        let entered = Entered::new(Current::Running(call));
        let scope = &mut session.scope;
        let result = catch_unwind(AssertUnwindSafe(|| self.engine.eval_ast_with_scope::<Dynamic>(scope, &ast)))
            .unwrap_or_else(|_| run::panicked());
        let path: Arc<str> = file.path.clone();
        let mut finished = self.conclude(&format!("<{}>", name.trim_matches(['<', '>'])), &path, entered, result);
        match &mut finished.ending {
            Ending::Returned(_) | Ending::Denied(_) => {
                while session.scope.len() > session.constants + MOST_VARIABLES {
                    session.scope.remove_oldest(session.constants);
                }
            }
            Ending::Failed(Error::Script(script) | Error::Budget(script) | Error::Cancelled(script)) => {
                session.scope = before;
                if script.source_line.is_none()
                    && let Some(position) = &script.position
                    && position.file == path
                {
                    script.source_line = file.line(position.line).map(str::to_owned);
                }
            }
            _ => session.scope = before,
        }
        finished
    }

    fn snippet_faults(&self, file: &SourceFile, ast: &rhai::AST) -> Vec<Diagnostic> {
        let mut procedures: BTreeMap<String, Signatures> =
            self.procedures().iter().map(Procedure::signatures).collect();
        // Functions that the snippet defines are for the snippet only.
        procedures.extend(ast.iter_functions().map(|function| {
            let signature = procedure::signature(function.name, &function.params);
            (function.name.to_owned(), Signatures::from([(function.params.len(), signature)]))
        }));
        let names = Names {
            known: &self.known,
            constants: &Default::default(),
            procedures: &procedures,
            privates: &Default::default(),
        };
        let mut faults = Vec::new();
        check::file(file, ast, &names, &mut Places::new(), &mut faults);
        faults.retain(|fault| fault.severity == Severity::Error && fault.code != "unknown_variable");
        faults
    }
}

/// Drops the oldest variable of a session.
trait RemoveOldest {
    fn remove_oldest(&mut self, at: usize);
}

impl RemoveOldest for Scope<'static> {
    fn remove_oldest(&mut self, at: usize) {
        let kept: Vec<(String, bool, Dynamic)> = self
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != at)
            .map(|(_, (name, constant, value))| (name.to_owned(), constant, value))
            .collect();
        self.clear();
        for (name, constant, value) in kept {
            match constant {
                true => self.push_constant_dynamic(name, value),
                false => self.push_dynamic(name, value),
            };
        }
    }
}

/// Whether a text is the beginning of something longer: the reader should go on reading.
pub(crate) fn incomplete(text: &str) -> bool {
    if open_at_end(text) {
        return true;
    }
    let engine = rhai::Engine::new_raw();
    match engine.compile(text) {
        Ok(_) => false,
        Err(error) => {
            let end = text.trim_end();
            let (line, column) = (end.lines().count(), end.lines().last().unwrap_or_default().chars().count());
            let at_end = error.1.is_none()
                || error.1.line().is_some_and(|l| l > line || (l == line && error.1.position().unwrap_or(0) > column));
            match &*error.0 {
                ParseErrorType::UnexpectedEOF => true,
                ParseErrorType::MissingToken(..) => at_end,
                ParseErrorType::BadInput(LexError::UnterminatedString) => text.ends_with('\\'),
                _ => at_end && brackets_open(text),
            }
        }
    }
}

/// Whether the text ends inside a back-tick string or a block comment.
fn open_at_end(text: &str) -> bool {
    matches!(scan(text), Scanned::InText | Scanned::InComment)
}

fn brackets_open(text: &str) -> bool {
    matches!(scan(text), Scanned::Code { depth } if depth > 0)
}

enum Scanned {
    Code { depth: i64 },
    InText,
    InComment,
}

/// Follows quotes, comments and brackets to the end of the text.
fn scan(text: &str) -> Scanned {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut comments) = (0, 0_i64, 0_usize);
    // Depths at which a `${` of a back-tick string was opened.
    let mut interpolations: Vec<i64> = Vec::new();
    let mut in_text = false;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if in_text {
            match rest {
                [b'`', b'`', ..] => at += 2,
                [b'`', ..] => {
                    in_text = false;
                    at += 1;
                }
                [b'$', b'{', ..] => {
                    interpolations.push(depth);
                    depth += 1;
                    in_text = false;
                    at += 2;
                }
                _ => at += 1,
            }
            continue;
        }
        if comments > 0 {
            match rest {
                [b'/', b'*', ..] => (comments, at) = (comments + 1, at + 2),
                [b'*', b'/', ..] => (comments, at) = (comments - 1, at + 2),
                _ => at += 1,
            }
            continue;
        }
        match rest {
            [b'/', b'/', ..] => at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => (comments, at) = (1, at + 2),
            [b'`', ..] => (in_text, at) = (true, at + 1),
            [quote @ (b'"' | b'\''), ..] => {
                at += 1;
                while at < bytes.len() && bytes[at] != *quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            [b'(' | b'[' | b'{', ..] => (depth, at) = (depth + 1, at + 1),
            [b')' | b']' | b'}', ..] => {
                depth -= 1;
                at += 1;
                if interpolations.last() == Some(&depth) {
                    interpolations.pop();
                    in_text = true;
                }
            }
            _ => at += 1,
        }
    }
    match (in_text, comments) {
        (true, _) => Scanned::InText,
        (_, 1..) => Scanned::InComment,
        _ => Scanned::Code { depth },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_told_from_what_is_wrong() {
        for text in ["fn f() {", "let x = [1,", "foo(", "`text", "`${a", "/* note", "let x =", "#{ a: 1", "if x {\n 1"]
        {
            assert!(incomplete(text), "{text}");
        }
        for text in ["", "1 + 1", "let x = 1;", "fn f() {}", "}", "let 1 = 2", "\"open", "foo)", "`a${1}`", "a b"] {
            assert!(!incomplete(text), "{text}");
        }
    }
}
