//! Drawings: errors of procedure files as a terminal shows them, each with its line, a caret and what to do.
//!
//! What is not a terminal gets the plain text of the library instead, whose lines begin `file:line:column:`, as editors
//! and the logs of build servers read them.

use std::fmt;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan,
    SpanContents, ThemeCharacters, ThemeStyles,
};
use tollgate::{Diagnostic, Error, Frame, Position, ScriptError, Severity};

/// Draws errors.
pub(crate) struct Drawer(GraphicalReportHandler);

impl Drawer {
    /// One that paints and uses line-drawing characters, or not.
    pub(crate) fn new(colour: bool, unicode: bool) -> Drawer {
        let characters = if unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
        let styles = if colour { ThemeStyles::ansi() } else { ThemeStyles::none() };
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles });
        // The terminal wraps lines by itself, and whoever copies one gets it whole.
        Drawer(handler.with_links(false).with_wrap_lines(false))
    }

    /// A fault of a file.
    pub(crate) fn diagnostic(&self, fault: &Diagnostic) -> String {
        let severity = match fault.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        };
        let excerpt = Excerpt::of(fault.position.as_ref(), fault.source_line.as_deref());
        let message = match fault.severity {
            Severity::Error => fault.message.clone(),
            // By its code a comment allows it.
            Severity::Warning => format!("{} [{}]", fault.message, fault.code),
        };
        self.draw(&Drawn { message: &message, severity, hint: fault.hint.as_deref(), excerpt })
    }

    /// An error that is about a place in a file; none when it is about something else.
    pub(crate) fn error(&self, error: &Error) -> Option<String> {
        match error {
            Error::Compile(faults) => {
                Some(faults.iter().map(|fault| self.diagnostic(fault)).collect::<Vec<_>>().join("\n"))
            }
            Error::Script(script) | Error::Budget(script) | Error::Cancelled(script) if script.position.is_some() => {
                Some(self.script(script))
            }
            _ => None,
        }
    }

    fn script(&self, script: &ScriptError) -> String {
        let excerpt = Excerpt::of(script.position.as_ref(), script.source_line.as_deref());
        let hint = script.hint.as_deref();
        let mut text = self.draw(&Drawn { message: &script.message, severity: miette::Severity::Error, hint, excerpt });
        for Frame { function, position } in &script.stack {
            text += &format!("\n  in {function}");
            if let Some(position) = position {
                text += &format!(" at {position}");
            }
        }
        text
    }

    fn draw(&self, drawn: &Drawn<'_>) -> String {
        let mut text = String::new();
        match self.0.render_report(&mut text, drawn) {
            Ok(()) => text.trim_matches('\n').to_owned(),
            // A place outside of its line is a fault of ours; the message is worth more than the picture.
            Err(_) => drawn.to_string(),
        }
    }
}

/// One error in the words of the drawing library.
#[derive(Debug)]
struct Drawn<'a> {
    message: &'a str,
    severity: miette::Severity,
    hint: Option<&'a str>,
    excerpt: Option<Excerpt>,
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl std::error::Error for Drawn<'_> {}

impl miette::Diagnostic for Drawn<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.hint.map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new(None, excerpt.offset, 0))))
    }
}

/// The one line of a file that an error is in.
#[derive(Debug)]
struct Excerpt {
    position: Position,
    /// The line and its end, so that a caret can stand behind the last character.
    line: String,
    /// Where in the line, in bytes.
    offset: usize,
}

impl Excerpt {
    fn of(position: Option<&Position>, line: Option<&str>) -> Option<Excerpt> {
        let (position, line) = (position?, line.unwrap_or_default());
        let offset = line.char_indices().nth(position.column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
        Some(Excerpt { position: position.clone(), line: format!("{line}\n"), offset })
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        _: &SourceSpan,
        _: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let Position { file, line, column } = &self.position;
        Ok(Box::new(MietteSpanContents::new_named(
            file.to_string(),
            self.line.as_bytes(),
            (0, self.line.len()).into(),
            line.saturating_sub(1),
            column.saturating_sub(1),
            1,
        )))
    }
}

#[cfg(test)]
mod tests {
    use tollgate::Engine;

    use super::*;

    fn error(text: &str) -> Error {
        match Engine::builder().memory().source("a.rhai", text).open() {
            Ok(engine) => engine.call::<tollgate::Value>("f", &()).unwrap_err(),
            Err(error) => error,
        }
    }

    #[test]
    fn several_faults_are_drawn_at_once() {
        let text = "fn f() {\n\tinsrt(\"é\", 1); now(1)\n}";
        let drawn = Drawer::new(false, false).error(&error(text)).unwrap();
        let first =
            "  x there is no function `insrt`\n   ,-[a.rhai:2:2]\n 2 |     insrt(\"é\", 1); now(1)\n   :     ^\n";
        assert!(drawn.starts_with(first), "{drawn}");
        assert!(drawn.contains("  help: did you mean `insert`?\n  x `now` takes 0 arguments, not 1\n"), "{drawn}");
        assert!(drawn.contains("[a.rhai:2:17]"), "{drawn}");
    }

    #[test]
    fn a_warning_shows_the_code_that_allows_it() {
        let text = "fn f(k) { fixed_window(\"l\", 1, \"1m\").take(k); 1 }";
        let engine = Engine::builder().memory().source("a.rhai", text).open().unwrap();
        let drawn = Drawer::new(false, false).diagnostic(&engine.warnings()[0]);
        assert!(drawn.contains("[dropped_decision]\n   ,-[a.rhai:1:38]"), "{drawn}");
    }

    #[test]
    fn the_end_of_a_line_has_a_place_too() {
        let drawn = Drawer::new(false, true).error(&error("fn f() { 3")).unwrap();
        assert!(drawn.contains(" 1 │ fn f() { 3\n   ·           ▲\n"), "{drawn}");
    }

    #[test]
    fn an_error_of_a_script_shows_the_calls_that_led_there() {
        let drawn = Drawer::new(false, true).error(&error("fn f() { g() }\nfn g() { throw \"no\" }")).unwrap();
        assert!(drawn.contains("[a.rhai:2:") && drawn.contains("\n  in g at a.rhai:2:"), "{drawn}");
        assert!(drawn.contains("\n  in f at a.rhai:1:"), "{drawn}");
        assert_eq!(Drawer::new(true, true).error(&Error::Closed), None);
    }

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        let error = error("fn f() { nope }");
        assert!(Drawer::new(true, true).error(&error).unwrap().contains('\x1b'));
        assert!(!Drawer::new(false, true).error(&error).unwrap().contains('\x1b'));
        let plain = Drawer::new(false, false).error(&error).unwrap();
        assert!(!plain.contains(['▲', '│', '×']), "{plain}");
    }
}
