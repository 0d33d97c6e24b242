//! Listing of jobs, for tools and hosts.

use std::ops::Bound;

use crate::store::key::space;
use crate::store::{Direction, Range};
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};

use super::row::{decode, job_key};
use super::{Job, JobState};

/// Rows read at a time while a filter looks for those it wants.
const PAGE_ROWS: usize = 256;

/// Which jobs are wanted: all, unless told otherwise.
///
/// ```
/// use tollgate::{JobFilter, JobState};
/// let failed = JobFilter { state: Some(JobState::Failed), ..JobFilter::default() };
/// # let _ = failed;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In this state.
    pub state: Option<JobState>,
    /// Of this queue.
    pub queue: Option<String>,
    /// Of this handler.
    pub handler: Option<String>,
}

impl JobFilter {
    fn wants(&self, job: &Job) -> bool {
        self.state.is_none_or(|state| state == job.state)
            && self.queue.as_ref().is_none_or(|queue| *queue == job.queue)
            && self.handler.as_ref().is_none_or(|handler| *handler == job.handler)
    }
}

/// A part of a list of jobs, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) jobs: Vec<Job>,
    /// The id to go on behind; none when this was the last part.
    pub(crate) next: Option<String>,
}

/// Reads one page of rows behind `before` (an id; the newest job when none) and keeps up to `most` that are wanted.
pub(crate) fn page(tx: &mut Transaction, filter: &JobFilter, before: Option<&str>, most: usize) -> Result<Page, Fault> {
    let mut range = Range::prefix(&[space::JOB]);
    if let Some(id) = before {
        range.high = Bound::Excluded(job_key(id).into());
    }
    let rows = tx.scan(&range, Direction::Descending, PAGE_ROWS)?;
    let full = rows.len() == PAGE_ROWS;
    let mut page = Page::default();
    for (_, bytes) in rows {
        let row = Row::decode(bytes)?;
        let job = decode(&row)?;
        page.next = Some(job.id.clone());
        if !row.expired(tx.now()) && filter.wants(&job) {
            page.jobs.push(job);
            if page.jobs.len() == most {
                return Ok(page);
            }
        }
    }
    if !full {
        page.next = None;
    }
    Ok(page)
}
