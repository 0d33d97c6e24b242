//! Background: the thread that sweeps now and then, as long as there is an engine.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{Engine, Inner};

/// A thread that sweeps at an interval. Dropping this ends it.
pub(super) struct Background {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Background {
    /// Starts to sweep `engine`. The thread holds it weakly: who drops the last handle ends it.
    pub(super) fn start(engine: &Engine, interval: Duration) -> std::io::Result<Background> {
        let stop = Arc::new(Stop::default());
        let inner = Arc::downgrade(&engine.inner);
        let thread = std::thread::Builder::new().name("tollgate-sweeper".into()).spawn({
            let stop = stop.clone();
            move || run(&inner, &stop, interval)
        })?;
        Ok(Background { stop, thread: Some(thread) })
    }
}

/// Sweeps between two that begin at the first entry again: most entries come in the order of time, so that what
/// stands before the place reached is rare, and it is invisible anyway.
const SWEEPS_FORWARD: u32 = 60;

fn run(inner: &Weak<Inner>, stop: &Stop, interval: Duration) {
    let mut cursor = None;
    for sweep in 0u32.. {
        {
            let mut asked = stop.asked.lock();
            if !*asked {
                stop.changed.wait_for(&mut asked, interval);
            }
            if *asked {
                return;
            }
        }
        let Some(inner) = inner.upgrade() else { return };
        // What fails here fails for callers too, who are told; here there is nobody to tell.
        if sweep.is_multiple_of(SWEEPS_FORWARD) {
            cursor = None;
        }
        if let Err(error) = (Engine { inner }).sweep_from(&mut cursor) {
            tracing::warn!(%error, "sweeping failed");
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        *self.stop.asked.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic while sweeping has left nothing undone that the next sweep does not do.
            let _ = thread.join();
        }
    }
}
