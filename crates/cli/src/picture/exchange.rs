//! Formats that other programs read: Graphviz, GraphML and JSON.

use std::fmt::Write;

use quipu_tools::WholeGraph;
use serde_json::{Value, json as value};

use super::{edges, id, kind, name, xml};
use crate::failure::Failure;

pub(crate) fn dot(graph: &WholeGraph) -> String {
    let quoted = |text: &str| {
        let safe: String = text.chars().filter(|c| !c.is_control()).collect();
        format!("\"{}\"", safe.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let mut text = "digraph quipu {\n  node [shape=ellipse];\n".to_owned();
    for node in 0..graph.len() {
        let shape = if node < graph.notes.id.len() { "" } else { ", shape=box" };
        let _ = writeln!(text, "  {} [label={}{shape}];", quoted(&id(graph, node)), quoted(name(graph, node)));
    }
    for (source, target, kind) in edges(graph) {
        let label = if kind == "references" { String::new() } else { format!(" [label={}]", quoted(kind)) };
        let _ = writeln!(text, "  {} -> {}{label};", quoted(&id(graph, source)), quoted(&id(graph, target)));
    }
    text.push_str("}\n");
    text
}

pub(crate) fn graphml(graph: &WholeGraph) -> String {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
            .to_owned();
    for (key, of) in [("label", "node"), ("kind", "node"), ("type", "node"), ("type", "edge")] {
        let _ = writeln!(text, "  <key id=\"{of}_{key}\" for=\"{of}\" attr.name=\"{key}\" attr.type=\"string\"/>");
    }
    text.push_str("  <graph edgedefault=\"directed\">\n");
    for node in 0..graph.len() {
        let what = if node < graph.notes.id.len() { "note" } else { "entity" };
        let _ = writeln!(
            text,
            "    <node id=\"{}\"><data key=\"node_label\">{}</data><data key=\"node_kind\">{what}</data><data \
             key=\"node_type\">{}</data></node>",
            xml(&id(graph, node)),
            xml(name(graph, node)),
            xml(kind(graph, node))
        );
    }
    for (source, target, kind) in edges(graph) {
        let _ = writeln!(
            text,
            "    <edge source=\"{}\" target=\"{}\"><data key=\"edge_type\">{}</data></edge>",
            xml(&id(graph, source)),
            xml(&id(graph, target)),
            xml(kind)
        );
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

/// Nodes and edges with names, as most libraries take them.
pub(crate) fn json(graph: &WholeGraph) -> Result<String, Failure> {
    let node = |node: usize| {
        let what = if node < graph.notes.id.len() { "note" } else { "entity" };
        value!({ "id": id(graph, node), "name": name(graph, node), "kind": what, "type": kind(graph, node) })
    };
    let edge = |(source, target, kind): (usize, usize, &str)| value!({ "source": id(graph, source), "target": id(graph, target), "type": kind });
    let nodes: Vec<Value> = (0..graph.len()).map(node).collect();
    let links: Vec<Value> = edges(graph).map(edge).collect();
    let text = serde_json::to_string(&value!({ "nodes": nodes, "edges": links }));
    text.map(|text| text + "\n").map_err(|error| Failure::failed(error.to_string()))
}
