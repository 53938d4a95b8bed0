//! Finding sections by their words: what a word is, how sections become documents, and how a query is relaxed.
//!
//! Stemming, typing errors and the language of a text belong in [`words`] and [`query`]: both sides of the index go
//! through the first, only the asking side through the second.

mod damage;
mod directory;
mod engine;
mod files;
mod index;
mod query;
mod ranking;
mod schema;
mod tokenizer;
mod words;
mod writer;

pub(crate) use damage::TextError;
pub(crate) use index::TextIndex;
pub(crate) use writer::{Mark, TextChange};
