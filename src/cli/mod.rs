//! The command line: what may be typed, and which command it starts.
//!
//! Each command is a file of its own: what it takes, and `run`, which returns how the process exits. What people
//! and programs read goes through [`Console`]: data to stdout, everything else to stderr. How a failure becomes
//! an exit code is decided in [`exit`] alone.

mod argument;
mod call;
mod check;
mod compact;
mod completions;
mod console;
mod doctor;
mod drawing;
mod exit;
mod explain;
mod find;
mod format;
mod init;
mod jobs;
mod limits;
mod log;
mod place;
mod plan;
mod procs;
mod progress;
mod record;
mod release;
mod repl;
mod rules;
mod steps;
mod sweep;
mod test;
mod work;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand};

pub(crate) use console::Console;
pub(crate) use exit::Exit;

use place::Place;

/// Stored rate-limit procedures: permit, protected work and outbox in one transaction.
#[derive(Parser)]
#[command(name = "tollgate", version, max_term_width = 100, after_help = exit::HELP, disable_help_subcommand = true)]
pub(crate) struct Invocation {
    /// Print JSON, one object a line, every key always there.
    #[arg(long, global = true, env = "TOLLGATE_JSON", value_parser = FalseyValueParser::new(), help_heading = "Everywhere")]
    pub(crate) json: bool,
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a working example: three procedures, a test, next steps.
    Init(init::Init),
    /// Call a procedure and print its outcome.
    Call(call::Call),
    /// Run a call, show every limit and document it touched, and roll it back.
    Explain(explain::Explain),
    /// Try procedures and limits at a prompt, or run a session from stdin.
    Repl(repl::Repl),
    /// Compile and lint procedures without a store: every error and warning at once.
    Check(check::Check),
    /// Run script tests, each against a fresh store and a clock that stands still.
    Test(test::Test),
    /// List procedures with signatures and documentation.
    Procs(procs::Procs),
    /// Store the procedures in the database as a numbered release.
    Deploy(release::Deploy),
    /// Show what a deploy would change, and who gains or loses tokens by it.
    Plan(plan::PlanOf),
    /// List the stored releases.
    Releases(release::Releases),
    /// Go back to an earlier release.
    Rollback(release::Rollback),
    /// Find documents of a collection.
    Find(find::Find),
    /// List limits and their live buckets; override, block or reset a key.
    Limits(limits::Limits),
    /// List jobs; look at one, retry, cancel or remove it.
    Jobs(jobs::Jobs),
    /// Do jobs as they become due, until Ctrl-C.
    Work(work::Work),
    /// Reclaim what expired, now.
    Sweep(sweep::Sweep),
    /// Verify every invariant of the store and say what is wrong.
    Doctor(doctor::Doctor),
    /// Reclaim space on disk.
    Compact(compact::Compact),
    /// Print a completion script for a shell.
    Completions(completions::Completions),
}

/// The folder that a command works on when it is not the one of `--scripts`.
#[derive(Args)]
struct Folder {
    /// Folder of procedures [default: that of --scripts, else scripts/ where it exists, else the current folder].
    #[arg(value_name = "DIR")]
    dir: Option<std::path::PathBuf>,
}

/// Whether what the lints tell of stops a command.
#[derive(Args)]
struct Strictness {
    /// Fail with exit code 7 where there are warnings; comments allow single ones.
    #[arg(long, env = "TOLLGATE_DENY_WARNINGS", value_parser = FalseyValueParser::new())]
    deny_warnings: bool,
}

impl Strictness {
    /// Errors: there are warnings, and the user wants none; `then` says what comes of it.
    fn judge(&self, warnings: usize, then: &str) -> anyhow::Result<()> {
        if self.deny_warnings && warnings > 0 {
            let found = format::count(warnings, "warning");
            return Err(exit::WarningsDeniedError(format!("{found} with --deny-warnings: {then}")).into());
        }
        Ok(())
    }
}

impl Invocation {
    /// Reads the command line. Errors: how to stop, when there is nothing to run.
    pub(crate) fn read() -> Result<Invocation, Exit> {
        Invocation::try_parse().map_err(|error| {
            // Nothing is left to do about a terminal that takes no text.
            let _ = error.print();
            // Asking for help is no mistake; clap itself would exit 2 for mistakes.
            if error.use_stderr() { Exit::Usage } else { Exit::Returned }
        })
    }

    /// Runs the command.
    pub(crate) fn run(self, console: &mut Console) -> anyhow::Result<Exit> {
        let place = &self.place;
        match self.command {
            Command::Init(command) => command.run(console),
            Command::Call(command) => command.run(place, console),
            Command::Explain(command) => command.run(place, console),
            Command::Repl(command) => command.run(place, console),
            Command::Check(command) => command.run(place, console),
            Command::Test(command) => command.run(place, console),
            Command::Procs(command) => command.run(place, console),
            Command::Deploy(command) => command.run(place, console),
            Command::Plan(command) => command.run(place, console),
            Command::Releases(command) => command.run(place, console),
            Command::Rollback(command) => command.run(place, console),
            Command::Find(command) => command.run(place, console),
            Command::Limits(command) => command.run(place, console),
            Command::Jobs(command) => command.run(place, console),
            Command::Work(command) => command.run(place, console),
            Command::Sweep(command) => command.run(place, console),
            Command::Doctor(command) => command.run(place, console),
            Command::Compact(command) => command.run(place, console),
            Command::Completions(command) => command.run(console),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Invocation;

    #[test]
    fn the_command_line_is_consistent() {
        Invocation::command().debug_assert();
    }

    #[test]
    fn every_flag_has_an_environment_variable() {
        let top = Invocation::command();
        for command in std::iter::once(&top).chain(top.get_subcommands()) {
            for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
                assert!(argument.get_env().is_some(), "{} --{}", command.get_name(), argument.get_id());
            }
        }
    }
}
