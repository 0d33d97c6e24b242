//! Tollgate
#![forbid(unsafe_code)]
#![allow(dead_code)] // SKELETON: removed once the layers above exist.

mod bucket;
mod document;
mod engine;
mod error;
mod id;
mod limit;
mod outcome;
mod release;
mod script;
mod store;
mod time;
mod transaction;
mod value;

pub use engine::{BucketInfo, CallOptions, Durability, Engine, EngineBuilder, Session, SweepSummary, Transaction};
pub use error::{Diagnostic, Error, Frame, Position, ScriptError, Severity};
pub use limit::Violation as LimitViolation;
pub use limit::{
    CalendarUnit, Cost, Decision, Granted, InvalidCost, InvalidKey, InvalidLimit, Key, KeyPart, Kind, Limit, Reason,
    Start, Violation,
};
pub use outcome::{Outcome, Refusal, RefusalKind};
pub use release::{Release, ReleaseFile};
pub use script::{Arguments, Budget, Level, LogLine, Parameter, ParameterKind, Procedure};
pub use store::{Batch, Bytes, Direction, MemoryStore, Pair, Range, Store, StoreError};
pub use time::{Clock, InvalidTime, ManualClock, SystemClock, Timestamp, parse_duration};
pub use value::{InvalidValue, Map, Value};
