//! Arrows point down: a module imports only from layers below its own, never through the crate root, never in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the ground up; the modules of one layer do not know each other.
const LAYERS: &[&[&str]] = &[
    &["time", "value"],
    &["element", "id", "spelling"],
    &["limit", "store"],
    &["trace"],
    &["outcome", "transaction", "error"],
    &["bucket", "document", "job", "release"],
    &["script"],
    &["engine"],
    &["testing", "smtp"],
    // The guide holds no code but its tests.
    &["cli", "guide"],
];

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The module at the top of the crate that a file belongs to; none for the roots themselves.
fn module_of(path: &Path, root: &Path) -> Option<String> {
    let first = path.strip_prefix(root).unwrap().components().next().unwrap();
    let name = first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
    (name != "lib" && name != "main").then_some(name)
}

/// Whether a file is made for tests only.
fn is_test(path: &Path, text: &str) -> bool {
    let name = path.file_stem().unwrap().to_str().unwrap();
    path.components().any(|part| part.as_os_str() == "tests")
        || name == "tests"
        || fs::read_to_string(path.with_file_name("mod.rs"))
            .is_ok_and(|parent| parent.contains(&format!("#[cfg(test)]\nmod {name};")))
        || text.starts_with("#![cfg(test)]")
}

/// The crate's modules that a text names, outside of its `mod tests`.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
    let mut names = BTreeSet::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for rest in line.split("crate::").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            names.insert(name);
        }
    }
    names
}

#[test]
fn imports_run_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    let mut climbs = Vec::new();
    let mut unknown = BTreeSet::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let Some(module) = module_of(&path, &root) else { continue };
        let Some(own) = layer_of(&module) else {
            unknown.insert(module);
            continue;
        };
        if is_test(&path, &text) {
            continue;
        }
        for name in imports(&text) {
            if name == module {
                continue;
            }
            let shown = path.strip_prefix(&root).unwrap().display();
            match layer_of(&name) {
                Some(other) if other < own => {}
                // The command line is a host: it may use the public face.
                None if module == "cli" => {}
                Some(_) => climbs.push(format!("{shown} imports {name}, which is not below it")),
                None => climbs.push(format!("{shown} imports `{name}` through the crate root")),
            }
        }
    }
    assert!(unknown.is_empty(), "modules without a layer: {unknown:?}");
    assert!(climbs.is_empty(), "{}", climbs.join("\n"));
}

#[test]
fn each_dependency_is_named_by_one_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let homes: BTreeMap<&str, &str> = BTreeMap::from([
        ("croner::", "job/cron.rs"),
        ("sfv::", "limit/http.rs"),
        ("sled::", "store/sled.rs"),
        ("rhai::", "script/"),
        ("SystemTime", "time.rs"),
        ("Instant::now", "time.rs"),
    ]);
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if is_test(&path, &text) {
            continue;
        }
        for (name, home) in &homes {
            let names = text.lines().any(|line| {
                !line.trim_start().starts_with("//")
                    && line
                        .match_indices(name)
                        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
            });
            assert!(!names || shown.starts_with(home), "{shown} names {name}, which only {home} may");
        }
    }
}

#[test]
fn files_hold_one_noun() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(&root).unwrap().display();
        assert!(text.lines().count() <= 600, "{shown} is too long for one noun");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//!") || first.starts_with("#!["), "{shown} does not say what it is");
    }
}
