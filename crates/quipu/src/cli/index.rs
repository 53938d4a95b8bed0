//! `quipu index`: brings the index up to what the files say, or makes it anew.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use quipu_core::index::{Progress, SyncReport};
use quipu_core::search::{Effort, EmbeddingFailed, Round};
use serde::{Deserialize, Serialize};

use super::output::{Line, Output};
use super::progress::{Meter, seconds};
use super::{Failure, Outcome, Shared, opened};
use crate::compose::{IndexPlace, OpenVault, WhyMemory, Wish};
use crate::engine::{Engine, EngineOptions};
use crate::share::{Claim, Hosted};

/// Passages embedded at a time: what is lost when this is stopped.
const ROUND: usize = 64;

/// Update the index with the files that changed.
///
/// Every other command does this too before it answers, but does not embed. Run it after a large import, or from a script
/// that wants the next answer to be quick. Other commands can use the index while passages are embedded. Nothing but
/// .quipu/ is written.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu index ~/notes            update the index
  quipu index ~/notes --rebuild  read every file again; vectors are kept
  quipu index ~/notes --no-embed words and links only, in seconds
  quipu index --json | jq .total")]
pub(crate) struct Index {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    pub(super) folder: Option<PathBuf>,
    /// Delete the index and read every file again; without git, pages then count as fresh.
    #[arg(long)]
    rebuild: bool,
    /// Do not embed passages now; a server embeds them in the background.
    #[arg(long)]
    no_embed: bool,
    /// Print JSON: {added, changed, removed, unreadable, total, ms, index, embedded}.
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
    /// With a claim the vault is this process's: other processes are answered while passages are embedded.
    pub(super) fn run(self, shared: &Shared, claim: Option<Claim>, output: &mut Output) -> Result<Outcome, Failure> {
        let wish = if self.rebuild { Wish::Rebuild } else { Wish::Keep };
        let located = opened::locate(self.folder.as_deref(), shared)?;
        let in_use = || {
            Failure::failed("cannot rebuild the index: a running server is using it")
                .hint("close the clients that use this vault, then run this again")
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
        let SyncReport { added, changed, removed, unreadable, .. } = ready.report;
        let total = ready.notes();
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
        let embedded =
            if self.no_embed || !is_kept || is_served { 0 } else { embed_shared(&ready.open, claim, output)? };
        if is_served && let Some((embedded, passages)) = lacking(&ready.open) {
            let text = format!(
                "{embedded} of {passages} passages are embedded; process {} goes on with the rest",
                std::process::id()
            );
            output.aside(&Line::new().dim(text));
        }
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

/// How many passages are embedded, and how many there are; `None` when that is all of them.
fn lacking(open: &OpenVault) -> Option<(usize, usize)> {
    let coverage = open.knowledge.coverage()?.ok()?;
    (coverage.embedded < coverage.passages).then_some((coverage.embedded, coverage.passages))
}

/// Embeds what lacks vectors, and lets other processes use the index meanwhile.
fn embed_shared(open: &Arc<OpenVault>, claim: Option<Claim>, output: &Output) -> Result<usize, Failure> {
    if lacking(open).is_none() {
        return Ok(0);
    }
    // Read already; passages are embedded here, with every core.
    let options = EngineOptions { watches: false, background: false, trash_days: 0, read: |_| Ok(()) };
    let host = |claim| Ok::<_, Failure>(Hosted::start(Engine::start(open.clone(), options)?, claim, super::run_for));
    let hosted = claim.map(host).transpose()?;
    let embedded = embed(open, output);
    if let Some(hosted) = hosted {
        hosted.end();
    }
    embedded
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
