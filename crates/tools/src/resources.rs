//! Notes as MCP resources: list, read and complete ids.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use quipu_core::Session;
use quipu_core::model::NoteId;
use serde::{Deserialize, Serialize};

use crate::registry::Registry;
use crate::tool_error::ToolError;
use crate::truncate::{cut_name, echoed};

/// The URI before a note's id.
const PREFIX: &str = "quipu://note/";

/// Marks a cursor, so that other text is not accepted as one.
const CURSOR: &str = "after:";

/// The characters to escape in the path of a URI (RFC 3986); slashes stay.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// One note in a list of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// `quipu://note/` and the id, percent-encoded.
    pub uri: String,
    pub name: String,
    /// The note's title.
    pub title: String,
    /// Bytes of the file.
    pub size: u64,
}

/// A page of the list of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourcePage {
    /// In order of id.
    pub resources: Vec<Resource>,
    /// Requests the next page; `None` on the last one.
    pub next_cursor: Option<String>,
    /// Why this may be out of date: the server lacks the latest changes by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<String>,
}

/// A note's whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceText {
    /// As in the list.
    pub uri: String,
    /// Frontmatter included.
    pub text: String,
    /// Why this may be out of date: the server lacks the latest changes by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<String>,
}

/// Ids that start with a typed prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The first few, by id.
    pub values: Vec<String>,
    /// The number of all matches.
    pub total: usize,
    /// Why this may be out of date: the server lacks the latest changes by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<String>,
}

impl Registry {
    /// The URI template of resources (RFC 6570).
    pub const RESOURCE_TEMPLATE: &'static str = "quipu://note/{+id}";
    /// The MIME type of every resource.
    pub const RESOURCE_MIME_TYPE: &'static str = "text/markdown";

    /// The notes after a cursor, or from the first. A cursor contains the last id of a page, so that notes created or deleted
    /// meanwhile neither repeat nor hide others. Other text as a cursor is an error.
    pub fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, ToolError> {
        let after = cursor.map(|cursor| match cursor.strip_prefix(CURSOR) {
            Some(id) => Ok(id),
            None => Err(ToolError::invalid(format!("unknown cursor {}; start again without one", echoed(cursor)))),
        });
        let after = after.transpose()?;
        let snapshot = self.knowledge.snapshot();
        let mut notes = snapshot
            .files()
            .map(|key| snapshot.note(key))
            .skip_while(|note| after.as_ref().is_some_and(|after| note.id.as_str() <= *after))
            .peekable();
        let mut resources = Vec::new();
        while resources.len() < page_size.max(1)
            && let Some(note) = notes.next()
        {
            resources.push(Resource {
                uri: uri_of(&note.id),
                name: note.id.to_string(),
                title: cut_name(&note.title),
                size: note.stat.size,
            });
        }
        let more = notes.peek().is_some();
        let next_cursor = resources.last().filter(|_| more).map(|resource| format!("{CURSOR}{}", resource.name));
        Ok(ResourcePage { resources, next_cursor, lag: None })
    }

    /// A note's file as it is now; `None` if the URI names no note.
    pub fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError> {
        let Some(id) = id_of(uri) else { return Ok(None) };
        let Some(read) = self.knowledge.read(session, &id)? else { return Ok(None) };
        self.knowledge.show_whole(session, &read);
        Ok(Some(ResourceText { uri: uri_of(&read.note().id), text: read.text, lag: None }))
    }

    /// The id in a URI, whether or not the note exists; `None` if the URI is not one of a note.
    pub fn note_of_resource(uri: &str) -> Option<NoteId> {
        id_of(uri).filter(|id| !id.is_empty()).map(|id| NoteId::new(&id))
    }

    /// The ids that start with this prefix.
    pub fn complete_note_id(&self, typed: &str, limit: usize) -> Completion {
        let snapshot = self.knowledge.snapshot();
        let found = snapshot.with_id_prefix(&NoteId::new(typed));
        let mut values: Vec<String> = found.into_iter().map(|key| snapshot.note(key).id.to_string()).collect();
        let total = values.len();
        values.truncate(limit);
        Completion { values, total, lag: None }
    }
}

fn uri_of(id: &NoteId) -> String {
    format!("{PREFIX}{}", utf8_percent_encode(id.as_str(), ESCAPED))
}

fn id_of(uri: &str) -> Option<String> {
    let path = uri.strip_prefix(PREFIX)?;
    percent_decode_str(path).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn resources_are_listed_in_pages() {
        let harness = Harness::new("//- b c.md\n---\ntitle: Bee\n---\n//- A/ü?.md\n//- z.md\nzz\n");
        let first = harness.registry.resources(None, 2).unwrap();
        let uris = |page: &ResourcePage| page.resources.iter().map(|one| one.uri.clone()).collect::<Vec<_>>();
        assert_eq!(uris(&first), ["quipu://note/a/%C3%BC%3F.md", "quipu://note/b%20c.md"]);
        assert_eq!((first.resources[1].name.as_str(), first.resources[1].title.as_str()), ("b c.md", "Bee"));

        // Notes created or deleted between two pages neither repeat nor hide others.
        harness.vault.remove("b c.md");
        harness.vault.put("aa.md", "");
        harness.knowledge.apply(&quipu_core::index::FileBatch::All, &|_| {}).unwrap();
        let second = harness.registry.resources(first.next_cursor.as_deref(), 2).unwrap();
        assert_eq!((uris(&second), second.next_cursor), (vec!["quipu://note/z.md".to_owned()], None));
        assert_eq!(
            harness.registry.resources(None, 0).unwrap().resources.len(),
            1,
            "a page of nothing would never end"
        );
        for cursor in ["", "a.md", "nonsense"] {
            let error = harness.registry.resources(Some(cursor), 2).unwrap_err();
            assert_eq!(error.message, format!("unknown cursor {cursor}; start again without one"));
        }
    }

    #[test]
    fn a_resource_is_the_whole_file() {
        let harness = Harness::new("//- Notes/B c.md\n---\ntitle: Bee\n---\nText.\n");
        let read = |uri: &str| harness.registry.read_resource(&harness.session, uri).unwrap();
        let text = read("quipu://note/notes/b%20c.md").unwrap();
        assert_eq!(text.uri, "quipu://note/notes/b%20c.md");
        assert_eq!(text.text, "---\ntitle: Bee\n---\nText.\n");
        for uri in
            ["quipu://note/missing.md", "quipu://note/../etc/passwd", "quipu://note/%ff.md", "file:///etc/passwd", ""]
        {
            assert_eq!(read(uri), None, "{uri}");
        }
    }

    #[test]
    fn files_that_differ_only_in_case_are_distinct_resources() {
        let harness = Harness::new("//- Moloch.md\nupper\n//- a.md\n//- moloch.md\nlower\n");
        let first = harness.registry.resources(None, 1).unwrap();
        let rest = harness.registry.resources(first.next_cursor.as_deref(), 9).unwrap();
        let listed = first.resources.iter().chain(&rest.resources);
        let uris: Vec<&str> = listed.map(|resource| resource.uri.as_str()).collect();
        assert_eq!(uris, ["quipu://note/Moloch.md", "quipu://note/a.md", "quipu://note/moloch.md"]);
        for (uri, text) in [(uris[0], "upper\n"), (uris[2], "lower\n")] {
            let read = harness.registry.read_resource(&harness.session, uri).unwrap().unwrap();
            assert_eq!((read.uri.as_str(), read.text.as_str()), (uri, text));
        }
        assert_eq!(harness.registry.complete_note_id("mol", 9).values, ["Moloch.md", "moloch.md"]);
    }

    #[test]
    fn reading_a_resource_counts_as_reading_the_note() {
        let harness = Harness::new("//- a.md\nold\n");
        harness.registry.read_resource(&harness.session, "quipu://note/a.md").unwrap();
        harness.vault.put("a.md", "edited elsewhere");
        let (code, _) = harness.fails("update_node", serde_json::json!({"id": "a.md", "content": "mine"}));
        assert_eq!(code, "PROVIDER_ERROR");
    }

    #[test]
    fn ids_are_completed() {
        let harness = Harness::new("//- notes/a.md\n//- Notes/b.md\n//- other.md\n");
        let completion = harness.registry.complete_note_id("NOTES/", 1);
        assert_eq!(completion, Completion { values: vec!["notes/a.md".into()], total: 2, lag: None });
        assert_eq!(harness.registry.complete_note_id("x", 100).total, 0);
    }
}
