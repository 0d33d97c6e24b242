//! Summaries: what a call of each function may do, so that a function can be looked at without those it calls.

use std::collections::BTreeMap;

use rhai::FnCallExpr;

use super::file::{File, Signature};
use super::flow;

/// Rounds after which nothing more is found out: calls that go deeper than the interpreter lets them.
const MOST_ROUNDS: usize = 64;

/// What a call of a function may do.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// It may return with tokens spent.
    pub(super) takes: bool,
    /// It may abort, other than because a limit refused.
    pub(super) aborts: bool,
    /// It may return.
    pub(super) returns: bool,
}

/// The functions that a file may call: its own private ones and the procedures of all files.
pub(super) struct Summaries {
    procedures: BTreeMap<Signature, Summary>,
    /// Those of each file, in the order of the files.
    privates: Vec<BTreeMap<Signature, Summary>>,
}

impl Summaries {
    /// Finds what every function may do, beginning with nothing until nothing is added.
    pub(super) fn of(files: &[File]) -> Summaries {
        let mut found =
            Summaries { procedures: BTreeMap::new(), privates: files.iter().map(|_| BTreeMap::new()).collect() };
        // Each round settles at least the functions that call only settled ones.
        for _ in 0..MOST_ROUNDS {
            let mut grown = false;
            for (number, file) in files.iter().enumerate() {
                for (signature, function) in file.functions.iter().filter(|(_, function)| !function.is_closure()) {
                    let summary = flow::summary(file, number, function, &found);
                    let all = if function.private { &mut found.privates[number] } else { &mut found.procedures };
                    grown |= all.insert(signature.clone(), summary) != Some(summary);
                }
            }
            if !grown {
                break;
            }
        }
        found
    }

    /// Whether calls of this function, in the file of this number, never return.
    pub(super) fn ends_the_call(&self, number: usize, call: &FnCallExpr) -> bool {
        self.get(number, call).is_some_and(|summary| !summary.returns)
    }

    /// What a call may do, when it is one of a function of the files.
    pub(super) fn get(&self, number: usize, call: &FnCallExpr) -> Option<Summary> {
        let signature = (call.name.clone(), call.args.len());
        let own = self.privates.get(number).and_then(|privates| privates.get(&signature));
        own.or_else(|| self.procedures.get(&signature)).copied()
    }
}
