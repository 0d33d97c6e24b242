//! Database: the state that all transactions of one engine share.
//!
//! A read looks into the active overlay, then the frozen one that is being flushed, then the store. A commit
//! takes one short lock, validates, and publishes into the active overlay. Freezing swaps the active overlay
//! under the same lock, so that a frozen one holds exactly the commits up to some number.

use std::sync::Arc;
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::store::overlay::Overlay;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;

use super::flusher::{Flushes, Pace};
use super::history::History;
use super::version::Versions;
use super::{Mode, Quota, Transaction};

/// The overlays, newest first.
pub(super) struct Layers {
    pub(super) active: Arc<Overlay>,
    pub(super) frozen: Option<Arc<Overlay>>,
}

/// What transactions and the flusher work on.
pub(crate) struct Shared {
    store: Arc<dyn Store>,
    pub(super) layers: ArcSwap<Layers>,
    pub(super) versions: Versions,
    pub(super) history: Mutex<History>,
    /// Held while a commit validates and publishes, or for the whole of a transaction that runs alone.
    pub(super) commit_lock: Arc<Mutex<()>>,
    pub(super) flushes: Flushes,
    pace: Pace,
    /// What is left unchecked, so that the checkers of histories can be seen to fail.
    #[cfg(test)]
    pub(super) blind: Blind,
}

/// Checks that a test may switch off.
#[cfg(test)]
#[derive(Default)]
pub(super) struct Blind {
    pub(super) reads: std::sync::atomic::AtomicBool,
    pub(super) scans: std::sync::atomic::AtomicBool,
}

impl Shared {
    fn new(store: Arc<dyn Store>, pace: Pace) -> Shared {
        Shared {
            store,
            layers: ArcSwap::from_pointee(Layers { active: Arc::default(), frozen: None }),
            versions: Versions::new(),
            history: Mutex::new(History::new()),
            commit_lock: Arc::default(),
            flushes: Flushes::new(pace),
            pace,
            #[cfg(test)]
            blind: Blind::default(),
        }
    }

    /// The state over `store` that every test transaction over it shares; without a flusher, so it leaves no thread.
    #[cfg(test)]
    pub(super) fn of_test(store: Arc<dyn Store>) -> Arc<Shared> {
        static SHARED: Mutex<std::collections::BTreeMap<usize, Arc<Shared>>> =
            Mutex::new(std::collections::BTreeMap::new());
        let address = Arc::as_ptr(&store) as *const () as usize;
        SHARED.lock().entry(address).or_insert_with(|| Arc::new(Shared::new(store, Pace::default()))).clone()
    }

    /// Whether clashing point reads are looked for; always, outside tests.
    pub(super) fn checks_reads(&self) -> bool {
        #[cfg(test)]
        return !self.blind.reads.load(std::sync::atomic::Ordering::Relaxed);
        #[cfg(not(test))]
        true
    }

    /// Whether clashing scans are looked for; always, outside tests.
    pub(super) fn checks_scans(&self) -> bool {
        #[cfg(test)]
        return !self.blind.scans.load(std::sync::atomic::Ordering::Relaxed);
        #[cfg(not(test))]
        true
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Cuts the active overlay; returns it with the number of the last commit in it.
    pub(super) fn freeze(&self) -> (Arc<Overlay>, u64) {
        // Made before anybody has to wait; the next interval will write about as many rows as this one.
        let active = Arc::new(Overlay::with_room(self.layers.load().active.rows()));
        let _lock = self.commit_lock.lock();
        let frozen = self.layers.load().active.clone();
        self.layers.store(Arc::new(Layers { active, frozen: Some(frozen.clone()) }));
        (frozen, self.versions.clock())
    }

    /// Drops the frozen overlay: the store has its rows now.
    pub(super) fn thaw(&self) {
        let _lock = self.commit_lock.lock();
        let active = self.layers.load().active.clone();
        self.layers.store(Arc::new(Layers { active, frozen: None }));
    }

    /// Waits while the active overlay is too large. Never called under the commit lock.
    pub(super) fn await_room(&self) -> Result<(), StoreError> {
        let full = || self.layers.load().active.bytes() > self.pace.overlay_bytes;
        if full() {
            return self.flushes.wait_for_room(self.versions.clock(), || !full());
        }
        Ok(())
    }
}

/// A store with transactions over it. Dropping it writes what is left and ends the flusher.
pub(crate) struct Database {
    shared: Arc<Shared>,
    flusher: Option<JoinHandle<()>>,
}

impl Database {
    /// Starts the flusher over `store`.
    pub(crate) fn open(store: Arc<dyn Store>, pace: Pace) -> Result<Database, StoreError> {
        let shared = Arc::new(Shared::new(store, pace));
        let flusher = std::thread::Builder::new()
            .name("tollgate-flusher".into())
            .spawn({
                let shared = shared.clone();
                move || shared.flushes.run(&shared)
            })
            .map_err(|cause| StoreError::io("starting the flusher", cause))?;
        Ok(Database { shared, flusher: Some(flusher) })
    }

    /// Begins a transaction whose one instant is `now`.
    pub(crate) fn begin(&self, mode: Mode, now: Timestamp, quota: Quota) -> Transaction {
        Transaction::begin(self.shared.clone(), mode, now, quota)
    }

    /// Returns when everything committed so far is on disk.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.shared.flushes.wait_for(self.shared.versions.clock())
    }

    /// Returns when commit `number` is on disk.
    pub(crate) fn wait_for(&self, number: u64) -> Result<(), StoreError> {
        self.shared.flushes.wait_for(number)
    }

    /// The failure that ended all writing, if there was one.
    #[cfg(test)]
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.shared.flushes.check()
    }

    /// The store below.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The number of the latest commit.
    pub(crate) fn commits(&self) -> u64 {
        self.shared.versions.clock()
    }

    /// How many groups of commits were flushed.
    pub(crate) fn flushes(&self) -> u64 {
        self.shared.flushes.count()
    }

    /// Memory of what is committed and not yet given to the store, in bytes.
    pub(crate) fn overlay_bytes(&self) -> usize {
        let layers = self.shared.layers.load();
        layers.active.bytes() + layers.frozen.as_ref().map_or(0, |frozen| frozen.bytes())
    }
}

#[cfg(test)]
impl Database {
    /// Switches checks off, to see that their lack is noticed.
    pub(super) fn make_blind(&self, reads: bool, scans: bool) {
        self.shared.blind.reads.store(reads, std::sync::atomic::Ordering::Relaxed);
        self.shared.blind.scans.store(scans, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.shared.flushes.stop()
            && let Some(flusher) = self.flusher.take()
        {
            // It has said that it ended; a panic in it has already failed the waiting callers.
            let _ = flusher.join();
        }
    }
}
