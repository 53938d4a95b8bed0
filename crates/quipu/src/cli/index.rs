//! `quipu index`: brings the index up to what the files say, or makes it anew.

use std::path::PathBuf;

use clap::Args;
use quipu_core::index::{Progress, SyncReport};
use quipu_core::search::{Effort, EmbeddingFailed, Round};
use serde::{Deserialize, Serialize};

use super::output::{Line, Output};
use super::progress::{Meter, seconds};
use super::{Failure, Outcome, Shared, opened};
use crate::compose::{IndexPlace, OpenVault, WhyMemory, Wish};

/// Passages embedded at a time: what is lost when this is stopped.
const ROUND: usize = 64;

/// Read what changed since the last time into the index.
///
/// Every other command does this too before it answers. Run it after a large import, or from a script that wants the next
/// answer to be quick. Nothing but .quipu/ is written.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu index ~/notes            take in what changed
  quipu index ~/notes --rebuild  forget the index and read every file again; vectors are kept
  quipu index ~/notes --no-embed words and links only, in seconds
  quipu index --json | jq .total")]
pub(crate) struct Index {
    /// The folder of notes.
    #[arg(value_name = "VAULT")]
    pub(super) folder: Option<PathBuf>,
    /// Forget what the index held and read every file again. Where there is no git, what the sources of pages were like is
    /// forgotten too, and pages count as fresh.
    #[arg(long)]
    rebuild: bool,
    /// Leave texts without vectors for now: a server embeds them in the background.
    #[arg(long)]
    no_embed: bool,
    /// Answer as JSON: {added, changed, removed, unreadable, total, ms, index, embedded}.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    added: usize,
    changed: usize,
    removed: usize,
    unreadable: usize,
    total: usize,
    ms: u64,
    /// Where the index is kept; null when it could not be.
    index: Option<String>,
    /// Passages that were embedded now.
    embedded: usize,
}

impl Index {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let wish = if self.rebuild { Wish::Rebuild } else { Wish::Keep };
        let located = opened::locate(self.folder.as_deref(), shared)?;
        let in_use = || {
            Failure::failed("the index is in use by a running server and was not rebuilt")
                .hint("end the clients that use this vault, then run this again")
        };
        if self.rebuild && located.is_served() {
            return Err(in_use());
        }
        let is_served = located.is_served();
        let ready = opened::ready(&located, wish, output)?;
        if self.rebuild && ready.open.index == IndexPlace::Memory(WhyMemory::Owned) {
            return Err(in_use());
        }
        if let Some(why) = ready.open.why_not_kept() {
            output.warning(&why, ready.open.advice_on_keeping());
        }
        let SyncReport { added, changed, removed, unreadable, total, .. } = ready.report;
        if let Some((message, advice)) = ready.unsaved() {
            return Err(Failure::failed(message).hint(advice));
        }
        let index = match &ready.open.index {
            IndexPlace::Folder(folder) => Some(folder.display().to_string()),
            IndexPlace::Memory(_) => None,
        };
        // Vectors that are not kept are of no use to the next command.
        let is_kept = matches!(ready.open.index, IndexPlace::Folder(_));
        // A server embeds in the background, and goes on when this command is over.
        let embedded = if self.no_embed || !is_kept || is_served { 0 } else { embed(&ready.open, output)? };
        if self.json {
            let ms = u64::try_from(ready.took.as_millis()).unwrap_or(u64::MAX);
            output.json(&Answer { added, changed, removed, unreadable, total, ms, index, embedded })?;
        } else {
            let line = Line::new()
                .bold(format!("{total} notes"))
                .plain(format!(" ({added} added, {changed} changed, {removed} removed) in {}", seconds(ready.took)));
            output.line(&line)?;
        }
        if unreadable > 0 {
            output.warning(
                &format!("{unreadable} files could not be read"),
                Some("`quipu doctor` lists them and says why"),
            );
        }
        Ok(Outcome::Fine)
    }
}

/// Embeds all that lacks vectors, with every core. A provider that fails is told of, and leaves the rest for later.
fn embed(open: &OpenVault, output: &Output) -> Result<usize, Failure> {
    let meter = Meter::start("embedding", "passages embedded", output);
    let mut embedded = 0;
    let outcome = loop {
        match open.knowledge.embed_some(ROUND, Effort::EveryCore) {
            Ok(Round::Embedded(count)) => {
                embedded += count;
                if let Some(Ok(coverage)) = open.knowledge.coverage() {
                    meter.update(Progress { done: coverage.embedded, total: coverage.passages }, output);
                }
            }
            Ok(Round::Idle) => break Ok(embedded),
            Err(EmbeddingFailed::Embedder(error)) => {
                output.warning(&error.to_string(), Some("words are indexed; run this again to embed the rest"));
                break Ok(embedded);
            }
            Err(EmbeddingFailed::Store(error)) => {
                break Err(Failure::from(error).about("vectors cannot be kept"));
            }
        }
    };
    meter.finish(output);
    outcome
}
