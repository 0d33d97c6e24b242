//! Data in scripts: documents found, inserted, changed and deleted.

use rhai::{Dynamic, EvalAltResult, ImmutableString, Map as Fields, Module, NativeCallContext};

use crate::document::change::Change;
use crate::document::collection::Collection;
use crate::document::error::DocumentError;
use crate::document::filter::Filter;
use crate::document::options::FindOptions;
use crate::document::{find, write};
use crate::transaction::Transaction;
use crate::value::{Map, Value};

use super::super::call::{Call, with};
use super::super::convert;
use super::super::raised::{Failure, Raised};
use super::values::new_id;

type Answer<T> = Result<T, Box<EvalAltResult>>;

impl From<DocumentError> for Failure {
    fn from(error: DocumentError) -> Failure {
        match error {
            DocumentError::Data(error) => {
                Failure::from(Raised { code: error.code.into(), message: error.message, data: error.data })
            }
            DocumentError::Fault(fault) => fault.into(),
            DocumentError::Overrun { spent, hint } => Failure::Spent(format!("{spent}: {hint}")),
        }
    }
}

pub(super) fn register(module: &mut Module) {
    register_reading(module);
    register_writing(module);
}

fn register_reading(module: &mut Module) {
    module.set_native_fn("find", |context: NativeCallContext, collection: &str, filter: Fields| -> Answer<Dynamic> {
        with(&context, |call| found(call, collection, &filter, &FindOptions::default()))
    });
    module.set_native_fn(
        "find",
        |context: NativeCallContext, collection: &str, filter: Fields, options: Fields| -> Answer<Dynamic> {
            with(&context, |call| {
                let options = FindOptions::parse(&map(&options)?).map_err(DocumentError::from)?;
                found(call, collection, &filter, &options)
            })
        },
    );
    module.set_native_fn(
        "find_one",
        |context: NativeCallContext, collection: &str, filter: Fields| -> Answer<Dynamic> {
            with(&context, |call| {
                let (tx, collection) = opened(call, collection)?;
                Ok(document(find::find_one(tx, &collection, &filter_of(&filter)?)?))
            })
        },
    );
    module.set_native_fn("get", |context: NativeCallContext, collection: &str, id: &str| -> Answer<Dynamic> {
        with(&context, |call| {
            let (tx, collection) = opened(call, collection)?;
            Ok(document(find::get(tx, &collection, id)?))
        })
    });
    module.set_native_fn("count", |context: NativeCallContext, collection: &str, filter: Fields| -> Answer<i64> {
        with(&context, |call| {
            let (tx, collection) = opened(call, collection)?;
            Ok(number(find::count(tx, &collection, &filter_of(&filter)?)?))
        })
    });
    module.set_native_fn("exists", |context: NativeCallContext, collection: &str, filter: Fields| -> Answer<bool> {
        with(&context, |call| {
            let (tx, collection) = opened(call, collection)?;
            Ok(find::exists(tx, &collection, &filter_of(&filter)?)?)
        })
    });
}

fn register_writing(module: &mut Module) {
    module.set_native_fn(
        "insert",
        |context: NativeCallContext, collection: &str, fields: Fields| -> Answer<ImmutableString> {
            with(&context, |call| {
                let fields = map(&fields)?;
                let mut id = next_id(call);
                let (tx, collection) = opened(call, collection)?;
                Ok(write::insert(tx, &collection, fields, &mut || std::mem::take(&mut id))?.into())
            })
        },
    );
    type Changing = fn(&mut Transaction, &Collection, &Filter, &Change) -> Result<u64, DocumentError>;
    for (name, operation) in [("update", write::update as Changing), ("update_one", write::update_one as Changing)] {
        module.set_native_fn(
            name,
            move |context: NativeCallContext, collection: &str, filter: Fields, changes: Fields| -> Answer<i64> {
                with(&context, |call| {
                    let (filter, change) = (filter_of(&filter)?, change_of(&changes)?);
                    let (tx, collection) = opened(call, collection)?;
                    Ok(number(operation(tx, &collection, &filter, &change)?))
                })
            },
        );
    }
    module.set_native_fn(
        "upsert",
        |context: NativeCallContext, collection: &str, filter: Fields, changes: Fields| -> Answer<ImmutableString> {
            with(&context, |call| {
                let (filter, change) = (filter_of(&filter)?, change_of(&changes)?);
                let mut id = next_id(call);
                let (tx, collection) = opened(call, collection)?;
                Ok(write::upsert(tx, &collection, &filter, &change, &mut || std::mem::take(&mut id))?.into())
            })
        },
    );
    type Deleting = fn(&mut Transaction, &Collection, &Filter) -> Result<u64, DocumentError>;
    for (name, operation) in [("delete", write::delete as Deleting), ("delete_one", write::delete_one as Deleting)] {
        module.set_native_fn(
            name,
            move |context: NativeCallContext, collection: &str, filter: Fields| -> Answer<i64> {
                with(&context, |call| {
                    let filter = filter_of(&filter)?;
                    let (tx, collection) = opened(call, collection)?;
                    Ok(number(operation(tx, &collection, &filter)?))
                })
            },
        );
    }
}

fn found(call: &mut Call, collection: &str, filter: &Fields, options: &FindOptions) -> Result<Dynamic, Failure> {
    let filter = filter_of(filter)?;
    let most = call.budget.array_items;
    let (tx, collection) = opened(call, collection)?;
    let documents = find::find(tx, &collection, &filter, options)?;
    if documents.len() > most {
        return Err(Failure::Spent(format!(
            "budget spent: array elements (allowed {most}): `find` found {}, set a `limit`",
            documents.len()
        )));
    }
    Ok(Dynamic::from_array(documents.into_iter().map(|one| convert::to_dynamic(Value::Map(one))).collect()))
}

/// The call's transaction, and the collection as that transaction sees it.
fn opened<'a>(
    call: &'a mut Call,
    name: &str,
) -> Result<(&'a mut Transaction, std::sync::Arc<Collection>), DocumentError> {
    let collection = call.catalogue.collection(&mut call.transaction, name)?;
    Ok((&mut call.transaction, collection))
}

/// Draws the id before the operation: which ids a call makes must not depend on what it finds.
fn next_id(call: &mut Call) -> String {
    new_id(call)
}

fn document(found: Option<Map>) -> Dynamic {
    found.map_or(Dynamic::UNIT, |fields| convert::to_dynamic(Value::Map(fields)))
}

fn map(fields: &Fields) -> Result<Map, Failure> {
    convert::from_map(fields).map_err(|why| Failure::from(Raised::new("bad_document", why)))
}

fn filter_of(fields: &Fields) -> Result<Filter, Failure> {
    let map = convert::from_map(fields).map_err(|why| Raised::new("bad_filter", why))?;
    Ok(Filter::parse(&map).map_err(DocumentError::from)?)
}

fn change_of(fields: &Fields) -> Result<Change, Failure> {
    let map = convert::from_map(fields).map_err(|why| Raised::new("bad_change", why))?;
    Ok(Change::parse(&map).map_err(DocumentError::from)?)
}

fn number(count: u64) -> i64 {
    // Bounded by the documents budget, far below the end of the range.
    i64::try_from(count).unwrap_or(i64::MAX)
}
