//! A document's metadata.

use quipu_core::model::Note;
use schemars::JsonSchema;
use serde::Serialize;

use crate::time::iso_utc;
use crate::truncate::{LISTED, truncate};

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
            section: note.area().into_owned(),
            filename: note.path.file_name().to_owned(),
            last_modified: iso_utc(note.stat.modified_ns),
            tags: note.tags.iter().map(|tag| tag.name.clone()).collect(),
            description: note.text_property("description"),
        }
    }

    /// The same in a list: a long description is cut.
    pub(super) fn listed(self) -> Self {
        Self { description: self.description.map(|text| truncate(&text, LISTED)), ..self }
    }
}
