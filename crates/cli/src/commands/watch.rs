//! `quipu watch`: the live trail in the terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_server::engine::{EngineOptions, FirstPass};
use quipu_server::service::{TrailEntry, TrailEntryKind, VaultService};
use quipu_server::sharing::{SharedVault, SharedVaultOptions};
use quipu_tools::{RegistryOptions, Toolset};

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Show calls by agents and changes to notes and memory as they happen.
///
/// Runs until Ctrl-C. Shows the clients of all processes that serve this vault.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu watch                      show everything
  quipu watch --writes             show only what changes notes or memory
  quipu watch --json | jq .tool    print one JSON object per line

JSON fields:
  number, at                 position in the trail, and milliseconds since 1970
  who                        the client's name; empty for changes by other programs
  kind                       \"call\", \"note\" or \"memory\"
  tool, object, text         what was called, the note it is about, and one line on it
  ms, failed, writes         duration of a call, whether it failed, whether it writes")]
pub(crate) struct Watch {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    folder: Option<PathBuf>,
    /// Leave out calls that only read.
    #[arg(long)]
    writes: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

impl Watch {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let location = VaultLocation::find(self.folder.as_deref(), shared)?;
        let options = SharedVaultOptions {
            engine: EngineOptions {
                watches: true,
                background: false,
                trash_days: 0,
                first_pass: FirstPass::ReportToLog,
            },
            offer: RegistryOptions { toolsets: Toolset::ALL.to_vec(), read_only: true },
            is_waiting: Arc::default(),
        };
        let root = location.root.clone();
        let vault = SharedVault::open(Box::new(location), options)?;
        output.aside(&Line::new().plain("watching ").bold(root.display().to_string()).dim("; Ctrl-C ends it"));
        // Only new entries; `quipu audit` prints earlier ones.
        let mut next = vault.trail(u64::MAX).map_or(0, |page| page.next);
        loop {
            thread::sleep(POLL_INTERVAL);
            let Ok(page) = vault.trail(next) else { continue };
            next = page.next;
            for trace in page.traces.iter().filter(|trace| !self.writes || trace.writes) {
                output.line(&if self.json { json(trace)? } else { line(trace) })?;
            }
            output.finish()?;
        }
    }
}

fn json(trace: &TrailEntry) -> Result<Line, Failure> {
    let text = serde_json::to_string(trace).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Line::new().plain(text))
}

fn line(trace: &TrailEntry) -> Line {
    let at = Timestamp::from_millisecond(trace.at).unwrap_or_default().to_zoned(TimeZone::system());
    let who = if trace.who.is_empty() { "file" } else { &trace.who };
    let what = match trace.kind {
        TrailEntryKind::Call => trace.tool.as_deref().unwrap_or("call"),
        TrailEntryKind::Note => "changed",
        TrailEntryKind::Memory => "memory",
    };
    let mut line =
        Line::new().dim(at.strftime("%H:%M:%S  ").to_string()).bold(format!("{who}  ")).plain(what).plain("  ");
    line = line.plain(trace.text.clone());
    match (trace.failed, trace.ms) {
        (true, _) => line.yellow("  failed"),
        (_, Some(ms)) => line.dim(format!("  {ms} ms")),
        _ => line,
    }
}
