//! The shortest path between two notes along links.
//!
//! A bidirectional breadth-first search that expands the smaller frontier, so that it visits few notes of a large vault. Of
//! several shortest paths it returns the first in the given order: the result does not depend on slots.

use rustc_hash::{FxHashMap, FxHashSet};

use super::LinkGraph;
use crate::model::NoteKey;

impl LinkGraph {
    /// The first of the shortest paths from `source` to `target`, both included, comparing nodes by `order`.
    pub fn shortest_path<O: Ord>(
        &self,
        source: NoteKey,
        target: NoteKey,
        order: impl Fn(NoteKey) -> O,
    ) -> Option<Vec<NoteKey>> {
        if source == target {
            return Some(vec![source]);
        }
        let mut ahead = SearchSide::new(source);
        let mut behind = SearchSide::new(target);
        let meeting = loop {
            if ahead.frontier.is_empty() || behind.frontier.is_empty() {
                return None;
            }
            let meeting = if ahead.frontier.len() <= behind.frontier.len() {
                ahead.grow(|key| self.out(key), &behind)
            } else {
                behind.grow(|key| self.incoming(key), &ahead)
            };
            if !meeting.is_empty() {
                break meeting;
            }
        };

        // Only nodes on some shortest path are valid: walk back from the meeting points to the source.
        let mut good: FxHashSet<NoteKey> = meeting.iter().copied().collect();
        let mut layer = meeting;
        while layer != [source] {
            let depth = ahead.depth[&layer[0]];
            let mut before: Vec<NoteKey> = Vec::new();
            for key in layer.iter().flat_map(|key| self.incoming(*key)) {
                if ahead.depth.get(key).is_some_and(|at| at + 1 == depth) && good.insert(*key) {
                    before.push(*key);
                }
            }
            layer = before;
        }

        let mut path = vec![source];
        let mut here = source;
        while here != target {
            let next = self.out(here).iter().copied().filter(|key| match behind.depth.get(&here) {
                Some(left) => behind.depth.get(key).is_some_and(|at| at + 1 == *left),
                None => good.contains(key) && ahead.depth[key] == ahead.depth[&here] + 1,
            });
            here =
                next.min_by_key(|key| order(*key)).expect("every node of a shortest path but the last has a next one");
            path.push(here);
        }
        Some(path)
    }
}

/// The search from one end: the depth of every reached node, and the last layer.
struct SearchSide {
    depth: FxHashMap<NoteKey, u32>,
    frontier: Vec<NoteKey>,
}

impl SearchSide {
    fn new(start: NoteKey) -> Self {
        Self { depth: FxHashMap::from_iter([(start, 0)]), frontier: vec![start] }
    }

    /// Expands one layer; returns the new nodes that the other side has reached too.
    fn grow<'a>(&mut self, neighbours: impl Fn(NoteKey) -> &'a [NoteKey], other: &Self) -> Vec<NoteKey> {
        let mut next = Vec::new();
        for key in std::mem::take(&mut self.frontier) {
            let depth = self.depth[&key] + 1;
            for neighbour in neighbours(key) {
                if let std::collections::hash_map::Entry::Vacant(place) = self.depth.entry(*neighbour) {
                    place.insert(depth);
                    next.push(*neighbour);
                }
            }
        }
        let meeting = next.iter().copied().filter(|key| other.depth.contains_key(key)).collect();
        self.frontier = next;
        meeting
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All shortest paths by plain breadth-first search, the least of them.
    fn naive(targets: &[Vec<NoteKey>], source: NoteKey, target: NoteKey) -> Option<Vec<NoteKey>> {
        let mut paths = vec![vec![source]];
        for _ in 0..=targets.len() {
            if let Some(best) = paths.iter().filter(|path| path.last() == Some(&target)).min() {
                return Some(best.clone());
            }
            paths = paths
                .iter()
                .flat_map(|path| {
                    let last = path.last().expect("a path has a node");
                    targets[last.slot()]
                        .iter()
                        .filter(|key| !path.contains(key))
                        .map(|key| [path.as_slice(), &[*key]].concat())
                })
                .collect();
        }
        None
    }

    proptest! {
        #[test]
        fn path_is_the_first_of_the_shortest(
            rows in prop::collection::vec(prop::collection::btree_set(0..9_u32, 0..4), 9),
            source in 0..9_u32,
            target in 0..9_u32,
        ) {
            let targets: Vec<Vec<NoteKey>> = rows
                .iter()
                .enumerate()
                .map(|(slot, row)| row.iter().filter(|key| **key as usize != slot).copied().map(NoteKey).collect())
                .collect();
            let graph = LinkGraph::new(&targets);
            prop_assert_eq!(
                graph.shortest_path(NoteKey(source), NoteKey(target), |key| key),
                naive(&targets, NoteKey(source), NoteKey(target))
            );
        }
    }
}
