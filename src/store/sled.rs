//! The sled tree: rows at rest. The only module that names sled.
//!
//! sled 0.34.7 is used by rules that were found by measurement: one tree; one writing thread; rows one by one,
//! never in sled's batches (large mixed ones leak memory and disk, and each holds up every reader while it lasts)
//! nor in its transactions; a flush after every [`FLUSH_ROWS`] (unpaced writing can deadlock inside sled); what a
//! write replaces freed at once by who wrote; no background flushing. Its `flush` on Linux ends in
//! `sync_file_range`, which reaches neither the drive's cache nor the file's size, so [`SledStore::flush`]
//! follows it with a sync of sled's files.

use std::fs::{self, File};
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::time::Deadline;

use super::{Batch, Direction, Pair, Range, Store, StoreError};

/// Rows written between two flushes.
const FLUSH_ROWS: usize = 200;

/// Rows written before the pages that they replaced are freed.
///
/// Each write replaces a page, and what is not freed here is freed by whoever reads next, hundreds of pages at a time:
/// one reader in a thousand waited 0.4 ms for it.
const COLLECT_ROWS: usize = 8;

/// How long a tree that was just closed may take to let go of its file.
const UNLOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Where the tree says how far it has followed the journal: below every key of the engine's.
const MARK_KEY: &[u8] = b"\0journal";

/// What sled is told its cache may hold; it holds about five times as much.
const CACHE_BYTES: u64 = 64 << 20;

/// Rows in a sled tree. A batch is not atomic here: the journal above, which is read back after a crash, makes it so.
pub(super) struct SledStore {
    path: PathBuf,
    db: sled::Db,
    /// Whether sled ever said no.
    failed: AtomicBool,
}

/// Trees that were left open, see [`SledStore`]'s `drop`.
static LEFT_OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl Drop for SledStore {
    /// After a failed write, closing sled waits for a thread that is gone. Such a tree is left open; what was
    /// acknowledged is in the journal, and opening again works on a copy of the file that sled still holds.
    fn drop(&mut self) {
        if self.failed.load(Ordering::Relaxed) {
            std::mem::forget(self.db.clone());
            LEFT_OPEN.lock().push(self.path.clone());
        }
    }
}

/// Gives a tree that this process left open a file of its own, since sled has locked the old one.
fn part_from_left_open(path: &Path) -> Result<(), StoreError> {
    if !LEFT_OPEN.lock().iter().any(|left| left == path) {
        return Ok(());
    }
    let (file, copy) = (path.join("db"), path.join("db.copy"));
    let copied =
        fs::copy(&file, &copy).and_then(|_| File::open(&copy)?.sync_all()).and_then(|()| fs::rename(&copy, &file));
    copied.map_err(|cause| StoreError::io(format!("opening {} again", path.display()), cause))
}

impl SledStore {
    /// Opens the tree in the folder `path`, or makes one.
    pub(super) fn open(path: &Path) -> Result<SledStore, StoreError> {
        remove_unfinished_snapshots(path)?;
        part_from_left_open(path)?;
        let config = sled::Config::new().path(path).cache_capacity(CACHE_BYTES).flush_every_ms(None);
        let patience = Deadline::after(UNLOCK_PATIENCE);
        let db = loop {
            match contained("opening", path, || config.open()) {
                // Only this process can hold the lock, since the folder above is ours: a tree just closed, whose
                // threads let go of the file a moment after the handle is gone.
                Err(StoreError::Io { cause, .. }) if cause.contains("could not acquire lock") && !patience.passed() => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                opened => break opened?,
            }
        };
        Ok(SledStore { path: path.to_owned(), db, failed: AtomicBool::new(false) })
    }

    fn work<T>(&self, doing: &str, work: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
        let result = contained(doing, &self.path, work);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Writes down that the tree holds every group of the journal up to `group`.
    pub(super) fn mark(&self, group: u64) -> Result<(), StoreError> {
        self.work("writing to", || self.db.insert(MARK_KEY, &group.to_be_bytes()).map(drop))
    }

    /// The last group of the journal that the tree is known to hold, 0 in a new one.
    ///
    /// sled takes a file that lost its end for one that was written less far; this tells the two apart.
    pub(super) fn marked(&self) -> Result<u64, StoreError> {
        let mark = self.work("reading", || self.db.get(MARK_KEY))?;
        Ok(mark.and_then(|mark| mark[..].try_into().ok()).map_or(0, u64::from_be_bytes))
    }
}

/// Does something with sled, which on some damaged files and failed writes panics where it should say so.
fn contained<T>(doing: &str, path: &Path, work: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|cause| failure(doing, path, &cause)),
        Err(_) => Err(StoreError::Corrupt(format!("{doing} {}: sled could not go on", path.display()))),
    }
}

fn failure(doing: &str, path: &Path, cause: &sled::Error) -> StoreError {
    match cause {
        sled::Error::Corruption { .. } => StoreError::Corrupt(format!("{}: {cause}", path.display())),
        _ => StoreError::io(format!("{doing} {}", path.display()), cause),
    }
}

/// A full disk at opening leaves an empty `snap.*.generating`, which makes every later opening fail.
fn remove_unfinished_snapshots(path: &Path) -> Result<(), StoreError> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            fs::remove_file(entry.path()).map_err(|cause| StoreError::io("removing an unfinished snapshot", cause))?;
        }
    }
    Ok(())
}

impl Store for SledStore {
    fn get(&self, key: &[u8]) -> Result<Option<super::Bytes>, StoreError> {
        let value = self.work("reading", || self.db.get(key))?;
        Ok(value.map(|value| value.as_ref().into()))
    }

    fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<Pair>) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) =
            (range.low.as_ref().map(|key| &key[..]), range.high.as_ref().map(|key| &key[..]));
        self.work("reading", || {
            let mut pairs = self.db.range::<&[u8], _>(bounds);
            let mut left = limit;
            while left > 0 {
                let next = match direction {
                    Direction::Ascending => pairs.next(),
                    Direction::Descending => pairs.next_back(),
                };
                let Some(pair) = next else { break };
                let (key, value) = pair?;
                if key != MARK_KEY {
                    rows.push((key.as_ref().into(), value.as_ref().into()));
                    left -= 1;
                }
            }
            Ok(())
        })
    }

    fn apply(&self, batch: &Batch) -> Result<(), StoreError> {
        for part in batch.chunks(FLUSH_ROWS) {
            self.work("writing to", || {
                for rows in part.chunks(COLLECT_ROWS) {
                    for (key, value) in rows {
                        match value {
                            Some(value) => self.db.insert(&key[..], &value[..])?,
                            None => self.db.remove(&key[..])?,
                        };
                    }
                    crossbeam_epoch::pin().flush();
                }
                Ok(())
            })?;
            self.work("flushing", || self.db.flush())?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.work("flushing", || self.db.flush())?;
        sync_folder(&self.path)
    }

    fn size_on_disk(&self) -> Result<u64, StoreError> {
        folder_bytes(&self.path)
    }
}

/// Syncs every file of a folder, the folders in it, and the folder itself, so that their names survive as well.
pub(super) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let fail = |cause: std::io::Error| StoreError::io(format!("syncing {}", path.display()), cause);
    for entry in fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_type().map_err(fail)?.is_dir() {
            sync_folder(&entry.path())?;
        } else {
            match File::open(entry.path()) {
                Ok(file) => file.sync_data().map_err(fail)?,
                // sled replaces its snapshots on threads of its own: one that has just gone needs no sync.
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
                Err(cause) => return Err(fail(cause)),
            }
        }
    }
    File::open(path).and_then(|folder| folder.sync_all()).map_err(fail)
}

/// Bytes that the files of a folder take on disk.
pub(super) fn folder_bytes(path: &Path) -> Result<u64, StoreError> {
    let fail = |cause: std::io::Error| StoreError::io(format!("measuring {}", path.display()), cause);
    let mut bytes = 0;
    for entry in fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes += folder_bytes(&entry.path())?,
            Ok(meta) => bytes += allocated_bytes(&meta),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
            Err(cause) => return Err(fail(cause)),
        }
    }
    Ok(bytes)
}

/// sled's files have holes: what counts is the blocks they take, not how long they say they are.
#[cfg(unix)]
fn allocated_bytes(meta: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    meta.blocks() * 512
}

#[cfg(not(unix))]
fn allocated_bytes(meta: &fs::Metadata) -> u64 {
    meta.len()
}
