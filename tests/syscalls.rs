//! System calls: a durable call is acknowledged only after the journal's `fdatasync` has returned, and that reaches the disk.
//!
//! A child makes durable calls under `strace`. Without strace, or where tracing is not allowed, the test says so and passes.
#![cfg(target_os = "linux")]

mod child;

use std::collections::BTreeMap;
use std::process::Command;

use child::Plan;

#[test]
fn child() {
    child::run();
}

/// What happened, in the order in which the tracer saw it end.
#[derive(Debug, PartialEq)]
enum Event {
    Began(u64),
    Synced,
    Acknowledged(u64),
}

/// Reads a trace of lines `pid call(fd<path>, …) = result`, joining calls that others interrupted.
fn events(trace: &str) -> Vec<Event> {
    let mut unfinished: BTreeMap<&str, String> = BTreeMap::new();
    let mut events = Vec::new();
    for line in trace.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        let call = if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            // What a thread says is out when the write begins: that is when its acknowledgement counts.
            if !start.starts_with("write(") {
                unfinished.insert(pid, start.to_owned());
                continue;
            }
            start.to_owned()
        } else if rest.starts_with("<... ") {
            let Some(start) = unfinished.remove(pid) else { continue };
            start + rest.split_once("resumed>").map_or("", |(_, end)| end)
        } else {
            rest.to_owned()
        };
        let number = |word: &str| -> Option<u64> {
            let (_, after) = call.split_once(word)?;
            after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        if call.starts_with("fdatasync(") || call.starts_with("fsync(") {
            if call.contains("/journal/") && call.trim_end().ends_with("= 0") {
                events.push(Event::Synced);
            }
        } else if call.starts_with("write(1<") {
            events.extend(number("acknowledged ").map(Event::Acknowledged).or(number("call ").map(Event::Began)));
        }
    }
    events
}

#[test]
fn the_journal_is_synced_before_a_durable_call_is_acknowledged() {
    if let Err(why) = Command::new("strace").arg("-V").output() {
        println!("skipped: strace cannot be run ({why}); install it to have this checked");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, trace) = (folder.path().join("db"), folder.path().join("trace"));
    for threads in [1, 4] {
        let calls = 20;
        let plan = Plan { store: &path, threads, calls, first: threads * 1_000, compact: false };
        let wrapper =
            ["strace", "-f", "-y", "-s", "64", "-e", "trace=fdatasync,fsync,write", "-o", trace.to_str().unwrap()];
        let output = plan.command(&wrapper, "child").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() && said.contains("Operation not permitted") {
            println!("skipped: tracing is not allowed here ({})", said.trim());
            return;
        }
        assert!(output.status.success(), "{said}");
        let events = events(&std::fs::read_to_string(&trace).unwrap());
        let mut acknowledged = 0;
        for (at, event) in events.iter().enumerate() {
            let Event::Acknowledged(n) = event else { continue };
            let began = events.iter().position(|event| *event == Event::Began(*n)).unwrap();
            assert!(events[began..at].contains(&Event::Synced), "call {n} was acknowledged before any sync");
            acknowledged += 1;
        }
        assert_eq!(acknowledged, threads * calls, "{events:?}");
    }
}
