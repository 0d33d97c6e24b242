//! Transactions of host code: the operations that scripts have, for a closure that runs like a procedure.

use crate::bucket::{self, Demand};
use crate::document::change::Change;
use crate::document::collection::Collection;
use crate::document::error::{DataError, DocumentError};
use crate::document::filter::Filter;
use crate::document::options::FindOptions;
use crate::document::{find, write};
use crate::error::{Error, ScriptError};
use crate::id::new_id;
use crate::limit::{Cost, Decision, Key, Limit};
use crate::time::Timestamp;
use crate::transaction::{self, Fault};
use crate::value::Map;

use super::contention::MOST_CLASHES;
use super::{Engine, fault_error};

use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

/// What a closure given to [`Engine::transaction`] works with: limits and documents, all or nothing.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Engine, Error, Limit, Map};
/// let engine = Engine::builder().memory().open()?;
/// let limit = Limit::fixed_window("signup", 5, Duration::from_secs(60))?;
/// let admitted = engine.transaction(|tx| {
///     let decision = tx.take(&limit, "192.0.2.1", 1)?;
///     if decision.allowed {
///         tx.insert("users", Map::from([("name".to_owned(), "ada".into())]))?;
///     }
///     Ok::<_, Error>(decision.allowed)
/// })?;
/// assert!(admitted);
/// # Ok::<(), Error>(())
/// ```
pub struct Transaction<'a> {
    pub(super) inner: &'a mut transaction::Transaction,
    pub(super) engine: &'a super::Inner,
    seed: [u8; 32],
    /// For new ids, the same in every run of the closure; made when the first one is asked for.
    random: Option<Box<ChaCha12Rng>>,
    /// Jobs enqueued so far.
    pub(super) enqueued: u32,
    /// What ended the transaction below; looked at first, whatever the closure made of it.
    fault: Option<Fault>,
}

impl Engine {
    /// Runs `run` as one transaction, again when it clashes with another: it must have no effect but its writes.
    ///
    /// An error rolls back and is returned. Errors of the engine come as [`Error`] through `E`.
    pub fn transaction<T, E: From<Error>>(
        &self,
        run: impl FnMut(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.host_transaction(self.inner.read_only, run)
    }

    /// Runs `run` over one moment of the store; writes in it are refused. It waits for nobody.
    pub fn read<T, E: From<Error>>(&self, run: impl FnMut(&mut Transaction<'_>) -> Result<T, E>) -> Result<T, E> {
        self.host_transaction(true, run)
    }

    fn host_transaction<T, E: From<Error>>(
        &self,
        read_only: bool,
        mut run: impl FnMut(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check_open()?;
        let inner = &*self.inner;
        let now = inner.clock.now();
        let seed = inner.next_seed();
        let mut clashes = 0;
        loop {
            let mode = if read_only { super::reading(clashes) } else { inner.mode(clashes, false) };
            let mut below = inner.database.begin(mode, now, transaction::Quota::UNLIMITED);
            let mut tx = Transaction { inner: &mut below, engine: inner, seed, random: None, enqueued: 0, fault: None };
            let result = run(&mut tx);
            let ended = match (tx.fault.take(), result) {
                (Some(fault), _) => Err(fault),
                (None, Err(error)) => return Err(error),
                (None, Ok(value)) => below.commit().map(|committed| (value, committed)),
            };
            match ended {
                Ok((value, committed)) => {
                    self.await_durability(committed, None)?;
                    return Ok(value);
                }
                Err(Fault::Clash) if clashes <= MOST_CLASHES => clashes += 1,
                Err(fault) => return Err(fault_error(fault).into()),
            }
        }
    }
}

impl Transaction<'_> {
    /// The one instant of this transaction.
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Spends `cost` tokens of `key`, if they fit.
    pub fn take(&mut self, limit: &Limit, key: impl Into<Key>, cost: i64) -> Result<Decision, Error> {
        self.on_bucket(limit, key, cost, bucket::take)
    }

    /// The answer a take would get; nothing is written.
    pub fn peek(&mut self, limit: &Limit, key: impl Into<Key>, cost: i64) -> Result<Decision, Error> {
        self.on_bucket(limit, key, cost, bucket::peek)
    }

    /// The answer a reservation would get, its delay too; nothing is written.
    pub fn peek_reserve(&mut self, limit: &Limit, key: impl Into<Key>, cost: i64) -> Result<Decision, Error> {
        self.on_bucket(limit, key, cost, bucket::peek_reserve)
    }

    /// Spends now, even ahead of time within the limit's `max_reserved`: wait the decision's `delay` before the work.
    pub fn reserve(&mut self, limit: &Limit, key: impl Into<Key>, cost: i64) -> Result<Decision, Error> {
        self.on_bucket(limit, key, cost, bucket::reserve)
    }

    /// Gives tokens back, never beyond full.
    pub fn refund(&mut self, limit: &Limit, key: impl Into<Key>, tokens: i64) -> Result<Decision, Error> {
        self.on_bucket(limit, key, tokens, bucket::refund)
    }

    /// Spends without asking, past the limit too: a penalty.
    pub fn charge(&mut self, limit: &Limit, key: impl Into<Key>, tokens: i64) -> Result<Decision, Error> {
        self.on_bucket(limit, key, tokens, bucket::charge)
    }

    /// Forgets the bucket: it is full again.
    pub fn reset(&mut self, limit: &Limit, key: impl Into<Key>) -> Result<(), Error> {
        let key = checked(key)?;
        let result = bucket::reset(self.inner, limit, &key);
        self.settle(result)
    }

    /// Refuses every take of `key` for `span`.
    pub fn block(&mut self, limit: &Limit, key: impl Into<Key>, span: std::time::Duration) -> Result<Decision, Error> {
        let key = checked(key)?;
        let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let result = bucket::block(self.inner, limit, &key, span_ms);
        self.settle(result)
    }

    /// Ends a block.
    pub fn unblock(&mut self, limit: &Limit, key: impl Into<Key>) -> Result<Decision, Error> {
        let key = checked(key)?;
        let result = bucket::unblock(self.inner, limit, &key);
        self.settle(result)
    }

    /// One decision over several limits: all are spent, or none. Each entry is a limit, a key and a cost.
    pub fn take_all<'l>(
        &mut self,
        demands: impl IntoIterator<Item = (&'l Limit, Key, i64)>,
    ) -> Result<Decision, Error> {
        let demands = self.demands(demands)?;
        let result = bucket::take_all(self.inner, &demands);
        self.settle(result)
    }

    /// The answer [`Transaction::take_all`] would get; nothing is written.
    pub fn peek_all<'l>(
        &mut self,
        demands: impl IntoIterator<Item = (&'l Limit, Key, i64)>,
    ) -> Result<Decision, Error> {
        let demands = self.demands(demands)?;
        let result = bucket::peek_all(self.inner, &demands);
        self.settle(result)
    }

    fn demands<'l>(&mut self, demands: impl IntoIterator<Item = (&'l Limit, Key, i64)>) -> Result<Vec<Demand>, Error> {
        let demand = |(limit, key, cost): (&Limit, Key, i64)| {
            Ok(Demand { limit: limit.clone(), key: checked(key)?, cost: cost_of(cost)? })
        };
        demands.into_iter().map(demand).collect()
    }

    pub(super) fn on_bucket(
        &mut self,
        limit: &Limit,
        key: impl Into<Key>,
        cost: i64,
        operation: impl FnOnce(&mut transaction::Transaction, &Limit, &Key, Cost) -> Result<Decision, Fault>,
    ) -> Result<Decision, Error> {
        let (key, cost) = (checked(key)?, cost_of(cost)?);
        let result = operation(self.inner, limit, &key, cost);
        self.settle(result)
    }

    /// Inserts a document and returns its `_id`, made when the document brings none.
    pub fn insert(&mut self, collection: &str, document: Map) -> Result<String, Error> {
        self.with_ids(collection, |tx, collection, new_id| write::insert(tx, collection, document, new_id))
    }

    /// The documents that match, in the order of `_id`.
    pub fn find(&mut self, collection: &str, filter: &Map) -> Result<Vec<Map>, Error> {
        self.find_with(collection, filter, &Map::new())
    }

    /// The documents that match, with the options `sort`, `limit` and `skip` as scripts write them.
    pub fn find_with(&mut self, collection: &str, filter: &Map, options: &Map) -> Result<Vec<Map>, Error> {
        self.on_documents(collection, |tx, collection| {
            find::find(tx, collection, &Filter::parse(filter)?, &FindOptions::parse(options)?)
        })
    }

    /// The first document that matches, in the order of `_id`.
    pub fn find_one(&mut self, collection: &str, filter: &Map) -> Result<Option<Map>, Error> {
        self.on_documents(collection, |tx, collection| find::find_one(tx, collection, &Filter::parse(filter)?))
    }

    /// The document with this `_id`.
    pub fn get(&mut self, collection: &str, id: &str) -> Result<Option<Map>, Error> {
        self.on_documents(collection, |tx, collection| find::get(tx, collection, id))
    }

    /// How many documents match.
    pub fn count(&mut self, collection: &str, filter: &Map) -> Result<u64, Error> {
        self.on_documents(collection, |tx, collection| find::count(tx, collection, &Filter::parse(filter)?))
    }

    /// Whether a document matches.
    pub fn exists(&mut self, collection: &str, filter: &Map) -> Result<bool, Error> {
        self.on_documents(collection, |tx, collection| find::exists(tx, collection, &Filter::parse(filter)?))
    }

    /// Changes every document that matches; returns how many do.
    pub fn update(&mut self, collection: &str, filter: &Map, changes: &Map) -> Result<u64, Error> {
        self.on_documents(collection, |tx, collection| {
            write::update(tx, collection, &Filter::parse(filter)?, &Change::parse(changes)?)
        })
    }

    /// Changes the first document that matches; returns how many did.
    pub fn update_one(&mut self, collection: &str, filter: &Map, changes: &Map) -> Result<u64, Error> {
        self.on_documents(collection, |tx, collection| {
            write::update_one(tx, collection, &Filter::parse(filter)?, &Change::parse(changes)?)
        })
    }

    /// Changes the first document that matches, or inserts one; returns its `_id`.
    pub fn upsert(&mut self, collection: &str, filter: &Map, changes: &Map) -> Result<String, Error> {
        self.with_ids(collection, |tx, collection, new_id| {
            write::upsert(tx, collection, &Filter::parse(filter)?, &Change::parse(changes)?, new_id)
        })
    }

    /// Deletes every document that matches; returns how many.
    pub fn delete(&mut self, collection: &str, filter: &Map) -> Result<u64, Error> {
        self.on_documents(collection, |tx, collection| write::delete(tx, collection, &Filter::parse(filter)?))
    }

    /// Deletes the first document that matches; returns how many.
    pub fn delete_one(&mut self, collection: &str, filter: &Map) -> Result<u64, Error> {
        self.on_documents(collection, |tx, collection| write::delete_one(tx, collection, &Filter::parse(filter)?))
    }

    fn on_documents<T>(
        &mut self,
        collection: &str,
        operation: impl FnOnce(&mut transaction::Transaction, &Collection) -> Result<T, DocumentError>,
    ) -> Result<T, Error> {
        let result = self.engine.catalogue.collection(self.inner, collection);
        let result = result.and_then(|collection: Arc<Collection>| operation(self.inner, &collection));
        self.settle_documents(result)
    }

    fn with_ids<T>(
        &mut self,
        collection: &str,
        operation: impl FnOnce(&mut transaction::Transaction, &Collection, write::NewId<'_>) -> Result<T, DocumentError>,
    ) -> Result<T, Error> {
        let (now, mut random) = (self.now(), self.take_random());
        let mut new_id = || new_id(now, &mut random);
        let result = self.on_documents(collection, |tx, collection| operation(tx, collection, &mut new_id));
        self.random = Some(random);
        result
    }

    fn take_random(&mut self) -> Box<ChaCha12Rng> {
        self.random.take().unwrap_or_else(|| Box::new(ChaCha12Rng::from_seed(self.seed)))
    }

    /// An id of something new.
    pub(super) fn new_id(&mut self) -> String {
        let mut random = self.take_random();
        let id = new_id(self.now(), &mut random);
        self.random = Some(random);
        id
    }

    pub(super) fn settle<T>(&mut self, result: Result<T, Fault>) -> Result<T, Error> {
        result.map_err(|fault| self.record(fault))
    }

    fn settle_documents<T>(&mut self, result: Result<T, DocumentError>) -> Result<T, Error> {
        result.map_err(|error| match error {
            DocumentError::Fault(fault) => self.record(fault),
            other => data_error(other),
        })
    }

    fn record(&mut self, fault: Fault) -> Error {
        self.fault.get_or_insert_with(|| fault.clone());
        fault_error(fault)
    }
}

/// The error that a host sees for one of documents.
pub(super) fn data_error(error: DocumentError) -> Error {
    match error {
        DocumentError::Data(DataError { code, message, data }) => Error::Data { code, message, data: Box::new(data) },
        DocumentError::Fault(fault) => fault_error(fault),
        DocumentError::Overrun { spent, hint } => Error::Budget(Box::new(ScriptError {
            code: "budget".into(),
            message: spent.to_string(),
            hint: Some(hint),
            ..ScriptError::default()
        })),
    }
}

pub(super) fn checked(key: impl Into<Key>) -> Result<Key, Error> {
    let key = key.into();
    key.check().map_err(|why| Error::Config(why.to_string()))?;
    Ok(key)
}

fn cost_of(tokens: i64) -> Result<Cost, Error> {
    Cost::new(tokens).map_err(|why| Error::Config(why.to_string()))
}

impl From<crate::limit::InvalidLimit> for Error {
    fn from(why: crate::limit::InvalidLimit) -> Error {
        Error::Config(why.to_string())
    }
}
