//! The REPL as a person sits at it: the built binary in a pseudo-terminal of its own.
//!
//! What is waited for is never part of what was typed, because the terminal shows that too; and nothing is typed before
//! the prompt is there, because only then keys such as Ctrl-C are the editor's.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};
use tempfile::TempDir;

/// How long an answer may take before the test gives up: far beyond any machine's worst.
const PATIENCE_MS: u64 = 60_000;

/// What the terminal is told when the editor hands it back: from here on Ctrl-C is a signal.
const RUNNING: &str = "\x1b[?2004l";

/// A REPL in a terminal, and the keys that go to it.
struct Terminal {
    session: PtySession,
}

impl Terminal {
    /// Begins a session over the model procedures, with its history in a folder of the test.
    fn open(folder: &Path, arguments: &[&str]) -> Terminal {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command
            .args(["repl", "--memory", "--scripts", "scripts"])
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            // No setting of the machine that runs the tests may reach them, and nothing of the user is touched.
            .env_clear()
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .env("TOLLGATE_HISTORY", folder.join("history"));
        let options = Options::new().timeout_ms(Some(PATIENCE_MS));
        let mut terminal = Terminal { session: spawn_with_options(command, options).unwrap() };
        terminal.sees("Ctrl-D leaves");
        terminal
    }

    /// Waits until this is shown, and goes on behind it.
    fn sees(&mut self, text: &str) -> String {
        self.session.exp_string(text).unwrap_or_else(|error| panic!("expected {text:?}: {error}"))
    }

    fn keys(&mut self, text: &str) {
        self.session.send(text).unwrap();
        self.session.flush().unwrap();
    }

    /// At the prompt, types a line and waits for what it comes to.
    fn answers(&mut self, line: &str, answer: &str) {
        self.sees("> ");
        self.keys(&format!("{line}\r"));
        self.sees(RUNNING);
        self.sees(answer);
    }

    /// At the prompt, leaves by Ctrl-D.
    fn leave(mut self) {
        self.sees("> ");
        self.keys("\x04");
        self.session.exp_eof().unwrap();
        let status = self.session.process().wait().unwrap();
        assert!(format!("{status:?}").contains("Exited(") && format!("{status:?}").ends_with(", 0)"), "{status:?}");
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn input_that_is_not_complete_goes_on_over_more_lines() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &[]);
    terminal.sees("> ");
    terminal.keys("let sum = 0;\r");
    terminal.sees(RUNNING);
    terminal.sees("> ");
    terminal.keys("for i in 0..10 {\r");
    terminal.keys("sum += i;\r");
    terminal.keys("} sum\r");
    terminal.sees(RUNNING);
    terminal.sees("45  (");
    terminal.leave();
}

#[test]
fn the_tabulator_completes_names_and_shows_their_signatures() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &[]);
    terminal.sees("> ");
    terminal.keys(".adv\t");
    terminal.sees(".advance");
    terminal.keys(" 1h\r");
    terminal.sees(RUNNING);
    terminal.sees("> ");
    // One name begins so, and the signature shows while its arguments are typed.
    terminal.keys("check_rate_d\t");
    terminal.sees("check_rate_documents(key: string, max_per_window: int, window_seconds: int)");
    terminal.keys("\x03");
    terminal.sees(RUNNING);
    terminal.leave();
}

#[test]
fn behind_a_dot_there_are_methods_and_fields_and_before_it_names() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &[]);
    terminal.answers("let u = #{ email_address: 7 }; insert(\"people\", u); u.email_address", "7  (");
    terminal.sees("> ");
    terminal.keys("REGISTER_BY_ADDRESS.unb\t");
    // The signature stands behind what was completed.
    terminal.sees("unblock(key)");
    terminal.keys("\x03");
    terminal.sees(RUNNING);
    terminal.sees("> ");
    terminal.keys("u.email_a\t + 1\r");
    terminal.sees(RUNNING);
    terminal.sees("8  (");
    terminal.sees("> ");
    // A method is no name of its own: nothing is completed, and so nothing is there.
    terminal.keys("unb\t + 1\r");
    terminal.sees(RUNNING);
    terminal.sees("`unb`");
    terminal.leave();
}

#[test]
fn what_was_typed_before_is_hinted() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &[]);
    terminal.answers("6000 + 66 + 7", "6073  (");
    terminal.sees("> ");
    terminal.keys("6000");
    terminal.sees(" + 66 + 7");
    // The key to the right takes the hint.
    terminal.keys("\x1b[C\r");
    terminal.sees(RUNNING);
    terminal.sees("6073  (");
    terminal.leave();
}

#[test]
fn a_watched_bucket_is_drawn_after_each_input() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &["--at", "2026-01-01T00:00:00Z"]);
    terminal.answers(".watch register_address a", "register_address \"a\": ");
    terminal.sees("left");
    terminal.answers("REGISTER_BY_ADDRESS.take(\"a\").allowed", "true  (");
    terminal.sees("register_address \"a\"  ");
    terminal.leave();
}

#[test]
fn history_lasts_from_one_session_to_the_next() {
    let folder = folder();
    let mut first = Terminal::open(folder.path(), &[]);
    first.answers("6 * 7", "42  (");
    first.answers("throw 4000 + 321", "4321");
    first.leave();
    assert!(folder.path().join("history").is_file());
    let mut second = Terminal::open(folder.path(), &[]);
    second.sees("> ");
    // Up: what failed is there too, and the one before it.
    second.keys("\x1b[A");
    second.sees("throw 4000 + 321");
    second.keys("\x1b[A");
    second.sees("6 * 7");
    second.keys("\r");
    second.sees("42  (");
    second.leave();
}

#[test]
fn ctrl_c_stops_the_running_call_and_undoes_it() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &["--deadline", "1h"]);
    terminal.answers("let kept = 20 + 3; kept", "23  (");
    for _ in 0..2 {
        terminal.sees("> ");
        terminal.keys("insert(\"t\", #{}); loop { try { loop {} } catch {} }\r");
        terminal.sees(RUNNING);
        terminal.keys("\x03");
        terminal.sees("the call was cancelled: nothing was written");
    }
    terminal.answers("`${kept} and ${count(\"t\", #{})}`", "\"23 and 0\"  (");
    terminal.leave();
}

#[test]
fn ctrl_c_stops_all_the_repeats_of_an_input() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &["--deadline", "1h"]);
    terminal.sees("> ");
    terminal.keys("1000000 for i in 0..100000 {}\r");
    terminal.sees(RUNNING);
    terminal.keys("\x03");
    terminal.sees("the call was cancelled");
    terminal.answers("6 * 7", "42  (");
    terminal.leave();
}

#[test]
fn ctrl_c_clears_the_line() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &[]);
    terminal.sees("> ");
    terminal.keys("throw \"never run\"");
    terminal.sees("never run\"");
    terminal.keys("\x03");
    terminal.sees(RUNNING);
    terminal.answers("6 * 7", "42  (");
    terminal.leave();
}

#[test]
fn the_prompt_shows_virtual_time_and_an_open_transaction() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &["--at", "2026-01-01T00:00:00Z"]);
    terminal.sees("tollgate 2026-01-01T00:00:00Z> ");
    terminal.keys(".advance 90m\r");
    terminal.sees("tollgate 2026-01-01T01:30:00Z> ");
    terminal.keys(".begin\r");
    terminal.sees("tollgate* 2026-01-01T01:30:00Z> ");
    terminal.keys(".real\r");
    terminal.sees("tollgate*> ");
    terminal.keys("\x04");
    terminal.sees("the open transaction was rolled back");
    terminal.session.exp_eof().unwrap();
}

#[test]
fn errors_are_drawn_with_their_line_and_a_caret() {
    let folder = folder();
    let mut terminal = Terminal::open(folder.path(), &[]);
    terminal.sees("> ");
    terminal.keys("insrt(1)\r");
    terminal.sees(RUNNING);
    let shown = terminal.sees("did you mean `insert`?");
    assert!(shown.contains("x there is no function `insrt`"), "{shown}");
    assert!(shown.contains(",-[<input>:1:1]") && shown.contains("^"), "{shown}");
    assert!(shown.ends_with("help: "), "{shown}");
    terminal.leave();
}
