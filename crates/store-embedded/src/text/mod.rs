//! Full-text search of sections: how sections become documents of tantivy, and how a query is relaxed.
//!
//! Writing and searching share [`quipu_core::search::words`] and [`language`]; only searching uses [`query`] and [`similar`].

mod bm25;
mod damage;
mod directory;
mod engine;
mod files;
mod index;
mod language;
mod query;
mod schema;
mod segment_scores;
mod similar;
mod tokenizer;
mod view;
mod writer;

pub(crate) use damage::TextError;
pub(crate) use index::SectionIndex;
pub(crate) use writer::{IndexPosition, TextChange};

/// The fields, for `format_guard`.
#[cfg(test)]
pub(crate) fn schema_json() -> String {
    serde_json::to_string_pretty(&schema::schema().0).expect("a schema is JSON")
}

/// The words of a text with their positions, for `format_guard`.
#[cfg(test)]
pub(crate) fn words_of(text: &str) -> String {
    use tantivy::tokenizer::{TokenStream, Tokenizer};
    let mut words = Vec::new();
    let mut tokenizer = tokenizer::WordTokenizer;
    let mut tokens = tokenizer.token_stream(text);
    while let Some(token) = tokens.next() {
        words.push(format!("{} {}", token.position, token.text));
    }
    words.join("\n")
}
