//! The fields of a section's document and their weights.

use quipu_core::model::Note;
use tantivy::TantivyDocument;
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};

use super::language::Language;
use super::tokenizer;

/// The text fields: name, share of length, weight of a phrase. Ranking by field is tuned here only.
const WORD_FIELDS: [(&str, f32, f32); 5] =
    [("title", 0.75, 0.6), ("alias", 0.0, 0.6), ("heading", 0.0, 0.5), ("tag", 0.0, 0.4), ("body", 0.75, 1.0)];

/// A text field.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordField {
    pub(super) field: Field,
    /// How much less an occurrence counts in a long field: from 0, not at all, to 1, in proportion.
    pub(super) by_length: f32,
    /// The factor on the score of a phrase.
    pub(super) phrase: f32,
}

/// The fast field with a document's key and section.
pub(super) const PLACE: &str = "place";

/// Handles to the fields.
#[derive(Clone)]
pub(super) struct IndexFields {
    /// The note's key, to delete by.
    pub(super) key: Field,
    /// Key and section in one number, which sorts as the two do.
    place: Field,
    /// The code of the note's language, from which a query learns the languages of the vault.
    pub(super) language: Field,
    /// The text fields.
    pub(super) words: [WordField; 5],
}

/// The schema and its handles.
pub(super) fn schema() -> (Schema, IndexFields) {
    let mut builder = Schema::builder();
    let key = builder.add_u64_field("key", INDEXED);
    let place = builder.add_u64_field(PLACE, FAST);
    let language = builder.add_text_field("language", STRING);
    let words = WORD_FIELDS.map(|(name, by_length, phrase)| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(tokenizer::NAME)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        // Not stored: the text is in the vault.
        let field = builder.add_text_field(name, TextOptions::default().set_indexing_options(indexing));
        WordField { field, by_length, phrase }
    });
    (builder.build(), IndexFields { key, place, language, words })
}

impl IndexFields {
    pub(super) fn body(&self) -> Field {
        let [.., body] = self.words;
        body.field
    }

    /// The fields with a note's names.
    pub(super) fn names(&self) -> [Field; 2] {
        let [title, alias, ..] = self.words.map(|words| words.field);
        [title, alias]
    }

    /// One document for each section. All have the note's names and tags, so that a query may combine words of the section
    /// and of its note.
    ///
    /// The ranges must be inside the text.
    pub(super) fn documents(&self, key: u32, note: &Note, text: &str) -> Vec<TantivyDocument> {
        let [title, alias, heading, tag, body] = self.words.map(|words| words.field);
        let language = Language::of(note, &text[note.body_start..]);
        let mark = language.map(Language::mark).map(String::from).unwrap_or_default();
        let marked = |text: &str| format!("{mark}{text}");
        let document = |(index, section): (usize, &quipu_core::model::Section)| {
            let mut document = TantivyDocument::new();
            language.iter().for_each(|language| document.add_text(self.language, language.code()));
            document.add_u64(self.key, key.into());
            document.add_u64(self.place, place(key, index));
            document.add_text(title, marked(&note.title));
            note.aliases.iter().for_each(|name| document.add_text(alias, marked(name)));
            note.tags.iter().for_each(|name| document.add_text(tag, marked(&name.folded)));
            section.heading.iter().for_each(|text| document.add_text(heading, marked(text)));
            document.add_text(body, marked(&text[section.text_start..section.range.end]));
            document
        };
        note.sections.iter().enumerate().map(document).collect()
    }
}

/// The number for a section's place.
fn place(key: u32, section: usize) -> u64 {
    let section = u32::try_from(section).expect("a file has fewer than 2^32 sections, since each has a heading");
    u64::from(key) << 32 | u64::from(section)
}

/// Key and section of a place.
pub(super) fn key_and_section(place: u64) -> (u32, usize) {
    ((place >> 32) as u32, (place & u64::from(u32::MAX)) as usize)
}
