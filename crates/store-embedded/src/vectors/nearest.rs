//! The closest sections: a scan over coarse rows names candidates, whose exact vectors then decide.
//!
//! Nothing that is close enough is lost to the coarseness: each candidate comes with the most that it could be, and
//! candidates are looked at until the rest cannot be among the closest.

use quipu_core::model::NoteKey;
use quipu_core::ports::VectorHit;
use rustc_hash::FxHashMap;

use super::fixed_point::{FixedPoint, unit};
use super::resident::{Place, Resident};
use super::{VectorError, Vectors};
use crate::store::EmbeddedStore;

/// Candidates whose exact vectors are read between two looks at whether that is enough.
const BATCH: usize = 32;

/// A text that may be among the closest, with the places where it is wanted.
struct CandidateText {
    most: f32,
    id: i64,
    places: Vec<Place>,
}

/// See [`quipu_core::ports::VectorStore::nearest`].
pub(super) fn nearest(
    store: &EmbeddedStore,
    space: &str,
    query: &[f32],
    limit: usize,
    admits: &(dyn Fn(NoteKey) -> bool + Sync),
) -> Result<Vec<VectorHit>, VectorError> {
    let (Some(exact_query), Some(coarse_query)) = (unit(query), FixedPoint::new(query)) else {
        return Err(VectorError::NotFinite);
    };
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut keep = limit.saturating_mul(2).saturating_add(2 * BATCH);
    loop {
        // The scan alone holds the vectors in memory: reading from disk may take its time.
        let scan = |resident: &Resident| candidates(resident, &coarse_query, keep, admits);
        let Some((candidates, are_all)) = store.vectors.with_space(&store.catalog, space, scan)? else {
            // Queries and passages come from one model: it has changed, and passages will follow.
            store.vectors.turn(space, query.len())?;
            continue;
        };
        let (hits, are_enough) = rescore(&store.vectors, &exact_query, limit, &candidates)?;
        if are_all || are_enough {
            return Ok(hits);
        }
        // Many candidates shared a section, or are so close to each other that the coarse rows do not tell them apart.
        keep = keep.saturating_mul(4);
    }
}

/// What may be closest, and whether that is all there is; `None` where the query has other dimensions.
fn candidates(
    resident: &Resident,
    query: &FixedPoint,
    keep: usize,
    admits: &(dyn Fn(NoteKey) -> bool + Sync),
) -> Option<(Vec<CandidateText>, bool)> {
    if !resident.takes(query.coarse.len()) {
        return None;
    }
    let Some(matrix) = resident.matrix() else { return Some((Vec::new(), true)) };
    let admitted = |slot| resident.places(slot).filter(|place| admits(place.key));
    let found = matrix.scan(query, keep.min(matrix.len().max(1)), &|slot| admitted(slot).next().is_some());
    let text = |most, slot| CandidateText { most, id: resident.id(slot), places: admitted(slot).collect() };
    Some((found.rows.iter().map(|row| text(row.most, row.slot)).collect(), found.are_all))
}

/// The closest sections of the candidates, and whether no other candidate could be among them.
fn rescore(
    vectors: &Vectors,
    query: &[f32],
    limit: usize,
    candidates: &[CandidateText],
) -> Result<(Vec<VectorHit>, bool), VectorError> {
    let mut best: FxHashMap<(NoteKey, u32), f32> = FxHashMap::default();
    let mut are_enough = false;
    for batch in candidates.chunks(BATCH) {
        let cosines = vectors.read(|cache| cache.cosines(query, batch.iter().map(|candidate| candidate.id)))?;
        for (candidate, cosine) in batch.iter().zip(cosines) {
            for place in &candidate.places {
                let so_far = best.entry((place.key, place.section)).or_insert(cosine);
                *so_far = so_far.max(cosine);
            }
        }
        // What is left is not above the last of the batch.
        let rest_most = batch.last().map_or(f32::NEG_INFINITY, |last| last.most);
        if nth_best(&best, limit).is_some_and(|least| rest_most < least) {
            are_enough = true;
            break;
        }
    }
    let mut hits: Vec<VectorHit> = best
        .into_iter()
        .map(|((key, section), similarity)| VectorHit { key, section: section as usize, similarity })
        .collect();
    hits.sort_unstable_by(|a, b| {
        b.similarity.total_cmp(&a.similarity).then((a.key, a.section).cmp(&(b.key, b.section)))
    });
    hits.truncate(limit);
    Ok((hits, are_enough))
}

/// The similarity that a section must have to be among the first `limit`; `None` while there are fewer.
fn nth_best(best: &FxHashMap<(NoteKey, u32), f32>, limit: usize) -> Option<f32> {
    if best.len() < limit {
        return None;
    }
    let mut similarities: Vec<f32> = best.values().copied().collect();
    Some(*similarities.select_nth_unstable_by(limit - 1, |a, b| b.total_cmp(a)).1)
}
