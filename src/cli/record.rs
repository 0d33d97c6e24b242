//! Records: outcomes and failures as programs read them, every key always there.

use serde::Serialize;
use tollgate::{Diagnostic, Error, Outcome, Value, Violation};

use super::exit::Exit;
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
            Error::Script(script) | Error::Budget(script) | Error::Cancelled(script) => {
                (script.message.clone(), script.value.clone())
            }
            Error::Compile(faults) => (faults.iter().map(fault_text).collect::<Vec<_>>().join("; "), Value::Null),
            other => (other.to_string(), Value::Null),
        };
        OutcomeRecord {
            code: Some(error.code().to_owned()),
            message: Some(message),
            data,
            ..OutcomeRecord::empty("failed")
        }
    }

    /// The record of what stopped a command.
    pub(crate) fn of_failure(error: &anyhow::Error) -> OutcomeRecord {
        if let Some(error) = error.chain().find_map(|cause| cause.downcast_ref::<Error>()) {
            return OutcomeRecord::of_error(error);
        }
        let code = match Exit::of_error(error) {
            Exit::NotFound => "not_found",
            Exit::Store => "storage",
            Exit::Failed => "warnings",
            _ => "usage",
        };
        OutcomeRecord::of_fault(code, &format!("{error:#}"))
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

/// A fault of a file on one line; the source line is for people.
fn fault_text(fault: &Diagnostic) -> String {
    match &fault.position {
        Some(position) => format!("{position}: {}", fault.message),
        None => fault.message.clone(),
    }
}

impl ViolationRecord {
    fn of(violation: &Violation) -> ViolationRecord {
        ViolationRecord { name: violation.name.to_string(), wait: violation.wait }
    }
}
