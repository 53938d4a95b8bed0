//! Room between nodes: those that overlap are pushed apart, and those without edges stand in rings around the rest.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::forces::{length, neighbours};
use crate::quadtree::bounds;
use crate::{LayoutNode, Point};

const ROUNDS: usize = 24;

/// Between the rims of two nodes.
const GAP: f32 = 2.0;

/// Up to this many nodes without edges stand together.
const FEW: usize = 24;

/// The least distance between nodes without edges, and between their rings.
const SPACING: f32 = 9.0;

/// How wide the rings are together where that leaves more room, as a share of the picture: spread out they do not look like a line.
const BAND: f32 = 0.12;

/// Pushes overlapping nodes apart, a little each round.
pub(crate) fn separate(nodes: &[LayoutNode], positions: &mut [Point]) {
    let widest = nodes.iter().map(|node| node.radius).fold(1.0, f32::max);
    let cell = 2.0 * widest + GAP;
    for _ in 0..ROUNDS {
        let mut grid: FxHashMap<(i32, i32), Vec<u32>> = FxHashMap::default();
        let key = |point: Point| ((point.x / cell).floor() as i32, (point.y / cell).floor() as i32);
        for (node, point) in positions.iter().enumerate() {
            grid.entry(key(*point)).or_default().push(node as u32);
        }
        let mut has_moved = false;
        for node in 0..nodes.len() {
            let (column, row) = key(positions[node]);
            for near in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (column + dx, row + dy))) {
                for other in grid.get(&near).into_iter().flatten().map(|other| *other as usize) {
                    if other > node {
                        has_moved |= push_apart(nodes, positions, node, other);
                    }
                }
            }
        }
        if !has_moved {
            return;
        }
    }
}

fn push_apart(nodes: &[LayoutNode], positions: &mut [Point], a: usize, b: usize) -> bool {
    let (dx, dy) = (positions[b].x - positions[a].x, positions[b].y - positions[a].y);
    let wanted = nodes[a].radius + nodes[b].radius + GAP;
    let distance = length(dx, dy);
    if distance >= wanted {
        return false;
    }
    // On one spot: any direction will do, as long as it is always the same.
    let angle = crate::unit(nodes[a].seed ^ nodes[b].seed, 0) * std::f32::consts::TAU;
    let (ux, uy) = if distance > 1e-3 { (dx / distance, dy / distance) } else { (angle.cos(), angle.sin()) };
    let push = (wanted - distance) / 2.0;
    positions[a].x -= ux * push;
    positions[a].y -= uy * push;
    positions[b].x += ux * push;
    positions[b].y += uy * push;
    true
}

/// Moves the middle of the linked nodes to the origin, where the rings around them have theirs.
pub(crate) fn centre(edges: &[(u32, u32)], positions: &mut [Point]) {
    let ends: Vec<Point> = edges.iter().flat_map(|(a, b)| [positions[*a as usize], positions[*b as usize]]).collect();
    let (low, high) = bounds(&ends);
    let (x, y) = (f32::midpoint(low.x, high.x), f32::midpoint(low.y, high.y));
    for point in positions {
        point.x -= x;
        point.y -= y;
    }
}

/// Puts nodes without edges into rings around the picture, by group, so that a folder stands together; a few stand in rows below it.
pub(crate) fn place_unlinked(nodes: &[LayoutNode], edges: &[(u32, u32)], positions: &mut [Point]) {
    let neighbours = neighbours(nodes.len(), edges);
    let mut unlinked: Vec<usize> = (0..nodes.len()).filter(|node| neighbours[*node].is_empty()).collect();
    let order = |a: &usize, b: &usize| -> Ordering {
        (nodes[*a].group, nodes[*a].seed, a).cmp(&(nodes[*b].group, nodes[*b].seed, b))
    };
    unlinked.sort_unstable_by(order);
    let reach = (0..nodes.len())
        .filter(|node| !neighbours[*node].is_empty())
        .map(|node| length(positions[node].x, positions[node].y))
        .fold(0.0, f32::max);
    if reach > 0.0 && (1..=FEW).contains(&unlinked.len()) {
        return place_below(&unlinked, reach, positions);
    }
    let area = std::f32::consts::TAU * reach * BAND * reach;
    let spacing = (area / unlinked.len() as f32).sqrt().max(SPACING);
    let mut radius = reach + spacing.max(4.0 * SPACING);
    if reach == 0.0 {
        radius = SPACING;
    }
    let mut rest = unlinked.as_slice();
    let mut shift = 0.0;
    while !rest.is_empty() {
        let room = ((std::f32::consts::TAU * radius / spacing) as usize).max(1);
        let (ring, next) = rest.split_at(room.min(rest.len()));
        let step = std::f32::consts::TAU / ring.len() as f32;
        let first = -std::f32::consts::FRAC_PI_2 - step * ((ring.len() - 1) as f32 / 2.0 + shift);
        for (place, node) in ring.iter().enumerate() {
            let angle = first + step * place as f32;
            positions[*node] = Point { x: radius * angle.cos(), y: radius * angle.sin() };
        }
        radius += spacing;
        // Each ring stands in the gaps of the one before.
        shift = 0.5 - shift;
        rest = next;
    }
}

/// Rows below the linked nodes, with room for a label beside each node.
fn place_below(unlinked: &[usize], reach: f32, positions: &mut [Point]) {
    let (step, line) = (10.0 * SPACING, 3.0 * SPACING);
    let linked = positions.iter().enumerate().filter(|(node, _)| !unlinked.contains(node));
    let low = linked.map(|(_, point)| point.y).fold(f32::MAX, f32::min);
    let columns = ((2.0 * reach / step) as usize).clamp(1, unlinked.len());
    for (place, node) in unlinked.iter().enumerate() {
        let (row, column) = (place / columns, place % columns);
        let x = step * (column as f32 - (columns - 1) as f32 / 2.0);
        positions[*node] = Point { x, y: low - line * (row + 2) as f32 };
    }
}
