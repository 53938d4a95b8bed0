//! Vectors in plain maps, compared one by one: the model that real stores are compared with.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use quipu_core::model::NoteKey;
use quipu_core::ports::{Coverage, Grade, MissingVector, PassageHash, StoreError, VectorHit, VectorQuery, VectorStore};
use quipu_core::search::passages;

use crate::MemStore;
use crate::mem_store::StoredNotes;

/// The vectors of one space with their grades, by their dimensions; only the current dimensions count.
#[derive(Default, Clone)]
pub(crate) struct SpaceVectors {
    dimensions: usize,
    by_dimensions: BTreeMap<usize, BTreeMap<PassageHash, (Grade, Vec<f32>)>>,
}

impl SpaceVectors {
    fn get(&self, hash: PassageHash) -> Option<&(Grade, Vec<f32>)> {
        self.by_dimensions.get(&self.dimensions)?.get(&hash)
    }
}

impl VectorStore for MemStore {
    fn missing(
        &self,
        space: &str,
        grade: Grade,
        of: Option<&[NoteKey]>,
        limit: usize,
    ) -> Result<Vec<MissingVector>, StoreError> {
        let kept = self.kept();
        let has = |hash| kept.vectors.get(space).and_then(|vectors| vectors.get(hash)).is_some_and(|of| of.0 >= grade);
        let mut all = all_passages(&kept);
        match of {
            Some(keys) => {
                let place = |passage: &PlacedPassage| keys.iter().position(|key| *key == passage.key);
                all.retain(|passage| place(passage).is_some());
                all.sort_by_key(|passage| (place(passage), passage.index));
            }
            None => all.sort_by_key(|passage| {
                (Reverse(kept.notes[&passage.key].0.stat.newness()), passage.key, passage.index)
            }),
        }
        let mut named = BTreeSet::new();
        let missing = all.into_iter().filter(|passage| !has(passage.hash) && named.insert(passage.hash));
        Ok(missing
            .map(|passage| MissingVector { key: passage.key, passage: passage.index, hash: passage.hash })
            .take(limit)
            .collect())
    }

    fn coverage(&self, space: &str) -> Result<Coverage, StoreError> {
        let kept = self.kept();
        let hashes: BTreeSet<PassageHash> = all_passages(&kept).into_iter().map(|passage| passage.hash).collect();
        let vectors = kept.vectors.get(space);
        let grades = hashes.iter().filter_map(|hash| Some(vectors?.get(*hash)?.0));
        let full = grades.clone().filter(|grade| *grade >= Grade::FULL).count();
        Ok(Coverage { passages: hashes.len(), embedded: grades.count(), full })
    }

    fn put_vectors(&self, space: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError> {
        let Some((_, first)) = vectors.first() else { return Ok(()) };
        let mut kept = self.kept();
        let dimensions = first.len();
        let is_sound = |vector: &Vec<f32>| vector.len() == dimensions && vector.iter().all(|number| number.is_finite());
        if dimensions == 0 || !vectors.iter().all(|(_, vector)| is_sound(vector)) {
            return Err(StoreError::new("update the index", "a vector is not of its space"));
        }
        let of_space = kept.vectors.entry(space.to_owned()).or_default();
        of_space.dimensions = dimensions;
        let of_space = of_space.by_dimensions.entry(dimensions).or_default();
        for (hash, vector) in vectors {
            if of_space.get(hash).is_none_or(|(known, _)| *known < grade) {
                of_space.insert(*hash, (grade, vector.clone()));
            }
        }
        Ok(())
    }

    fn nearest(&self, query: &VectorQuery<'_>) -> Result<Vec<VectorHit>, StoreError> {
        let mut kept = self.kept();
        if let Some(vectors) = kept.vectors.get_mut(query.space) {
            vectors.dimensions = query.vector.len();
        }
        let Some(vectors) = kept.vectors.get(query.space) else { return Ok(Vec::new()) };
        let mut sections: BTreeMap<(NoteKey, usize), (f32, Grade)> = BTreeMap::new();
        for passage in all_passages(&kept).iter().filter(|passage| query.admits(passage.key)) {
            let Some((grade, vector)) = vectors.get(passage.hash) else { continue };
            let similarity = query.calibration.apply(*grade, cosine(query.vector, vector));
            let best = sections.entry((passage.key, passage.section)).or_insert((similarity, *grade));
            if best.0.total_cmp(&similarity).then(best.1.cmp(grade)).is_lt() {
                *best = (similarity, *grade);
            }
        }
        let hit = |((key, section), (similarity, grade))| VectorHit { key, section, similarity, grade };
        let mut hits: Vec<VectorHit> = sections.into_iter().map(hit).collect();
        // Stable, so ties stay by key and section.
        hits.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        hits.truncate(query.limit);
        Ok(hits)
    }

    fn similarities(
        &self,
        query: &VectorQuery<'_>,
        sections: &[(NoteKey, usize)],
    ) -> Result<Vec<Option<f32>>, StoreError> {
        let hits = self.nearest(&VectorQuery { limit: usize::MAX, among: None, ..*query })?;
        let of = |(key, section): &(NoteKey, usize)| {
            hits.iter().find(|hit| (hit.key, hit.section) == (*key, *section)).map(|hit| hit.similarity)
        };
        Ok(sections.iter().map(of).collect())
    }
}

struct PlacedPassage {
    key: NoteKey,
    index: usize,
    section: usize,
    hash: PassageHash,
}

fn all_passages(kept: &StoredNotes) -> Vec<PlacedPassage> {
    let of_note = |(key, (note, text)): (&NoteKey, &(_, String))| {
        let key = *key;
        let placed = passages(note, text).into_iter().enumerate();
        placed
            .map(move |(index, passage)| PlacedPassage { key, index, section: passage.section, hash: passage.hash() })
            .collect::<Vec<_>>()
    };
    kept.notes.iter().flat_map(of_note).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { (dot(a, b) / lengths) as f32 } else { 0.0 }
}
