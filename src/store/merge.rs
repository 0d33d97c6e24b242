//! Merging of ordered sources, newest first, into the rows that a reader sees.

use std::collections::VecDeque;
use std::ops::Bound;

use super::{Bytes, Direction, Pair, Range, StoreError};

/// A row of one source: its value, or its deletion.
pub(crate) type Layered = (Bytes, Option<Bytes>);

/// Reads one page: appends the first `limit` rows of the range, in the direction of the merge.
pub(crate) type Page<'a> = Box<dyn FnMut(&Range, usize, &mut Vec<Layered>) -> Result<(), StoreError> + 'a>;

/// One source with the rows read ahead from it.
struct Source<'a> {
    page: Page<'a>,
    rest: Range,
    ahead: VecDeque<Layered>,
    exhausted: bool,
}

impl Source<'_> {
    /// The next row's key, reading another page when the last one is used up.
    fn peek(&mut self, direction: Direction, limit: usize) -> Result<Option<&Bytes>, StoreError> {
        if self.ahead.is_empty() && !self.exhausted {
            let mut rows = Vec::new();
            (self.page)(&self.rest, limit, &mut rows)?;
            self.exhausted = rows.len() < limit;
            if let Some((last, _)) = rows.last() {
                match direction {
                    Direction::Ascending => self.rest.low = Bound::Excluded(last.clone()),
                    Direction::Descending => self.rest.high = Bound::Excluded(last.clone()),
                }
            }
            self.ahead = rows.into();
        }
        Ok(self.ahead.front().map(|(key, _)| key))
    }
}

/// Appends to `rows` the first `limit` live rows of `range` over `sources`, of which an earlier one hides the later.
pub(crate) fn merge(
    sources: Vec<Page<'_>>,
    range: &Range,
    direction: Direction,
    limit: usize,
    rows: &mut Vec<Pair>,
) -> Result<(), StoreError> {
    // A page a little above what is wanted: deletions make some of it vanish.
    let page_rows = limit.saturating_add(8).min(256);
    let mut sources: Vec<Source<'_>> = sources
        .into_iter()
        .map(|page| Source { page, rest: range.clone(), ahead: VecDeque::new(), exhausted: range.is_empty() })
        .collect();
    let wanted = rows.len().saturating_add(limit);
    while rows.len() < wanted {
        let mut next: Option<Bytes> = None;
        for source in &mut sources {
            if let Some(key) = source.peek(direction, page_rows)? {
                let nearer = match (&next, direction) {
                    (None, _) => true,
                    (Some(next), Direction::Ascending) => key < next,
                    (Some(next), Direction::Descending) => key > next,
                };
                if nearer {
                    next = Some(key.clone());
                }
            }
        }
        let Some(key) = next else { break };
        let mut newest: Option<Option<Bytes>> = None;
        for source in &mut sources {
            if source.ahead.front().is_some_and(|(front, _)| *front == key) {
                let row = source.ahead.pop_front();
                newest = newest.or(row.map(|(_, value)| value));
            }
        }
        if let Some(Some(value)) = newest {
            rows.push((key, value));
        }
    }
    Ok(())
}
