//! Finding sections by their words: what a word is, how sections become documents, and how a query is relaxed.
//!
//! Both sides of the index go through [`words`] and [`language`], only the asking side through [`query`] and [`similar`].

mod damage;
mod directory;
mod engine;
mod files;
mod index;
mod language;
mod query;
mod schema;
mod similar;
mod tally;
mod tokenizer;
mod view;
mod writer;

pub(crate) use damage::TextError;
pub(crate) use index::TextIndex;
pub(crate) use writer::{Mark, TextChange};

/// The fields, for the guard of the format.
#[cfg(test)]
pub(crate) fn schema_json() -> String {
    serde_json::to_string_pretty(&schema::schema().0).expect("a schema is JSON")
}

/// The words of a text with their positions, for the guard of the format.
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
