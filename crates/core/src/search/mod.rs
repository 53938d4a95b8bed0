//! Search by lines, and by words, meaning and links in one ranking.

mod edit_distance;
mod fusion;
mod hybrid;
mod line_search;
mod line_segment;
mod line_set;
mod meaning;
mod passages;
mod sections;
mod snippet;
mod varint;
mod word_line_index;
pub mod words;

pub use edit_distance::edit_distance;
pub use fusion::Weights;
pub use hybrid::{FoundNote, FoundSection, NoteSearch, RankingSources, SearchResults};
pub use line_search::{LineIndex, LineMatch};
pub use meaning::{Effort, EmbeddingFailed, Meaning, Round};
pub use passages::{PASSAGES_VERSION, Passage, passages};
pub use snippet::{best_line, excerpt, has_match, snippet};
