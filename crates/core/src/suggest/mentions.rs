//! Notes that a text names without linking to them.
//!
//! Only names that hardly mean anything else count: of several words, or one word that is spelled as a name in the middle of
//! a sentence. Chinese and Japanese have no spaces: there any part of a text may be a name of at least three characters. One
//! katakana word is often a common noun, so it counts only if some note links to the named one. A name that two notes have, or
//! that is written in another case than the note's, does not count.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashSet;

use super::sentences::running_text;
use crate::index::Snapshot;
use crate::model::{Note, NoteKey};
use crate::search::words::{Word, WordKind, is_han, words};

/// Bytes of a text that are read.
const MAX_BYTES: usize = 20_000;

/// Words and bytes of a name.
const MAX_NAME_WORDS: usize = 5;
const MAX_NAME_BYTES: usize = 80;

/// The fewest characters of a name, and of its longest word if it has several.
const LEAST_CHARS: usize = 4;
const LEAST_WORD: usize = 5;

/// Characters of a name without spaces; a Latin word in it counts as one.
const LEAST_UNSPACED: usize = 3;
const MAX_UNSPACED: usize = 16;

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
        mentions.sort_by_key(|mention| Reverse(words(&mention.name).count()));
        mentions
    }

    /// The notes that a text names, in order.
    pub fn mentions(&self, text: &str) -> Vec<UnlinkedMention> {
        let plain = running_text(&text[..text.floor_char_boundary(MAX_BYTES)], false);
        let candidates = candidates(&plain);
        let names: Vec<&str> = candidates.iter().map(|place| &plain[place.clone()]).collect();
        let mut mentions = Vec::new();
        let mut passed = 0;
        for (at, notes) in self.named_each(&names) {
            let (place, name) = (&candidates[at], names[at]);
            let [note] = notes[..] else { continue };
            let is_known = !is_katakana_word(name) || !self.graph().incoming(note).is_empty();
            if place.start >= passed && is_known && is_spelled_as(self.note(note), name) {
                mentions.push(UnlinkedMention { name: name.to_owned(), note });
                passed = place.end;
            }
        }
        mentions
    }
}

/// The places of a text that may be names; of those that start together the longest first.
fn candidates(plain: &str) -> Vec<Range<usize>> {
    let found: Vec<Word<'_>> = words(plain).collect();
    let spaced = (0..found.len())
        .flat_map(|first| (1..=MAX_NAME_WORDS).map(move |count| (first, first + count)))
        .filter(|(first, end)| is_candidate(plain, &found, *first, *end))
        .map(|(first, end)| found[first].start..end_of(&found[end - 1]));
    let mut places: Vec<Range<usize>> = spaced.chain(unspaced_candidates(plain, &found)).collect();
    places.sort_unstable_by_key(|place| (place.start, Reverse(place.end)));
    places
}

fn end_of(word: &Word<'_>) -> usize {
    word.start + word.text.len()
}

/// The parts of Chinese and Japanese text that may be a name, with Latin words and numbers in it: `2024年度計画`.
fn unspaced_candidates(plain: &str, words: &[Word<'_>]) -> Vec<Range<usize>> {
    let is_joined = |a: &Word<'_>, b: &Word<'_>| {
        a.kind != WordKind::Emoji && b.kind != WordKind::Emoji && ["", "・"].contains(&&plain[end_of(a)..b.start])
    };
    let mut places = Vec::new();
    for stretch in words.chunk_by(is_joined).filter(|stretch| stretch.iter().any(|word| word.kind == WordKind::Run)) {
        let mut edges: Vec<usize> = Vec::new();
        for word in stretch {
            let inner = word.text.char_indices().filter(|_| word.kind == WordKind::Run).map(|(at, _)| word.start + at);
            edges.extend(inner.chain([word.start, end_of(word)]));
        }
        edges.sort_unstable();
        edges.dedup();
        for (at, start) in edges.iter().enumerate() {
            let ends = edges[at + 1..].iter().take(MAX_UNSPACED).skip(LEAST_UNSPACED - 1);
            places.extend(ends.map(|end| *start..*end).filter(|place| is_unspaced_name(plain, place)));
        }
    }
    places
}

/// Whether a part of a text has a character that carries meaning, and is no part of a longer katakana word.
fn is_unspaced_name(plain: &str, place: &Range<usize>) -> bool {
    let name = &plain[place.clone()];
    let is_both_katakana = |a: Option<char>, b: Option<char>| a.is_some_and(is_katakana) && b.is_some_and(is_katakana);
    name.chars().any(|c| is_han(c) || is_katakana(c))
        && !is_both_katakana(plain[..place.start].chars().next_back(), name.chars().next())
        && !is_both_katakana(name.chars().next_back(), plain[place.end..].chars().next())
}

/// Whether a name is one katakana word: `コンテナ`, but not `データ・ベース`.
fn is_katakana_word(name: &str) -> bool {
    name.chars().all(is_katakana)
}

fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{ff66}'..='\u{ff9f}')
}

/// Whether these words may be a name that is distinctive.
fn is_candidate(plain: &str, words: &[Word<'_>], first: usize, end: usize) -> bool {
    if end > words.len() || words[first..end].iter().any(|word| word.kind != WordKind::Plain) {
        return false;
    }
    let name = &plain[words[first].start..end_of(&words[end - 1])];
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

/// Whether a note has this name in exactly this spelling.
fn is_spelled_as(note: &Note, name: &str) -> bool {
    let names = [note.title.as_str(), note.path.stem()].into_iter().chain(note.aliases.iter().map(String::as_str));
    names.into_iter().any(|own| own.trim() == name)
}
