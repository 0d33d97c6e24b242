//! Outcomes: what a call that ran to its end tells its caller. A refusal is a value, not an error.

use std::time::Duration;

use crate::limit::{AllAsked, Violation, http_fields, legacy_http_fields};
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
    /// The limits of the decision that refused, for HTTP.
    pub(crate) asked: AllAsked,
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

    /// The HTTP fields of the refusal, as names and values: `Retry-After` where there is a wait, in whole seconds from 1
    /// up, and where a limit refused what [`Decision::headers`](crate::Decision::headers) has.
    ///
    /// ```
    /// use tollgate::{Engine, Outcome};
    ///
    /// let source = r#"const API = fixed_window("api", 1, "90s"); fn api(user) { API.enforce(user); }"#;
    /// let engine = Engine::builder().memory().source("api.rhai", source).open()?;
    /// let _ = engine.call::<tollgate::Value>("api", &("ada",))?;
    /// if let Outcome::Refused(refusal) = engine.call::<tollgate::Value>("api", &("ada",))? {
    ///     let text = |(name, value)| format!("{name}: {value}");
    ///     assert_eq!(refusal.headers().into_iter().map(text).collect::<Vec<_>>(), [
    ///         r#"RateLimit-Policy: "api";q=1;w=90"#,
    ///         r#"RateLimit: "api";r=0;t=90"#,
    ///         "Retry-After: 90",
    ///     ]);
    /// }
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let wait = self.retry_after.map(|wait| {
            // Whole milliseconds, rounded up: what is left of one still has to be waited for.
            let ms = wait.as_nanos().div_ceil(1_000_000);
            i64::try_from(ms).unwrap_or(i64::MAX)
        });
        http_fields(&self.asked, wait)
    }

    /// [`headers`](Refusal::headers) and the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`, as
    /// [`Decision::headers_with_legacy`](crate::Decision::headers_with_legacy) has them.
    pub fn headers_with_legacy(&self) -> Vec<(&'static str, String)> {
        let mut fields = self.headers();
        fields.extend(legacy_http_fields(&self.asked));
        fields
    }
}
