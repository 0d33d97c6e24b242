//! The command line, driven as users drive it: golden scripts of commands with their output and exit codes.
//!
//! Commands: `> tollgate …` runs the binary in a folder of its own; `> write FILE TEXT` writes a file, and
//! `> stdin TEXT` says what the next run reads, `\n` in them being line breaks; `> env NAME=VALUE` sets a variable
//! for the rest of the script. Lines of stderr begin with `! `. What differs from run to run is replaced.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

macro_rules! golden {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            let script = Path::new("tests/golden").join(stringify!($name));
            goldenscript::run(&mut Driver::new(), script).unwrap();
        }
    )*};
}

golden!(call, check, data, help, init, release, repl, repl_errors, repl_transaction, script_tests, store);

/// Runs the commands of one golden script.
struct Driver {
    folder: TempDir,
    stdin: String,
    variables: BTreeMap<String, String>,
}

impl Driver {
    fn new() -> Driver {
        Driver { folder: tempfile::tempdir().unwrap(), stdin: String::new(), variables: BTreeMap::new() }
    }

    fn tollgate(&mut self, words: Vec<String>) -> Result<String, Box<dyn Error>> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(words)
            .current_dir(&self.folder)
            // No setting of the machine that runs the tests may reach them.
            .env_clear()
            .envs(std::env::vars().filter(|(name, _)| !name.starts_with("TOLLGATE") && !name.starts_with("NO_COLOR")))
            .env("COLUMNS", "100")
            .envs(&self.variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdin = std::mem::take(&mut self.stdin);
        // A command that reads nothing may have ended before this is written.
        let _ = child.stdin.take().ok_or("no stdin")?.write_all(stdin.as_bytes());
        let ended = child.wait_with_output()?;
        let mut output = String::from_utf8(ended.stdout)?;
        for line in String::from_utf8(ended.stderr)?.lines() {
            writeln!(output, "{}", format!("! {line}").trim_end())?;
        }
        let code = ended.status.code().ok_or("ended by a signal")?;
        if code != 0 {
            writeln!(output, "exit {code}")?;
        }
        Ok(self.normal(&output))
    }

    /// The output without what differs from run to run.
    fn normal(&self, output: &str) -> String {
        let folder = self.folder.path().display().to_string();
        let mut normal = String::new();
        for line in output.replace(&folder, "<folder>").lines() {
            let line: Vec<String> = line.split_inclusive(|c: char| " ,:\"[]{}()=".contains(c)).map(normal_word).collect();
            normal.push_str(&line.concat());
            normal.push('\n');
        }
        normal
    }
}

/// A word, or what stands for it when it is an id or an instant of these days.
fn normal_word(word: &str) -> String {
    let text = word.trim_end_matches(|c: char| " ,:\"[]{}()=".contains(c));
    let rest = &word[text.len()..];
    let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let is_id = text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && is_hex(&text.replace('-', ""));
    // Virtual times in the scripts are in January 2026 and before; the present is later.
    let is_instant = text.parse::<i64>().is_ok_and(|ms| ms > 1_775_000_000_000);
    match () {
        () if is_id => format!("<id>{rest}"),
        () if is_instant => format!("<instant>{rest}"),
        () => word.to_owned(),
    }
}

/// Words as a shell splits them: at spaces, but not within quotes.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

impl goldenscript::Runner for Driver {
    type Command = goldenscript::Command;

    fn run(
        &mut self,
        command: &goldenscript::Command,
        _: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        let line = command.name.as_str();
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "tollgate" => self.tollgate(split(rest)),
            "stdin" => {
                self.stdin = rest.replace("\\n", "\n");
                Ok(String::new())
            }
            "write" => {
                let (path, text) = rest.split_once(' ').ok_or("write FILE TEXT")?;
                let path = self.folder.path().join(path);
                std::fs::create_dir_all(path.parent().ok_or("no folder")?)?;
                std::fs::write(path, text.replace("\\n", "\n"))?;
                Ok(String::new())
            }
            "env" => {
                let (name, value) = rest.split_once('=').ok_or("env NAME=VALUE")?;
                self.variables.insert(name.to_owned(), value.to_owned());
                Ok(String::new())
            }
            other => Err(format!("no command `{other}`").into()),
        }
    }
}
