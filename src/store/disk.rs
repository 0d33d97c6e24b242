//! The store on disk: a folder with a lock, a journal, and a sled tree.
//!
//! A group of writes is appended to the journal and synced: that is all a caller waits for. Its rows stay in
//! memory above the tree until a checkpoint moves them there, in small batches and off the callers' path; a row
//! written a thousand times between two checkpoints reaches the tree once. Opening reads the journal back, so
//! a crash at any moment leaves some whole prefix of the groups.
//!
//! Why not sled alone: a batch must stay under some 200 rows, so every 200 distinct rows would cost a batch
//! with two syncs, and a thousand hot keys would be written hundreds of times a second instead of once.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};

use crate::time::Stopwatch;

use super::journal::Journal;
use super::overlay::{self, Overlay};
use super::sled::{SledStore, folder_bytes, sync_folder};
use super::{Batch, Bytes, Direction, Pair, Range, Store, StoreError, merge};

/// A checkpoint begins when the segment being written is this long. Writes wait for the one that is running when
/// the next segment is twice as long; so memory holds three times this at most.
const CHECKPOINT_BYTES: u64 = 32 << 20;
/// Rows that a checkpoint writes before it rests.
const PACED_ROWS: usize = 200;
/// Rows copied at a time when the tree is rebuilt.
const COPY_ROWS: usize = 1_000;

/// Where a row may be, newest first.
struct Layers {
    /// In the segment being written.
    settled: Arc<Overlay>,
    /// In earlier segments, on its way to the tree.
    moving: Option<Arc<Overlay>>,
    tree: Arc<SledStore>,
}

#[derive(Default)]
struct Work {
    wanted: bool,
    running: bool,
    /// Somebody waits for the checkpoint: it does not rest.
    hurried: bool,
    stopping: bool,
    failed: Option<StoreError>,
}

struct Shared {
    path: PathBuf,
    layers: ArcSwap<Layers>,
    journal: Mutex<Journal>,
    checkpoint_bytes: u64,
    work: Mutex<Work>,
    changed: Condvar,
}

/// A folder on disk, held by this process until dropped.
pub(crate) struct DiskStore {
    shared: Arc<Shared>,
    mover: Option<JoinHandle<()>>,
    /// Locked as long as it is open.
    _lock: File,
}

impl DiskStore {
    /// Opens the store in the folder `path`, or makes one that only its owner can read.
    pub(crate) fn open(path: &Path) -> Result<DiskStore, StoreError> {
        DiskStore::open_with(path, CHECKPOINT_BYTES)
    }

    /// [`DiskStore::open`], with checkpoints as often as a test wants them.
    pub(crate) fn open_with(path: &Path, checkpoint_bytes: u64) -> Result<DiskStore, StoreError> {
        let fail = |cause: std::io::Error| StoreError::io(format!("opening the store {}", path.display()), cause);
        if path.exists() && !path.is_dir() {
            return Err(fail(std::io::Error::other("it is a file; a store is a folder")));
        }
        if path.is_dir() && !path.join("lock").exists() && fs::read_dir(path).map_err(fail)?.next().is_some() {
            return Err(fail(std::io::Error::other("the folder is not empty and holds no store: name a new folder")));
        }
        make_private_folder(path).map_err(fail)?;
        let lock = hold(path)?;
        finish_rebuild(path)?;
        // A crash may have left it; that there is none is as well.
        let _ = fs::remove_file(path.join("room"));
        let journal_path = path.join("journal");
        make_private_folder(&journal_path).map_err(fail)?;
        let settled = Overlay::default();
        let journal = Journal::open(&journal_path, |batch| {
            for (key, value) in batch {
                settled.put(overlay::hash(&key), key, value);
            }
        })?;
        let tree = Arc::new(SledStore::open(&path.join("tree"))?);
        if tree.marked()?.saturating_add(1) < journal.first() {
            let (tree, first) = (path.join("tree"), journal.first());
            return Err(StoreError::Corrupt(format!(
                "the tree {} lacks what was written before group {first}, where the journal begins",
                tree.display()
            )));
        }
        File::open(path).and_then(|folder| folder.sync_all()).map_err(fail)?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            layers: ArcSwap::from_pointee(Layers { settled: Arc::new(settled), moving: None, tree }),
            journal: Mutex::new(journal),
            checkpoint_bytes,
            work: Mutex::default(),
            changed: Condvar::new(),
        });
        let mover = std::thread::Builder::new()
            .name("tollgate-checkpoint".into())
            .spawn({
                let shared = shared.clone();
                move || shared.run()
            })
            .map_err(fail)?;
        Ok(DiskStore { shared, mover: Some(mover), _lock: lock })
    }
}

#[cfg(test)]
impl DiskStore {
    /// Makes a checkpoint, and leaves the tree as that made it.
    pub(super) fn checkpoint_now(&self) -> Result<(), StoreError> {
        self.shared.checkpoint_now()
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        self.shared.work.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(mover) = self.mover.take() {
            // A panic in it has left the journal whole: the next opening reads it back.
            let _ = mover.join();
        }
    }
}

/// Takes the folder's lock, or says who has it.
fn hold(path: &Path) -> Result<File, StoreError> {
    let fail = |cause| StoreError::io(format!("locking the store {}", path.display()), cause);
    let mut lock =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path.join("lock")).map_err(fail)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The holder may be writing its id at this moment: then it is not known.
            let _ = lock.read_to_string(&mut holder);
            let pid = holder.trim().parse().unwrap_or(0);
            return Err(StoreError::Busy { path: path.display().to_string(), pid });
        }
        Err(fs::TryLockError::Error(cause)) => return Err(fail(cause)),
    }
    lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(fail)?;
    Ok(lock)
}

/// Fails when the disk has no room for the tree to take in `bytes` of rows.
///
/// sled does not survive a write that fails: it reads no more and cannot be closed. So the room is asked for first,
/// by a file that is removed before it reaches the disk. sled rewrites whole pages: three times the rows are asked for.
fn require_room(path: &Path, bytes: u64) -> Result<(), StoreError> {
    let ballast = path.join("room");
    let zeros = vec![0u8; 1 << 20];
    let written = File::create(&ballast).and_then(|mut file| {
        let mebibytes = bytes.saturating_mul(3).div_ceil(1 << 20).saturating_add(8);
        (0..mebibytes).try_for_each(|_| file.write_all(&zeros))
    });
    let removed = fs::remove_file(&ballast);
    written.and(removed).map_err(|cause| StoreError::io(format!("making room in {}", path.display()), cause))
}

fn make_private_folder(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

impl Shared {
    /// The body of the checkpoint thread.
    fn run(&self) {
        loop {
            {
                let mut work = self.work.lock();
                while !work.wanted && !work.stopping {
                    self.changed.wait(&mut work);
                }
                if work.stopping {
                    return;
                }
                (work.wanted, work.running) = (false, true);
            }
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.checkpoint()))
                .unwrap_or_else(|_| Err(StoreError::io("writing a checkpoint", "the thread panicked")));
            let mut work = self.work.lock();
            work.running = false;
            if let Err(cause) = result {
                work.failed.get_or_insert(cause);
            }
            self.changed.notify_all();
        }
    }

    /// Moves what is in the journal into the tree, and removes the segments it came from.
    fn checkpoint(&self) -> Result<(), StoreError> {
        let (segments, moving, next) = {
            let mut journal = self.journal.lock();
            if journal.is_empty() {
                return Ok(());
            }
            let segments = journal.rotate()?;
            let layers = self.layers.load();
            let moving = layers.settled.clone();
            self.layers.store(Arc::new(Layers {
                settled: Arc::new(Overlay::with_room(moving.rows())),
                moving: Some(moving.clone()),
                tree: layers.tree.clone(),
            }));
            (segments, moving, journal.next())
        };
        let tree = self.layers.load().tree.clone();
        let mut rows = moving.to_batch();
        // Neighbours share a page of the tree.
        rows.sort_unstable();
        require_room(&self.path, moving.bytes() as u64)?;
        for part in rows.chunks(PACED_ROWS) {
            let begun = Stopwatch::start();
            tree.apply(&part.to_vec())?;
            self.rest(begun.elapsed());
        }
        tree.mark(next - 1)?;
        tree.flush()?;
        let fail = |cause| StoreError::io("removing a journal segment", cause);
        for segment in segments {
            fs::remove_file(segment).map_err(fail)?;
        }
        let _journal = self.journal.lock();
        let layers = self.layers.load();
        self.layers.store(Arc::new(Layers { settled: layers.settled.clone(), moving: None, tree }));
        Ok(())
    }

    /// Leaves the machine to callers for a while, unless somebody waits for the checkpoint or the journal grows too long.
    ///
    /// Readers of a page that is being written are slow: without rests one call in a hundred took twice as long.
    fn rest(&self, span: Duration) {
        let mut work = self.work.lock();
        let hurried = work.stopping || work.hurried || self.journal.lock().length() > CHECKPOINT_BYTES;
        if !hurried {
            self.changed.wait_for(&mut work, span);
        }
    }

    /// Asks for a checkpoint and waits for it.
    fn checkpoint_now(&self) -> Result<(), StoreError> {
        let mut work = self.work.lock();
        work.hurried = true;
        while work.running {
            self.changed.wait(&mut work);
        }
        work.wanted = true;
        self.changed.notify_all();
        while (work.wanted || work.running) && work.failed.is_none() {
            self.changed.wait(&mut work);
        }
        work.hurried = false;
        work.failed.clone().map_or(Ok(()), Err)
    }

    /// Writes every row of the tree into a new one; says whether that takes less room.
    ///
    /// A tree full of living rows may well take more when it is written anew: sled writes a page again and again while it fills.
    fn copy_tree(&self, fresh: &Path) -> Result<bool, StoreError> {
        let fail = |cause| StoreError::io(format!("compacting {}", self.path.display()), cause);
        if fresh.exists() {
            fs::remove_dir_all(fresh).map_err(fail)?;
        }
        let old = self.layers.load().tree.clone();
        require_room(&self.path, old.size_on_disk()? / 2)?;
        let new = SledStore::open(fresh)?;
        let mut range = Range { low: std::ops::Bound::Unbounded, high: std::ops::Bound::Unbounded };
        loop {
            let mut rows = Vec::new();
            old.scan(&range, Direction::Ascending, COPY_ROWS, &mut rows)?;
            let Some((last, _)) = rows.last() else { break };
            range.low = std::ops::Bound::Excluded(last.clone());
            new.apply(&rows.into_iter().map(|(key, value)| (key, Some(value))).collect())?;
        }
        new.mark(old.marked()?)?;
        new.flush()?;
        Ok(new.size_on_disk()? < old.size_on_disk()?)
    }

    /// Puts a copy of the tree in its place.
    fn exchange_tree(&self, fresh: &Path) -> Result<(), StoreError> {
        let fail = |cause| StoreError::io(format!("compacting {}", self.path.display()), cause);
        // The new tree is whole from here on: whoever finds `tree.ready` finishes the exchange.
        let ready = self.path.join("tree.ready");
        fs::rename(fresh, &ready).map_err(fail)?;
        sync_folder(&self.path)?;
        // sled keeps its files open: the old handle serves reads until the new tree stands in its place.
        finish_rebuild(&self.path)?;
        let tree = Arc::new(SledStore::open(&self.path.join("tree"))?);
        let _journal = self.journal.lock();
        let layers = self.layers.load();
        self.layers.store(Arc::new(Layers { settled: layers.settled.clone(), moving: layers.moving.clone(), tree }));
        Ok(())
    }

    fn read<T>(&self, layers: &Layers, key: &[u8], found: impl Fn(Option<Bytes>) -> T) -> Result<T, StoreError> {
        let hash = overlay::hash(key);
        if let Some(value) = layers.settled.get(hash, key) {
            return Ok(found(value));
        }
        if let Some(value) = layers.moving.as_ref().and_then(|moving| moving.get(hash, key)) {
            return Ok(found(value));
        }
        layers.tree.get(key).map(found)
    }
}

/// Puts a tree that was rebuilt whole into the old one's place; does nothing when there is none.
fn finish_rebuild(path: &Path) -> Result<(), StoreError> {
    let fail = |cause| StoreError::io(format!("compacting {}", path.display()), cause);
    let (tree, ready, old) = (path.join("tree"), path.join("tree.ready"), path.join("tree.old"));
    if ready.exists() {
        if tree.exists() {
            if old.exists() {
                fs::remove_dir_all(&old).map_err(fail)?;
            }
            fs::rename(&tree, &old).map_err(fail)?;
        }
        fs::rename(&ready, &tree).map_err(fail)?;
        File::open(path).and_then(|folder| folder.sync_all()).map_err(fail)?;
    }
    if old.exists() {
        fs::remove_dir_all(&old).map_err(fail)?;
    }
    Ok(())
}

impl Store for DiskStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.shared.read(&self.shared.layers.load(), key, |value| value)
    }

    fn scan(&self, range: &Range, direction: Direction, limit: usize, rows: &mut Vec<Pair>) -> Result<(), StoreError> {
        let layers = self.shared.layers.load_full();
        let overlays = std::iter::once(layers.settled.clone()).chain(layers.moving.clone());
        let mut sources: Vec<merge::Page<'_>> = overlays
            .map(|overlay| -> merge::Page<'_> {
                Box::new(move |range, limit, rows| {
                    overlay.scan(range, direction, limit, rows);
                    Ok(())
                })
            })
            .collect();
        sources.push(Box::new(|range, limit, rows| {
            let mut pairs = Vec::new();
            layers.tree.scan(range, direction, limit, &mut pairs)?;
            rows.extend(pairs.into_iter().map(|(key, value)| (key, Some(value))));
            Ok(())
        }));
        merge::merge(sources, range, direction, limit, rows)
    }

    fn apply(&self, batch: &Batch) -> Result<(), StoreError> {
        {
            let mut work = self.shared.work.lock();
            while work.running
                && work.failed.is_none()
                && self.shared.journal.lock().length() > 2 * self.shared.checkpoint_bytes
            {
                self.shared.changed.wait(&mut work);
            }
            if let Some(cause) = &work.failed {
                return Err(cause.clone());
            }
        }
        let mut journal = self.shared.journal.lock();
        journal.append(batch)?;
        let layers = self.shared.layers.load();
        for (key, value) in batch {
            layers.settled.put(overlay::hash(key), key.clone(), value.clone());
        }
        if journal.length() > self.shared.checkpoint_bytes {
            drop(journal);
            self.shared.work.lock().wanted = true;
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.shared.journal.lock().sync()
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.shared.checkpoint_now()?;
        {
            let mut work = self.shared.work.lock();
            while work.running {
                self.shared.changed.wait(&mut work);
            }
            if let Some(cause) = &work.failed {
                return Err(cause.clone());
            }
            // No checkpoint may write to the tree that is being copied.
            work.running = true;
        }
        let fresh = self.shared.path.join("tree.new");
        let copied = self.shared.copy_tree(&fresh);
        let exchanged = match &copied {
            Ok(true) => self.shared.exchange_tree(&fresh),
            // The copy, or what there is of it, is of no use; if it stays, the next one removes it.
            Ok(false) | Err(_) => {
                drop(fs::remove_dir_all(&fresh));
                Ok(())
            }
        };
        let mut work = self.shared.work.lock();
        work.running = false;
        // Half exchanged, the open tree may be the one that reopening throws away: nothing more may go there.
        work.failed = work.failed.take().or(exchanged.clone().err());
        self.shared.changed.notify_all();
        copied.map(|_smaller| ()).and(exchanged)
    }

    fn size_on_disk(&self) -> Result<u64, StoreError> {
        folder_bytes(&self.shared.path)
    }
}
