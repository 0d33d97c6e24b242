//! Cancelling: how a caller stops a call that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ScriptError};

/// Stops running calls from elsewhere: another thread, a signal handler, a request that was hung up.
///
/// Clones are one handle. Calls that were given it (`CallOptions::cancel`, `Session::set_cancel`) stop within a few
/// steps of the interpreter once it is cancelled, and fail with `Error::Cancelled`; no `try` and no `attempt` of the
/// script sees past that, and nothing is written. A call that has come to its end by then is committed all the same,
/// and its answer says so. The handle stays cancelled, and calls that begin with it fail at once, until it is
/// [reset](CancelHandle::reset).
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Budget, CallOptions, CancelHandle, Engine, Value};
/// let patient = Budget { time: Duration::from_secs(3600), operations: u64::MAX, ..Budget::default() };
/// let engine = Engine::builder().memory().budget(patient).source("spin.rhai", "fn spin() { loop {} }").open()?;
///
/// let cancel = CancelHandle::new();
/// let elsewhere = cancel.clone();
/// std::thread::spawn(move || elsewhere.cancel());
/// let stopped = engine.call_with::<Value>("spin", &(), &CallOptions::new().cancel(cancel)).unwrap_err();
/// assert_eq!(stopped.code(), "cancelled");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<AtomicBool>);

impl CancelHandle {
    /// A handle that is not cancelled.
    pub fn new() -> CancelHandle {
        CancelHandle::default()
    }

    /// Stops the calls that were given this handle.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets calls that begin from here on run again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Errors: it is cancelled, so that a run must not begin.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.is_cancelled() {
            true => Err(Error::Cancelled(Box::new(ScriptError {
                code: CODE.into(),
                message: MESSAGE.into(),
                ..ScriptError::default()
            }))),
            false => Ok(()),
        }
    }
}

/// The code of a call that was cancelled.
pub(super) const CODE: &str = "cancelled";

/// What is said of it.
pub(super) const MESSAGE: &str = "the call was cancelled: nothing was written";
