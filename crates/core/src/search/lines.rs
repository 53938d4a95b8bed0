//! Documents by title, tag and line: plain substring matching that counts every line, so that a reader can see why.
//!
//! Bodies are kept folded in memory after the first search: scanning 100 MB takes tens of milliseconds, opening 100,000
//! files takes seconds. A body is dropped as soon as its note has another version.

use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::{ContentHash, NoteKey, fold};
use crate::parse::{decode, text_start};

const TITLE_SCORE: usize = 10;
const TAG_SCORE: usize = 5;
const LINE_SCORE: usize = 1;
const MAX_EXCERPTS: usize = 3;

/// The folded bodies of notes that were searched before.
#[derive(Debug, Default)]
pub struct Lines {
    bodies: Mutex<FxHashMap<ContentHash, Arc<str>>>,
}

/// A document that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMatch {
    /// Which.
    pub key: NoteKey,
    /// Ten for the title, five for each tag, one for each line.
    pub score: usize,
    /// The first matching lines, each with its neighbours.
    pub excerpts: Vec<String>,
}

impl Knowledge {
    /// Every file whose title, tags or lines have the whole query or every word of it, best first, ties by id and path.
    /// Excerpts are made for the first `limit` only; the second value counts all that matched.
    pub fn search_lines(&self, snapshot: &Arc<Snapshot>, query: &str, limit: usize) -> (Vec<LineMatch>, usize) {
        let query = Query::new(query);
        if query.words.is_empty() {
            return (Vec::new(), 0);
        }
        let files: Vec<NoteKey> = snapshot.files().collect();
        let mut found: Vec<LineMatch> = files
            .par_iter()
            .filter_map(|key| {
                let note = snapshot.note(*key);
                let title = usize::from(query.is_in(&spaced(&fold(&note.title)))) * TITLE_SCORE;
                let tags = note.tags.iter().filter(|tag| query.is_in(&spaced(&tag.folded))).count() * TAG_SCORE;
                let body = self.folded_body(snapshot, *key);
                let score = title + tags + query.lines_in(&body) * LINE_SCORE;
                (score > 0).then_some(LineMatch { key: *key, score, excerpts: Vec::new() })
            })
            .collect();
        let total = found.len();
        // The files came by id, and a stable sort leaves ties so.
        found.sort_by_key(|hit| std::cmp::Reverse(hit.score));
        found.truncate(limit);
        found.par_iter_mut().for_each(|hit| hit.excerpts = self.excerpts(snapshot, hit.key, &query));
        (found, total)
    }

    /// A body as it is compared. A file that cannot be read has none: its title and tags still match.
    fn folded_body(&self, snapshot: &Snapshot, key: NoteKey) -> Arc<str> {
        let note = snapshot.note(key);
        let bodies = || self.lines.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = bodies().get(&note.hash) {
            return body.clone();
        }
        let Ok(Some(content)) = self.vault.read(&note.path) else { return "".into() };
        let hash = content.hash;
        let text = decode(content.bytes);
        let body: Arc<str> = spaced(&fold(&text[text_start(text.as_bytes())..])).into();
        if hash == note.hash {
            let mut bodies = bodies();
            // Versions that no note has any more are dropped once they may be half of all.
            if bodies.len() > 2 * snapshot.files().len() + 1024 {
                let live: rustc_hash::FxHashSet<ContentHash> =
                    snapshot.files().map(|key| snapshot.note(key).hash).collect();
                bodies.retain(|hash, _| live.contains(hash));
            }
            bodies.insert(hash, body.clone());
        }
        body
    }

    fn excerpts(&self, snapshot: &Snapshot, key: NoteKey, query: &Query) -> Vec<String> {
        let note = snapshot.note(key);
        let Ok(Some(content)) = self.vault.read(&note.path) else { return Vec::new() };
        let text = decode(content.bytes);
        let lines: Vec<&str> = text[text_start(text.as_bytes())..].lines().collect();
        let matching = lines.iter().enumerate().filter(|(_, line)| query.is_in(&spaced(&fold(line))));
        matching
            .take(MAX_EXCERPTS)
            .map(|(number, _)| {
                lines[number.saturating_sub(1)..(number + 2).min(lines.len())].join("\n").trim().to_owned()
            })
            .collect()
    }
}

/// What is looked for, folded. A text that has the whole query has every word of it, so the words are all we need.
struct Query {
    words: Vec<memmem::Finder<'static>>,
}

impl Query {
    fn new(text: &str) -> Self {
        let folded = spaced(&fold(text));
        Self { words: folded.split_whitespace().map(|word| memmem::Finder::new(word).into_owned()).collect() }
    }

    fn is_in(&self, folded: &str) -> bool {
        self.words.iter().all(|word| word.find(folded.as_bytes()).is_some())
    }

    /// How many lines match. Jumps from hit to hit of the longest word; most lines are never looked at.
    fn lines_in(&self, folded: &str) -> usize {
        let bytes = folded.as_bytes();
        let Some(rarest) = self.words.iter().max_by_key(|word| word.needle().len()) else { return 0 };
        let (mut count, mut from) = (0, 0);
        while let Some(hit) = rarest.find(&bytes[from..]).map(|at| from + at) {
            let start = memchr::memrchr(b'\n', &bytes[..hit]).map_or(0, |at| at + 1);
            let end = memchr::memchr(b'\n', &bytes[hit..]).map_or(bytes.len(), |at| hit + at);
            count += usize::from(self.words.iter().all(|word| word.find(&bytes[start..end]).is_some()));
            from = end;
        }
        count
    }
}

/// Dashes and underscores read as spaces, so that `getting-started` is found by its words.
fn spaced(folded: &str) -> String {
    folded.replace(['-', '_'], " ")
}
