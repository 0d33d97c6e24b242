//! Errors of operations on jobs.

use crate::store::StoreError;
use crate::transaction::Fault;

use super::InvalidJob;

/// Why an operation on a job could not be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum JobError {
    /// What was asked for cannot be.
    #[error(transparent)]
    Invalid(#[from] InvalidJob),
    /// The transaction failed below.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for JobError {
    fn from(cause: StoreError) -> JobError {
        JobError::Fault(cause.into())
    }
}
