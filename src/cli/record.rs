//! Records: outcomes and failures as programs read them, every key always there.

use serde::Serialize;
use tollgate::{Error, Outcome, Value, Violation};

use super::format::whole_ms;

/// How a call ended. Waits are milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct OutcomeRecord {
    /// `returned`, `denied`, `aborted` or `failed`.
    pub(crate) status: &'static str,
    pub(crate) value: Value,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) retry_after: Option<i64>,
    pub(crate) violated: Vec<ViolationRecord>,
    pub(crate) data: Value,
}

/// A limit that refused, as in decisions; the wait is 0 when waiting does not help.
#[derive(Debug, Serialize)]
pub(crate) struct ViolationRecord {
    name: String,
    wait: i64,
}

/// Why a command did nothing.
#[derive(Debug, Serialize)]
pub(crate) struct FailureRecord {
    status: &'static str,
    code: String,
    message: String,
}

impl OutcomeRecord {
    /// The record of a call that ran to its end.
    pub(crate) fn of_outcome(outcome: &Outcome<Value>) -> OutcomeRecord {
        match outcome {
            Outcome::Returned(value) => OutcomeRecord { value: value.clone(), ..OutcomeRecord::empty("returned") },
            Outcome::Refused(refusal) => OutcomeRecord {
                code: Some(refusal.code.clone()),
                message: Some(refusal.message.clone()),
                retry_after: refusal.retry_after.map(whole_ms),
                violated: refusal.violated.iter().map(ViolationRecord::of).collect(),
                data: refusal.data.clone(),
                ..OutcomeRecord::empty(refusal.kind.as_str())
            },
        }
    }

    /// The record of a call that failed. What was thrown is its `data`.
    pub(crate) fn of_error(error: &Error) -> OutcomeRecord {
        let (message, data) = match error {
            Error::Script(script) | Error::Budget(script) => (script.message.clone(), script.value.clone()),
            other => (other.to_string(), Value::Null),
        };
        OutcomeRecord {
            code: Some(error.code().to_owned()),
            message: Some(message),
            data,
            ..OutcomeRecord::empty("failed")
        }
    }

    /// The record of an input that failed before there was a call.
    pub(crate) fn of_fault(code: &str, message: &str) -> OutcomeRecord {
        OutcomeRecord {
            code: Some(code.to_owned()),
            message: Some(message.to_owned()),
            ..OutcomeRecord::empty("failed")
        }
    }

    fn empty(status: &'static str) -> OutcomeRecord {
        OutcomeRecord {
            status,
            value: Value::Null,
            code: None,
            message: None,
            retry_after: None,
            violated: Vec::new(),
            data: Value::Null,
        }
    }
}

impl ViolationRecord {
    fn of(violation: &Violation) -> ViolationRecord {
        ViolationRecord { name: violation.name.to_string(), wait: violation.wait }
    }
}

impl FailureRecord {
    /// The record of what stopped a command.
    pub(crate) fn of_error(error: &anyhow::Error) -> FailureRecord {
        let code = match error.chain().find_map(|cause| cause.downcast_ref::<Error>()) {
            Some(error) => error.code().to_owned(),
            None if super::Exit::of_error(error) == super::Exit::NotFound => "not_found".to_owned(),
            None if super::Exit::of_error(error) == super::Exit::Store => "storage".to_owned(),
            None => "usage".to_owned(),
        };
        FailureRecord { status: "failed", code, message: format!("{error:#}") }
    }
}
