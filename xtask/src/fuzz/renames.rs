//! `cargo xtask fuzz renames`: renames notes of random vaults with `update_links`, and compares what every link of every
//! note means before and after, the links of the renamed note included.
//!
//! The vaults are small and their names few, so that names meet: files that differ only in case, equal stems in several
//! folders, titles and aliases that are stems of others. The engine is the real one over a vault in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use quipu_core::index::Snapshot;
use quipu_core::model::{Link, LinkSyntax};
use quipu_core::notes::{NoteError, NoteUpdate};
use quipu_core::parse::TitleRule;
use quipu_core::{Knowledge, Parts, Session};
use quipu_testkit::generate::Random;
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

/// Vaults unless told otherwise.
pub(crate) const ROUNDS: u64 = 3000;

/// Vaults in the test command.
pub(crate) const SHORT: u64 = 250;

/// Renames of each vault, one after the other.
const RENAMES: usize = 6;

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
    ensure!(renamed > refused, "only {renamed} renames were made and {refused} refused: this tested too little");
    let seconds = started.elapsed().as_secs_f64();
    println!("{renamed} renames kept what every link means, {refused} were refused, in {seconds:.1} s");
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
        let from = pick(random, &before.keys().collect::<Vec<_>>()).to_string();
        let title = *pick(random, &STEMS);
        let update = NoteUpdate { id: &from, title: Some(title), update_links: true, ..NoteUpdate::default() };
        let step = format!("renaming {from} to {title:?} in {texts:#?}");
        match knowledge.update_note(&Session::default(), None, &update) {
            Ok(updated) => {
                renamed += 1;
                let to = updated.note.note().path.to_string();
                compare(&before, &meanings(&knowledge.snapshot()), &from, &to).context(step.clone())?;
                let rebuilt = meanings(&open(&vault, &clock)?.snapshot());
                ensure!(rebuilt == meanings(&knowledge.snapshot()), "an index made anew says otherwise after {step}");
            }
            Err(NoteError::LinkCaptured { .. } | NoteError::Exists { .. }) => {
                refused += 1;
                ensure!(self::texts(&vault) == texts, "a refused change has changed files: {step}");
            }
            Err(error) => return Err(error).context(step),
        }
    }
    Ok((renamed, refused))
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

/// Of each note, by path, its links in order and the path of the note that each means.
type Meanings = BTreeMap<String, Vec<(Link, Option<String>)>>;

fn meanings(snapshot: &Snapshot) -> Meanings {
    let path = |key| snapshot.note(key).path.to_string();
    let links = |key| snapshot.links(key).map(|link| (link.link.clone(), link.target.map(path))).collect();
    snapshot.files().map(|key| (path(key), links(key))).collect()
}

/// Every link means the note it meant, wherever that is now, and says the same beside its target. A link that meant nothing
/// may mean the renamed note, and one to a page that two notes were may mean the one that keeps its name.
fn compare(before: &Meanings, after: &Meanings, from: &str, to: &str) -> anyhow::Result<()> {
    let now = |path: &str| if path == from { to.to_owned() } else { path.to_owned() };
    ensure!(before.len() == after.len(), "there are {} notes and were {}", after.len(), before.len());
    for (path, links) in before {
        let path = now(path);
        let links_after = after.get(&path).with_context(|| format!("{path} is gone"))?;
        ensure!(links.len() == links_after.len(), "{path} has {} links and had {}", links_after.len(), links.len());
        for ((link, target), (link_after, target_after)) in links.iter().zip(links_after) {
            let is_to_page = link.target.starts_with('/') || link.syntax == LinkSyntax::Shortcode;
            let is_new = target.is_none() && (is_to_page || target_after.as_deref() == Some(to));
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
