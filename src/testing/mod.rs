//! Script tests: files of `test_…` functions, each run against an engine of its own in memory.
//!
//! A test file is a program of its own: it sees its own functions and declarations and the host functions, not the
//! procedures, which it calls by `run`. A host function used directly is a transaction of its own. The clock
//! stands at 2026-01-01T00:00:00Z until the test moves it, and random numbers and ids are the same in each run.
//!
//! Hosts run script tests from `cargo test`:
//!
//! ```no_run
//! use tollgate::testing::{self, Filter};
//! let report = testing::run("scripts", &Filter::all())?;
//! assert_eq!(report.failed(), 0, "{report}");
//! # Ok::<(), tollgate::Error>(())
//! ```

mod assertion;
mod functions;
mod report;
mod runner;
mod work;
mod world;

pub use report::{Failure, Report, TestResult};
pub use runner::{Filter, run, run_each};
