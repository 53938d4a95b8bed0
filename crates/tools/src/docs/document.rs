//! A document's metadata.

use quipu_core::model::Note;
use schemars::JsonSchema;
use serde::Serialize;

use crate::tags::{MAX_LISTED_TAGS, MAX_TAGS, limit_tags, tags};
use crate::time::iso_utc;
use crate::truncate::{LISTED, cut_name, truncate};

/// Characters of the description of one document.
const MAX_DESCRIPTION: usize = 2_000;

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
    /// Present when not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags_total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl DocumentMetadata {
    pub(super) fn of(note: &Note) -> Self {
        let (mut tags, mut tags_total) = (tags(note), None);
        limit_tags(&mut tags, &mut tags_total, MAX_TAGS);
        Self {
            title: cut_name(&note.title),
            path: note.path.to_string(),
            section: note.area().into_owned(),
            filename: note.path.file_name().to_owned(),
            last_modified: iso_utc(note.stat.modified_ns),
            tags,
            tags_total,
            description: note.text_property("description").map(|text| truncate(&text, MAX_DESCRIPTION)),
        }
    }

    /// The document in a list: long tags and descriptions are cut further.
    pub(super) fn listed(mut self) -> Self {
        limit_tags(&mut self.tags, &mut self.tags_total, MAX_LISTED_TAGS);
        Self { description: self.description.map(|text| truncate(&text, LISTED)), ..self }
    }
}
