//! The report of a run of script tests.

use std::fmt;
use std::time::Duration;

use crate::error::Position;

/// What a run of script tests came to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Every test that ran, in the order of files and of functions in them.
    pub tests: Vec<TestResult>,
}

/// What one test came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TestResult {
    /// The file, below the folder.
    pub file: String,
    /// The function; for a file that does not load, the empty text.
    pub name: String,
    /// How long it took on the machine's clock.
    pub elapsed: Duration,
    /// What went wrong; none when it passed.
    pub failure: Option<Failure>,
    /// What it printed and logged.
    pub log: Vec<String>,
}

/// Why a test failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Failure {
    /// What went wrong, both values where two were compared.
    pub message: String,
    /// Where.
    pub position: Option<Position>,
    /// Position, message, the source line with a caret and the call stack, as far as they are known.
    pub description: String,
    /// The calls that the test made until then, each with its outcome.
    pub calls: Vec<String>,
}

impl Report {
    /// How many tests passed.
    pub fn passed(&self) -> usize {
        self.tests.len() - self.failed()
    }

    /// How many tests failed.
    pub fn failed(&self) -> usize {
        self.tests.iter().filter(|test| test.failure.is_some()).count()
    }
}

impl TestResult {
    /// `file::function`, or the file where it does not load.
    pub fn path(&self) -> String {
        match self.name.is_empty() {
            true => self.file.clone(),
            false => format!("{}::{}", self.file, self.name),
        }
    }
}

/// Each test on a line, failures with what they show, then `N passed, N failed`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for test in &self.tests {
            writeln!(f, "{test}")?;
        }
        write!(f, "{} passed, {} failed", self.passed(), self.failed())
    }
}

/// `ok path`, or `FAILED path` and why.
impl fmt::Display for TestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            None => write!(f, "ok {}", self.path()),
            Some(failure) => write!(f, "FAILED {}\n{failure}", self.path()),
        }
    }
}

/// The description, then the calls so far.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)?;
        if !self.calls.is_empty() {
            f.write_str("\n   calls so far:")?;
        }
        for call in &self.calls {
            write!(f, "\n     {call}")?;
        }
        Ok(())
    }
}
