//! Vectors of passages, kept between runs and searched by similarity.
//!
//! A passage is a text that is embedded as one: see [`crate::search::passages`]. Vectors are stored under the hash of
//! their text, so a vector is found again after a rename, a rebuild of the index, or a change of the model and back.

use super::{NoteSet, StoreError};
use crate::model::NoteKey;

/// The hash of a passage's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PassageHash(pub [u8; 16]);

/// How exact a vector is. A fast, coarse encoder in the same space may come first; the model's own vector replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grade(pub u8);

impl Grade {
    /// Computed by the model itself.
    pub const FULL: Self = Self(100);
    /// Computed by the model's coarse encoder, see [`super::CoarseEncoder`].
    pub const COARSE: Self = Self(50);
}

/// Maps the similarity of a vector below [`Grade::FULL`] to the scale of full ones: `slope * similarity + offset`.
///
/// Similarities of coarse vectors are lower and closer together. Uncorrected, full vectors would push the coarse ones out
/// of the top results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Above zero.
    pub slope: f32,
    /// Added after.
    pub offset: f32,
}

impl Calibration {
    /// Changes nothing.
    pub const NONE: Self = Self { slope: 1.0, offset: 0.0 };

    /// The similarity of a vector of some grade, on the scale of full ones.
    pub fn apply(self, grade: Grade, similarity: f32) -> f32 {
        if grade >= Grade::FULL { similarity } else { (self.slope * similarity + self.offset).clamp(-1.0, 1.0) }
    }
}

/// Stores vectors. Implemented by the store of the notes, so that changes to notes are visible here.
///
/// Vectors of two spaces are never compared: every method works in one space, and vectors of other spaces stay stored.
/// The same holds for vectors of one space with another number of dimensions, since a provider may change its model
/// under one name: the number last stored or searched with counts.
pub trait VectorStore: Send + Sync {
    /// Passages of known notes without a vector of at least this grade. With `of`, only of these notes and in their order;
    /// else of all notes, the newest files first. At most `limit`; a text that occurs several times is returned once.
    fn missing(
        &self,
        space: &str,
        grade: Grade,
        of: Option<&[NoteKey]>,
        limit: usize,
    ) -> Result<Vec<MissingVector>, StoreError>;

    /// How many distinct passages there are, and how many of them have a vector.
    fn coverage(&self, space: &str) -> Result<Coverage, StoreError>;

    /// Adds vectors of length one, or replaces coarser ones. All or none; they survive a kill of the process. Fails when
    /// their dimensions differ.
    fn put_vectors(&self, space: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError>;

    /// The sections closest to a vector, closest first, ties by key and section, each section once by its best passage.
    /// Similarities of coarse vectors are calibrated before they are compared. Sees every change made before. Beyond the
    /// first [`EXACT_HITS`], similarities may be off by some thousandths, and so may the choice of the last sections.
    fn nearest(&self, query: &VectorQuery<'_>) -> Result<Vec<VectorHit>, StoreError>;

    /// The calibrated similarity of each of these sections, `None` for one without a vector; may be off by some thousandths. The
    /// limit and the filter of the query do not matter.
    fn similarities(
        &self,
        query: &VectorQuery<'_>,
        sections: &[(NoteKey, usize)],
    ) -> Result<Vec<Option<f32>>, StoreError>;
}

/// A search by similarity.
#[derive(Debug, Clone, Copy)]
pub struct VectorQuery<'a> {
    /// The space of the vector.
    pub space: &'a str,
    /// The embedded query.
    pub vector: &'a [f32],
    /// Corrects similarities of coarse vectors.
    pub calibration: Calibration,
    /// At most this many sections.
    pub limit: usize,
    /// Only sections of these notes; `None` means all. Applied before the limit.
    pub among: Option<&'a NoteSet>,
}

impl<'a> VectorQuery<'a> {
    /// A search in all notes, without calibration.
    pub fn new(space: &'a str, vector: &'a [f32], limit: usize) -> Self {
        Self { space, vector, calibration: Calibration::NONE, limit, among: None }
    }

    /// Whether sections of a note may be returned.
    pub fn admits(&self, key: NoteKey) -> bool {
        self.among.is_none_or(|among| among.contains(&key))
    }
}

/// A passage that has to be embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingVector {
    /// A note that contains it.
    pub key: NoteKey,
    /// Its index in the note's passages.
    pub passage: usize,
    /// The hash of its text.
    pub hash: PassageHash,
}

/// Progress of embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Distinct passages of all notes.
    pub passages: usize,
    /// Passages with a vector of any grade.
    pub embedded: usize,
    /// Passages with a vector of [`Grade::FULL`].
    pub full: usize,
}

/// So many hits are exact: surely the closest, and in the right order.
///
/// Callers that want more combine them with other scores, where a thousandth of a cosine decides nothing; computing it
/// would take longer than the whole search.
pub const EXACT_HITS: usize = 64;

/// One section found by similarity.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorHit {
    pub key: NoteKey,
    /// Its index in the note's sections.
    pub section: usize,
    /// Calibrated cosine, from -1 to 1; exact for the first [`EXACT_HITS`].
    pub similarity: f32,
    /// The grade of the closest vector.
    pub grade: Grade,
}
