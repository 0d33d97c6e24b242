//! Options of one call: who calls, how long it may take, and when its caller hears of the commit.

use std::sync::Arc;
use std::time::Duration;

use crate::script::{Budget, CancelHandle};
use crate::time::Timestamp;
use crate::value::Map;

/// When a call that wrote something returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// As the data says: documents and durable limits are on disk first, other tokens are written behind.
    #[default]
    Auto,
    /// Everything is on disk first.
    Immediate,
    /// Nothing is waited for; a crash may forget the last flush interval, whole calls at a time.
    Buffered,
}

/// Options of one call.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{CallOptions, Durability, Map};
/// let options = CallOptions::new()
///     .caller(Map::from([("ip".to_owned(), "192.0.2.1".into())]))
///     .durability(Durability::Immediate)
///     .deadline(Duration::from_millis(20));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    pub(super) caller: Arc<Map>,
    pub(super) durability: Option<Durability>,
    pub(super) deadline: Option<Duration>,
    pub(super) budget: Option<Budget>,
    pub(super) at: Option<Timestamp>,
    pub(super) cancel: Option<CancelHandle>,
}

impl CallOptions {
    /// What the engine does when nothing is said.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the host vouches for: `caller(field)` in scripts. Never mixed with arguments.
    #[must_use]
    pub fn caller(mut self, caller: Map) -> Self {
        self.caller = Arc::new(caller);
        self
    }

    /// When the call returns, in place of the engine's setting.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// The longest the call may run; it can only be lower than the budget's time.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What the call may use, in place of the engine's budget.
    ///
    /// The sizes of values and the depth of calls are set for the whole engine and do not change here.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// What stops the call while it runs: see [`CancelHandle`].
    #[must_use]
    pub fn cancel(mut self, cancel: CancelHandle) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// The instant of the call, in place of the clock's: for tests and replays.
    #[must_use]
    pub fn at(mut self, instant: Timestamp) -> Self {
        self.at = Some(instant);
        self
    }
}
