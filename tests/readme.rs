//! The README is true: its procedures compile, its script test passes, its session prints what it says.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tollgate::Engine;
use tollgate::testing::{self, Filter};

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The code blocks of one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn procedures_compile_and_the_script_test_passes() {
    let all = blocks(&readme(), "rhai");
    let (tests, procedures): (Vec<_>, Vec<_>) = all.into_iter().partition(|block| block.contains("fn test_"));
    assert!(!tests.is_empty() && !procedures.is_empty());
    for block in &procedures {
        let opened = Engine::builder().memory().source("README.md", block).open();
        assert!(opened.is_ok(), "{}", opened.err().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    fs::copy(scripts.join("send_email.rhai"), folder.path().join("send_email.rhai")).unwrap();
    for (number, block) in tests.iter().enumerate() {
        fs::write(folder.path().join(format!("readme_{number}_test.rhai")), block).unwrap();
    }
    let report = testing::run(folder.path(), &Filter::all()).unwrap();
    assert!(report.failed() == 0 && report.passed() >= tests.len(), "{report}");
}

#[test]
fn the_session_prints_what_the_readme_says() {
    let text = readme();
    let block = text.split("<!-- tested: repl -->").nth(1).unwrap();
    let block = &blocks(block, "console")[0];
    let (input, expected) = block.split_once("<<'END'\n").unwrap().1.split_once("END\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["repl", "--memory", "--scripts", "scripts"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success());
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), expected);
}

#[test]
fn the_first_command_counts_across_processes_and_refuses_the_fourth() {
    let text = readme();
    let command = text.lines().find(|line| line.starts_with("$ cargo run --release -- call")).unwrap();
    let words: Vec<&str> = command.split(" -- ").nth(1).unwrap().split(' ').collect();
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(&words)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("TOLLGATE_DB", folder.path().join("db"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = run();
    let shown = text.lines().find(|line| line.starts_with("{allowed: true, count: 1")).unwrap();
    assert_eq!(first.trim_end(), shown);
    assert!(run().starts_with("{allowed: true, count: 2") && run().starts_with("{allowed: true, count: 3"));
    assert!(run().starts_with("{allowed: false, count: 3, limit: 3, remaining: 0, retry_after: "));
}
