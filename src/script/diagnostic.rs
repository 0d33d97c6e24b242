//! Diagnostics: faults of files, placed in their line and with a hint.

use std::sync::Arc;

use rhai::{LexError, ParseError, ParseErrorType};

use crate::error::{Diagnostic, Position, Severity};

use super::lint::Rule;
use super::source::SourceFile;

/// A fault at a place of a file.
pub(super) fn at(
    file: &SourceFile,
    place: rhai::Position,
    code: &'static str,
    message: impl Into<String>,
) -> Diagnostic {
    debug_assert!(Rule::of(code).is_some(), "no rule explains the code {code}");
    let position = position(&file.path, place);
    let source_line = position.as_ref().and_then(|at| file.line(at.line)).map(str::to_owned);
    Diagnostic { code, severity: Severity::Error, message: message.into(), position, source_line, hint: None }
}

/// The same, as something a person should look at.
pub(super) fn warning(
    file: &SourceFile,
    place: rhai::Position,
    code: &'static str,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..at(file, place, code, message) }
}

/// Adds a hint.
pub(super) fn hinted(mut diagnostic: Diagnostic, hint: Option<impl Into<String>>) -> Diagnostic {
    diagnostic.hint = hint.map(Into::into);
    diagnostic
}

/// A place of the interpreter as ours; columns count from 1 there too, 0 is the start of a line.
pub(super) fn position(path: &Arc<str>, place: rhai::Position) -> Option<Position> {
    place.line().map(|line| Position { file: path.clone(), line, column: place.position().unwrap_or(1).max(1) })
}

/// A syntax error.
pub(super) fn syntax(file: &SourceFile, error: &ParseError) -> Diagnostic {
    // The interpreter places what is missing at the end nowhere, or on a line after the last.
    let nowhere = error.1.line().is_none_or(|line| file.line(line).is_none());
    let place = if nowhere { end_of(file) } else { error.1 };
    let (code, message) = describe(&error.0);
    let message = super::compare::plain(&message);
    let line = place.line().and_then(|number| file.line(number)).unwrap_or_default();
    let before = place.line().and_then(|number| file.line(number.saturating_sub(1))).unwrap_or_default();
    let column = place.position().unwrap_or(1).max(1);
    let hint = match hint(&error.0, line, before, column) {
        None if nowhere => Some("the text ends here: look for a `}`, `)` or `]` that is missing".to_owned()),
        hint => hint.or_else(|| slip(&error.0, line, column)),
    };
    hinted(at(file, place, code, message), hint)
}

/// Where the text ends: the interpreter places "incomplete" nowhere.
fn end_of(file: &SourceFile) -> rhai::Position {
    let lines = file.text.lines().count().clamp(1, usize::from(u16::MAX)) as u16;
    let last = file.text.lines().last().unwrap_or_default().chars().count();
    rhai::Position::new(lines, (last + 1).min(usize::from(u16::MAX)) as u16)
}

fn describe(error: &ParseErrorType) -> (&'static str, String) {
    use ParseErrorType as E;
    let message = match error {
        E::UnexpectedEOF => "the text ends too early".to_owned(),
        E::VariableUndefined(name) => return ("unknown_variable", format!("there is no variable `{name}`")),
        E::Reserved(word) => format!("`{word}` is a reserved word"),
        E::BadInput(LexError::ImproperSymbol(_, text)) if !text.is_empty() => sentence(text),
        E::MissingToken(token, why) => format!("expected `{token}` {why}"),
        E::FnDuplicatedDefinition(name, _) => {
            return ("duplicate_procedure", format!("`{name}` is defined twice in this file"));
        }
        E::AssignmentToConstant(name) => {
            return ("constant", format!("`{name}` is a constant and cannot be assigned to"));
        }
        E::ExprTooDeep => return ("too_deep", "the expression is nested too deeply: give parts of it names".into()),
        E::ModuleUndefined(name) => return ("unknown_module", format!("there is no module `{name}`")),
        other => sentence(&other.to_string()),
    };
    ("syntax", message)
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", chars.as_str()).replace('\'', "`")
}

/// What to write instead, for what is written in another dialect.
fn hint(error: &ParseErrorType, line: &str, before: &str, column: usize) -> Option<String> {
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').collect();
    let first = words.iter().find(|word| !word.is_empty()).copied().unwrap_or_default();
    if first == "proc" || before.trim_start().starts_with("proc ") {
        return Some("write `fn` in place of `proc`".into());
    }
    if let Some(word) = ["abort", "deny", "print", "log"].iter().find(|word| {
        words.contains(word) && line.split(**word).nth(1).is_some_and(|rest| rest.trim_start().starts_with(['"', '`']))
    }) {
        return Some(format!("write `{word}(\"text\")` with brackets"));
    }
    // `$inc` outside of a text.
    let outside = line.split('"').step_by(2).collect::<String>();
    if let Some(at) = outside.find('$') {
        let name: String = outside[at + 1..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !name.is_empty() {
            return Some(format!("write `\"${name}\"`: an operator is a key in quotes"));
        }
    }
    if matches!(error, ParseErrorType::BadInput(LexError::ImproperSymbol(word, _)) if word == "eval") {
        return Some("text is never run as code".into());
    }
    if matches!(error, ParseErrorType::VariableUndefined(name) if name == "null" || name == "nil" || name == "None") {
        return Some("write `()` for nothing".into());
    }
    let here: String = line.chars().take(column).collect();
    if matches!(error, ParseErrorType::MissingToken(..)) && here.ends_with(':') && first_of(&here) == Some("let") {
        return Some("a variable has no type: write `let name = value`".into());
    }
    let brace = here.rfind('{');
    if let Some(brace) = brace
        && !here[..brace].ends_with('#')
        && here[brace + 1..].contains(':')
    {
        return Some("write a map as `#{ name: value }`".into());
    }
    if let ParseErrorType::Reserved(word) = error {
        return Some(match word.as_str() {
            "import" | "export" => "all files of the folder see each other's procedures without importing".into(),
            "eval" => "text is never run as code".into(),
            "null" | "nil" => "write `()` for nothing".into(),
            "#" | "--" => "a comment begins with `//`".into(),
            "++" => "write `+= 1`".into(),
            "match" | "case" => "write `switch value { 1 => …, _ => … }`".into(),
            "async" | "await" | "spawn" | "thread" | "go" => {
                "a call is one run and waits for nothing: take the word out".into()
            }
            _ => "use another name".into(),
        });
    }
    if let Some(word) = ["function", "def", "func"].into_iter().find(|word| first == *word) {
        return Some(format!("write `fn` in place of `{word}`"));
    }
    None
}

/// The word that the last statement of a piece of a line begins with.
fn first_of(piece: &str) -> Option<&str> {
    piece.rsplit([';', '{', '}']).next().and_then(|statement| statement.split_whitespace().next())
}

/// What other languages write for `else if`.
const ELSE_IF: [&str; 3] = ["elif", "elsif", "elseif"];

fn else_if() -> String {
    "write `else if condition { … }`".into()
}

/// What to write instead, for what is not of another dialect but easily slips in.
fn slip(error: &ParseErrorType, line: &str, column: usize) -> Option<String> {
    use ParseErrorType as E;
    let ahead: String = line.chars().take(column.saturating_sub(1)).collect();
    let rest: String = line.chars().skip(column.saturating_sub(1)).collect();
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(match (error, word.as_str()) {
        (E::MissingToken(token, _), "and" | "or" | "not") if token == ";" || token == "{" => {
            "write `&&`, `||` and `!` in place of `and`, `or` and `not`".into()
        }
        (E::MissingToken(token, _), word) if token == ";" && ELSE_IF.contains(&word) => else_if(),
        // Read as a variable, it is the word before the one that does not fit.
        (E::MissingToken(token, _), _)
            if token == ";" && ELSE_IF.iter().any(|word| ahead.trim_end().ends_with(word)) =>
        {
            else_if()
        }
        (E::MissingToken(token, _), _) if token == ";" && ahead.trim().is_empty() => {
            "the line before it has no `;` at its end".into()
        }
        (E::MissingToken(token, _), _) if token == "{" => "a body stands in braces, however short: `if a { b }`".into(),
        (E::BadInput(LexError::ImproperSymbol(symbol, _)), _) if symbol == "=" => {
            "`=` gives a variable a value: write `==` to compare".into()
        }
        (E::BadInput(LexError::MalformedChar(_)), _) => "text stands in double quotes: `\"text\"`".into(),
        (E::BadInput(LexError::UnterminatedString), _) => {
            "end the text with a `\"` on the same line, or begin and end it with a backtick".into()
        }
        (E::VariableExpected, _) if rest.starts_with("let") || rest.starts_with('(') => {
            "write `for i in 0..10 { … }`, or `for item in list { … }`".into()
        }
        (E::UnknownOperator(symbol), _) if symbol == "++" || symbol == "--" => {
            format!("write `{}= 1`", &symbol[..1])
        }
        _ => return None,
    })
}
