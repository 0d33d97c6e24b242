//! The tally: how many documents a collection has, counted in steps of bounded rows.
//!
//! Each step may be a transaction of its own, so that no read set grows with the collection.

use std::ops::Bound;

use crate::store::{Direction, Range};
use crate::transaction::{Fault, Transaction};

use super::row;

/// The most rows of one step: the largest documents then take 16 MiB.
const STEP_ROWS: usize = 64;

/// What is left to count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rest(Range);

impl Rest {
    /// All documents of a collection.
    pub(crate) fn of(collection: &str) -> Rest {
        Rest(row::all(collection))
    }
}

/// How many rows come next, expired ones too, since whoever reads documents meets those; and what is left after them.
pub(crate) fn step(tx: &mut Transaction, rest: &Rest) -> Result<(u64, Option<Rest>), Fault> {
    let mut range = rest.0.clone();
    let rows = tx.scan(&range, Direction::Ascending, STEP_ROWS)?;
    let more = rows.len() == STEP_ROWS;
    if let Some((last, _)) = rows.last() {
        range.low = Bound::Excluded(last.clone());
    }
    Ok((rows.len() as u64, (more && !range.is_empty()).then_some(Rest(range))))
}
