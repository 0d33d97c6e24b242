//! Tests of the layer as its users see it: files in, endings out.

use std::sync::Arc;

use crate::document::catalogue::Catalogue;
use crate::store::MemoryStore;
use crate::time::Timestamp;
use crate::transaction::Transaction;
use crate::value::{Map, Value};

use super::*;

mod attacks;
mod language;
mod loading;

/// The instant of every test call: 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

fn compile(files: &[(&str, &str)]) -> Result<Program, String> {
    let files = files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
    Program::compile(files, &Natives::new(), &Budget::default())
        .map_err(|faults| faults.iter().map(|fault| fault.to_string()).collect::<Vec<_>>().join("\n"))
}

fn program(text: &str) -> Program {
    compile(&[("test.rhai", text)]).unwrap_or_else(|faults| panic!("{faults}"))
}

fn call_on(store: &Arc<MemoryStore>) -> Box<Call> {
    let caller =
        Map::from([("ip".to_owned(), Value::from("::ffff:192.0.2.1")), ("plan".to_owned(), Value::from("free"))]);
    let transaction = Transaction::over(store.clone(), NOW);
    Call::new(transaction, Arc::new(Catalogue::new()), Arc::new(caller), [7; 32], Budget::default())
}

fn call() -> Box<Call> {
    call_on(&Arc::new(MemoryStore::new()))
}

/// An ending on one line: `returned VALUE`, `denied CODE MESSAGE`, `failed CODE MESSAGE`.
fn line(ending: &Ending) -> String {
    match ending {
        Ending::Returned(value) => format!("returned {value}"),
        Ending::Denied(refusal) | Ending::Aborted(refusal) => {
            format!("{} {} {}", ending.status(), refusal.code, refusal.message)
        }
        Ending::Failed(crate::error::Error::Script(error) | crate::error::Error::Budget(error)) => {
            format!("failed {} {}", error.code, error.message)
        }
        Ending::Failed(error) => format!("failed {} {error}", error.code()),
        Ending::Fault(fault) => format!("fault {fault}"),
    }
}

/// Runs the procedure `test` of a text that holds it, or of the body of it.
fn run(text: &str) -> String {
    let text = if text.contains("fn test(") { text.to_owned() } else { format!("fn test() {{ {text} }}") };
    match compile(&[("test.rhai", &text)]) {
        Ok(program) => line(&program.run("test", Arguments::default(), call()).ending),
        Err(faults) => format!("load {faults}"),
    }
}
