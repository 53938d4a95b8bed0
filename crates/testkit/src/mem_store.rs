//! A store in plain maps: the model that real stores are compared with. It panics when a caller breaks the port's contract.
//!
//! Words are found by a plain scan. Compounds such as `camelCase` have no parts here; everything else is as in the port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use quipu_core::model::{Note, NoteKey, fold};
use quipu_core::ports::{
    Loaded, NoteChange, NoteStore, RankedText, StoreError, TextHit, TextHits, TextMatch, TextQuery,
};

use crate::mem_vectors::SpaceVectors;
use crate::store_conformance::NoteStorage;

/// The storage of a [`MemStore`], which survives reopening as a disk does.
#[derive(Default, Clone)]
pub struct MemNoteStorage(Arc<Mutex<StoredNotes>>);

/// The store; see the module.
pub struct MemStore {
    kept: Arc<Mutex<StoredNotes>>,
    loaded: Mutex<bool>,
    lost: Mutex<LostTexts>,
}

/// Notes whose text was lost while the store is open; see [`MemStore::lose_text`].
#[derive(Default)]
struct LostTexts {
    keys: BTreeSet<NoteKey>,
    is_accepted: bool,
}

#[derive(Default)]
pub(crate) struct StoredNotes {
    fingerprint: String,
    pub(crate) notes: BTreeMap<NoteKey, (Note, String)>,
    links: Option<Vec<u8>>,
    lines: BTreeMap<u32, Vec<u8>>,
    /// By space. They survive the deletion of notes.
    pub(crate) vectors: BTreeMap<String, SpaceVectors>,
}

impl NoteStorage for MemNoteStorage {
    type Store = MemStore;

    fn open(&self) -> MemStore {
        MemStore { kept: Arc::clone(&self.0), loaded: Mutex::new(false), lost: Mutex::default() }
    }

    fn lasts(&self) -> bool {
        true
    }

    fn lose_text(&self, store: &MemStore) -> bool {
        store.lose_text();
        true
    }
}

impl MemNoteStorage {
    /// The last links given to [`NoteStore::store_links`].
    pub fn links(&self) -> Option<Vec<u8>> {
        self.0.lock().links.clone()
    }

    /// Replaces them by other bytes, as a disk error might.
    pub fn put_links(&self, links: &[u8]) {
        self.0.lock().links = Some(links.to_vec());
    }
}

impl MemNoteStorage {
    /// The segments of the line index.
    pub fn lines(&self) -> BTreeMap<u32, Vec<u8>> {
        self.0.lock().lines.clone()
    }

    /// Replaces one by other bytes.
    pub fn put_lines(&self, segment: u32, bytes: Vec<u8>) {
        self.0.lock().lines.insert(segment, bytes);
    }
}

impl MemStore {
    /// Simulates a damaged text index.
    pub fn lose_text(&self) {
        let keys = self.kept().notes.keys().copied().collect();
        *self.lost() = LostTexts { keys, is_accepted: false };
    }

    fn lost(&self) -> MutexGuard<'_, LostTexts> {
        self.lost.lock()
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, StoredNotes> {
        assert!(*self.loaded.lock(), "a store is loaded before anything else");
        self.kept.lock()
    }
}

impl NoteStore for MemStore {
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError> {
        let mut loaded = self.loaded.lock();
        assert!(!*loaded, "a store is loaded once");
        *loaded = true;
        drop(loaded);
        let mut kept = self.kept();
        if kept.fingerprint != fingerprint {
            let vectors = std::mem::take(&mut kept.vectors);
            *kept = StoredNotes { fingerprint: fingerprint.to_owned(), vectors, ..StoredNotes::default() };
        }
        let notes = kept.notes.iter().map(|(key, (note, _))| (*key, note.clone())).collect();
        Ok(Loaded { notes, text_missing: Vec::new(), links: kept.links.clone() })
    }

    fn apply(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreError> {
        let mut kept = self.kept();
        for change in changes {
            match *change {
                NoteChange::Put { key, note, text } => {
                    assert_eq!(note.id, note.path.note_id(), "the id follows from the path");
                    for section in &note.sections {
                        let within =
                            section.range.start <= section.text_start && section.text_start <= section.range.end;
                        assert!(within, "a section's text starts inside its range: {section:?}");
                        assert!(text.get(section.range.clone()).is_some(), "a section lies in the text: {section:?}");
                        assert!(text.get(section.text_start..).is_some(), "a section's text starts between characters");
                    }
                    kept.notes.insert(key, (note.clone(), text.to_owned()));
                    self.lost().keys.remove(&key);
                }
                NoteChange::Touch { key, stat } => {
                    if let Some((note, _)) = kept.notes.get_mut(&key) {
                        note.stat = stat;
                    }
                }
                NoteChange::Remove { key } => {
                    kept.notes.remove(&key);
                    self.lost().keys.remove(&key);
                }
            }
        }
        Ok(())
    }

    fn store_links(&self, links: &[u8]) -> Result<(), StoreError> {
        self.kept().links = Some(links.to_vec());
        Ok(())
    }

    fn store_lines(&self, segment: u32, bytes: &[u8]) -> Result<(), StoreError> {
        self.kept().lines.insert(segment, bytes.to_vec());
        Ok(())
    }

    fn lines(&self, segment: u32) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.kept().lines.get(&segment).cloned())
    }

    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        let kept = self.kept();
        let lost = self.lost();
        if !lost.keys.is_empty() && !lost.is_accepted {
            return Err(StoreError::new("search the index", "its texts are lost"));
        }
        let query_words = words(&query.text);
        if query_words.is_empty() {
            return Ok(TextHits::default());
        }
        for matched in [TextMatch::Phrase, TextMatch::AllWords, TextMatch::AnyWord] {
            let mut hits = Vec::new();
            let is_asked = |key: &NoteKey| query.among.as_ref().is_none_or(|among| among.contains(key));
            for (key, (note, text)) in kept.notes.iter().filter(|(key, _)| is_asked(key) && !lost.keys.contains(key)) {
                for section in 0..note.sections.len() {
                    let score = score(&fields(note, text, section), &query_words, matched);
                    if score > 0.0 {
                        hits.push(TextHit { key: *key, section, score });
                    }
                }
            }
            if !hits.is_empty() {
                // Stable, so ties stay by key and section.
                hits.sort_by(|a, b| b.score.total_cmp(&a.score));
                let total = hits.len();
                cut(&mut hits, query.limit);
                return Ok(TextHits { hits, matched, total });
            }
        }
        Ok(TextHits::default())
    }

    fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError> {
        let kept = self.kept();
        let query_words = words(text);
        let mut hits = Vec::new();
        for (key, (note, text)) in &kept.notes {
            for section in 0..note.sections.len() {
                let count = score(&fields(note, text, section), &query_words, TextMatch::AnyWord);
                if count > 0.0 {
                    hits.push(TextHit { key: *key, section, score: count / (1.0 + count) });
                }
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        cut(&mut hits, limit);
        Ok(RankedText { hits, most: 1.0 })
    }

    fn text_lost(&self) -> Result<Vec<NoteKey>, StoreError> {
        let lost = self.lost();
        Ok(if lost.is_accepted { Vec::new() } else { lost.keys.iter().copied().collect() })
    }

    fn accept_loss(&self) {
        self.lost().is_accepted = true;
    }

    fn scrub(&self) -> Result<(), StoreError> {
        self.kept().lines.clear();
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        drop(self.kept());
        Ok(Vec::new())
    }
}

/// The words of each field of a section, its note's names and tags included.
fn fields(note: &Note, text: &str, section: usize) -> Vec<Vec<String>> {
    let section = &note.sections[section];
    let names = note.aliases.iter().chain([&note.title]).chain(section.heading.as_ref()).map(|name| words(name));
    let tags = note.tags.iter().map(|tag| words(&tag.folded));
    names.chain(tags).chain([words(&text[section.text_start..section.range.end])]).collect()
}

fn score(fields: &[Vec<String>], query: &[String], matched: TextMatch) -> f32 {
    let phrases = |phrase: &[String]| {
        let found = fields.iter().map(|words| words.windows(phrase.len()).filter(|window| *window == phrase).count());
        found.sum::<usize>() as f32
    };
    let each: Vec<f32> = query.iter().map(|word| phrases(std::slice::from_ref(word))).collect();
    match matched {
        TextMatch::Phrase => phrases(query),
        TextMatch::AllWords if each.contains(&0.0) => 0.0,
        TextMatch::AllWords | TextMatch::Similar | TextMatch::AnyWord => each.into_iter().sum(),
    }
}

/// Folded runs of letters and digits; each character of a script without spaces is a word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in fold(text).chars() {
        let is_alone = ('\u{2e80}'..='\u{9fff}').contains(&c) || ('\u{ac00}'..='\u{d7ff}').contains(&c);
        if c.is_alphanumeric() && !is_alone {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            words.push(c.to_string());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Keeps the best of sorted hits, and those that tie with the last of them.
fn cut(hits: &mut Vec<TextHit>, limit: usize) {
    let Some(last) = limit.checked_sub(1).and_then(|last| hits.get(last)) else {
        return hits.truncate(limit);
    };
    let least = last.score;
    hits.retain(|hit| hit.score >= least);
}

#[cfg(test)]
mod tests {
    crate::store_conformance!(crate::MemNoteStorage::default());
    crate::vector_conformance!(crate::MemNoteStorage::default());
}
