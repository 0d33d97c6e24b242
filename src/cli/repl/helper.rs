//! The line editor's helper: completion, hints, colours, and when an input is complete.

use std::borrow::Cow;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use tollgate::CancelHandle;

use super::super::console::Style;
use super::candidate::{self, Candidate};
use super::{highlight, script};

/// What the line editor asks while a line is typed.
pub(super) struct ReplHelper {
    pub(super) candidates: Vec<Candidate>,
    pub(super) colour: bool,
    pub(super) cancel: CancelHandle,
}

impl Helper for ReplHelper {}

impl Completer for ReplHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let start = candidate::word_start(line, pos);
        let (before, word) = (&line[..start], &line[start..pos]);
        let found = self
            .candidates
            .iter()
            .filter(|candidate| candidate.fits(before, word))
            .map(|candidate| Pair { display: candidate.display.clone(), replacement: candidate.text.clone() })
            .collect();
        Ok((start, found))
    }
}

impl Hinter for ReplHelper {
    type Hint = String;

    /// The signature of the call whose arguments are typed; else the rest of the last input that began so.
    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<String> {
        if pos < line.len() {
            return None;
        }
        let earlier = || HistoryHinter::new().hint(line, pos, context);
        let Some(call) = candidate::open_call(line) else { return earlier() };
        let found = self.candidates.iter().find(|c| c.text.strip_suffix('(') == Some(call) && !c.signature.is_empty());
        found.map_or_else(earlier, |candidate| Some(format!("   {}", candidate.signature)))
    }
}

impl Highlighter for ReplHelper {
    fn highlight<'l>(&self, line: &'l str, pos: usize) -> Cow<'l, str> {
        if self.colour { Cow::Owned(highlight::paint(line, pos)) } else { Cow::Borrowed(line) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colour { Cow::Owned(Style::Dim.paint(hint)) } else { Cow::Borrowed(hint) }
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        self.colour
    }
}

impl Validator for ReplHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        // While a line is edited Ctrl-C is a character and nothing runs: a wish to stop that came too late for the last
        // input, or from outside, must not stop the next one.
        self.cancel.reset();
        let input = context.input();
        // An empty line submits what there is, complete or not.
        let submitted = input.ends_with('\n');
        Ok(match !submitted && script::is_open(input) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}
