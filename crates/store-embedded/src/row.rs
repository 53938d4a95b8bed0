//! A note as the bytes of a catalog row.
//!
//! Rows borrow from the note when written and from the bytes when read, so neither direction copies more than the note needs.
//! A change here needs a new [`crate::catalog::FORMAT`].

use quipu_core::model::{
    ContentHash, FileStat, Link, LinkSyntax, LinkType, Note, PathError, Section, SourceVersion, Tag, TextCounts, Value,
    VaultPath,
};
use serde::{Deserialize, Serialize};

/// A note without what has a column of its own: stat and hash.
#[derive(Serialize, Deserialize)]
struct NoteRow<'a> {
    // The id is not stored: it follows from the path.
    path: &'a str,
    title: &'a str,
    #[serde(borrow)]
    tags: Vec<TagRow<'a>>,
    aliases: Vec<&'a str>,
    properties: Vec<(&'a str, ValueRow<'a>)>,
    links: Vec<LinkRow<'a>>,
    sections: Vec<SectionRow<'a>>,
    body_start: usize,
    /// Characters, characters of the file, open tasks, finished tasks.
    counts: (usize, usize, usize, usize),
    warnings: Vec<&'a str>,
    sources: Vec<(&'a str, [u8; 32])>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct TagRow<'a> {
    name: &'a str,
    /// `None` if it equals the name, as it mostly does.
    folded: Option<&'a str>,
}

#[derive(Serialize, Deserialize)]
enum ValueRow<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    #[serde(borrow)]
    List(Vec<ValueRow<'a>>),
    Map(Vec<(&'a str, ValueRow<'a>)>),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct LinkRow<'a> {
    #[serde(with = "SyntaxRow")]
    syntax: LinkSyntax,
    target: &'a str,
    fragment: Option<&'a str>,
    label: Option<&'a str>,
    #[serde(with = "TypeRow")]
    link_type: LinkType,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LinkSyntax")]
enum SyntaxRow {
    Wiki,
    Embed,
    Markdown,
    Frontmatter,
    Shortcode,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LinkType")]
enum TypeRow {
    References,
    DependsOn,
    Implements,
    Extends,
    ConflictsWith,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct SectionRow<'a> {
    heading: Option<&'a str>,
    level: u8,
    start: usize,
    /// A length rather than an end, since smaller numbers take fewer bytes.
    length: usize,
    text_start: usize,
}

/// Why bytes are not a valid row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    #[error("cannot read a row of the catalog: {0}")]
    Shape(#[from] postcard::Error),
    #[error("a row of the catalog has an invalid path: {0}")]
    Path(#[from] PathError),
    #[error("a row of the catalog has a content hash of the wrong length")]
    Hash,
}

/// The bytes for a note's row.
pub(crate) fn encode(note: &Note) -> Result<Vec<u8>, RowError> {
    debug_assert_eq!(note.id, note.path.note_id(), "the id is not stored, since it follows from the path");
    let row = NoteRow {
        path: note.path.as_str(),
        title: &note.title,
        tags: note.tags.iter().map(tag_row).collect(),
        aliases: note.aliases.iter().map(String::as_str).collect(),
        properties: note.properties.iter().map(|(name, value)| (name.as_str(), value_row(value))).collect(),
        links: note.links.iter().map(link_row).collect(),
        sections: note.sections.iter().map(section_row).collect(),
        body_start: note.body_start,
        counts: (note.counts.chars, note.counts.file_chars, note.counts.tasks_open, note.counts.tasks_done),
        warnings: note.warnings.iter().map(String::as_str).collect(),
        sources: note.sources.iter().map(|source| (source.path.as_str(), source.hash.0)).collect(),
    };
    Ok(postcard::to_allocvec(&row)?)
}

/// The note of a row.
pub(crate) fn decode(bytes: &[u8], stat: FileStat, hash: &[u8]) -> Result<Note, RowError> {
    let row: NoteRow<'_> = postcard::from_bytes(bytes)?;
    let path = VaultPath::parse(row.path)?;
    let (chars, file_chars, tasks_open, tasks_done) = row.counts;
    Ok(Note {
        id: path.note_id(),
        path,
        stat,
        hash: ContentHash(hash.try_into().map_err(|_| RowError::Hash)?),
        title: row.title.to_owned(),
        tags: row.tags.into_iter().map(tag).collect(),
        aliases: row.aliases.into_iter().map(str::to_owned).collect(),
        properties: row.properties.into_iter().map(|(name, row)| (name.to_owned(), value(row))).collect(),
        links: row.links.into_iter().map(link).collect(),
        sections: row.sections.into_iter().map(section).collect(),
        body_start: row.body_start,
        counts: TextCounts { chars, file_chars, tasks_open, tasks_done },
        warnings: row.warnings.into_iter().map(str::to_owned).collect(),
        sources: row.sources.into_iter().map(source).collect(),
    })
}

fn source((path, hash): (&str, [u8; 32])) -> SourceVersion {
    SourceVersion { path: path.to_owned(), hash: ContentHash(hash) }
}

fn tag_row(tag: &Tag) -> TagRow<'_> {
    TagRow { name: &tag.name, folded: (tag.folded != tag.name).then_some(&tag.folded) }
}

fn tag(row: TagRow<'_>) -> Tag {
    Tag { name: row.name.to_owned(), folded: row.folded.unwrap_or(row.name).to_owned() }
}

fn value_row(value: &Value) -> ValueRow<'_> {
    match value {
        Value::Null => ValueRow::Null,
        Value::Bool(flag) => ValueRow::Bool(*flag),
        Value::Int(number) => ValueRow::Int(*number),
        Value::Float(number) => ValueRow::Float(*number),
        Value::Text(text) => ValueRow::Text(text),
        Value::List(items) => ValueRow::List(items.iter().map(value_row).collect()),
        Value::Map(pairs) => ValueRow::Map(pairs.iter().map(|(key, value)| (key.as_str(), value_row(value))).collect()),
    }
}

fn value(row: ValueRow<'_>) -> Value {
    match row {
        ValueRow::Null => Value::Null,
        ValueRow::Bool(flag) => Value::Bool(flag),
        ValueRow::Int(number) => Value::Int(number),
        ValueRow::Float(number) => Value::Float(number),
        ValueRow::Text(text) => Value::Text(text.to_owned()),
        ValueRow::List(items) => Value::List(items.into_iter().map(value).collect()),
        ValueRow::Map(pairs) => Value::Map(pairs.into_iter().map(|(key, row)| (key.to_owned(), value(row))).collect()),
    }
}

fn link_row(link: &Link) -> LinkRow<'_> {
    LinkRow {
        syntax: link.syntax,
        target: &link.target,
        fragment: link.fragment.as_deref(),
        label: link.label.as_deref(),
        link_type: link.link_type,
    }
}

fn link(row: LinkRow<'_>) -> Link {
    Link {
        syntax: row.syntax,
        target: row.target.to_owned(),
        fragment: row.fragment.map(str::to_owned),
        label: row.label.map(str::to_owned),
        link_type: row.link_type,
    }
}

fn section_row(section: &Section) -> SectionRow<'_> {
    SectionRow {
        heading: section.heading.as_deref(),
        level: section.level,
        start: section.range.start,
        length: section.range.len(),
        text_start: section.text_start,
    }
}

fn section(row: SectionRow<'_>) -> Section {
    Section {
        heading: row.heading.map(str::to_owned),
        level: row.level,
        range: row.start..row.start.saturating_add(row.length),
        text_start: row.text_start,
    }
}
