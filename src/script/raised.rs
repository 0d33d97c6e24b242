//! Raised errors: what a host function throws, as scripts catch it.

use std::borrow::Cow;

use rhai::{Dynamic, EvalAltResult, Position};

use crate::outcome::Refusal;
use crate::transaction::Fault;
use crate::value::{InvalidValue, Map, Value};

use super::convert;

/// An error that a script can catch: `#{ code, message }` and what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Raised {
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) data: Map,
}

impl Raised {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Raised {
        Raised { code: Cow::Borrowed(code), message: message.into(), data: Map::new() }
    }

    /// The error as the map that `catch` binds.
    pub(super) fn into_map(self) -> Map {
        let mut map = self.data;
        map.insert("code".into(), Value::Text(self.code.into_owned()));
        map.insert("message".into(), Value::Text(self.message));
        map
    }

    pub(super) fn into_error(self, position: Position) -> Box<EvalAltResult> {
        let value: Dynamic = convert::to_dynamic(Value::Map(self.into_map()));
        Box::new(EvalAltResult::ErrorRuntime(value, position))
    }
}

/// Why a host function did not do what it was asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error the script may catch.
    Raised(Box<Raised>),
    /// The transaction failed below; no script sees past it.
    Fault(Fault),
    /// A budget is spent, in words; no script sees past it.
    Spent(String),
    /// The call ends here as a refusal.
    Refused(Box<Refusal>),
}

impl Failure {
    pub(super) fn refused(refusal: Refusal) -> Failure {
        Failure::Refused(Box::new(refusal))
    }
}

impl From<Raised> for Failure {
    fn from(raised: Raised) -> Failure {
        Failure::Raised(Box::new(raised))
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        match fault {
            // A caller who may only read can be told so, and may go on reading.
            Fault::ReadOnly => Raised::new("read_only", "this call may only read").into(),
            fault => Failure::Fault(fault),
        }
    }
}

impl From<InvalidValue> for Failure {
    fn from(invalid: InvalidValue) -> Failure {
        Raised::new("bad_value", invalid.0).into()
    }
}

/// Shorthand for a catchable error.
pub(super) fn raise<T>(code: &'static str, message: impl Into<String>) -> Result<T, Failure> {
    Err(Raised::new(code, message).into())
}
