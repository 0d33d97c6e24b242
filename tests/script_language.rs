//! The script tests of the shipped procedures and of the language: all pass, and no host function is without one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tollgate::Engine;
use tollgate::testing::{self, Filter};

#[test]
fn every_script_test_passes() {
    let report = testing::run("scripts", &Filter::all()).unwrap();
    assert!(report.tests.len() > 100, "only {} tests were found", report.tests.len());
    assert_eq!(report.failed(), 0, "{report}");
}

#[test]
fn every_name_that_the_engine_offers_is_used_in_a_language_test() {
    let mut words = BTreeSet::new();
    for entry in fs::read_dir(Path::new("scripts/tests")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        // What a comment says is no use of it.
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let split = |c: char| !c.is_alphanumeric() && c != '_';
        words.extend(code.flat_map(|line| line.split(split).map(str::to_owned).collect::<Vec<_>>()));
    }
    let engine = Engine::builder().memory().open().unwrap();
    let names = engine.host_names();
    for name in ["take", "insert", "now", "allowed", "attempt", "ttl_after"] {
        assert!(names.iter().any(|known| known == name), "the engine no longer offers `{name}`: {names:?}");
    }
    // `to_debug` is what `debug(value)` and `to_string` is what `${value}` run; both are called by the language itself.
    let unused: Vec<&String> = names
        .iter()
        .filter(|name| !words.contains(*name) && !["to_debug", "to_string"].contains(&name.as_str()))
        .collect();
    assert!(unused.is_empty(), "no file in scripts/tests uses {unused:?}");
}
