//! The census: all live buckets, read in steps of bounded rows, for tools that go through every one of them.
//!
//! Each step may be a transaction of its own, so that no read set grows with the store. What is written between
//! two steps is counted or not; a bucket is never counted twice.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::element;
use crate::store::key::{self, KeyBuffer, space};
use crate::store::{Direction, Range, StoreError};
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};

use super::{Listed, listed};

/// The most rows of one step.
pub(crate) const STEP_ROWS: usize = 512;

/// How far a census has come: what is left to read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rest(Range);

/// How many live buckets there are of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) limit_name: String,
    pub(crate) live: u64,
}

impl Rest {
    /// All buckets of a limit.
    pub(crate) fn of_limit(limit_name: &str) -> Rest {
        Rest(Range::prefix(KeyBuffer::new(space::BUCKET).name(limit_name).as_slice()))
    }

    /// All buckets.
    pub(crate) fn of_all() -> Rest {
        Rest(Range::prefix(&[space::BUCKET]))
    }
}

/// The live buckets among the next rows of a limit, and what is left after them; none at the end.
pub(crate) fn step(tx: &mut Transaction, limit_name: &str, rest: &Rest) -> Result<(Vec<Listed>, Option<Rest>), Fault> {
    let mut range = rest.0.clone();
    let rows = tx.scan(&range, Direction::Ascending, STEP_ROWS)?;
    let more = rows.len() == STEP_ROWS;
    let mut live = Vec::with_capacity(rows.len());
    for (row_key, bytes) in rows {
        live.extend(listed(tx, limit_name, &row_key, bytes)?);
        range.low = Bound::Excluded(row_key);
    }
    Ok((live, more.then_some(Rest(range))))
}

/// Counts the live buckets among the next rows whose limit is not one of `known`, by name, and passes over the others.
pub(crate) fn count_step(
    tx: &mut Transaction,
    known: &BTreeSet<String>,
    rest: &Rest,
) -> Result<(Vec<Counted>, Option<Rest>), Fault> {
    let mut range = rest.0.clone();
    let mut counted: Vec<Counted> = Vec::new();
    // The first row says whether what follows is of interest; a name that is not costs one row.
    let Some((first, _)) = tx.scan(&range, Direction::Ascending, 1)?.pop() else { return Ok((counted, None)) };
    let name = limit_name_of(&first)?;
    if known.contains(&name) {
        let own = KeyBuffer::new(space::BUCKET).name(&name);
        let Some(past) = key::successor(own.as_slice()) else { return Ok((counted, None)) };
        range.low = Bound::Included(past.into());
        return Ok((counted, Some(Rest(range))));
    }
    let rows = tx.scan(&range, Direction::Ascending, STEP_ROWS)?;
    let more = rows.len() == STEP_ROWS;
    for (row_key, bytes) in rows {
        let name = limit_name_of(&row_key)?;
        if known.contains(&name) {
            return Ok((counted, Some(Rest(range))));
        }
        range.low = Bound::Excluded(row_key);
        if !Row::decode(bytes)?.expired(tx.now()) {
            match counted.last_mut().filter(|last| last.limit_name == name) {
                Some(last) => last.live += 1,
                None => counted.push(Counted { limit_name: name, live: 1 }),
            }
        }
    }
    Ok((counted, more.then_some(Rest(range))))
}

fn limit_name_of(row_key: &[u8]) -> Result<String, StoreError> {
    let name = element::take_name(row_key.get(1..).unwrap_or_default()).map(|(name, _)| name);
    name.and_then(|name| String::from_utf8(name).ok())
        .ok_or_else(|| StoreError::Corrupt(format!("{} names no limit", key::describe(row_key))))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Desk, fw};
    use super::*;

    fn all(desk: &mut Desk, name: &str) -> Vec<Listed> {
        let (mut found, mut next) = (Vec::new(), Some(Rest::of_limit(name)));
        while let Some(rest) = next {
            let (live, left) = desk.run(|tx| step(tx, name, &rest));
            found.extend(live);
            next = left;
        }
        found
    }

    fn counts(desk: &mut Desk, known: &[&str]) -> Vec<(String, u64)> {
        let known = known.iter().map(|name| (*name).to_owned()).collect();
        let (mut found, mut next) = (Vec::<(String, u64)>::new(), Some(Rest::of_all()));
        while let Some(rest) = next {
            let (counted, left) = desk.run(|tx| count_step(tx, &known, &rest));
            for one in counted {
                match found.last_mut().filter(|last| last.0 == one.limit_name) {
                    Some(last) => last.1 += one.live,
                    None => found.push((one.limit_name, one.live)),
                }
            }
            next = left;
        }
        found
    }

    #[test]
    fn every_live_bucket_is_met_once_whatever_the_steps_and_what_expired_is_not() {
        let mut desk = Desk::new();
        let (long, short) = (fw("m", 5, 1_000_000), fw("m", 5, 10));
        for n in 0..STEP_ROWS as i64 * 2 {
            let limit = if n % 3 == 0 { &long } else { &short };
            let _ = desk.take(limit, n.to_string(), 1);
        }
        for name in ["a", "m\0", "z"] {
            let _ = desk.take(&fw(name, 5, 1_000_000), "k", 1);
        }
        desk.at(10);
        let live = desk.live(&long);
        assert_eq!(live.len(), STEP_ROWS * 2 / 3 + 1);
        assert_eq!(all(&mut desk, "m"), live);
        assert_eq!(all(&mut desk, "none"), []);
        let of_m = live.len() as u64;
        let one = |name: &str, n| (name.to_owned(), n);
        assert_eq!(counts(&mut desk, &["none"]), [one("a", 1), one("m", of_m), one("m\0", 1), one("z", 1)]);
        assert_eq!(counts(&mut desk, &["m"]), [one("a", 1), one("m\0", 1), one("z", 1)]);
        assert_eq!(counts(&mut desk, &["a", "m", "m\0", "z"]), []);
    }
}
