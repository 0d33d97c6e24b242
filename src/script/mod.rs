//! Scripts: procedure files made into programs, and programs run. The only layer that names the interpreter.
//!
//! A [`Program`] is a whole folder of files, compiled all or none and immutable from then on. It is made in
//! two passes a file: the first finds every fault that can be found without running anything and the place
//! of every constant and private function; the second compiles with those names made unique, so that the
//! functions of all files live in one library and still see only the constants and helpers of their own file.
//!
//! A [`Call`] is one run: it owns its transaction and travels through the run in a thread-local, out of the
//! script's reach. How a call ends is decided by what is recorded *in the call* first and by what the
//! interpreter returned second, because callbacks of `map`, `sort` and the like can swallow an error.
//!
//! Not promised here: retries and commits (the engine does both), and time itself (a call has one instant).

mod arguments;
mod budget;
mod call;
mod cancel;
mod check;
mod compare;
mod convert;
mod declare;
mod diagnostic;
mod ending;
mod failure;
mod fingerprint;
mod gather;
mod handlers;
mod host;
mod known;
mod lint;
mod natives;
mod procedure;
mod program;
mod raised;
mod rename;
mod run;
mod sandbox;
mod session;
mod source;
#[cfg(test)]
mod tests;

pub use arguments::Arguments;
pub use budget::Budget;
pub(crate) use call::{Autocommit, Call};
pub use call::{Level, LogLine};
pub use cancel::CancelHandle;
pub(crate) use ending::Ending;
pub(crate) use gather::DeclaredLimit;
pub(crate) use handlers::Handlers;
pub use lint::Rule;
pub(crate) use natives::{CallClosure, Natives};
pub use procedure::{Parameter, ParameterKind, Procedure};
pub(crate) use program::Program;
pub(crate) use session::{Session, incomplete};
pub(crate) use source::SourceFile;
