//! A combination: one decision out of the answers of several limits.
//!
//! It is allowed when every one allows, never when one never does; the wait is the longest of those that refused,
//! the reason that of the longest wait. The order of the answers decides nothing but the order of the names.

use crate::time::Timestamp;

use super::asked::AllAsked;
use super::decision::{Decision, Reason};

/// Answers being put together.
#[derive(Debug, Default)]
pub(crate) struct Combination {
    so_far: Option<Decision>,
    /// Whether the numbers are of a shadow limit: any other's come first.
    shadow: bool,
}

impl Combination {
    /// Takes in the answer of one more limit, which may be a shadow one.
    pub(crate) fn add(&mut self, next: Decision, shadow: bool) {
        let Some(so_far) = &mut self.so_far else {
            self.so_far = Some(next);
            self.shadow = shadow;
            return;
        };
        so_far.allowed &= next.allowed;
        so_far.delay = so_far.delay.max(next.delay);
        // A wait of a limit that never allows is none; it outweighs every other.
        let weight = |decision: &Decision| (decision.reason == Reason::Never, decision.retry_after, decision.reason);
        if weight(&next) > weight(so_far) {
            (so_far.retry_after, so_far.reason) = (next.retry_after, next.reason);
        }
        for violation in next.violated {
            match so_far.violated.iter_mut().find(|known| known.name == violation.name) {
                // One limit that refused for several keys is named once.
                Some(known) => known.wait = known.wait.max(violation.wait),
                None => so_far.violated.push(violation),
            }
        }
        for name in next.would_refuse {
            if !so_far.would_refuse.contains(&name) {
                so_far.would_refuse.push(name);
            }
        }
        so_far.leases.extend(next.leases);
        so_far.asked.add(next.asked);
        let tightness = (shadow, next.remaining, &next.name, next.limit, next.used, next.reset_at);
        if tightness < (self.shadow, so_far.remaining, &so_far.name, so_far.limit, so_far.used, so_far.reset_at) {
            (so_far.remaining, so_far.limit, so_far.used) = (next.remaining, next.limit, next.used);
            (so_far.reset_at, so_far.name) = (next.reset_at, next.name);
            self.shadow = shadow;
        }
    }

    /// The one decision. Of no limits: allowed, with no tokens, and full `now`.
    pub(crate) fn decision(self, now: Timestamp) -> Decision {
        self.so_far.unwrap_or_else(|| Decision {
            allowed: true,
            limit: 0,
            remaining: 0,
            used: 0,
            retry_after: 0,
            reset_at: now,
            delay: 0,
            reason: Reason::None,
            violated: Vec::new(),
            would_refuse: Vec::new(),
            leases: Vec::new(),
            asked: AllAsked::default(),
            name: "".into(),
        })
    }
}
