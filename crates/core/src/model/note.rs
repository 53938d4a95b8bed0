//! A note: the metadata of one Markdown file. Its text stays in the file.

use std::borrow::Cow;
use std::ops::Range;

use super::{ContentHash, Link, NoteId, Value, VaultPath};
use crate::quote::quoted;

/// The metadata of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Its path, exactly as on disk.
    pub path: VaultPath,
    /// Its id for agents.
    pub id: NoteId,
    /// Size and modification time when the bytes of `hash` were read.
    pub stat: FileStat,
    /// The version that was parsed.
    pub hash: ContentHash,
    /// Its title, from the frontmatter, a heading or the file name, by the vault's title rule.
    pub title: String,
    /// From the frontmatter first, then from the text, in order of appearance, no two equal when folded.
    pub tags: Vec<Tag>,
    pub aliases: Vec<String>,
    /// Every other frontmatter key, in the order written.
    pub properties: Vec<(String, Value)>,
    /// In order of appearance, including duplicates.
    pub links: Vec<Link>,
    /// The parts between H2 and H3 headings. They cover the body without gap or overlap.
    pub sections: Vec<Section>,
    /// Where the body starts in the file's text, after the frontmatter.
    pub body_start: usize,
    /// The size of its text, and its tasks.
    pub counts: TextCounts,
    /// Warnings from parsing. Broken links are not included: they depend on other notes.
    pub warnings: Vec<String>,
    /// The files in `source_refs`, as they were when this version of the note was first indexed. By path.
    pub sources: Vec<SourceVersion>,
}

impl Note {
    /// The value of a frontmatter key that is neither title nor tags.
    pub fn property(&self, key: &str) -> Option<&Value> {
        self.properties.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text of a frontmatter key; `None` if it is blank or not a scalar.
    pub fn text_property(&self, key: &str) -> Option<String> {
        let text = self.property(key).and_then(Value::to_plain_text)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The area of the vault it belongs to: the frontmatter key `section`, else its first folder, else `root`.
    pub fn area(&self) -> Cow<'_, str> {
        let from_path = || match self.path.as_str().split_once('/') {
            Some((folder, _)) => Cow::Borrowed(folder),
            None => Cow::Borrowed("root"),
        };
        self.text_property("section").map_or_else(from_path, Cow::Owned)
    }

    /// Whether it has a tag, or one nested below it: `a/b` counts as `a`.
    pub fn has_tag(&self, folded: &str) -> bool {
        self.tags.iter().any(|tag| tag.is_or_below(folded))
    }
}

/// A tag without its `#`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// As first written.
    pub name: String,
    /// Folded, for comparisons.
    pub folded: String,
}

impl Tag {
    /// A tag from its text; a leading `#` is removed.
    pub fn new(text: &str) -> Self {
        let name = text.trim().trim_start_matches('#').to_owned();
        Self { folded: super::fold(&name), name }
    }

    /// Whether this is the given tag, or nested below it.
    pub fn is_or_below(&self, folded: &str) -> bool {
        self.folded.strip_prefix(folded).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// What is counted in the text of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextCounts {
    /// Characters after the frontmatter and the blank lines that follow it.
    pub chars: usize,
    /// Characters of the whole file.
    pub file_chars: usize,
    /// Task list items `- [ ]`, and those in any other state, such as `- [/]`.
    pub tasks_open: usize,
    /// Task list items `- [x]` and cancelled ones, `- [-]`.
    pub tasks_done: usize,
}

/// A part of a note: a heading of level 2 or 3 with the text below it, or the preamble before the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The heading's text, `None` for the preamble.
    pub heading: Option<String>,
    /// 2 or 3; 0 for the preamble.
    pub level: u8,
    /// Bytes of the file's text, heading line included.
    pub range: Range<usize>,
    /// Where the text below the heading starts.
    pub text_start: usize,
}

/// A version of a file that a note is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceVersion {
    /// Its path as in `source_refs`: from the vault's root, or from the repository's.
    pub path: String,
    pub hash: ContentHash,
}

/// The file system's metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// Nanoseconds since 1970. A store has a slightly earlier time for a file that changed just before it was read: a later
    /// change may leave such a time the same.
    pub modified_ns: i64,
    /// Bytes.
    pub size: u64,
}

impl FileStat {
    /// A sort key, newest files last. A file without a time counts as the newest.
    pub fn newness(self) -> i64 {
        if self.modified_ns == 0 { i64::MAX } else { self.modified_ns }
    }
}

/// A problem that lost no data: delivered to each client once, and listed by `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The file it is about.
    pub path: String,
    /// The problem and the next step.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", quoted(&self.path), self.message)
    }
}
