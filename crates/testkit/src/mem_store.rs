//! A store in plain maps: the model that real stores are compared with. Panics where a caller breaks the port's contract,
//! so that tests catch it.
//!
//! Words are found by a plain scan. Compounds such as `camelCase` have no parts here; everything else is as in the port.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use quipu_core::model::{Note, NoteKey, fold};
use quipu_core::ports::{Loaded, NoteChange, NoteStore, StoreError, TextHit, TextHits, TextMatch, TextQuery};

use crate::mem_vectors::SpaceVectors;
use crate::store_conformance::Shelf;

/// The shelf a [`MemStore`] is taken from: what is put back stays, as on a disk.
#[derive(Default, Clone)]
pub struct MemShelf(Arc<Mutex<Kept>>);

/// See the module.
pub struct MemStore {
    kept: Arc<Mutex<Kept>>,
    loaded: Mutex<bool>,
}

#[derive(Default)]
pub(crate) struct Kept {
    fingerprint: String,
    pub(crate) notes: BTreeMap<NoteKey, (Note, String)>,
    links: Option<Vec<u8>>,
    /// By space. They outlive the notes.
    pub(crate) vectors: BTreeMap<String, SpaceVectors>,
}

impl Shelf for MemShelf {
    type Store = MemStore;

    fn open(&self) -> MemStore {
        MemStore { kept: Arc::clone(&self.0), loaded: Mutex::new(false) }
    }

    fn lasts(&self) -> bool {
        true
    }
}

impl MemShelf {
    /// What [`NoteStore::keep_links`] was last given.
    pub fn links(&self) -> Option<Vec<u8>> {
        self.0.lock().expect("no test panics twice").links.clone()
    }

    /// Puts other bytes in its place, as a fault of the disk might.
    pub fn put_links(&self, links: &[u8]) {
        self.0.lock().expect("no test panics twice").links = Some(links.to_vec());
    }
}

impl MemStore {
    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        assert!(*self.loaded.lock().expect("no test panics twice"), "a store is loaded before anything else");
        self.kept.lock().expect("no test panics twice")
    }
}

impl NoteStore for MemStore {
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError> {
        let mut loaded = self.loaded.lock().expect("no test panics twice");
        assert!(!*loaded, "a store is loaded once");
        *loaded = true;
        drop(loaded);
        let mut kept = self.kept();
        if kept.fingerprint != fingerprint {
            let vectors = std::mem::take(&mut kept.vectors);
            *kept = Kept { fingerprint: fingerprint.to_owned(), vectors, ..Kept::default() };
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
                }
                NoteChange::Touch { key, stat } => {
                    if let Some((note, _)) = kept.notes.get_mut(&key) {
                        note.stat = stat;
                    }
                }
                NoteChange::Remove { key } => {
                    kept.notes.remove(&key);
                }
            }
        }
        Ok(())
    }

    fn keep_links(&self, links: &[u8]) -> Result<(), StoreError> {
        self.kept().links = Some(links.to_vec());
        Ok(())
    }

    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        let kept = self.kept();
        let query_words = words(&query.text);
        if query_words.is_empty() {
            return Ok(TextHits::default());
        }
        for matched in [TextMatch::Phrase, TextMatch::AllWords, TextMatch::AnyWord] {
            let mut hits = Vec::new();
            for (key, (note, text)) in &kept.notes {
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
                hits.truncate(query.limit);
                return Ok(TextHits { hits, matched });
            }
        }
        Ok(TextHits::default())
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        drop(self.kept());
        Ok(Vec::new())
    }
}

/// The words of each field of a section; its note's names and tags are among them.
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
        TextMatch::AllWords | TextMatch::AnyWord => each.into_iter().sum(),
    }
}

/// Folded runs of letters and digits; each character of a script without spaces is a word of its own.
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

#[cfg(test)]
mod tests {
    crate::store_conformance!(crate::MemShelf::default());
    crate::vector_conformance!(crate::MemShelf::default());
}
