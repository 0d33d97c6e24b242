//! The tool's workers as a service: they work until they are told to stop, and then say what they did.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use tollgate::{Engine, JobOptions, JobState, Value};

/// Enqueues two jobs, starts the tool's workers, asks them to stop by `signal` while they have one more to do, and
/// returns what they wrote after the first line.
fn stopped_by(signal: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("tollgate.db");
    let engine = Engine::builder().path(&store).action_elsewhere("log").open().unwrap();
    let id = engine.enqueue("log", "first", &JobOptions::new()).unwrap();
    engine.enqueue("log", "other", &JobOptions::new().queue("other")).unwrap();
    engine.close().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["work", "--queue", "default"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let line = Value::from_json(&line).unwrap();
    let field = |name: &str| line.as_map().and_then(|map| map.get(name)).cloned().unwrap();
    assert_eq!((field("id"), field("attempt")), (Value::Text(id.clone()), Value::Int(1)));
    assert_eq!(field("payload"), Value::Text("first".into()));
    // What it wrote is not settled yet, perhaps: it is to be all the same, before the process ends.
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let engine = Engine::builder().path(&store).open().unwrap();
    assert_eq!(engine.job(&id).unwrap().unwrap().state, JobState::Succeeded);
    rest
}

#[test]
fn the_service_manager_and_ctrl_c_end_it_with_a_summary() {
    for signal in ["-TERM", "-INT"] {
        assert_eq!(stopped_by(signal), "claimed 1 succeeded 1 failed 0 retried 0 skipped 0\n");
    }
}
