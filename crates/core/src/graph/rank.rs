//! The centrality of each note by the links of the whole vault.

use super::LinkGraph;
use crate::model::NoteKey;

const DAMPING: f64 = 0.85;
const TOLERANCE: f64 = 1e-8;
const MAX_ROUNDS: usize = 200;

/// PageRank of every slot; the ranks of `live` slots add up to 1, all others are 0.
///
/// A note without links distributes its rank over all, as usual.
pub fn pagerank(graph: &LinkGraph, live: &[NoteKey]) -> Vec<f64> {
    let mut rank = vec![0.0; graph.slots()];
    if live.is_empty() {
        return rank;
    }
    let count = live.len() as f64;
    for key in live {
        rank[key.slot()] = 1.0 / count;
    }
    let mut given = vec![0.0; graph.slots()];
    for _ in 0..MAX_ROUNDS {
        let mut dangling = 0.0;
        for key in live {
            let degree = graph.out(*key).len();
            if degree == 0 {
                dangling += rank[key.slot()];
                given[key.slot()] = 0.0;
            } else {
                given[key.slot()] = rank[key.slot()] / degree as f64;
            }
        }
        let everyone = (1.0 - DAMPING + DAMPING * dangling) / count;
        let mut moved = 0.0;
        for key in live {
            let received: f64 = graph.incoming(*key).iter().map(|source| given[source.slot()]).sum();
            let new = everyone + DAMPING * received;
            moved += (new - rank[key.slot()]).abs();
            rank[key.slot()] = new;
        }
        if moved < TOLERANCE {
            break;
        }
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_add_up_to_one_and_favour_linked_notes() {
        let keys: Vec<NoteKey> = (0..4).map(NoteKey).collect();
        let graph = LinkGraph::new(&[vec![keys[3]], vec![keys[3]], vec![], vec![keys[0]]]);
        let rank = pagerank(&graph, &keys);
        assert!((rank.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{rank:?}");
        assert!(rank[3] > rank[0] && rank[0] > rank[1], "{rank:?}");
        assert_eq!(rank[1], rank[2]);
    }

    #[test]
    fn an_empty_vault_has_no_ranks() {
        assert!(pagerank(&LinkGraph::default(), &[]).is_empty());
    }
}
