//! The history of a REPL: where it is kept between sessions.

use std::env;
use std::path::PathBuf;

/// The history file, in the user's folder for state; none when the user has no folder.
pub(super) fn path() -> Option<PathBuf> {
    if let Some(named) = env::var_os("TOLLGATE_HISTORY") {
        // Set to nothing, it switches the history off.
        return (!named.is_empty()).then(|| named.into());
    }
    let state = folder("XDG_STATE_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| folder("HOME").map(|home| home.join(".local").join("state")))?;
    Some(state.join("tollgate").join("history"))
}

/// A folder that the environment names; relative ones do not count, as the XDG rules say.
fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
