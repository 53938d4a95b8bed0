//! The baseline that search by words has to beat: BM25 over whole notes, with every pair of neighbouring characters as a term
//! where a script has no spaces, and every word elsewhere. No fields, no sections, no stems.

use std::collections::{BTreeMap, HashMap};

const SATURATION: f64 = 1.2;
const BY_LENGTH: f64 = 0.75;

pub(crate) struct Bigrams {
    notes: Vec<String>,
    lengths: Vec<f64>,
    mean_length: f64,
    postings: HashMap<String, Vec<(usize, f64)>>,
}

impl Bigrams {
    /// Indexes notes: of each its path, and its text with its title.
    pub(crate) fn new(notes: impl Iterator<Item = (String, String)>) -> Self {
        let mut new = Self { notes: Vec::new(), lengths: Vec::new(), mean_length: 0.0, postings: HashMap::new() };
        for (place, (path, text)) in notes.enumerate() {
            let terms = terms(&text);
            new.notes.push(path);
            new.lengths.push(terms.values().sum());
            for (term, count) in terms {
                new.postings.entry(term).or_default().push((place, count));
            }
        }
        new.mean_length = new.lengths.iter().sum::<f64>() / new.lengths.len().max(1) as f64;
        new
    }

    /// The paths of the best notes.
    pub(crate) fn rank(&self, query: &str, limit: usize) -> Vec<&str> {
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for term in terms(query).keys() {
            let Some(postings) = self.postings.get(term) else { continue };
            let (count, notes) = (postings.len() as f64, self.notes.len() as f64);
            let rarity = (1.0 + (notes - count + 0.5) / (count + 0.5)).ln();
            for (place, occurrences) in postings {
                let length = 1.0 - BY_LENGTH + BY_LENGTH * self.lengths[*place] / self.mean_length;
                *scores.entry(*place).or_default() += rarity * occurrences / (occurrences + SATURATION * length);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.into_iter().take(limit).map(|(place, _)| self.notes[place].as_str()).collect()
    }
}

/// The terms of a text and how often it has them.
fn terms(text: &str) -> BTreeMap<String, f64> {
    let mut terms = BTreeMap::new();
    for chunk in text.to_lowercase().split_whitespace() {
        let letters: Vec<char> = chunk.chars().filter(|c| c.is_alphanumeric()).collect();
        let found: Vec<String> = match chunk.is_ascii() || letters.len() < 2 {
            true => {
                chunk.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
            }
            false => letters.windows(2).map(|pair| pair.iter().collect()).collect(),
        };
        found.into_iter().for_each(|term| *terms.entry(term).or_default() += 1.0);
    }
    terms
}
