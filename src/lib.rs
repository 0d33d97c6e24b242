//! Tollgate runs stored rate-limit procedures: each call decides "may this happen now?" together with the work
//! it guards, as one transaction.
//!
//! A limiter that stands beside the data leaks: a permit is spent for work that then fails, a narrow bucket is
//! charged although a wide one refuses, a failed login rolls back its own count. Here the permit and the protected work
//! commit together or not at all, and a procedure can refuse *and* keep the count.
//!
//! ```
//! use tollgate::{Engine, Outcome};
//!
//! #[derive(serde::Deserialize)]
//! struct Sent { id: String }
//!
//! let engine = Engine::builder()
//!     .memory() // or .path("tollgate.db")
//!     .source("send_email.rhai", r#"
//!         const EMAILS = fixed_window("emails", 10, "1h");
//!
//!         fn send_email(user, text) {
//!             EMAILS.enforce(user);                           // refuses the call when there is no token left
//!             #{ id: insert("outbox", #{ user: user, text: text }) }
//!         }
//!     "#)
//!     .open()?;
//!
//! match engine.call::<Sent>("send_email", &("ada", "hello"))? {
//!     Outcome::Returned(sent) => println!("queued as {}", sent.id),
//!     Outcome::Refused(refusal) => println!("wait {:?}", refusal.retry_after),
//! }
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! # Concepts
//!
//! * [`Engine`]: a store, a clock and the loaded procedures; shared, long-lived, cheap to clone.
//! * [`Procedure`]: a function of the loaded `.rhai` files that may be called by name.
//! * *Call*: one run of a procedure, one transaction; [`CallOptions`] say who calls and how long it may take.
//! * [`Outcome`]: returned or refused; a [`Refusal`] says whether its writes were kept, why, and how long to wait.
//! * [`Explanation`]: a call run and rolled back: every limit it asked and every document it read or wrote, in order.
//! * [`Transaction`]: the same operations for host code, without a script.
//! * [`Limit`], [`Key`], [`Decision`]: how many tokens a key may spend, whose, and what was answered.
//! * [`Store`]: where rows live: a folder on disk, [memory](MemoryStore), or one of the host's.
//! * [`Job`]: work that a transaction asks for and a [`Worker`] does once it has committed, see [the guide](guide::jobs).
//! * [`Clock`]: where the time comes from; [`ManualClock`] stands still until it is moved.
//! * [`Plan`]: what a deploy would change, before it is done.
//! * [`Rule`]: what the code of a [`Diagnostic`] stands for; [`Engine::check`] looks through a folder, errors and lints.
//! * [`Durability`]: when a call returns: when its data is on disk, or before.
//! * *Schedule*: `every` or `cron` at file level, a job at each of its slots; [`Engine::schedules`] lists them.
//! * [`Budget`]: what one call may use: time, steps, sizes, documents.
//! * [`CancelHandle`]: stops a running call from elsewhere.
//! * [`Error`]: a call, load or opening that failed, named by what the caller does next.
//!
//! # Layers
//!
//! Each knows only what stands below it; a test reads the imports and fails on one that climbs.
//!
//! | layer | what it holds |
//! |---|---|
//! | `cli` | the command line: the binary alone |
//! | `testing`, `smtp` | script tests: procedures checked by scripts, in virtual time; the action that sends mail |
//! | `engine` | calls, sessions, host transactions, workers, loading, upkeep |
//! | `script` | procedure files compiled and run; the only layer that names the interpreter |
//! | `bucket`, `document`, `job`, `release` | what is stored: limits' buckets, documents with indexes, jobs, deployed files |
//! | `transaction`, `error`, `outcome` | serializable transactions over an overlay, rows that expire |
//! | `trace` | what a call asked of limits and documents, step by step, when somebody wants to know |
//! | `store`, `limit` | ordered bytes on disk or in memory; the pure arithmetic of limits |
//! | `element`, `id`, `spelling` | order-preserving encoding of values; new ids; near names |
//! | `time`, `value` | instants, clocks and durations; values between scripts, JSON and serde |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bucket;
mod document;
mod element;
mod engine;
mod error;
pub mod guide;
mod id;
mod job;
mod limit;
mod outcome;
mod release;
mod script;
#[cfg(feature = "smtp")]
mod smtp;
mod spelling;
mod store;
pub mod testing;
mod time;
mod trace;
mod transaction;
mod value;

pub use engine::{
    BucketInfo, BucketMove, BucketsPlan, CallOptions, Change, CollectionPlan, Durability, Engine, EngineBuilder,
    Explanation, IndexPlan, JobAnswer, LimitPlan, OverrideInfo, Plan, ProcedurePlan, ScheduleInfo, Session,
    SettingPlan, Stats, SweepSummary, Times, Transaction, Undeclared, WorkSummary, Worker, WorkerOptions,
};
pub use error::{Diagnostic, Error, Frame, Position, ScriptError, Severity};
pub use job::list::JobFilter;
pub use job::{Backoff, InvalidJob, Job, JobFault, JobOptions, JobState, MissedSlots};
pub use limit::Violation as LimitViolation;
pub use limit::{
    CalendarUnit, Cost, Decided, Decision, Granted, InvalidCost, InvalidKey, InvalidLimit, Key, KeyPart, Kind, Limit,
    Override, Reason, Start, Violation,
};
pub use outcome::{Outcome, Refusal, RefusalKind};
pub use release::{Release, ReleaseFile};
pub use script::{Arguments, Budget, CancelHandle, Level, LogLine, Parameter, ParameterKind, Procedure, Rule};
#[cfg(feature = "smtp")]
pub use smtp::{InvalidMail, InvalidSmtp, SmtpSettings, SmtpTls};
pub use store::{Batch, Bytes, Direction, MemoryStore, Pair, Range, Store, StoreError, Write};
// For the command line alone: only `time` reads a clock.
#[doc(hidden)]
pub use time::Stopwatch;
pub use time::{Clock, InvalidTime, ManualClock, SystemClock, Timestamp, parse_duration};
pub use trace::{Consulted, Filling, Looked, Queued, Step, Wrote};
pub use value::{InvalidValue, Map, Value};

/// The README's Rust code, compiled and run as it stands.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
