//! `tollgate check`: compiles and lints procedures without a store.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tollgate::{Diagnostic, Engine, Severity};

use super::console::Console;
use super::exit::Exit;
use super::place::Place;
use super::{Folder, Strictness, format, rules};

/// Compiles and lints the procedures of a folder, its script tests left out, and shows every error and warning.
///
/// A comment allows a warning: `// allow(CODE): why` behind its line or on the line before, `//! allow(CODE): why` for the
/// whole file.
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    strictness: Strictness,
    /// Explain a code with an example, or list all codes.
    #[arg(long, value_name = "CODE", env = "TOLLGATE_EXPLAIN", num_args = 0..=1, default_missing_value = "")]
    explain: Option<String>,
}

/// A fault of a file, as programs read it.
#[derive(Serialize)]
struct FaultRecord<'a> {
    severity: &'static str,
    code: &'a str,
    message: &'a str,
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    /// The end of what the fault is about: the line it ends in, and the column behind its last character.
    end_line: Option<usize>,
    end_column: Option<usize>,
    source_line: Option<&'a str>,
    hint: Option<&'a str>,
}

impl Check {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        if let Some(code) = &self.explain {
            return rules::explain(code, console);
        }
        let folder = place.folder(self.folder.dir.as_deref())?;
        let engine = throw_away()?;
        let faults = engine.check(&folder)?;
        for fault in &faults {
            if console.json {
                console.record(&FaultRecord::of(fault))?;
            } else {
                console.fault_line(fault)?;
            }
        }
        let errors = faults.iter().filter(|fault| fault.severity == Severity::Error).count();
        let warnings = faults.len() - errors;
        if !console.json {
            let found = format!("{}, {}", format::count(errors, "error"), format::count(warnings, "warning"));
            if errors == 0 {
                engine.load_dir(&folder)?;
                console.line(format!("{}: {found}", format::count(engine.procedures().len(), "procedure")))?;
            } else {
                console.line(found)?;
            }
            name_codes(&faults, console);
        }
        engine.close()?;
        let failed = errors > 0 || (warnings > 0 && self.strictness.deny_warnings);
        Ok(if failed { Exit::Failed } else { Exit::Returned })
    }
}

/// Says how to learn more about what was found.
fn name_codes(faults: &[Diagnostic], console: &Console) {
    let codes: BTreeSet<&str> = faults.iter().map(|fault| fault.code).collect();
    let codes: Vec<&str> = codes.into_iter().collect();
    if !codes.is_empty() {
        console.note(format!("`tollgate check --explain CODE` explains {}", codes.join(", ")));
    }
}

/// Shows the warnings about a folder on stderr, and says how many there are; none when it does not load at all.
pub(crate) fn warn(folder: &Path, console: &Console) -> Result<usize> {
    let engine = throw_away()?;
    let faults = engine.check(folder)?;
    engine.close()?;
    if faults.iter().any(|fault| fault.severity == Severity::Error) {
        return Ok(0);
    }
    faults.iter().for_each(|warning| console.diagnostic(warning));
    Ok(faults.len())
}

/// An engine without a store and without procedures.
fn throw_away() -> Result<Engine> {
    // The actions that ship may be named by schedules.
    Ok(Engine::builder().memory().action_elsewhere("log").action_elsewhere("smtp").open()?)
}

impl<'a> FaultRecord<'a> {
    fn of(fault: &'a Diagnostic) -> FaultRecord<'a> {
        let position = fault.position.as_ref();
        let length = |column: usize| fault.source_line.as_deref().map_or(1, |line| length_at(line, column));
        FaultRecord {
            severity: match fault.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            code: fault.code,
            message: &fault.message,
            file: position.map(|position| &*position.file),
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            end_line: position.map(|position| position.line),
            end_column: position.map(|position| position.column + length(position.column)),
            source_line: fault.source_line.as_deref(),
            hint: fault.hint.as_deref(),
        }
    }
}

/// How many characters the word, or text in quotes, at a column has; 1 where there is neither.
fn length_at(line: &str, column: usize) -> usize {
    let rest: Vec<char> = line.chars().skip(column.saturating_sub(1)).collect();
    let word = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
    match rest.first() {
        Some('"') => rest.iter().skip(1).position(|c| *c == '"').map_or(1, |end| end + 2),
        _ => word.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::length_at;

    #[test]
    fn a_fault_is_as_long_as_the_word_it_begins_at() {
        for (column, length) in [(1, 3), (4, 1), (5, 1), (7, 1), (9, 6), (15, 1), (16, 1), (99, 1)] {
            assert_eq!(length_at("let ü = \"text\";\"", column), length, "{column}");
        }
    }
}
