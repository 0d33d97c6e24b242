//! Finding: reading the documents that a filter means.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use crate::store::key;
use crate::trace::{Looked, Step};
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};
use crate::value::Map;

use super::collection::{Collection, Index};
use super::compare::{compare, equal, or_null};
use super::error::DocumentError;
use super::filter::Filter;
use super::options::{FindOptions, Sort};
use super::plan::{Access, Order, Plan, plan};
use super::row::{self, Pages};

/// The documents that match, in the order asked for, else in the order of `_id`.
///
/// Reads no further than `limit` needs where an index has the order; else all that match are read and sorted.
pub(crate) fn find(
    tx: &mut Transaction,
    collection: &Collection,
    filter: &Filter,
    options: &FindOptions,
) -> Result<Vec<Map>, DocumentError> {
    let plan = plan(collection, filter, Some(options));
    let count = |found: &Vec<Map>| found.len() as u64;
    witnessed(tx, &plan, filter, "find", count, |tx| as_planned(tx, &plan, filter, options))
}

fn as_planned(
    tx: &mut Transaction,
    plan: &Plan<'_>,
    filter: &Filter,
    options: &FindOptions,
) -> Result<Vec<Map>, DocumentError> {
    let wanted = match options.limit {
        Some(0) => return Ok(Vec::new()),
        Some(limit) => options.skip.saturating_add(limit),
        None => usize::MAX,
    };
    let mut found: Vec<Map> = Vec::new();
    visit(tx, plan, filter, wanted, &mut |document| {
        if let (Order::Grouped(fields), true) = (&plan.order, found.len() >= wanted)
            && let Some(last) = found.last()
            && !fields.is_empty()
            && fields.iter().any(|field| !equal(or_null(field.find(last)), or_null(field.find(&document))))
        {
            // Beyond the group of the last one wanted, nothing can come before it.
            return ControlFlow::Break(());
        }
        found.push(document);
        match plan.order == Order::Exact && found.len() >= wanted {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if plan.order != Order::Exact {
        found.sort_by(|a, b| by(&options.sort, a, b));
    }
    found.truncate(wanted);
    found.drain(..options.skip.min(found.len()));
    Ok(found)
}

/// The first document that matches, in the order of `_id`.
pub(crate) fn find_one(
    tx: &mut Transaction,
    collection: &Collection,
    filter: &Filter,
) -> Result<Option<Map>, DocumentError> {
    first_matching(tx, collection, filter, "find_one")
}

/// The first document that matches, in the order of `_id`, for an operation of this name.
pub(super) fn first_matching(
    tx: &mut Transaction,
    collection: &Collection,
    filter: &Filter,
    operation: &'static str,
) -> Result<Option<Map>, DocumentError> {
    let options = FindOptions::first();
    let plan = plan(collection, filter, Some(&options));
    let count = |found: &Option<Map>| u64::from(found.is_some());
    witnessed(tx, &plan, filter, operation, count, |tx| Ok(as_planned(tx, &plan, filter, &options)?.pop()))
}

/// The document with this `_id`.
pub(crate) fn get(tx: &mut Transaction, collection: &Collection, id: &str) -> Result<Option<Map>, DocumentError> {
    let begun = tx.watch();
    tx.spend_reads(1)?;
    let key = key::document(&collection.name, id);
    let document = tx.get_row(&key)?.map(|found| row::document(&key, &found)).transpose()?;
    if let Some(begun) = begun {
        tx.tell(Step::Read(Looked {
            operation: "get",
            collection: collection.name.clone(),
            filter: Map::from([("_id".to_owned(), id.into())]),
            index: Some("_id".to_owned()),
            plan: format!("_id of {}: one document", collection.name),
            advice: None,
            scanned: 1,
            returned: document.is_some().into(),
            took: begun.elapsed(),
        }));
    }
    Ok(document)
}

/// How many documents match.
pub(crate) fn count(tx: &mut Transaction, collection: &Collection, filter: &Filter) -> Result<u64, DocumentError> {
    let plan = plan(collection, filter, None);
    witnessed(
        tx,
        &plan,
        filter,
        "count",
        |matching| *matching,
        |tx| {
            let mut matching = 0;
            visit(tx, &plan, filter, usize::MAX, &mut |_| {
                matching += 1;
                ControlFlow::Continue(())
            })?;
            Ok(matching)
        },
    )
}

/// Whether any document matches.
pub(crate) fn exists(tx: &mut Transaction, collection: &Collection, filter: &Filter) -> Result<bool, DocumentError> {
    let plan = plan(collection, filter, None);
    witnessed(
        tx,
        &plan,
        filter,
        "exists",
        |any| u64::from(*any),
        |tx| {
            let mut any = false;
            visit(tx, &plan, filter, 1, &mut |_| {
                any = true;
                ControlFlow::Break(())
            })?;
            Ok(any)
        },
    )
}

/// All documents that match, in the order of `_id`: what an update or a delete settles before it writes.
///
/// The order decides which violation an error names, and no index may change that.
pub(super) fn all_matching(
    tx: &mut Transaction,
    collection: &Collection,
    filter: &Filter,
    operation: &'static str,
) -> Result<Vec<Map>, DocumentError> {
    let plan = plan(collection, filter, None);
    let count = |found: &Vec<Map>| found.len() as u64;
    witnessed(tx, &plan, filter, operation, count, |tx| {
        let mut found = Vec::new();
        visit(tx, &plan, filter, usize::MAX, &mut |document| {
            found.push(document);
            ControlFlow::Continue(())
        })?;
        found.sort_by(|a, b| by(&Sort::default(), a, b));
        Ok(found)
    })
}

/// Runs a search, and tells of it when somebody wants to know: of one that failed too, because what it read is why.
fn witnessed<T>(
    tx: &mut Transaction,
    plan: &Plan<'_>,
    filter: &Filter,
    operation: &'static str,
    returned: impl FnOnce(&T) -> u64,
    search: impl FnOnce(&mut Transaction) -> Result<T, DocumentError>,
) -> Result<T, DocumentError> {
    let Some(begun) = tx.watch() else { return search(tx) };
    let left = tx.reads_left();
    let result = search(tx);
    let scanned = left.saturating_sub(tx.reads_left());
    let returned = result.as_ref().map_or(0, returned);
    // An index that led to nothing but what was wanted cannot be bettered.
    let wasted = plan.index().is_none() || scanned > returned;
    tx.tell(Step::Read(Looked {
        operation,
        collection: plan.collection.name.clone(),
        filter: filter.to_map(),
        index: plan.index().map(str::to_owned),
        plan: plan.to_string(),
        advice: Some(plan.advice().to_owned()).filter(|advice| wasted && !advice.is_empty()),
        scanned,
        returned,
        took: begun.elapsed(),
    }));
    result
}

/// The order of two documents; total, since no two share an `_id`.
pub(super) fn by(sort: &Sort, a: &Map, b: &Map) -> Ordering {
    let directed = |order: Ordering, descends: bool| if descends { order.reverse() } else { order };
    for (path, descends) in &sort.fields {
        let order = compare(or_null(path.find(a)), or_null(path.find(b)));
        if order.is_ne() {
            return directed(order, *descends);
        }
    }
    directed(compare(or_null(a.get("_id")), or_null(b.get("_id"))), sort.id_descends)
}

type Visitor<'v> = dyn FnMut(Map) -> ControlFlow<()> + 'v;

/// Shows `visitor` the live documents that match, as `plan` reads them. About `wanted` of them are expected to do.
fn visit(
    tx: &mut Transaction,
    plan: &Plan<'_>,
    filter: &Filter,
    wanted: usize,
    visitor: &mut Visitor<'_>,
) -> Result<(), DocumentError> {
    let collection = plan.collection;
    match &plan.access {
        Access::Ids(ids) => {
            let ids: Box<dyn Iterator<Item = &String>> = match plan.direction {
                crate::store::Direction::Ascending => Box::new(ids.iter()),
                crate::store::Direction::Descending => Box::new(ids.iter().rev()),
            };
            for id in ids {
                spend(tx, plan)?;
                if show_id(tx, collection, id, filter, visitor)?.is_break() {
                    break;
                }
            }
        }
        Access::Documents(range, _) => {
            let mut pages = Pages::of(range.clone(), plan.direction, wanted);
            loop {
                let rows = pages.next(tx)?;
                if rows.is_empty() {
                    break;
                }
                for (key, bytes) in rows {
                    spend(tx, plan)?;
                    if show(tx, &key, Row::decode(bytes)?, filter, visitor)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Access::Entries { index, equal, spans, .. } => {
            let known = equal.iter().fold(index.prefix(&collection.name), |key, value| key.element(value));
            let known = known.as_slice().len();
            let spans: Box<dyn Iterator<Item = &crate::store::Range>> = match plan.direction {
                crate::store::Direction::Ascending => Box::new(spans.iter()),
                crate::store::Direction::Descending => Box::new(spans.iter().rev()),
            };
            for span in spans {
                let mut pages = Pages::of(span.clone(), plan.direction, wanted);
                loop {
                    let entries = pages.next(tx)?;
                    if entries.is_empty() {
                        break;
                    }
                    for (entry, _) in entries {
                        spend(tx, plan)?;
                        let id = entry_id(index, &entry, known, equal.len())?;
                        if show_id(tx, collection, &id, filter, visitor)?.is_break() {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn entry_id(index: &Index, entry: &[u8], known: usize, bound: usize) -> Result<String, DocumentError> {
    Ok(index.id_of(entry, known, bound).ok_or_else(|| row::damaged(entry, "it holds no id"))?)
}

fn show_id(
    tx: &mut Transaction,
    collection: &Collection,
    id: &str,
    filter: &Filter,
    visitor: &mut Visitor<'_>,
) -> Result<ControlFlow<()>, DocumentError> {
    let key = key::document(&collection.name, id);
    match tx.get_row(&key)? {
        Some(found) => show(tx, &key, found, filter, visitor),
        None => Ok(ControlFlow::Continue(())),
    }
}

fn show(
    tx: &Transaction,
    key: &[u8],
    found: Row,
    filter: &Filter,
    visitor: &mut Visitor<'_>,
) -> Result<ControlFlow<()>, DocumentError> {
    if found.expired(tx.now()) {
        return Ok(ControlFlow::Continue(()));
    }
    let document = row::document(key, &found)?;
    Ok(if filter.matches(&document) { visitor(document) } else { ControlFlow::Continue(()) })
}

/// Spends one document read; a spent budget says what would serve.
fn spend(tx: &mut Transaction, plan: &Plan<'_>) -> Result<(), DocumentError> {
    match tx.spend_reads(1) {
        Err(Fault::Budget(spent)) => {
            let name = &plan.collection.name;
            let how = match plan.index() {
                None => format!("collection `{name}` was read whole"),
                Some(index) => format!("collection `{name}` was read through index `{index}`"),
            };
            Err(DocumentError::Overrun { spent, hint: format!("{how}; {}", plan.advice()) })
        }
        other => Ok(other?),
    }
}
