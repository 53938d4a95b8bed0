//! `quipu doctor`: checks the notes and the index, and says what to do about each kind of problem.
//!
//! It repairs nothing itself, but opening a corrupt index rebuilds it, as in every command.

use std::path::PathBuf;

use clap::Args;
use quipu_core::index::Snapshot;
use quipu_core::model::{Link, LinkSyntax, VaultPath};
use quipu_core::parse::{decode, link_sites};
use quipu_core::ports::{VaultError, VaultFiles};
use quipu_store_embedded::MemoryOpenError;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::open_vault::{IndexedVault, VaultLocation};
use super::output::{Line, Output};
use super::status::size;
use super::{Failure, Outcome, Shared};
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

#[derive(Serialize)]
struct Answer {
    vault: String,
    notes: usize,
    problems: usize,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    kind: &'static str,
    #[serde(skip)]
    title: &'static str,
    is_problem: bool,
    count: usize,
    advice: &'static str,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    path: String,
    message: String,
    /// Where in the file, counted from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<usize>,
}

impl Finding {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), lines: Vec::new() }
    }
}

impl Doctor {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let ready = VaultLocation::find(self.folder.as_deref(), shared)?.open_indexed(OpenMode::Existing, output)?;
        if let Some((message, advice)) = ready.unsaved() {
            output.warning(&message, Some(advice));
        }
        let groups = examine(&ready)?;
        let problems = groups.iter().filter(|group| group.is_problem).map(|group| group.count).sum();
        let vault = ready.open.vault.root().display().to_string();
        let answer = Answer { vault, notes: ready.notes(), problems, groups };
        if self.json {
            output.json(&answer)?;
        } else {
            answer.print(self.all, output)?;
            if answer.notes == 0 {
                output.aside(&ready.without_notes());
            }
            if ready.open.index == IndexLocation::Memory(InMemoryReason::InUse) {
                output.aside(&Line::new().dim("the index was not checked: another quipu process has it open"));
            } else if let Some(why) = ready.open.why_not_kept() {
                output.warning(&why, ready.open.advice_on_keeping());
            }
        }
        Ok(if self.check && problems > 0 { Outcome::Negative } else { Outcome::Fine })
    }
}

impl Answer {
    fn print(&self, all: bool, output: &mut Output) -> Result<(), Failure> {
        for group in &self.groups {
            output.line(&Line::new().bold(group.title).plain(format!(" ({})", group.count)))?;
            let shown = if all { group.count } else { SHOWN };
            for Finding { path, message, .. } in group.findings.iter().take(shown) {
                let separator = if message.is_empty() { "" } else { ": " };
                output.line(&Line::new().plain(format!("  {path}")).dim(format!("{separator}{message}")))?;
            }
            if group.count > shown {
                output.line(&Line::new().dim(format!("  and {} more; --all lists them", group.count - shown)))?;
            }
            output.line(&Line::new().yellow("  → ").plain(group.advice))?;
            output.blank()?;
        }
        let summary = match (self.problems, self.notes) {
            (0, 0) => "no notes".to_owned(),
            (0, _) => "no problems".to_owned(),
            (1, _) => "1 problem".to_owned(),
            (many, _) => format!("{many} problems"),
        };
        output.line(&Line::new().bold(summary).plain(format!(" in {}", self.vault)))
    }
}

fn examine(ready: &IndexedVault) -> Result<Vec<Group>, Failure> {
    let snapshot = ready.open.knowledge.snapshot();
    let Files { unreadable, left_out } = read_everything(&ready.open)?;
    let problem = |kind, title, advice, findings: Vec<Finding>| Group {
        kind,
        title,
        is_problem: true,
        count: findings.len(),
        advice,
        findings,
    };
    let remark = |kind, title, advice, findings| Group { is_problem: false, ..problem(kind, title, advice, findings) };
    let unresolved = snapshot.link_counts().advice().map(|advice| Finding::new(".", advice));
    let mut groups = vec![
        problem(
            "unresolved_links",
            "Almost no link resolves",
            "open the folder that the links start from, or exclude the folders that are not part of the vault",
            unresolved.into_iter().collect(),
        ),
        problem(
            "broken_links",
            "Broken links",
            "create the note, or fix the link; it resolves as soon as the file exists",
            broken_links(&ready.open, &snapshot),
        ),
        problem(
            "case_collisions",
            "Paths that differ only in case",
            "rename one of each pair: other systems can hold only one of them",
            case_collisions(&snapshot),
        ),
        problem("unreadable", "Files that cannot be read", "make them readable for yourself (chmod u+r)", unreadable),
        problem(
            "left_out",
            "Files and folders left out",
            "rename or move them if they are meant to be notes, else exclude them in .quipu/config.toml",
            left_out,
        ),
        problem(
            "odd_notes",
            "Notes with unreadable parts",
            "fix the place named; until then the text is kept and served unchanged",
            odd_notes(&snapshot),
        ),
        problem(
            "damaged_index",
            "Corrupt index",
            "no note is lost; `quipu index --rebuild` rebuilds the index",
            damaged_index(&ready.open)?,
        ),
        problem(
            "memory",
            "Memory that cannot be used",
            "`quipu verify` shows details; restore a backup, or move the file away to start with an empty memory",
            unusable_memory(&ready.open),
        ),
        remark("orphans", "Notes without links", "link to them from another note, or ignore this", orphans(&snapshot)),
        remark(
            "leftovers",
            "Temporary files left by a crash",
            "nothing to do: the next write removes them",
            ready.open.vault.leftovers().into_iter().map(|path| Finding::new(path, "")).collect(),
        ),
        remark(
            "trash",
            "Trash",
            "`quipu restore` lists it; delete the folder when you no longer need its versions",
            trash(&ready.open)?,
        ),
    ];
    groups.retain(|group| group.count > 0);
    Ok(groups)
}

fn unusable_memory(open: &OpenVault) -> Vec<Finding> {
    let finding = |error: &MemoryOpenError| Finding::new(".quipu/memory.db", error.to_string());
    open.memory.as_ref().err().map(finding).into_iter().collect()
}

struct Files {
    unreadable: Vec<Finding>,
    left_out: Vec<Finding>,
}

/// Opens every file: one that lost its permission keeps its size and time, so the index does not notice.
fn read_everything(open: &OpenVault) -> Result<Files, Failure> {
    let listing = open.vault.list().map_err(|error| Failure::failed(error.to_string()))?;
    let read = |path: &VaultPath| match open.vault.read(path) {
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
    let Ok(Some(content)) = open.vault.read(path) else { return lines };
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
