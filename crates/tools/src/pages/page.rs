//! Parts of a page that several tools return: ids, links, sections, staleness.

use quipu_core::ReadNote;
use quipu_core::index::Snapshot;
use quipu_core::model::{DocType, LinkType, Note, NoteKey, Warning};
use quipu_core::staleness::Freshness;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::tool::Call;
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::truncate::{LISTED, cut_name, truncate};

/// The namespace of page ids. Never change it: ids are the same after every rebuild and on every machine.
const NAMESPACE: Uuid = Uuid::from_u128(0x8e7c_2b9d_4f0a_5c61_9d38_71b5_f2a0_c4e6);

/// The id of the page at a path.
pub(super) fn doc_id(note: &Note) -> String {
    Uuid::new_v5(&NAMESPACE, note.path.as_str().as_bytes()).to_string()
}

/// The page with an id. Computes the id of every path: lookups by id are rare, so there is no table.
pub(super) fn find_doc_id(snapshot: &Snapshot, id: &str) -> Option<NoteKey> {
    let wanted = Uuid::try_parse(id).ok()?;
    snapshot.files().find(|key| Uuid::new_v5(&NAMESPACE, snapshot.note(*key).path.as_str().as_bytes()) == wanted)
}

/// A page by path, read from its file now.
pub(super) fn read_page(call: &Call<'_>, filepath: &str) -> Result<ReadNote, ToolError> {
    call.read(filepath)?.ok_or_else(|| not_found(&call.knowledge.snapshot(), filepath))
}

/// The error for a missing page, with similar names.
pub(super) fn not_found(snapshot: &Snapshot, given: &str) -> ToolError {
    let message = crate::not_found::not_found(snapshot, "no page has the path", given, |note| note.path.as_str());
    ToolError::new(ToolErrorKind::NotFound, message)
}

/// The staleness of some pages. What prevented the check is a warning to each client, once.
pub(super) fn freshness(call: &Call<'_>, snapshot: &Snapshot, keys: &[NoteKey]) -> Vec<Freshness> {
    let (judged, warnings) = call.knowledge.freshness(snapshot, keys);
    for message in warnings {
        call.knowledge.warn(Warning { path: "source_refs".to_owned(), message });
    }
    judged
}

/// The values of a `doc_type` argument.
pub(super) fn doc_types() -> Value {
    DocType::ALL.map(DocType::name).as_slice().into()
}

/// The schema of an item of a `link_types` argument.
pub(super) fn link_type() -> Value {
    json!({"type": "string", "enum": LinkType::ALL.map(LinkType::name)})
}

/// A page at the other end of a link.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LinkedPage {
    pub(super) doc_id: String,
    pub(super) filepath: String,
    pub(super) title: String,
    pub(super) link_type: &'static str,
}

/// The pages at the other ends of links.
pub(super) fn linked(snapshot: &Snapshot, links: &[(NoteKey, LinkType)]) -> Vec<LinkedPage> {
    let page = |(key, link_type): &(NoteKey, LinkType)| {
        let note = snapshot.note(*key);
        LinkedPage {
            doc_id: doc_id(note),
            filepath: note.path.to_string(),
            title: cut_name(&note.title),
            link_type: link_type.name(),
        }
    };
    links.iter().map(page).collect()
}

/// One part of a page.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageSection {
    /// Null before the first heading.
    pub(super) heading: Option<String>,
    pub(super) content: String,
}

/// The sections of a page in order. A blank preamble is left out unless it is the only section.
pub(super) fn sections(read: &ReadNote) -> Vec<PageSection> {
    let sections = &read.note().sections;
    let parts = sections.iter().map(|section| PageSection {
        heading: section.heading.clone(),
        content: read.text[section.text_start..section.range.end].trim_matches(['\n', '\r']).to_owned(),
    });
    parts.filter(|part| part.heading.is_some() || sections.len() == 1 || !part.content.trim().is_empty()).collect()
}

/// The beginnings of pages.
pub(super) fn summaries(call: &Call<'_>, snapshot: &Snapshot, keys: &[NoteKey]) -> Vec<String> {
    let bodies = call.knowledge.bodies(snapshot, keys);
    bodies.into_iter().map(|body| truncate(body.unwrap_or_default().trim(), LISTED)).collect()
}
