//! Immutable adjacency lists in both directions: a change creates a new graph that shares all unchanged rows.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::NoteKey;

/// A directed simple graph over note slots.
#[derive(Debug, Clone, Default)]
pub struct LinkGraph {
    base: Arc<Csr>,
    /// Csr that replace those of `base`. Few: see [`LinkGraph::with_rows`].
    changed: Arc<FxHashMap<NoteKey, Neighbours>>,
    slots: usize,
}

/// Compressed sparse rows: the neighbours of all slots in one array.
#[derive(Debug, Default)]
struct Csr {
    out_starts: Vec<u32>,
    out: Vec<NoteKey>,
    incoming_starts: Vec<u32>,
    incoming: Vec<NoteKey>,
}

#[derive(Debug, Clone, Default)]
struct Neighbours {
    out: Vec<NoteKey>,
    incoming: Vec<NoteKey>,
}

impl LinkGraph {
    /// Builds a graph from the targets of each slot, whose order is kept. A list contains neither duplicates nor its own
    /// slot.
    pub fn new(targets: &[Vec<NoteKey>]) -> Self {
        let edge_count = targets.iter().map(Vec::len).sum();
        let mut rows = Csr { out: Vec::with_capacity(edge_count), ..Csr::default() };
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

    /// The number of slots, used or not.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The targets of a note's links, in the order of their first link.
    pub fn out(&self, key: NoteKey) -> &[NoteKey] {
        match self.changed.get(&key) {
            Some(row) => &row.out,
            None => slice(&self.base.out_starts, &self.base.out, key),
        }
    }

    /// The notes that link to a note, in any order.
    pub fn incoming(&self, key: NoteKey) -> &[NoteKey] {
        match self.changed.get(&key) {
            Some(row) => &row.incoming,
            None => slice(&self.base.incoming_starts, &self.base.incoming, key),
        }
    }

    /// This graph with new targets for some slots, which may be new.
    ///
    /// The cost depends on the changed rows; once there are many, the whole graph is rebuilt.
    pub fn with_rows(&self, rows: Vec<(NoteKey, Vec<NoteKey>)>) -> Self {
        let mut next = self.clone();
        next.slots = rows.iter().map(|(key, _)| key.slot() + 1).fold(self.slots, usize::max);
        let changed = Arc::make_mut(&mut next.changed);
        // A hub has many sources: the lost ones are collected, so that its list is scanned once.
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
                // A source that is lost and added in one change is not lost.
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

fn row_mut<'a>(base: &Csr, changed: &'a mut FxHashMap<NoteKey, Neighbours>, key: NoteKey) -> &'a mut Neighbours {
    changed.entry(key).or_insert_with(|| Neighbours {
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
    fn edges_have_both_directions() {
        let graph = LinkGraph::new(&[keys(&[2, 1]), keys(&[2]), vec![]]);
        assert_eq!(graph.out(NoteKey(0)), keys(&[2, 1]));
        assert_eq!(graph.incoming(NoteKey(2)), keys(&[0, 1]));
        assert_eq!(graph.incoming(NoteKey(0)), &[]);
        assert_eq!(graph.out(NoteKey(99)), &[]);
    }

    proptest! {
        /// Changing rows batch by batch equals building the final graph at once.
        #[test]
        fn a_changed_graph_equals_a_built_one(
            batches in prop::collection::vec(prop::collection::vec((0..30_u32, prop::collection::btree_set(0..30_u32, 0..6)), 1..5), 1..30)
        ) {
            let mut model = vec![Vec::new(); 30];
            let mut graph = LinkGraph::new(&model);
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
            let built = LinkGraph::new(&model);
            for slot in 0..30 {
                let key = NoteKey(slot);
                prop_assert_eq!(graph.out(key), built.out(key));
                prop_assert_eq!(sorted(graph.incoming(key)), sorted(built.incoming(key)));
            }
        }
    }
}
