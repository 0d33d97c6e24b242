//! Repeated inputs: `20 LOGIN.take("a")`, and the sum of what they came to.

use serde::Serialize;
use tollgate::{Outcome, RefusalKind, Value};

/// How often an input may be repeated.
pub(crate) const MOST: u32 = 1_000_000;

/// `N INPUT` taken apart, when it is one.
///
/// No expression begins with a number and a name, but for the operators that are words.
pub(crate) fn split(text: &str) -> Option<(u32, &str)> {
    let text = text.trim_start();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = text.split_at(digits);
    let input = rest.trim_start();
    if rest.len() == input.len()
        || !input.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '{' | '(' | '#'))
    {
        return None;
    }
    let word: &str = input.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    if matches!(word, "in" | "is" | "as") {
        return None;
    }
    Some((number.parse().ok()?, input))
}

/// What repeated inputs came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    runs: u32,
    allowed: u32,
    denied: u32,
    aborted: u32,
    returned: u32,
    /// The first run that was denied or aborted, from 1.
    first_denial: Option<u32>,
}

impl Tally {
    /// Counts one outcome. A decision that was returned counts as what it says.
    pub(crate) fn add(&mut self, outcome: &Outcome<Value>) {
        self.runs += 1;
        let refused = match outcome {
            Outcome::Returned(value) => match value.get("allowed").and_then(Value::as_bool) {
                Some(true) => {
                    self.allowed += 1;
                    false
                }
                Some(false) => {
                    self.denied += 1;
                    true
                }
                None => {
                    self.returned += 1;
                    false
                }
            },
            Outcome::Refused(refusal) => {
                match refusal.kind {
                    RefusalKind::Denied => self.denied += 1,
                    RefusalKind::Aborted => self.aborted += 1,
                }
                true
            }
        };
        if refused {
            self.first_denial.get_or_insert(self.runs);
        }
    }

    /// The sum on one line, such as `5 allowed, 15 denied, first denial at 6`.
    pub(crate) fn text(&self) -> String {
        let counts = [
            (self.allowed, "allowed"),
            (self.returned, "returned"),
            (self.denied, "denied"),
            (self.aborted, "aborted"),
        ];
        let mut parts: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if parts.is_empty() {
            parts.push("0 runs".into());
        }
        if let Some(first) = self.first_denial {
            parts.push(format!("first denial at {first}"));
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_told_from_expressions() {
        assert_eq!(split("20 LOGIN.take(\"a\")"), Some((20, "LOGIN.take(\"a\")")));
        assert_eq!(split(" 3\tf()"), Some((3, "f()")));
        for text in ["20 + 1", "5 in [5]", "20", "x 20", "3f()", "99999999999 f()", "1.5 f()", "2 - x"] {
            assert_eq!(split(text), None, "{text}");
        }
    }

    #[test]
    fn sums_name_the_first_denial() {
        let mut tally = Tally::default();
        for allowed in [true, true, false, false] {
            let decision = Value::Map([("allowed".to_owned(), Value::Bool(allowed))].into());
            tally.add(&Outcome::Returned(decision));
        }
        tally.add(&Outcome::Returned(Value::Int(1)));
        assert_eq!(tally.text(), "2 allowed, 1 returned, 2 denied, first denial at 3");
    }
}
