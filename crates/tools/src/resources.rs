//! Notes as resources: a client can browse them, read one as its file stands, and have an id completed while typing.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use quipu_core::Session;
use quipu_core::model::NoteId;
use serde::{Deserialize, Serialize};

use crate::registry::Registry;
use crate::tool_error::ToolError;
use crate::truncate::echoed;

/// What comes before a note's id.
const PREFIX: &str = "quipu://note/";

/// What comes before the id in a cursor, so that other text is not taken for one.
const CURSOR: &str = "after:";

/// What a path may hold unescaped in a URI (RFC 3986), slashes included.
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
    /// The id.
    pub name: String,
    /// The note's title.
    pub title: String,
    /// Bytes of the file.
    pub size: u64,
}

/// Part of the list of resources, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourcePage {
    /// In order of id.
    pub resources: Vec<Resource>,
    /// Gives the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

/// A note's whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceText {
    /// As in the list.
    pub uri: String,
    /// Frontmatter included.
    pub text: String,
}

/// What an id may become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The first few, by id.
    pub values: Vec<String>,
    /// How many there are in all.
    pub total: usize,
}

impl Registry {
    /// How resources are addressed, as a URI template (RFC 6570).
    pub const RESOURCE_TEMPLATE: &'static str = "quipu://note/{+id}";
    /// What every resource is.
    pub const RESOURCE_MIME_TYPE: &'static str = "text/markdown";

    /// The notes behind a cursor, or from the first. A cursor holds the last id of a page: notes that come and go meanwhile
    /// neither repeat nor hide others. One that no page ever gave is a error.
    pub fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, ToolError> {
        let after = cursor.map(|cursor| match cursor.strip_prefix(CURSOR) {
            Some(id) => Ok(id),
            None => Err(ToolError::invalid(format!("no page of resources gave the cursor {}", echoed(cursor)))),
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
                title: note.title.clone(),
                size: note.stat.size,
            });
        }
        let more = notes.peek().is_some();
        let next_cursor = resources.last().filter(|_| more).map(|resource| format!("{CURSOR}{}", resource.name));
        Ok(ResourcePage { resources, next_cursor })
    }

    /// A note's file as it is now; `None` when the address means no note.
    pub fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError> {
        let Some(id) = id_of(uri) else { return Ok(None) };
        let Some(read) = self.knowledge.read(session, &id)? else { return Ok(None) };
        self.knowledge.show_whole(session, &read);
        Ok(Some(ResourceText { uri: uri_of(&read.note().id), text: read.text }))
    }

    /// The id that an address means, whether there is such a note or not; `None` when it is no address of a note.
    pub fn note_of_resource(uri: &str) -> Option<NoteId> {
        id_of(uri).filter(|id| !id.is_empty()).map(|id| NoteId::new(&id))
    }

    /// The ids that start with what was typed so far.
    pub fn complete_note_id(&self, typed: &str, limit: usize) -> Completion {
        let snapshot = self.knowledge.snapshot();
        let found = snapshot.with_id_prefix(&NoteId::new(typed));
        let mut values: Vec<String> = found.into_iter().map(|key| snapshot.note(key).id.to_string()).collect();
        let total = values.len();
        values.truncate(limit);
        Completion { values, total }
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
    use crate::testing::Desk;

    #[test]
    fn notes_are_listed_page_by_page() {
        let desk = Desk::new("//- b c.md\n---\ntitle: Bee\n---\n//- A/ü?.md\n//- z.md\nzz\n");
        let first = desk.registry.resources(None, 2).unwrap();
        let uris = |page: &ResourcePage| page.resources.iter().map(|one| one.uri.clone()).collect::<Vec<_>>();
        assert_eq!(uris(&first), ["quipu://note/a/%C3%BC%3F.md", "quipu://note/b%20c.md"]);
        assert_eq!((first.resources[1].name.as_str(), first.resources[1].title.as_str()), ("b c.md", "Bee"));

        // What comes and goes between two pages neither repeats nor hides anything.
        desk.vault.remove("b c.md");
        desk.vault.put("aa.md", "");
        desk.knowledge.sync(&quipu_core::index::Scope::Everything, &|_| {}).unwrap();
        let second = desk.registry.resources(first.next_cursor.as_deref(), 2).unwrap();
        assert_eq!((uris(&second), second.next_cursor), (vec!["quipu://note/z.md".to_owned()], None));
        assert_eq!(desk.registry.resources(None, 0).unwrap().resources.len(), 1, "a page of nothing would never end");
        for cursor in ["", "a.md", "nonsense"] {
            let error = desk.registry.resources(Some(cursor), 2).unwrap_err();
            assert_eq!(error.message, format!("no page of resources gave the cursor {cursor}"));
        }
    }

    #[test]
    fn a_resource_is_the_whole_file() {
        let desk = Desk::new("//- Notes/B c.md\n---\ntitle: Bee\n---\nText.\n");
        let read = |uri: &str| desk.registry.read_resource(&desk.session, uri).unwrap();
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
    fn files_that_differ_only_in_case_are_resources_of_their_own() {
        let desk = Desk::new("//- Moloch.md\nupper\n//- a.md\n//- moloch.md\nlower\n");
        let first = desk.registry.resources(None, 1).unwrap();
        let rest = desk.registry.resources(first.next_cursor.as_deref(), 9).unwrap();
        let listed = first.resources.iter().chain(&rest.resources);
        let uris: Vec<&str> = listed.map(|resource| resource.uri.as_str()).collect();
        assert_eq!(uris, ["quipu://note/Moloch.md", "quipu://note/a.md", "quipu://note/moloch.md"]);
        for (uri, text) in [(uris[0], "upper\n"), (uris[2], "lower\n")] {
            let read = desk.registry.read_resource(&desk.session, uri).unwrap().unwrap();
            assert_eq!((read.uri.as_str(), read.text.as_str()), (uri, text));
        }
        assert_eq!(desk.registry.complete_note_id("mol", 9).values, ["Moloch.md", "moloch.md"]);
    }

    #[test]
    fn reading_a_resource_counts_as_reading_the_note() {
        let desk = Desk::new("//- a.md\nold\n");
        desk.registry.read_resource(&desk.session, "quipu://note/a.md").unwrap();
        desk.vault.put("a.md", "edited elsewhere");
        let (code, _) = desk.fails("update_node", serde_json::json!({"id": "a.md", "content": "mine"}));
        assert_eq!(code, "PROVIDER_ERROR");
    }

    #[test]
    fn an_id_is_completed() {
        let desk = Desk::new("//- notes/a.md\n//- Notes/b.md\n//- other.md\n");
        let completion = desk.registry.complete_note_id("NOTES/", 1);
        assert_eq!(completion, Completion { values: vec!["notes/a.md".into()], total: 2 });
        assert_eq!(desk.registry.complete_note_id("x", 100).total, 0);
    }
}
