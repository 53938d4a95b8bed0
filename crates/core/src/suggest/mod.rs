//! What can be suggested about a note: tags, a summary, the entities it names, the notes it mentions and those it may duplicate.
//! For the first three a language model is asked if the user configured one; without it, or if it fails, other methods answer.
//!
//! Nothing is written. Every answer says by which method it was made.

mod by_model;
mod duplicates;
mod entities;
mod folded_lines;
mod mentions;
mod name_clues;
mod sentences;
mod spelling;
mod summary;
mod tags;

pub use duplicates::{DuplicateKind, LikelyDuplicate};
pub use entities::{EntitySuggestions, Mention, SuggestedEntity, SuggestedRelation};
pub use mentions::UnlinkedMention;
pub use sentences::{plain_text, sentences};
pub use summary::{ComparedSentences, Summary, SummaryWeights};
pub use tags::{SuggestedTag, TagSigns, TagSuggestions, TagWeights};

/// How a suggestion was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By the language model that the user configured.
    Model,
    /// By the meaning of texts.
    Meaning,
    /// By words alone.
    Words,
}

impl Method {
    fn without_model(by_meaning: bool) -> Self {
        if by_meaning { Self::Meaning } else { Self::Words }
    }
}
