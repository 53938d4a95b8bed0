//! How good suggestions are, on a real vault: tags of a held-out note from the others, and summaries against the ones that
//! pages have in their frontmatter. `cargo bench -p quipu --bench suggest -- VAULT`; prints one JSON line.
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
    println!("{}", json!({ "tags": tags(&knowledge, &snapshot)?, "summaries": summaries(&knowledge, &snapshot)? }));
    Ok(())
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

fn tags(knowledge: &Knowledge, snapshot: &Snapshot) -> anyhow::Result<Value> {
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

fn summaries(knowledge: &Knowledge, snapshot: &Snapshot) -> anyhow::Result<Value> {
    let given = |key: NoteKey| {
        let note = snapshot.note(key);
        ["description", "summary", "abstract"].iter().find_map(|name| note.text_property(name))
    };
    let described: Vec<NoteKey> = snapshot.files().filter(|key| given(*key).is_some()).collect();
    let step = described.len().div_ceil(MOST).max(1);
    let (mut ours, mut lead, mut notes) = (0.0, 0.0, 0);
    for key in described.iter().copied().step_by(step) {
        let (Some(given), Some(read)) =
            (given(key), knowledge.read(&Session::default(), snapshot.note(key).path.as_str())?)
        else {
            continue;
        };
        let plain = plain_text(read.body());
        let first = sentences(&plain).into_iter().scan(SUMMARY_CHARS, |left, sentence| {
            *left = left.checked_sub(sentence.chars().count())?;
            Some(sentence)
        });
        let first = first.collect::<Vec<_>>().join(" ");
        if first.is_empty() {
            continue;
        }
        ours += recall(&knowledge.summarize(read.body(), SUMMARY_CHARS).text, &given);
        lead += recall(&first, &given);
        notes += 1;
    }
    let mean = |sum: f64| (sum / f64::from(notes.max(1)) * 1000.0).round() / 1000.0;
    Ok(json!({ "pages": notes, "extractive": mean(ours), "first_sentences": mean(lead) }))
}

/// The share of the given summary's words that ours has (ROUGE-1 recall; both are of one length).
fn recall(ours: &str, given: &str) -> f64 {
    let count = |text: &str| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        words(text).for_each(|word| *counts.entry(folded(word.text)).or_default() += 1);
        counts
    };
    let (ours, given) = (count(ours), count(given));
    let shared: usize = given.iter().map(|(word, count)| *count.min(ours.get(word).unwrap_or(&0))).sum();
    shared as f64 / given.values().sum::<usize>().max(1) as f64
}
