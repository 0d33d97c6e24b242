//! Tollgate
#![forbid(unsafe_code)]
#![allow(dead_code)] // SKELETON: removed once the layers above exist.

mod bucket;
mod document;
mod error;
mod limit;
mod outcome;
mod script;
mod store;
mod time;
mod transaction;
mod value;

pub use error::{Diagnostic, Error, Frame, Position, ScriptError, Severity};
pub use limit::Violation as LimitViolation;
pub use limit::{Cost, Decision, InvalidCost, InvalidKey, InvalidLimit, Key, KeyPart, Kind, Limit, Reason, Start};
pub use outcome::{Outcome, Refusal, RefusalKind, Violation};
pub use store::{Batch, Bytes, Direction, MemoryStore, Pair, Range, Store, StoreError};
pub use time::{Clock, InvalidTime, ManualClock, SystemClock, Timestamp, parse_duration};
pub use value::{InvalidValue, Map, Value};
