//! `tollgate test`: runs script tests.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use tollgate::testing::{self, Filter, Report, TestResult};

use super::Folder;
use super::console::{Console, Style};
use super::exit::Exit;
use super::format;
use super::place::Place;

/// Runs the `test_…` functions of `tests/*.rhai` and `*_test.rhai`; exits 7 when one fails.
#[derive(Args)]
pub(crate) struct Test {
    #[command(flatten)]
    folder: Folder,
    /// Only tests whose `file::function` contains this.
    #[arg(long, value_name = "TEXT", env = "TOLLGATE_FILTER")]
    filter: Option<String>,
    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE", env = "TOLLGATE_JUNIT")]
    junit: Option<PathBuf>,
}

/// A test's result, as programs read it.
#[derive(Serialize)]
struct TestRecord<'a> {
    test: &'a str,
    file: &'a str,
    passed: bool,
    elapsed_ms: f64,
    message: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    calls: &'a [String],
    log: &'a [String],
}

#[derive(Serialize)]
struct SummaryRecord {
    passed: usize,
    failed: usize,
}

impl Test {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let folder = place.folder(self.folder.dir.as_deref())?;
        let filter = self.filter.as_deref().map_or_else(Filter::all, Filter::containing);
        // The first failure to write is kept: the runner cannot be stopped in the middle.
        let mut written = Ok(());
        let report = testing::run_each(&folder, &filter, |test| {
            if written.is_ok() {
                written = print(test, console).and_then(|()| Ok(console.flush()?));
            }
        })?;
        written?;
        let (passed, failed) = (report.passed(), report.failed());
        if console.json {
            console.record(&SummaryRecord { passed, failed })?;
        } else {
            let summary = format!("{passed} passed, {failed} failed");
            let style = if failed > 0 { Style::Bad } else { Style::Good };
            console.line(console.styled(style, &summary))?;
        }
        if report.tests.is_empty() {
            console.note(format!(
                "no tests in {}: they are functions `test_…` in *_test.rhai or tests/",
                folder.display()
            ));
        }
        if let Some(path) = &self.junit {
            let text = junit(&report)?;
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(if failed > 0 { Exit::Failed } else { Exit::Returned })
    }
}

fn print(test: &TestResult, console: &mut Console) -> Result<()> {
    let failure = test.failure.as_ref();
    if console.json {
        let position = failure.and_then(|failure| failure.position.as_ref());
        console.record(&TestRecord {
            test: &test.name,
            file: &test.file,
            passed: failure.is_none(),
            elapsed_ms: (test.elapsed.as_secs_f64() * 1e6).round() / 1e3,
            message: failure.map(|failure| failure.message.as_str()),
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            calls: failure.map_or(&[], |failure| &failure.calls),
            log: &test.log,
        })?;
        return Ok(());
    }
    match failure {
        None => console.line(format!("{} {}", console.styled(Style::Good, "ok"), test.path()))?,
        Some(failure) => {
            console.line(format!("{} {}", console.styled(Style::Bad, "FAILED"), test.path()))?;
            for line in failure.to_string().lines() {
                console.line(format!("  {line}").trim_end())?;
            }
            for line in &test.log {
                console.line(format!("  log: {}", format::plain(line)))?;
            }
        }
    }
    Ok(())
}

fn junit(report: &Report) -> Result<String> {
    let mut xml = quick_junit::Report::new("tollgate");
    let mut suites: Vec<TestSuite> = Vec::new();
    for test in &report.tests {
        let status = match &test.failure {
            None => TestCaseStatus::success(),
            Some(failure) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let first_line = failure.message.lines().next().unwrap_or_default();
                status.set_message(first_line).set_type("failure").set_description(failure.to_string());
                status
            }
        };
        let name = if test.name.is_empty() { "load" } else { &test.name };
        let mut case = TestCase::new(name, status);
        case.set_classname(test.file.clone()).set_time(test.elapsed);
        match suites.last_mut().filter(|suite| suite.name.as_str() == test.file) {
            Some(suite) => {
                suite.add_test_case(case);
            }
            None => {
                let mut suite = TestSuite::new(test.file.clone());
                suite.add_test_case(case);
                suites.push(suite);
            }
        }
    }
    xml.add_test_suites(suites);
    xml.to_string().context("cannot write JUnit XML")
}
