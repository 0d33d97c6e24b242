//! What an operation on buckets tells a trace.

use crate::limit::{Decision, Limit, Mode, Standing, Verdict};
use crate::time::{Stopwatch, Timestamp};
use crate::trace::{Consulted, Filling, Step};
use crate::transaction::Transaction;

use super::Found;

/// An operation on one bucket that somebody wants to know of, from where it has read the bucket.
pub(super) struct Witness {
    begun: Stopwatch,
    before: Filling,
}

/// What an operation asked, and what came of it.
pub(super) struct Account {
    pub(super) operation: &'static str,
    /// Tokens; none where the operation has no cost.
    pub(super) cost: Option<i64>,
    pub(super) mode: Mode,
    pub(super) decision: Option<Decision>,
    pub(super) wrote: bool,
}

impl Witness {
    /// Looks at the bucket as it was found, when the operation is measured at all.
    pub(super) fn of(begun: Option<Stopwatch>, standing: &Standing<'_>) -> Option<Witness> {
        begun.map(|begun| Witness { begun, before: filling(standing) })
    }

    /// The step, from the bucket as it stands now.
    pub(super) fn step(
        self,
        tx: &Transaction,
        limit: &Limit,
        found: &Found<'_>,
        standing: &Standing<'_>,
        account: Account,
    ) -> Consulted {
        let Account { operation, cost, mode, decision, wrote } = account;
        let passes_at = match standing.verdict(cost.unwrap_or(1).into(), mode) {
            Verdict::Fits => Some(tx.now()),
            // An operator's ban may last for ever; a cost that is too high never fits.
            Verdict::Refused { wait: 0, .. } => None,
            Verdict::Refused { wait, .. } => Some(tx.now().saturating_add_millis(wait)),
        };
        let limit = found.limit.as_ref().unwrap_or(limit);
        Consulted {
            operation,
            name: limit.name().to_owned(),
            describe: limit.describe(),
            key: found.key.clone().into_owned(),
            cost,
            before: self.before,
            after: filling(standing),
            decision,
            passes_at: passes_at.filter(|at| *at != Timestamp::NEVER),
            ruling: found.ruled.clone(),
            shadow: limit.is_shadow(),
            wrote,
            undone: false,
            took: self.begun.elapsed(),
        }
    }
}

/// Tells the trace, once what the step wrote is written.
pub(super) fn tell(tx: &mut Transaction, step: Option<Consulted>) {
    if let Some(step) = step {
        tx.tell(Step::Limit(step));
    }
}

fn filling(standing: &Standing<'_>) -> Filling {
    let Decision { used, remaining, limit, .. } = standing.decision(Verdict::Fits);
    Filling { used, remaining, limit }
}
