//! A disk that is full: calls fail and say so, reads go on, and with room again everything acknowledged is there.
//!
//! Needs a small file system of its own: as root on Linux one is mounted in memory; elsewhere the test says so and passes.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use tollgate::{Engine, Error, Map, Value};

/// A file system in memory, unmounted when dropped.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn new(path: &'a Path, size: &str) -> Result<Mount<'a>, String> {
        let options = format!("size={size}");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(path).output();
        match done {
            Ok(output) if output.status.success() => Ok(Mount(path)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(why) => Err(why.to_string()),
        }
    }

    fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(Command::new("mount").args(["-o", &options]).arg(self.0).status().unwrap().success());
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        // Lazily: an engine that was left open by a failed assertion may hold files in it.
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

fn insert(engine: &Engine, n: i64) -> Result<String, Error> {
    let document =
        Map::from([("n".to_owned(), Value::Int(n)), ("text".to_owned(), "x".repeat(60_000).as_str().into())]);
    engine.transaction(|tx| tx.insert("papers", document.clone()))
}

fn missing(engine: &Engine, ids: &[String]) -> usize {
    engine
        .read(|tx| {
            let mut missing = 0;
            for id in ids {
                missing += usize::from(tx.get("papers", id)?.is_none());
            }
            Ok::<_, Error>(missing)
        })
        .unwrap()
}

#[test]
fn a_full_disk_fails_calls_and_loses_nothing() {
    // Full while documents are written, and full while the tree is compacted.
    for compacts in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mount = match Mount::new(folder.path(), "12m") {
            Ok(mount) => mount,
            Err(why) => {
                println!("skipped: no small file system could be mounted ({why})");
                return;
            }
        };
        let path = folder.path().join("db");
        let open = || Engine::builder().path(&path).open();
        let engine = open().unwrap();
        let mut acknowledged = Vec::new();
        let error = loop {
            match insert(&engine, acknowledged.len() as i64) {
                Ok(id) => acknowledged.push(id),
                Err(error) => break error,
            }
            if compacts && acknowledged.len() == 80 {
                match engine.compact() {
                    Ok(()) => {}
                    Err(error) => break error,
                }
            }
        };
        assert!(matches!(error, Error::Storage(_)), "{error}");
        assert!(error.to_string().contains("os error 28") || error.to_string().contains("sled"), "{error}");
        assert!(acknowledged.len() > 20, "{} documents", acknowledged.len());
        assert_eq!(missing(&engine, &acknowledged), 0, "reads go on");
        drop(engine);
        mount.grow("200m");
        let engine = open().unwrap();
        assert_eq!(missing(&engine, &acknowledged), 0, "acknowledged and lost");
        assert_eq!(engine.doctor().unwrap(), Vec::<String>::new());
        let id = insert(&engine, -1).unwrap();
        engine.compact().unwrap();
        assert_eq!(missing(&engine, &[id]), 0);
        engine.close().unwrap();
    }
}
