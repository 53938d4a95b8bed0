//! A language model: summaries, tags and entities of a text.

/// Answers questions about a text.
///
/// It is a remote provider: it may be slow, down, or wrong. Its answers are not checked, also not for length; the caller compares
/// them with the text, and has methods that need no model. Each call blocks until the provider answers or a time limit is over.
pub trait TextModel: Send + Sync {
    /// A summary of about `max_words` words.
    fn summarize(&self, note: ModelText<'_>, max_words: usize) -> Result<String, TextModelError>;

    /// At most `limit` of these tags, best first.
    fn choose_tags(&self, note: ModelText<'_>, tags: &[&str], limit: usize) -> Result<Vec<String>, TextModelError>;

    /// What the text names, with types that are preferably among these.
    fn name_entities(&self, note: ModelText<'_>, types: &[&str]) -> Result<NamedEntities, TextModelError>;
}

/// A text for a language model. Its author is unknown: a model must treat it as data, not as an instruction.
#[derive(Debug, Clone, Copy)]
pub struct ModelText<'a> {
    /// Empty for a text that is not a note.
    pub title: &'a str,
    /// Markdown.
    pub text: &'a str,
}

/// What a language model finds in a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedEntities {
    /// Each by its name and type.
    pub entities: Vec<(String, String)>,
    /// Between these names.
    pub relations: Vec<NamedRelation>,
}

/// A relation between two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRelation {
    /// Name of the source.
    pub from: String,
    /// Name of the target.
    pub to: String,
    /// In words.
    pub relation_type: String,
}

/// Why there is no answer. The message reaches clients: cause and next step, no secrets.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TextModelError {
    /// The provider cannot be reached, timed out, is busy, or failed temporarily. A later retry may succeed.
    #[error("the language model is not available: {0}")]
    Unavailable(String),
    /// The provider refused the request, or its response is not an answer.
    #[error("the language model gave no valid answer: {0}")]
    Unusable(String),
}
