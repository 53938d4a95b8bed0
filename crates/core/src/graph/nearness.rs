//! Proximity of notes along links: personalised PageRank, limited to a few steps.

use rustc_hash::FxHashMap;

use crate::model::NoteKey;

/// The share of the weight that a step passes on.
const DECAY: f32 = 0.5;

/// A note with more neighbours than this says little about each of them, and passes nothing on.
const MAX_NEIGHBOURS: usize = 500;

/// Spreads the weight of each source over its neighbours, theirs over their neighbours, up to `depth` steps. The proximity of
/// a note is the weight that it received; the greatest is 1, and notes without weight are omitted.
///
/// `order` is the order of summation: the last digit of a sum must depend neither on hashes nor on keys.
pub fn nearness(
    sources: &[(NoteKey, f32)],
    depth: usize,
    neighbours: impl Fn(NoteKey) -> Vec<NoteKey>,
    order: impl Fn(NoteKey) -> u32,
) -> FxHashMap<NoteKey, f32> {
    let mut near: FxHashMap<NoteKey, f32> = FxHashMap::default();
    let mut wave: Vec<(NoteKey, f32)> = sources.to_vec();
    for _ in 0..depth {
        let mut next: FxHashMap<NoteKey, f32> = FxHashMap::default();
        for (key, weight) in &wave {
            let neighbours = neighbours(*key);
            if neighbours.is_empty() || neighbours.len() > MAX_NEIGHBOURS {
                continue;
            }
            let share = DECAY * weight / neighbours.len() as f32;
            for other in neighbours {
                *next.entry(other).or_default() += share;
            }
        }
        for (key, weight) in &next {
            *near.entry(*key).or_default() += weight;
        }
        wave = next.into_iter().collect();
        wave.sort_unstable_by_key(|(key, _)| order(*key));
    }
    let most = near.values().copied().fold(0.0, f32::max);
    if most > 0.0 {
        near.values_mut().for_each(|weight| *weight /= most);
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_neighbour_is_nearest() {
        // 0 and 1 both lead to 2; 1 also leads to 3, and 3 to 4.
        let links = |key: NoteKey| match key.0 {
            0 => vec![NoteKey(2)],
            1 => vec![NoteKey(2), NoteKey(3)],
            3 => vec![NoteKey(4)],
            _ => Vec::new(),
        };
        let near = nearness(&[(NoteKey(0), 1.0), (NoteKey(1), 1.0)], 2, links, |key| key.0);
        assert_eq!(near[&NoteKey(2)], 1.0);
        assert!(near[&NoteKey(2)] > near[&NoteKey(3)] && near[&NoteKey(3)] > near[&NoteKey(4)], "{near:?}");
        assert!(!near.contains_key(&NoteKey(0)), "nothing leads there");
        assert!(nearness(&[(NoteKey(4), 1.0)], 3, links, |key| key.0).is_empty());
    }
}
