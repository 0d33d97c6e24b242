//! The console: where data and everything else is written, and in which form.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;
use tollgate::Diagnostic;

use super::drawing::Drawer;
use super::exit::Exit;
use super::record::OutcomeRecord;

/// Where a command writes. Data goes to stdout; everything else goes to stderr.
pub(crate) struct Console {
    out: BufWriter<Stdout>,
    /// Whether data is written as JSON.
    pub(crate) json: bool,
    colour_out: bool,
    colour_err: bool,
    /// Whether stdout shows more than ASCII.
    unicode_out: bool,
    /// How errors of procedure files look, where a terminal shows them; elsewhere they are plain text.
    draw_out: Option<Drawer>,
    draw_err: Option<Drawer>,
}

/// A colour or weight, where the terminal shows them.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Good,
    Bad,
    Warning,
    Dim,
    Strong,
}

impl Style {
    fn sequence(self) -> &'static str {
        match self {
            Style::Good => "\x1b[32m",
            Style::Bad => "\x1b[1;31m",
            Style::Warning => "\x1b[33m",
            Style::Dim => "\x1b[2m",
            Style::Strong => "\x1b[1m",
        }
    }

    /// The text in this style.
    pub(crate) fn paint(self, text: &str) -> String {
        format!("{}{text}\x1b[0m", self.sequence())
    }
}

impl Console {
    /// A console on this process's streams.
    pub(crate) fn new(json: bool) -> Console {
        // no-color.org: any text but the empty one switches colour off.
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let able = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let (out, err) = (able && io::stdout().is_terminal(), able && io::stderr().is_terminal());
        let drawer = |terminal: bool| terminal.then(|| Drawer::new(wanted, shows_unicode()));
        Console {
            out: BufWriter::new(io::stdout()),
            json,
            colour_out: wanted && out,
            colour_err: wanted && err,
            unicode_out: out && shows_unicode(),
            draw_out: drawer(out),
            draw_err: drawer(err),
        }
    }

    /// Whether stdout shows colour.
    pub(crate) fn has_colour(&self) -> bool {
        self.colour_out
    }

    /// Whether stdout shows more than ASCII.
    pub(crate) fn has_unicode(&self) -> bool {
        self.unicode_out
    }

    /// Writes a line of data.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(self.out, "{}", text.as_ref())
    }

    /// Writes one JSON object as a line of data.
    pub(crate) fn record(&mut self, record: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, record)?;
        self.out.write_all(b"\n")
    }

    /// Hands on what was written so far, so that who reads along sees it now.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The text in a style, where stdout shows colour.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.colour_out { style.paint(text) } else { text.to_owned() }
    }

    /// Writes a note for people to stderr.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        eprintln(text.as_ref());
    }

    /// Writes an error's text to stderr.
    pub(crate) fn error(&self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if self.colour_err {
            eprintln(&format!("{} {text}", Style::Bad.paint("error:")));
        } else {
            eprintln(&format!("error: {text}"));
        }
    }

    /// Writes a fault of a procedure file to stderr.
    pub(crate) fn diagnostic(&self, diagnostic: &Diagnostic) {
        if let Some(drawer) = &self.draw_err {
            return eprintln(&drawer.diagnostic(diagnostic));
        }
        eprintln(&diagnostic.to_string());
    }

    /// Writes a fault of a procedure file as data.
    pub(crate) fn fault_line(&mut self, fault: &Diagnostic) -> io::Result<()> {
        let text = self.draw_out.as_ref().map_or_else(|| fault.to_string(), |drawer| drawer.diagnostic(fault));
        self.line(text)
    }

    /// Draws an error of a procedure file on stderr, where that is a terminal; says whether it did.
    pub(crate) fn draw(&self, error: &tollgate::Error) -> bool {
        let drawn = self.draw_err.as_ref().and_then(|drawer| drawer.error(error));
        if let Some(text) = &drawn {
            eprintln(text);
        }
        drawn.is_some()
    }

    /// Writes an error's text that begins with its place to stderr.
    pub(crate) fn fault(&self, text: &str) {
        if self.colour_err {
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            let line_break = if rest.is_empty() { "" } else { "\n" };
            eprintln(&format!("{}{line_break}{rest}", Style::Bad.paint(first)));
        } else {
            eprintln(text);
        }
    }

    /// Reports why a command failed, and says how to exit.
    pub(crate) fn failed(&mut self, error: &anyhow::Error) -> Exit {
        let exit = Exit::of_error(error);
        if exit == Exit::Returned {
            return exit;
        }
        if self.json {
            // The same failure once more, for programs; who reads only stdout must not read silence as success.
            let _ = self.record(&OutcomeRecord::of_failure(error));
        }
        match error.downcast_ref::<tollgate::Error>() {
            Some(error) => self.engine_error(error),
            None => self.error(format!("{error:#}")),
        }
        exit
    }

    /// Writes an error of the engine to stderr; each fault of a file on its own.
    pub(crate) fn engine_error(&self, error: &tollgate::Error) {
        match error {
            error if self.draw(error) => {}
            tollgate::Error::Compile(faults) => faults.iter().for_each(|fault| self.diagnostic(fault)),
            other => self.error(other.to_string()),
        }
    }

    /// Writes what is left, and says how to exit when that fails.
    pub(crate) fn close(mut self, exit: Exit) -> Exit {
        match self.out.flush() {
            Ok(()) => exit,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
            Err(error) => {
                self.error(format!("cannot write to stdout: {error}"));
                if exit == Exit::Returned { Exit::Usage } else { exit }
            }
        }
    }
}

/// Whether terminals are set to show more than ASCII.
fn shows_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    cfg!(windows)
        || locale.is_some_and(|locale| {
            let locale = locale.to_string_lossy().to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
}

/// Writes to stderr, where nothing can be done about a failure.
pub(crate) fn eprintln(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
