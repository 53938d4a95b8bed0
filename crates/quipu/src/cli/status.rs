//! `quipu status`: what the vault holds and where its index is.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use quipu_core::index::Snapshot;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::output::{Line, Output};
use super::{Failure, Outcome, Shared, opened};
use crate::compose::{self, IndexPlace, WhyMemory, Wish};

/// Tell what the vault holds and where its index is.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu status
  quipu status ~/notes --json | jq .links.broken

JSON fields:
  vault                      the folder of notes
  notes                      notes, files that lost their id to another spelling left out
  links.resolved, .broken    links as written, repetitions included; attachments are neither
  tags                       different tags
  index.place                the folder, or null when the index lives in memory
  index.owner                \"none\", or \"other\" while a server has it open: it then answers this
  index.bytes, .written_at   size and time of its files before this command; null when there are none
  embedding.passages, .embedded    texts to search by meaning, and those ready; null without
                             a model
  since.added, .changed, .removed   what this command had to take in to be up to date
  ms                         how long that took
Whether a server watches the vault cannot be seen from outside it.")]
pub(crate) struct Status {
    /// The folder of notes.
    #[arg(value_name = "VAULT")]
    pub(super) folder: Option<PathBuf>,
    /// Answer as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    vault: String,
    notes: usize,
    links: Links,
    tags: usize,
    index: Index,
    /// Null without an embedder.
    embedding: Option<Embedding>,
    since: Since,
    ms: u64,
}

#[derive(Serialize)]
struct Embedding {
    passages: usize,
    embedded: usize,
}

#[derive(Serialize)]
struct Links {
    resolved: usize,
    broken: usize,
}

#[derive(Serialize)]
struct Index {
    place: Option<String>,
    owner: &'static str,
    bytes: Option<u64>,
    written_at: Option<String>,
}

#[derive(Serialize)]
struct Since {
    added: usize,
    changed: usize,
    removed: usize,
}

impl Status {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let located = opened::locate(self.folder.as_deref(), shared)?;
        // Looked at first: bringing the index up to date writes to it.
        let files = files_below(&compose::index_folder(&located.root));
        let is_served = located.is_served();
        let ready = opened::ready(&located, Wish::Look, output)?;
        let snapshot = ready.open.knowledge.snapshot();
        let index = Index {
            place: match &ready.open.index {
                IndexPlace::Folder(folder) => Some(folder.display().to_string()),
                IndexPlace::Memory(_) => None,
            },
            owner: if is_served || ready.open.index == IndexPlace::Memory(WhyMemory::Owned) { "other" } else { "none" },
            bytes: files.as_ref().map(|files| files.bytes),
            written_at: files.as_ref().and_then(|files| files.newest).map(|time| format!("{time:.0}")),
        };
        let answer = Answer {
            vault: ready.open.vault.root().display().to_string(),
            notes: snapshot.notes().count(),
            links: count_links(&snapshot),
            tags: count_tags(&snapshot),
            index,
            // Of an index that is not ours to look into nothing is known.
            embedding: ready
                .open
                .knowledge
                .coverage()
                .filter(|_| matches!(ready.open.index, IndexPlace::Folder(_)))
                .and_then(Result::ok)
                .map(|coverage| Embedding { passages: coverage.passages, embedded: coverage.embedded }),
            since: Since { added: ready.report.added, changed: ready.report.changed, removed: ready.report.removed },
            ms: u64::try_from(ready.took.as_millis()).unwrap_or(u64::MAX),
        };
        if self.json {
            output.json(&answer)?;
        } else {
            answer.print(&ready.open.index, output)?;
        }
        Ok(Outcome::Fine)
    }
}

impl Answer {
    fn print(&self, place: &IndexPlace, output: &mut Output) -> Result<(), Failure> {
        let row = |name: &str, value: String| Line::new().dim(format!("{name:<8}")).plain(value);
        output.line(&Line::new().dim(format!("{:<8}", "vault")).bold(self.vault.clone()))?;
        output.line(&row("notes", self.notes.to_string()))?;
        let Links { resolved, broken } = self.links;
        let hint = if broken > 0 { "; `quipu doctor` lists them" } else { "" };
        output.line(&row("links", format!("{resolved} resolved, {broken} broken{hint}")))?;
        output.line(&row("tags", self.tags.to_string()))?;
        let kept = match (self.index.bytes, &self.index.written_at) {
            (Some(bytes), Some(at)) => format!("{}, last written {at}", size(bytes)),
            _ => "new".to_owned(),
        };
        let index = match place {
            IndexPlace::Folder(folder) if self.index.owner == "other" => {
                format!("{}, {kept}, in use by a running server", folder.display())
            }
            IndexPlace::Folder(folder) => format!("{}, {kept}", folder.display()),
            IndexPlace::Memory(WhyMemory::Owned) => format!("in use by another quipu process, {kept}"),
            IndexPlace::Memory(WhyMemory::Unwritable(reason)) => {
                format!("in memory, its folder cannot be used: {reason}")
            }
            IndexPlace::Memory(WhyMemory::NotYet) => "none yet; `quipu index` makes one".to_owned(),
        };
        output.line(&row("index", index))?;
        if let Some(Embedding { passages, embedded }) = &self.embedding {
            let hint = if embedded < passages { "; `quipu index` or a running server embeds the rest" } else { "" };
            output.line(&row("meaning", format!("{embedded} of {passages} passages embedded{hint}")))?;
        }
        let Since { added, changed, removed } = self.since;
        if matches!(place, IndexPlace::Folder(_)) && added + changed + removed > 0 {
            let taken = format!("{added} added, {changed} changed, {removed} removed since then, now taken in");
            output.line(&row("", taken))?;
        }
        Ok(())
    }
}

fn count_links(snapshot: &Snapshot) -> Links {
    let mut links = Links { resolved: 0, broken: 0 };
    for key in snapshot.files() {
        links.resolved += snapshot.links(key).filter(|link| link.target.is_some()).count();
        links.broken += snapshot.broken_links(key).count();
    }
    links
}

fn count_tags(snapshot: &Snapshot) -> usize {
    let tags = snapshot.notes().flat_map(|key| &snapshot.note(key).tags).map(|tag| tag.folded.as_str());
    tags.collect::<FxHashSet<_>>().len()
}

/// What lies in a folder.
struct Files {
    bytes: u64,
    newest: Option<Timestamp>,
}

/// `None` where there is no such folder. Files that vanish meanwhile are not counted: the index merges its own.
#[expect(clippy::disallowed_methods, reason = "looks at the index's own folder")]
fn files_below(folder: &Path) -> Option<Files> {
    let mut files = Files { bytes: 0, newest: None };
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            let below = files_below(&entry.path());
            files.bytes += below.as_ref().map_or(0, |below| below.bytes);
            files.newest = files.newest.max(below.and_then(|below| below.newest));
        } else {
            files.bytes += metadata.len();
            let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
            files.newest = files.newest.max(modified);
        }
    }
    Some(files)
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        let sizes = [0, 999, 1000, 999_949, 999_950, 1_234_567, 5_000_000_000].map(size);
        assert_eq!(sizes, ["0 bytes", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "1.2 MB", "5.0 GB"]);
    }
}
