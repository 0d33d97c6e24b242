//! The limits that a decision asked, as HTTP fields tell of them.

use std::cmp::Reverse;

use crate::time::Timestamp;

use super::definition::Limit;
use super::settings::Settings;

/// One limit that was asked, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The limit with the settings that held.
    pub(super) limit: Limit,
    /// Tokens left.
    pub(super) remaining: i64,
    pub(super) refused: bool,
    /// When it was asked.
    pub(super) now: Timestamp,
    /// When the bucket is full again; of a limit that refused and will allow, when it does.
    pub(super) until: Timestamp,
}

impl Asked {
    /// The less, the more there is to tell: what refused the longest, then what has the least left.
    pub(super) fn slack(&self) -> (bool, Reverse<i64>, i64, &str, &Settings) {
        let refused_until = if self.refused { self.until.as_millis() } else { 0 };
        (!self.refused, Reverse(refused_until), self.remaining, self.limit.name(), self.limit.settings())
    }
}

/// Every limit that was asked, each name once. Shadow limits are not in it, nor those that an operator has lifted:
/// nobody should go slower for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllAsked {
    // Apart, because most decisions are of one limit, and should not allocate for it.
    first: Option<Asked>,
    others: Vec<Asked>,
}

impl AllAsked {
    pub(super) fn one(asked: Asked) -> AllAsked {
        AllAsked { first: Some(asked), others: Vec::new() }
    }

    /// Takes in the limits of another decision. Of one limit asked about several keys the tightest answer stays.
    pub(super) fn add(&mut self, next: AllAsked) {
        for asked in next.first.into_iter().chain(next.others) {
            let mut known = self.first.iter_mut().chain(&mut self.others);
            if let Some(known) = known.find(|known| known.limit.name() == asked.limit.name()) {
                if asked.slack() < known.slack() {
                    *known = asked;
                }
            } else if self.first.is_none() {
                self.first = Some(asked);
            } else {
                self.others.push(asked);
            }
        }
    }

    /// By name, so that the order in which limits were asked shows nowhere.
    pub(super) fn by_name(&self) -> Vec<&Asked> {
        let mut all: Vec<&Asked> = self.first.iter().chain(&self.others).collect();
        all.sort_by_key(|asked| asked.limit.name());
        all
    }
}
