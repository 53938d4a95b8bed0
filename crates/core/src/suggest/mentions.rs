//! Notes that a text names without linking to them.
//!
//! Only names that hardly mean anything else count: of several words, or one word that is spelled as a name in the middle of
//! a sentence. A name that two notes have, or that is written in another case than the note's, does not count.

use rustc_hash::FxHashSet;

use super::sentences::running_text;
use crate::index::Snapshot;
use crate::model::{Note, NoteKey};
use crate::search::words::{Word, WordKind, words};

/// Bytes of a text that are read.
const MAX_BYTES: usize = 20_000;

/// Words and bytes of a name.
const MAX_NAME_WORDS: usize = 5;
const MAX_NAME_BYTES: usize = 80;

/// The fewest characters of a name, and of its longest word if it has several.
const LEAST_CHARS: usize = 4;
const LEAST_WORD: usize = 5;

/// A note that a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlinkedMention {
    /// As written.
    pub name: String,
    pub note: NoteKey,
}

impl Snapshot {
    /// The notes that a text names, except those that are linked, longest names first. `text` is Markdown.
    pub fn unlinked_mentions(&self, linked: &FxHashSet<NoteKey>, text: &str) -> Vec<UnlinkedMention> {
        let mut mentions = self.mentions(text);
        let mut seen = FxHashSet::default();
        mentions.retain(|mention| !linked.contains(&mention.note) && seen.insert(mention.note));
        // Stable: equal lengths stay in the order of the text.
        mentions.sort_by_key(|mention| std::cmp::Reverse(words(&mention.name).count()));
        mentions
    }

    /// The notes that a text names, in order.
    pub fn mentions(&self, text: &str) -> Vec<UnlinkedMention> {
        let plain = running_text(&text[..text.floor_char_boundary(MAX_BYTES)], false);
        let found: Vec<Word<'_>> = words(&plain).collect();
        let candidates: Vec<(usize, usize)> = (0..found.len())
            .flat_map(|first| (1..=MAX_NAME_WORDS).rev().map(move |count| (first, first + count)))
            .filter(|(first, end)| is_candidate(&plain, &found, *first, *end))
            .collect();
        let names: Vec<&str> = candidates.iter().map(|(first, end)| written(&plain, &found, *first, *end)).collect();
        let mut mentions = Vec::new();
        let mut passed = 0;
        for (place, notes) in self.named_each(&names) {
            let (first, end) = candidates[place];
            let [note] = notes[..] else { continue };
            let name = names[place];
            if first >= passed && is_spelled_as(self.note(note), name) {
                mentions.push(UnlinkedMention { name: name.to_owned(), note });
                passed = end;
            }
        }
        mentions
    }
}

fn written<'p>(plain: &'p str, words: &[Word<'_>], first: usize, end: usize) -> &'p str {
    let last = &words[end - 1];
    &plain[words[first].start..last.start + last.text.len()]
}

/// Whether these words may be a name that is distinctive.
fn is_candidate(plain: &str, words: &[Word<'_>], first: usize, end: usize) -> bool {
    if end > words.len() || words[first..end].iter().any(|word| word.kind != WordKind::Plain) {
        return false;
    }
    let name = written(plain, words, first, end);
    if name.len() > MAX_NAME_BYTES || name.contains(['\n', ',', '.', ';', '!', '?', '"', '(', ')']) {
        return false;
    }
    if end - first > 1 {
        return words[first..end].iter().any(|word| word.text.chars().count() >= LEAST_WORD);
    }
    name.chars().count() >= LEAST_CHARS && (is_compound(name) || is_name_in_sentence(plain, words[first].start, name))
}

/// Whether a word has a capital letter or a digit behind its first letter: `GraphCore`, `HTTP2`.
fn is_compound(word: &str) -> bool {
    let rest = || word.chars().skip(1);
    word.chars().any(char::is_lowercase) && rest().any(|c| c.is_uppercase() || c.is_numeric())
        || word.chars().all(|c| c.is_uppercase() || c.is_numeric()) && word.chars().any(char::is_alphabetic)
}

/// Whether a capitalised word follows a word of the same sentence that is not capitalised.
fn is_name_in_sentence(plain: &str, start: usize, word: &str) -> bool {
    let before = plain[..start].trim_end_matches([' ', '\u{a0}']);
    let previous = before.rsplit([' ', '\n']).next().unwrap_or_default();
    word.chars().next().is_some_and(char::is_uppercase)
        && before.len() < start
        && before.ends_with(|c: char| c.is_lowercase() || c == ',')
        && previous.chars().next().is_some_and(char::is_lowercase)
}

/// Whether a note has this name in this spelling, and with capital letters if it has one word.
fn is_spelled_as(note: &Note, name: &str) -> bool {
    let names = [note.title.as_str(), note.path.stem()].into_iter().chain(note.aliases.iter().map(String::as_str));
    names.into_iter().any(|own| own.trim() == name)
}
