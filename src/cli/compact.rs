//! `tollgate compact`: reclaims space on disk.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::console::Console;
use super::exit::Exit;
use super::place::{Need, Place};

/// Reclaims space on disk. The store is usable by nobody else meanwhile.
#[derive(Args)]
pub(crate) struct Compact {}

#[derive(Serialize)]
struct CompactRecord {
    bytes_before: u64,
    bytes_after: u64,
}

impl Compact {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::ExistingStore)?;
        let bytes_before = engine.size_on_disk()?;
        engine.compact()?;
        let bytes_after = engine.size_on_disk()?;
        engine.close()?;
        if console.json {
            console.record(&CompactRecord { bytes_before, bytes_after })?;
        } else {
            console.line(format!("{bytes_before} bytes before, {bytes_after} bytes after"))?;
        }
        Ok(Exit::Returned)
    }
}
