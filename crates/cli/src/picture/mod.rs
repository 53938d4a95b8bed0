//! The graph as a file: pictures for people, and formats that other programs read.

mod exchange;
mod png;
mod svg;

pub(crate) use exchange::{dot, graphml, json};
pub(crate) use png::{Png, png};
pub(crate) use svg::{html, svg};

use quipu_tools::WholeGraph;

/// The name of a node.
fn name(graph: &WholeGraph, node: usize) -> &str {
    let notes = graph.notes.id.len();
    if node < notes { &graph.notes.title[node] } else { &graph.entities.name[node - notes] }
}

/// A node's id among all: the path of a note, `entity:` and the number of an entity.
fn id(graph: &WholeGraph, node: usize) -> String {
    let notes = graph.notes.id.len();
    if node < notes { graph.notes.id[node].clone() } else { format!("entity:{}", graph.entities.id[node - notes]) }
}

/// The kind of a node.
fn kind(graph: &WholeGraph, node: usize) -> &str {
    let notes = graph.notes.id.len();
    if node < notes {
        &graph.types[graph.notes.doc_type[node] as usize]
    } else {
        &graph.entities.entity_type[node - notes]
    }
}

/// Source, target and type of every edge.
fn edges(graph: &WholeGraph) -> impl Iterator<Item = (usize, usize, &str)> {
    let edge = |edge: &[u32]| (edge[0] as usize, edge[1] as usize, edge[2] as usize);
    graph
        .edges
        .chunks_exact(3)
        .map(edge)
        .map(|(source, target, kind)| (source, target, graph.link_types[kind].as_str()))
}

/// Text inside XML. Characters that XML cannot hold are left out.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' => safe.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests;
