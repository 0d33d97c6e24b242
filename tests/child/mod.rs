//! The child process of the crash tests: a host that calls without end and says which calls were acknowledged.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Engine, Error, Outcome, Value};

/// Each call spends of three durable and two buffered limits, inserts a document and counts it.
pub const PROCEDURES: &str = r#"
const A = fixed_window("a", 1000000000, "3650d").durable();
const B = fixed_window("b", 1000000000, "3650d").durable();
const C = fixed_window("c", 1000000000, "3650d").durable();
const D = fixed_window("d", 1000000000, "3650d");
const E = fixed_window("e", 1000000000, "3650d");

collection("work").unique("n");
collection("counters");

fn work(id, n) {
    A.enforce("k");
    B.enforce("k");
    C.enforce("k");
    insert("work", #{ _id: id, n: n });
    upsert("counters", #{ _id: "all" }, #{ "$inc": #{ done: 1 } });
    n
}

fn spend() {
    D.enforce("k");
    E.enforce("k");
}
"#;

const STORE: &str = "TOLLGATE_CHILD_STORE";
const THREADS: &str = "TOLLGATE_CHILD_THREADS";
const CALLS: &str = "TOLLGATE_CHILD_CALLS";
const FIRST: &str = "TOLLGATE_CHILD_FIRST";
const COMPACT: &str = "TOLLGATE_CHILD_COMPACT";

/// Opens the store with the procedures.
pub fn open(path: &Path) -> Result<Engine, Error> {
    Engine::builder().path(path).source("child.rhai", PROCEDURES).open()
}

/// What a child does.
pub struct Plan<'a> {
    pub store: &'a Path,
    pub threads: u64,
    /// Calls of each thread.
    pub calls: u64,
    /// The number of the first call: each has its own, over all rounds.
    pub first: u64,
    /// Whether a thread compacts without end, which checkpoints the journal and rebuilds the tree.
    pub compact: bool,
}

impl Plan<'_> {
    /// This test binary again, as `wrapper` runs it, as the child of this plan; `test` names its test that calls [`run`].
    pub fn command(&self, wrapper: &[&str], test: &str) -> Command {
        let binary = std::env::current_exe().unwrap();
        let mut command = match wrapper {
            [] => Command::new(&binary),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg(&binary);
                command
            }
        };
        command
            .args(["--exact", test, "--nocapture"])
            .env(STORE, self.store)
            .env(THREADS, self.threads.to_string())
            .env(CALLS, self.calls.to_string())
            .env(FIRST, self.first.to_string())
            .env(COMPACT, u8::from(self.compact).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Says a line in one write, so that it is whole and a tracer sees it as one.
fn say(line: &str) {
    let text = format!("\n{line}\n");
    let mut out = std::io::stdout().lock();
    // A parent that is gone hears nothing more.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The body of the child; returns at once in a process that is none.
pub fn run() {
    let Ok(store) = std::env::var(STORE) else { return };
    let number = |name: &str| -> u64 { std::env::var(name).unwrap().parse().unwrap() };
    let (threads, calls, first) = (number(THREADS), number(CALLS), number(FIRST));
    let engine = open(Path::new(&store)).unwrap();
    say("open");
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        if number(COMPACT) == 1 {
            scope.spawn(|| {
                while next.load(Ordering::Relaxed) < first + threads * calls {
                    engine.compact().unwrap();
                }
            });
        }
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..calls {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    say(&format!("call {n}"));
                    let outcome: Outcome<Value> = engine.call("work", &(n.to_string(), n)).unwrap();
                    assert_eq!(outcome, Outcome::Returned(Value::Int(n as i64)));
                    say(&format!("acknowledged {n}"));
                    let _: Outcome<Value> = engine.call("spend", &()).unwrap();
                }
            });
        }
    });
    engine.close().unwrap();
    say("closed");
}
