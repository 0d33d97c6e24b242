//! `tollgate completions`: completion scripts for shells.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Invocation;
use super::console::Console;
use super::exit::Exit;

/// Prints a completion script.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, console: &mut Console) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Invocation::command(), "tollgate", &mut script);
        console.line(String::from_utf8_lossy(&script).trim_end())?;
        Ok(Exit::Returned)
    }
}
