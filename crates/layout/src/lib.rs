//! Where the nodes of a graph stand in a picture, and which of them belong together.
//!
//! Pure and deterministic: the same nodes and edges give the same picture on every run. Nodes that had a position keep it, so that a
//! reader finds a note where it was yesterday; a new node appears near its neighbours. No randomness and no clock: what looks random
//! comes from the hash of a node's id.

mod communities;
mod forces;
mod packing;
mod quadtree;
mod seeding;

pub use communities::communities;

use rustc_hash::FxHashSet;

/// A place in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// To the right.
    pub x: f32,
    /// Up.
    pub y: f32,
}

/// A node as far as the layout needs to know it.
#[derive(Debug, Clone, Copy)]
pub struct LayoutNode {
    /// A hash of its id: two nodes differ here, and one node never changes it.
    pub seed: u64,
    /// Its radius in the picture.
    pub radius: f32,
    /// Nodes without edges that share a group stand together.
    pub group: u32,
    /// Where it was in the last picture.
    pub before: Option<Point>,
}

/// A picture of a graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// A position for each node.
    pub positions: Vec<Point>,
    /// The community of each node; communities are numbered by size, the largest is 0.
    pub communities: Vec<u32>,
}

/// The share of new nodes up to which the others stay exactly where they were.
const FEW_NEW: f64 = 0.2;

/// Whether all nodes with a position stay where they are, because few are new. The draft is the layout then.
pub fn keeps_known(nodes: &[LayoutNode]) -> bool {
    let known = nodes.iter().filter(|node| node.before.is_some()).count();
    known > 0 && (nodes.len() - known) as f64 <= FEW_NEW * nodes.len() as f64
}

/// Lays a graph out. Edges are pairs of indexes into `nodes`; loops, duplicates and indexes out of range are ignored.
pub fn layout(nodes: &[LayoutNode], edges: &[(u32, u32)]) -> Layout {
    lay_out(nodes, edges, true)
}

/// The groups of [`layout()`], before any force has moved a node: the picture to show until the layout of a large graph is there.
pub fn draft(nodes: &[LayoutNode], edges: &[(u32, u32)]) -> Layout {
    lay_out(nodes, edges, false)
}

fn lay_out(nodes: &[LayoutNode], edges: &[(u32, u32)], settles: bool) -> Layout {
    let edges = simple_edges(nodes.len(), edges);
    let communities = communities(nodes.len(), &edges);
    let mut positions =
        if keeps_known(nodes) { seeding::keep(nodes, &edges) } else { arrange(nodes, &edges, &communities, settles) };
    for point in &mut positions {
        if !(point.x.is_finite() && point.y.is_finite()) {
            *point = Point::default();
        }
    }
    Layout { positions, communities }
}

/// A picture from scratch: communities first, then the nodes around the centre of theirs, then nodes without edges around all.
fn arrange(nodes: &[LayoutNode], edges: &[(u32, u32)], communities: &[u32], settles: bool) -> Vec<Point> {
    let mut positions = seeding::around_communities(nodes, edges, communities);
    if settles {
        forces::relax(communities, edges, &mut positions, forces::iterations(nodes.len()));
        packing::separate(nodes, &mut positions);
    }
    packing::centre(edges, &mut positions);
    packing::place_unlinked(nodes, edges, &mut positions);
    positions
}

/// Each pair once, smaller index first, sorted.
fn simple_edges(nodes: usize, edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut seen = FxHashSet::default();
    let in_range = |&(a, b): &(u32, u32)| a != b && (a as usize) < nodes && (b as usize) < nodes;
    let sorted = edges.iter().copied().filter(in_range).map(|(a, b)| (a.min(b), a.max(b)));
    let mut simple: Vec<(u32, u32)> = sorted.filter(|edge| seen.insert(*edge)).collect();
    simple.sort_unstable();
    simple
}

/// A number in 0..1 from a hash: the n-th of a node.
fn unit(seed: u64, n: u64) -> f32 {
    // SplitMix64: hashes of similar ids give unrelated numbers.
    let mut z = seed.wrapping_add((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
}

#[cfg(test)]
mod tests;
