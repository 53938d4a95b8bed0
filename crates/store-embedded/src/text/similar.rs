//! Words of the index in place of a word that it does not have: those that contain it, and those with a small edit distance.

use std::collections::BTreeMap;

use quipu_core::search::edit_distance;

use super::schema::IndexFields;
use super::view::IndexView;

/// Shorter words are part of too many, and a typo in them could mean anything.
const MIN_CHARS: usize = 3;

/// The most replacements of a word: the closest, and among equals the most frequent.
const MAX_WORDS: usize = 24;

/// The closest words of the index for each word, and how close each is: 1 would be the word itself.
///
/// Reads every word of the index, once for all of them: some milliseconds for a large vault, so only for unknown words.
pub(super) fn similar(
    view: &IndexView,
    fields: &IndexFields,
    words: &[&str],
) -> tantivy::Result<Vec<Vec<(String, f32)>>> {
    let mut wanted: Vec<UnknownWord<'_>> = words.iter().map(|word| UnknownWord::new(word)).collect();
    if wanted.iter().all(|wanted| wanted.chars.len() < MIN_CHARS) {
        return Ok(words.iter().map(|_| Vec::new()).collect());
    }
    for (place, segment) in view.segments() {
        for words in fields.words {
            let index = segment.inverted_index(words.field)?;
            let mut terms = index.terms().stream()?;
            while terms.advance() {
                let Ok(term) = std::str::from_utf8(terms.key()) else { continue };
                for wanted in wanted.iter_mut().filter(|wanted| wanted.chars.len() >= MIN_CHARS) {
                    let Some(closeness) = closeness(&wanted.chars, wanted.word, term) else { continue };
                    let count = view.count_in(place, &index, terms.value())?;
                    if count > 0 {
                        wanted.found.entry(term.to_owned()).or_insert((closeness, 0)).1 += count;
                    }
                }
            }
        }
    }
    Ok(wanted.into_iter().map(UnknownWord::closest).collect())
}

/// An unknown word, and similar words with their closeness and the number of sections that have them.
struct UnknownWord<'w> {
    word: &'w str,
    chars: Vec<char>,
    found: BTreeMap<String, (f32, u32)>,
}

impl<'w> UnknownWord<'w> {
    fn new(word: &'w str) -> Self {
        Self { word, chars: word.chars().collect(), found: BTreeMap::new() }
    }

    fn closest(self) -> Vec<(String, f32)> {
        let found = self.found.into_iter().map(|(term, (closeness, count))| (term, closeness, count));
        let mut found: Vec<(String, f32, u32)> = found.collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then_with(|| a.0.cmp(&b.0)));
        found.truncate(MAX_WORDS);
        found.into_iter().map(|(term, closeness, _)| (term, closeness)).collect()
    }
}

/// How close a word of the index is; `None` if it is not.
fn closeness(wanted: &[char], word: &str, term: &str) -> Option<f32> {
    if term.len() > word.len() && term.contains(word) {
        return Some(0.5 + 0.4 * word.len() as f32 / term.len() as f32);
    }
    let allowed = if wanted.len() >= 8 { 2 } else { 1 };
    // A character has at most four bytes; this rejects most words.
    if term.len() + 4 * allowed < word.len() || word.len() + 4 * allowed < term.len() {
        return None;
    }
    let distance = small_distance(word, term, allowed)?;
    Some(0.8 - 0.2 * distance as f32)
}

/// The edit distance, if it is small. Few typos change the first letter, and comparing it saves most of the work.
fn small_distance(word: &str, term: &str, allowed: usize) -> Option<usize> {
    if term.chars().next() != word.chars().next() {
        return None;
    }
    edit_distance(word, term, allowed).filter(|distance| *distance > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_words_allow_one_typo_and_long_words_two() {
        let distance =
            |wanted: &str, term: &str| small_distance(wanted, term, if wanted.chars().count() >= 8 { 2 } else { 1 });
        assert_eq!(distance("serach", "search"), Some(1), "neighbours exchanged");
        assert_eq!(distance("serch", "search"), Some(1));
        assert_eq!(distance("kubernets", "kubernetes"), Some(1));
        assert_eq!(distance("kubrnets", "kubernetes"), Some(2));
        assert_eq!(distance("cat", "cart"), Some(1));
        assert_eq!(distance("cat", "cot"), Some(1));
        assert_eq!(distance("cat", "hat"), None, "the first letter stays");
        assert_eq!(distance("cat", "carts"), None);
        assert_eq!(distance("größe", "größen"), Some(1));
    }
}
