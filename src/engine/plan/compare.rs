//! Two programs compared: which procedures and limits differ, and how. No store.

use std::collections::BTreeSet;

use crate::limit::Limit;
use crate::script::Program;

use super::{Change, ProcedurePlan};

impl Change {
    /// How something changes that is there before, after, or both.
    pub(super) fn of(before: bool, after: bool) -> Change {
        match (before, after) {
            (true, false) => Change::Removed,
            (false, _) => Change::Added,
            (true, true) => Change::Changed,
        }
    }
}

/// The procedures that differ, by name.
pub(super) fn procedures(before: Option<&Program>, after: &Program) -> Vec<ProcedurePlan> {
    let old = before.map(Program::fingerprints).unwrap_or_default();
    let new = after.fingerprints();
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let plan = |name: &String| {
        let signature = |program: &Program| program.procedure(name).map(|found| found.signature.clone());
        let (was, is) = (before.and_then(signature), signature(after));
        let (mut body, mut helpers) = (false, Vec::new());
        if let (Some(was), Some(is)) = (old.get(name), new.get(name)) {
            body = was.body != is.body;
            let used: BTreeSet<&String> = was.helpers.keys().chain(is.helpers.keys()).collect();
            // What only one of them uses shows in its body, or in the helper that uses it.
            let differs = |helper: &&String| matches!((was.helpers.get(*helper), is.helpers.get(*helper)), (Some(was), Some(is)) if was != is);
            helpers = used.into_iter().filter(differs).cloned().collect();
        }
        let same = was == is && !body && helpers.is_empty();
        let change = Change::of(was.is_some(), is.is_some());
        let plan = ProcedurePlan { procedure: name.clone(), change, before: was, after: is, body, helpers };
        (!same).then_some(plan)
    };
    names.into_iter().filter_map(plan).collect()
}

/// The limits that differ, by name: each as it is and as it would be.
pub(super) fn limits(before: Option<&Program>, after: &Program) -> Vec<(Option<Limit>, Option<Limit>)> {
    let old = before.map(Program::limits).unwrap_or_default();
    let new = after.limits();
    let names: BTreeSet<&str> = old.iter().chain(new).map(|declared| declared.limit.name()).collect();
    let named = |list: &[crate::script::DeclaredLimit], name: &str| {
        list.iter().find(|declared| declared.limit.name() == name).map(|declared| declared.limit.0.clone())
    };
    names.into_iter().map(|name| (named(old, name), named(new, name))).filter(|(old, new)| old != new).collect()
}
