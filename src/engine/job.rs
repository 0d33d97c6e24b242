//! Jobs of host code: enqueued beside other writes, looked at, called off, made due, removed.

use crate::error::Error;
use crate::job::change::{self, Wish};
use crate::job::list::{self, JobFilter};
use crate::job::{self, Job, JobError, JobOptions};
use crate::value::Value;

use super::{Engine, Transaction, fault_error};

impl Transaction<'_> {
    /// Enqueues a job for a procedure or an action; it is there when the transaction commits. Returns its id, or the
    /// id of the job that has its key.
    ///
    /// Errors: no such handler, a payload that the procedure does not take, options out of bounds.
    ///
    /// ```
    /// use tollgate::{Engine, Error, JobOptions, JobState, Map};
    /// let engine = Engine::builder().memory().source("hi.rhai", r#"fn welcome(name) { insert("log", #{ name: name }) }"#).open()?;
    /// let id = engine.transaction(|tx| {
    ///     tx.insert("users", Map::from([("name".to_owned(), "ada".into())]))?;
    ///     tx.enqueue("welcome", vec!["ada"], &JobOptions::new().key("welcome:ada"))
    /// })?;
    /// assert_eq!(engine.work_once(10)?.succeeded, 1);
    /// assert_eq!(engine.job(&id)?.map(|job| job.state), Some(JobState::Succeeded));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn enqueue(
        &mut self,
        handler: &str,
        payload: impl serde::Serialize,
        options: &JobOptions,
    ) -> Result<String, Error> {
        let payload = Value::from_serde(&payload).map_err(|why| Error::Data {
            code: "bad_job",
            message: format!("the payload cannot be stored: {why}"),
            data: Box::default(),
        })?;
        self.engine.loaded.load().handlers.check(handler, &payload)?;
        let id = self.new_id();
        let ordinal = self.enqueued;
        self.enqueued = ordinal.saturating_add(1);
        let wish = Wish { handler, payload, options, id, ordinal };
        let result = change::enqueue(self.inner, wish);
        self.settle_job(result)
    }

    /// The job with this id, while it is kept.
    pub fn job(&mut self, id: &str) -> Result<Option<Job>, Error> {
        let result = job::get(self.inner, id);
        self.settle(result)
    }

    /// Calls a job off; false when it is finished already, or not there. What runs is not stopped: its end is stale.
    pub fn cancel_job(&mut self, id: &str) -> Result<bool, Error> {
        let result = change::cancel(self.inner, id);
        self.settle_job(result)
    }

    /// Makes a waiting job due now, and a finished one from its first attempt on; false when it is running, or not there.
    pub fn retry_job(&mut self, id: &str) -> Result<bool, Error> {
        let result = change::retry(self.inner, id);
        self.settle_job(result)
    }

    fn settle_job<T>(&mut self, result: Result<T, JobError>) -> Result<T, Error> {
        match result {
            Ok(value) => Ok(value),
            Err(JobError::Invalid(invalid)) => Err(invalid.into()),
            Err(JobError::Fault(fault)) => self.settle(Err(fault)),
        }
    }
}

impl Engine {
    /// [`Transaction::enqueue`] as a transaction of its own.
    pub fn enqueue(
        &self,
        handler: &str,
        payload: impl serde::Serialize,
        options: &JobOptions,
    ) -> Result<String, Error> {
        self.transaction(|tx| tx.enqueue(handler, &payload, options))
    }

    /// The job with this id, while it is kept.
    pub fn job(&self, id: &str) -> Result<Option<Job>, Error> {
        self.read(|tx| tx.job(id))
    }

    /// [`Transaction::cancel_job`] as a transaction of its own.
    pub fn cancel_job(&self, id: &str) -> Result<bool, Error> {
        self.transaction(|tx| tx.cancel_job(id))
    }

    /// [`Transaction::retry_job`] as a transaction of its own.
    pub fn retry_job(&self, id: &str) -> Result<bool, Error> {
        self.transaction(|tx| tx.retry_job(id))
    }

    /// Jobs that pass `filter`, the newest first: up to `most` that were made before the job `before`.
    ///
    /// Reads in steps, not as one moment: a job that changes meanwhile may be missed.
    ///
    /// ```
    /// use tollgate::{Engine, JobFilter, JobOptions, JobAnswer};
    /// let engine = Engine::builder().memory().action("greet", |_| Ok(JobAnswer::Done)).open()?;
    /// engine.enqueue("greet", "ada", &JobOptions::new())?;
    /// assert_eq!(engine.jobs(&JobFilter::default(), None, 10)?.len(), 1);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn jobs(&self, filter: &JobFilter, before: Option<&str>, most: usize) -> Result<Vec<Job>, Error> {
        let mut jobs = Vec::new();
        let mut before = before.map(str::to_owned);
        while jobs.len() < most {
            let left = most - jobs.len();
            let page = self.read(|tx| list::page(tx.inner, filter, before.as_deref(), left).map_err(fault_error))?;
            jobs.extend(page.jobs);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        Ok(jobs)
    }

    /// Removes finished jobs that pass `filter`, before their `keep` is over; returns how many.
    pub fn purge_jobs(&self, filter: &JobFilter) -> Result<u64, Error> {
        /// Jobs of one transaction.
        const STEP: usize = 64;
        let mut purged = 0;
        let mut before: Option<String> = None;
        loop {
            let page = self.read(|tx| list::page(tx.inner, filter, before.as_deref(), STEP).map_err(fault_error))?;
            purged += self.transaction(|tx| {
                let mut count = 0;
                for job in &page.jobs {
                    let result = change::purge(tx.inner, &job.id);
                    count += u64::from(tx.settle_job(result)?);
                }
                Ok::<_, Error>(count)
            })?;
            match page.next {
                Some(next) => before = Some(next),
                None => return Ok(purged),
            }
        }
    }
}
