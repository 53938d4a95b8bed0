//! The closest sections: a scan over coarse rows finds candidates, and the exact vectors of the best of them decide.
//!
//! The coarseness loses no close section: each candidate has an upper bound, and candidates are read until the rest cannot be
//! among the closest.

use quipu_core::model::NoteKey;
use quipu_core::ports::{Calibration, EXACT_HITS, Grade, VectorHit, VectorQuery};
use rustc_hash::FxHashMap;

use super::Vectors;
use super::fixed_point::{FixedPoint, unit};
use super::resident::{Resident, SectionRef};
use crate::index_database::IndexFileError;
use crate::store::EmbeddedStore;

/// Candidates whose exact vectors are read at a time.
const BATCH: usize = 32;

/// The least number of candidates: where many texts are coarse alike, fewer would need a second scan.
const MIN_CANDIDATES: usize = 1024;

/// The best similarity of each section, and the grade of its vector.
type Best = FxHashMap<(NoteKey, u32), (f32, Grade)>;

/// A text that may be among the closest, with the admitted sections that contain it.
struct CandidateText {
    /// An upper bound of its similarity, wrong for one text in a million.
    most: f32,
    /// Its similarity by the row in memory.
    coarse: f32,
    grade: Grade,
    id: i64,
    sections: Vec<SectionRef>,
}

/// The result of a scan.
struct Shortlist {
    /// By `most`, highest first.
    texts: Vec<CandidateText>,
    /// An upper bound of the similarity of all other texts; `None` without others.
    others_most: Option<f32>,
}

/// See [`quipu_core::ports::VectorStore::nearest`].
pub(super) fn nearest(store: &EmbeddedStore, query: &VectorQuery<'_>) -> Result<Vec<VectorHit>, IndexFileError> {
    let (Some(exact_query), Some(coarse_query)) = (unit(query.vector), FixedPoint::new(query.vector)) else {
        return Err(IndexFileError::NotFinite);
    };
    let limit = query.limit;
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut keep = limit.saturating_mul(2).max(MIN_CANDIDATES);
    loop {
        // Only the scan locks the vectors in memory: reading from disk may be slow.
        let scan = |resident: &Resident| shortlist(resident, &exact_query, &coarse_query, query, keep);
        let Some(shortlist) = store.vectors.with_space(&store.catalog, query.space, scan)? else {
            // Queries and passages come from one model: it has changed, and passages will be embedded again.
            store.vectors.set_dimensions(query.space, query.vector.len())?;
            continue;
        };
        if let Some(hits) = rescore(&store.vectors, &exact_query, query.calibration, limit, &shortlist)? {
            return Ok(hits);
        }
        // Many candidates share a section, or are too close to each other for the coarse rows to tell them apart.
        keep = keep.saturating_mul(4);
    }
}

/// See [`quipu_core::ports::VectorStore::similarities`].
pub(super) fn similarities(
    store: &EmbeddedStore,
    query: &VectorQuery<'_>,
    sections: &[(NoteKey, usize)],
) -> Result<Vec<Option<f32>>, IndexFileError> {
    let exact_query = unit(query.vector).ok_or(IndexFileError::NotFinite)?;
    store.vectors.with_space(&store.catalog, query.space, |resident| {
        let Some(matrix) = resident.matrix().filter(|_| resident.accepts(exact_query.len())) else {
            return vec![None; sections.len()];
        };
        let of_row = |row| query.calibration.apply(matrix.grade(row), matrix.cosine(row, &exact_query).0);
        let of_section =
            |(key, section): &(NoteKey, usize)| resident.rows_of(*key, *section).map(of_row).max_by(f32::total_cmp);
        sections.iter().map(of_section).collect()
    })
}

/// The texts that may be closest; `None` if the query has other dimensions.
fn shortlist(
    resident: &Resident,
    exact_query: &[f32],
    coarse_query: &FixedPoint,
    query: &VectorQuery<'_>,
    keep: usize,
) -> Option<Shortlist> {
    let calibration = query.calibration;
    if !resident.accepts(exact_query.len()) {
        return None;
    }
    let Some(matrix) = resident.matrix() else { return Some(Shortlist { texts: Vec::new(), others_most: None }) };
    let admitted = |slot| resident.sections(slot).filter(|section| query.admits(section.key));
    let is_wanted = |slot| admitted(slot).next().is_some();
    let found = matrix.scan(coarse_query, calibration, keep.min(matrix.len().max(1)), &is_wanted);
    let others_most = found.rows.last().filter(|_| !found.are_all).map(|last| last.most);
    let text = |slot| {
        // The exact query gives tighter bounds than the coarse one of the scan.
        let row = resident.row(slot);
        let (grade, (coarse, most)) = (matrix.grade(row), matrix.cosine(row, exact_query));
        let (coarse, most) = (calibration.apply(grade, coarse), calibration.apply(grade, most));
        CandidateText { most, coarse, grade, id: resident.id(slot), sections: admitted(slot).collect() }
    };
    let mut texts: Vec<CandidateText> = found.rows.iter().map(|row| text(row.slot)).collect();
    texts.sort_unstable_by(|a, b| b.most.total_cmp(&a.most).then(a.id.cmp(&b.id)));
    Some(Shortlist { texts, others_most })
}

/// The closest sections of a shortlist; `None` if a text outside it could be among them.
fn rescore(
    vectors: &Vectors,
    query: &[f32],
    calibration: Calibration,
    limit: usize,
    shortlist: &Shortlist,
) -> Result<Option<Vec<VectorHit>>, IndexFileError> {
    let Shortlist { texts, others_most } = shortlist;
    let mut best = Best::default();
    let mut read = 0;
    loop {
        // An upper bound of everything not read yet, on the list or not.
        let next_most = texts.get(read).map(|next| next.most);
        let Some(rest_most) = next_most.into_iter().chain(*others_most).max_by(f32::total_cmp) else { break };
        if nth_best(&best, limit.min(EXACT_HITS)).is_some_and(|least| rest_most < least) {
            break;
        }
        let batch = &texts[read..texts.len().min(read + BATCH)];
        if batch.is_empty() {
            return Ok(None);
        }
        let cosines = vectors.read(|cache| cache.cosines(query, batch.iter().map(|text| text.id)))?;
        let similarity = |text: &CandidateText, cosine| calibration.apply(text.grade, cosine);
        batch.iter().zip(cosines).for_each(|(text, cosine)| text.count(similarity(text, cosine), &mut best));
        read += batch.len();
    }
    texts[read..].iter().for_each(|text| text.count(text.coarse, &mut best));
    if best.len() < limit && others_most.is_some() {
        return Ok(None);
    }
    let hit = |((key, section), (similarity, grade))| VectorHit { key, section: section as usize, similarity, grade };
    let mut hits: Vec<VectorHit> = best.into_iter().map(hit).collect();
    hits.sort_unstable_by(|a, b| {
        b.similarity.total_cmp(&a.similarity).then((a.key, a.section).cmp(&(b.key, b.section)))
    });
    hits.truncate(limit);
    Ok(Some(hits))
}

impl CandidateText {
    /// Counts a similarity for every section that contains the text. Between equal ones the higher grade wins.
    fn count(&self, similarity: f32, best: &mut Best) {
        for section in &self.sections {
            let so_far = best.entry((section.key, section.section)).or_insert((similarity, self.grade));
            if so_far.0.total_cmp(&similarity).then(so_far.1.cmp(&self.grade)).is_lt() {
                *so_far = (similarity, self.grade);
            }
        }
    }
}

/// The similarity of the last of the first `limit` sections; `None` while there are fewer.
fn nth_best(best: &Best, limit: usize) -> Option<f32> {
    if best.len() < limit {
        return None;
    }
    let mut similarities: Vec<f32> = best.values().map(|(similarity, _)| *similarity).collect();
    Some(*similarities.select_nth_unstable_by(limit - 1, |a, b| b.total_cmp(a)).1)
}
