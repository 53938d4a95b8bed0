//! Which nodes belong together: the Louvain method, with a fixed order of visits in place of a random one.

use rustc_hash::FxHashMap;

/// Passes over the nodes of one level; few graphs need more than ten.
const MAX_PASSES: usize = 20;

/// Levels of merged communities; each shrinks the graph several times.
const MAX_LEVELS: usize = 4;

/// A weighted graph: the neighbours of each node, and twice the weight inside each node.
struct CommunityLevel {
    neighbours: Vec<Vec<(u32, f64)>>,
    inside: Vec<f64>,
}

/// The community of each node, numbered by size, largest first, ties by the first member. Edges are simple.
pub fn communities(nodes: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let mut level = CommunityLevel { neighbours: vec![Vec::new(); nodes], inside: vec![0.0; nodes] };
    for &(a, b) in edges {
        level.neighbours[a as usize].push((b, 1.0));
        level.neighbours[b as usize].push((a, 1.0));
    }
    let total = 2.0 * edges.len() as f64;
    let mut community: Vec<u32> = (0..nodes as u32).collect();
    for _ in 0..MAX_LEVELS {
        let (moved, has_moved) = level.move_nodes(total);
        if !has_moved {
            break;
        }
        for own in &mut community {
            *own = moved[*own as usize];
        }
        level = level.merged(&moved);
    }
    numbered_by_size(&community)
}

impl CommunityLevel {
    fn degree(&self, node: usize) -> f64 {
        self.inside[node] + self.neighbours[node].iter().map(|(_, weight)| weight).sum::<f64>()
    }

    /// Moves each node to the neighbouring community that gains the most modularity, until none gains. Answers the community of each
    /// node, numbered without gaps.
    fn move_nodes(&self, total: f64) -> (Vec<u32>, bool) {
        let count = self.neighbours.len();
        let mut community: Vec<u32> = (0..count as u32).collect();
        let degrees: Vec<f64> = (0..count).map(|node| self.degree(node)).collect();
        let mut sums = degrees.clone();
        let mut has_moved = false;
        for _ in 0..MAX_PASSES {
            let mut moves = 0;
            for node in 0..count {
                let own = community[node];
                let mut weights: FxHashMap<u32, f64> = FxHashMap::default();
                for &(other, weight) in &self.neighbours[node] {
                    *weights.entry(community[other as usize]).or_default() += weight;
                }
                sums[own as usize] -= degrees[node];
                let gain = |to: u32, weight: f64| weight - degrees[node] * sums[to as usize] / total;
                let mut best = (own, gain(own, weights.get(&own).copied().unwrap_or_default()));
                let mut candidates: Vec<(u32, f64)> = weights.into_iter().collect();
                candidates.sort_unstable_by_key(|(to, _)| *to);
                for (to, weight) in candidates {
                    let gained = gain(to, weight);
                    if gained > best.1 + 1e-9 {
                        best = (to, gained);
                    }
                }
                sums[best.0 as usize] += degrees[node];
                if best.0 != own {
                    community[node] = best.0;
                    moves += 1;
                }
            }
            has_moved |= moves > 0;
            // A pass that moves next to nothing is followed by many that do.
            if moves * 200 <= count {
                break;
            }
        }
        (without_gaps(&community), has_moved)
    }

    /// The graph whose nodes are the communities of this one.
    fn merged(&self, community: &[u32]) -> Self {
        let count = community.iter().max().map_or(0, |last| *last as usize + 1);
        let mut inside = vec![0.0; count];
        let mut between: Vec<FxHashMap<u32, f64>> = vec![FxHashMap::default(); count];
        for (node, own) in community.iter().enumerate() {
            inside[*own as usize] += self.inside[node];
            for &(other, weight) in &self.neighbours[node] {
                let to = community[other as usize];
                if to == *own {
                    inside[*own as usize] += weight;
                } else {
                    *between[*own as usize].entry(to).or_default() += weight;
                }
            }
        }
        let sorted = |weights: FxHashMap<u32, f64>| {
            let mut list: Vec<(u32, f64)> = weights.into_iter().collect();
            list.sort_unstable_by_key(|(to, _)| *to);
            list
        };
        Self { neighbours: between.into_iter().map(sorted).collect(), inside }
    }
}

fn without_gaps(community: &[u32]) -> Vec<u32> {
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    let number = |own: &u32| {
        let next = numbers.len() as u32;
        *numbers.entry(*own).or_insert(next)
    };
    community.iter().map(number).collect()
}

fn numbered_by_size(community: &[u32]) -> Vec<u32> {
    let dense = without_gaps(community);
    let count = dense.iter().max().map_or(0, |last| *last as usize + 1);
    let mut sizes: Vec<(usize, u32)> = (0..count as u32).map(|own| (0, own)).collect();
    for own in &dense {
        sizes[*own as usize].0 += 1;
    }
    sizes.sort_unstable_by_key(|(size, own)| (std::cmp::Reverse(*size), *own));
    let mut place = vec![0_u32; count];
    for (number, (_, own)) in (0..).zip(sizes) {
        place[own as usize] = number;
    }
    dense.into_iter().map(|own| place[own as usize]).collect()
}
