//! Finding sections by their words: what a word is, how sections become documents, and how a query is relaxed.
//!
//! Stemming, typing errors and the language of a text belong in [`words`] and [`query`]: both sides of the index go
//! through the first, only the asking side through the second.

mod directory;
mod index;
mod query;
mod ranking;
mod schema;
mod tokenizer;
mod words;
mod writer;

pub(crate) use index::{TextIndex, TextOpenError};
pub(crate) use writer::{Mark, TextChange};
