//! Handlers: what a job may name, as the scripts' host functions see it.

use crate::job::InvalidJob;
use crate::value::Value;

/// Who can do jobs: the procedures that are loaded, and the actions that the host registered.
pub(crate) trait Handlers: Send + Sync {
    /// Refuses a handler that is not there, and a payload that a procedure would not take.
    fn check(&self, handler: &str, payload: &Value) -> Result<(), InvalidJob>;
}
