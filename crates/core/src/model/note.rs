//! A note: what the index knows of one Markdown file. Its text stays in the file.

use std::borrow::Cow;
use std::ops::Range;

use super::{ContentHash, Link, NoteId, Value, VaultPath};
use crate::quote::quoted;

/// All that is known of one file without reading it again.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Where it lies, with its true spelling.
    pub path: VaultPath,
    /// What agents call it.
    pub id: NoteId,
    /// Size and time at which the bytes of `hash` were read.
    pub stat: FileStat,
    /// The version that everything below was taken from.
    pub hash: ContentHash,
    /// What it is called: frontmatter, else the file's name, as the vault's title rule says.
    pub title: String,
    /// From the frontmatter first, then from the text, in order of appearance, no two equal when folded.
    pub tags: Vec<Tag>,
    /// Other names it answers to.
    pub aliases: Vec<String>,
    /// Every other frontmatter key, in the order written.
    pub properties: Vec<(String, Value)>,
    /// In order of appearance, repetitions included.
    pub links: Vec<Link>,
    /// The parts between H2 and H3 headings. They cover the body without gap or overlap.
    pub sections: Vec<Section>,
    /// Where the body starts in the file's text, behind the frontmatter.
    pub body_start: usize,
    /// What was odd about it. Broken links are not here: they depend on other notes.
    pub warnings: Vec<String>,
    /// The files it is about (`source_refs`), as they were when these bytes of the note were first seen. By path.
    pub sources: Vec<SourceVersion>,
}

impl Note {
    /// The value of a frontmatter key that is neither title nor tags.
    pub fn property(&self, key: &str) -> Option<&Value> {
        self.properties.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text of a frontmatter key, where it has one that is not blank.
    pub fn text_property(&self, key: &str) -> Option<String> {
        let text = self.property(key).and_then(Value::to_plain_text)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The part of the vault it counts to: as its frontmatter says (`section`), else its first folder, else `root`.
    pub fn area(&self) -> Cow<'_, str> {
        let from_path = || match self.path.as_str().split_once('/') {
            Some((folder, _)) => Cow::Borrowed(folder),
            None => Cow::Borrowed("root"),
        };
        self.text_property("section").map_or_else(from_path, Cow::Owned)
    }

    /// Whether it has a tag, or one nested below it: `a/b` has `a`.
    pub fn has_tag(&self, folded: &str) -> bool {
        self.tags.iter().any(|tag| tag.is_or_below(folded))
    }
}

/// A tag without its `#`, as first written, and folded for comparing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// As written.
    pub name: String,
    /// As compared.
    pub folded: String,
}

impl Tag {
    /// A tag from its text; a leading `#` is dropped.
    pub fn new(text: &str) -> Self {
        let name = text.trim().trim_start_matches('#').to_owned();
        Self { folded: super::fold(&name), name }
    }

    /// Whether this is the tag asked for, or nested below it.
    pub fn is_or_below(&self, folded: &str) -> bool {
        self.folded.strip_prefix(folded).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// A part of a note: a heading of level 2 or 3 with what follows it, or what comes before the first of them.
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

/// A file that a note is about, and its content at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceVersion {
    /// Its path as a reader of the note would write it: from the vault's root, or from the repository's.
    pub path: String,
    /// Its content.
    pub hash: ContentHash,
}

/// What the file system says of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// Nanoseconds since 1970. Zero is kept in a store for a file that had changed just before it was read: its time says
    /// nothing of a change that may follow.
    pub modified_ns: i64,
    /// Bytes.
    pub size: u64,
}

impl FileStat {
    /// By this the newest files come last. One without a time is newer than all others.
    pub fn newness(self) -> i64 {
        if self.modified_ns == 0 { i64::MAX } else { self.modified_ns }
    }
}

/// Something odd that lost nothing: told once to each client, listed by `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The file it is about.
    pub path: String,
    /// What is odd, and what to do.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", quoted(&self.path), self.message)
    }
}
