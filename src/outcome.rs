//! Outcomes: what a call that ran to its end tells its caller. A refusal is a value, not an error.

use std::time::Duration;

use crate::limit::Violation;
use crate::value::{InvalidValue, Value};

/// How a call ended: with a value, or with a refusal.
///
/// A call that *failed* is an [`Error`](crate::Error) instead.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a refused call must not be treated as an accepted one"]
pub enum Outcome<T = Value> {
    /// The procedure returned this; its writes are committed.
    Returned(T),
    /// The procedure said no.
    Refused(Refusal),
}

impl<T> Outcome<T> {
    /// The value, when the call returned.
    pub fn returned(self) -> Option<T> {
        match self {
            Outcome::Returned(value) => Some(value),
            Outcome::Refused(_) => None,
        }
    }

    /// The refusal, when the call was refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Outcome::Returned(_) => None,
            Outcome::Refused(refusal) => Some(refusal),
        }
    }

    /// Whether the call was refused.
    pub fn is_refused(&self) -> bool {
        matches!(self, Outcome::Refused(_))
    }

    /// The outcome with its value passed through `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Outcome::Returned(value) => Outcome::Returned(f(value)),
            Outcome::Refused(refusal) => Outcome::Refused(refusal),
        }
    }
}

impl Outcome<Value> {
    /// The outcome with its value read as `T`.
    pub fn into_serde<T: serde::de::DeserializeOwned>(self) -> Result<Outcome<T>, InvalidValue> {
        Ok(match self {
            Outcome::Returned(value) => Outcome::Returned(value.into_serde()?),
            Outcome::Refused(refusal) => Outcome::Refused(refusal),
        })
    }
}

/// Why a call was refused, and whether what it wrote was kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// Whether the writes were committed (`deny`) or rolled back (`abort`).
    pub kind: RefusalKind,
    /// Stable text for programs: `denied`, `aborted`, `rate_limited`, or what the procedure said.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// How long until the same call may pass, where a limit refused or the procedure said so.
    pub retry_after: Option<Duration>,
    /// Every limit that refused, each with its own wait.
    pub violated: Vec<Violation>,
    /// What the procedure attached.
    pub data: Value,
}

/// The two ways to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// By `deny`: the writes were kept.
    Denied,
    /// By `abort`: the writes were rolled back.
    Aborted,
}

impl RefusalKind {
    /// `denied` or `aborted`.
    pub fn as_str(self) -> &'static str {
        match self {
            RefusalKind::Denied => "denied",
            RefusalKind::Aborted => "aborted",
        }
    }
}

impl Refusal {
    /// Whether the refused call's writes were committed.
    pub fn writes_kept(&self) -> bool {
        self.kind == RefusalKind::Denied
    }

    /// Stable text for programs.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Text for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}
