//! A note in the words of this toolset: the shape that most of its tools answer with.

use std::collections::HashSet;

use quipu_core::ReadNote;
use quipu_core::index::Snapshot;
use quipu_core::model::{Note, NoteKey, Value};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Number};

use crate::tool::Call;
use crate::truncate::{ONE_NOTE, truncate};

/// More links of one note than this are not listed.
const MAX_LINKS: usize = 100;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Node {
    id: String,
    title: String,
    /// The text without frontmatter, possibly cut; absent where it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    tags: Vec<String>,
    links: Vec<LinkInfo>,
    /// The frontmatter but title and tags.
    properties: Map<String, serde_json::Value>,
}

#[derive(Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
struct LinkInfo {
    /// The node's id; the target as written when no node answers to it.
    id: String,
    title: String,
}

impl Node {
    /// One note asked for by name.
    pub(super) fn single(call: &Call<'_>, read: &ReadNote) -> Self {
        let content = truncate(read.body(), ONE_NOTE);
        if content == read.body() {
            call.knowledge.show_whole(call.session, read);
        }
        let (node, link_count) = Self::new(&read.snapshot, read.key, Some(content));
        if link_count > MAX_LINKS {
            call.warn(format!("{}: {MAX_LINKS} of its {link_count} links are listed", node.id));
        }
        node
    }

    /// Notes among others, with the beginning of their text when a length is given.
    pub(super) fn list(
        call: &Call<'_>,
        snapshot: &Snapshot,
        keys: &[NoteKey],
        content_chars: Option<usize>,
    ) -> Vec<Self> {
        let Some(max_chars) = content_chars else {
            return keys.iter().map(|key| Self::new(snapshot, *key, None).0).collect();
        };
        let bodies = call.knowledge.bodies(snapshot, keys);
        let cut = bodies.into_iter().map(|body| body.map(|body| truncate(&body, max_chars)));
        keys.iter().zip(cut).map(|(key, content)| Self::new(snapshot, *key, content).0).collect()
    }

    /// The node, and how many distinct links its note has.
    fn new(snapshot: &Snapshot, key: NoteKey, content: Option<String>) -> (Self, usize) {
        let note = snapshot.note(key);
        let mut links = links(snapshot, key);
        let link_count = links.len();
        links.truncate(MAX_LINKS);
        let node = Self {
            id: note.id.to_string(),
            title: note.title.clone(),
            content,
            tags: tags(note),
            links,
            properties: note.properties.iter().map(|(name, value)| (name.clone(), json(value))).collect(),
        };
        (node, link_count)
    }
}

pub(crate) fn tags(note: &Note) -> Vec<String> {
    note.tags.iter().map(|tag| tag.name.clone()).collect()
}

/// A note's links in order of appearance, each target once.
fn links(snapshot: &Snapshot, key: NoteKey) -> Vec<LinkInfo> {
    let mut seen = HashSet::new();
    let infos = snapshot.links(key).map(|resolved| match resolved.target {
        Some(target) => {
            let target = snapshot.note(target);
            LinkInfo { id: target.id.to_string(), title: target.title.clone() }
        }
        None => LinkInfo { id: resolved.link.target.clone(), title: resolved.link.target.clone() },
    });
    infos.filter(|info| seen.insert(info.id.clone())).collect()
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Int(number) => (*number).into(),
        Value::Float(number) => Number::from_f64(*number).map_or(serde_json::Value::Null, Into::into),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            serde_json::Value::Object(entries.iter().map(|(name, value)| (name.clone(), json(value))).collect())
        }
    }
}
