//! Fronts: where the places of each queue, handler and priority begin, kept in memory.
//!
//! A claimed job leaves its place, and what was deleted stays in the overlays until it reaches the tree. A claim that
//! began at the first possible place would walk over all of it again and again. So each claim begins where the last
//! one found something; a commit that puts a place before that moves the front back.
//!
//! One process holds a store, and every place that is put comes by [`Fronts::lower`] after its commit; so nothing that
//! waits stands before its front for longer than between these two.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::Mutex;

use crate::store::key::{self, KeyBuffer, space};
use crate::store::{Bytes, Direction, Range};
use crate::transaction::{Fault, Transaction};

use super::row::{self, Place, split_place};

/// Where the places of one queue, handler and priority begin.
#[derive(Clone, Debug)]
pub(super) struct Front {
    pub(super) queue: String,
    pub(super) handler: String,
    /// What all of its places begin with.
    pub(super) prefix: KeyBuffer,
    /// No job waits before this.
    pub(super) from: Bytes,
    /// Moves on when the front moves back, so that a claim which began before that does not move it forward again.
    generation: u64,
}

/// The fronts of a store.
#[derive(Default)]
pub(crate) struct Fronts {
    by_prefix: Mutex<BTreeMap<KeyBuffer, Front>>,
}

impl Fronts {
    /// Finds every queue, handler and priority that jobs wait for: one look at the index for each.
    pub(crate) fn load(&self, tx: &mut Transaction) -> Result<(), Fault> {
        let mut range = Range::prefix(&[space::JOB_PLACE]);
        let mut found = Vec::new();
        while let Some((first, _)) = tx.scan(&range, Direction::Ascending, 1)?.into_iter().next() {
            let prefix = prefix_of(&split_place(&first)?);
            found.push(first);
            let Some(next) = key::successor(&prefix) else { break };
            range.low = Bound::Included(next.into());
        }
        self.lower(&found);
        Ok(())
    }

    /// Moves fronts back so that these places, which were committed, lie behind them.
    pub(crate) fn lower(&self, places: &[Bytes]) {
        let mut fronts = self.by_prefix.lock();
        for key in places {
            // What cannot be read is told by whoever scans it.
            let Ok(place) = split_place(key) else { continue };
            let prefix = prefix_of(&place);
            let front = fronts.entry(prefix.clone()).or_insert_with(|| Front {
                queue: place.queue,
                handler: place.handler,
                prefix,
                from: key.clone(),
                generation: 0,
            });
            if *key <= front.from {
                front.from = key.clone();
                front.generation += 1;
            }
        }
    }

    /// Moves a front forward, unless it was moved back since it was read. Only while nobody else can commit.
    pub(super) fn raise(&self, read: &Front, from: Bytes) {
        if let Some(front) = self.by_prefix.lock().get_mut(&read.prefix)
            && front.generation == read.generation
        {
            front.from = from;
        }
    }

    /// Every front there is now.
    pub(super) fn all(&self) -> Vec<Front> {
        self.by_prefix.lock().values().cloned().collect()
    }
}

fn prefix_of(place: &Place) -> KeyBuffer {
    row::places_of_rank(&place.queue, &place.handler, place.rank)
}
