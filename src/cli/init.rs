//! `tollgate init`: writes a working example.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::console::Console;
use super::exit::{Exit, usage};

/// Writes three procedures and a test. Nothing that is there is overwritten.
#[derive(Args)]
pub(crate) struct Init {
    /// Where to write them; made when it is not there.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

#[derive(Serialize)]
struct InitRecord {
    files: Vec<String>,
}

/// What is written, by path below the folder.
const FILES: [(&str, &str); 4] = [
    ("scripts/login.rhai", include_str!("init/login.rhai")),
    ("scripts/api.rhai", include_str!("init/api.rhai")),
    ("scripts/signup.rhai", include_str!("init/signup.rhai")),
    ("scripts/tests/example.rhai", include_str!("init/example_test.rhai")),
];

/// What to do next.
const NEXT: &str = "next:
  tollgate test                                     run the test
  tollgate call check_rate ada                      call a procedure, again and again
  tollgate call signup email=ada@example.com password_hash=x1
  tollgate call login_attempt ada@example.com wrong --caller '{\"ip\":\"192.0.2.1\"}'
  tollgate repl                                     try things at a prompt
  tollgate deploy                                   store the procedures in tollgate.db";

impl Init {
    pub(crate) fn run(self, console: &mut Console) -> Result<Exit> {
        let taken: Vec<String> = FILES
            .iter()
            .map(|(path, _)| self.dir.join(path))
            .filter(|path| path.exists())
            .map(|path| path.display().to_string())
            .collect();
        if !taken.is_empty() {
            return Err(usage(format!("{} would be overwritten: choose another folder", taken.join(", "))));
        }
        let mut files = Vec::new();
        for (path, text) in FILES {
            let path = self.dir.join(path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            // A file that appeared since is not overwritten either.
            let mut file = fs::File::create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
            file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
            files.push(path.display().to_string());
        }
        if console.json {
            console.record(&InitRecord { files })?;
            return Ok(Exit::Returned);
        }
        for file in files {
            console.line(format!("wrote {file}"))?;
        }
        if self.dir.as_os_str() != "." {
            console.note(format!("cd {}", self.dir.display()));
        }
        console.note(NEXT);
        Ok(Exit::Returned)
    }
}
