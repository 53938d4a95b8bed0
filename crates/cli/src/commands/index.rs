//! `quipu index`: updates or rebuilds the index.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use quipu_core::index::{IndexReport, Progress};
use quipu_core::ports::Coverage;
use quipu_core::search::{Effort, EmbeddingFailed, Round};
use quipu_server::engine::{Engine, EngineOptions, FirstPass};
use quipu_server::sharing::{OwnerLock, TemporaryOwner};
use serde::{Deserialize, Serialize};

use super::command_vault::CommandVault;
use super::output::{Line, Output, counted};
use super::progress::{Meter, seconds};
use super::status::meaning;
use super::{Failure, Outcome};
use crate::compose::{InMemoryReason, IndexLocation, OpenMode, OpenVault};

/// Passages embedded between two reports of progress: some seconds of work. At the end of each, cores wait for the last one.
const ROUND: usize = 256;

/// Changed notes after which the lines of all notes are indexed now: the first search of documents would wait for them. Those of
/// fewer notes take a tenth of a second.
const MANY: usize = 2048;

/// Update the index with the files that changed.
///
/// Other commands update the index too, but do not embed. Run this after a large import, or in a script to make the next
/// command fast. Passages get coarse vectors, so that search by meaning works at once; a server replaces them with vectors
/// of the full model in the background, or --wait does so now. Other commands can use the index meanwhile. Only .quipu/ is
/// written.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu index ~/notes            update the index
  quipu index ~/notes --rebuild  read every file again; vectors are kept
  quipu index ~/notes --wait     embed every passage with the full model (takes minutes)
  quipu index ~/notes --no-embed words and links only
  quipu index --json | jq .total")]
pub(crate) struct Index {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    #[serde(skip)]
    pub(super) folder: Option<PathBuf>,
    /// Delete the index and read every file again; without git, all pages count as fresh afterwards.
    #[arg(long)]
    rebuild: bool,
    /// Wait until every passage is embedded with the full model.
    #[arg(long)]
    #[serde(default)]
    wait: bool,
    /// Do not embed passages now; a server embeds them in the background.
    #[arg(long, conflicts_with = "wait")]
    no_embed: bool,
    /// Print JSON: {added, changed, removed, unreadable, total, ms, index, coarse, embedded}.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct IndexedFiles {
    added: usize,
    changed: usize,
    removed: usize,
    unreadable: usize,
    total: usize,
    ms: u64,
    /// The index's folder; null when the index is in memory.
    index: Option<String>,
    /// Passages that got a coarse vector now.
    coarse: usize,
    /// Passages that were embedded with the full model now.
    embedded: usize,
}

impl Index {
    /// With the lock this process owns the vault, and answers other processes while it embeds.
    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<IndexedFiles, Failure> {
        let mode = if self.rebuild { OpenMode::Rebuild } else { OpenMode::Create };
        let in_use = || {
            Failure::failed("cannot rebuild the index: a running server is using it")
                .hint("close the clients that use this vault, then run this again")
        };
        let is_served = vault.is_served();
        if self.rebuild && is_served {
            return Err(in_use());
        }
        let ready = vault.open_indexed(mode)?;
        if self.rebuild && ready.open.index == IndexLocation::Memory(InMemoryReason::InUse) {
            return Err(in_use());
        }
        if let Some(why) = ready.open.why_not_kept() {
            vault.warn(why, ready.open.advice_on_keeping());
        }
        if let Some((message, advice)) = ready.unsaved() {
            return Err(Failure::failed(message).hint(advice));
        }
        let index = match &ready.open.index {
            IndexLocation::Folder(folder) => Some(folder.display().to_string()),
            IndexLocation::Memory(_) => None,
        };
        // Vectors in memory would be lost when this command ends.
        let embeds = !self.no_embed && index.is_some();
        // A server embeds in the background.
        let in_full = embeds && !is_served && (self.wait || !ready.open.knowledge.has_coarse_encoder());
        let make_vectors = || {
            let coarse = embed_coarse(&ready.open, vault)?;
            Ok((coarse, if in_full { embed(&ready.open, vault)? } else { 0 }))
        };
        let (coarse, embedded) =
            if embeds { shared_while(&ready.open, vault.take_lock(), make_vectors)? } else { (0, 0) };
        if !in_full
            && (embeds || is_served)
            && let Some(coverage) = lacking(&ready.open)
        {
            vault.remark(format!("{}; {}", meaning(&coverage), who_embeds(is_served)));
        }
        let IndexReport { added, changed, removed, unreadable, .. } = ready.report;
        if index.is_some() && !is_served && added + changed > MANY {
            let built = ready.open.knowledge.build_lines();
            built.map_err(|error| Failure::from(error).about("cannot save the lines of notes"))?;
        }
        let ms = u64::try_from(ready.took.as_millis()).unwrap_or(u64::MAX);
        Ok(IndexedFiles { added, changed, removed, unreadable, total: ready.notes(), ms, index, coarse, embedded })
    }

    pub(super) fn print(&self, answer: &IndexedFiles, output: &mut Output) -> Result<Outcome, Failure> {
        if self.json {
            output.json(answer)?;
        } else {
            let IndexedFiles { added, changed, removed, total, ms, .. } = *answer;
            let took = seconds(Duration::from_millis(ms));
            let counts = format!(" ({added} added, {changed} changed, {removed} removed) in {took}");
            output.line(&Line::new().bold(counted(total, "note", "notes")).plain(counts))?;
        }
        if answer.unreadable > 0 {
            output.warning(
                &format!("cannot read {}", counted(answer.unreadable, "file", "files")),
                Some("`quipu doctor` lists them with the reason"),
            );
        }
        Ok(Outcome::Fine)
    }
}

/// The progress of embedding; `None` when every passage has a full vector.
fn lacking(open: &OpenVault) -> Option<Coverage> {
    open.knowledge.coverage()?.ok().filter(|coverage| coverage.full < coverage.passages)
}

fn who_embeds(is_served: bool) -> String {
    match is_served {
        true => format!("process {} embeds the rest", std::process::id()),
        false => "a running server or `quipu index --wait` embeds the rest".to_owned(),
    }
}

/// Gives every passage without a vector a coarse one.
fn embed_coarse(open: &OpenVault, vault: &CommandVault<'_>) -> Result<usize, Failure> {
    let meter = Meter::start("embedding", "passages have a coarse vector", vault.progress());
    let goes_on = |progress| {
        meter.update(progress);
        true
    };
    let made = open.knowledge.embed_coarse(&goes_on);
    meter.finish();
    made.map_err(|error| Failure::failed(format!("cannot save vectors: {error}")))
}

/// Lets other processes use the index during some work.
fn shared_while<T>(
    open: &Arc<OpenVault>,
    lock: Option<OwnerLock>,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if lacking(open).is_none() {
        return work();
    }
    // The files are indexed, and the work embeds passages, with every core.
    let options = EngineOptions { watches: false, background: false, trash_days: 0, first_pass: FirstPass::Done };
    let share =
        |lock| Ok::<_, Failure>(TemporaryOwner::start(Engine::start(open.clone(), options)?, open.vault.root(), lock));
    let shared = lock.map(share).transpose()?;
    let outcome = work();
    if let Some(owner) = shared {
        owner.end();
    }
    outcome
}

/// Embeds passages without full vectors, with every core. If the provider fails, warns and stops.
fn embed(open: &OpenVault, vault: &CommandVault<'_>) -> Result<usize, Failure> {
    let meter = Meter::start("embedding", "passages embedded in full", vault.progress());
    let mut embedded = 0;
    let outcome = loop {
        match open.knowledge.embed_some(ROUND, Effort::EveryCore) {
            Ok(Round::Embedded(count)) => {
                embedded += count;
                if let Some(Ok(coverage)) = open.knowledge.coverage() {
                    meter.update(Progress { done: coverage.full, total: coverage.passages });
                }
            }
            Ok(Round::Idle) => break Ok(embedded),
            Err(EmbeddingFailed::Embedder(error)) => {
                vault.warn(error.to_string(), Some("search by words works; run this again to embed the rest"));
                break Ok(embedded);
            }
            Err(EmbeddingFailed::Store(error)) => {
                break Err(Failure::from(error).about("cannot save vectors"));
            }
        }
    };
    meter.finish();
    outcome
}
