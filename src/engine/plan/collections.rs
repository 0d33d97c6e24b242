//! Collections that change: their settings, their indexes, and how many documents the work behind it reads.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::document::catalogue::{self, Work};
use crate::document::collection::{CollectionSpec, IndexSpec, Ttl};
use crate::document::tally::{self, Rest};
use crate::error::Error;
use crate::script::Program;
use crate::time::format_duration_ms;
use crate::value::Value;

use super::{Change, Look, SettingPlan};

/// A collection that a deploy would change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CollectionPlan {
    /// Its name.
    pub collection: String,
    /// How it changes. The documents of one that is removed stay.
    pub change: Change,
    /// The settings that differ: `ttl`, `buffered`.
    pub settings: Vec<SettingPlan>,
    /// The indexes that differ, by name.
    pub indexes: Vec<IndexPlan>,
    /// How many documents are given another expiry.
    pub retimed: u64,
}

/// An index that a deploy would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IndexPlan {
    /// Its name: its fields, such as `plan,created_at`.
    pub index: String,
    /// How it changes. One that is removed is kept up to date and serves until
    /// [`drop_index`](crate::Engine::drop_index).
    pub change: Change,
    /// Whether its values are unique.
    pub unique: bool,
    /// How many documents its build reads; 0 when it is there already.
    pub reads: u64,
}

type Specs = BTreeMap<String, CollectionSpec>;

/// The plan of all collections; those that stay the same are left out.
pub(super) fn plan(look: &Look<'_>, before: Option<&Program>, after: &Program) -> Result<Vec<CollectionPlan>, Error> {
    let old = match before {
        Some(program) => declared(program),
        None => stored(look)?,
    };
    let new = declared(after);
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut plans = Vec::new();
    for name in names {
        let (was, is) = (old.get(name), new.get(name));
        let work = match is {
            Some(spec) => look.read(|tx| catalogue::foresee(tx, spec))?,
            None => Vec::new(),
        };
        let wanted = |work: &Work| match work {
            Work::Ttl => true,
            // An index that is only being dropped reads no documents.
            Work::Index(index) => is.is_some_and(|spec| spec.indexes.iter().any(|one| one.name == *index)),
        };
        let work: Vec<Work> = work.into_iter().filter(wanted).collect();
        let documents = if work.is_empty() { 0 } else { count(look, name)? };
        let reads = |one: &Work| if work.contains(one) { documents } else { 0 };
        let plan = CollectionPlan {
            collection: name.clone(),
            change: Change::of(was.is_some(), is.is_some()),
            settings: settings(was, is),
            indexes: indexes(was, is, |index| reads(&Work::Index(index.to_owned()))),
            retimed: reads(&Work::Ttl),
        };
        let same = plan.change == Change::Changed && plan.settings.is_empty() && plan.indexes.is_empty();
        if !same || plan.retimed > 0 {
            plans.push(plan);
        }
    }
    Ok(plans)
}

fn declared(program: &Program) -> Specs {
    program.collections().iter().map(|declared| (declared.spec.name.clone(), declared.spec.clone())).collect()
}

/// What the store knows, as if files declared it.
fn stored(look: &Look<'_>) -> Result<Specs, Error> {
    let mut specs = Specs::new();
    for name in look.read(catalogue::collections)? {
        if let Some(stored) = look.read(|tx| catalogue::stored(tx, &name))? {
            let spec = stored.into_spec(&name);
            specs.insert(name, spec);
        }
    }
    Ok(specs)
}

fn count(look: &Look<'_>, collection: &str) -> Result<u64, Error> {
    let (mut documents, mut next) = (0, Some(Rest::of(collection)));
    while let Some(rest) = next {
        let (more, left) = look.read(|tx| Ok(tally::step(tx, &rest)?))?;
        documents += more;
        next = left;
    }
    Ok(documents)
}

fn settings(was: Option<&CollectionSpec>, is: Option<&CollectionSpec>) -> Vec<SettingPlan> {
    let (Some(was), Some(is)) = (was, is) else { return Vec::new() };
    let ttl = |spec: &CollectionSpec| spec.ttl.as_ref().map(ttl_text);
    let buffered = |spec: &CollectionSpec| Some(Value::Bool(spec.buffered));
    let both = [("ttl", ttl(was), ttl(is)), ("buffered", buffered(was), buffered(is))];
    both.into_iter()
        .filter(|(_, before, after)| before != after)
        .map(|(setting, before, after)| SettingPlan { setting: setting.to_owned(), before, after })
        .collect()
}

fn ttl_text(ttl: &Ttl) -> Value {
    Value::Text(match ttl.after_ms {
        Some(ms) => format!("{} + {}", ttl.field, format_duration_ms(ms)),
        None => ttl.field.clone(),
    })
}

fn indexes(was: Option<&CollectionSpec>, is: Option<&CollectionSpec>, reads: impl Fn(&str) -> u64) -> Vec<IndexPlan> {
    let list = |spec: Option<&CollectionSpec>| -> BTreeMap<String, IndexSpec> {
        let indexes = spec.map(|spec| spec.indexes.clone()).unwrap_or_default();
        indexes.into_iter().map(|index| (index.name.clone(), index)).collect()
    };
    let (old, new) = (list(was), list(is));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let plan = |name: &String| {
        let (was, is) = (old.get(name), new.get(name));
        let reads = if is.is_some() { reads(name) } else { 0 };
        let plan = IndexPlan {
            index: name.clone(),
            change: Change::of(was.is_some(), is.is_some()),
            unique: is.or(was).is_some_and(|index| index.unique),
            reads,
        };
        (was != is || reads > 0).then_some(plan)
    };
    names.into_iter().filter_map(plan).collect()
}
