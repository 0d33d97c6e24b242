//! Plans: how a filter is served, and in which order its documents come.
//!
//! An `_id` that the filter binds is read directly. Else the ready index with the longest equality prefix, plus
//! one range or `$in`, serves; among equals one that gives the order asked for, then the one declared first.
//! Else the collection is read, as far as a range of `_id` narrows it. The whole filter is applied afterwards in every
//! case, so a plan decides cost, never the answer.

use std::fmt;
use std::ops::Bound as End;

use crate::element;
use crate::store::key::{KeyBuffer, space};
use crate::store::{Bytes, Direction, Range};
use crate::value::Value;

use super::collection::{Collection, Index};
use super::error::shown;
use super::filter::{Bound, Filter, Test};
use super::options::{FindOptions, Sort};
use super::path::Path;
use super::row;

/// How a filter is served. Its text is for people: `index plan,age of users: plan = "pro", age in a range; in order`.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    pub(super) collection: &'a Collection,
    pub(super) access: Access<'a>,
    pub(super) direction: Direction,
    pub(super) order: Order,
    /// What a budget error says to do.
    pub(super) advice: String,
}

/// Where the documents come from.
#[derive(Clone, Debug)]
pub(super) enum Access<'a> {
    /// These ids, in ascending order.
    Ids(Vec<String>),
    /// A range of the collection's documents; whether it is narrower than the whole.
    Documents(Range, bool),
    /// Entries of an index within spans, ascending and disjoint.
    Entries { index: &'a Index, equal: Vec<Value>, spans: Vec<Range>, narrowed: bool },
}

/// How far the order in which documents come is the order asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Order {
    /// It is.
    Exact,
    /// It is but for documents that are equal in these fields; without fields it is none.
    Grouped(Vec<Path>),
}

impl Plan<'_> {
    /// The name of the index that serves, `_id` for direct reads and ranges of ids; none when the collection is read whole.
    pub(crate) fn index(&self) -> Option<&str> {
        match &self.access {
            Access::Ids(_) | Access::Documents(_, true) => Some("_id"),
            Access::Documents(_, false) => None,
            Access::Entries { index, .. } => Some(&index.name),
        }
    }

    /// What would serve better; empty when nothing would.
    pub(crate) fn advice(&self) -> &str {
        &self.advice
    }
}

impl fmt::Display for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.collection.name;
        match &self.access {
            Access::Ids(ids) if ids.len() == 1 => write!(f, "_id of {name}: one document")?,
            Access::Ids(ids) => write!(f, "_id of {name}: {} documents", ids.len())?,
            Access::Documents(_, true) => write!(f, "_id of {name}: a range")?,
            Access::Documents(_, false) => write!(f, "all documents of {name}, no index")?,
            Access::Entries { index, equal, spans, narrowed } => {
                let mut parts: Vec<String> = index
                    .fields
                    .iter()
                    .zip(equal)
                    .map(|(field, value)| format!("{field} = {}", shown(value)))
                    .collect();
                if *narrowed && let Some(field) = index.fields.get(equal.len()) {
                    parts.push(match spans.len() {
                        1 => format!("{field} in a range"),
                        many => format!("{field} in {many} values"),
                    });
                }
                if parts.is_empty() {
                    parts.push("all entries".to_owned());
                }
                write!(f, "index {} of {name}: {}", index.name, parts.join(", "))?;
            }
        }
        f.write_str(match &self.order {
            Order::Exact => "; in order",
            Order::Grouped(fields) if fields.is_empty() => "; sorted afterwards",
            Order::Grouped(_) => "; in order but for ties",
        })
    }
}

/// Chooses how to serve `filter`. `None` for options means that order does not matter.
pub(crate) fn plan<'a>(collection: &'a Collection, filter: &Filter, options: Option<&FindOptions>) -> Plan<'a> {
    let required = filter.required();
    let unsorted = Sort::default();
    let sort = options.map_or(&unsorted, |options| &options.sort);
    // A field that the filter binds to one value orders nothing.
    let fields: Vec<(&Path, bool)> = sort.fields.iter().map(|(path, descends)| (path, *descends)).collect();
    let free: Vec<(&Path, bool)> =
        fields.iter().copied().filter(|(path, _)| equality(&required, path).is_none()).collect();
    let by_id = if free.is_empty() { Order::Exact } else { Order::Grouped(Vec::new()) };
    let made = |access, direction, order| {
        let order = if options.is_none() { Order::Exact } else { order };
        Plan { collection, access, direction, order, advice: String::new() }
    };

    if let Some(ids) = bound_ids(&required) {
        return made(Access::Ids(ids), directed(sort.id_descends), by_id);
    }
    let mut best: Option<((usize, bool, bool), Plan<'a>)> = None;
    for index in collection.indexes.iter().filter(|index| index.ready) {
        let (access, bound, narrowed) = entries(collection, index, &required);
        let (direction, order) = order_of(&index.fields[bound..], &free, sort);
        let ordered = order != Order::Grouped(Vec::new());
        let limited = options.is_some_and(|options| options.limit.is_some());
        if bound == 0 && !narrowed && !(ordered && limited && !free.is_empty()) {
            continue;
        }
        // A prefix counts most, a range next; only then whether it saves sorting.
        let score = (bound, narrowed, ordered);
        if best.as_ref().is_none_or(|(best, _)| score > *best) {
            best = Some((score, made(access, direction, order)));
        }
    }
    let mut plan = match best {
        Some((_, plan)) => plan,
        None => {
            let range = id_range(&collection.name, &required);
            let narrowed = range != row::all(&collection.name);
            made(Access::Documents(range, narrowed), directed(sort.id_descends), by_id)
        }
    };
    plan.advice = advice(&plan, &required, &free);
    plan
}

fn directed(descends: bool) -> Direction {
    if descends { Direction::Descending } else { Direction::Ascending }
}

/// The one value that `path` must equal.
fn equality<'a>(required: &[(&'a Path, &'a Test)], path: &Path) -> Option<&'a Value> {
    required.iter().find_map(|(other, test)| match test {
        Test::Equal(value) if *other == path => Some(value),
        _ => None,
    })
}

/// The ids that the filter names, if it does; those that are no text belong to no document.
fn bound_ids(required: &[(&Path, &Test)]) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let on_id = || required.iter().filter(|(path, _)| path.is_id());
    let one = on_id().find_map(|(_, test)| match test {
        Test::Equal(value) => Some(text(value).into_iter().collect()),
        _ => None,
    });
    one.or_else(|| {
        on_id().find_map(|(_, test)| match test {
            Test::In(values) => {
                let mut ids: Vec<String> = values.iter().filter_map(text).collect();
                ids.sort_unstable();
                ids.dedup();
                Some(ids)
            }
            _ => None,
        })
    })
}

/// The documents of a collection as far as ranges of `_id` narrow them.
fn id_range(collection: &str, required: &[(&Path, &Test)]) -> Range {
    let mut range = row::all(collection);
    for (path, test) in required {
        if let Test::Range(bound, value) = test
            && path.is_id()
        {
            match value {
                Value::Text(id) => {
                    narrow(&mut range, *bound, KeyBuffer::new(space::DOCUMENT).name(collection).name(id))
                }
                // Ids are texts: nothing else compares with them.
                _ => range.high = range.low.clone(),
            }
        }
    }
    range
}

/// Narrows a range of keys to one side of those that go on after `key`.
fn narrow(range: &mut Range, bound: Bound, key: KeyBuffer) {
    match bound {
        Bound::AtLeast => raise(range, key.into_vec().into()),
        Bound::Above => raise(range, row::past(key)),
        Bound::Below => lower(range, key.into_vec().into()),
        Bound::AtMost => lower(range, row::past(key)),
    }
}

fn raise(range: &mut Range, low: Bytes) {
    match &range.low {
        End::Included(old) | End::Excluded(old) if *old >= low => {}
        _ => range.low = End::Included(low),
    }
}

fn lower(range: &mut Range, high: Bytes) {
    match &range.high {
        End::Included(old) | End::Excluded(old) if *old <= high => {}
        _ => range.high = End::Excluded(high),
    }
}

/// How an index serves: its access, how many of its first fields are bound to one value, whether more narrows it.
fn entries<'a>(collection: &Collection, index: &'a Index, required: &[(&Path, &Test)]) -> (Access<'a>, usize, bool) {
    let mut prefix = index.prefix(&collection.name);
    let mut equal = Vec::new();
    for field in &index.fields {
        let Some(value) = equality(required, field) else { break };
        prefix = prefix.element(value);
        equal.push(value.clone());
    }
    let bound = equal.len();
    let next = index.fields.get(bound);
    let tests = || required.iter().filter(|(path, _)| Some(*path) == next).map(|(_, test)| *test);

    let listed = tests().find_map(|test| match test {
        Test::In(values) => Some(values),
        _ => None,
    });
    if let Some(values) = listed {
        let mut keys: Vec<KeyBuffer> = values.iter().map(|value| prefix.clone().element(value)).collect();
        keys.sort_unstable();
        keys.dedup();
        let spans = keys.iter().map(row::going_on).collect();
        return (Access::Entries { index, equal, spans, narrowed: true }, bound, true);
    }
    let mut range = row::going_on(&prefix);
    let mut narrowed = false;
    for test in tests() {
        if let Test::Range(bound, value) = test {
            narrowed = true;
            let (first, last) = type_bounds(value);
            raise(&mut range, prefix.clone().raw(&[first]).into_vec().into());
            lower(&mut range, prefix.clone().raw(&[last + 1]).into_vec().into());
            narrow(&mut range, *bound, prefix.clone().element(value));
        }
    }
    (Access::Entries { index, equal, spans: vec![range], narrowed }, bound, narrowed)
}

/// The first bytes of the elements of a value's type, lowest and highest.
fn type_bounds(value: &Value) -> (u8, u8) {
    let first = |value: &Value| {
        let mut bytes = element::Encoded::new();
        element::put_element(&mut bytes, value);
        // Every element begins with its type.
        bytes.first().copied().unwrap_or_default()
    };
    match value {
        Value::Bool(_) => (first(&Value::Bool(false)), first(&Value::Bool(true))),
        value => (first(value), first(value)),
    }
}

/// The direction in which to read entries that differ in `rest` of their fields, and the order that gives.
fn order_of(rest: &[Path], free: &[(&Path, bool)], sort: &Sort) -> (Direction, Order) {
    let descends = free.first().map_or(sort.id_descends, |(_, descends)| *descends);
    let agreeing =
        free.iter().zip(rest).take_while(|((path, down), field)| *path == *field && *down == descends).count();
    let all = agreeing == free.len() && agreeing == rest.len() && sort.id_descends == descends;
    let groups = || free[..agreeing].iter().map(|(path, _)| (*path).clone()).collect();
    let order = if all { Order::Exact } else { Order::Grouped(groups()) };
    (directed(descends), order)
}

/// What to do about a plan that reads too much.
fn advice(plan: &Plan<'_>, required: &[(&Path, &Test)], free: &[(&Path, bool)]) -> String {
    let name = &plan.collection.name;
    if !matches!(plan.access, Access::Documents(..)) {
        return "narrow the filter, or ask for fewer with `limit` and a `sort` in the order of the index".to_owned();
    }
    let equal = required.iter().filter(|(_, test)| matches!(test, Test::Equal(_))).map(|(path, _)| *path);
    let ranged =
        required.iter().filter(|(_, test)| matches!(test, Test::In(_) | Test::Range(..))).map(|(path, _)| *path);
    let mut fields: Vec<&str> = Vec::new();
    for path in equal.chain(ranged.take(1)).chain(free.iter().map(|(path, _)| *path)) {
        // The advice is for people: an index over many fields helps nobody.
        if fields.len() < 3 && !path.is_id() && !fields.contains(&path.as_str()) {
            fields.push(path.as_str());
        }
    }
    match fields[..] {
        [] => {
            "no index can serve this filter: name a field that it must equal, or ask for fewer with `limit`".to_owned()
        }
        [field] => format!("an index would serve: collection(\"{name}\").index(\"{field}\")"),
        _ => format!("an index would serve: collection(\"{name}\").index({fields:?})"),
    }
}
