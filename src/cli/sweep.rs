//! `tollgate sweep`: reclaims what expired.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::console::Console;
use super::exit::Exit;
use super::format;
use super::place::{Need, Place};

/// Reclaims what expired, now.
#[derive(Args)]
pub(crate) struct Sweep {}

#[derive(Serialize)]
struct SweepRecord {
    removed: u64,
    moved: u64,
}

impl Sweep {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::ExistingStore)?;
        let summary = engine.sweep()?;
        engine.close()?;
        if console.json {
            console.record(&SweepRecord { removed: summary.removed, moved: summary.moved })?;
        } else {
            let removed = format::count(usize::try_from(summary.removed).unwrap_or(usize::MAX), "expired row");
            console.line(format!("{removed} removed"))?;
        }
        Ok(Exit::Returned)
    }
}
