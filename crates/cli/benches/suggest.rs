//! How good suggestions are, on a real vault: tags of a held-out note from the others, and summaries against the ones that
//! pages have in their frontmatter. `cargo bench -p quipu --bench suggest -- VAULT`; prints two JSON lines, for the half of the
//! notes on which the constants were chosen, and for the other half.
#![expect(clippy::print_stdout, reason = "a measurement tells its figures")]

#[path = "common/open.rs"]
mod open;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use quipu_core::index::Snapshot;
use quipu_core::model::NoteKey;
use quipu_core::search::words::{folded, words};
use quipu_core::search::{By, Meaning, NoteSearch};
use quipu_core::suggest::{plain_text, sentences};
use quipu_core::{Knowledge, Session};
use quipu_embed::Builtin;
use serde_json::{Value, json};

use open::open;

/// Suggestions that count.
const AT: usize = 5;

/// Notes measured in one vault.
const MOST: usize = 400;

/// Characters of a summary: about as long as the descriptions people write.
const SUMMARY_CHARS: usize = 200;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let vault = PathBuf::from(arguments.next().context("usage: suggest VAULT")?);
    let (knowledge, store) = open(&vault, "suggest")?;
    let knowledge = knowledge.with_meaning(Meaning::new(Arc::new(Builtin::new()), store));
    knowledge.start(&|_| {})?;
    knowledge.embed_coarse(&|_| true)?;
    let snapshot = knowledge.snapshot();
    for half in [Half::Tune, Half::Test] {
        let (tags, summaries) = (tags(&knowledge, &snapshot, half)?, summaries(&knowledge, &snapshot, half)?);
        println!("{}", json!({ "half": format!("{half:?}"), "tags": tags, "summaries": summaries }));
    }
    Ok(())
}

/// Constants were chosen on one half of the notes, and are measured on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Tune,
    Test,
}

impl Half {
    /// By a sum over the path, so that the same notes are in the same half in every run.
    fn of(path: &str) -> Self {
        if path.bytes().map(u64::from).sum::<u64>() % 2 == 0 { Self::Tune } else { Self::Test }
    }
}

/// Hits, suggestions and tags to find, summed over notes.
#[derive(Default)]
struct Tally {
    hits: usize,
    suggested: usize,
    wanted: usize,
}

impl Tally {
    fn add<'t>(&mut self, suggested: impl IntoIterator<Item = &'t str>, wanted: &HashSet<&str>) {
        for tag in suggested.into_iter().take(AT) {
            self.suggested += 1;
            self.hits += usize::from(wanted.contains(tag));
        }
        self.wanted += wanted.len();
    }

    fn json(&self) -> Value {
        let share = |whole: usize| (self.hits as f64 / whole.max(1) as f64 * 1000.0).round() / 1000.0;
        json!({ "precision": share(self.suggested), "recall": share(self.wanted) })
    }
}

fn tags(knowledge: &Knowledge, snapshot: &Snapshot, half: Half) -> anyhow::Result<Value> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in snapshot.files().flat_map(|key| &snapshot.note(key).tags) {
        *counts.entry(&tag.folded).or_default() += 1;
    }
    let mut frequent: Vec<&str> = counts.keys().copied().collect();
    frequent.sort_by_key(|tag| std::cmp::Reverse(counts[tag]));
    // Tags of one note alone cannot be found in the others.
    let wanted = |key: NoteKey| -> HashSet<&str> {
        let tags = snapshot.note(key).tags.iter().map(|tag| tag.folded.as_str());
        tags.filter(|tag| counts[tag] > 1).collect()
    };
    let tagged: Vec<NoteKey> = snapshot.files().filter(|key| !wanted(*key).is_empty()).collect();
    let step = tagged.len().div_ceil(MOST).max(1);
    let (mut ours, mut nearest, mut most) = (Tally::default(), Tally::default(), Tally::default());
    let mut notes = 0;
    for key in tagged.iter().copied().step_by(step) {
        let note = snapshot.note(key);
        if Half::of(note.path.as_str()) != half {
            continue;
        }
        let Some(read) = knowledge.read(&Session::default(), note.path.as_str())? else { continue };
        let gold = wanted(key);
        let found = knowledge.suggest_tags(snapshot, key, read.body(), AT, &note.tags)?;
        let folded: Vec<String> = found.tags.iter().map(|found| found.tag.to_lowercase()).collect();
        ours.add(folded.iter().map(String::as_str), &gold);
        let text = format!("{}\n{}", note.title, plain_text(read.body()).chars().take(1_500).collect::<String>());
        let found = knowledge.search(&NoteSearch { by: By::Meaning, ..NoteSearch::new(&text, 20) })?;
        let like =
            found.found.iter().map(|hit| hit.key).find(|other| *other != key && !snapshot.note(*other).tags.is_empty());
        nearest.add(like.iter().flat_map(|other| &snapshot.note(*other).tags).map(|tag| tag.folded.as_str()), &gold);
        most.add(frequent.iter().copied(), &gold);
        notes += 1;
    }
    Ok(json!({
        "notes": notes, "different": counts.len(),
        "suggested": ours.json(), "most_similar_note": nearest.json(), "most_frequent": most.json()
    }))
}

fn summaries(knowledge: &Knowledge, snapshot: &Snapshot, half: Half) -> anyhow::Result<Value> {
    let given = |key: NoteKey| {
        let note = snapshot.note(key);
        ["description", "summary", "abstract"].iter().find_map(|name| note.text_property(name))
    };
    let described: Vec<NoteKey> = snapshot.files().filter(|key| given(*key).is_some()).collect();
    let step = described.len().div_ceil(MOST).max(1);
    let (mut ours, mut lead, mut notes) = (Overlap::default(), Overlap::default(), 0);
    let in_half = |key: &NoteKey| Half::of(snapshot.note(*key).path.as_str()) == half;
    for key in described.iter().copied().step_by(step).filter(in_half) {
        let (Some(given), Some(read)) =
            (given(key), knowledge.read(&Session::default(), snapshot.note(key).path.as_str())?)
        else {
            continue;
        };
        let plain = plain_text(read.body());
        let mut room = SUMMARY_CHARS;
        let mut first = sentences(&plain);
        // With the space before the next sentence, as a summary has it.
        first.retain(|sentence| {
            let length = sentence.chars().count() + usize::from(room < SUMMARY_CHARS);
            let fits = length <= room;
            room -= if fits { length } else { 0 };
            fits
        });
        let first = first.join(" ");
        if first.is_empty() {
            continue;
        }
        ours.add(&knowledge.summarize(&snapshot.note(key).title, read.body(), SUMMARY_CHARS).text, &given);
        lead.add(&first, &given);
        notes += 1;
    }
    Ok(json!({ "pages": notes, "extractive": ours.json(notes), "first_sentences": lead.json(notes) }))
}

/// Words in common with the given summaries (ROUGE-1), summed over pages.
#[derive(Default)]
struct Overlap {
    recall: f64,
    f1: f64,
}

impl Overlap {
    fn add(&mut self, ours: &str, given: &str) {
        let count = |text: &str| {
            let mut counts: HashMap<String, usize> = HashMap::new();
            words(text).for_each(|word| *counts.entry(folded(word.text)).or_default() += 1);
            counts
        };
        let (ours, given) = (count(ours), count(given));
        let shared: usize = given.iter().map(|(word, count)| *count.min(ours.get(word).unwrap_or(&0))).sum();
        let (of_ours, of_given) = (ours.values().sum::<usize>(), given.values().sum::<usize>());
        self.recall += shared as f64 / of_given.max(1) as f64;
        self.f1 += 2.0 * shared as f64 / (of_ours + of_given).max(1) as f64;
    }

    fn json(&self, pages: u32) -> Value {
        let mean = |sum: f64| (sum / f64::from(pages.max(1)) * 1000.0).round() / 1000.0;
        json!({ "recall": mean(self.recall), "f1": mean(self.f1) })
    }
}
