//! `tollgate check`: compiles procedures without a store.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tollgate::{Diagnostic, Engine, Error, Severity};

use super::Folder;
use super::console::Console;
use super::exit::Exit;
use super::format;
use super::place::Place;

/// Compiles the procedures of a folder, its script tests left out, and shows every error and warning.
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    folder: Folder,
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
    source_line: Option<&'a str>,
    hint: Option<&'a str>,
}

impl Check {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let folder = place.folder(self.folder.dir.as_deref())?;
        let (faults, procedures) = match Engine::builder().memory().scripts(&folder).open() {
            Ok(engine) => {
                let found = (engine.warnings(), engine.procedures().len());
                engine.close()?;
                found
            }
            Err(Error::Compile(faults)) => (faults, 0),
            Err(error) => return Err(error.into()),
        };
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
            match errors {
                0 => console.line(format!("{}: {found}", format::count(procedures, "procedure")))?,
                _ => console.line(found)?,
            }
        }
        Ok(if errors > 0 { Exit::Failed } else { Exit::Returned })
    }
}

impl<'a> FaultRecord<'a> {
    fn of(fault: &'a Diagnostic) -> FaultRecord<'a> {
        let position = fault.position.as_ref();
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
            source_line: fault.source_line.as_deref(),
            hint: fault.hint.as_deref(),
        }
    }
}
