//! The edges, in both directions, immutable: a change makes a new graph that shares all but the rows it touched.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::NoteKey;

/// A directed graph without parallel edges or loops.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    base: Arc<Rows>,
    /// Rows that replace those of `base`, whole. Few: see [`Graph::with_rows`].
    changed: Arc<FxHashMap<NoteKey, Row>>,
    slots: usize,
}

/// Neighbours of every slot, one after the other.
#[derive(Debug, Default)]
struct Rows {
    out_starts: Vec<u32>,
    out: Vec<NoteKey>,
    incoming_starts: Vec<u32>,
    incoming: Vec<NoteKey>,
}

#[derive(Debug, Clone, Default)]
struct Row {
    out: Vec<NoteKey>,
    incoming: Vec<NoteKey>,
}

impl Graph {
    /// Builds a graph from the targets of each slot, in the order they are to be kept. Each list is free of repetitions
    /// and of the slot itself.
    pub fn new(targets: &[Vec<NoteKey>]) -> Self {
        let edge_count = targets.iter().map(Vec::len).sum();
        let mut rows = Rows { out: Vec::with_capacity(edge_count), ..Rows::default() };
        let mut in_degree = vec![0_u32; targets.len() + 1];
        rows.out_starts.push(0);
        for row in targets {
            rows.out.extend_from_slice(row);
            rows.out_starts.push(as_u32(rows.out.len()));
            for target in row {
                in_degree[target.slot()] += 1;
            }
        }
        let mut start = 0;
        for degree in &mut in_degree {
            start += std::mem::replace(degree, start);
        }
        rows.incoming = vec![NoteKey(0); edge_count];
        let mut next = in_degree.clone();
        for (source, row) in targets.iter().enumerate() {
            for target in row {
                let place = &mut next[target.slot()];
                rows.incoming[*place as usize] = NoteKey(as_u32(source));
                *place += 1;
            }
        }
        rows.incoming_starts = in_degree;
        Self { base: Arc::new(rows), changed: Arc::default(), slots: targets.len() }
    }

    /// How many slots there are, used or not.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The notes this one links to, in the order of their first link.
    pub fn out(&self, key: NoteKey) -> &[NoteKey] {
        match self.changed.get(&key) {
            Some(row) => &row.out,
            None => slice(&self.base.out_starts, &self.base.out, key),
        }
    }

    /// The notes that link to this one, in no promised order.
    pub fn incoming(&self, key: NoteKey) -> &[NoteKey] {
        match self.changed.get(&key) {
            Some(row) => &row.incoming,
            None => slice(&self.base.incoming_starts, &self.base.incoming, key),
        }
    }

    /// The same graph with other targets for some slots; new slots may be named.
    ///
    /// Costs the rows touched, until they are many enough to be worth laying out anew.
    pub fn with_rows(&self, rows: Vec<(NoteKey, Vec<NoteKey>)>) -> Self {
        let mut next = self.clone();
        next.slots = rows.iter().map(|(key, _)| key.slot() + 1).fold(self.slots, usize::max);
        let changed = Arc::make_mut(&mut next.changed);
        // A hub has many sources: those it loses are collected, and its list is walked once.
        let mut lost: FxHashMap<NoteKey, FxHashSet<NoteKey>> = FxHashMap::default();
        for (key, out) in rows {
            let old = match changed.get(&key) {
                Some(row) => row.out.clone(),
                None => slice(&self.base.out_starts, &self.base.out, key).to_vec(),
            };
            if old == out {
                continue;
            }
            let (before, after): (FxHashSet<_>, FxHashSet<_>) =
                (old.iter().copied().collect(), out.iter().copied().collect());
            for gone in before.difference(&after) {
                lost.entry(*gone).or_default().insert(key);
            }
            for new in after.difference(&before) {
                // A source that was lost and is back in the same change is not lost.
                if !lost.get_mut(new).is_some_and(|sources| sources.remove(&key)) {
                    row_mut(&self.base, changed, *new).incoming.push(key);
                }
            }
            row_mut(&self.base, changed, key).out = out;
        }
        for (target, sources) in lost {
            row_mut(&self.base, changed, target).incoming.retain(|source| !sources.contains(source));
        }
        if next.changed.len() > 1024.max(next.slots / 50) {
            let all: Vec<_> = (0..next.slots).map(|slot| next.out(NoteKey(as_u32(slot))).to_vec()).collect();
            return Self::new(&all);
        }
        next
    }
}

fn row_mut<'a>(base: &Rows, changed: &'a mut FxHashMap<NoteKey, Row>, key: NoteKey) -> &'a mut Row {
    changed.entry(key).or_insert_with(|| Row {
        out: slice(&base.out_starts, &base.out, key).to_vec(),
        incoming: slice(&base.incoming_starts, &base.incoming, key).to_vec(),
    })
}

fn slice<'a>(starts: &[u32], keys: &'a [NoteKey], key: NoteKey) -> &'a [NoteKey] {
    match (starts.get(key.slot()), starts.get(key.slot() + 1)) {
        (Some(start), Some(end)) => &keys[*start as usize..*end as usize],
        _ => &[],
    }
}

fn as_u32(number: usize) -> u32 {
    u32::try_from(number).expect("a vault has fewer than four thousand million notes and links")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(slots: &[u32]) -> Vec<NoteKey> {
        slots.iter().copied().map(NoteKey).collect()
    }

    fn sorted(keys: &[NoteKey]) -> Vec<NoteKey> {
        let mut keys = keys.to_vec();
        keys.sort();
        keys
    }

    #[test]
    fn edges_are_seen_from_both_ends() {
        let graph = Graph::new(&[keys(&[2, 1]), keys(&[2]), vec![]]);
        assert_eq!(graph.out(NoteKey(0)), keys(&[2, 1]));
        assert_eq!(graph.incoming(NoteKey(2)), keys(&[0, 1]));
        assert_eq!(graph.incoming(NoteKey(0)), &[]);
        assert_eq!(graph.out(NoteKey(99)), &[]);
    }

    proptest! {
        /// Changing rows one batch at a time gives what building the final state at once gives.
        #[test]
        fn a_changed_graph_equals_a_built_one(
            batches in prop::collection::vec(prop::collection::vec((0..30_u32, prop::collection::btree_set(0..30_u32, 0..6)), 1..5), 1..30)
        ) {
            let mut model = vec![Vec::new(); 30];
            let mut graph = Graph::new(&model);
            for batch in batches {
                let rows: Vec<_> = batch
                    .into_iter()
                    .map(|(key, out)| (NoteKey(key), out.into_iter().filter(|target| *target != key).map(NoteKey).collect::<Vec<_>>()))
                    .collect();
                for (key, out) in &rows {
                    model[key.slot()].clone_from(out);
                }
                graph = graph.with_rows(rows);
            }
            let built = Graph::new(&model);
            for slot in 0..30 {
                let key = NoteKey(slot);
                prop_assert_eq!(graph.out(key), built.out(key));
                prop_assert_eq!(sorted(graph.incoming(key)), sorted(built.incoming(key)));
            }
        }
    }
}
