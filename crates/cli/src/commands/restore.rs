//! `quipu restore`: lists replaced and deleted versions of notes, and restores one.

use clap::Args;
use jiff::Timestamp;
use quipu_core::Knowledge;
use quipu_core::model::{NoteId, NoteKey, VaultPath};
use quipu_core::ports::{TrashReason, TrashedFile};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::database::GraphOption;
use super::note_source::NoteSource;
use super::output::{Line, Output};
use super::status::size;
use super::{Failure, Outcome};

/// List replaced and deleted versions of notes, or restore one.
///
/// Every write through quipu keeps the version it replaces. Without an id, lists these versions, newest first. With an id,
/// restores the newest version of that note to its path; the current file is kept as another version. `quipu serve` deletes
/// versions older than the setting `trash_days` (default 90).
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu restore                    list all kept versions, newest first
  quipu restore station/power.md   restore the newest version of that note
  quipu restore power.md --version 20260131T093000.123456789Z-000-deleted/Power.md
  quipu restore plan.md --graph team   restore a note of a graph in a database

JSON fields:
  a list: [{version, path, at, reason, bytes}]; reason is \"deleted\", \"replaced\" or \"moved\"
  an id:  {path, version, replaced, copies}; replaced is the version id of the file that was
          replaced, or null; copies[] are notes in the same folder with the same text, such as
          the one that the note was moved to")]
pub(crate) struct Restore {
    /// Path of the note from the vault's root, in any case.
    id: Option<String>,
    /// Restore this version instead of the newest.
    #[arg(long, value_name = "VERSION", requires = "id")]
    version: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RestoreAnswer {
    Kept(Vec<Row>),
    Restored {
        version: Row,
        /// The version of the file that was replaced.
        replaced: Option<String>,
        /// Whether the file existed before.
        was_there: bool,
        copies: Vec<String>,
    },
}

/// A kept version.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    version: String,
    path: String,
    at: String,
    reason: Reason,
    bytes: u64,
}

/// Why a version is in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Deleted,
    Replaced,
    Moved,
}

impl Restore {
    pub(super) fn answer(&self, source: &dyn NoteSource) -> Result<RestoreAnswer, Failure> {
        let open = source.open_notes()?;
        let knowledge = open.notes.knowledge();
        let kept = kept(knowledge)?;
        let Some(id) = &self.id else { return Ok(RestoreAnswer::Kept(kept.iter().map(Row::of).collect())) };
        let wanted = self.choose(id, &kept)?;
        open.update_index()?;
        let was_there = knowledge.snapshot().find_exact(&wanted.path).is_some();
        knowledge.restore(wanted).map_err(|error| {
            Failure::failed(format!("cannot restore {}: {error}", wanted.path))
                .hint("the version is still kept; `quipu restore` lists it")
        })?;
        let now_kept = self::kept(knowledge)?;
        let replaced = now_kept
            .into_iter()
            .find(|version| version.path.note_id() == wanted.path.note_id() && !kept.contains(version));
        Ok(RestoreAnswer::Restored {
            version: Row::of(wanted),
            replaced: replaced.map(|kept| kept.version),
            was_there,
            copies: copies(knowledge, &wanted.path),
        })
    }

    pub(super) fn print(&self, answer: &RestoreAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        match answer {
            RestoreAnswer::Kept(kept) => self.print_list(kept, output)?,
            RestoreAnswer::Restored { version: Row { version, path, .. }, replaced, copies, .. } if self.json => {
                output.json(&json!({ "path": path, "version": version, "replaced": replaced, "copies": copies }))?;
            }
            RestoreAnswer::Restored { version: Row { path, .. }, replaced: None, was_there: true, .. } => {
                output.line(&Line::new().bold(path).plain(" already has that version; nothing was changed"))?;
            }
            RestoreAnswer::Restored { version, replaced, copies, .. } => {
                version.print_restored(replaced.as_deref(), copies, output)?;
            }
        }
        Ok(Outcome::Fine)
    }

    fn choose<'a>(&self, id: &str, kept: &'a [TrashedFile]) -> Result<&'a TrashedFile, Failure> {
        let wanted = NoteId::new(id);
        let versions = || kept.iter().filter(|version| version.path.note_id() == wanted);
        let found = match &self.version {
            Some(version) => versions().find(|kept| kept.version == *version),
            // Two paths may differ only in case: the exact spelling first.
            None => versions().find(|kept| kept.path.as_str() == id).or_else(|| versions().next()),
        };
        found.ok_or_else(|| {
            let message = match &self.version {
                Some(version) => format!("cannot restore {id}: it has no version {version}"),
                None => format!("cannot restore {id}: no version of it is kept"),
            };
            Failure::failed(message).hint("`quipu restore` lists the kept versions")
        })
    }

    fn print_list(&self, kept: &[Row], output: &mut Output) -> Result<(), Failure> {
        if self.json {
            return output.json(&kept);
        }
        if kept.is_empty() {
            output
                .aside(&Line::new().plain("no versions are kept: no note has been replaced or deleted through quipu"));
        }
        for Row { version, path, at, reason, bytes } in kept {
            let reason = reason.name();
            let line =
                Line::new().plain(format!("{at}  {reason:<8}  ")).bold(path).plain(format!("  {}", size(*bytes)));
            output.line(&line)?;
            output.line(&Line::new().dim(format!("  --version {version}")))?;
        }
        Ok(())
    }
}

impl Row {
    fn of(kept: &TrashedFile) -> Self {
        let reason = match kept.reason {
            TrashReason::Deleted => Reason::Deleted,
            TrashReason::Replaced => Reason::Replaced,
            TrashReason::Moved => Reason::Moved,
        };
        Self { version: kept.version.clone(), path: kept.path.to_string(), at: at(kept), reason, bytes: kept.size }
    }

    fn print_restored(&self, replaced: Option<&str>, copies: &[String], output: &mut Output) -> Result<(), Failure> {
        let version = format!(" to the version {} at {}", self.reason.name(), self.at);
        output.line(&Line::new().plain("restored ").bold(&self.path).plain(version))?;
        output.line(&Line::new().plain(match replaced {
            Some(replaced) => format!("the previous file is kept as {replaced}"),
            None => "there was no previous file".to_owned(),
        }))?;
        for copy in copies {
            output.warning(
                &format!("{copy} has the same text: there are two copies now"),
                Some(&format!(
                    "to keep only one, `quipu call delete_node '{{\"id\": \"{copy}\"}}'` moves that one to the trash"
                )),
            );
        }
        if self.reason == Reason::Moved && copies.is_empty() {
            output.aside(&Line::new().dim("the note had been moved; its file at the new path was not changed"));
        }
        Ok(())
    }
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Replaced => "replaced",
            Self::Moved => "moved",
        }
    }
}

/// Other notes in the same folder with the same text after the frontmatter: a rename leaves a note in its folder.
fn copies(knowledge: &Knowledge, path: &VaultPath) -> Vec<String> {
    let snapshot = knowledge.snapshot();
    let Some(key) = snapshot.find_exact(path) else { return Vec::new() };
    let beside = |other: &NoteKey| *other != key && snapshot.note(*other).path.folder() == path.folder();
    let others: Vec<NoteKey> = snapshot.files().filter(beside).collect();
    let text = knowledge.bodies(&snapshot, &[key]).pop().flatten().filter(|text| !text.trim().is_empty());
    let Some(text) = text else { return Vec::new() };
    let texts = knowledge.bodies(&snapshot, &others);
    let same = others.iter().zip(texts).filter(|(_, other)| other.as_ref() == Some(&text));
    same.map(|(other, _)| snapshot.note(*other).path.to_string()).collect()
}

fn kept(knowledge: &Knowledge) -> Result<Vec<TrashedFile>, Failure> {
    knowledge.trashed().map_err(|error| Failure::failed(format!("cannot list the kept versions: {error}")))
}

fn at(kept: &TrashedFile) -> String {
    let time = Timestamp::from_nanosecond(i128::from(kept.at_ns)).expect("64 bits of nanoseconds reach 1677 to 2262");
    format!("{time:.0}")
}
