//! What sort of document a note is, as its frontmatter says under `doc_type`.

use super::{Note, Value};

/// The sorts of document there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DocType {
    /// What is to be built.
    Spec,
    /// How it is built.
    Design,
    /// Why it is built so.
    Adr,
    /// How to use it.
    Guide,
    /// How to call it.
    Api,
    /// What was said.
    Meeting,
    /// What is left to do.
    Todo,
    /// Anything else, and every note that does not say.
    #[default]
    Other,
    /// The tables of a database.
    DbSchema,
    /// Settings.
    Config,
}

impl DocType {
    /// Every type, in the order of the specification.
    pub const ALL: [Self; 10] = [
        Self::Spec,
        Self::Design,
        Self::Adr,
        Self::Guide,
        Self::Api,
        Self::Meeting,
        Self::Todo,
        Self::Other,
        Self::DbSchema,
        Self::Config,
    ];

    /// The word for it, in frontmatter and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Design => "design",
            Self::Adr => "adr",
            Self::Guide => "guide",
            Self::Api => "api",
            Self::Meeting => "meeting",
            Self::Todo => "todo",
            Self::Other => "other",
            Self::DbSchema => "db-schema",
            Self::Config => "config",
        }
    }

    /// The type a word names, spelled exactly so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|doc_type| doc_type.name() == name)
    }

    /// The type of a note. An unknown word was warned of when the note was read, and counts as `other`.
    pub fn of(note: &Note) -> Self {
        note.property("doc_type").and_then(Value::as_text).and_then(Self::from_name).unwrap_or_default()
    }
}
