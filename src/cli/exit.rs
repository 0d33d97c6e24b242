//! Exit codes: how the process ends, decided here alone.

use std::process::ExitCode;

use tollgate::{Error, Outcome, RefusalKind, Value};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The call returned; the command did what it is for.
    Returned,
    /// The command line or the arguments make no sense.
    Usage,
    /// A script, compile or budget error.
    Script,
    /// The call was denied.
    Denied,
    /// The call was aborted.
    Aborted,
    /// There is no such procedure, limit, document.
    NotFound,
    /// The store is locked, unreadable or full.
    Store,
    /// A test or a check failed.
    Failed,
    /// What the user asked for with `.exit CODE`.
    Chosen(u8),
}

/// Shown below the help.
pub(crate) const HELP: &str = "Exit codes: 0 returned, 1 usage or bad arguments, 2 script, compile or budget error, \
3 denied, 4 aborted, 5 not found, 6 store locked, unreadable or full, 7 a test or check failed";

/// A mistake on the command line that the parser cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Something that was asked for by name and is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotFoundError(pub(crate) String);

/// A store that cannot be opened for a reason the engine does not know.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StoreMissingError(pub(crate) String);

/// Warnings where the user wants none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WarningsDeniedError(pub(crate) String);

/// Shorthand for a usage error.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

impl Exit {
    /// The code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Returned => 0,
            Exit::Usage => 1,
            Exit::Script => 2,
            Exit::Denied => 3,
            Exit::Aborted => 4,
            Exit::NotFound => 5,
            Exit::Store => 6,
            Exit::Failed => 7,
            Exit::Chosen(code) => code,
        }
    }

    /// How a call that ran to its end exits.
    pub(crate) fn of_outcome(outcome: &Outcome<Value>) -> Exit {
        match outcome.refusal().map(|refusal| refusal.kind) {
            None => Exit::Returned,
            Some(RefusalKind::Denied) => Exit::Denied,
            Some(RefusalKind::Aborted) => Exit::Aborted,
        }
    }

    /// How an error of the engine exits.
    pub(crate) fn of_engine_error(error: &Error) -> Exit {
        match error {
            Error::UnknownProcedure { .. } | Error::NotFound(_) => Exit::NotFound,
            Error::BadArguments { .. } | Error::Config(_) | Error::ReadOnly => Exit::Usage,
            Error::Script(_) | Error::Budget(_) | Error::Cancelled(_) | Error::Compile(_) => Exit::Script,
            Error::Busy { .. } | Error::Storage(_) | Error::Closed => Exit::Store,
            // An error of a kind that this command line does not know stopped it all the same.
            _ => Exit::Script,
        }
    }

    /// How any failure of a command exits.
    pub(crate) fn of_error(error: &anyhow::Error) -> Exit {
        for cause in error.chain() {
            if let Some(error) = cause.downcast_ref::<Error>() {
                return Exit::of_engine_error(error);
            }
            if cause.is::<NotFoundError>() {
                return Exit::NotFound;
            }
            if cause.is::<StoreMissingError>() {
                return Exit::Store;
            }
            if cause.is::<WarningsDeniedError>() {
                return Exit::Failed;
            }
            // Who reads our output may stop reading: `tollgate find users | head`.
            if cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
                return Exit::Returned;
            }
        }
        // Usage errors, and files that cannot be read or written.
        Exit::Usage
    }

    /// The worse of two, for a session of many calls.
    ///
    /// From worst to best: the store, a script error, not found, bad usage, aborted, denied, returned. An error
    /// is worse than a refusal, because a refusal is an answer; and a store error is worst, because nothing
    /// that follows it can be trusted.
    pub(crate) fn worse(self, other: Exit) -> Exit {
        if other.gravity() > self.gravity() { other } else { self }
    }

    fn gravity(self) -> u8 {
        match self {
            Exit::Returned => 0,
            Exit::Denied => 1,
            Exit::Aborted => 2,
            Exit::Usage => 3,
            Exit::NotFound => 4,
            Exit::Failed => 5,
            Exit::Script => 6,
            Exit::Store => 7,
            Exit::Chosen(_) => 8,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_worse_than_refusals() {
        let ordered =
            [Exit::Returned, Exit::Denied, Exit::Aborted, Exit::Usage, Exit::NotFound, Exit::Script, Exit::Store];
        for pair in ordered.windows(2) {
            assert_eq!(pair[0].worse(pair[1]), pair[1]);
            assert_eq!(pair[1].worse(pair[0]), pair[1]);
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let gone = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(Exit::of_error(&anyhow::Error::from(gone).context("cannot write")), Exit::Returned);
        assert_eq!(Exit::of_error(&usage("no")), Exit::Usage);
        assert_eq!(Exit::of_error(&Error::Closed.into()), Exit::Store);
    }
}
