//! Adds words and meaning to one score for each section.
//!
//! Both are scaled before they are added. Words: the score of a section divided by the geometric mean of the best section's score
//! and the highest possible one, so that a section with half the words has half the score even if it is the best. Meaning: the
//! cosine above that of unrelated texts. Their weighted sum beats either alone, and reciprocal rank fusion, on every judged set in
//! English (docs/search.md).

use rustc_hash::FxHashMap;

use super::hybrid::FoundSection;
use crate::model::NoteKey;
use crate::ports::{RankedText, VectorHit};

/// The least share of Latin letters of a query that counts as English: a question in another script may have a name in Latin ones.
const ENGLISH: f32 = 0.5;

/// The least cosine of a section without any of the words, above that of unrelated texts.
const NEARER_BY: f32 = 0.08;

/// The least cosine of the best section where no section has any of the words, so that nothing else supports the match. The
/// builtin model puts nonsense (`zzqqxx flurbl`, `zzzzq`) as near as 0.63 to a section, and unrelated texts at 0.5. Coarse
/// vectors can put nonsense above this limit; a question in other words than the notes use must be found from the start, too.
const ALONE_NEARER_BY: f32 = 0.16;

/// How much each ranking counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// The weight of meaning for a query that the model understands, with full vectors; the rest is that of words.
    pub meaning: f32,
    /// The weight of meaning with coarse vectors.
    pub coarse: f32,
}

impl Default for Weights {
    /// Chosen by `cargo xtask eval --weights`.
    fn default() -> Self {
        Self { meaning: 0.6, coarse: 0.4 }
    }
}

impl Weights {
    /// The weight of meaning for a query, given the share of full vectors among the closest.
    pub(super) fn of_meaning(self, query: &str, beyond_english: f32, full: f32) -> f32 {
        let latin = share_of_latin(query);
        let coarse = if latin < ENGLISH { 0.0 } else { self.coarse };
        let english = coarse * (1.0 - full) + self.meaning * full;
        latin * english + (1.0 - latin) * beyond_english * full * self.meaning
    }
}

/// The share of Latin letters among all letters; none without letters.
fn share_of_latin(text: &str) -> f32 {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let (latin, all) = letters.fold((0_u32, 0_u32), |(latin, all), c| (latin + u32::from(c < '\u{250}'), all + 1));
    if all == 0 { 0.0 } else { latin as f32 / all as f32 }
}

/// How a similarity becomes a part of a score.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeaningScale {
    /// The rest is that of words.
    pub(super) weight: f32,
    /// The cosine of unrelated texts.
    pub(super) unrelated: f32,
    /// The least cosine of a section without any of the words.
    pub(super) least_alone: f32,
}

impl MeaningScale {
    /// Meaning does not count.
    pub(super) const NONE: Self = Self { weight: 0.0, unrelated: 0.0, least_alone: f32::INFINITY };
    /// Nothing else counts: the score is the cosine.
    pub(super) const ALONE: Self = Self { weight: 1.0, unrelated: 0.0, least_alone: f32::NEG_INFINITY };

    fn part(&self, similarity: f32) -> f32 {
        self.weight * ((similarity - self.unrelated) / (1.0 - self.unrelated)).clamp(0.0, 1.0)
    }
}

/// How similar sections are to the query.
#[derive(Debug, Default)]
pub(super) struct Similar {
    /// The closest, and those that words found.
    by_section: FxHashMap<(NoteKey, usize), f32>,
    /// The lowest similarity among the nearest sections.
    least: f32,
}

impl Similar {
    /// The closest sections.
    pub(super) fn new(near: Vec<VectorHit>) -> Self {
        let least = near.last().map_or(0.0, |hit| hit.similarity);
        let by_section = near.into_iter().map(|hit| ((hit.key, hit.section), hit.similarity)).collect();
        Self { by_section, least }
    }

    pub(super) fn has(&self, section: (NoteKey, usize)) -> bool {
        self.by_section.contains_key(&section)
    }

    /// Adds sections that are not among the closest. One without a vector yet counts as the last of the closest.
    pub(super) fn add(&mut self, sections: impl Iterator<Item = ((NoteKey, usize), Option<f32>)>) {
        let least = self.least;
        self.by_section.extend(sections.map(|(section, similarity)| (section, similarity.unwrap_or(least))));
    }
}

/// The least cosine of a section that is listed without any of the words. Where no section has any of them, the closest must be
/// closer still, or nothing is.
pub(super) fn least_alone(near: &[VectorHit], unrelated: f32, has_words: bool) -> f32 {
    let is_evidence = has_words || near.iter().any(|hit| hit.similarity >= unrelated + ALONE_NEARER_BY);
    if is_evidence { unrelated + NEARER_BY } else { f32::INFINITY }
}

/// The sections of both rankings with both parts of their scores, without those that have none of the words and are not close
/// enough.
pub(super) fn weighed(words: &RankedText, similar: &Similar, scale: &MeaningScale) -> Vec<(NoteKey, FoundSection)> {
    let best = words.hits.first().map_or(0.0, |hit| hit.score);
    let whole = (best * words.most.max(best)).sqrt();
    let share = |score: f32| (1.0 - scale.weight) * (score / whole).min(1.0);
    let by_words: FxHashMap<(NoteKey, usize), f32> =
        words.hits.iter().map(|hit| ((hit.key, hit.section), share(hit.score))).collect();
    let section =
        |(key, section), words: f32, meaning| (key, FoundSection { section, score: words + meaning, words, meaning });
    let meaning_of = |place: &(NoteKey, usize)| similar.by_section.get(place).map_or(0.0, |of| scale.part(*of));
    let with_words = by_words.iter().map(|(place, words)| section(*place, *words, meaning_of(place)));
    let is_close = |place: &(NoteKey, usize), similarity: f32| {
        scale.weight > 0.0 && similarity >= scale.least_alone && !by_words.contains_key(place)
    };
    let alone = similar.by_section.iter().filter(|(place, similarity)| is_close(place, **similarity));
    with_words.chain(alone.map(|(place, similarity)| section(*place, 0.0, scale.part(*similarity)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Grade, TextHit};

    #[test]
    fn coarse_vectors_count_for_queries_that_are_mostly_in_latin_letters() {
        let weights = Weights { meaning: 0.5, coarse: 0.3 };
        let weight = |query, full| weights.of_meaning(query, 0.2, full);
        assert_eq!(weight("how to export", 0.0), 0.3);
        assert_eq!(weight("PDFに書き出す方法", 0.0), 0.0);
        assert!((weight("PDFに書き出す方法", 1.0) - 0.5 * (3.0 + 7.0 * 0.2) / 10.0).abs() < 1e-6);
        assert_eq!((weight("how to export", 1.0), weight("書き出す", 1.0)), (0.5, 0.1));
    }

    #[test]
    fn section_that_only_words_found_counts_with_its_own_similarity() {
        let hit = |key, similarity| VectorHit { key: NoteKey(key), section: 0, similarity, grade: Grade::FULL };
        let mut similar = Similar::new(vec![hit(1, 0.9), hit(2, 0.8)]);
        similar.add([((NoteKey(3), 0), Some(0.6)), ((NoteKey(4), 0), None)].into_iter());
        let hits = [3, 4].map(|key| TextHit { key: NoteKey(key), section: 0, score: 1.0 }).to_vec();
        let scale = MeaningScale { weight: 0.5, unrelated: 0.5, least_alone: 0.58 };
        let sections = weighed(&RankedText { hits, most: 1.0 }, &similar, &scale);
        let mut parts: Vec<(u32, f32)> =
            sections.iter().map(|(key, found)| (key.0, (found.meaning * 100.0).round())).collect();
        parts.sort_by_key(|(key, _)| *key);
        assert_eq!(
            parts,
            [(1, 40.0), (2, 30.0), (3, 10.0), (4, 30.0)],
            "one without a vector is as the last of the closest"
        );
    }
}
