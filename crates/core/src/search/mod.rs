//! Finding: by lines, as a documentation reader greps; by words, meaning and links, weighed into one ranking.

mod bay;
mod hybrid;
mod line_set;
mod lines;
mod meaning;
mod passages;
mod shelf;
mod slips;
mod snippet;
mod spread;
pub mod words;

pub use hybrid::{By, Findings, Found, FoundSection, Search};
pub use lines::{LineMatch, Lines};
pub use meaning::{Effort, EmbeddingFailed, Meaning, Round};
pub use passages::{PASSAGES_VERSION, Passage, passages};
pub use slips::slips;
pub use snippet::{best_line, excerpt, has_match, snippet};
