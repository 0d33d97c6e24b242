//! Log lines of procedures, on stderr.

use tollgate::{Level, LogLine, Value};

use super::console::eprintln;
use super::format;

/// Writes a log line to stderr.
pub(crate) fn print(_procedure: &str, line: &LogLine) {
    eprintln(&text(line));
}

/// A log line on one line: level, message, data.
pub(crate) fn text(line: &LogLine) -> String {
    let level = match line.level {
        Level::Trace => "trace",
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    let message = format::plain(&line.message);
    if line.data.is_empty() {
        format!("{level}: {message}")
    } else {
        format!("{level}: {message} {}", format::value(&Value::Map(line.data.clone())))
    }
}
