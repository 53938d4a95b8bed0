//! Finding: by lines, as a documentation reader greps; by words, meaning and links, as the stores and the graph tell.

mod lines;
mod passages;
mod snippet;

pub use lines::{LineMatch, Lines};
pub use passages::{PASSAGES_VERSION, Passage, passages};
pub use snippet::{has_match, snippet};
