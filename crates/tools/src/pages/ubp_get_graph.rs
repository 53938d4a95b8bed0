//! Pages and the typed links between them: all of them, or those around one.

use std::collections::HashSet;

use quipu_core::index::Snapshot;
use quipu_core::model::NoteKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{DocType, LinkType, doc_id, find_doc_id, not_found};
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Only the pages around this one: its path or doc_id.
    #[serde(default)]
    center: Option<String>,
    /// How many links away from the center, in either direction.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1, max = 5))]
    depth: usize,
    /// At most this many nodes: the nearest, or without a center the most linked.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100_000))]
    limit: usize,
}

fn default_depth() -> usize {
    2
}

fn default_limit() -> usize {
    10_000
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// By path.
    nodes: Vec<GraphNode>,
    /// Between these nodes only.
    edges: Vec<Edge>,
}

#[derive(Serialize, JsonSchema)]
struct GraphNode {
    id: String,
    filepath: String,
    title: String,
    doc_type: DocType,
}

#[derive(Serialize, JsonSchema)]
struct Edge {
    source: String,
    target: String,
    #[serde(rename = "type")]
    link_type: LinkType,
}

pub(crate) struct GetGraph;

impl Tool for GetGraph {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_get_graph";
    const DESCRIPTION: &'static str = "Get pages as nodes and their typed links as edges, around a center or for the \
        whole vault. Use it to check what depends on what; without a center the answer can be large. For texts call \
        ubp_get_context.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, Fault> {
        let snapshot = call.knowledge.snapshot();
        let mut keys = match &params.center {
            Some(center) => {
                let found = snapshot.find_file(center).or_else(|| find_doc_id(&snapshot, center));
                let middle = found.ok_or_else(|| not_found(center))?;
                let around = snapshot.around(middle, params.depth).into_iter().flatten().map(|related| related.key);
                std::iter::once(middle).chain(around).collect()
            }
            None => most_linked_first(&snapshot, params.limit),
        };
        if keys.len() > params.limit {
            call.warn(format!("{} of {} pages are given; `limit` allows more", params.limit, keys.len()));
            keys.truncate(params.limit);
        }
        keys.sort_unstable_by_key(|key| &snapshot.note(*key).path);
        Ok(drawn(&snapshot, &keys))
    }
}

/// Every page; where they are more than wanted, those with most links come first.
fn most_linked_first(snapshot: &Snapshot, limit: usize) -> Vec<NoteKey> {
    let mut keys: Vec<NoteKey> = snapshot.files().collect();
    if keys.len() > limit {
        let graph = snapshot.graph();
        keys.sort_by_cached_key(|key| std::cmp::Reverse(graph.out(*key).len() + graph.incoming(*key).len()));
    }
    keys
}

fn drawn(snapshot: &Snapshot, keys: &[NoteKey]) -> Output {
    let ids: std::collections::HashMap<NoteKey, String> =
        keys.iter().map(|key| (*key, doc_id(snapshot.note(*key)))).collect();
    let node = |key: &NoteKey| {
        let note = snapshot.note(*key);
        let (filepath, title) = (note.path.to_string(), note.title.clone());
        GraphNode { id: ids[key].clone(), filepath, title, doc_type: DocType::of(note) }
    };
    let shown: HashSet<NoteKey> = keys.iter().copied().collect();
    let mut edges = Vec::new();
    for key in keys {
        for (target, link_type) in snapshot.typed_links(*key) {
            if shown.contains(&target) {
                edges.push(Edge {
                    source: ids[key].clone(),
                    target: ids[&target].clone(),
                    link_type: link_type.into(),
                });
            }
        }
    }
    Output { nodes: keys.iter().map(node).collect(), edges }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Desk;

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
        let answer = Desk::new(CHAIN).call("ubp_get_graph", json!({}));
        assert_eq!(answer["nodes"].as_array().unwrap().len(), 5);
        assert_eq!(edges(&answer), ["a.md depends_on b.md", "b.md references c.md", "c.md implements d.md"]);
        let id = answer["nodes"][0]["id"].clone();
        assert_eq!(answer["nodes"][0], json!({"id": id, "filepath": "a.md", "title": "A", "doc_type": "other"}));
    }

    #[test]
    fn around_a_page_in_both_directions() {
        let desk = Desk::new(CHAIN);
        let around = |arguments: Value| edges(&desk.call("ubp_get_graph", arguments));
        assert_eq!(around(json!({"center": "c.md", "depth": 1})), ["b.md references c.md", "c.md implements d.md"]);
        assert_eq!(around(json!({"center": "d.md"})), ["b.md references c.md", "c.md implements d.md"]);
        let id = desk.call("ubp_get_page", json!({"filepath": "d.md"}))["doc_id"].clone();
        assert_eq!(around(json!({"center": id, "depth": "3"})).len(), 3);
        assert_eq!(around(json!({"center": "alone.md"})), [""; 0]);
        let missing = desk.call("ubp_get_graph", json!({"center": "x.md"}));
        assert_eq!(missing["protocol"]["code"], -32602, "{missing}");
        assert_eq!(desk.call("ubp_get_graph", json!({"depth": 6}))["protocol"]["code"], -32602);
    }

    #[test]
    fn a_limit_keeps_the_most_linked_and_says_so() {
        let called = Desk::new(CHAIN).called("ubp_get_graph", json!({"limit": 2}));
        assert_eq!(called.warnings, ["2 of 5 pages are given; `limit` allows more"]);
        let crate::Reply::Answer(answer) = called.reply else { panic!("it answers") };
        assert_eq!(edges(&answer), ["b.md references c.md"]);
    }
}
