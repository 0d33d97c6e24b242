//! The `tollgate` command.

mod cli;

use std::process::ExitCode;

/// Rows are made by calls and let go by the thread that writes them to disk: the system's allocator makes the two wait
/// for each other, and a call cost half as much again with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let invocation = match cli::Invocation::read() {
        Ok(invocation) => invocation,
        Err(stopped) => return stopped.into(),
    };
    let mut console = cli::Console::new(invocation.json);
    let exit = match invocation.run(&mut console) {
        Ok(exit) => exit,
        Err(error) => console.failed(&error),
    };
    console.close(exit).into()
}
