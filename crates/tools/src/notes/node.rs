//! A note as most tools of this toolset return it.

use std::collections::HashSet;
use std::ops::Range;

use quipu_core::index::{ResolvedLink, Snapshot};
use quipu_core::model::{LinkSyntax, Note, NoteKey, Value};
use quipu_core::notes::PlannedNote;
use quipu_core::parse::link_sites;
use quipu_core::{ReadNote, quoted};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Number};

use crate::answer_size::{LIST_ROOM, fitting, json_chars};
use crate::parts::{Heading, PartParams, Truncated};
use crate::tags::{MAX_LISTED_TAGS, MAX_TAGS, limit_tags, tags};
use crate::tool::Call;
use crate::tool_error::ToolError;
use crate::truncate::{cut_name, truncate};

/// Links listed for one note read by id.
const MAX_LINKS: usize = 100;

/// Links listed for each note of a list; fewer where the answer would be too long.
pub(super) const MAX_LISTED_LINKS: [usize; 5] = [20, 10, 5, 2, 0];

/// Characters of the links of one note read by id.
const MAX_LINK_CHARS: usize = 12_000;

/// Characters of the properties of one note read by id, and of each note of a list.
const MAX_PROPERTIES: usize = 8_000;
const MAX_LISTED_PROPERTIES: usize = 500;

/// Characters of the properties, and of the tags, of each note of a list that would be too long without links.
const MAX_SHORT: usize = 100;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Node {
    id: String,
    title: String,
    /// Changes with every change of the file; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The text without frontmatter, possibly cut; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    tags: Vec<String>,
    /// Present when not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags_total: Option<usize>,
    links: Vec<LinkInfo>,
    /// Present when not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    links_total: Option<usize>,
    /// The frontmatter without title and tags.
    properties: Map<String, serde_json::Value>,
    /// Present when content is a part of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncated>,
}

#[derive(Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
struct LinkInfo {
    /// The node's id; the target as written when it does not resolve.
    id: String,
    title: String,
}

impl Node {
    /// One note read by id.
    pub(super) fn single(call: &Call<'_>, read: &ReadNote) -> Result<Self, ToolError> {
        Ok(Self::in_part(call, read, &PartParams::default())?.0)
    }

    /// One note read by id, with the requested part of its text, and its outline on request.
    pub(super) fn in_part(
        call: &Call<'_>,
        read: &ReadNote,
        params: &PartParams,
    ) -> Result<(Self, Option<Vec<Heading>>), ToolError> {
        let part = params.read(call, read)?;
        let mut node = Self::new(&read.snapshot, read.key, part.content);
        node.truncated = part.truncated;
        node.version = Some(read.hash.to_string());
        if !params.is_whole() {
            node.keep_links_within(read, &part.covers);
        }
        node.limit_links(MAX_LINKS.min(fitting(&node.links, MAX_LINK_CHARS)));
        let id = quoted(&node.id);
        if let Some(total) = node.links_total.filter(|_| params.is_whole()) {
            call.warn(format!("{id}: {} of its {total} links are listed", node.links.len()));
        }
        limit_tags(&mut node.tags, &mut node.tags_total, MAX_TAGS);
        if let Some(total) = node.tags_total {
            call.warn(format!("{id}: {} of its {total} tags are listed", node.tags.len()));
        }
        if node.limit_properties(MAX_PROPERTIES) {
            call.warn(format!("{id}: not all of its properties are shown; together they are too long"));
        }
        Ok((node, part.outline))
    }

    /// Notes of a list, with the beginning of their text when a length is given.
    pub(super) fn list(
        call: &Call<'_>,
        snapshot: &Snapshot,
        keys: &[NoteKey],
        content_chars: Option<usize>,
    ) -> Vec<Self> {
        Self::list_within(call, snapshot, keys, content_chars, LIST_ROOM)
    }

    /// Like [`Self::list`], within a number of characters: links are cut first.
    pub(super) fn list_within(
        call: &Call<'_>,
        snapshot: &Snapshot,
        keys: &[NoteKey],
        content_chars: Option<usize>,
        room: usize,
    ) -> Vec<Self> {
        let bodies = match content_chars {
            Some(_) => call.knowledge.bodies(snapshot, keys),
            None => vec![None; keys.len()],
        };
        let content = |body: Option<String>| Some(truncate(&body?, content_chars?));
        let nodes = keys.iter().zip(bodies).map(|(key, body)| Self::new(snapshot, *key, content(body)));
        let mut nodes: Vec<Self> = nodes.collect();
        let all: Vec<usize> = nodes.iter().map(|node| node.properties.len()).collect();
        nodes.iter_mut().for_each(|node| node.limit_names(MAX_LISTED_TAGS, MAX_LISTED_PROPERTIES));
        for max_links in MAX_LISTED_LINKS {
            nodes.iter_mut().for_each(|node| node.limit_links(max_links));
            if json_chars(&nodes) <= room {
                break;
            }
        }
        if json_chars(&nodes) > room {
            nodes.iter_mut().for_each(|node| node.limit_names(MAX_SHORT, MAX_SHORT));
        }
        let cut = nodes.iter().zip(all).filter(|(node, all)| node.properties.len() < *all).count();
        if cut > 0 {
            call.warn(format!("{cut} of these notes have more properties than this list shows; read the note by id"));
        }
        nodes
    }

    fn new(snapshot: &Snapshot, key: NoteKey, content: Option<String>) -> Self {
        Self { content, ..Self::of(snapshot.note(key), links(snapshot, snapshot.links(key))) }
    }

    /// A note that is not written, without its text, which the client has.
    pub(super) fn planned(planned: &PlannedNote) -> Self {
        let PlannedNote { note, targets, snapshot, .. } = planned;
        let resolved = note.links.iter().zip(targets).map(|(link, target)| ResolvedLink { link, target: *target });
        let mut node = Self::of(note, links(snapshot, resolved));
        node.limit_links(MAX_LINKS.min(fitting(&node.links, MAX_LINK_CHARS)));
        node.limit_names(MAX_TAGS, MAX_PROPERTIES);
        node
    }

    fn of(note: &Note, links: Vec<LinkInfo>) -> Self {
        Self {
            id: note.id.to_string(),
            title: cut_name(&note.title),
            version: None,
            content: None,
            tags: tags(note),
            tags_total: None,
            links,
            links_total: None,
            properties: note.properties.iter().map(|(name, value)| (name.clone(), json(value))).collect(),
            truncated: None,
        }
    }

    /// Keeps the links of a part of the text.
    fn keep_links_within(&mut self, read: &ReadNote, part: &Range<usize>) {
        let sites = link_sites(&read.text).into_iter().filter(|site| part.contains(&site.range.start));
        let in_part: HashSet<(String, LinkSyntax)> = sites.map(|site| (site.link.target, site.link.syntax)).collect();
        let count = self.links.len();
        let resolved = read.snapshot.links(read.key);
        let resolved = resolved.filter(|it| in_part.contains(&(it.link.target.clone(), it.link.syntax)));
        self.links = links(&read.snapshot, resolved);
        self.links_total = (self.links.len() < count).then_some(count);
    }

    pub(super) fn limit_links(&mut self, max: usize) {
        if self.links.len() > max {
            self.links_total.get_or_insert(self.links.len());
            self.links.truncate(max);
        }
    }

    /// Characters of the links as JSON.
    pub(super) fn link_chars(&self) -> usize {
        json_chars(&self.links)
    }

    /// Removes the tags and the properties that do not fit.
    fn limit_names(&mut self, max_tags: usize, max_properties: usize) {
        limit_tags(&mut self.tags, &mut self.tags_total, max_tags);
        self.limit_properties(max_properties);
    }

    /// Removes the properties that do not fit, and returns whether there were any.
    fn limit_properties(&mut self, max_chars: usize) -> bool {
        let count = self.properties.len();
        let mut left = max_chars;
        self.properties.retain(|name, value| {
            let size = name.chars().count() + json_chars(value);
            let fits = size <= left;
            left -= if fits { size } else { 0 };
            fits
        });
        self.properties.len() < count
    }
}

/// A note's links in order of appearance, each target once.
fn links<'l>(snapshot: &Snapshot, resolved: impl Iterator<Item = ResolvedLink<'l>>) -> Vec<LinkInfo> {
    let mut seen = HashSet::new();
    let infos = resolved.map(|resolved| match resolved.target {
        Some(target) => {
            let target = snapshot.note(target);
            LinkInfo { id: target.id.to_string(), title: cut_name(&target.title) }
        }
        None => LinkInfo { id: cut_name(&resolved.link.target), title: cut_name(&resolved.link.target) },
    });
    infos.filter(|info| seen.insert(info.id.clone())).collect()
}

pub(crate) fn json(value: &Value) -> serde_json::Value {
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
