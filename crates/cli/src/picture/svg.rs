//! A picture in one file: SVG, and the same inside a page that can be moved and zoomed.

use std::fmt::Write;

use quipu_layout::{Layout, LayoutNode, Point, layout};
use quipu_tools::WholeGraph;

use super::{edges, id, kind, name, xml};

/// Eight hues that stay apart for colour-blind readers, and grey for the rest: those of the explorer.
const HUES: [&str; 8] = ["#2b6cc4", "#d97f0a", "#0f9273", "#c2477f", "#7a5bd0", "#2aa1c9", "#b4492c", "#8a7d12"];
const OTHER: &str = "#8e939c";

/// Around the nodes, for labels.
const MARGIN: f32 = 60.0;

/// Up to this many nodes there is room to keep labels off the nodes.
const OPEN: usize = 150;

/// Labels in a picture; more would cover it.
const LABELS: usize = 150;

pub(crate) fn svg(graph: &WholeGraph, title: &str) -> String {
    framed(&drawn(graph), title, "")
}

/// The picture with a background. A page says more of it in attributes.
fn framed(drawing: &Drawing, title: &str, attributes: &str) -> String {
    let [left, top, width, height] = drawing.frame;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left:.0} {top:.0} {width:.0} {height:.0}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\"{attributes}>\n<title>{}</title>\n<rect class=\"back\" \
         x=\"{left:.0}\" y=\"{top:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#fcfcfb\"/>\n{}</svg>\n",
        xml(title),
        drawing.text
    )
}

/// The script is part of the file: it is opened from a disk, where there is no server to load one from.
pub(crate) fn html(graph: &WholeGraph, title: &str) -> String {
    let drawing = drawn(graph);
    let numbers = |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let ends: Vec<usize> = edges(graph).flat_map(|(source, target, _)| [source, target]).collect();
    let (ends, order, labels) = (numbers(&ends), numbers(&by_size(&radii(graph))), numbers(&drawing.labels));
    let attributes = " tabindex=\"0\" role=\"application\" aria-label=\"Graph. Arrow keys move, plus and minus zoom, \
                      n and p walk through nodes, slash finds one, Escape clears.\"";
    let picture = framed(&drawing, title, attributes);
    let title = xml(title);
    let count = format!("{} nodes, {} links", graph.len(), graph.edges.len() / 3);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n<header><h1>{title}</h1><p>{count}</p>\
         </header>\n<main>{picture}</main>\n<footer><input type=\"search\" placeholder=\"Find a node\" \
         aria-label=\"Find a node\"><p class=\"about\" role=\"status\"></p><p class=\"keys\">{KEYS}</p></footer>\n\
         <script>\nconst EDGES=[{ends}],ORDER=[{order}],LABELS=[{labels}];\n{SCRIPT}</script>\n</html>\n"
    )
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const KEYS: &str = "<kbd>n</kbd> <kbd>p</kbd> next node · <kbd>+</kbd> <kbd>-</kbd> zoom · <kbd>0</kbd> all";

/// The parts of a picture.
struct Drawing {
    text: String,
    /// Left, top, width and height.
    frame: [f32; 4],
    /// The node of each label.
    labels: Vec<usize>,
}

fn drawn(graph: &WholeGraph) -> Drawing {
    let radii = radii(graph);
    let Layout { positions, communities } = laid_out(graph, &radii);
    let mut text = String::new();
    text.push_str("<g class=\"links\" stroke=\"#5c6472\" stroke-opacity=\"0.18\" stroke-width=\"0.7\">\n");
    for (source, target, _) in edges(graph) {
        let (a, b) = (positions[source], positions[target]);
        let _ = writeln!(text, "<path d=\"M{:.0} {:.0}L{:.0} {:.0}\"/>", a.x, -a.y, b.x, -b.y);
    }
    text.push_str("</g>\n");
    for node in 0..graph.len() {
        let (Point { x, y }, r) = (positions[node], radii[node]);
        let colour = HUES.get(communities[node] as usize).copied().unwrap_or(OTHER);
        let about = format!("{} · {} · {}", name(graph, node), kind(graph, node), id(graph, node));
        let about = xml(&about);
        let _ = if node < graph.notes.id.len() {
            writeln!(
                text,
                "<circle class=\"node\" cx=\"{x:.0}\" cy=\"{:.0}\" r=\"{r:.1}\" fill=\"{colour}\"><title>{about}</title></circle>",
                -y
            )
        } else {
            let (left, top, side) = (x - r, -y - r, 2.0 * r);
            writeln!(
                text,
                "<rect class=\"node\" x=\"{left:.0}\" y=\"{top:.0}\" width=\"{side:.1}\" height=\"{side:.1}\" \
                 fill=\"{colour}\"><title>{about}</title></rect>"
            )
        };
    }
    let labels = write_labels(&mut text, graph, &positions, &radii);
    Drawing { text, frame: frame(&positions), labels }
}

/// The largest nodes first.
fn by_size(radii: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..radii.len()).collect();
    order.sort_by(|a, b| radii[*b].total_cmp(&radii[*a]).then(a.cmp(b)));
    order
}

/// The largest nodes first, and no label over another. Gives the node of each label.
fn write_labels(text: &mut String, graph: &WholeGraph, positions: &[Point], radii: &[f32]) -> Vec<usize> {
    // In a sparse picture no label covers a node; in a dense one there is no other place.
    let nodes = if graph.len() <= OPEN { 0..graph.len() } else { 0..0 };
    let around = |node: usize| {
        let (Point { x, y }, r) = (positions[node], radii[node]);
        [x - r, -y - r, x + r, -y + r]
    };
    let mut taken: Vec<[f32; 4]> = nodes.map(around).collect();
    let most = taken.len() + LABELS;
    let [left, _, picture_width, _] = frame(positions);
    text.push_str(
        "<g class=\"labels\" fill=\"#1c1d1f\" stroke=\"#fcfcfb\" stroke-width=\"3\" paint-order=\"stroke\">\n",
    );
    let mut labels = Vec::new();
    for node in by_size(radii) {
        if taken.len() == most {
            break;
        }
        let shown: String = name(graph, node).chars().take(40).collect();
        let width = shown.chars().map(|c| if c.is_ascii() { 6.2 } else { 11.0 }).sum::<f32>();
        let (x, y, r) = (positions[node].x, -positions[node].y, radii[node]);
        // Beside it; else below, above, or at the other side.
        let places = [
            (x + r + 3.0, y),
            (x - width / 2.0, y + r + 9.0),
            (x - width / 2.0, y - r - 9.0),
            (x - r - 3.0 - width, y),
        ];
        let free = places.into_iter().find(|(x, y)| {
            let own = [*x, y - 7.0, x + width, y + 7.0];
            let is_inside = own[0] >= left && own[2] <= left + picture_width;
            is_inside
                && !taken
                    .iter()
                    .any(|other| own[0] < other[2] && own[2] > other[0] && own[1] < other[3] && own[3] > other[1])
        });
        if let Some((x, y)) = free {
            let _ = writeln!(text, "<text class=\"label\" x=\"{x:.0}\" y=\"{:.0}\">{}</text>", y + 4.0, xml(&shown));
            taken.push([x, y - 7.0, x + width, y + 7.0]);
            labels.push(node);
        }
    }
    text.push_str("</g>\n");
    labels
}

fn radii(graph: &WholeGraph) -> Vec<f32> {
    let most = graph.notes.rank.iter().copied().max().unwrap_or(1).max(1) as f32;
    let notes = graph.notes.rank.iter().map(|rank| 2.5 + 9.0 * (*rank as f32 / most).sqrt());
    notes.chain(graph.entities.id.iter().map(|_| 4.0)).collect()
}

fn laid_out(graph: &WholeGraph, radii: &[f32]) -> Layout {
    let seed = |node: usize| {
        let hash = blake3::hash(id(graph, node).as_bytes());
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("a hash is longer"))
    };
    let group = |node: usize| graph.notes.folder.get(node).copied().unwrap_or(u32::MAX);
    let node = |(node, radius): (usize, &f32)| LayoutNode {
        seed: seed(node),
        radius: *radius,
        group: group(node),
        before: None,
    };
    let nodes: Vec<LayoutNode> = radii.iter().enumerate().map(node).collect();
    let pairs: Vec<(u32, u32)> = graph.edges.chunks_exact(3).map(|edge| (edge[0], edge[1])).collect();
    layout(&nodes, &pairs)
}

fn frame(positions: &[Point]) -> [f32; 4] {
    let side =
        |of: fn(&Point) -> f32, pick: fn(f32, f32) -> f32| positions.iter().map(of).reduce(pick).unwrap_or_default();
    let (left, right) = (side(|p| p.x, f32::min), side(|p| p.x, f32::max));
    let (top, bottom) = (side(|p| -p.y, f32::min), side(|p| -p.y, f32::max));
    [left - MARGIN, top - MARGIN, right - left + 3.0 * MARGIN, bottom - top + 2.0 * MARGIN]
}
