//! Rules: what a diagnostic's code stands for, with an example that raises it and one that does not.

use crate::error::Severity;

use super::errors::ERRORS;
use super::lints::LINTS;

/// A rule that procedure files are held to: what the code of a [`Diagnostic`](crate::Diagnostic) stands for.
///
/// ```
/// use tollgate::{Rule, Severity};
/// let rule = Rule::of("dropped_decision").expect("it is a lint");
/// assert_eq!(rule.severity, Severity::Warning);
/// assert!(rule.bad.contains("API.take(user)"));
/// assert!(Rule::of("no_such_rule").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its code, which a diagnostic has and a comment allows.
    pub code: &'static str,
    /// An error stops a load; a warning is for a person to look at.
    pub severity: Severity,
    /// What it tells of, in a line.
    pub summary: &'static str,
    /// Why that matters, and what to write.
    pub explanation: &'static str,
    /// A file that raises it; empty where no text can.
    pub bad: &'static str,
    /// The same file without the fault; empty where `bad` is.
    pub good: &'static str,
}

impl Rule {
    /// Every rule, the lints first.
    ///
    /// ```
    /// let codes: Vec<&str> = tollgate::Rule::all().map(|rule| rule.code).collect();
    /// assert!(codes.contains(&"abort_after_take") && codes.contains(&"syntax"));
    /// ```
    pub fn all() -> impl Iterator<Item = &'static Rule> {
        LINTS.iter().chain(ERRORS)
    }

    /// The rule of this code; none when there is none.
    ///
    /// ```
    /// assert_eq!(tollgate::Rule::of("syntax").map(|rule| rule.severity), Some(tollgate::Severity::Error));
    /// ```
    pub fn of(code: &str) -> Option<&'static Rule> {
        Rule::all().find(|rule| rule.code == code)
    }

    /// Whether a comment may allow it: an error never, nor what is said about such comments.
    ///
    /// ```
    /// assert!(tollgate::Rule::of("unused_limit").is_some_and(|rule| rule.may_be_allowed()));
    /// assert!(tollgate::Rule::of("unused_allow").is_some_and(|rule| !rule.may_be_allowed()));
    /// ```
    pub fn may_be_allowed(&self) -> bool {
        self.severity == Severity::Warning && !["unknown_allow", "unused_allow"].contains(&self.code)
    }
}
