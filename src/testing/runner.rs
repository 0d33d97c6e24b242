//! Runs the script tests of a folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ScriptError};
use crate::script::{Arguments, Budget, LogLine, Procedure, Program, SourceFile};
use crate::time::Stopwatch;

use super::functions;
use super::report::{Failure, Report, TestResult};
use super::world::World;

/// Which tests run.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    contains: Option<String>,
}

impl Filter {
    /// Every test.
    pub fn all() -> Filter {
        Filter::default()
    }

    /// Tests whose `file::function` contains this text.
    pub fn containing(text: &str) -> Filter {
        Filter { contains: Some(text.to_owned()) }
    }

    fn admits(&self, path: &str) -> bool {
        self.contains.as_ref().is_none_or(|text| path.contains(text.as_str()))
    }
}

/// What one test may use. It makes many calls, each with the usual budget of its own, and may make what is too large for them.
fn budget_of_test() -> Budget {
    Budget {
        time: Duration::from_secs(60),
        operations: 100_000_000,
        text_bytes: 8 << 20,
        array_items: 1 << 16,
        map_items: 1 << 12,
        ..Budget::default()
    }
}

/// Runs the script tests of a folder: files in a folder `tests`, and files named `*_test.rhai`.
///
/// A test file that does not load counts as one failed test. Errors: the folder cannot be read, or its procedures
/// do not load.
pub fn run(folder: impl AsRef<Path>, filter: &Filter) -> Result<Report, Error> {
    run_each(folder, filter, |_| ())
}

/// [`run`], and hands each result on as soon as it is there.
///
/// Errors: as [`run`].
pub fn run_each(folder: impl AsRef<Path>, filter: &Filter, mut each: impl FnMut(&TestResult)) -> Result<Report, Error> {
    let folder = folder.as_ref();
    // The procedures first: where they do not load, every test would say the same.
    World::new(folder)?.close()?;
    let mut report = Report::default();
    for file in SourceFile::read_tests(folder).map_err(Error::Compile)? {
        for result in run_file(folder, file, filter) {
            let result = result?;
            each(&result);
            report.tests.push(result);
        }
    }
    Ok(report)
}

/// The tests of one file, run as they are asked for.
fn run_file<'a>(
    folder: &'a Path,
    file: SourceFile,
    filter: &'a Filter,
) -> Box<dyn Iterator<Item = Result<TestResult, Error>> + 'a> {
    let path = file.path.clone();
    let world = match World::new(folder) {
        Ok(world) => world,
        Err(error) => return Box::new(std::iter::once(Err(error))),
    };
    // Once for the list of its tests; each test compiles it again, bound to its own world.
    let program = match compile(&file, &world) {
        Ok(program) => program,
        // Whatever the filter: nobody can tell which tests the file would have had.
        Err(error) => return Box::new(std::iter::once(Ok(unloadable(&path, error)))),
    };
    let mut tests: Vec<Procedure> =
        program.procedures().iter().filter(|procedure| procedure.name.starts_with("test_")).cloned().collect();
    tests.sort_by(|a, b| a.position.cmp(&b.position));
    tests.retain(|test| filter.admits(&format!("{path}::{}", test.name)));
    Box::new(tests.into_iter().map(move |test| run_one(folder, &file, &test)))
}

fn compile(file: &SourceFile, world: &Arc<World>) -> Result<Program, Error> {
    let natives = functions::natives(world).map_err(Error::Config)?;
    Program::compile(vec![file.clone()], &natives, &budget_of_test()).map_err(Error::Compile)
}

fn run_one(folder: &Path, file: &SourceFile, test: &Procedure) -> Result<TestResult, Error> {
    let stopwatch = Stopwatch::start();
    let world = World::new(folder)?;
    let program = compile(file, &world)?;
    let (error, log) = match world.declare(&program) {
        Err(error) => (Some(error), Vec::new()),
        Ok(()) => {
            let nothing = Arguments::default();
            let (result, log) = program.run_detached(&test.name, nothing, &budget_of_test(), world.clone());
            (result.err(), log)
        }
    };
    // An assertion that failed counts, whatever the test made of the error.
    let failure = match (error, world.take_failed()) {
        (Some(error), _) => Some(failure_of(&error, world.take_calls())),
        (None, Some(message)) => {
            let description = format!("{}: {message}", test.position);
            let position = Some(test.position.clone());
            Some(Failure { message, position, description, calls: world.take_calls() })
        }
        (None, None) => None,
    };
    let log = log.iter().map(line_of).collect();
    world.close()?;
    Ok(TestResult { file: file.path.to_string(), name: test.name.clone(), elapsed: stopwatch.elapsed(), failure, log })
}

fn line_of(line: &LogLine) -> String {
    line.message.clone()
}

fn unloadable(path: &str, error: Error) -> TestResult {
    TestResult {
        file: path.to_owned(),
        name: String::new(),
        elapsed: Duration::ZERO,
        failure: Some(failure_of(&error, Vec::new())),
        log: Vec::new(),
    }
}

fn failure_of(error: &Error, calls: Vec<String>) -> Failure {
    let script: Option<&ScriptError> = match error {
        Error::Script(script) | Error::Budget(script) | Error::Cancelled(script) => Some(script),
        _ => None,
    };
    let position = match error {
        Error::Compile(faults) => faults.first().and_then(|fault| fault.position.clone()),
        _ => script.and_then(|script| script.position.clone()),
    };
    let message = script.map_or_else(|| error.to_string(), |script| script.message.clone());
    Failure { message, position, description: error.to_string(), calls }
}
