//! `tollgate procs`: the procedures there are.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tollgate::Procedure;

use super::console::{Console, Style};
use super::exit::{Exit, NotFoundError};
use super::place::{Need, Place};

/// Lists the procedures with signatures and documentation.
#[derive(Args)]
pub(crate) struct Procs {
    /// Only this one.
    name: Option<String>,
}

/// A procedure, as programs read it.
#[derive(Serialize)]
pub(crate) struct ProcedureRecord<'a> {
    name: &'a str,
    signature: &'a str,
    parameters: Vec<ParameterRecord<'a>>,
    doc: &'a str,
    file: &'a str,
    line: usize,
}

#[derive(Serialize)]
struct ParameterRecord<'a> {
    name: &'a str,
    kind: &'a str,
    optional: bool,
}

impl Procs {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::Procedures)?;
        let mut procedures = engine.procedures();
        engine.close()?;
        if let Some(name) = &self.name {
            procedures.retain(|procedure| procedure.name == *name);
            if procedures.is_empty() {
                let message = format!("no procedure is named `{name}`: `tollgate procs` lists those there are");
                return Err(NotFoundError(message).into());
            }
        }
        for (index, procedure) in procedures.iter().enumerate() {
            if console.json {
                console.record(&ProcedureRecord::of(procedure))?;
                continue;
            }
            if index > 0 {
                console.line("")?;
            }
            let position = console.styled(Style::Dim, &format!("{}", procedure.position));
            console.line(format!("{}  {position}", console.styled(Style::Strong, &procedure.signature)))?;
            for line in procedure.documentation.lines() {
                console.line(format!("    {line}").trim_end())?;
            }
        }
        if procedures.is_empty() && !console.json {
            console.note("no procedures: name a folder with --scripts, or make one with `tollgate init`");
        }
        Ok(Exit::Returned)
    }
}

impl<'a> ProcedureRecord<'a> {
    pub(crate) fn of(procedure: &'a Procedure) -> ProcedureRecord<'a> {
        let parameters = procedure.parameters.iter().map(|parameter| ParameterRecord {
            name: &parameter.name,
            kind: parameter.kind.as_str(),
            optional: parameter.optional,
        });
        ProcedureRecord {
            name: &procedure.name,
            signature: &procedure.signature,
            parameters: parameters.collect(),
            doc: &procedure.documentation,
            file: &procedure.position.file,
            line: procedure.position.line,
        }
    }
}
