//! Words of the index for a word that it does not have: those that it is a part of, and those it may be a slip for.

use std::collections::BTreeMap;

use quipu_core::search::slips;

use super::schema::Fields;
use super::view::View;

/// Words shorter than this are part of too many, and a slip in them could mean anything.
const MIN_CHARS: usize = 3;

/// At most so many stand in for a word, the closest first and then the most frequent.
const MAX_WORDS: usize = 24;

/// Of each word the closest words of the index, and how close each is: 1 would be the word itself.
///
/// Looks at every word of the index, once for all: some milliseconds for a large vault, so only for words that are not there.
pub(super) fn similar(view: &View, fields: &Fields, words: &[&str]) -> tantivy::Result<Vec<Vec<(String, f32)>>> {
    let mut wanted: Vec<Wanted<'_>> = words.iter().map(|word| Wanted::new(word)).collect();
    if wanted.iter().all(|wanted| wanted.chars.len() < MIN_CHARS) {
        return Ok(words.iter().map(|_| Vec::new()).collect());
    }
    for (place, segment) in view.segments() {
        for (field, _) in fields.words {
            let index = segment.inverted_index(field)?;
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
    Ok(wanted.into_iter().map(Wanted::closest).collect())
}

/// A word that is looked for, and what was found for it: how close that is, and in how many sections.
struct Wanted<'w> {
    word: &'w str,
    chars: Vec<char>,
    found: BTreeMap<String, (f32, u32)>,
}

impl<'w> Wanted<'w> {
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

/// How close a word of the index is, if it is close at all.
fn closeness(wanted: &[char], word: &str, term: &str) -> Option<f32> {
    if term.len() > word.len() && term.contains(word) {
        return Some(0.5 + 0.4 * word.len() as f32 / term.len() as f32);
    }
    let allowed = if wanted.len() >= 8 { 2 } else { 1 };
    // A character is at most four bytes: most words are sorted out here.
    if term.len() + 4 * allowed < word.len() || word.len() + 4 * allowed < term.len() {
        return None;
    }
    let slips = few_slips(wanted, term, allowed)?;
    Some(0.8 - 0.2 * slips as f32)
}

/// How many slips of the finger make one of the other, if few do. Most slips spare the first letter, and a look at it spares
/// most of the work.
fn few_slips(wanted: &[char], term: &str, allowed: usize) -> Option<usize> {
    if term.chars().next() != wanted.first().copied() {
        return None;
    }
    let term: Vec<char> = term.chars().collect();
    slips(wanted, &term, allowed).filter(|slips| *slips > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_in_a_short_word_and_two_in_a_long_one() {
        let slips_in = |wanted: &str, term: &str| {
            let wanted: Vec<char> = wanted.chars().collect();
            few_slips(&wanted, term, if wanted.len() >= 8 { 2 } else { 1 })
        };
        assert_eq!(slips_in("serach", "search"), Some(1), "neighbours exchanged");
        assert_eq!(slips_in("serch", "search"), Some(1));
        assert_eq!(slips_in("kubernets", "kubernetes"), Some(1));
        assert_eq!(slips_in("kubrnets", "kubernetes"), Some(2));
        assert_eq!(slips_in("cat", "cart"), Some(1));
        assert_eq!(slips_in("cat", "cot"), Some(1));
        assert_eq!(slips_in("cat", "hat"), None, "the first letter stays");
        assert_eq!(slips_in("cat", "carts"), None);
        assert_eq!(slips_in("größe", "größen"), Some(1));
    }
}
