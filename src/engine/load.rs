//! Loading: procedure files from a folder, a stored release or the host, compiled all or none, then swapped in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::error::DocumentError;
use crate::error::{Diagnostic, Error};
use crate::release::{self, Release, ReleaseFile};
use crate::script::{Budget, Handlers, Natives, Program, SourceFile};
use crate::time::Timestamp;
use crate::transaction::Transaction;

use super::action::{Actions, LoadedHandlers};
use super::contention::Contention;
use super::schedule;
use super::transaction::data_error;
use super::{Engine, fault_error};

/// Where the procedures come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The current release in the store; none is an empty program.
    Release,
    Folder(PathBuf),
    Files(Vec<SourceFile>),
}

/// What is loaded: a program, and what is known of how its procedures get along.
pub(crate) struct Loaded {
    pub(crate) program: Arc<Program>,
    pub(super) contention: HashMap<String, Contention>,
    /// The number of the stored release it came from.
    pub(super) release: Option<u64>,
    /// Who can do jobs while this is loaded.
    pub(super) handlers: Arc<dyn Handlers>,
}

impl Loaded {
    fn new(program: Program, release: Option<u64>, actions: &Arc<Actions>) -> Loaded {
        let contention = program.procedures().iter().map(|p| (p.name.clone(), Contention::default())).collect();
        let program = Arc::new(program);
        let handlers = Arc::new(LoadedHandlers { program: program.clone(), actions: actions.clone() });
        Loaded { program, contention, release, handlers }
    }

    /// A program of no files.
    pub(super) fn nothing(natives: &Natives, budget: &Budget, actions: &Arc<Actions>) -> Result<Loaded, Error> {
        Ok(Loaded::new(Program::compile(Vec::new(), natives, budget).map_err(Error::Compile)?, None, actions))
    }
}

impl Engine {
    /// Reads the procedures again from where they came: the folder, or the current stored release.
    ///
    /// Calls that are running finish on what they began with. Errors: [`Error::Compile`]; what was loaded stays.
    pub fn reload(&self) -> Result<(), Error> {
        let source = self.inner.source.lock().clone();
        let (files, release) = match source {
            Source::Folder(folder) => (read_folder(&folder)?, None),
            Source::Files(files) => (files, None),
            Source::Release => match self.read_rows(release::current)? {
                None => (Vec::new(), None),
                Some(release) => (source_files(&release), Some(release.number)),
            },
        };
        self.load_files(files, release)
    }

    /// Loads the procedures of a folder in place of those that are loaded.
    ///
    /// Errors: [`Error::Compile`]; what was loaded stays.
    pub fn load_dir(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        self.load_files(read_folder(folder.as_ref())?, None)?;
        *self.inner.source.lock() = Source::Folder(folder.as_ref().to_owned());
        Ok(())
    }

    /// Loads one file by its text, in place of the file that has this name or beside the others.
    ///
    /// Errors: [`Error::Compile`]; what was loaded stays.
    pub fn load(&self, name: &str, text: &str) -> Result<(), Error> {
        let mut files = self.inner.loaded.load().program.files().to_vec();
        let file = SourceFile::new(name, text);
        match files.iter_mut().find(|other| *other.path == *name) {
            Some(other) => *other = file,
            None => files.push(file),
        }
        self.load_files(files.clone(), None)?;
        *self.inner.source.lock() = Source::Files(files);
        Ok(())
    }

    /// Looks through the procedures of a folder without loading them: every error and warning, by position.
    ///
    /// They are compiled with the functions and the budget of this engine. What the codes stand for is told by
    /// [`Rule`](crate::Rule). Errors: [`Error::NotFound`], when there is no such folder.
    ///
    /// ```
    /// use tollgate::{Engine, Severity};
    /// let engine = Engine::builder().memory().open()?;
    /// let found = engine.check("scripts")?;
    /// assert!(found.iter().all(|fault| fault.severity == Severity::Warning));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn check(&self, folder: impl AsRef<Path>) -> Result<Vec<Diagnostic>, Error> {
        let found = read_folder(folder.as_ref()).and_then(|files| {
            let program = Program::compile(files, &self.inner.natives, &self.inner.budget).map_err(Error::Compile)?;
            schedule::check(&program, &self.inner.actions)?;
            Ok(program.warnings().to_vec())
        });
        match found {
            Err(Error::Compile(faults)) => Ok(faults),
            other => other,
        }
    }

    /// Stores the procedures of a folder as the next release, and loads it.
    ///
    /// Errors: [`Error::Compile`], and then nothing is stored.
    pub fn deploy(&self, folder: impl AsRef<Path>) -> Result<Release, Error> {
        self.store_release(read_folder(folder.as_ref())?, None)
    }

    /// Every stored release, oldest first; the last one is current.
    pub fn releases(&self) -> Result<Vec<Release>, Error> {
        self.read_rows(release::list)
    }

    /// Makes the files of an earlier release the next release, and loads it: release `number`, or the one before
    /// the current one.
    ///
    /// Errors: [`Error::NotFound`]; [`Error::Compile`] when those files do not load with this version.
    pub fn rollback(&self, number: Option<u64>) -> Result<Release, Error> {
        let current = self.read_rows(release::current)?.map_or(0, |release| release.number);
        let number = match number {
            Some(number) => number,
            None if current < 2 => {
                return Err(Error::NotFound(
                    "there is no earlier release to go back to: `tollgate releases` lists them".into(),
                ));
            }
            None => current - 1,
        };
        let missing = || Error::NotFound(format!("there is no release {number}: `tollgate releases` lists them"));
        let release = self.read_rows(|tx| release::get(tx, number))?.ok_or_else(missing)?;
        self.store_release(source_files(&release), Some(number))
    }

    fn store_release(&self, files: Vec<SourceFile>, rollback_of: Option<u64>) -> Result<Release, Error> {
        let program =
            Program::compile(files.clone(), &self.inner.natives, &self.inner.budget).map_err(Error::Compile)?;
        let rows: Vec<ReleaseFile> =
            files.iter().map(|file| ReleaseFile { path: file.path.to_string(), text: file.text.to_string() }).collect();
        schedule::check(&program, &self.inner.actions)?;
        self.declare(&program)?;
        let release = self.write_rows(true, |tx| Ok(release::add(tx, rows.clone(), rollback_of)?))?;
        *self.inner.source.lock() = Source::Release;
        self.inner.loaded.store(Arc::new(Loaded::new(program, Some(release.number), &self.inner.actions)));
        self.begin_schedules()?;
        Ok(release)
    }

    fn load_files(&self, files: Vec<SourceFile>, release: Option<u64>) -> Result<(), Error> {
        let program = Program::compile(files, &self.inner.natives, &self.inner.budget).map_err(Error::Compile)?;
        schedule::check(&program, &self.inner.actions)?;
        if !self.inner.read_only {
            self.declare(&program)?;
        }
        self.inner.loaded.store(Arc::new(Loaded::new(program, release, &self.inner.actions)));
        self.begin_schedules()
    }

    fn read_rows<T>(
        &self,
        read: impl Fn(&mut Transaction) -> Result<T, crate::transaction::Fault>,
    ) -> Result<T, Error> {
        self.repeat(true, |tx| Ok(read(tx)?)).map(|(value, _)| value)
    }

    /// Runs the engine's own writes as one transaction; `durable` returns only when they are on disk.
    pub(super) fn write_rows<T>(
        &self,
        durable: bool,
        write: impl Fn(&mut Transaction) -> Result<T, DocumentError>,
    ) -> Result<T, Error> {
        let (value, committed) = self.repeat(false, write)?;
        match committed {
            Some(number) if durable => self.inner.database.wait_for(number)?,
            _ => {}
        }
        Ok(value)
    }

    /// Runs `work` in the engine's own transactions until one of them does not clash.
    pub(super) fn repeat<T>(
        &self,
        read_only: bool,
        work: impl Fn(&mut Transaction) -> Result<T, DocumentError>,
    ) -> Result<(T, Option<u64>), Error> {
        self.repeat_at(read_only, None, work)
    }

    /// As [`repeat`](Engine::repeat), at one instant for work of many transactions; else when each begins.
    pub(super) fn repeat_at<T>(
        &self,
        read_only: bool,
        now: Option<Timestamp>,
        work: impl Fn(&mut Transaction) -> Result<T, DocumentError>,
    ) -> Result<(T, Option<u64>), Error> {
        use crate::transaction::{Fault, Quota};
        let mut clashes = 0;
        loop {
            let mode = if read_only { super::reading(clashes) } else { self.inner.mode(clashes, false) };
            let mut tx = self.inner.database.begin(mode, now.unwrap_or_else(|| self.now()), Quota::UNLIMITED);
            let result = match work(&mut tx) {
                Ok(value) => tx.commit().map(|committed| (value, committed.number)).map_err(DocumentError::Fault),
                Err(error) => Err(error),
            };
            match result {
                Ok(done) => return Ok(done),
                Err(DocumentError::Fault(Fault::Clash)) if clashes <= super::contention::MOST_CLASHES => clashes += 1,
                Err(DocumentError::Fault(fault)) => return Err(fault_error(fault)),
                Err(error) => return Err(data_error(error)),
            }
        }
    }
}

pub(super) fn read_folder(folder: &Path) -> Result<Vec<SourceFile>, Error> {
    if !folder.is_dir() {
        return Err(Error::NotFound(format!(
            "there is no folder {}: name the folder of the procedures",
            folder.display()
        )));
    }
    SourceFile::read_folder(folder).map_err(Error::Compile)
}

pub(super) fn source_files(release: &Release) -> Vec<SourceFile> {
    release.files.iter().map(|file| SourceFile::new(&file.path, &file.text)).collect()
}
