//! The `tollgate` command.

mod cli;

use std::process::ExitCode;

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
