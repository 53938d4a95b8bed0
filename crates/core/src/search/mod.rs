//! Finding: by lines, as a documentation reader greps; by words, meaning and links, as the stores and the graph tell.

mod lines;
mod passages;

pub use lines::{LineMatch, Lines};
pub use passages::{PASSAGES_VERSION, Passage, passages};
