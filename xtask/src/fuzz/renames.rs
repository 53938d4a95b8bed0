//! `cargo xtask fuzz renames`: renames and moves notes and folders of random vaults with `update_links`, and compares what
//! every link of every note means before and after, the links of the renamed notes included.
//!
//! The vaults are small and their names few, so that names meet: files that differ only in case, equal stems in several
//! folders, titles and aliases that are stems of others. The engine is the real one over a vault in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use quipu_core::index::Snapshot;
use quipu_core::model::{Link, LinkSyntax};
use quipu_core::notes::{NoteError, NoteMove, NoteUpdate};
use quipu_core::parse::TitleRule;
use quipu_core::{Knowledge, Parts, Session};
use quipu_testkit::generate::Random;
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

/// Vaults by default.
pub(crate) const ROUNDS: u64 = 3000;

/// Vaults in the test command.
pub(crate) const SHORT: u64 = 250;

/// Renames and moves of each vault, one after the other.
const RENAMES: usize = 6;

/// Where notes and folders are moved.
const PLACES: [&str; 6] = ["", "a/", "b/", "a/deep/", "c/", "x/y/"];

const FOLDERS: [&str; 6] = ["", "", "a/", "b/", "a/deep/", "B/"];
const STEMS: [&str; 10] = ["one", "One", "two", "Two", "my note", "my-note", "index", "Index", "v1.2", "caf\u{e9}"];

pub(crate) fn run(rounds: u64, seed: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    let (mut renamed, mut refused) = (0, 0);
    for round in 0..rounds {
        let round_seed = seed.wrapping_add(round);
        let (done, not) = one_vault(&mut Random(round_seed))
            .with_context(|| format!("repeat with `cargo xtask fuzz renames --rounds 1 --seed {round_seed}`"))?;
        renamed += done;
        refused += not;
    }
    ensure!(
        renamed > refused,
        "only {renamed} renames and moves were made and {refused} refused: this tested too little"
    );
    let seconds = started.elapsed().as_secs_f64();
    println!("{renamed} renames and moves kept what every link means, {refused} were refused, in {seconds:.1} s");
    Ok(())
}

/// Renames in one vault; gives how many were made and how many refused.
fn one_vault(random: &mut Random) -> anyhow::Result<(usize, usize)> {
    let clock = Arc::new(FixedClock::default());
    let vault = Arc::new(MemVault::new(clock.clone()));
    let paths = paths(random);
    for path in &paths {
        vault.put(path, note_text(random, path, &paths));
    }
    clock.advance(10_000_000_000);
    let knowledge = open(&vault, &clock)?;
    let (mut renamed, mut refused) = (0, 0);
    for _ in 0..RENAMES {
        let before = meanings(&knowledge.snapshot());
        let texts = texts(&vault);
        let change = Change::random(random, &before);
        let step = format!("{change:?} in {texts:#?}");
        match change.apply(&knowledge) {
            Ok(moved) => {
                renamed += 1;
                compare(&before, &meanings(&knowledge.snapshot()), &moved).context(step.clone())?;
                let rebuilt = meanings(&open(&vault, &clock)?.snapshot());
                ensure!(rebuilt == meanings(&knowledge.snapshot()), "an index made anew says otherwise after {step}");
            }
            Err(NoteError::LinkCaptured { .. }) if !matches!(change, Change::Rename { .. }) => {
                anyhow::bail!("a move was refused for the links of others: {step}");
            }
            Err(NoteError::LinkCaptured { .. } | NoteError::Exists { .. } | NoteError::BadDestination { .. }) => {
                refused += 1;
                ensure!(self::texts(&vault) == texts, "a refused change has changed files: {step}");
            }
            Err(error) => return Err(error).context(step),
        }
    }
    Ok((renamed, refused))
}

/// One change of names.
#[derive(Debug)]
enum Change {
    Rename { from: String, title: &'static str },
    MoveNote { from: String, to: String },
    MoveFolder { from: String, to: &'static str },
}

impl Change {
    fn random(random: &mut Random, notes: &Meanings) -> Self {
        let from = pick(random, &notes.keys().collect::<Vec<_>>()).to_string();
        let folder = from.rfind('/').map(|slash| from[..=slash].to_owned());
        match (random.below(4), folder) {
            (0, _) => {
                let title = *pick(random, &STEMS);
                Self::Rename { from, title }
            }
            (1, Some(from)) => {
                let places: Vec<&'static str> = PLACES.into_iter().filter(|place| !place.is_empty()).collect();
                let to = *pick(random, &places);
                Self::MoveFolder { from, to }
            }
            (2, _) => Self::MoveNote { from, to: format!("{}{}.md", pick(random, &PLACES), pick(random, &STEMS)) },
            _ => Self::MoveNote {
                from,
                to: Some(*pick(random, &PLACES)).filter(|to| !to.is_empty()).unwrap_or("/").into(),
            },
        }
    }

    /// Carries it out; gives the new path of every note that has another.
    fn apply(&self, knowledge: &Knowledge) -> Result<BTreeMap<String, String>, NoteError> {
        let before = knowledge.snapshot();
        let session = Session::default();
        match self {
            Self::Rename { from, title } => {
                let update = NoteUpdate { id: from, title: Some(title), update_links: true, ..NoteUpdate::default() };
                let updated = knowledge.update_note(&session, None, &update)?;
                return Ok(BTreeMap::from([(from.clone(), updated.note.note().path.to_string())]));
            }
            Self::MoveNote { from: id, to } => {
                knowledge.move_notes(&session, None, &NoteMove { id, to, update_links: true })?;
            }
            Self::MoveFolder { from: id, to } => {
                knowledge.move_notes(&session, None, &NoteMove { id, to, update_links: true })?;
            }
        }
        // A moved note keeps its slot.
        let after = knowledge.snapshot();
        let path = |snapshot: &Snapshot, key| snapshot.note(key).path.to_string();
        Ok(before.files().map(|key| (path(&before, key), path(&after, key))).filter(|(from, to)| from != to).collect())
    }
}

fn open(vault: &Arc<MemVault>, clock: &Arc<FixedClock>) -> anyhow::Result<Knowledge> {
    let knowledge = Knowledge::new(Parts {
        vault: vault.clone(),
        store: Arc::new(MemNoteStorage::default().open()),
        sources: Arc::new(MemSources::new(clock.clone())),
        clock: clock.clone(),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    knowledge.start(&|_| {})?;
    Ok(knowledge)
}

fn texts(vault: &MemVault) -> BTreeMap<String, String> {
    vault.paths().into_iter().map(|path| (path.clone(), vault.text(&path).unwrap_or_default())).collect()
}

/// The links of each note in order, by the path of the note, with the path of the note that each link means.
type Meanings = BTreeMap<String, Vec<(Link, Option<String>)>>;

fn meanings(snapshot: &Snapshot) -> Meanings {
    let path = |key| snapshot.note(key).path.to_string();
    let links = |key| snapshot.links(key).map(|link| (link.link.clone(), link.target.map(path))).collect();
    snapshot.files().map(|key| (path(key), links(key))).collect()
}

/// Every link means the note it meant, wherever that is now, and says the same beside its target. A link that meant nothing
/// may mean a renamed note, and one to a page that two notes were may mean the one that keeps its name.
fn compare(before: &Meanings, after: &Meanings, moved: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let now = |path: &str| moved.get(path).cloned().unwrap_or_else(|| path.to_owned());
    ensure!(before.len() == after.len(), "there are {} notes and were {}", after.len(), before.len());
    for (path_before, links) in before {
        let path = now(path_before);
        let links_after = after.get(&path).with_context(|| format!("{path} is gone"))?;
        ensure!(links.len() == links_after.len(), "{path} has {} links and had {}", links_after.len(), links.len());
        for ((link, target), (link_after, target_after)) in links.iter().zip(links_after) {
            let is_to_page = link.target.starts_with('/') || link.syntax == LinkSyntax::Shortcode;
            let is_moved = |path: &String| moved.values().any(|to| to == path) || moved.contains_key(path_before);
            let is_new = target.is_none() && (is_to_page || target_after.as_ref().is_some_and(is_moved));
            ensure!(
                is_new || *target_after == target.as_deref().map(now),
                "in {path} the link to {:?} meant {target:?}; as {:?} it means {target_after:?}",
                link.target,
                link_after.target
            );
            let beside = |link: &Link| (link.syntax, link.fragment.clone(), link.label.clone(), link.link_type);
            let is_same = beside(link) == beside(link_after);
            ensure!(is_same, "in {path} {link:?} became {link_after:?}");
        }
    }
    Ok(())
}

fn paths(random: &mut Random) -> Vec<String> {
    let count = 3 + random.below(8);
    let mut paths: Vec<String> =
        (0..count).map(|_| format!("{}{}.md", pick(random, &FOLDERS), pick(random, &STEMS))).collect();
    paths.sort();
    paths.dedup();
    paths
}

fn note_text(random: &mut Random, path: &str, paths: &[String]) -> String {
    let mut text = String::new();
    if random.below(3) == 0 {
        text += "---\n";
        if random.below(2) == 0 {
            text += &format!("title: {}\n", pick(random, &STEMS));
        }
        if random.below(3) == 0 {
            text += &format!("aliases: [{}]\n", pick(random, &STEMS));
        }
        if random.below(2) == 0 {
            text += &format!("references: \"[[{}]]\"\n", pick(random, &STEMS));
        }
        if random.below(2) == 0 {
            text += &format!("up: '[[{}#part|label]]' # kept\n", pick(random, &STEMS));
        }
        if random.below(2) == 0 {
            let (first, second) = (pick(random, paths), pick(random, paths).trim_end_matches(".md"));
            text += &format!("see: [\"[x](<{}>)\", '[[{second}]]', plain]\n", relative(path, first));
        }
        text += "---\n";
    }
    for _ in 0..random.below(6) {
        text += &link(random, path, paths);
        text += if random.below(2) == 0 { "\n" } else { " and " };
    }
    text
}

/// A link in some syntax; to a note of the vault more often than not.
fn link(random: &mut Random, from: &str, paths: &[String]) -> String {
    let path = pick(random, paths).as_str();
    let stem = if random.below(4) == 0 {
        *pick(random, &STEMS)
    } else {
        path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md")
    };
    match random.below(13) {
        0 => format!("[[{stem}#Part|label]]"),
        1 => format!("![[{stem}]]"),
        2 => format!("[[{}]]", path.trim_end_matches(".md")),
        3 => format!("[[{stem}.md|{stem}]]"),
        4 => format!("[text](<{}#part>)", relative(from, path)),
        5 => format!("[text]({})", relative(from, path).replace(' ', "%20")),
        6 => format!("[text](</{path}>)"),
        7 => format!("[[./{stem}]]"),
        8 => format!("[text](</{}/#part>)", path.trim_end_matches(".md")),
        9 => format!("[text](</{stem}>)"),
        10 => format!("[text]({{{{< ref \"{stem}#part\" >}}}})"),
        _ => format!("[[{stem}]]"),
    }
}

/// The path from the folder of one file to another.
fn relative(from: &str, to: &str) -> String {
    "../".repeat(from.matches('/').count()) + to
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[random.below(from.len())]
}

#[cfg(test)]
mod tests {
    #[test]
    fn links_survive_a_few_random_renames() {
        super::run(40, 7).unwrap();
    }
}
