//! Live buckets of a limit that changes: who gains, who loses, who begins afresh.

use serde::{Serialize, Serializer};

use crate::bucket::census::{self, Rest};
use crate::bucket::{self, Listed};
use crate::error::Error;
use crate::limit::{Key, Limit};
use crate::transaction::Transaction;

use super::{Change, LimitPlan, Look, SettingPlan};

/// The most winners and the most losers that are told.
const MOST_MOVES: usize = 5;

/// What a deploy does to the live buckets of a limit, operators' overrides applied before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BucketsPlan {
    /// How many there are.
    pub live: u64,
    /// How many have more tokens left at once. With `lose` and `stay` all of a changed limit; none of others.
    pub gain: u64,
    /// How many have fewer.
    pub lose: u64,
    /// How many have as many.
    pub stay: u64,
    /// The tokens that those who gain gain together; 2^64 - 1 stands for more.
    pub tokens_gained: u64,
    /// The tokens that those who lose lose together; 2^64 - 1 stands for more.
    pub tokens_lost: u64,
    /// How many begin afresh: they are of another kind, or of keys that are hashed on one side only.
    pub afresh: u64,
    /// How many blocks end early.
    pub unblocked: u64,
    /// How many have an override, which wins over the file.
    pub overridden: u64,
    /// How many of the overrides would no longer hold: the new limit cannot have such settings, or keys are hashed
    /// on one side only.
    pub overrides_lost: u64,
    /// Those who gain most, the most first.
    pub winners: Vec<BucketMove>,
    /// Those who lose most, the most first.
    pub losers: Vec<BucketMove>,
}

/// A bucket that has more or fewer tokens left after a deploy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BucketMove {
    /// The key, or its keyed hash.
    #[serde(serialize_with = "as_value")]
    pub key: Key,
    /// Tokens left now.
    pub before: i64,
    /// Tokens left after a deploy.
    pub after: i64,
}

fn as_value<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
    key.to_value().serialize(serializer)
}

/// The plan of one limit; `before` and `after` are not the same.
pub(super) fn plan(look: &Look<'_>, before: Option<&Limit>, after: Option<&Limit>) -> Result<LimitPlan, Error> {
    let name = before.or(after).map(Limit::name).unwrap_or_default();
    let mut buckets = BucketsPlan::default();
    let mut next = Some(Rest::of_limit(name));
    while let Some(rest) = next {
        // A step that clashes runs again, so that it only tells what it saw.
        let (seen, left) = look.read(|tx| {
            let (live, left) = census::step(tx, name, &rest)?;
            Ok((live.iter().filter_map(|one| Seen::of(tx, before, after, one)).collect::<Vec<_>>(), left))
        })?;
        seen.into_iter().for_each(|one| buckets.add(one));
        next = left;
    }
    let settings = match (before, after) {
        (Some(before), Some(after)) => before.differences(after),
        _ => Vec::new(),
    };
    Ok(LimitPlan {
        limit: name.to_owned(),
        change: Change::of(before.is_some(), after.is_some()),
        before: before.map(Limit::describe),
        after: after.map(Limit::describe),
        settings: settings
            .into_iter()
            .map(|(setting, before, after)| SettingPlan { setting: setting.to_owned(), before, after })
            .collect(),
        buckets,
    })
}

/// One bucket as it is and as it would be.
struct Seen {
    /// Tokens left, where the limit is there before and after.
    moved: Option<BucketMove>,
    afresh: bool,
    unblocked: bool,
    overridden: bool,
    override_lost: bool,
}

impl Seen {
    /// None for a bucket that no take reaches, before or after: its key is hashed on neither side, or on both.
    fn of(tx: &Transaction, before: Option<&Limit>, after: Option<&Limit>, one: &Listed) -> Option<Seen> {
        let reached = |limit: &Limit| one.key.is_hash() == limit.hashes_keys();
        let (was, is) = (before.filter(|limit| reached(limit)), after.filter(|limit| reached(limit)));
        if was.is_none() && is.is_none() {
            return None;
        }
        // Under a limit whose takes do not reach this bucket, its key has another one, which is full.
        let look = |limit: Option<&Limit>, reached: Option<&Limit>| match (reached, limit) {
            (Some(limit), _) => {
                let (decision, blocked) = bucket::look(tx, limit, one);
                Some((decision.remaining, blocked))
            }
            (None, Some(limit)) => Some((limit.max_tokens(), None)),
            (None, None) => None,
        };
        let (old, new) = (look(before, was), look(after, is));
        let moved = match (old, new) {
            (Some((before, _)), Some((after, _))) => Some(BucketMove { key: one.key.clone(), before, after }),
            _ => None,
        };
        Some(Seen {
            moved,
            afresh: after.is_some_and(|after| !bucket::continues(after, one)),
            unblocked: matches!((old, new), (Some((_, Some(_))), Some((_, None)))),
            overridden: one.ruling.is_some(),
            override_lost: one.ruling.as_ref().is_some_and(|ruling| match (is, after) {
                (Some(is), _) => !ruling.fits(is),
                (None, after) => after.is_some(),
            }),
        })
    }
}

impl BucketsPlan {
    fn add(&mut self, one: Seen) {
        self.live += 1;
        self.afresh += u64::from(one.afresh);
        self.unblocked += u64::from(one.unblocked);
        self.overridden += u64::from(one.overridden);
        self.overrides_lost += u64::from(one.override_lost);
        let Some(moved) = one.moved else { return };
        let by = moved.before.abs_diff(moved.after);
        if moved.after > moved.before {
            self.gain += 1;
            self.tokens_gained = self.tokens_gained.saturating_add(by);
            keep_largest(&mut self.winners, moved);
        } else if moved.after < moved.before {
            self.lose += 1;
            self.tokens_lost = self.tokens_lost.saturating_add(by);
            keep_largest(&mut self.losers, moved);
        } else {
            self.stay += 1;
        }
    }
}

/// Puts a move where it belongs among the largest, of equal ones behind those that came first.
fn keep_largest(largest: &mut Vec<BucketMove>, moved: BucketMove) {
    let by = |one: &BucketMove| one.before.abs_diff(one.after);
    let at = largest.partition_point(|other| by(other) >= by(&moved));
    if at < MOST_MOVES {
        largest.insert(at, moved);
        largest.truncate(MOST_MOVES);
    }
}
