//! What tools ask of an engine: what is loaded, what is stored, and its upkeep.

use crate::bucket;
use crate::document::build::{self, Progress};
use crate::document::catalogue;
use crate::error::{Diagnostic, Error};
use crate::limit::{Cost, Decision, Key, Limit, Override};
use crate::script::{Procedure, Program};
use crate::time::Timestamp;

use super::sweeper::{self, Cursor, STEP_ROWS, SweepSummary};
use super::transaction::checked;
use super::{Engine, doctor};

/// A live bucket of a limit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BucketInfo {
    /// The key it is of.
    pub key: Key,
    /// What a take of one token would be answered now.
    pub decision: Decision,
    /// Until when every take is refused, when it is blocked or banned.
    pub blocked_until: Option<Timestamp>,
    /// What an operator has decided about the key, while it holds.
    pub ruling: Option<Override>,
}

/// Counts of an engine since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions that wrote something.
    pub commits: u64,
    /// Groups of commits that were made to last together.
    pub flushes: u64,
    /// Memory of what is committed and not yet given to the store, in bytes.
    pub overlay_bytes: u64,
}

impl Engine {
    /// The procedures that are loaded, by name.
    pub fn procedures(&self) -> Vec<Procedure> {
        self.inner.loaded.load().program.procedures().to_vec()
    }

    /// The limits that the loaded files declare.
    pub fn limits(&self) -> Vec<Limit> {
        self.inner.loaded.load().program.limits().iter().map(|declared| declared.limit.0.clone()).collect()
    }

    /// The decision that a take of 1 would get at an instant, when nothing else is done until then.
    ///
    /// Errors: the key cannot be used, the store failed, the engine is closed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Engine, Key, Limit};
    /// let engine = Engine::builder().memory().open()?;
    /// let limit = Limit::fixed_window("api", 5, Duration::from_secs(60))?;
    /// engine.transaction(|tx| tx.take(&limit, "ada", 5))?;
    /// let (key, now) = (Key::from("ada"), engine.now());
    /// assert!(!engine.forecast(&limit, &key, now)?.allowed);
    /// assert!(engine.forecast(&limit, &key, now.saturating_add_millis(60_000))?.allowed);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn forecast(&self, limit: &Limit, key: &Key, at: Timestamp) -> Result<Decision, Error> {
        let key = checked(key.clone())?;
        self.check_open()?;
        Ok(self.repeat_at(true, Some(at), |tx| Ok(bucket::peek(tx, limit, &key, Cost::ONE)?))?.0)
    }

    /// The collections there are: declared by the loaded files, known to the store, or with documents.
    pub fn collections(&self) -> Result<Vec<String>, Error> {
        let mut names = self.repeat(true, catalogue::collections)?.0;
        let loaded = self.inner.loaded.load();
        names.extend(loaded.program.collections().iter().map(|declared| declared.spec.name.clone()));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The names that scripts may use besides procedures: constants and host functions, for completion.
    pub fn names(&self) -> Vec<String> {
        let program = self.inner.loaded.load().program.clone();
        let mut names: Vec<String> = program.constants().chain(program.functions()).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The names that scripts get from the engine and not from the language: functions, methods and fields.
    ///
    /// For tests that hold the documentation or the script tests to be complete.
    #[doc(hidden)]
    pub fn host_names(&self) -> Vec<String> {
        Program::host_names().into_iter().collect()
    }

    /// The text of the file that defines a procedure.
    pub fn source_of(&self, procedure: &str) -> Option<String> {
        let program = self.inner.loaded.load().program.clone();
        let position = &program.procedure(procedure)?.position;
        program.files().iter().find(|file| file.path == position.file).map(|file| file.text.to_string())
    }

    /// The stored release that is loaded, when one is.
    pub fn release(&self) -> Option<u64> {
        self.inner.loaded.load().release
    }

    /// What a person should look at in the loaded files, by position: what the lints tell of and no comment allows.
    ///
    /// ```
    /// let engine = tollgate::Engine::builder()
    ///     .memory()
    ///     .source("a.rhai", r#"const API = fixed_window("api", 9, "1m"); fn f(user) { API.take(user); true }"#)
    ///     .open()?;
    /// assert_eq!(engine.warnings()[0].code, "dropped_decision");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.inner.loaded.load().program.warnings().to_vec()
    }

    /// The live buckets of a declared limit in the order of their keys, the first `most` behind the key `after`.
    ///
    /// Errors: [`Error::NotFound`], when no loaded file declares the limit.
    pub fn buckets(&self, limit: &str, after: Option<&Key>, most: usize) -> Result<Vec<BucketInfo>, Error> {
        let limit = self.limit(limit)?;
        let buckets = self.repeat(true, |tx| {
            let listed = bucket::list(tx, limit.name(), after, most)?;
            Ok(listed
                .into_iter()
                .map(|listed| {
                    let (decision, blocked_until) = bucket::look(tx, &limit, &listed);
                    BucketInfo { key: listed.key, decision, blocked_until, ruling: listed.ruling }
                })
                .collect())
        })?;
        Ok(buckets.0)
    }

    /// The declared limit of this name.
    ///
    /// Errors: [`Error::NotFound`], naming those there are.
    pub fn limit(&self, name: &str) -> Result<Limit, Error> {
        let limits = self.limits();
        limits.iter().find(|limit| limit.name() == name).cloned().ok_or_else(|| {
            let known: Vec<&str> = limits.iter().map(Limit::name).collect();
            Error::NotFound(match known.is_empty() {
                true => format!("no limit is named `{name}`: the loaded files declare none"),
                false => format!("no limit is named `{name}`: the loaded files declare {}", known.join(", ")),
            })
        })
    }

    /// Reclaims everything that has expired. It changes no answer, only space.
    pub fn sweep(&self) -> Result<SweepSummary, Error> {
        self.sweep_from(&mut None)
    }

    /// Reclaims what has expired and stands behind `cursor`, and moves that to the end of what was swept.
    pub(super) fn sweep_from(&self, cursor: &mut Cursor) -> Result<SweepSummary, Error> {
        let mut total = SweepSummary::default();
        loop {
            let ((summary, more, reached), _) = self.repeat(false, |tx| {
                let (mut summary, mut reached) = (SweepSummary::default(), cursor.clone());
                let more = sweeper::step(tx, &self.inner.catalogue, STEP_ROWS, &mut reached, &mut summary)?;
                Ok((summary, more, reached))
            })?;
            *cursor = reached;
            total.removed += summary.removed;
            total.moved += summary.moved;
            if !more {
                return Ok(total);
            }
        }
    }

    /// Removes an index that no loaded file declares any more; until then it is kept up to date and serves.
    ///
    /// Errors: [`Error::Data`] with code `not_found`, naming the indexes there are.
    pub fn drop_index(&self, collection: &str, index: &str) -> Result<(), Error> {
        let (work, _) = self.repeat(false, |tx| catalogue::drop_index(tx, collection, index))?;
        while self.repeat(false, |tx| build::build_step(tx, collection, &work, build::MOST_ROWS))?.0
            != Progress::Dropped
        {}
        Ok(())
    }

    /// Counts of this engine since it was opened.
    pub fn stats(&self) -> Stats {
        let database = &self.inner.database;
        Stats {
            commits: database.commits(),
            flushes: database.flushes(),
            overlay_bytes: u64::try_from(database.overlay_bytes()).unwrap_or(u64::MAX),
        }
    }

    /// Checks every invariant of the store and says what is wrong, one line each; an empty list is health.
    pub fn doctor(&self) -> Result<Vec<String>, Error> {
        let mut wrong = self.inner.database.store().verify()?;
        wrong.extend(self.repeat(true, doctor::examine)?.0);
        Ok(wrong)
    }

    /// Writes everything to disk and reclaims the space that the store can give back.
    pub fn compact(&self) -> Result<(), Error> {
        self.flush()?;
        Ok(self.inner.database.store().compact()?)
    }

    /// Bytes that the store takes on disk; 0 when it is in memory.
    pub fn size_on_disk(&self) -> Result<u64, Error> {
        Ok(self.inner.database.store().size_on_disk()?)
    }
}
