//! Operations on documents, case by case: what they refuse, how they say it, and what they leave behind.

use std::sync::Arc;

use crate::store::key::{self, KeyBuffer, space};
use crate::store::{Direction, MemoryStore, Pair, Range, Store};
use crate::time::Timestamp;
use crate::transaction::Transaction;
use crate::value::{Map, Value};

use super::build::{Progress, build_step};
use super::catalogue::{self, Catalogue, Work};
use super::change::Change;
use super::collection::{Collection, CollectionSpec, IndexSpec, Ttl};
use super::error::{DataError, DocumentError};
use super::filter::Filter;
use super::options::FindOptions;
use super::plan::plan;
use super::verify::verify;
use super::{expire, find, write};

struct Shop {
    store: Arc<MemoryStore>,
    catalogue: Catalogue,
    now: i64,
}

fn map(json: &str) -> Map {
    Value::from_json(json).unwrap().as_map().unwrap().clone()
}

fn filter(json: &str) -> Filter {
    Filter::parse(&map(json)).unwrap()
}

fn options(json: &str) -> FindOptions {
    FindOptions::parse(&map(json)).unwrap()
}

fn spec(indexes: &[(&[&str], bool)], ttl: Option<(&str, Option<i64>)>) -> CollectionSpec {
    let index = |(fields, unique): &(&[&str], bool)| {
        IndexSpec::new(fields.iter().map(|field| (*field).to_owned()).collect(), *unique)
    };
    CollectionSpec {
        indexes: indexes.iter().map(index).collect(),
        ttl: ttl.map(|(field, after_ms)| Ttl { field: field.to_owned(), after_ms }),
        ..CollectionSpec::new("users")
    }
}

fn data(error: DocumentError) -> DataError {
    match error {
        DocumentError::Data(error) => error,
        other => panic!("not an error of data: {other}"),
    }
}

impl Shop {
    fn new() -> Shop {
        Shop { store: Arc::new(MemoryStore::new()), catalogue: Catalogue::new(), now: 1_000 }
    }

    fn with(spec: CollectionSpec) -> Shop {
        let shop = Shop::new();
        shop.declare(&spec);
        shop
    }

    /// One transaction, committed whatever came of it.
    fn run<T>(
        &self,
        operation: impl FnOnce(&mut Transaction, &Collection) -> Result<T, DocumentError>,
    ) -> Result<T, DocumentError> {
        let mut tx = Transaction::over(self.store.clone(), Timestamp::from_millis(self.now));
        let collection = self.catalogue.collection(&mut tx, "users")?;
        let outcome = operation(&mut tx, &collection);
        tx.commit().unwrap();
        outcome
    }

    fn declare(&self, spec: &CollectionSpec) -> Vec<Work> {
        self.run(|tx, _| catalogue::declare(tx, spec)).unwrap()
    }

    fn insert(&self, json: &str) -> Result<String, DocumentError> {
        self.run(|tx, users| write::insert(tx, users, map(json), &mut || "made".to_owned()))
    }

    fn update(&self, asked: &str, change: &str) -> Result<u64, DocumentError> {
        let change = Change::parse(&map(change))?;
        self.run(|tx, users| write::update(tx, users, &filter(asked), &change))
    }

    fn upsert(&self, asked: &str, change: &str) -> Result<String, DocumentError> {
        let change = Change::parse(&map(change))?;
        self.run(|tx, users| write::upsert(tx, users, &filter(asked), &change, &mut || "made".to_owned()))
    }

    fn find(&self, asked: &str, how: &str) -> Result<Vec<String>, DocumentError> {
        let found = self.run(|tx, users| find::find(tx, users, &filter(asked), &options(how)))?;
        Ok(found.into_iter().map(|document| Value::Map(document).to_json()).collect())
    }

    fn ids(&self, asked: &str, how: &str) -> String {
        let found = self.run(|tx, users| find::find(tx, users, &filter(asked), &options(how))).unwrap();
        found.iter().map(|document| document["_id"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn explain(&self, asked: &str, how: &str) -> String {
        self.run(|_, users| Ok(plan(users, &filter(asked), Some(&options(how))).to_string())).unwrap()
    }

    fn step(&self, work: &Work, most: usize) -> Progress {
        self.run(|tx, _| build_step(tx, "users", work, most)).unwrap()
    }

    fn verify(&self) -> Vec<String> {
        self.run(|tx, _| verify(tx)).unwrap()
    }

    fn rows(&self) -> Vec<Pair> {
        let mut rows = Vec::new();
        self.store.scan(&Range::prefix(&[]), Direction::Ascending, usize::MAX, &mut rows).unwrap();
        rows
    }
}

#[test]
fn ids_are_text_and_unique() {
    let shop = Shop::new();
    assert_eq!(shop.insert(r#"{"a":1}"#).unwrap(), "made");
    assert_eq!(shop.insert(r#"{"_id":"x"}"#).unwrap(), "x");
    let error = data(shop.insert(r#"{"_id":"x"}"#).unwrap_err());
    assert_eq!((error.code, &error.data["index"]), ("unique_violation", &"_id".into()));
    for id in ["1", "null", "\"\"", &format!("\"{}\"", "x".repeat(1_025)), "[\"a\"]"] {
        assert_eq!(data(shop.insert(&format!(r#"{{"_id":{id}}}"#)).unwrap_err()).code, "bad_document", "{id}");
    }
    assert_eq!(shop.find("{}", "{}").unwrap(), [r#"{"_id":"made","a":1}"#, r#"{"_id":"x"}"#]);
}

#[test]
fn an_id_is_immutable() {
    let shop = Shop::new();
    shop.insert(r#"{"_id":"x","n":1}"#).unwrap();
    for change in [
        r#"{"_id":"y"}"#,
        r#"{"$unset":{"_id":1}}"#,
        r#"{"$rename":{"n":"_id"}}"#,
        r#"{"$set":{"_id.a":1}}"#,
        r#"{"$max":{"_id":"z"}}"#,
    ] {
        assert_eq!(data(shop.update("{}", change).unwrap_err()).code, "bad_change", "{change}");
    }
    assert_eq!(shop.update("{}", r#"{"_id":"x","n":2}"#).unwrap(), 1);
    assert_eq!(shop.find("{}", "{}").unwrap(), [r#"{"_id":"x","n":2}"#]);
}

#[test]
fn documents_out_of_form_are_refused() {
    let shop = Shop::new();
    let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    let long = "x".repeat(129);
    for (document, part) in [
        (r#"{"$a":1}"#.to_owned(), "begins with `$`"),
        (r#"{"a":[{"b":{"$gt":""}}]}"#.to_owned(), "begins with `$`"),
        (r#"{"a.b":1}"#.to_owned(), "has a dot"),
        (r#"{"":1}"#.to_owned(), "empty"),
        (format!(r#"{{"{long}":1}}"#), "too long"),
        (format!(r#"{{"a":{deep}}}"#), "deeper than 64"),
    ] {
        let error = data(shop.insert(&document).unwrap_err());
        assert_eq!(error.code, "bad_document");
        assert!(error.message.contains(part), "{}", error.message);
    }
    let nan = Map::from([("a".to_owned(), Value::Float(f64::NAN))]);
    let error = shop.run(|tx, users| write::insert(tx, users, nan, &mut String::new)).unwrap_err();
    assert_eq!(data(error).code, "bad_document");
    // Deeper in, dots are data: maps serve as dictionaries.
    shop.insert(r#"{"by_address":{"1.2.3.4":1}}"#).unwrap();
    let error = data(shop.insert(&format!(r#"{{"_id":"big","a":"{}"}}"#, "x".repeat(300_000))).unwrap_err());
    assert_eq!(error.code, "too_large");
    let deep = format!("{}1{}", "[".repeat(63), "]".repeat(63));
    shop.insert(&format!(r#"{{"_id":"deep","a":{deep}}}"#)).unwrap();
    assert_eq!(shop.ids("{}", "{}"), "deep made");
    assert_eq!(data(shop.update("{}", &format!(r#"{{"b.c":{deep}}}"#)).unwrap_err()).code, "bad_document");
}

#[test]
fn names_of_collections_have_bounds() {
    let shop = Shop::new();
    let mut tx = Transaction::over(shop.store.clone(), Timestamp::EPOCH);
    for name in ["", &"x".repeat(129)] {
        assert_eq!(data(shop.catalogue.collection(&mut tx, name).unwrap_err()).code, "bad_document");
    }
}

#[test]
fn collections_whose_names_share_a_beginning_are_apart() {
    let shop = Shop::new();
    let mut tx = Transaction::over(shop.store.clone(), Timestamp::EPOCH);
    for name in ["a", "a\0b", "ab"] {
        let collection = shop.catalogue.collection(&mut tx, name).unwrap();
        write::insert(&mut tx, &collection, Map::new(), &mut || "1".to_owned()).unwrap();
        assert_eq!(find::count(&mut tx, &collection, &filter("{}")).unwrap(), 1);
    }
    assert_eq!(catalogue::collections(&mut tx).unwrap(), ["a", "a\0b", "ab"]);
}

#[test]
fn a_unique_index_names_what_it_refuses_and_lets_many_nothings_through() {
    let shop = Shop::with(spec(&[(&["email"], true), (&["plan", "seat"], true)], None));
    shop.insert(r#"{"_id":"1","email":"a@x.com"}"#).unwrap();
    let error = data(shop.insert(r#"{"_id":"2","email":"a@x.com"}"#).unwrap_err());
    assert_eq!(error.code, "unique_violation");
    assert_eq!(
        Value::Map(error.data).to_json(),
        r#"{"collection":"users","id":"1","index":"email","value":"a@x.com"}"#
    );
    shop.insert(r#"{"_id":"3","email":null,"plan":"pro"}"#).unwrap();
    shop.insert(r#"{"_id":"4","plan":"pro"}"#).unwrap();
    shop.insert(r#"{"_id":"5","plan":"pro","seat":1}"#).unwrap();
    let error = data(shop.update(r#"{"_id":"4"}"#, r#"{"seat":1.0}"#).unwrap_err());
    assert_eq!(error.data["value"].to_json(), r#"["pro",1.0]"#);
    // A text that goes on after a zero byte is another text.
    shop.insert(r#"{"_id":"6","email":"a@x.com\u0000b"}"#).unwrap();
    shop.insert(r#"{"_id":"7","email":"a@x.co"}"#).unwrap();
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn uniqueness_is_judged_after_the_whole_update() {
    let shop = Shop::with(spec(&[(&["n"], true)], None));
    for n in 0..5 {
        shop.insert(&format!(r#"{{"_id":"{n}","n":{n}}}"#)).unwrap();
    }
    assert_eq!(shop.update("{}", r#"{"$inc":{"n":1}}"#).unwrap(), 5);
    assert_eq!(shop.update(r#"{"n":{"$gt":0}}"#, r#"{"$inc":{"n":-1}}"#).unwrap(), 5);
    let before = shop.rows();
    assert_eq!(data(shop.update("{}", r#"{"n":7}"#).unwrap_err()).code, "unique_violation");
    assert_eq!(shop.rows(), before);
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn an_operation_that_fails_halfway_has_written_nothing() {
    let shop = Shop::with(spec(&[(&["n"], false)], None));
    shop.insert(r#"{"_id":"1","n":1}"#).unwrap();
    shop.insert(r#"{"_id":"2","n":"x"}"#).unwrap();
    let before = shop.rows();
    assert_eq!(data(shop.update("{}", r#"{"$inc":{"n":1}}"#).unwrap_err()).code, "bad_change");
    let large = "x".repeat(200_000);
    shop.update(r#"{"_id":"2"}"#, &format!(r#"{{"large":"{large}"}}"#)).unwrap();
    let middle = shop.rows();
    let error = data(shop.update("{}", &format!(r#"{{"n":3,"more":"{large}"}}"#)).unwrap_err());
    assert_eq!(error.code, "too_large");
    assert_eq!(shop.rows(), middle);
    shop.update(r#"{"_id":"2"}"#, r#"{"$unset":{"large":1}}"#).unwrap();
    assert_eq!(shop.rows(), before);
}

#[test]
fn upserts() {
    let shop = Shop::with(spec(&[(&["key"], true)], None));
    let hit = r#"{"$inc":{"n":1},"$setOnInsert":{"by":"me"}}"#;
    assert_eq!(shop.upsert(r#"{"key":"a","n":{"$gte":0}}"#, hit).unwrap(), "made");
    assert_eq!(shop.upsert(r#"{"key":"a"}"#, hit).unwrap(), "made");
    assert_eq!(shop.find("{}", "{}").unwrap(), [r#"{"_id":"made","by":"me","key":"a","n":2}"#]);
    assert_eq!(shop.upsert(r#"{"_id":"x","a.b":1}"#, r#"{"a.c":2}"#).unwrap(), "x");
    assert_eq!(shop.find(r#"{"_id":"x"}"#, "{}").unwrap(), [r#"{"_id":"x","a":{"b":1,"c":2}}"#]);
    assert_eq!(shop.upsert(r#"{"q":1}"#, r#"{"$setOnInsert":{"_id":"y"}}"#).unwrap(), "y");
    assert_eq!(data(shop.upsert(r#"{"_id":"z"}"#, r#"{"_id":"w"}"#).unwrap_err()).code, "bad_change");
    assert_eq!(data(shop.upsert(r#"{"_id":7}"#, "{}").unwrap_err()).code, "bad_document");
    assert_eq!(data(shop.upsert(r#"{"$and":[{"u":1},{"u":2}]}"#, "{}").unwrap_err()).code, "bad_filter");
    assert_eq!(data(shop.upsert(r#"{"u":{"v":1},"u.v":2}"#, "{}").unwrap_err()).code, "bad_filter");
    assert_eq!(data(shop.upsert(r#"{"u":9}"#, r#"{"key":"a"}"#).unwrap_err()).code, "unique_violation");
}

#[test]
fn expired_documents_are_invisible_and_stand_in_nobodys_way() {
    let mut shop = Shop::with(spec(&[(&["email"], true)], Some(("at", Some(500)))));
    shop.insert(r#"{"_id":"1","email":"a","at":1000}"#).unwrap();
    shop.insert(r#"{"_id":"2","email":"b","at":"1970-01-01T00:00:01Z"}"#).unwrap();
    shop.insert(r#"{"_id":"3","email":"c","at":null}"#).unwrap();
    shop.insert(r#"{"_id":"4","email":"d","at":1000}"#).unwrap();
    for bad in ["1.5", "\"soon\"", "true", "[]"] {
        let error = data(shop.insert(&format!(r#"{{"at":{bad}}}"#)).unwrap_err());
        assert_eq!((error.code, &error.data["field"]), ("bad_document", &"at".into()));
    }
    shop.now = 1_499;
    assert_eq!(shop.ids("{}", "{}"), "1 2 3 4");
    shop.now = 1_500;
    for asked in ["{}", r#"{"email":{"$gte":""}}"#, r#"{"_id":{"$in":["1","2","3"]}}"#] {
        assert_eq!(shop.ids(asked, "{}"), "3");
    }
    assert_eq!(shop.ids(r#"{"email":"a"}"#, "{}"), "");
    assert_eq!(shop.run(|tx, users| find::get(tx, users, "1")).unwrap(), None);
    assert_eq!(shop.run(|tx, users| find::count(tx, users, &filter("{}"))).unwrap(), 1);
    assert_eq!(shop.update("{}", r#"{"seen":1}"#).unwrap(), 1);
    // In the way by a unique value, and by its id.
    shop.insert(r#"{"_id":"5","email":"a"}"#).unwrap();
    shop.insert(r#"{"_id":"2","email":"e"}"#).unwrap();
    assert_eq!(shop.verify(), [""; 0]);
    let row = |id: &str| key::document("users", id);
    let sweep = |id: &str| shop.run(|tx, _| expire::expire(tx, &shop.catalogue, &row(id))).unwrap();
    assert!(sweep("4") && !sweep("4") && !sweep("1") && !sweep("3") && !sweep("2"));
    assert!(!shop.run(|tx, _| expire::expire(tx, &shop.catalogue, b"b..")).unwrap());
    assert_eq!(shop.ids("{}", "{}"), "2 3 5");
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn an_update_moves_the_expiry() {
    let mut shop = Shop::with(spec(&[], Some(("at", None))));
    shop.insert(r#"{"_id":"1","at":1500}"#).unwrap();
    shop.update("{}", r#"{"at":2000}"#).unwrap();
    shop.now = 1_600;
    assert_eq!(shop.ids("{}", "{}"), "1");
    assert_eq!(shop.verify(), [""; 0]);
    shop.update("{}", r#"{"$unset":{"at":1}}"#).unwrap();
    shop.now = 1 << 50;
    assert_eq!(shop.ids("{}", "{}"), "1");
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn plans_say_what_serves() {
    let shop = Shop::with(spec(&[(&["email"], true), (&["plan", "age"], false), (&["age"], false)], None));
    for (asked, how, expected) in [
        (r#"{"_id":"1"}"#, "{}", "_id of users: one document; in order"),
        (r#"{"_id":{"$in":["1","2"]},"email":"a"}"#, "{}", "_id of users: 2 documents; in order"),
        (r#"{"_id":{"$gt":"1"}}"#, "{}", "_id of users: a range; in order"),
        ("{}", "{}", "all documents of users, no index; in order"),
        ("{}", r#"{"sort":"age"}"#, "all documents of users, no index; sorted afterwards"),
        ("{}", r#"{"sort":"age","limit":3}"#, "index age of users: all entries; in order"),
        (r#"{"email":"a","age":3}"#, "{}", r#"index email of users: email = "a"; in order"#),
        (r#"{"plan":"p","age":3}"#, "{}", r#"index plan,age of users: plan = "p", age = 3; in order"#),
        (
            r#"{"plan":"p","age":{"$gt":3}}"#,
            r#"{"sort":"-age"}"#,
            r#"index plan,age of users: plan = "p", age in a range; in order"#,
        ),
        (r#"{"plan":"p"}"#, r#"{"sort":"-age"}"#, r#"index plan,age of users: plan = "p"; in order"#),
        (r#"{"plan":"p"}"#, "{}", r#"index plan,age of users: plan = "p"; sorted afterwards"#),
        (
            r#"{"plan":{"$in":["p","q"]}}"#,
            r#"{"sort":"plan"}"#,
            "index plan,age of users: plan in 2 values; in order but for ties",
        ),
        (r#"{"email":null}"#, "{}", "index email of users: email = (); in order"),
        (r#"{"$or":[{"email":"a"}]}"#, "{}", "all documents of users, no index; in order"),
        (r#"{"email":{"$ne":"a"}}"#, "{}", "all documents of users, no index; in order"),
    ] {
        assert_eq!(shop.explain(asked, how), expected, "{asked} {how}");
    }
}

fn crowd(shop: &Shop, many: usize) {
    for n in 0..many {
        shop.insert(&format!(r#"{{"_id":"{n:05}","n":{n},"g":{}}}"#, n / 100)).unwrap();
    }
}

#[test]
fn a_scan_stops_at_the_budget_and_says_what_would_serve() {
    let shop = Shop::new();
    crowd(&shop, 1_001);
    let hint = |outcome: Result<Vec<String>, DocumentError>| match outcome.unwrap_err() {
        DocumentError::Overrun { hint, .. } => hint,
        other => panic!("{other}"),
    };
    assert_eq!(
        hint(shop.find(r#"{"n":{"$gt":5},"g":-1}"#, "{}")),
        r#"collection `users` was read whole; an index would serve: collection("users").index(["g", "n"])"#
    );
    assert_eq!(
        hint(shop.find("{}", r#"{"sort":"n","limit":2}"#)),
        r#"collection `users` was read whole; an index would serve: collection("users").index("n")"#
    );
    assert!(hint(shop.find("{}", "{}")).contains("no index can serve"));
    assert_eq!(shop.ids("{}", r#"{"limit":2}"#), "00000 00001");
    assert_eq!(shop.ids("{}", r#"{"sort":"-_id","limit":1,"skip":1}"#), "00999");
}

#[test]
fn a_limit_in_index_order_reads_only_what_it_needs() {
    let shop = Shop::with(spec(&[(&["n"], false), (&["g", "n"], false)], None));
    crowd(&shop, 2_000);
    assert_eq!(shop.ids("{}", r#"{"sort":"-n","limit":3,"skip":900}"#), "01099 01098 01097");
    assert_eq!(shop.ids(r#"{"n":{"$gte":500}}"#, r#"{"sort":"n","limit":2}"#), "00500 00501");
    // By groups: all of group 0 is read, and one of group 1.
    assert_eq!(shop.ids(r#"{"g":{"$gte":3}}"#, r#"{"sort":"g","limit":2}"#), "00300 00301");
    assert_eq!(shop.ids(r#"{"g":{"$in":[4,9,12]}}"#, r#"{"sort":["-g","n"],"limit":2}"#), "01200 01201");
    assert!(matches!(shop.find(r#"{"n":{"$gte":500}}"#, r#"{"limit":2}"#), Err(DocumentError::Overrun { .. })));
}

#[test]
fn a_new_index_is_built_in_steps_and_serves_when_complete() {
    let mut shop = Shop::new();
    crowd(&shop, 10);
    let wanted = spec(&[(&["n"], true)], None);
    let work = shop.declare(&wanted);
    assert_eq!(work, [Work::Index("n".to_owned())]);
    assert_eq!(shop.step(&work[0], 4), Progress::Working { done: 4 });
    assert!(shop.explain(r#"{"n":1}"#, "{}").contains("no index"));
    // Writes by others in between: behind the build, before it, and against it.
    shop.update(r#"{"n":1}"#, r#"{"n":100}"#).unwrap();
    shop.update(r#"{"n":8}"#, r#"{"n":101}"#).unwrap();
    shop.insert(r#"{"_id":"99999","n":102}"#).unwrap();
    shop.run(|tx, users| write::delete(tx, users, &filter(r#"{"n":2}"#))).unwrap();
    assert_eq!(data(shop.insert(r#"{"_id":"99998","n":3}"#).unwrap_err()).code, "unique_violation");
    assert_eq!(shop.verify(), [""; 0]);
    // A restart goes on where it stopped.
    shop.catalogue = Catalogue::new();
    assert_eq!(shop.declare(&wanted), work);
    assert_eq!(shop.step(&work[0], 100), Progress::Working { done: 11 });
    assert_eq!(shop.step(&work[0], 100), Progress::Ready);
    assert_eq!(shop.declare(&wanted), []);
    assert!(shop.explain(r#"{"n":1}"#, "{}").contains("index n"));
    assert_eq!(shop.ids(r#"{"n":{"$gte":100}}"#, "{}"), "00001 00008 99999");
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn a_unique_index_that_the_data_violates_is_refused_with_both_names() {
    let shop = Shop::new();
    crowd(&shop, 5);
    shop.update(r#"{"_id":"00004"}"#, r#"{"n":2}"#).unwrap();
    let work = shop.declare(&spec(&[(&["n"], true)], None)).remove(0);
    assert_eq!(shop.step(&work, 2), Progress::Working { done: 2 });
    let Progress::Refused(error) = shop.step(&work, 10) else { panic!("not refused") };
    assert_eq!(error.code, "unique_violation");
    assert_eq!((&error.data["first"], &error.data["second"]), (&"00002".into(), &"00004".into()));
    assert_eq!(
        error.message,
        r#"unique index `n` of `users` is refused: documents "00002" and "00004" both have 2; change or delete one"#
    );
    assert!(matches!(shop.step(&work, 10), Progress::Working { .. }));
    assert_eq!(shop.step(&work, 10), Progress::Dropped);
    assert_eq!(shop.verify(), [""; 0]);
    shop.insert(r#"{"_id":"9","n":2}"#).unwrap();
    // Once the data is mended it can be declared again.
    shop.run(|tx, users| write::delete(tx, users, &filter(r#"{"n":2,"_id":{"$ne":"9"}}"#))).unwrap();
    let work = shop.declare(&spec(&[(&["n"], true)], None)).remove(0);
    while shop.step(&work, 10) != Progress::Ready {}
    assert_eq!(data(shop.insert(r#"{"_id":"10","n":2}"#).unwrap_err()).code, "unique_violation");
}

#[test]
fn an_index_goes_on_after_it_left_the_files_until_it_is_dropped() {
    let shop = Shop::with(spec(&[(&["n"], true)], None));
    crowd(&shop, 3);
    assert_eq!(shop.declare(&spec(&[], None)), []);
    assert_eq!(data(shop.insert(r#"{"_id":"x","n":2}"#).unwrap_err()).code, "unique_violation");
    let error = data(shop.run(|tx, _| catalogue::drop_index(tx, "users", "m")).unwrap_err());
    assert_eq!((error.code, error.message.as_str()), ("not_found", "`users` has no index `m`: it has n"));
    let work = shop.run(|tx, _| catalogue::drop_index(tx, "users", "n")).unwrap();
    shop.insert(r#"{"_id":"x","n":2}"#).unwrap();
    assert_eq!(shop.verify(), [""; 0]);
    // Declared again before it is gone: dropped first, then built.
    assert_eq!(shop.declare(&spec(&[(&["n"], false)], None)), std::slice::from_ref(&work));
    while shop.step(&work, 2) != Progress::Ready {}
    assert_eq!(shop.ids(r#"{"n":2}"#, "{}"), "00002 x");
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn an_index_made_unique_is_checked_over_again() {
    let shop = Shop::with(spec(&[(&["n"], false)], None));
    crowd(&shop, 3);
    let work = shop.declare(&spec(&[(&["n"], true)], None)).remove(0);
    assert_eq!(data(shop.insert(r#"{"_id":"x","n":2}"#).unwrap_err()).code, "unique_violation");
    while shop.step(&work, 2) != Progress::Ready {}
    assert_eq!(shop.declare(&spec(&[(&["n"], false)], None)), []);
    shop.insert(r#"{"_id":"x","n":2}"#).unwrap();
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn a_new_ttl_reaches_the_documents_that_are_there() {
    let mut shop = Shop::new();
    shop.insert(r#"{"_id":"1","at":2000}"#).unwrap();
    shop.insert(r#"{"_id":"2"}"#).unwrap();
    shop.insert(r#"{"_id":"3","at":"tomorrow"}"#).unwrap();
    let wanted = spec(&[], Some(("at", None)));
    assert_eq!(shop.declare(&wanted), [Work::Ttl]);
    assert_eq!(shop.step(&Work::Ttl, 2), Progress::Working { done: 2 });
    let Progress::Refused(error) = shop.step(&Work::Ttl, 2) else { panic!("not refused") };
    assert_eq!((error.code, &error.data["id"]), ("bad_document", &"3".into()));
    while shop.step(&Work::Ttl, 2) != Progress::Ready {}
    assert_eq!(shop.verify(), [""; 0]);
    shop.update(r#"{"_id":"3"}"#, r#"{"at":3000}"#).unwrap();
    shop.declare(&wanted);
    while shop.step(&Work::Ttl, 2) != Progress::Ready {}
    assert_eq!(shop.verify(), [""; 0]);
    shop.now = 2_000;
    assert_eq!(shop.ids("{}", "{}"), "2 3");
}

#[test]
fn declarations_out_of_form_are_refused() {
    let shop = Shop::new();
    for bad in [
        spec(&[(&[], false)], None),
        spec(&[(&["a", "a"], false)], None),
        spec(&[(&["a"], false), (&["a"], true)], None),
        spec(&[(&["$a"], false)], None),
        spec(&[(&["a", "b", "c", "d", "e", "f", "g", "h", "i"], false)], None),
        spec(&[], Some(("", None))),
        CollectionSpec::new(""),
    ] {
        assert_eq!(data(shop.run(|tx, _| catalogue::declare(tx, &bad)).unwrap_err()).code, "bad_document");
        assert!(Collection::declared(&bad).is_err());
    }
}

#[test]
fn values_too_long_for_an_index_are_refused() {
    let shop = Shop::with(spec(&[(&["t"], false)], None));
    let long = "x".repeat(5_000);
    let error = data(shop.insert(&format!(r#"{{"t":"{long}"}}"#)).unwrap_err());
    assert_eq!((error.code, &error.data["index"]), ("too_large", &"t".into()));
    shop.insert(&format!(r#"{{"u":"{long}"}}"#)).unwrap();
    assert_eq!(shop.ids(&format!(r#"{{"t":"{long}"}}"#), "{}"), "");
}

#[test]
fn operations_see_what_their_own_transaction_wrote() {
    let shop = Shop::with(spec(&[(&["n"], false)], None));
    shop.run(|tx, users| {
        for n in 0..150 {
            write::insert(tx, users, map(&format!(r#"{{"n":{n}}}"#)), &mut || format!("{n:03}"))?;
        }
        assert_eq!(find::count(tx, users, &filter(r#"{"n":{"$lt":100}}"#))?, 100);
        write::delete(tx, users, &filter(r#"{"n":{"$gte":75}}"#))?;
        assert_eq!(find::count(tx, users, &filter(r#"{"n":{"$gt":-1}}"#))?, 75);
        Ok(())
    })
    .unwrap();
    assert_eq!(shop.verify(), [""; 0]);
}

#[test]
fn verification_finds_each_kind_of_damage() {
    let damage = |deed: &dyn Fn(&mut Transaction, &Collection)| {
        let shop = Shop::with(spec(&[(&["n"], true)], Some(("at", None))));
        shop.insert(r#"{"_id":"1","n":1,"at":5000}"#).unwrap();
        assert_eq!(shop.verify(), [""; 0]);
        shop.run(|tx, users| {
            deed(tx, users);
            Ok(())
        })
        .unwrap();
        shop.verify().join("\n")
    };
    let row = key::document("users", "1");
    let entry = |n: i64, id: &str| {
        KeyBuffer::new(space::INDEX).name("users").name("n").element(&Value::Int(n)).name(id).into_vec()
    };
    let at = |ms: i64| key::expiry(Timestamp::from_millis(ms), &row);
    for (part, deed) in [
        (
            "has no entry in index n",
            &(|tx: &mut Transaction, _: &Collection| tx.delete(&entry(1, "1")).unwrap())
                as &dyn Fn(&mut Transaction, &Collection),
        ),
        ("has other values", &|tx, _| tx.put(&entry(2, "1"), &[]).unwrap()),
        ("is not there", &|tx, _| tx.put(&entry(1, "2"), &[]).unwrap()),
        ("has no expiry entry", &|tx, _| tx.delete(&at(5_000)).unwrap()),
        ("names another entry", &|tx, _| tx.put(&at(4_000), &[]).unwrap()),
        ("the document is not there", &|tx, _| tx.delete(&row).unwrap()),
        ("unreadable", &|tx, _| tx.put(&row, b"\x01\x00\xff").unwrap()),
        ("belongs to no index", &|tx, _| {
            tx.put(&KeyBuffer::new(space::INDEX).name("users").name("m").name("1").into_vec(), &[]).unwrap();
        }),
        ("says its _id is", &|tx, users| {
            let bytes = tx.get(&row).unwrap().unwrap();
            tx.put(&key::document("users", "7"), &bytes).unwrap();
            let _ = users;
        }),
    ] {
        let report = damage(deed);
        assert!(report.contains(part), "{part}: {report}");
    }
}
