//! BM25F: a section is one text whose fields weigh differently.
//!
//! The occurrences of a term in all fields are added up, each divided by the length of its field, before they saturate, and the
//! rarity of a term is that in the whole section. Scored apart, a section that repeats the words of its title would beat one
//! that answers the question under the same title; Japanese and Chinese lost a point by that, since a word is several terms
//! there. Occurrences outside the body, which say what a note is about, then count once more by themselves.

use tantivy::fieldnorm::FieldNormReader;

use super::schema::WordField;

/// How soon further occurrences of a term stop counting.
const SATURATION: f32 = 1.2;

/// What a term can earn in all fields, as a multiple of what it can earn in the body alone.
pub(super) const ALL_FIELDS: f32 = 2.0;

/// What an occurrence in a field counts, by the stored length of the field.
pub(super) struct Occurrence([f32; 256]);

impl Occurrence {
    pub(super) fn new(words: WordField, mean_length: f32) -> Self {
        Self(std::array::from_fn(|id| {
            let length = FieldNormReader::id_to_fieldnorm(id as u8) as f32 / mean_length.max(1.0);
            1.0 / (1.0 - words.by_length + words.by_length * length)
        }))
    }

    pub(super) fn in_length(&self, id: u8) -> f32 {
        self.0[usize::from(id)]
    }
}

/// The occurrences of a term in one section.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Occurrences {
    pub(super) all: f32,
    pub(super) outside_body: f32,
}

impl Occurrences {
    /// The score, as a multiple of what the term can earn in the body alone.
    pub(super) fn score(self) -> f32 {
        let saturated = |occurrences: f32| occurrences / (occurrences + SATURATION);
        saturated(self.all) + saturated(self.outside_body)
    }
}

/// The most that a term can earn in the body alone, if so many of all sections have it.
pub(super) fn most(count: u64, sections: u64) -> f32 {
    let (count, sections) = (count as f32, sections as f32);
    (1.0 + SATURATION) * (1.0 + (sections - count + 0.5) / (count + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_term_earns_more_than_the_highest_score_and_one_in_all_fields_nearly_that() {
        let often = Occurrences { all: 200.0, outside_body: 100.0 }.score();
        assert!((0.95 * ALL_FIELDS..ALL_FIELDS).contains(&often), "{often}");
    }

    #[test]
    fn a_word_of_the_title_counts_little_more_when_the_body_repeats_it() {
        let score = |title: f32, body: f32| Occurrences { all: title + body, outside_body: title }.score();
        assert!(score(1.0, 1.0) > score(1.0, 0.0));
        assert!(
            score(1.0, 1.0) - score(1.0, 0.0) < 0.5 * score(0.0, 1.0),
            "less than another word of the query in the body"
        );
    }
}
