//! Where nodes begin: around the centre of their community, or near their neighbours in a picture that exists.

use crate::forces::{self, neighbours};
use crate::{LayoutNode, Point, unit};

/// The angle that spreads points over a disc without a pattern.
const GOLDEN_ANGLE: f32 = 2.399_963_2;

/// Rounds for the graph of communities: it is small.
const COMMUNITY_ROUNDS: usize = 300;

/// Lays the communities out as if each were one node, and their nodes on a disc around it.
pub(crate) fn around_communities(nodes: &[LayoutNode], edges: &[(u32, u32)], communities: &[u32]) -> Vec<Point> {
    let count = communities.iter().max().map_or(0, |last| *last as usize + 1);
    let mut sizes = vec![0_u32; count];
    let mut places = Vec::with_capacity(nodes.len());
    for own in communities {
        places.push(sizes[*own as usize]);
        sizes[*own as usize] += 1;
    }
    let between: Vec<(u32, u32)> = edges
        .iter()
        .map(|(a, b)| (communities[*a as usize], communities[*b as usize]))
        .filter(|(a, b)| a != b)
        .collect();
    let between = crate::simple_edges(count, &between);
    let mut centres: Vec<Point> = (0..count).map(|own| on_disc(own as u32, 40.0)).collect();
    forces::relax(&vec![0; count], &between, &mut centres, COMMUNITY_ROUNDS);
    // Communities were laid out as points, and need room for their nodes.
    let stretch = 1.0 + (nodes.len() as f32 / count.max(1) as f32).sqrt();
    let place = |(node, (own, place)): (&LayoutNode, (&u32, &u32))| {
        let centre = centres[*own as usize];
        let around = on_disc(*place, 6.0);
        let shake = Point { x: unit(node.seed, 0) - 0.5, y: unit(node.seed, 1) - 0.5 };
        Point { x: centre.x * stretch + around.x + shake.x, y: centre.y * stretch + around.y + shake.y }
    };
    nodes.iter().zip(communities.iter().zip(&places)).map(place).collect()
}

/// The n-th point of an evenly filled disc.
pub(crate) fn on_disc(n: u32, spacing: f32) -> Point {
    let radius = spacing * (n as f32 + 0.5).sqrt();
    let angle = n as f32 * GOLDEN_ANGLE;
    Point { x: radius * angle.cos(), y: radius * angle.sin() }
}

/// Keeps every known position; a new node stands near the middle of its neighbours that have one, else at the edge of the picture.
pub(crate) fn keep(nodes: &[LayoutNode], edges: &[(u32, u32)]) -> Vec<Point> {
    let neighbours = neighbours(nodes.len(), edges);
    let mut positions: Vec<Option<Point>> = nodes.iter().map(|node| node.before).collect();
    let reach = positions.iter().flatten().map(|point| forces::length(point.x, point.y)).fold(0.0, f32::max);
    // Twice: a new node may know only another new one.
    for _ in 0..2 {
        for (node, own) in nodes.iter().enumerate() {
            if positions[node].is_some() {
                continue;
            }
            let known: Vec<Point> = neighbours[node].iter().filter_map(|other| positions[*other as usize]).collect();
            if known.is_empty() {
                continue;
            }
            let count = known.len() as f32;
            let middle =
                known.iter().fold(Point::default(), |sum, point| Point { x: sum.x + point.x, y: sum.y + point.y });
            let angle = unit(own.seed, 0) * std::f32::consts::TAU;
            let away = 14.0 + 10.0 * unit(own.seed, 1);
            positions[node] =
                Some(Point { x: middle.x / count + away * angle.cos(), y: middle.y / count + away * angle.sin() });
        }
    }
    let at_edge = |node: &LayoutNode| {
        let angle = unit(node.seed, 2) * std::f32::consts::TAU;
        let radius = reach + 12.0 + 8.0 * unit(node.seed, 3);
        Point { x: radius * angle.cos(), y: radius * angle.sin() }
    };
    positions.into_iter().zip(nodes).map(|(point, node)| point.unwrap_or_else(|| at_edge(node))).collect()
}
