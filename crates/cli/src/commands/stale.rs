//! `quipu stale`: lists the pages that are older than the files they describe.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use quipu_core::model::NoteKey;
use quipu_core::staleness::{Freshness, SourceChange, StaleSource, Staleness, source_refs, unusable_refs};
use serde::{Deserialize, Serialize};

use super::command_vault::{CommandVault, IndexedVault};
use super::output::{Line, Output};
use super::{Failure, Outcome};
use crate::compose::{InMemoryReason, IndexLocation, OpenMode};

/// List the pages that are older than the files they describe.
///
/// A page lists those files in its frontmatter under `source_refs`: files, folders or patterns, from the vault's root or
/// the repository's. It is stale if one of them changed after the page did, according to git or, without git, to the index.
/// It is possibly stale while that change is younger than 7 days (`days` under `[staleness]` in the settings), and untracked
/// if it has no `source_refs`, or none that can be compared with an earlier state.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu stale ~/project/docs        list stale pages, and since when they are stale
  quipu stale --fail                for CI: exit code 1 if a page is stale or a source could not
                                    be compared; possibly stale pages do not fail
  quipu stale --json | jq -r '.pages[] | select(.staleness == \"stale\") | .path'

In CI the checkout needs the whole history, since a page is compared with the commit that last
changed it. With GitHub Actions: `uses: actions/checkout` with `fetch-depth: 0`, then
`quipu stale docs --fail`.

JSON fields:
  vault, counts   {fresh, possibly_stale, stale, untracked}
  pages[]         {path, title, staleness, refs[{path, change, since}]}, stale ones first;
                  change is \"modified\" or \"deleted\", since is null if it is not known
  never_seen[]    {path, ref}: references to files that do not exist and never did
  unknown[]       {path, ref}: sources that could not be compared; warnings say why
  warnings[]      why something could not be compared")]
pub(crate) struct Stale {
    /// Folder of notes.
    #[arg(value_name = "VAULT")]
    #[serde(skip)]
    pub(super) folder: Option<PathBuf>,
    /// Exit with code 1 when a page is stale, or when a source could not be compared.
    #[arg(long)]
    fail: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StaleAnswer {
    vault: String,
    counts: Counts,
    pages: Vec<Page>,
    never_seen: Vec<Named>,
    unknown: Vec<Named>,
    warnings: Vec<String>,
}

#[derive(Serialize, Deserialize, Default)]
struct Counts {
    fresh: usize,
    possibly_stale: usize,
    stale: usize,
    untracked: usize,
}

#[derive(Serialize, Deserialize)]
struct Page {
    path: String,
    title: String,
    staleness: String,
    refs: Vec<Ref>,
}

#[derive(Serialize, Deserialize)]
struct Ref {
    path: String,
    change: String,
    since: Option<String>,
}

/// References of one kind that are listed; JSON has all of them.
const LISTED: usize = 3;

/// A page and one of its references.
#[derive(Serialize, Deserialize)]
struct Named {
    path: String,
    #[serde(rename = "ref")]
    reference: String,
}

impl Stale {
    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<StaleAnswer, Failure> {
        Ok(look(&vault.open_indexed(OpenMode::Existing)?, vault))
    }

    pub(super) fn print(&self, answer: &StaleAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        if self.json {
            output.json(answer)?;
        } else {
            answer.print(output)?;
        }
        // A source that could not be compared may have changed, so the check must not pass.
        let fails = self.fail && (answer.counts.stale > 0 || !answer.unknown.is_empty());
        Ok(if fails { Outcome::Negative } else { Outcome::Fine })
    }
}

fn look(ready: &IndexedVault, vault: &CommandVault<'_>) -> StaleAnswer {
    let knowledge = &ready.open.knowledge;
    let snapshot = knowledge.snapshot();
    let (sourced, others): (Vec<NoteKey>, Vec<NoteKey>) =
        snapshot.files().partition(|key| !source_refs(snapshot.note(*key)).is_empty());
    let what = || format!("comparing {} pages with their sources", sourced.len());
    let (judged, mut warnings) = vault.waiting(what, || knowledge.freshness(&snapshot, &sourced));
    let root = ready.open.vault.root();
    let has_history = root.ancestors().any(|folder| folder.join(".git").exists());
    if !has_history && !sourced.is_empty() && ready.open.index == IndexLocation::Memory(InMemoryReason::Missing) {
        warnings
            .push("cannot compare with the past: there is neither git nor an index; `quipu index` creates one".into());
    }
    for note in snapshot.files().map(|key| snapshot.note(key)) {
        let unusable = note.property("source_refs").map(unusable_refs).unwrap_or_default();
        warnings.extend(unusable.into_iter().map(|what| format!("{}: {what}", note.path)));
    }
    let mut counts = Counts { untracked: others.len(), ..Counts::default() };
    let (mut pages, mut never_seen, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (key, freshness) in sourced.iter().zip(judged) {
        let note = snapshot.note(*key);
        match freshness.staleness {
            Staleness::Fresh => counts.fresh += 1,
            Staleness::PossiblyStale => counts.possibly_stale += 1,
            Staleness::Stale => counts.stale += 1,
            Staleness::Untracked => counts.untracked += 1,
        }
        let named = |reference: &String| Named { path: note.path.to_string(), reference: reference.clone() };
        never_seen.extend(freshness.never_seen.iter().map(named));
        unknown.extend(freshness.unknown.iter().map(named));
        if !freshness.stale_sources.is_empty() {
            pages.push(Page::new(note.path.to_string(), note.title.clone(), &freshness));
        }
    }
    // Stale before possibly stale, each by path.
    pages.sort_by(|a, b| b.staleness.cmp(&a.staleness).then_with(|| a.path.cmp(&b.path)));
    StaleAnswer { vault: root.display().to_string(), counts, pages, never_seen, unknown, warnings }
}

impl Page {
    fn new(path: String, title: String, freshness: &Freshness) -> Self {
        let of = |stale: &StaleSource| Ref {
            path: stale.path.clone(),
            change: match stale.change {
                SourceChange::Modified => "modified",
                SourceChange::Deleted => "deleted",
            }
            .to_owned(),
            since: stale.since_ns.map(time),
        };
        Self {
            path,
            title,
            staleness: freshness.staleness.name().to_owned(),
            refs: freshness.stale_sources.iter().map(of).collect(),
        }
    }
}

impl StaleAnswer {
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        for page in &self.pages {
            let level = page.staleness.replace('_', " ");
            output.line(&Line::new().yellow(level).plain("  ").bold(page.path.clone()))?;
            for source in &page.refs {
                let since = source.since.as_deref().map_or(String::new(), |since| format!(" since {since}"));
                output.line(
                    &Line::new().plain(format!("  {}", source.path)).dim(format!("  {}{since}", source.change)),
                )?;
            }
        }
        if !self.pages.is_empty() {
            output.blank()?;
        }
        let Counts { fresh, possibly_stale, stale, untracked } = self.counts;
        let counts = format!("{stale} stale, {possibly_stale} possibly stale, {fresh} fresh, {untracked} untracked");
        output.line(&Line::new().plain(counts))?;
        // First what explains the rest.
        for warning in &self.warnings {
            output.warning(warning, None);
        }
        list(&self.never_seen, "does not exist and never did", output);
        list(&self.unknown, "may have changed: its history cannot be read", output);
        if untracked > 0 {
            output.aside(&Line::new().dim("untracked: no `source_refs`, or none that can be compared with the past"));
        }
        Ok(())
    }
}

/// The first few references, and how many more there are.
fn list(named: &[Named], what: &str, output: &Output) {
    for Named { path, reference } in named.iter().take(LISTED) {
        output.aside(&Line::new().dim(format!("{path}: its source {reference} {what}")));
    }
    if named.len() > LISTED {
        output.aside(&Line::new().dim(format!("and {} more; --json lists them", named.len() - LISTED)));
    }
}

fn time(nanoseconds: i64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).expect("64 bits of nanoseconds reach 1677 to 2262");
    format!("{time:.0}")
}
