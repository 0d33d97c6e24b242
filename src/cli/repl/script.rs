//! Sessions that are read: from stdin or a file, one input a line or block.

use std::io::{self, BufRead, BufReader};

use anyhow::{Context, Result};
use tollgate::Session;

use super::super::console::Console;
use super::super::exit::Exit;
use super::desk::{Desk, Flow, Input};

/// The longest input, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// How deep `.read` may nest.
const MOST_DEPTH: usize = 8;

/// Runs the session on stdin, and says how to exit.
pub(super) fn run_stdin(desk: &mut Desk, console: &mut Console) -> Result<Exit> {
    let flow = read(desk, io::stdin().lock(), "<stdin>", console)?;
    if let Flow::Leave(Some(code)) = flow {
        return Ok(Exit::Chosen(code));
    }
    if desk.session.in_transaction() {
        desk.session.rollback()?;
        desk.worst = desk.worst.worse(Exit::Usage);
        console.error("the session ended in a transaction, which was rolled back: end it with `.commit`");
    }
    Ok(desk.worst)
}

/// Runs a session from a file, for `.read`.
pub(super) fn run_file(
    desk: &mut Desk,
    path: &str,
    input: &Input<'_>,
    number: u64,
    console: &mut Console,
) -> io::Result<Flow> {
    if desk.depth >= MOST_DEPTH {
        let message = format!("`.read` is nested more than {MOST_DEPTH} deep");
        return desk.fault(number, input, "usage", &message, Exit::Usage, console);
    }
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(cause) => {
            let message = format!("cannot read {path}: {cause}");
            return desk.fault(number, input, "usage", &message, Exit::Usage, console);
        }
    };
    desk.depth += 1;
    let flow = read(desk, BufReader::new(file), path, console);
    desk.depth -= 1;
    match flow {
        Ok(flow) => Ok(flow),
        Err(error) => {
            let message = format!("{error:#}");
            desk.fault(number, input, "usage", &message, Exit::Usage, console)
        }
    }
}

/// Reads inputs to the end. Errors: they cannot be read, or stdout cannot be written.
fn read(desk: &mut Desk, mut lines: impl BufRead, name: &str, console: &mut Console) -> Result<Flow> {
    let (mut text, mut begins, mut line) = (String::new(), 1, 0);
    loop {
        let mut bytes = Vec::new();
        lines.read_until(b'\n', &mut bytes).with_context(|| format!("cannot read {name}"))?;
        let at_end = bytes.is_empty();
        line += 1;
        if text.is_empty() {
            begins = line;
        }
        match std::str::from_utf8(&bytes) {
            Ok(more) => text.push_str(more),
            Err(_) => {
                let input = Input { text: "", name, line };
                desk.reject(&input, "the line is not UTF-8 text", console)?;
                text.clear();
                if desk.bail {
                    return Ok(Flow::Leave(None));
                }
                continue;
            }
        }
        let input = Input { text: text.trim_end(), name, line: begins };
        if is_nothing(input.text) {
            text.clear();
        } else if input.text.len() > MOST_BYTES {
            let message = format!("the input is longer than {MOST_BYTES} bytes");
            desk.reject(&input, &message, console)?;
            return Ok(Flow::Leave(None));
        } else if !is_open(input.text) {
            let flow = desk.submit(&input, console)?;
            text.clear();
            match flow {
                Flow::Leave(_) => return Ok(flow),
                Flow::Failed if desk.bail => return Ok(Flow::Leave(None)),
                // Who stopped one input of a file meant all of it.
                Flow::Failed if desk.cancel.is_cancelled() => return Ok(Flow::Failed),
                Flow::Next | Flow::Failed => {}
            }
        } else if at_end {
            let message = "the input ends inside a block: close it";
            desk.reject(&input, message, console)?;
            return Ok(Flow::Failed);
        }
        if at_end {
            return Ok(Flow::Next);
        }
    }
}

/// Whether there is nothing in a text that could be run.
fn is_nothing(text: &str) -> bool {
    text.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with("//")
    })
}

/// Whether an input goes on over more lines.
pub(super) fn is_open(text: &str) -> bool {
    if text.trim_start().starts_with('.') {
        // Only one command is followed by an input.
        let explained = text.trim_start().strip_prefix(".explain ");
        return explained.is_some_and(Session::is_incomplete);
    }
    let text = super::repeat::split(text).map_or(text, |(_, input)| input);
    Session::is_incomplete(text)
}
