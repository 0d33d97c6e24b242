//! The command line, driven as users drive it: golden scripts of commands with their output and exit codes.
//!
//! Commands: `> tollgate …` runs the binary in a folder of its own; `> write FILE TEXT` writes a file, and
//! `> stdin TEXT` says what the next run reads, `\n` in them being line breaks; `> env NAME=VALUE` sets a variable
//! for the rest of the script; `$ID` is the last id that was printed; `> hold PATH` keeps a store open in the test's own process; `> show FILE` prints a file. Lines of stderr begin with `! `. What differs from run to run is replaced.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tollgate::Engine;

macro_rules! golden {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            let script = Path::new("tests/golden").join(stringify!($name));
            goldenscript::run(&mut Driver::new(), script).unwrap();
        }
    )*};
}

golden!(
    call,
    check,
    data,
    diagnostics,
    explain,
    help,
    init,
    jobs,
    overrides,
    overrides_hashed,
    plan,
    release,
    repl,
    repl_errors,
    repl_looking,
    repl_transaction,
    script_tests,
    store,
);

/// Runs the commands of one golden script.
struct Driver {
    folder: TempDir,
    stdin: String,
    variables: BTreeMap<String, String>,
    held: Option<Engine>,
    /// The last id that a command printed: `$ID` in those that follow.
    last_id: String,
}

impl Driver {
    fn new() -> Driver {
        Driver {
            folder: tempfile::tempdir().unwrap(),
            stdin: String::new(),
            variables: BTreeMap::new(),
            held: None,
            last_id: String::new(),
        }
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
        if let Some(id) = output.split(|c: char| !c.is_ascii_hexdigit() && c != '-').rfind(|word| is_id(word)) {
            self.last_id = id.to_owned();
        }
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
        let output = output.replace(&self.folder.path().display().to_string(), "<folder>");
        let output = output.replace(&format!("process {}", std::process::id()), "process <pid>");
        let output = match output.split_once("\"elapsed_ms\":") {
            Some((before, after)) => {
                format!(
                    "{before}\"elapsed_ms\":<ms>{}",
                    after.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                )
            }
            None => output,
        };
        let output: Vec<String> = output.split('\n').map(without_times).collect();
        let output = output.join("\n");
        let mut normal = String::with_capacity(output.len());
        let mut rest = output.as_str();
        while let Some(first) = rest.chars().next() {
            let starts_word = normal.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '-');
            let (length, stands_for) = if starts_word { replaced(rest).unwrap_or((0, "")) } else { (0, "") };
            if length > 0 {
                normal.push_str(stands_for);
                rest = &rest[length..];
            } else {
                normal.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        normal
    }
}

fn is_id(word: &str) -> bool {
    word.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// A line of an explanation without the times it measured.
fn without_times(line: &str) -> String {
    if line.starts_with("time ") && line.contains(": limits ") {
        return "time <times>".to_owned();
    }
    let mut parts = line.split("_us\":");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, rest| line + "_us\":<us>" + rest.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The length of the id, instant or measured time that a text begins with, and what stands for it.
fn replaced(text: &str) -> Option<(usize, &'static str)> {
    let run = |wanted: &dyn Fn(char) -> bool| text.find(|c| !wanted(c)).unwrap_or(text.len());
    let id = run(&|c| c.is_ascii_hexdigit() || c == '-');
    if is_id(&text[..id]) {
        return Some((id, "<id>"));
    }
    if id == 12 && text[..id].contains(|c: char| c.is_ascii_digit()) && !text[..id].contains('-') {
        return Some((id, "<hash>"));
    }
    if id == 64 {
        return Some((id, "<hash>"));
    }
    let instant = run(&|c| c.is_ascii_digit() || "-:.TZ".contains(c));
    let shaped = instant >= 20 && text[..instant].contains('T') && text[..instant].ends_with('Z');
    // The scripts' own instants are within an hour of these.
    if shaped && !["2026-01-01T00:", "2026-02-01T00:"].iter().any(|own| text.starts_with(own)) {
        return Some((instant, "<instant>"));
    }
    let digits = run(&|c| c.is_ascii_digit());
    let own = 1_767_225_600_000..1_767_229_200_000_i64;
    if digits == 13 && text[..digits].parse().is_ok_and(|ms| !own.contains(&ms)) {
        return Some((digits, "<instant>"));
    }
    None
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

    fn run(&mut self, command: &goldenscript::Command, _: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        let line = command.name.as_str();
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "tollgate" => self.tollgate(split(&rest.replace("$ID", &self.last_id))),
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
            "hold" => {
                self.held = Some(Engine::builder().path(self.folder.path().join(rest)).open()?);
                Ok(String::new())
            }
            "show" => Ok(self.normal(&std::fs::read_to_string(self.folder.path().join(rest))?)),
            "env" => {
                let (name, value) = rest.split_once('=').ok_or("env NAME=VALUE")?;
                self.variables.insert(name.to_owned(), value.to_owned());
                Ok(String::new())
            }
            other => Err(format!("no command `{other}`").into()),
        }
    }
}
