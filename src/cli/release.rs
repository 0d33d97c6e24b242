//! `tollgate deploy`, `releases` and `rollback`: the releases of procedures in the store.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tollgate::Release;

use super::console::Console;
use super::exit::Exit;
use super::place::{Need, Place};
use super::{Folder, Strictness, check, format};

/// Stores the procedures of a folder as the next release. Nothing is stored when one does not compile.
#[derive(Args)]
pub(crate) struct Deploy {
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    strictness: Strictness,
}

/// Lists the stored releases, the newest first.
#[derive(Args)]
pub(crate) struct Releases {}

/// Goes back to an earlier release, by storing it again as the next one.
#[derive(Args)]
pub(crate) struct Rollback {
    /// The release to go back to [default: the one before the current].
    #[arg(value_name = "N")]
    number: Option<u64>,
}

/// A release, as programs read it.
#[derive(Serialize)]
struct ReleaseRecord<'a> {
    release: u64,
    at: String,
    hash: &'a str,
    files: Vec<&'a str>,
    rollback_of: Option<u64>,
    current: bool,
}

impl Deploy {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let folder = place.folder(self.folder.dir.as_deref())?;
        // Before the store is opened: what is refused makes none.
        let warned = check::warn(&folder, console)?;
        self.strictness.judge(warned, "nothing is deployed")?;
        let engine = place.open(Need::Store)?;
        let release = engine.deploy(&folder)?;
        print(&release, true, console)?;
        engine.close()?;
        Ok(Exit::Returned)
    }
}

impl Releases {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::ExistingStore)?;
        let mut releases = engine.releases()?;
        engine.close()?;
        releases.sort_by_key(|release| std::cmp::Reverse(release.number));
        for (index, release) in releases.iter().enumerate() {
            print(release, index == 0, console)?;
        }
        if releases.is_empty() && !console.json {
            console.note("no releases: `tollgate deploy` stores one");
        }
        Ok(Exit::Returned)
    }
}

impl Rollback {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::ExistingStore)?;
        let release = engine.rollback(self.number)?;
        print(&release, true, console)?;
        engine.close()?;
        Ok(Exit::Returned)
    }
}

fn print(release: &Release, current: bool, console: &mut Console) -> Result<()> {
    let files: Vec<&str> = release.files.iter().map(|file| file.path.as_str()).collect();
    if console.json {
        console.record(&ReleaseRecord {
            release: release.number,
            at: release.at.to_string(),
            hash: &release.hash,
            files,
            rollback_of: release.rollback_of,
            current,
        })?;
        return Ok(());
    }
    let hash: String = release.hash.chars().take(12).collect();
    let mut line =
        format!("release {}  {}  {hash}  {}", release.number, release.at, format::count(files.len(), "file"));
    if let Some(earlier) = release.rollback_of {
        line.push_str(&format!("  (back to {earlier})"));
    }
    if current {
        line.push_str("  current");
    }
    console.line(line)?;
    Ok(())
}
