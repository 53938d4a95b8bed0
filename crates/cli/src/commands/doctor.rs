//! `quipu doctor`: checks the notes and the index, and says what to do about each kind of problem.
//!
//! It repairs nothing itself, but opening a corrupt index rebuilds it, as in every command.

use std::path::PathBuf;

use clap::Args;
use quipu_core::index::Snapshot;
use quipu_core::model::{Link, LinkSyntax, VaultPath};
use quipu_core::parse::{decode, link_sites};
use quipu_core::ports::VaultError;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command_vault::{CommandVault, IndexedVault, Notice};
use super::output::{Line, Output};
use super::status::size;
use super::{Failure, Outcome};
use crate::compose::{InMemoryReason, IndexLocation, OpenMode, OpenVault};

/// Findings of one kind that are shown without --all.
const SHOWN: usize = 10;

/// Check the notes and the index, and say what to do about each problem.
///
/// Problems are broken links, unreadable files, paths that differ only in case, invalid frontmatter, and a corrupt index.
/// Remarks are notes without links, files left by a crash, and the size of the trash.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu doctor ~/notes             list the first few findings of each kind
  quipu doctor --all               list every finding
  quipu doctor --check             exit with code 1 when there is a problem
  quipu doctor --json | jq '.groups[] | select(.kind == \"broken_links\") | .findings[].path'

JSON fields:
  vault, notes, problems
  groups[]   {kind, is_problem, count, advice, findings[{path, message, lines}]}; kinds without
             findings are omitted, and so are lines that are not known. Kinds are
             unresolved_links, broken_links, case_collisions, unreadable, left_out, odd_notes,
             damaged_index, memory (problems), orphans, leftovers, trash (remarks)

Without --check, the exit code is 0 even if there are problems.")]
pub(crate) struct Doctor {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    #[serde(skip)]
    pub(super) folder: Option<PathBuf>,
    /// Exit with code 1 when there is a problem; remarks do not count.
    #[arg(long)]
    check: bool,
    /// List every finding.
    #[arg(long)]
    all: bool,
    /// Print JSON, with every finding.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DoctorAnswer {
    vault: String,
    notes: usize,
    groups: Vec<(FindingKind, Vec<Finding>)>,
    /// What to say at the end, unless the output is JSON.
    remarks: Vec<Notice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FindingKind {
    UnresolvedLinks,
    BrokenLinks,
    CaseCollisions,
    Unreadable,
    LeftOut,
    OddNotes,
    DamagedIndex,
    Memory,
    Orphans,
    Leftovers,
    Trash,
}

impl FindingKind {
    /// Other kinds are remarks.
    fn is_problem(self) -> bool {
        !matches!(self, Self::Orphans | Self::Leftovers | Self::Trash)
    }

    fn title(self) -> &'static str {
        match self {
            Self::UnresolvedLinks => "Almost no link resolves",
            Self::BrokenLinks => "Broken links",
            Self::CaseCollisions => "Paths that differ only in case",
            Self::Unreadable => "Files that cannot be read",
            Self::LeftOut => "Ignored files and folders",
            Self::OddNotes => "Notes with unreadable parts",
            Self::DamagedIndex => "Corrupt index",
            Self::Memory => "Memory that cannot be used",
            Self::Orphans => "Notes without links",
            Self::Leftovers => "Temporary files left by a crash",
            Self::Trash => "Trash",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::UnresolvedLinks => {
                "open the folder that the links start from, or exclude the folders that are not part of the vault"
            }
            Self::BrokenLinks => "create the note, or fix the link; it resolves as soon as the file exists",
            Self::CaseCollisions => "rename one of each pair: other systems can hold only one of them",
            Self::Unreadable => "make them readable for yourself (chmod u+r)",
            Self::LeftOut => {
                "rename or move them if they are meant to be notes, else exclude them in .quipu/config.toml"
            }
            Self::OddNotes => "fix the place named; until then the text is kept and served unchanged",
            Self::DamagedIndex => "no note is lost; `quipu index --rebuild` rebuilds the index",
            Self::Memory => {
                "`quipu verify` shows details; restore a backup, or move the file away to start with an empty memory"
            }
            Self::Orphans => "link to them from another note, or ignore this",
            Self::Leftovers => "nothing to do: the next write removes them",
            Self::Trash => "`quipu restore` lists it; delete the folder when you no longer need its versions",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Finding {
    path: String,
    message: String,
    /// Where in the file, counted from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<usize>,
}

impl Finding {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), lines: Vec::new() }
    }
}

impl Doctor {
    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<DoctorAnswer, Failure> {
        let ready = vault.open_indexed(OpenMode::Existing)?;
        if let Some((message, advice)) = ready.unsaved() {
            vault.warn(message, Some(advice));
        }
        let mut remarks: Vec<Notice> = ready.without_notes().into_iter().map(Notice::Remark).collect();
        if ready.open.index == IndexLocation::Memory(InMemoryReason::InUse) {
            let text = "the index was not checked: the owner process has it open";
            remarks.push(Notice::Remark(text.to_owned()));
        } else if let Some(message) = ready.open.why_not_kept() {
            let hint = ready.open.advice_on_keeping().map(str::to_owned);
            remarks.push(Notice::Warning { message, hint });
        }
        let root = ready.open.vault.root().display().to_string();
        Ok(DoctorAnswer { vault: root, notes: ready.notes(), groups: examine(&ready)?, remarks })
    }

    pub(super) fn print(&self, answer: &DoctorAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        let problems = answer.problems();
        if self.json {
            output.json(&answer.to_json())?;
        } else {
            answer.print(self.all, output)?;
            answer.remarks.iter().for_each(|remark| remark.print(output));
        }
        Ok(if self.check && problems > 0 { Outcome::Negative } else { Outcome::Fine })
    }
}

impl DoctorAnswer {
    fn problems(&self) -> usize {
        self.groups.iter().filter(|(kind, _)| kind.is_problem()).map(|(_, findings)| findings.len()).sum()
    }

    fn to_json(&self) -> Value {
        let group = |(kind, findings): &(FindingKind, Vec<Finding>)| {
            json!({
                "kind": kind,
                "is_problem": kind.is_problem(),
                "count": findings.len(),
                "advice": kind.advice(),
                "findings": findings,
            })
        };
        let groups: Vec<Value> = self.groups.iter().map(group).collect();
        json!({ "vault": self.vault, "notes": self.notes, "problems": self.problems(), "groups": groups })
    }

    fn print(&self, all: bool, output: &mut Output) -> Result<(), Failure> {
        for (kind, findings) in &self.groups {
            let count = findings.len();
            output.line(&Line::new().bold(kind.title()).plain(format!(" ({count})")))?;
            let shown = if all { count } else { SHOWN };
            for Finding { path, message, .. } in findings.iter().take(shown) {
                let separator = if message.is_empty() { "" } else { ": " };
                output.line(&Line::new().plain(format!("  {path}")).dim(format!("{separator}{message}")))?;
            }
            if count > shown {
                output.line(&Line::new().dim(format!("  and {} more; --all lists them", count - shown)))?;
            }
            output.line(&Line::new().yellow("  → ").plain(kind.advice()))?;
            output.blank()?;
        }
        let summary = match (self.problems(), self.notes) {
            (0, 0) => "no notes".to_owned(),
            (0, _) => "no problems".to_owned(),
            (1, _) => "1 problem".to_owned(),
            (many, _) => format!("{many} problems"),
        };
        output.line(&Line::new().bold(summary).plain(format!(" in {}", self.vault)))
    }
}

fn examine(ready: &IndexedVault) -> Result<Vec<(FindingKind, Vec<Finding>)>, Failure> {
    let snapshot = ready.open.knowledge.snapshot();
    let Files { unreadable, left_out } = read_everything(&ready.open)?;
    let unresolved = snapshot.link_counts().advice().map(|advice| Finding::new(".", advice));
    let leftovers = ready.open.vault.leftovers().into_iter().map(|path| Finding::new(path, ""));
    let mut groups = vec![
        (FindingKind::UnresolvedLinks, unresolved.into_iter().collect()),
        (FindingKind::BrokenLinks, broken_links(&ready.open, &snapshot)),
        (FindingKind::CaseCollisions, case_collisions(&snapshot)),
        (FindingKind::Unreadable, unreadable),
        (FindingKind::LeftOut, left_out),
        (FindingKind::OddNotes, odd_notes(&snapshot)),
        (FindingKind::DamagedIndex, damaged_index(&ready.open)?),
        (FindingKind::Memory, unusable_memory(&ready.open)),
        (FindingKind::Orphans, orphans(&snapshot)),
        (FindingKind::Leftovers, leftovers.collect()),
        (FindingKind::Trash, trash(&ready.open)?),
    ];
    groups.retain(|(_, findings)| !findings.is_empty());
    Ok(groups)
}

fn unusable_memory(open: &OpenVault) -> Vec<Finding> {
    let error = open.memory.as_ref().err();
    error.map(|error| Finding::new(".quipu/memory.db", error.to_string())).into_iter().collect()
}

struct Files {
    unreadable: Vec<Finding>,
    left_out: Vec<Finding>,
}

/// Opens every file: one that lost its permission keeps its size and time, so the index does not notice.
fn read_everything(open: &OpenVault) -> Result<Files, Failure> {
    let files = open.vault.port();
    let listing = files.list().map_err(|error| Failure::failed(error.to_string()))?;
    let read = |path: &VaultPath| match files.read(path) {
        Ok(_) => None,
        Err(VaultError::Read { path, source }) => Some(Finding::new(path, source.to_string())),
        Err(VaultError::Database { reason }) => Some(Finding::new(path.to_string(), reason)),
    };
    let left_out = listing.warnings.into_iter().map(|warning| Finding::new(warning.path, warning.message));
    Ok(Files {
        unreadable: listing.files.iter().filter_map(|file| read(&file.path)).collect(),
        left_out: left_out.collect(),
    })
}

/// Each broken link, once for each note, with its lines.
fn broken_links(open: &OpenVault, snapshot: &Snapshot) -> Vec<Finding> {
    let of_note = |key| {
        let path = &snapshot.note(key).path;
        let broken: Vec<&Link> = snapshot.broken_links(key).collect();
        let lines = if broken.is_empty() { FxHashMap::default() } else { lines_of_links(open, path) };
        let finding = move |link: &Link| {
            let lines = lines.get(&(link.syntax, link.target.clone())).cloned().unwrap_or_default();
            let shown = match link.syntax {
                LinkSyntax::Wiki | LinkSyntax::Frontmatter => format!("[[{}]]", link.target),
                LinkSyntax::Embed => format!("![[{}]]", link.target),
                LinkSyntax::Markdown => format!("({})", link.target),
                LinkSyntax::Shortcode => format!("{{{{< ref \"{}\" >}}}}", link.target),
            };
            let numbers = lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let message = match lines.len() {
                0 => shown,
                1 => format!("{shown} in line {numbers}"),
                _ => format!("{shown} in lines {numbers}"),
            };
            Finding { path: path.to_string(), message, lines }
        };
        broken.into_iter().map(finding)
    };
    snapshot.files().flat_map(of_note).collect()
}

/// The lines of every link in the current file, counted from 1, by syntax and target.
fn lines_of_links(open: &OpenVault, path: &VaultPath) -> FxHashMap<(LinkSyntax, String), Vec<usize>> {
    let mut lines: FxHashMap<(LinkSyntax, String), Vec<usize>> = FxHashMap::default();
    // A file that cannot be read is a finding of its own.
    let Ok(Some(content)) = open.vault.port().read(path) else { return lines };
    let text = decode(content.bytes);
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    for site in link_sites(&text) {
        let line = ends.partition_point(|end| *end < site.range.start) + 1;
        let known = lines.entry((site.link.syntax, site.link.target)).or_default();
        if known.last() != Some(&line) {
            known.push(line);
        }
    }
    lines
}

fn case_collisions(snapshot: &Snapshot) -> Vec<Finding> {
    let finding = |key| {
        let owner = snapshot.note(snapshot.case_twin(key)?);
        Some(Finding::new(snapshot.note(key).path.to_string(), format!("{} owns the id {}", owner.path, owner.id)))
    };
    snapshot.files().filter_map(finding).collect()
}

fn odd_notes(snapshot: &Snapshot) -> Vec<Finding> {
    let of_note = |key| {
        let note = snapshot.note(key);
        note.warnings.iter().map(|message| Finding::new(note.path.to_string(), message))
    };
    snapshot.files().flat_map(of_note).collect()
}

fn orphans(snapshot: &Snapshot) -> Vec<Finding> {
    let graph = snapshot.graph();
    let is_alone = |key: &_| graph.out(*key).is_empty() && graph.incoming(*key).is_empty();
    let alone = snapshot.files().filter(is_alone);
    alone.map(|key| Finding::new(snapshot.note(key).path.to_string(), "")).collect()
}

fn damaged_index(open: &OpenVault) -> Result<Vec<Finding>, Failure> {
    let IndexLocation::Folder(_) = &open.index else { return Ok(Vec::new()) };
    let mut messages = open.store.notices();
    messages.extend(open.knowledge.check_store()?);
    Ok(messages.into_iter().map(|message| Finding::new(".quipu/index", message)).collect())
}

fn trash(open: &OpenVault) -> Result<Vec<Finding>, Failure> {
    let kept = open.knowledge.trashed().map_err(|error| Failure::failed(error.to_string()))?;
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = kept.iter().map(|kept| kept.size).sum();
    let versions = if kept.len() == 1 { "1 version".to_owned() } else { format!("{} versions", kept.len()) };
    Ok(vec![Finding::new(".quipu/trash", format!("{versions}, {}", size(bytes)))])
}
