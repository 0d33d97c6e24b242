//! Endings: how a run of a procedure ended, with the call handed back.

use crate::error::Error;
use crate::outcome::Refusal;
use crate::transaction::Fault;
use crate::value::Value;

use super::call::Call;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the transaction is still open, and only this says whether to commit it"]
pub(crate) enum Ending {
    /// The procedure returned: commit.
    Returned(Value),
    /// The procedure refused and keeps its writes: commit.
    Denied(Refusal),
    /// The procedure refused and undoes its writes: drop the transaction.
    Aborted(Refusal),
    /// The procedure failed: drop the transaction.
    Failed(Error),
    /// The transaction failed below: on a clash run it again with a fresh call, else report the store's error.
    Fault(Fault),
}

impl Ending {
    /// `returned`, `denied`, `aborted` or `failed`.
    #[cfg(test)]
    pub(crate) fn status(&self) -> &'static str {
        match self {
            Ending::Returned(_) => "returned",
            Ending::Denied(_) => "denied",
            Ending::Aborted(_) => "aborted",
            Ending::Failed(_) | Ending::Fault(_) => "failed",
        }
    }
}

/// A run that is over: its ending, and the call with its transaction and log lines.
#[must_use]
pub(crate) struct Finished {
    pub(crate) ending: Ending,
    pub(crate) call: Box<Call>,
}
