//! The document type of a note, from the frontmatter key `doc_type`.

use super::{Note, Value};

/// A document type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DocType {
    /// Requirements.
    Spec,
    Design,
    /// Architecture decision record.
    Adr,
    /// Instructions for users.
    Guide,
    /// API reference.
    Api,
    /// Meeting notes.
    Meeting,
    /// Open tasks.
    Todo,
    /// Anything else, and every note without the key.
    #[default]
    Other,
    /// Database schema.
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

    /// Its name in frontmatter and on the wire.
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

    /// The type with exactly this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|doc_type| doc_type.name() == name)
    }

    /// The type of a note. An unknown name counts as `other`; parsing warns of it.
    pub fn of(note: &Note) -> Self {
        note.property("doc_type").and_then(Value::as_text).and_then(Self::from_name).unwrap_or_default()
    }
}
