//! What a provider is used for: decides the names of its settings and of its key.

use std::fmt;

/// The use of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Vectors of texts.
    Embedding,
    /// Summaries, tags and entities of texts.
    Llm,
}

impl Purpose {
    /// The provider in a sentence.
    pub fn provider(self) -> &'static str {
        match self {
            Self::Embedding => "embedding provider",
            Self::Llm => "language model",
        }
    }

    /// The environment variable with its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Embedding => "QUIPU_EMBEDDING_KEY",
            Self::Llm => "QUIPU_LLM_KEY",
        }
    }
}

/// The table of its settings.
impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Embedding => "embedding",
            Self::Llm => "llm",
        })
    }
}
