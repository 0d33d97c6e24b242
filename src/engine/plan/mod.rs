//! Plans: what a deploy would change, found out before it and without writing anything.
//!
//! The files are compiled as a deploy would compile them and compared with the current stored release; without one,
//! with what the store knows of collections. Of each limit that changes, every live bucket is looked at under the old
//! settings and the new. That reads in steps, each a transaction of its own at one instant of the clock: on a store
//! that others write meanwhile, a bucket counts as it stood at some moment of the plan.
//!
//! A plan cannot know limits that are built while a procedure runs, nor whether the documents there are allow a
//! new unique index.

mod buckets;
mod collections;
mod compare;

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::bucket::census::{self, Rest};
use crate::document::error::DocumentError;
use crate::error::Error;
use crate::release::{self, ReleaseFile};
use crate::script::{Program, SourceFile};
use crate::time::Timestamp;
use crate::transaction::Transaction;
use crate::value::Value;

use super::Engine;
use super::load::{read_folder, source_files};

pub use buckets::{BucketMove, BucketsPlan};
pub use collections::{CollectionPlan, IndexPlan};

/// The most names of undeclared limits that are told.
const MOST_NAMES: usize = 5;

/// What a deploy would change; see [`Engine::plan`].
///
/// As JSON it is one object with every key always there.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The number of the release it is compared with; none when none is stored, or it does not load.
    pub against: Option<u64>,
    /// Why the stored release cannot be compared with: it does not load with this version.
    pub unloadable: Option<String>,
    /// The procedures that change, by name.
    pub procedures: Vec<ProcedurePlan>,
    /// The limits that change, by name.
    pub limits: Vec<LimitPlan>,
    /// The collections that change, by name.
    pub collections: Vec<CollectionPlan>,
    /// Live buckets of limits that no file declares, before or after.
    pub undeclared: Undeclared,
}

/// How something differs between what runs and what would be deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is there before and after, and not the same.
    Changed,
}

/// A procedure that a deploy would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProcedurePlan {
    /// Its name.
    pub procedure: String,
    /// How it changes.
    pub change: Change,
    /// How it is called now, such as `login(email, password: string)`.
    pub before: Option<String>,
    /// How it would be called.
    pub after: Option<String>,
    /// Whether its body differs, comments and layout aside.
    pub body: bool,
    /// The constants and private functions of its file that it uses and that differ, by name.
    pub helpers: Vec<String>,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SettingPlan {
    /// Its name, as scripts write it.
    pub setting: String,
    /// What it is now; spans are text such as `5m`. None where there is no such setting.
    pub before: Option<Value>,
    /// What it would be.
    pub after: Option<Value>,
}

/// A limit that a deploy would change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LimitPlan {
    /// Its name.
    pub limit: String,
    /// How it changes.
    pub change: Change,
    /// What it admits now, in words.
    pub before: Option<String>,
    /// What it would admit.
    pub after: Option<String>,
    /// The settings that differ; none unless it is changed.
    pub settings: Vec<SettingPlan>,
    /// What becomes of its live buckets.
    pub buckets: BucketsPlan,
}

/// Live buckets whose limit no file declares: procedures built it while they ran, or it was removed earlier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Undeclared {
    /// How many names they have.
    pub limits: u64,
    /// How many there are.
    pub buckets: u64,
    /// A few of the names.
    pub names: Vec<String>,
}

impl Plan {
    /// Whether a deploy would change nothing of what runs.
    pub fn is_empty(&self) -> bool {
        self.procedures.is_empty() && self.limits.is_empty() && self.collections.is_empty()
    }
}

impl Engine {
    /// What [`deploy`](Engine::deploy) of this folder would change. Writes nothing, also where it may.
    ///
    /// Errors: [`Error::Compile`], when the files do not load; [`Error::NotFound`], when there is no such folder.
    pub fn plan(&self, folder: impl AsRef<Path>) -> Result<Plan, Error> {
        self.plan_of(read_folder(folder.as_ref())?)
    }

    /// What a deploy of these files would change; those of an earlier [`Release`](crate::Release) show a rollback.
    ///
    /// Errors: [`Error::Compile`], when the files do not load.
    ///
    /// ```
    /// use tollgate::{Change, Engine, ReleaseFile};
    /// let engine = Engine::builder().memory().open()?;
    /// let text = r#"const API = fixed_window("api", 9, "1m"); fn spend(user) { API.enforce(user) }"#;
    /// let plan = engine.plan_files(&[ReleaseFile { path: "a.rhai".into(), text: text.into() }])?;
    /// assert_eq!(plan.against, None);
    /// assert_eq!((plan.limits[0].change, plan.limits[0].limit.as_str()), (Change::Added, "api"));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn plan_files(&self, files: &[ReleaseFile]) -> Result<Plan, Error> {
        self.plan_of(files.iter().map(|file| SourceFile::new(&file.path, &file.text)).collect())
    }

    fn plan_of(&self, files: Vec<SourceFile>) -> Result<Plan, Error> {
        self.check_open()?;
        let compile = |files| Program::compile(files, &self.inner.natives, &self.inner.budget);
        let after = compile(files).map_err(Error::Compile)?;
        let look = Look { engine: self, now: self.now() };
        let stored = look.read(|tx| Ok(release::current(tx)?))?;
        let mut against = None;
        let mut unloadable = None;
        let mut before = None;
        if let Some(release) = stored {
            match compile(source_files(&release)) {
                Ok(program) => (before, against) = (Some(program), Some(release.number)),
                // A release that no longer loads must not keep anybody from planning a better one.
                Err(faults) => {
                    let first = faults.first().map(ToString::to_string).unwrap_or_default();
                    let first = first.lines().next().unwrap_or_default();
                    unloadable = Some(format!("release {} does not load: {first}", release.number));
                }
            }
        }
        Ok(Plan {
            against,
            unloadable,
            procedures: compare::procedures(before.as_ref(), &after),
            limits: compare::limits(before.as_ref(), &after)
                .into_iter()
                .map(|(before, after)| buckets::plan(&look, before.as_ref(), after.as_ref()))
                .collect::<Result<_, _>>()?,
            collections: collections::plan(&look, before.as_ref(), &after)?,
            undeclared: undeclared(&look, before.as_ref(), &after)?,
        })
    }
}

/// The store at one instant, read in steps.
struct Look<'e> {
    engine: &'e Engine,
    now: Timestamp,
}

impl Look<'_> {
    /// One step.
    fn read<T>(&self, work: impl Fn(&mut Transaction) -> Result<T, DocumentError>) -> Result<T, Error> {
        Ok(self.engine.repeat_at(true, Some(self.now), work)?.0)
    }
}

fn undeclared(look: &Look<'_>, before: Option<&Program>, after: &Program) -> Result<Undeclared, Error> {
    let limits = before.map(Program::limits).unwrap_or_default().iter().chain(after.limits());
    let known: BTreeSet<String> = limits.map(|declared| declared.limit.name().to_owned()).collect();
    let mut found = Undeclared::default();
    let (mut last, mut next) = (String::new(), Some(Rest::of_all()));
    while let Some(rest) = next {
        let (counted, left) = look.read(|tx| Ok(census::count_step(tx, &known, &rest)?))?;
        for one in counted {
            found.buckets += one.live;
            // Names come in order, and none is empty: one that goes on into the next step is the last one.
            if last != one.limit_name {
                found.limits += 1;
                if found.names.len() < MOST_NAMES {
                    found.names.push(one.limit_name.clone());
                }
                last = one.limit_name;
            }
        }
        next = left;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ManualClock;

    fn file(text: &str) -> [ReleaseFile; 1] {
        [ReleaseFile { path: "a.rhai".into(), text: text.into() }]
    }

    /// An engine with one file deployed.
    fn deployed(text: &str) -> (Engine, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.rhai"), text).unwrap();
        let clock = ManualClock::at(Timestamp::from_millis(1_000_000));
        let engine = Engine::builder().memory().clock(clock).sweep_interval(None).open().unwrap();
        engine.deploy(folder.path()).unwrap();
        (engine, folder)
    }

    #[test]
    fn counts_are_exact_over_many_steps_and_nothing_is_written() {
        let (engine, folder) = deployed(r#"const API = fixed_window("api", 10, "1h");"#);
        let api = engine.limit("api").unwrap();
        for n in 0..census::STEP_ROWS as i64 * 2 + 7 {
            let _ = engine.transaction(|tx| tx.take(&api, n, n % 10 + 1)).unwrap();
        }
        let commits = engine.stats().commits;
        let plan = engine.plan_files(&file(r#"const API = fixed_window("api", 5, "1h");"#)).unwrap();
        let buckets = &plan.limits[0].buckets;
        // Those who had spent all have as much as before: nothing.
        assert_eq!((buckets.live, buckets.gain, buckets.lose, buckets.stay), (1_031, 0, 928, 103));
        let left = |n: i64| 10 - (n % 10 + 1);
        let lost: i64 = (0..1_031).map(|n| left(n) - (left(n) - 5).max(0)).sum();
        assert_eq!((buckets.tokens_gained, buckets.tokens_lost), (0, lost as u64));
        assert_eq!(buckets.losers.len(), 5);
        assert!(buckets.losers.iter().all(|one| one.before - one.after == 5) && buckets.winners.is_empty());
        assert!(engine.plan(folder.path()).unwrap().is_empty());
        assert_eq!(engine.stats().commits, commits);
    }

    #[test]
    fn another_kind_ends_blocks_and_hashed_keys_lose_their_overrides() {
        let (engine, _folder) = deployed(r#"const API = fixed_window("api", 2, "1h");"#);
        let api = engine.limit("api").unwrap();
        let hour = std::time::Duration::from_secs(3_600);
        let _ = engine.transaction(|tx| tx.take(&api, "ada", 2)).unwrap();
        let _ = engine.transaction(|tx| tx.block(&api, "eve", hour)).unwrap();
        engine.transaction(|tx| tx.ban(&api, "mallory", Timestamp::MAX)).unwrap();
        let buckets = |text: &str| engine.plan_files(&file(text)).unwrap().limits.remove(0).buckets;
        let kind = buckets(r#"const API = token_bucket("api", 2, "1h");"#);
        assert_eq!((kind.live, kind.afresh, kind.gain, kind.unblocked), (3, 3, 1, 1));
        assert_eq!((kind.overridden, kind.overrides_lost), (1, 0), "a ban holds whatever the kind");
        let hashed = buckets(r#"const API = fixed_window("api", 2, "1h").hash_keys();"#);
        assert_eq!((hashed.afresh, hashed.unblocked, hashed.overridden, hashed.overrides_lost), (3, 2, 1, 1));
        let removed = buckets("fn f() {}");
        assert_eq!((removed.live, removed.gain, removed.stay, removed.afresh), (3, 0, 0, 0));
    }

    #[test]
    fn collections_say_what_their_work_reads_and_without_a_release_the_store_is_asked() {
        let engine =
            Engine::builder().memory().source("a.rhai", r#"collection("users").index("plan");"#).open().unwrap();
        for _ in 0..70 {
            engine.transaction(|tx| tx.insert("users", crate::value::Map::new())).unwrap();
        }
        let plan = |text: &str| engine.plan_files(&file(text)).unwrap().collections;
        assert_eq!(plan(r#"collection("users").index("plan");"#), []);
        let changed = plan(
            r#"collection("users").unique("plan").index("name").ttl("until").buffered(); collection("new").index("a");"#,
        );
        assert_eq!(
            (changed[0].collection.as_str(), changed[0].change, changed[0].indexes[0].reads),
            ("new", Change::Added, 0)
        );
        let users = &changed[1];
        let reads: Vec<_> =
            users.indexes.iter().map(|one| (one.index.as_str(), one.change, one.unique, one.reads)).collect();
        assert_eq!(reads, [("name", Change::Added, false, 70), ("plan", Change::Changed, true, 70)]);
        assert_eq!(users.settings.iter().map(|one| one.setting.as_str()).collect::<Vec<_>>(), ["ttl", "buffered"]);
        assert_eq!(users.retimed, 70);
        let fewer = plan(r#"collection("users");"#);
        assert_eq!((fewer[0].indexes[0].change, fewer[0].indexes[0].reads), (Change::Removed, 0));
        assert_eq!(plan("fn f() {}")[0].change, Change::Removed);
    }
}
