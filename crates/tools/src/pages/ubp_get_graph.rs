//! `ubp_get_graph`: pages and the typed links between them, around a page or for the whole vault.

use std::cmp::Reverse;
use std::collections::HashMap;

use quipu_core::index::{RelatedNote, Snapshot};
use quipu_core::model::{DocType, LinkType, NoteKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{doc_id, find_doc_id, not_found};
use crate::answer_size::{LIST_ROOM, json_chars};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::cut_name;

/// Characters of the longest edge as JSON.
const EDGE_CHARS: usize = 125;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path or doc_id of a page: only pages around it.
    #[serde(default)]
    center: Option<String>,
    /// Maximum distance from the center, in links.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1, max = 5))]
    depth: usize,
    /// Maximum nodes; by default what fits.
    #[schemars(range(min = 1, max = 100_000))]
    max_nodes: Option<usize>,
}

fn default_depth() -> usize {
    2
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Nearest and most linked first.
    nodes: Vec<GraphNode>,
    /// Between these nodes only.
    edges: Vec<Edge>,
    /// Including those that are not shown.
    total_nodes: usize,
    total_edges: usize,
}

#[derive(Serialize, JsonSchema)]
struct GraphNode {
    id: String,
    filepath: String,
    title: String,
    doc_type: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Edge {
    source: String,
    target: String,
    #[serde(rename = "type")]
    link_type: &'static str,
}

pub(crate) struct GetGraph;

impl Tool for GetGraph {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_get_graph";
    const DESCRIPTION: &'static str = "Get pages as nodes and typed links as edges, around a center or for the whole \
        vault. Use it to see what depends on what; for texts use ubp_get_context.";
    const ACCESS: Access = Access::Read;
    const HAS_VIEW: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let keys = match &params.center {
            Some(center) => {
                let found = call.find(&snapshot, center).or_else(|| find_doc_id(&snapshot, center));
                let middle = found.ok_or_else(|| not_found(&snapshot, center))?;
                let levels = snapshot.related(middle, params.depth).into_iter();
                let level = |level: Vec<RelatedNote>| most_linked(&snapshot, level.iter().map(|related| related.key));
                std::iter::once(middle).chain(levels.flat_map(level)).collect()
            }
            None => most_linked(&snapshot, snapshot.files()),
        };
        let graph = Graph::new(&snapshot, &keys);
        let shown = params.max_nodes.unwrap_or_else(|| graph.fitting(LIST_ROOM)).min(keys.len());
        if shown < keys.len() {
            let total = keys.len();
            call.warn(format!(
                "{shown} of {total} pages are shown, nearest and most linked first; pass `max_nodes` for more"
            ));
        }
        Ok(graph.first(shown))
    }
}

/// Pages by number of links, most first, then by path.
fn most_linked(snapshot: &Snapshot, keys: impl Iterator<Item = NoteKey>) -> Vec<NoteKey> {
    let mut keys: Vec<NoteKey> = keys.collect();
    let graph = snapshot.graph();
    let links = |key: NoteKey| graph.out(key).len() + graph.incoming(key).len();
    keys.sort_unstable_by_key(|key| (Reverse(links(*key)), &snapshot.note(*key).path));
    keys
}

/// Pages, and the links between them as indices into the pages.
struct Graph<'s> {
    snapshot: &'s Snapshot,
    keys: &'s [NoteKey],
    edges: Vec<(usize, usize, LinkType)>,
}

impl<'s> Graph<'s> {
    fn new(snapshot: &'s Snapshot, keys: &'s [NoteKey]) -> Self {
        let places: HashMap<NoteKey, usize> = keys.iter().enumerate().map(|(place, key)| (*key, place)).collect();
        let from = |(place, key): (usize, &NoteKey)| {
            let links = snapshot.typed_links(*key).into_iter();
            let edges = links.filter_map(|(target, link_type)| Some((place, *places.get(&target)?, link_type)));
            edges.collect::<Vec<_>>()
        };
        Self { snapshot, keys, edges: keys.iter().enumerate().flat_map(from).collect() }
    }

    /// The number of leading pages that fit with the links between them; at least one.
    fn fitting(&self, room: usize) -> usize {
        // An edge belongs to the answer once both of its pages do.
        let mut edge_counts = vec![0; self.keys.len()];
        for (source, target, _) in &self.edges {
            edge_counts[*source.max(target)] += 1;
        }
        let mut left = room;
        let fits = |(key, edges): &(&NoteKey, usize)| {
            let size = json_chars(&self.node(**key)) + 1 + edges * EDGE_CHARS;
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        self.keys.iter().zip(edge_counts).take_while(fits).count().max(1)
    }

    /// The first pages, and the links between them.
    fn first(&self, count: usize) -> Output {
        let nodes: Vec<GraphNode> = self.keys[..count].iter().map(|key| self.node(*key)).collect();
        let edge = |(source, target, link_type): &(usize, usize, LinkType)| {
            let (source, target) = (nodes.get(*source)?.id.clone(), nodes.get(*target)?.id.clone());
            Some(Edge { source, target, link_type: link_type.name() })
        };
        let edges = self.edges.iter().filter_map(edge).collect();
        Output { nodes, edges, total_nodes: self.keys.len(), total_edges: self.edges.len() }
    }

    fn node(&self, key: NoteKey) -> GraphNode {
        let note = self.snapshot.note(key);
        let (filepath, title) = (note.path.to_string(), cut_name(&note.title));
        GraphNode { id: doc_id(note), filepath, title, doc_type: DocType::of(note).name() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Harness;

    const CHAIN: &str =
        "//- a.md\n[[b|depends_on]]\n//- b.md\n[[c]]\n//- c.md\n[[d|implements]]\n//- d.md\n//- alone.md\n";

    /// Each edge as `source type target`, by path.
    fn edges(answer: &Value) -> Vec<String> {
        let path = |id: &Value| {
            let nodes = answer["nodes"].as_array().unwrap();
            nodes.iter().find(|node| node["id"] == *id).unwrap()["filepath"].as_str().unwrap().to_owned()
        };
        let edges = answer["edges"].as_array().unwrap().iter();
        edges
            .map(|edge| {
                format!("{} {} {}", path(&edge["source"]), edge["type"].as_str().unwrap(), path(&edge["target"]))
            })
            .collect()
    }

    #[test]
    fn the_whole_graph() {
        let answer = Harness::new(CHAIN).call("ubp_get_graph", json!({}));
        assert_eq!(answer["nodes"].as_array().unwrap().len(), 5);
        assert_eq!(edges(&answer), ["b.md references c.md", "c.md implements d.md", "a.md depends_on b.md"]);
        let id = answer["nodes"][0]["id"].clone();
        assert_eq!(answer["nodes"][0], json!({"id": id, "filepath": "b.md", "title": "B", "doc_type": "other"}));
    }

    #[test]
    fn around_a_page_in_both_directions() {
        let harness = Harness::new(CHAIN);
        let around = |arguments: Value| edges(&harness.call("ubp_get_graph", arguments));
        assert_eq!(around(json!({"center": "c.md", "depth": 1})), ["c.md implements d.md", "b.md references c.md"]);
        assert_eq!(around(json!({"center": "d.md"})), ["c.md implements d.md", "b.md references c.md"]);
        let id = harness.call("ubp_get_page", json!({"filepath": "d.md"}))["doc_id"].clone();
        assert_eq!(around(json!({"center": id, "depth": "3"})).len(), 3);
        assert_eq!(around(json!({"center": "alone.md"})), [""; 0]);
        let missing = harness.call("ubp_get_graph", json!({"center": "x.md"}));
        assert_eq!(missing["protocol"]["code"], -32602, "{missing}");
        assert_eq!(harness.call("ubp_get_graph", json!({"depth": 6}))["protocol"]["code"], -32602);
    }

    #[test]
    fn max_nodes_keeps_the_most_linked_pages() {
        let called = Harness::new(CHAIN).called("ubp_get_graph", json!({"max_nodes": 2}));
        let warning = "2 of 5 pages are shown, nearest and most linked first; pass `max_nodes` for more";
        assert_eq!(called.warnings, [warning]);
        let crate::Reply::Answer(answer) = called.reply else { panic!("it answers") };
        assert_eq!(edges(&answer), ["b.md references c.md"]);
        assert_eq!((&answer["total_nodes"], &answer["total_edges"]), (&json!(5), &json!(3)));
    }

    #[test]
    fn a_dense_graph_is_cut_where_the_answer_would_be_too_long() {
        let links: String = (0..60).map(|n| format!("[[n{n}]] ")).collect();
        let vault: String = (0..60).map(|n| format!("//- n{n}.md\n{links}\n")).collect();
        let answer = Harness::new(&vault).call("ubp_get_graph", json!({"center": "n7.md"}));
        let count = |name: &str| answer[name].as_array().unwrap().len();
        assert!(answer.to_string().chars().count() <= 40_000);
        assert!((10..30).contains(&count("nodes")), "{}", count("nodes"));
        assert_eq!(count("edges"), count("nodes") * (count("nodes") - 1), "all edges between the nodes given");
        assert_eq!(answer["nodes"][0]["filepath"], "n7.md");
        assert_eq!((&answer["total_nodes"], &answer["total_edges"]), (&json!(60), &json!(60 * 59)));
    }
}
