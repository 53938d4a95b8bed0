//! What can be suggested about a note without a language model: tags, a summary, the entities it names.
//!
//! Nothing is written. Every answer says by which method it was made.

mod entities;
mod sentences;
mod summary;
mod tags;

pub use entities::{EntitySuggestions, Mention, SuggestedEntity, SuggestedRelation};
pub use sentences::{plain_text, sentences};
pub use summary::Summary;
pub use tags::{SuggestedTag, TagSuggestions};
