//! Documents against a plain model: a list of maps that is scanned for every answer and knows no index.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::option::weighted;
use proptest::prelude::*;

use crate::store::{Direction, MemoryStore, Range, key};
use crate::time::Timestamp;
use crate::transaction::Transaction;
use crate::value::{Map, Value};

use super::build::{Progress, build_step};
use super::catalogue::{Catalogue, Work, declare, drop_index, pending};
use super::change::Change;
use super::collection::{CollectionSpec, IndexSpec, Ttl};
use super::compare::{equal, or_null};
use super::error::{DataError, DocumentError};
use super::filter::Filter;
use super::options::FindOptions;
use super::path::Path;
use super::verify::verify;
use super::{expire, find, write};

const NAME: &str = "things";

#[derive(Clone, Debug)]
enum Action {
    Insert(Map),
    Update(Map, Map),
    UpdateOne(Map, Map),
    Upsert(Map, Map),
    Delete(Map),
    DeleteOne(Map),
    Find(Map, Map),
    Declare(Vec<&'static str>, bool),
    /// Steps of whatever work is pending.
    Build(usize),
    Drop(usize),
    SetTtl(bool),
    Advance(i64),
    Sweep,
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0i64..4).prop_map(Value::Int),
        1 => (0i64..6).prop_map(|n| Value::Float(n as f64 / 2.0)),
        2 => prop_oneof![Just("a"), Just("b"), Just("a\0"), Just("a\0b"), Just("")].prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => (0i64..2).prop_map(|n| Value::Array(vec![n.into()])),
        1 => (0i64..2).prop_map(|n| Value::Map(Map::from([("x".to_owned(), n.into())]))),
    ]
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("a"), 3 => Just("b"), 1 => Just("c.d")].prop_map(str::to_owned)
}

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![Just("a"), Just("b"), Just("a\0"), Just("k7"), Just("k3"), Just("z")].prop_map(Value::from)
}

fn document() -> impl Strategy<Value = Map> {
    (
        weighted(0.2, id()),
        weighted(0.8, scalar()),
        weighted(0.8, scalar()),
        weighted(0.3, scalar()),
        weighted(0.3, 0i64..60),
    )
        .prop_map(|(id, a, b, d, exp)| {
            let mut map = Map::new();
            let c = d.map(|d| Value::Map(Map::from([("d".to_owned(), d)])));
            for (name, value) in [("_id", id), ("a", a), ("b", b), ("c", c), ("exp", exp.map(Value::Int))] {
                if let Some(value) = value {
                    map.insert(name.to_owned(), value);
                }
            }
            map
        })
}

fn operators() -> impl Strategy<Value = Value> {
    let one = prop_oneof![
        (prop_oneof![Just("$eq"), Just("$ne")], scalar()),
        (
            prop_oneof![Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte")],
            scalar().prop_filter("ranges need a value", |value| !value.is_null())
        ),
        (prop_oneof![Just("$in"), Just("$nin")], proptest::collection::vec(scalar(), 0..4).prop_map(Value::Array)),
        (Just("$exists"), any::<bool>().prop_map(Value::Bool)),
    ];
    let some = proptest::collection::vec(one, 1..3)
        .prop_map(|pairs| Value::Map(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()));
    prop_oneof![4 => some.clone(), 1 => some.prop_map(|inner| Value::Map(Map::from([("$not".to_owned(), inner)])))]
}

fn flat_filter() -> impl Strategy<Value = Map> {
    let asked = prop_oneof![2 => scalar(), 2 => operators()];
    let on_id = prop_oneof![
        id(),
        (prop_oneof![Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte"), Just("$ne")], id())
            .prop_map(|(name, id)| Value::Map(Map::from([(name.to_owned(), id)]))),
        proptest::collection::vec(id(), 0..3)
            .prop_map(|ids| Value::Map(Map::from([("$in".to_owned(), Value::Array(ids))]))),
    ];
    (proptest::collection::vec((field(), asked), 0..3), proptest::option::weighted(0.2, on_id)).prop_map(
        |(fields, on_id)| {
            let mut map: Map = fields.into_iter().collect();
            map.extend(on_id.map(|asked| ("_id".to_owned(), asked)));
            map
        },
    )
}

fn filter() -> impl Strategy<Value = Map> {
    let listed = (
        prop_oneof![Just("$and"), Just("$or")],
        proptest::collection::vec(flat_filter().prop_map(Value::Map), 1..3),
        flat_filter(),
    );
    prop_oneof![
        5 => flat_filter(),
        1 => listed.prop_map(|(name, filters, mut beside)| {
            beside.insert(name.to_owned(), Value::Array(filters));
            beside
        }),
    ]
}

fn change() -> impl Strategy<Value = Map> {
    let one = prop_oneof![
        (field(), scalar()).prop_map(|(field, value)| ("$set", field, value)),
        (prop_oneof![Just("a"), Just("b")], -1i64..3).prop_map(|(field, n)| ("$inc", field.to_owned(), n.into())),
        (field(), Just(Value::Null)).prop_map(|(field, value)| ("$unset", field, value)),
        (field(), scalar()).prop_map(|(field, value)| ("$max", field, value)),
        (field(), scalar()).prop_map(|(field, value)| ("$push", field, value)),
        (field(), field()).prop_map(|(field, target)| ("$rename", field, target.into())),
        // Far off: what expires by the very change that should clash has no one answer.
        (10_000i64..10_010).prop_map(|at| ("$set", "exp".to_owned(), at.into())),
        (field(), scalar()).prop_map(|(field, value)| ("$setOnInsert", field, value)),
    ];
    proptest::collection::vec(one, 0..3).prop_map(|steps| {
        let mut map = Map::new();
        for (operator, field, value) in steps {
            let entry = map.entry(operator.to_owned()).or_insert_with(|| Value::Map(Map::new()));
            if let Value::Map(fields) = entry {
                fields.insert(field, value);
            }
        }
        map
    })
}

fn options() -> impl Strategy<Value = Map> {
    let field = (prop_oneof![Just("a"), Just("b"), Just("c.d"), Just("_id")], any::<bool>());
    let sort = proptest::collection::vec(field, 0..3).prop_map(|fields| {
        let named = fields.into_iter().map(|(field, down)| format!("{}{field}", if down { "-" } else { "" }));
        Value::Array(named.map(Value::Text).collect())
    });

    (weighted(0.7, sort), weighted(0.6, 0i64..6), weighted(0.3, 0i64..4)).prop_map(|(sort, limit, skip)| {
        let all = [("sort", sort), ("limit", limit.map(Value::Int)), ("skip", skip.map(Value::Int))];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    })
}

fn action() -> impl Strategy<Value = Action> {
    let fields = prop_oneof![
        Just(vec!["a"]),
        Just(vec!["b"]),
        Just(vec!["a", "b"]),
        Just(vec!["b", "a", "c.d"]),
        Just(vec!["c.d"])
    ];
    prop_oneof![
        8 => document().prop_map(Action::Insert),
        2 => (filter(), change()).prop_map(|(filter, change)| Action::Update(filter, change)),
        1 => (filter(), change()).prop_map(|(filter, change)| Action::UpdateOne(filter, change)),
        2 => (filter(), change()).prop_map(|(filter, change)| Action::Upsert(filter, change)),
        1 => filter().prop_map(Action::Delete),
        1 => filter().prop_map(Action::DeleteOne),
        8 => (filter(), options()).prop_map(|(filter, options)| Action::Find(filter, options)),
        3 => (fields, prop::bool::weighted(0.3)).prop_map(|(fields, unique)| Action::Declare(fields, unique)),
        3 => (1usize..6).prop_map(Action::Build),
        1 => (0usize..3).prop_map(Action::Drop),
        1 => any::<bool>().prop_map(Action::SetTtl),
        2 => (1i64..20).prop_map(Action::Advance),
        1 => Just(Action::Sweep),
    ]
}

/// The list of maps, and what is declared.
#[derive(Clone, Default)]
struct Model {
    documents: BTreeMap<String, Map>,
    unique: Vec<Vec<String>>,
    ttl: bool,
    now: i64,
}

impl Model {
    fn expire(&mut self) {
        let (ttl, now) = (self.ttl, self.now);
        self.documents.retain(|_, document| !ttl || !matches!(document.get("exp"), Some(Value::Int(at)) if *at <= now));
    }

    fn matching(&self, filter: &Filter) -> Vec<Map> {
        self.documents.values().filter(|document| filter.matches(document)).cloned().collect()
    }

    fn clashes(&self) -> bool {
        let all: Vec<&Map> = self.documents.values().collect();
        self.unique.iter().any(|fields| {
            let values = |map: &Map| -> Vec<Value> {
                fields.iter().map(|field| or_null(Path::parse(field).unwrap().find(map)).clone()).collect()
            };
            all.iter().enumerate().any(|(at, a)| {
                let a = values(a);
                a.iter().all(|value| !value.is_null())
                    && all[at + 1..].iter().any(|b| a.iter().zip(values(b)).all(|(a, b)| equal(a, &b)))
            })
        })
    }

    /// Puts documents if what then stands is allowed.
    fn put(&mut self, changed: Vec<Map>) -> Result<(), &'static str> {
        let before = self.documents.clone();
        for document in changed {
            self.documents.insert(document["_id"].as_str().unwrap().to_owned(), document);
        }
        if self.clashes() {
            self.documents = before;
            return Err("unique_violation");
        }
        self.expire();
        Ok(())
    }

    fn insert(&mut self, document: Map) -> Result<(), &'static str> {
        match self.documents.contains_key(document["_id"].as_str().unwrap()) {
            true => Err("unique_violation"),
            false => self.put(vec![document]),
        }
    }

    fn change(&mut self, found: Vec<Map>, change: &Change) -> Result<u64, &'static str> {
        let count = found.len() as u64;
        let changed = found.into_iter().map(|mut document| {
            change.apply(&mut document, false).map_err(|error| error.code)?;
            Ok(document)
        });
        let changed = changed.collect::<Result<_, &'static str>>()?;
        self.put(changed)?;
        Ok(count)
    }
}

struct World {
    store: Arc<MemoryStore>,
    catalogue: Catalogue,
    spec: CollectionSpec,
    model: Model,
    ids: u64,
}

fn code<T>(result: Result<T, DocumentError>) -> Result<T, &'static str> {
    result.map_err(|error| match error {
        DocumentError::Data(DataError { code, .. }) => code,
        other => panic!("{other}"),
    })
}

impl World {
    fn new() -> World {
        World {
            store: Arc::new(MemoryStore::new()),
            catalogue: Catalogue::new(),
            spec: CollectionSpec::new(NAME),
            model: Model::default(),
            ids: 0,
        }
    }

    fn begin(&self) -> Transaction {
        Transaction::over(self.store.clone(), Timestamp::from_millis(self.model.now))
    }

    /// One operation in a transaction of its own, committed whatever came of it: a failed one must have written nothing.
    fn run<T>(
        &self,
        operation: impl FnOnce(&mut Transaction, &super::collection::Collection) -> Result<T, DocumentError>,
    ) -> Result<T, &'static str> {
        let mut tx = self.begin();
        let collection = self.catalogue.collection(&mut tx, NAME).unwrap();
        let outcome = operation(&mut tx, &collection);
        tx.commit().unwrap();
        code(outcome)
    }

    /// Does the pending work to its end; a unique index that is refused leaves the declaration too.
    fn finish(&mut self) {
        loop {
            let mut tx = self.begin();
            let Some(work) = pending(&mut tx, NAME).unwrap().into_iter().next() else { return };
            let progress = build_step(&mut tx, NAME, &work, 3).unwrap();
            tx.commit().unwrap();
            if let Progress::Refused(error) = progress {
                assert_eq!(error.code, "unique_violation");
                assert!(self.model.clashes(), "{error}");
                let Work::Index(name) = work else { panic!("no ttl of these can be refused") };
                self.model.unique.retain(|fields| fields.join(",") != name);
                self.spec.indexes.retain(|index| index.name != name);
            }
        }
    }

    fn declare(&mut self) -> Vec<Work> {
        let mut tx = self.begin();
        let work = declare(&mut tx, &self.spec).unwrap();
        tx.commit().unwrap();
        work
    }

    fn step(&mut self, action: Action) {
        match action {
            Action::Insert(document) => {
                self.ids += 1;
                // Not in the order of their making.
                let fresh = format!("k{}", self.ids * 7 % 31 + self.ids / 31 * 31);
                let mut with_id = document.clone();
                with_id.entry("_id".to_owned()).or_insert_with(|| fresh.clone().into());
                let got = self.run(|tx, coll| write::insert(tx, coll, document, &mut || fresh.clone()));
                assert_eq!(got.map(|_| ()), self.model.insert(with_id));
            }
            Action::Update(filter, change) => {
                let filter = Filter::parse(&filter).unwrap();
                let Ok(change) = Change::parse(&change) else { return };
                let got = self.run(|tx, coll| write::update(tx, coll, &filter, &change));
                let found = self.model.matching(&filter);
                assert_eq!(got, self.model.change(found, &change), "{filter:?}");
            }
            Action::UpdateOne(filter, change) => {
                let filter = Filter::parse(&filter).unwrap();
                let Ok(change) = Change::parse(&change) else { return };
                let got = self.run(|tx, coll| write::update_one(tx, coll, &filter, &change));
                let found = self.model.matching(&filter).into_iter().take(1).collect();
                assert_eq!(got, self.model.change(found, &change));
            }
            Action::Upsert(filter, change) => self.upsert(filter, change),
            Action::Delete(filter) => {
                let filter = Filter::parse(&filter).unwrap();
                let got = self.run(|tx, coll| write::delete(tx, coll, &filter)).unwrap();
                let found = self.model.matching(&filter);
                assert_eq!(got, found.len() as u64);
                self.model.documents.retain(|_, document| !filter.matches(document));
            }
            Action::DeleteOne(filter) => {
                let filter = Filter::parse(&filter).unwrap();
                let got = self.run(|tx, coll| write::delete_one(tx, coll, &filter)).unwrap();
                let first = self.model.matching(&filter).into_iter().next();
                assert_eq!(got, u64::from(first.is_some()));
                if let Some(first) = first {
                    self.model.documents.remove(first["_id"].as_str().unwrap());
                }
            }
            Action::Find(filter, options) => self.find(filter, options),
            Action::Declare(fields, unique) => {
                let fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
                let index = IndexSpec::new(fields.clone(), unique);
                self.spec.indexes.retain(|other| other.name != index.name);
                self.spec.indexes.push(index);
                self.model.unique.retain(|other| *other != fields);
                if unique {
                    self.model.unique.push(fields);
                    // While a unique index is being built it refuses some clashes and not yet others.
                    self.declare();
                    self.finish();
                } else {
                    self.declare();
                }
            }
            Action::Build(steps) => {
                for _ in 0..steps {
                    let mut tx = self.begin();
                    let Some(work) = pending(&mut tx, NAME).unwrap().into_iter().next() else { return };
                    let progress = build_step(&mut tx, NAME, &work, 2).unwrap();
                    assert!(!matches!(progress, Progress::Refused(_)));
                    tx.commit().unwrap();
                }
            }
            Action::Drop(nth) => {
                if nth < self.spec.indexes.len() {
                    let index = self.spec.indexes.remove(nth);
                    let mut tx = self.begin();
                    drop_index(&mut tx, NAME, &index.name).unwrap();
                    tx.commit().unwrap();
                    self.model.unique.retain(|fields| *fields != index.fields);
                }
            }
            Action::SetTtl(on) => {
                self.spec.ttl = on.then(|| Ttl { field: "exp".to_owned(), after_ms: None });
                self.model.ttl = on;
                self.declare();
                self.finish();
                self.model.expire();
            }
            Action::Advance(ms) => {
                self.model.now += ms;
                self.model.expire();
            }
            Action::Sweep => self.sweep(),
        }
    }

    fn sweep(&mut self) {
        let mut tx = self.begin();
        let entries = tx.scan(&Range::prefix(b"e"), Direction::Ascending, usize::MAX).unwrap();
        for (entry, _) in entries {
            let (_, row) = key::split_expiry(&entry).unwrap();
            expire::expire(&mut tx, &self.catalogue, row).unwrap();
        }
        tx.commit().unwrap();
    }

    fn upsert(&mut self, filter: Map, change: Map) {
        let filter = Filter::parse(&filter).unwrap();
        let Ok(change) = Change::parse(&change) else { return };
        self.ids += 1;
        let fresh = format!("u{}", self.ids);
        let got = self.run(|tx, coll| write::upsert(tx, coll, &filter, &change, &mut || fresh.clone()));
        if let Some(first) = self.model.matching(&filter).into_iter().next() {
            let id = first["_id"].as_str().unwrap().to_owned();
            assert_eq!(got, self.model.change(vec![first], &change).map(|_| id));
            return;
        }
        match got {
            // What it inserted is judged by reading it back; that it was allowed, by the model.
            Ok(id) => {
                if let Some(document) = self.run(|tx, coll| find::get(tx, coll, &id)).unwrap() {
                    assert!(self.model.insert(document).is_ok());
                }
            }
            Err(code) => assert!(["bad_filter", "bad_change", "unique_violation"].contains(&code), "{code}"),
        }
    }

    fn find(&mut self, filter: Map, options: Map) {
        let raw = filter.clone();
        let (filter, options) = (Filter::parse(&filter).unwrap(), FindOptions::parse(&options).unwrap());
        let got = self.run(|tx, coll| find::find(tx, coll, &filter, &options)).unwrap();
        let mut all = self.model.matching(&filter);
        let first = all.first().cloned();
        let many = all.len();
        all.sort_by(|a, b| find::by(&options.sort, a, b));
        let wanted: Vec<Map> = all.into_iter().skip(options.skip).take(options.limit.unwrap_or(usize::MAX)).collect();
        assert_eq!(got, wanted, "{raw:?} {options:?}");
        assert_eq!(self.run(|tx, coll| find::find_one(tx, coll, &filter)).unwrap(), first);
        assert_eq!(self.run(|tx, coll| find::count(tx, coll, &filter)).unwrap(), many as u64);
        assert_eq!(self.run(|tx, coll| find::exists(tx, coll, &filter)).unwrap(), many > 0);
    }

    fn check(&self) {
        let mut tx = self.begin();
        assert_eq!(verify(&mut tx).unwrap(), Vec::<String>::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn documents_answer_as_the_model_does(actions in proptest::collection::vec(action(), 1..60)) {
        let mut world = World::new();
        for action in actions {
            world.step(action);
            world.check();
        }
        world.finish();
        world.check();
        world.find(Map::new(), Map::new());
    }
}

/// Maps with every operator in every place, most of them nonsense.
fn nonsense() -> impl Strategy<Value = Map> {
    let names = [
        "a",
        "a.b",
        "_id",
        "",
        "..",
        "$",
        "$eq",
        "$gt",
        "$in",
        "$nin",
        "$not",
        "$and",
        "$or",
        "$exists",
        "$set",
        "$inc",
        "$mul",
        "$min",
        "$push",
        "$pull",
        "$pop",
        "$rename",
        "$unset",
        "$addToSet",
        "$setOnInsert",
        "sort",
        "limit",
        "skip",
    ];
    let name = proptest::sample::select(names.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![
        scalar(),
        Just(Value::Int(i64::MIN)),
        Just(Value::Int(-1)),
        Just(Value::Float(f64::MAX)),
        Just(Value::Float(f64::NAN)),
        name.clone().prop_map(Value::Text),
    ];
    let value = leaf.prop_recursive(4, 24, 4, {
        let name = name.clone();
        move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                proptest::collection::btree_map(name.clone(), inner, 0..3).prop_map(Value::Map),
            ]
        }
    });
    proptest::collection::btree_map(name, value, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_is_an_error_and_never_a_panic(a in nonsense(), b in nonsense(), c in nonsense(), d in nonsense()) {
        let mut world = World::new();
        world.spec.indexes.push(IndexSpec::new(vec!["a.b".to_owned()], true));
        world.spec.ttl = Some(Ttl { field: "limit".to_owned(), after_ms: Some(i64::MAX) });
        world.declare();
        let mut id = || "made".to_owned();
        let _ = world.run(|tx, coll| write::insert(tx, coll, a, &mut id));
        let _ = world.run(|tx, coll| write::insert(tx, coll, d.clone(), &mut || "other".to_owned()));
        let options = FindOptions::parse(&d).unwrap_or_default();
        if let Ok(filter) = Filter::parse(&b) {
            let _ = world.run(|tx, coll| find::find(tx, coll, &filter, &options));
            if let Ok(change) = Change::parse(&c) {
                let _ = world.run(|tx, coll| write::update(tx, coll, &filter, &change));
                let _ = world.run(|tx, coll| write::upsert(tx, coll, &filter, &change, &mut || "third".to_owned()));
            }
        }
        world.check();
    }
}
