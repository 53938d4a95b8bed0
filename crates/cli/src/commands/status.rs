//! `quipu status`: counts of the vault and its memory, and the state of the index.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use quipu_core::index::Snapshot;
use quipu_core::ports::{ChangeNumber, Coverage, MemoryCounts, MemoryFailure, MemoryStore};
use quipu_server::own_files;
use quipu_server::sharing::{OwnerInfo, OwnerMode};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::command_vault::CommandVault;
use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, change};
use crate::compose::{InMemoryReason, IndexLocation, OpenFiles, OpenMemory, OpenMode, OpenVault};

/// Show counts of the vault and its memory, and the state of the index.
///
/// Updates the index first, unless that takes long. Then, and while another process updates it, shows what is known
/// without waiting.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu status
  quipu status ~/notes --json | jq .links.broken

JSON fields:
  vault                      the folder of notes
  notes                      number of notes
  links.resolved, .broken    links, each target once per note; attachments are neither
  links.advice               advice if there are many links and almost none resolves, or null
  tags                       different tags
  index.place                the folder, or null when the index is in memory
  index.owner                \"none\", or \"other\" while another process has the index open
  index.bytes, .written_at   size and time of its files before this command, or null
  index.outdated             number of notes that changed since, if they are too many to index
                             now, or null; then links, tags, embedding and since are null
  embedding.passages, .embedded, .full
                             texts to search by meaning, those with a vector, and those with one
                             by the full model; null without a model
  memory.entities, .observations, .relations, .changes
                             numbers of items in memory
  memory.last_change         {at, client, tool} of the newest change; null before the first
  memory.health              \"ok\", or why memory cannot be used; `quipu verify` checks every row
  since.added, .changed, .removed
                             notes that this command indexed or removed
  ms                         how long that took
  busy                       the process that is updating the index, or null; meanwhile notes is
                             the number of files, and links, tags, embedding and since are null")]
pub(crate) struct Status {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    #[serde(skip)]
    pub(super) folder: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StatusAnswer {
    counts: Counts,
    index: IndexLocation,
    /// The server that answered.
    server: Option<u32>,
}

/// What `--json` prints.
#[derive(Serialize, Deserialize)]
struct Counts {
    vault: String,
    notes: usize,
    links: Option<Links>,
    tags: Option<usize>,
    index: Index,
    /// `None` without an embedder.
    embedding: Option<Embedding>,
    memory: MemoryStatus,
    since: Option<ChangesSinceIndexed>,
    ms: u64,
    busy: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Embedding {
    passages: usize,
    embedded: usize,
    full: usize,
}

#[derive(Serialize, Deserialize)]
struct Links {
    resolved: usize,
    broken: usize,
    advice: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Index {
    place: Option<String>,
    owner: String,
    bytes: Option<u64>,
    written_at: Option<String>,
    outdated: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct ChangesSinceIndexed {
    added: usize,
    changed: usize,
    removed: usize,
}

/// The counts of memory.
#[derive(Serialize, Deserialize)]
struct MemoryStatus {
    entities: u64,
    observations: u64,
    relations: u64,
    changes: i64,
    last_change: Option<LastChange>,
    health: String,
}

#[derive(Serialize, Deserialize)]
struct LastChange {
    at: String,
    client: String,
    tool: String,
}

/// More changed notes than this are not indexed: the command would take seconds.
const MAX_INDEXED: usize = 2_000;

impl Status {
    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<StatusAnswer, Failure> {
        // Before the update, which writes to these files.
        let files = files_below(&own_files::index_folder(&vault.location.root));
        let is_served = vault.is_served();
        let open = vault.open(OpenMode::Existing)?;
        if !is_served && open.index == IndexLocation::Memory(InMemoryReason::InUse) {
            // Reading every note into an index in memory would take as long as that process takes.
            return partial(&open.vault, open.memory_status(), "the owner process has it open".to_owned());
        }
        if !is_served {
            let outdated = outdated(&open, files.as_ref())?;
            if outdated > MAX_INDEXED {
                return from_saved_index(&open, files.as_ref(), outdated);
            }
        }
        let ready = vault.index(open)?;
        let snapshot = ready.open.knowledge.snapshot();
        let index = ready.open.index.clone();
        let place = match &index {
            IndexLocation::Folder(folder) => Some(folder.as_path()),
            IndexLocation::Memory(_) => None,
        };
        let counts = Counts {
            vault: ready.open.vault.root().display().to_string(),
            notes: ready.notes(),
            links: Some(count_links(&snapshot)),
            tags: Some(count_tags(&snapshot)),
            index: Index::of(place, is_served, files.as_ref()),
            // Only of the index on disk: one in memory has no vectors.
            embedding: place
                .and_then(|_| ready.open.knowledge.coverage())
                .and_then(Result::ok)
                .map(|Coverage { passages, embedded, full }| Embedding { passages, embedded, full }),
            memory: ready.open.memory_status(),
            since: Some(ChangesSinceIndexed {
                added: ready.report.added,
                changed: ready.report.changed,
                removed: ready.report.removed,
            }),
            ms: u64::try_from(ready.took.as_millis()).unwrap_or(u64::MAX),
            busy: None,
        };
        Ok(StatusAnswer { counts, index, server: is_served.then(std::process::id) })
    }

    /// Answers without the index, which another process has open and does not share yet.
    pub(super) fn answer_without_index(
        &self,
        location: &VaultLocation,
        holder: &OwnerInfo,
    ) -> Result<StatusAnswer, Failure> {
        let memory = location.memory(OpenMode::Existing).map_err(|failure| failure.to_string());
        let busy = match holder.mode {
            OwnerMode::Temporary => format!("{holder} is updating it"),
            OwnerMode::Shared | OwnerMode::Exclusive => format!("{holder} has it open and does not answer"),
        };
        partial(&location.files()?, MemoryStatus::of(memory.as_ref().map_err(Clone::clone)), busy)
    }

    /// Answers in the server that is still reading the vault.
    pub(super) fn answer_while_reading(&self, open: &OpenVault, files: usize) -> Result<StatusAnswer, Failure> {
        let busy = format!("the server (process {}) is reading the vault, {files} files so far", std::process::id());
        partial(&open.vault, open.memory_status(), busy)
    }

    pub(super) fn print(&self, answer: &StatusAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        if self.json {
            output.json(&answer.counts)?;
        } else {
            answer.print(output)?;
        }
        Ok(Outcome::Fine)
    }
}

/// The number of notes that the saved index does not have as they are, by their times; all if there is none.
fn outdated(open: &OpenVault, saved: Option<&Files>) -> Result<usize, Failure> {
    let written_ns = match &open.index {
        IndexLocation::Folder(_) => saved.and_then(|files| files.newest).map(Timestamp::as_nanosecond),
        IndexLocation::Memory(_) => None,
    };
    let files = open.vault.port().list().map_err(|error| Failure::failed(error.to_string()))?.files;
    let is_newer = |modified_ns: i64| written_ns.is_none_or(|written_ns| i128::from(modified_ns) > written_ns);
    Ok(files.iter().filter(|file| is_newer(file.stat.modified_ns)).count())
}

/// An answer by what the saved index tells without being updated.
fn from_saved_index(open: &OpenVault, files: Option<&Files>, outdated: usize) -> Result<StatusAnswer, Failure> {
    let mut answer = partial(&open.vault, open.memory_status(), String::new())?;
    let place = match &open.index {
        IndexLocation::Folder(folder) => Some(folder.as_path()),
        IndexLocation::Memory(_) => None,
    };
    answer.counts.index = Index { outdated: Some(outdated), ..Index::of(place, false, files) };
    answer.counts.busy = None;
    answer.index = open.index.clone();
    Ok(answer)
}

/// An answer without the index.
fn partial(vault: &OpenFiles, memory: MemoryStatus, busy: String) -> Result<StatusAnswer, Failure> {
    let folder = own_files::index_folder(vault.root());
    let files = files_below(&folder);
    let counts = Counts {
        vault: vault.root().display().to_string(),
        notes: vault.port().list().map_err(|error| Failure::failed(error.to_string()))?.files.len(),
        links: None,
        tags: None,
        index: Index::of(Some(&folder), true, files.as_ref()),
        embedding: None,
        memory,
        since: None,
        ms: 0,
        busy: Some(busy),
    };
    Ok(StatusAnswer { counts, index: IndexLocation::Folder(folder), server: None })
}

impl OpenVault {
    fn memory_status(&self) -> MemoryStatus {
        MemoryStatus::of(self.memory.as_ref().map_err(ToString::to_string))
    }
}

impl Index {
    fn of(place: Option<&Path>, is_others: bool, files: Option<&Files>) -> Self {
        Self {
            place: place.map(|folder| folder.display().to_string()),
            owner: if is_others { "other" } else { "none" }.to_owned(),
            bytes: files.map(|files| files.bytes),
            written_at: files.and_then(|files| files.newest).map(|time| format!("{time:.0}")),
            outdated: None,
        }
    }
}

impl MemoryStatus {
    fn of(memory: Result<&OpenMemory, String>) -> Self {
        let counted = memory.and_then(|open| Self::count(&**open.memory.store()).map_err(|error| error.to_string()));
        counted.unwrap_or_else(|why| Self {
            entities: 0,
            observations: 0,
            relations: 0,
            changes: 0,
            last_change: None,
            health: why,
        })
    }

    fn count(store: &dyn MemoryStore) -> Result<Self, MemoryFailure> {
        let MemoryCounts { entities, observations, relations } = store.counts()?;
        let last_change = store.log_before(ChangeNumber(i64::MAX), 1)?.pop().map(|change| LastChange {
            at: change::at(&change),
            client: change.author.client,
            tool: change.author.tool,
        });
        let changes = store.head()?.0;
        Ok(Self { entities, observations, relations, changes, last_change, health: "ok".to_owned() })
    }

    fn text(&self) -> String {
        if self.health != "ok" {
            return format!("cannot be used: {}; `quipu verify` checks it", self.health);
        }
        let Self { entities, observations, relations, .. } = self;
        match &self.last_change {
            None => "empty".to_owned(),
            Some(LastChange { at, client, tool }) => {
                let client = if client.is_empty() { "an unnamed client" } else { client };
                format!(
                    "{entities} entities, {observations} observations, {relations} relations; last change {at} by \
                     {client} ({tool})"
                )
            }
        }
    }
}

impl StatusAnswer {
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let Counts { index, busy, .. } = &self.counts;
        let row = |name: &str, value: String| Line::new().dim(format!("{name:<8}")).plain(value);
        output.line(&Line::new().dim(format!("{:<8}", "vault")).bold(self.counts.vault.clone()))?;
        let no_notes = "; give another folder with --vault, or put Markdown files here";
        output.line(&row(
            "notes",
            format!("{}{}", self.counts.notes, if self.counts.notes == 0 { no_notes } else { "" }),
        ))?;
        if let Some(Links { resolved, broken, advice }) = &self.counts.links {
            let hint = if *broken > 0 { "; `quipu doctor` lists them" } else { "" };
            output.line(&row("links", format!("{resolved} resolved, {broken} broken{hint}")))?;
            if let Some(advice) = advice {
                output.line(&row("", advice.clone()))?;
            }
        }
        if let Some(tags) = self.counts.tags {
            output.line(&row("tags", tags.to_string()))?;
        }
        let kept = match (index.bytes, &index.written_at) {
            (Some(bytes), Some(at)) => format!("{}, last written {at}", size(bytes)),
            _ => "new".to_owned(),
        };
        let index = match (&self.index, busy) {
            (IndexLocation::Folder(folder), Some(busy)) => format!("{}, {kept}; {busy}", folder.display()),
            (IndexLocation::Folder(folder), None) if index.outdated.is_some() => {
                let outdated = index.outdated.unwrap_or_default();
                format!("{}, {kept}; {outdated} notes are newer, `quipu index` updates it", folder.display())
            }
            (IndexLocation::Folder(folder), None) => match self.server {
                Some(server) => format!("{}, {kept}, in use by process {server}", folder.display()),
                None => format!("{}, {kept}", folder.display()),
            },
            (IndexLocation::Memory(InMemoryReason::InUse), _) => format!("in use by the owner process, {kept}"),
            (IndexLocation::Memory(InMemoryReason::Unwritable(reason)), _) => {
                format!("in memory, its folder cannot be used: {reason}")
            }
            (IndexLocation::Memory(InMemoryReason::Missing), _) => "none yet; `quipu index` creates it".to_owned(),
        };
        output.line(&row("index", index))?;
        if let Some(Embedding { passages, embedded, full }) = self.counts.embedding {
            let hint = match () {
                () if embedded < passages => "; `quipu index` or a running server embeds the rest",
                () if full < passages => "; `quipu index --wait` or a running server embeds the rest",
                () => "",
            };
            let text = meaning(&Coverage { passages, embedded, full });
            output.line(&row("meaning", format!("{text}{hint}")))?;
        }
        output.line(&row("memory", self.counts.memory.text()))?;
        if let Some(ChangesSinceIndexed { added, changed, removed }) = self.counts.since
            && matches!(self.index, IndexLocation::Folder(_))
            && added + changed + removed > 0
        {
            let indexed = format!("{added} added, {changed} changed, {removed} removed since then, now indexed");
            output.line(&row("", indexed))?;
        }
        Ok(())
    }
}

fn count_links(snapshot: &Snapshot) -> Links {
    let counts = snapshot.link_counts();
    Links { resolved: counts.resolved, broken: counts.broken, advice: counts.advice() }
}

fn count_tags(snapshot: &Snapshot) -> usize {
    let tags = snapshot.files().flat_map(|key| &snapshot.note(key).tags).map(|tag| tag.folded.as_str());
    tags.collect::<FxHashSet<_>>().len()
}

/// The progress of embedding in words.
pub(super) fn meaning(coverage: &Coverage) -> String {
    let Coverage { passages, embedded, full } = *coverage;
    let text = format!("{embedded} of {passages} passages are embedded");
    if full == embedded {
        return text;
    }
    // Rounded down, so that 100 % means all of them.
    format!("{text}, {full} of them with the full model ({} %)", full * 100 / embedded)
}

/// Size and newest time of the files in a folder.
struct Files {
    bytes: u64,
    newest: Option<Timestamp>,
}

/// `None` if the folder does not exist. Files deleted meanwhile are not counted: the index merges its files.
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
    fn sizes_have_decimal_units() {
        let sizes = [0, 999, 1000, 999_949, 999_950, 1_234_567, 5_000_000_000].map(size);
        assert_eq!(sizes, ["0 bytes", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "1.2 MB", "5.0 GB"]);
    }
}
