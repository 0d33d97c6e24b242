//! Sweeper: reclaims what has expired, in small transactions off the callers' path. It decides nothing.
//!
//! An expiry entry may be early, because a row that lives on does not move its entry at each write; the
//! sweeper finds such a row alive and moves the entry to where it belongs.

use std::ops::Bound;

use crate::document::catalogue::Catalogue;
use crate::document::error::DocumentError;
use crate::document::expire;
use crate::store::key::{self, space};
use crate::store::{Direction, Range, StoreError};
use crate::transaction::Transaction;

/// Rows of one step: few enough that no caller waits for it.
pub(super) const STEP_ROWS: usize = 64;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct SweepSummary {
    /// Expired rows that were removed.
    pub removed: u64,
    /// Entries of rows that live on, moved to their new expiry.
    pub moved: u64,
}

/// Sweeps up to `rows` rows whose time has come; says whether there may be more.
pub(super) fn step(
    tx: &mut Transaction,
    catalogue: &Catalogue,
    rows: usize,
    summary: &mut SweepSummary,
) -> Result<bool, DocumentError> {
    let now = tx.now();
    let range = Range {
        low: Bound::Included([space::EXPIRY].as_slice().into()),
        high: Bound::Excluded(key::expiry(now.saturating_add_millis(1), &[]).into()),
    };
    let entries = tx.scan(&range, Direction::Ascending, rows)?;
    for (entry, _) in &entries {
        let (at, row_key) = key::split_expiry(entry)
            .ok_or_else(|| StoreError::Corrupt(format!("{} cannot be read", key::describe(entry))))?;
        match tx.get_any_row(row_key)? {
            Some(row) if row.expired(now) => {
                let removed = match row_key.first() {
                    Some(&space::DOCUMENT) => expire::expire(tx, catalogue, row_key)?,
                    _ => {
                        tx.delete_row(row_key)?;
                        true
                    }
                };
                summary.removed += u64::from(removed);
            }
            Some(row) => {
                tx.move_expiry_entry(row_key, &row, at)?;
                summary.moved += 1;
            }
            // `doctor` reports an entry without its row; here it only has to go.
            None => tx.delete(entry)?,
        }
    }
    Ok(entries.len() == rows)
}
