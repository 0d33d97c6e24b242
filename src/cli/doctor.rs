//! `tollgate doctor`: verifies the store.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::console::Console;
use super::exit::Exit;
use super::place::{Need, Place};

/// Verifies every invariant of the store; exits 7 when one is broken.
#[derive(Args)]
pub(crate) struct Doctor {}

#[derive(Serialize)]
struct DoctorRecord {
    healthy: bool,
    faults: Vec<String>,
}

impl Doctor {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::ExistingStore)?;
        let faults = engine.doctor()?;
        engine.close()?;
        let healthy = faults.is_empty();
        if console.json {
            console.record(&DoctorRecord { healthy, faults })?;
        } else if healthy {
            console.line("healthy")?;
        } else {
            for fault in faults {
                console.line(fault)?;
            }
        }
        Ok(if healthy { Exit::Returned } else { Exit::Failed })
    }
}
