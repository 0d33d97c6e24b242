//! Errors of the engine, named by what the caller does next.

use std::fmt;
use std::sync::Arc;

use crate::store::StoreError;
use crate::value::{Map, Value};

/// Why a call, a load or an open failed. Nothing was written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// No procedure has this name: correct the name, or load the file.
    UnknownProcedure {
        /// The name asked for.
        name: String,
        /// The nearest name there is.
        suggestion: Option<String>,
    },
    /// The arguments do not fit the procedure: correct the call.
    BadArguments {
        /// The procedure called.
        procedure: String,
        /// What does not fit.
        message: String,
        /// How the procedure is called.
        signature: String,
    },
    /// The procedure raised an error that nothing caught: correct the procedure.
    Script(Box<ScriptError>),
    /// The call used up a budget: make it smaller, or raise the budget.
    Budget(Box<ScriptError>),
    /// The caller stopped the call by its [`CancelHandle`](crate::CancelHandle): nothing to do.
    Cancelled(Box<ScriptError>),
    /// Files that do not load: correct them. What was loaded before stays.
    Compile(Vec<Diagnostic>),
    /// Another process holds the store: stop it.
    Busy {
        /// The store's folder.
        path: String,
        /// The holder, 0 when it cannot be told.
        pid: u32,
    },
    /// The store failed or is damaged: see to the disk, then reopen.
    Storage(StoreError),
    /// A document, filter or change that does not do, in a transaction of host code: correct it.
    Data {
        /// `unique_violation`, `bad_filter`, `bad_change`, `bad_document`, `too_large` or `not_found`.
        code: &'static str,
        /// What is wrong.
        message: String,
        /// The particulars, such as `index`, `value`, `id`.
        data: Box<Map>,
    },
    /// A write through an engine that was opened to read only.
    ReadOnly,
    /// A release, document or other thing that is not there.
    NotFound(String),
    /// A host setting makes no sense: correct the host.
    Config(String),
    /// The engine was closed.
    Closed,
}

/// An error raised inside a procedure, with where and how it got there.
#[derive(Clone, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct ScriptError {
    /// Stable text for programs: the thrown map's `code`, a host function's code (`unique_violation`, …), else `script`.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// What was thrown, when something was.
    pub value: Value,
    /// Where.
    pub position: Option<Position>,
    /// The calls that led there, innermost first.
    pub stack: Vec<Frame>,
    /// The source line at the position.
    pub source_line: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A place in a procedure file; line and column count from 1, in characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The file, as it was given.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One function of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// Where in it the next inner call, or the error, is.
    pub position: Option<Position>,
}

/// One fault of a procedure file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Stable text for programs, such as `syntax`, `duplicate_procedure`, `bad_limit`; [`Rule`](crate::Rule) explains it.
    pub code: &'static str,
    /// Whether it stops the load.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub position: Option<Position>,
    /// The source line at the position.
    pub source_line: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file does not load.
    Error,
    /// The file loads; a person should look.
    Warning,
}

/// `file:line:column: error: message`, then the line with a caret and the hint where there are any. A warning is
/// `warning[code]`: by its code a comment allows it.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = &self.position {
            write!(f, "{position}: ")?;
        }
        match self.severity {
            Severity::Error => write!(f, "error: {}", self.message)?,
            Severity::Warning => write!(f, "warning[{}]: {}", self.code, self.message)?,
        }
        write_excerpt(f, self.source_line.as_deref(), self.position.as_ref(), self.hint.as_deref())
    }
}

fn write_excerpt(
    f: &mut fmt::Formatter<'_>,
    line: Option<&str>,
    position: Option<&Position>,
    hint: Option<&str>,
) -> fmt::Result {
    if let (Some(line), Some(position)) = (line, position) {
        let number = position.line.to_string();
        // Tabs stay tabs in front of the caret, so that it stands below its character in any terminal.
        let indent: String =
            line.chars().take(position.column.saturating_sub(1)).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "\n {number} | {line}\n {:width$} | {indent}^", "", width = number.len())?;
    }
    if let Some(hint) = hint {
        write!(f, "\n   = {hint}")?;
    }
    Ok(())
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = &self.position {
            write!(f, "{position}: ")?;
        }
        write!(f, "{}", self.message)?;
        write_excerpt(f, self.source_line.as_deref(), self.position.as_ref(), self.hint.as_deref())?;
        for frame in &self.stack {
            match &frame.position {
                Some(position) => write!(f, "\n   in {} at {position}", frame.function)?,
                None => write!(f, "\n   in {}", frame.function)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownProcedure { name, suggestion: Some(near) } => {
                write!(f, "no procedure is named `{name}`: did you mean `{near}`?")
            }
            Error::UnknownProcedure { name, suggestion: None } => {
                write!(f, "no procedure is named `{name}`: `tollgate procs` lists those there are")
            }
            Error::BadArguments { procedure, message, signature } => {
                write!(f, "bad arguments for {procedure}: {message}\n   usage: {signature}")
            }
            Error::Script(error) | Error::Budget(error) | Error::Cancelled(error) => write!(f, "{error}"),
            Error::Compile(diagnostics) => {
                for (index, diagnostic) in diagnostics.iter().enumerate() {
                    if index > 0 {
                        writeln!(f)?;
                    }
                    write!(f, "{diagnostic}")?;
                }
                Ok(())
            }
            Error::Busy { path, pid: 0 } => {
                write!(f, "the store {path} is held by another process: stop it, or open another store")
            }
            Error::Busy { path, pid } => {
                write!(f, "the store {path} is held by process {pid}: stop that process, or open another store")
            }
            Error::Storage(error) => write!(f, "{error}"),
            Error::Data { message, .. } | Error::NotFound(message) | Error::Config(message) => f.write_str(message),
            Error::ReadOnly => f.write_str("this was opened to read only: nothing can be written"),
            Error::Closed => f.write_str("the engine is closed"),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Stable text for programs.
    pub fn code(&self) -> &str {
        match self {
            Error::UnknownProcedure { .. } => "unknown_procedure",
            Error::BadArguments { .. } => "bad_arguments",
            Error::Script(error) => &error.code,
            Error::Budget(_) => "budget",
            Error::Cancelled(_) => "cancelled",
            Error::Compile(_) => "compile",
            Error::Busy { .. } => "busy",
            Error::Storage(_) => "storage",
            Error::Data { code, .. } => code,
            Error::ReadOnly => "read_only",
            Error::NotFound(_) => "not_found",
            Error::Config(_) => "config",
            Error::Closed => "closed",
        }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Busy { .. } | Error::Budget(_))
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error {
            StoreError::Busy { path, pid } => Error::Busy { path, pid },
            other => Error::Storage(other),
        }
    }
}
