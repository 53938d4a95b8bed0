//! What every picture must have: the same on each run, finite, and stable when the graph grows.

use super::*;

fn nodes(count: usize) -> Vec<LayoutNode> {
    (0..count as u64)
        .map(|n| LayoutNode { seed: n.wrapping_mul(0x1234_5678_9abc_def1), radius: 3.0, group: 0, before: None })
        .collect()
}

/// Rings of ten, each linked to the next by one edge.
fn rings(count: u32) -> Vec<(u32, u32)> {
    let ring = |first: u32| (0..10).map(move |n| (first + n, first + (n + 1) % 10));
    let chords = |first: u32| (0..5).map(move |n| (first + n, first + n + 5));
    (0..count / 10).flat_map(|n| ring(10 * n).chain(chords(10 * n)).chain([(10 * n, (10 * n + 10) % count)])).collect()
}

fn is_finite(layout: &Layout) -> bool {
    layout.positions.iter().all(|point| point.x.is_finite() && point.y.is_finite())
}

#[test]
fn same_graph_gives_same_picture() {
    assert_eq!(layout(&nodes(300), &rings(300)), layout(&nodes(300), &rings(300)));
}

#[test]
fn odd_graphs_have_finite_positions() {
    for (count, edges) in [
        (0, vec![]),
        (1, vec![]),
        (1, vec![(0, 0)]),
        (2, vec![(0, 1), (1, 0), (0, 1)]),
        (3, vec![(0, 9), (7, 8)]),
        (50, vec![]),
        (6, vec![(0, 1), (2, 3), (4, 5)]),
        (200, (1..200).map(|n| (0, n)).collect()),
    ] {
        let first = draft(&nodes(count), &edges);
        assert!(is_finite(&first) && first.positions.len() == count);
        let drawn = layout(&nodes(count), &edges);
        assert_eq!(first.communities, drawn.communities, "the groups of a draft stay");
        assert_eq!((drawn.positions.len(), drawn.communities.len()), (count, count));
        assert!(is_finite(&drawn), "{count} nodes, {edges:?}");
    }
}

#[test]
fn nodes_with_one_seed_do_not_share_a_position() {
    let same: Vec<LayoutNode> = nodes(40).into_iter().map(|node| LayoutNode { seed: 7, ..node }).collect();
    let drawn = layout(&same, &rings(40));
    for (n, a) in drawn.positions.iter().enumerate() {
        assert!(drawn.positions[..n].iter().all(|b| a != b), "node {n} hides another");
    }
}

#[test]
fn broken_positions_of_the_last_picture_are_replaced() {
    let before = Some(Point { x: f32::NAN, y: f32::INFINITY });
    let broken: Vec<LayoutNode> = nodes(20).into_iter().map(|node| LayoutNode { before, ..node }).collect();
    assert!(is_finite(&layout(&broken, &rings(20))));
}

#[test]
fn known_nodes_stay_and_a_new_one_stands_near_its_neighbours() {
    let first = layout(&nodes(100), &rings(100));
    let mut grown = nodes(101);
    for (node, point) in grown.iter_mut().zip(&first.positions) {
        node.before = Some(*point);
    }
    let mut edges = rings(100);
    edges.push((100, 33));
    let second = layout(&grown, &edges);
    assert_eq!(second.positions[..100], first.positions[..]);
    let (new, neighbour) = (second.positions[100], second.positions[33]);
    assert!(forces::length(new.x - neighbour.x, new.y - neighbour.y) < 30.0, "{new:?} {neighbour:?}");
}

#[test]
fn linked_nodes_stand_closer_than_others() {
    let drawn = layout(&nodes(300), &rings(300));
    let distance = |a: usize, b: usize| {
        let (a, b) = (drawn.positions[a], drawn.positions[b]);
        forces::length(a.x - b.x, a.y - b.y)
    };
    let linked: f32 =
        rings(300).iter().map(|(a, b)| distance(*a as usize, *b as usize)).sum::<f32>() / rings(300).len() as f32;
    let all: f32 = (0..300).map(|n| distance(n, (n * 7 + 131) % 300)).sum::<f32>() / 300.0;
    assert!(linked * 4.0 < all, "{linked} against {all}");
}

#[test]
fn nodes_do_not_overlap() {
    let drawn = layout(&nodes(200), &rings(200));
    for (n, a) in drawn.positions.iter().enumerate() {
        for b in &drawn.positions[..n] {
            assert!(forces::length(a.x - b.x, a.y - b.y) > 5.0, "node {n} at {a:?} overlaps {b:?}");
        }
    }
}

#[test]
fn communities_are_the_dense_parts_largest_first() {
    let mut edges = Vec::new();
    for (first, size) in [(0, 6), (6, 4), (10, 3)] {
        edges.extend((0..size).flat_map(|a| (0..a).map(move |b| (first + b, first + a))));
    }
    edges.extend([(0, 6), (6, 10)]);
    let found = communities(14, &simple_edges(14, &edges));
    assert_eq!(found, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3]);
}
