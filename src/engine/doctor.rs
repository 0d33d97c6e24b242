//! Doctor: every invariant of the store, read through and checked.

use std::ops::Bound;

use crate::document::error::DocumentError;
use crate::document::verify;
use crate::element;
use crate::job;
use crate::limit::{Key, State};
use crate::store::key::{self, space};
use crate::store::{Direction, Range};
use crate::transaction::Transaction;
use crate::transaction::row::Row;

/// Rows read at a time.
const PAGE_ROWS: usize = 256;

/// The most lines reported.
const MOST_LINES: usize = 1_000;

/// Says what is wrong with the rows of the store, one line each; empty when nothing is.
pub(super) fn examine(tx: &mut Transaction) -> Result<Vec<String>, DocumentError> {
    let mut wrong = verify::verify(tx)?;
    buckets(tx, &mut wrong)?;
    jobs(tx, &mut wrong)?;
    strays(tx, &mut wrong)?;
    wrong.truncate(MOST_LINES);
    Ok(wrong)
}

/// Each bucket can be read, expires, and has its expiry entry.
fn buckets(tx: &mut Transaction, wrong: &mut Vec<String>) -> Result<(), DocumentError> {
    for_each(tx, Range::prefix(&[space::BUCKET]), wrong, |tx, at, bytes, wrong| {
        let described = key::describe(at);
        let readable_key = element::take_name(&at[1..]).is_some_and(|(_, rest)| Key::decode(rest).is_some());
        if !readable_key {
            wrong.push(format!("{described} has an unreadable key"));
        }
        let row = match Row::decode(bytes.clone()) {
            Ok(row) => row,
            Err(error) => {
                wrong.push(format!("{described}: {error}"));
                return Ok(());
            }
        };
        let Some(expiry) = row.expiry else {
            wrong.push(format!("{described} never expires"));
            return Ok(());
        };
        if let Err(error) = State::decode(row.body(), expiry.expires_at.as_millis()) {
            wrong.push(format!("{described}: {error}"));
        }
        if expiry.indexed_at > expiry.expires_at {
            wrong.push(format!("{described} has its expiry entry after its expiry"));
        }
        if tx.get(&key::expiry(expiry.indexed_at, at))?.is_none() {
            wrong.push(format!("{described} has no expiry entry at {}", expiry.indexed_at));
        }
        Ok(())
    })
}

/// Each job that waits or runs is where a worker looks for it, and every place there leads to such a job.
fn jobs(tx: &mut Transaction, wrong: &mut Vec<String>) -> Result<(), DocumentError> {
    for space in job::verify::SPACES {
        for_each(tx, Range::prefix(&[space]), wrong, |tx, at, bytes, wrong| {
            wrong.extend(job::verify::fault_of(tx, at, bytes.clone())?);
            Ok(())
        })?;
    }
    Ok(())
}

/// Every key belongs to a space that this version knows.
fn strays(tx: &mut Transaction, wrong: &mut Vec<String>) -> Result<(), DocumentError> {
    let mut known = [
        space::META,
        space::BUCKET,
        space::RULING,
        space::COLLECTION,
        space::DOCUMENT,
        space::INDEX,
        space::RELEASE,
        space::JOB,
        space::JOB_KEY,
        space::JOB_PLACE,
        space::SCHEDULE,
        space::EXPIRY,
    ];
    known.sort_unstable();
    let mut from = 0u8;
    for space in known.into_iter().map(Some).chain([None]) {
        let low = Bound::Included([from].as_slice().into());
        let high = space.map_or(Bound::Unbounded, |space| Bound::Excluded([space].as_slice().into()));
        for (at, _) in tx.scan(&Range { low, high }, Direction::Ascending, PAGE_ROWS)? {
            wrong.push(format!("{} belongs to nothing", key::describe(&at)));
        }
        from = space.map_or(0, |space| space + 1);
    }
    Ok(())
}

fn for_each(
    tx: &mut Transaction,
    mut range: Range,
    wrong: &mut Vec<String>,
    mut check: impl FnMut(&mut Transaction, &[u8], &crate::store::Bytes, &mut Vec<String>) -> Result<(), DocumentError>,
) -> Result<(), DocumentError> {
    loop {
        let rows = tx.scan(&range, Direction::Ascending, PAGE_ROWS)?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        range.low = Bound::Excluded(last.clone());
        for (at, bytes) in &rows {
            check(tx, at, bytes, wrong)?;
        }
        if wrong.len() >= MOST_LINES {
            return Ok(());
        }
    }
}
