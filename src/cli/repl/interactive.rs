//! The REPL that a person sits at.

use anyhow::{Context, Result};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::super::console::Console;
use super::super::exit::Exit;
use super::candidate;
use super::desk::{Desk, Flow, Input};
use super::helper::ReplHelper;
use super::history;

/// History entries that are kept.
const MOST_ENTRIES: usize = 10_000;

/// Reads and works through inputs until the user leaves.
///
/// Ctrl-C clears the line; while an input runs, it stops that input and nothing else.
pub(super) fn run(desk: &mut Desk, console: &mut Console) -> Result<Exit> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(MOST_ENTRIES)?
        .history_ignore_space(true)
        .build();
    let mut editor: Editor<ReplHelper, FileHistory> = Editor::with_config(config)?;
    let (candidates, cancel) = (Vec::new(), desk.cancel.clone());
    editor.set_helper(Some(ReplHelper { candidates, colour: console.has_colour(), cancel }));
    let cancel = desk.cancel.clone();
    ctrlc::set_handler(move || cancel.cancel()).context("cannot listen for Ctrl-C")?;
    let history = history::path();
    if let Some(path) = &history {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        // There is none before the first session.
        let _ = editor.load_history(path);
    }
    console.note(format!("tollgate {}: `.help` shows what there is, Ctrl-D leaves", env!("CARGO_PKG_VERSION")));
    loop {
        if let Some(helper) = editor.helper_mut() {
            helper.candidates = candidate::all(&desk.engine, &desk.session);
        }
        let text = match editor.readline(&desk.prompt()) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("cannot read the terminal"),
        };
        if text.trim().is_empty() {
            continue;
        }
        // Kept before it runs: what brings the process down is what one wants to see again.
        if editor.add_history_entry(text.trim_end())?
            && let Some(path) = &history
            && let Err(error) = editor.append_history(path)
        {
            console.error(format!("cannot write the history {}: {error}", path.display()));
        }
        let input = Input { text: text.trim_end(), name: "<input>", line: 1 };
        if let Flow::Leave(code) = desk.submit(&input, console)? {
            return Ok(code.map_or(Exit::Returned, Exit::Chosen));
        }
    }
    if desk.session.in_transaction() {
        desk.session.rollback()?;
        console.note("the open transaction was rolled back");
    }
    Ok(Exit::Returned)
}
