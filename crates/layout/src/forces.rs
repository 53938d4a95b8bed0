//! ForceAtlas2: nodes repel each other by their degrees, edges pull, and gravity keeps the pieces together. Each node has its own speed,
//! lower the more it swings.

use rayon::prelude::*;

use crate::Point;
use crate::quadtree::Quadtree;

/// How coarse far groups may be: at first, while nodes move far, and later. Higher is faster and less exact.
const COARSE_THETA: f32 = 1.8;
const THETA: f32 = 1.2;

/// The share of the rounds that are coarse.
const COARSE_ROUNDS: f32 = 0.5;

/// A graph has settled when its nodes move by less than this share of its radius in a round, after some rounds.
const SETTLED: f32 = 8e-4;
const LEAST_ROUNDS: usize = 50;

/// Strength of the repulsion: sets the size of the picture.
const REPULSION: f32 = 12.0;

/// Pull towards the centre, by distance, so that unconnected pieces do not drift away.
const GRAVITY: f32 = 0.05;

/// Strength of an edge inside a group, and of one between two groups.
const INSIDE: f32 = 28.0;
const BETWEEN: f32 = 5.0;

/// Nodes that one task handles; fewer cost more to hand out than to compute.
const CHUNK: usize = 512;

/// How many rounds a graph of this size gets at most: enough to settle, bounded in time.
pub(crate) fn iterations(nodes: usize) -> usize {
    match nodes {
        0..=2_000 => 400,
        2_001..=10_000 => 250,
        10_001..=30_000 => 140,
        _ => 80,
    }
}

/// Moves the nodes that have edges. The others do not take part. An edge between two groups pulls less than one inside a group.
pub(crate) fn relax(groups: &[u32], edges: &[(u32, u32)], positions: &mut [Point], rounds: usize) {
    let neighbours = neighbours(groups.len(), edges);
    let linked: Vec<usize> = (0..groups.len()).filter(|node| !neighbours[*node].is_empty()).collect();
    if linked.len() < 2 {
        return;
    }
    let masses: Vec<f32> = linked.iter().map(|node| 1.0 + neighbours[*node].len() as f32).collect();
    let mut last = vec![Point::default(); linked.len()];
    let mut speed = 1.0_f32;
    for round in 0..rounds {
        let theta = if (round as f32) < COARSE_ROUNDS * rounds as f32 { COARSE_THETA } else { THETA };
        let points: Vec<Point> = linked.iter().map(|node| positions[*node]).collect();
        let tree = Quadtree::new(&points, &masses);
        let frozen: &[Point] = positions;
        let forces: Vec<Point> = linked
            .par_iter()
            .zip(&masses)
            .with_min_len(CHUNK)
            .map(|(node, mass)| {
                let pull = |other: u32| if groups[other as usize] == groups[*node] { INSIDE } else { BETWEEN };
                let mut force = repulsion(&tree, frozen[*node], *mass, theta);
                for other in &neighbours[*node] {
                    attract(&mut force, frozen[*node], frozen[*other as usize], pull(*other));
                }
                force
            })
            .collect();
        speed = next_speed(speed, &forces, &last, &masses);
        let (mut moved, mut reach) = (0.0_f32, 0.0_f32);
        for (((node, force), before), mass) in linked.iter().zip(&forces).zip(&last).zip(&masses) {
            let swing = mass * length(force.x - before.x, force.y - before.y);
            let own = speed / (1.0 + (speed * swing).sqrt());
            let point = &mut positions[*node];
            // A node never jumps across the picture, however strong the force.
            let step = (own * length(force.x, force.y)).min(60.0) / length(force.x, force.y).max(1e-6);
            point.x += force.x * step;
            point.y += force.y * step;
            moved += step * length(force.x, force.y);
            reach = reach.max(length(point.x, point.y));
        }
        last = forces;
        if round >= LEAST_ROUNDS && moved < SETTLED * reach * linked.len() as f32 {
            return;
        }
    }
}

/// From all other nodes, with the pull towards the centre.
fn repulsion(tree: &Quadtree, at: Point, mass: f32, theta: f32) -> Point {
    let mut force = Point::default();
    tree.for_each_group(at, theta, |dx, dy, square, other| {
        let strength = REPULSION * mass * other / square.max(1.0);
        force.x += dx * strength;
        force.y += dy * strength;
    });
    force.x -= GRAVITY * mass * at.x;
    force.y -= GRAVITY * mass * at.y;
    force
}

/// Logarithmic attraction (LinLog): groups stand apart instead of in one ball.
fn attract(force: &mut Point, at: Point, other: Point, pull: f32) {
    let (dx, dy) = (other.x - at.x, other.y - at.y);
    let distance = length(dx, dy).max(1e-3);
    let strength = pull * distance.ln_1p() / distance;
    force.x += dx * strength;
    force.y += dy * strength;
}

/// Faster while nodes keep their direction, slower when they swing.
fn next_speed(speed: f32, forces: &[Point], last: &[Point], masses: &[f32]) -> f32 {
    let (mut swing, mut traction) = (0.0_f64, 0.0_f64);
    for ((force, before), mass) in forces.iter().zip(last).zip(masses) {
        swing += f64::from(mass * length(force.x - before.x, force.y - before.y));
        traction += f64::from(mass * length(force.x + before.x, force.y + before.y) / 2.0);
    }
    if swing <= 0.0 {
        return speed;
    }
    let wanted = (traction / swing) as f32;
    speed + (wanted - speed).min(0.5 * speed)
}

pub(crate) fn neighbours(nodes: usize, edges: &[(u32, u32)]) -> Vec<Vec<u32>> {
    let mut neighbours = vec![Vec::new(); nodes];
    for &(a, b) in edges {
        neighbours[a as usize].push(b);
        neighbours[b as usize].push(a);
    }
    neighbours
}

pub(crate) fn length(x: f32, y: f32) -> f32 {
    (x * x + y * y).sqrt()
}
