//! The place a command works on: which store, which procedures.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use clap::builder::FalseyValueParser;
use tollgate::{Engine, EngineBuilder};

use super::exit::{StoreMissingError, usage};
use super::{log, progress};

/// Which store and which procedures.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Place {
    /// The store's folder; made when it is not there and something is to be written.
    #[arg(long, global = true, env = "TOLLGATE_DB", value_name = "PATH", default_value = "tollgate.db")]
    db: PathBuf,
    /// Work on a throw-away store in memory.
    #[arg(long, global = true, env = "TOLLGATE_MEMORY", value_parser = FalseyValueParser::new())]
    memory: bool,
    /// Folder of procedures [default: the stored release, else scripts/ where it exists].
    #[arg(long, global = true, env = "TOLLGATE_SCRIPTS", value_name = "DIR")]
    scripts: Option<PathBuf>,
    /// Refuse every write.
    #[arg(long, global = true, env = "TOLLGATE_READONLY", value_parser = FalseyValueParser::new())]
    readonly: bool,
}

/// What a command needs of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Procedures to run, over a store that may be new.
    Procedures,
    /// The store alone, which may be new.
    Store,
    /// A store that is there already: looking at nothing would only hide a mistyped path.
    ExistingStore,
    /// Procedures, over a store that is there already.
    ExistingProcedures,
}

/// Where the procedures of an open engine came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A folder of files.
    Folder(PathBuf),
    /// The release stored in the database, or nothing.
    Release,
}

/// The folder of procedures that is looked for when none is named.
const USUAL_FOLDER: &str = "scripts";

impl Place {
    /// The same with another store.
    pub(crate) fn at(&self, db: &Path) -> Place {
        Place { db: db.to_owned(), memory: false, ..self.clone() }
    }

    /// Opens the engine.
    pub(crate) fn open(&self, need: Need) -> Result<Engine> {
        Ok(self.open_with(need, |builder| builder)?.0)
    }

    /// Opens the store to read only, with no procedures. None where there is no store yet, unless it is asked to be
    /// read only: then nothing could make it.
    pub(crate) fn open_to_look(&self) -> Result<Option<Engine>> {
        if !self.memory && !self.readonly && !self.db.exists() {
            return Ok(None);
        }
        Ok(Some(self.open_with(Need::ExistingStore, EngineBuilder::read_only)?.0))
    }

    /// Opens the engine after `set` had its say in how, and tells where its procedures came from.
    pub(crate) fn open_with(
        &self,
        need: Need,
        set: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Result<(Engine, Source)> {
        let mut builder = Engine::builder().on_log(log::print).on_progress(progress::reporter());
        // Every process may name the actions that ship; `tollgate work` has them.
        for name in ["log", "smtp"] {
            builder = builder.action_elsewhere(name);
        }
        if self.memory {
            builder = builder.memory();
        } else {
            let existing = matches!(need, Need::ExistingStore | Need::ExistingProcedures) || self.readonly;
            if existing && !self.db.exists() {
                let path = self.db.display();
                let message =
                    format!("there is no store at {path}: name one with --db, or make one with `tollgate call`");
                return Err(StoreMissingError(message).into());
            }
            builder = builder.path(&self.db);
        }
        if self.readonly {
            builder = builder.read_only();
        }
        let wants_procedures = matches!(need, Need::Procedures | Need::ExistingProcedures);
        if wants_procedures && let Some(folder) = &self.scripts {
            check_folder(folder)?;
            let engine = set(builder.scripts(folder)).open()?;
            return Ok((engine, Source::Folder(folder.clone())));
        }
        if !wants_procedures {
            // No procedures at all, not even the stored release: one that no longer loads must not keep anybody from
            // looking at the data or from deploying a better one.
            builder = builder.source("nothing.rhai", "");
        }
        let engine = set(builder).open()?;
        if wants_procedures && engine.release().is_none() && Path::new(USUAL_FOLDER).is_dir() {
            engine.load_dir(USUAL_FOLDER)?;
            return Ok((engine, Source::Folder(USUAL_FOLDER.into())));
        }
        Ok((engine, Source::Release))
    }

    /// The folder of procedures that a command about files works on.
    pub(crate) fn folder(&self, named: Option<&Path>) -> Result<PathBuf> {
        let folder = match (named, &self.scripts) {
            (Some(named), _) => named.to_owned(),
            (None, Some(scripts)) => scripts.clone(),
            (None, None) if Path::new(USUAL_FOLDER).is_dir() => USUAL_FOLDER.into(),
            (None, None) => ".".into(),
        };
        check_folder(&folder)?;
        Ok(folder)
    }
}

fn check_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let path = folder.display();
    Err(usage(format!("{path} is not a folder of procedures: name one, or make one with `tollgate init`")))
}
