//! Sweeper: reclaims what has expired, in small transactions off the callers' path. It decides nothing.
//!
//! An expiry entry may be early, because a row that lives on does not move its entry at each write; the
//! sweeper finds such a row alive and moves the entry to where it belongs.

use std::ops::Bound;

use crate::document::catalogue::Catalogue;
use crate::document::error::DocumentError;
use crate::document::expire;
use crate::store::key::{self, space};
use crate::store::{Bytes, Direction, Range, StoreError};
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

/// Where a sweep goes on: behind an entry, or at the first one.
///
/// A sweep must not begin each step anew: the entries it has removed stand in the overlays as deletions until they
/// reach the tree, and walking over them again and again would take time by their square.
pub(super) type Cursor = Option<Bytes>;

/// Sweeps up to `rows` rows whose time has come, behind `cursor` and moving it; says whether there may be more.
pub(super) fn step(
    tx: &mut Transaction,
    catalogue: &Catalogue,
    rows: usize,
    cursor: &mut Cursor,
    summary: &mut SweepSummary,
) -> Result<bool, DocumentError> {
    let now = tx.now();
    let range = Range {
        low: match cursor {
            Some(last) => Bound::Excluded(last.clone()),
            None => Bound::Included([space::EXPIRY].as_slice().into()),
        },
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
    if let Some((last, _)) = entries.last() {
        *cursor = Some(last.clone());
    }
    Ok(entries.len() == rows)
}
