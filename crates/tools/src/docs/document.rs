//! What is said of a document beside its text.

use std::borrow::Cow;

use quipu_core::model::{Note, Value};
use schemars::JsonSchema;
use serde::Serialize;

use crate::time::iso_utc;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentMetadata {
    title: String,
    /// From the vault root.
    path: String,
    section: String,
    filename: String,
    /// ISO 8601, UTC.
    last_modified: String,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl DocumentMetadata {
    pub(super) fn of(note: &Note) -> Self {
        Self {
            title: note.title.clone(),
            path: note.path.to_string(),
            section: section(note).into_owned(),
            filename: note.path.file_name().to_owned(),
            last_modified: iso_utc(note.stat.modified_ns),
            tags: note.tags.iter().map(|tag| tag.name.clone()).collect(),
            description: text_of(note, "description"),
        }
    }
}

/// The section a document is in: as its frontmatter says, else its first folder, else `root`.
pub(super) fn section(note: &Note) -> Cow<'_, str> {
    let from_path = || match note.path.as_str().split_once('/') {
        Some((folder, _)) => Cow::Borrowed(folder),
        None => Cow::Borrowed("root"),
    };
    text_of(note, "section").map_or_else(from_path, Cow::Owned)
}

fn text_of(note: &Note, property: &str) -> Option<String> {
    let text = note.property(property).and_then(Value::to_plain_text)?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
