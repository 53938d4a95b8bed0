//! How often the hints after a write are right, on a real vault, and what they cost: names of notes against the links that
//! people made, and how many notes seem to duplicate another. `cargo bench -p quipu --bench hints -- VAULT`; prints one JSON
//! line.
#![expect(clippy::print_stdout, reason = "a measurement tells its figures")]

#[path = "common/open.rs"]
mod open;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use quipu_core::index::Snapshot;
use quipu_core::model::NoteKey;
use quipu_core::suggest::DuplicateKind;
use quipu_core::{Knowledge, Session};
use serde_json::{Value, json};

use open::open;

/// Likely duplicates and mentions without a link that are shown, to be judged by a person.
const EXAMPLES: usize = 20;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let vault = PathBuf::from(arguments.next().context("usage: hints VAULT")?);
    let (knowledge, _) = open(&vault, "hints")?;
    knowledge.start(&|_| {})?;
    let snapshot = knowledge.snapshot();
    let (mentions, duplicates) = (mentions(&knowledge, &snapshot)?, duplicates(&knowledge, &snapshot)?);
    println!("{}", json!({ "mentions": mentions, "duplicates": duplicates }));
    Ok(())
}

/// How many of the notes that a text names are notes that it links to, as if none of its links were there: a lower bound,
/// since people do not link every mention. Only one katakana word counts through the note's own link, if no other note has one:
/// less than one hint in a hundred.
fn mentions(knowledge: &Knowledge, snapshot: &Snapshot) -> anyhow::Result<Value> {
    let (mut hits, mut named, mut notes) = (0, 0, 0);
    let mut examples = Vec::new();
    let mut times = Times::default();
    for key in snapshot.files().filter(|key| !snapshot.graph().out(*key).is_empty()) {
        let path = snapshot.note(key).path.as_str();
        let Some(read) = knowledge.read(&Session::default(), path)? else { continue };
        let found = times.of(|| snapshot.mentions(read.body()));
        let linked = snapshot.graph().out(key);
        let others: HashSet<NoteKey> = found.iter().map(|mention| mention.note).filter(|other| *other != key).collect();
        named += others.len();
        hits += others.iter().filter(|other| linked.contains(other)).count();
        notes += 1;
        let unlinked = found.iter().find(|mention| mention.note != key && !linked.contains(&mention.note));
        examples.extend(unlinked.filter(|_| examples.len() < EXAMPLES).map(|mention| json!([path, mention.name])));
    }
    let precision = (f64::from(hits as u32) / f64::from(named.max(1) as u32) * 1000.0).round() / 1000.0;
    let times = times.json();
    Ok(json!({
        "notes": notes, "named": named, "linked": hits, "precision": precision, "times": times, "unlinked": examples
    }))
}

/// How many notes seem to duplicate another one.
fn duplicates(knowledge: &Knowledge, snapshot: &Snapshot) -> anyhow::Result<Value> {
    let (mut titles, mut texts, mut notes) = (0, 0, 0);
    let mut examples = Vec::new();
    let mut times = Times::default();
    for key in snapshot.files() {
        let path = snapshot.note(key).path.as_str();
        let Some(read) = knowledge.read(&Session::default(), path)? else { continue };
        let found = times.of(|| knowledge.likely_duplicates(snapshot, snapshot.note(key), read.body()))?;
        notes += 1;
        let Some(first) = found.first() else { continue };
        match first.kind {
            DuplicateKind::Title => titles += 1,
            DuplicateKind::Text(_) => texts += 1,
        }
        let other = snapshot.note(first.note).path.as_str();
        examples.extend((examples.len() < EXAMPLES).then(|| json!([path, other, format!("{:?}", first.kind)])));
    }
    let times = times.json();
    Ok(json!({ "notes": notes, "same_title": titles, "same_text": texts, "times": times, "examples": examples }))
}

/// The times of one hint.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn of<T>(&mut self, hint: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = hint();
        self.0.push(started.elapsed());
        result
    }

    fn json(mut self) -> Value {
        self.0.sort_unstable();
        let ms = |share: usize| self.0.get(self.0.len() * share / 100).map(|time| time.as_secs_f64() * 1e3);
        json!({ "p50_ms": ms(50), "p95_ms": ms(95), "p99_ms": ms(99) })
    }
}
