//! Flusher: the one thread that writes to the store, and what callers know of it.
//!
//! It cuts the active overlay (a pointer swap under the commit lock), writes it as one batch, flushes, and
//! wakes who waits. However many commits came in between share that one flush; however often they wrote one
//! key, it is written once. A flush that fails, or does not return in time, ends all writing: nothing that was
//! acknowledged is pretended, reads go on, and reopening the store recovers.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::store::StoreError;
use crate::time::{Deadline, Stopwatch};

use super::database::Shared;

/// How the flusher is tuned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The longest that a buffered commit stays in memory alone.
    pub(crate) interval: Duration,
    /// A flush that takes longer has failed.
    pub(crate) timeout: Duration,
    /// Commits wait while the active overlay is larger than this, in bytes.
    pub(crate) overlay_bytes: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { interval: Duration::from_millis(100), timeout: Duration::from_secs(10), overlay_bytes: 64 << 20 }
    }
}

#[derive(Default)]
struct State {
    /// The highest commit somebody waits for.
    wanted: u64,
    /// Every commit up to this one is on disk.
    durable: u64,
    /// Something is in the active overlay.
    dirty: bool,
    /// When the flush that is running began.
    flushing: Option<Stopwatch>,
    failed: Option<StoreError>,
    stopping: bool,
    stopped: bool,
    flushes: u64,
}

/// What callers and the flusher tell each other.
pub(super) struct Flushes {
    pace: Pace,
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

impl Flushes {
    pub(super) fn new(pace: Pace) -> Flushes {
        Flushes { pace, state: Mutex::default(), work: Condvar::new(), done: Condvar::new() }
    }

    /// The failure that ended all writing, if there was one.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        // Who waits for nothing must notice a flush that hangs as well.
        self.give_up_if_slow(&mut state);
        match &state.failed {
            None => Ok(()),
            Some(cause) => Err(StoreError::Failed { cause: cause.to_string() }),
        }
    }

    /// How many flushes were made.
    pub(super) fn count(&self) -> u64 {
        self.state.lock().flushes
    }

    /// Says that the active overlay is no longer empty.
    pub(super) fn dirty(&self) {
        let mut state = self.state.lock();
        state.dirty = true;
        self.work.notify_one();
    }

    /// Returns when commit `number` is on disk.
    pub(super) fn wait_for(&self, number: u64) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.durable < number && state.wanted < number {
            state.wanted = number;
            self.work.notify_one();
        }
        self.wait_until(&mut state, |state| state.durable >= number)
    }

    /// Makes a flush start now, and returns when `enough` says so; for commits that wait for room.
    pub(super) fn wait_for_room(&self, clock: u64, enough: impl Fn() -> bool) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.wanted = state.wanted.max(clock);
        self.work.notify_one();
        self.wait_until(&mut state, |_| enough())
    }

    /// Fails a flush that has taken too long.
    fn give_up_if_slow(&self, state: &mut State) {
        if state.failed.is_none() && state.flushing.is_some_and(|since| since.elapsed() >= self.pace.timeout) {
            self.give_up(state);
        }
    }

    fn give_up(&self, state: &mut State) {
        let cause = format!("a flush did not return within {:?}", self.pace.timeout);
        state.failed = Some(StoreError::io("flushing the store", cause));
        self.done.notify_all();
    }

    fn wait_until(
        &self,
        state: &mut parking_lot::MutexGuard<'_, State>,
        enough: impl Fn(&State) -> bool,
    ) -> Result<(), StoreError> {
        // The flusher may first have to wait for a call that runs alone; only a flush itself is timed.
        let patience = Deadline::after(self.pace.timeout.saturating_mul(3));
        loop {
            if enough(state) {
                return Ok(());
            }
            if let Some(cause) = &state.failed {
                return Err(StoreError::Failed { cause: cause.to_string() });
            }
            if state.stopped {
                return Err(StoreError::Failed { cause: "the engine was closed".into() });
            }
            self.give_up_if_slow(state);
            if state.failed.is_none() && patience.passed() {
                self.give_up(state);
            }
            if state.failed.is_some() {
                continue;
            }
            let left = match state.flushing {
                Some(since) => self.pace.timeout.saturating_sub(since.elapsed()),
                None => patience.remaining(),
            };
            self.done.wait_for(state, left.min(self.pace.timeout).max(Duration::from_millis(1)));
        }
    }

    /// Asks the flusher to write what is left and to end; says whether it did, within the time a flush may take.
    pub(super) fn stop(&self) -> bool {
        let mut state = self.state.lock();
        state.stopping = true;
        self.work.notify_one();
        let patience = Deadline::after(self.pace.timeout);
        while !state.stopped && !patience.passed() {
            self.done.wait_for(&mut state, patience.remaining());
        }
        state.stopped
    }

    /// The body of the flusher's thread.
    pub(super) fn run(&self, shared: &Shared) {
        loop {
            let stopping = self.await_work();
            // A store of the host's may panic; its callers must not wait for a thread that is gone.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.flush_once(shared)))
                .unwrap_or_else(|_| Err(StoreError::io("flushing the store", "the store panicked")));
            let mut state = self.state.lock();
            state.flushing = None;
            match result {
                Ok(number) if state.failed.is_none() => {
                    state.durable = state.durable.max(number);
                    state.flushes += 1;
                }
                // It came back after the watchdog gave it up: what was told to callers stands.
                Ok(_) => {}
                Err(cause) => {
                    state.failed.get_or_insert(cause);
                }
            }
            state.stopped = state.failed.is_some() || (stopping && !state.dirty);
            self.done.notify_all();
            if state.stopped {
                return;
            }
        }
    }

    /// Sleeps until somebody waits for the disk, or what is buffered is old enough; says whether to stop after it.
    fn await_work(&self) -> bool {
        let mut state = self.state.lock();
        let mut due: Option<Deadline> = None;
        while state.wanted <= state.durable && !state.stopping {
            match due {
                _ if !state.dirty => self.work.wait(&mut state),
                None => due = Some(Deadline::after(self.pace.interval)),
                Some(due) if due.passed() => break,
                Some(due) => {
                    self.work.wait_for(&mut state, due.remaining());
                }
            }
        }
        state.dirty = false;
        state.stopping
    }

    fn flush_once(&self, shared: &Shared) -> Result<u64, StoreError> {
        let (frozen, number) = shared.freeze();
        self.state.lock().flushing = Some(Stopwatch::start());
        let batch = frozen.to_batch();
        if !batch.is_empty() {
            shared.store().apply(&batch)?;
        }
        shared.store().flush()?;
        shared.thaw();
        Ok(number)
    }
}
