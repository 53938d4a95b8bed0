//! Vectors of passages, kept between runs and searched by closeness.
//!
//! A passage is what is embedded as one: see [`crate::search::passages`]. Its hash names its text, so a vector once made
//! is found again after a rename, a rebuild of the index, or a change of the model and back.

use super::StoreError;
use crate::model::NoteKey;

/// Names the text of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PassageHash(pub [u8; 16]);

/// How exact a vector is. A faster, coarser encoder in the same space may come first and be improved upon later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grade(pub u8);

impl Grade {
    /// Made by the model itself.
    pub const FULL: Self = Self(100);
    /// Made by the model's coarse encoder, see [`super::CoarseEncoder`].
    pub const COARSE: Self = Self(50);
}

/// What the similarity of a vector below [`Grade::FULL`] would be on the scale of full ones: `slope * similarity + offset`.
///
/// Coarse vectors lie a little away from where the full ones would, so their similarities to a query are lower and closer
/// together. Uncorrected, full vectors would push the coarse ones out of the top.
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

/// Keeps vectors. Implemented by the store that keeps the notes, so that a put or a removal of a note there is seen here.
///
/// Spaces never mix: every method works in the space it is told, and vectors of other spaces stay for when they are back.
/// So do those of one space with another number of dimensions: a provider may change its model under one name. Whichever
/// number was last put or searched with is the one that counts.
pub trait VectorStore: Send + Sync {
    /// Passages of known notes that lack a vector of at least this grade, those of the newest files first. At most
    /// `limit`; a text that stands in several places is named once.
    fn lacking(&self, space: &str, grade: Grade, limit: usize) -> Result<Vec<Lacking>, StoreError>;

    /// How many distinct passages there are, and how many of them have a vector.
    fn coverage(&self, space: &str) -> Result<Coverage, StoreError>;

    /// Adds vectors of length one, or replaces coarser ones. All or none; kept through a kill of the process. Refused where
    /// they are not all of the same dimensions.
    fn put_vectors(&self, space: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError>;

    /// The sections closest to a vector, closest first, ties by key and section, each section once by its best passage.
    /// `admits` is asked before the limit is counted. Similarities of coarse vectors are calibrated before they are compared.
    /// Sees every change made before. Beyond the first [`EXACT_HITS`], similarities may be off by some thousandths, and so
    /// may be which sections are the last.
    fn nearest(
        &self,
        space: &str,
        query: &[f32],
        calibration: Calibration,
        limit: usize,
        admits: &(dyn Fn(NoteKey) -> bool + Sync),
    ) -> Result<Vec<VectorHit>, StoreError>;
}

/// A passage to be embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// A note that has it.
    pub key: NoteKey,
    /// Which of the note's passages it is, in their order.
    pub passage: usize,
    /// Its text's name.
    pub hash: PassageHash,
}

/// How far embedding has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Distinct passages of all notes.
    pub passages: usize,
    /// Those with a vector of any grade.
    pub embedded: usize,
    /// Those with a vector of [`Grade::FULL`].
    pub full: usize,
}

/// So many of the closest are surely the closest, and in their order.
///
/// Who wants more weighs them together with something else, and a thousandth of a cosine decides nothing there; to know it
/// would take longer than the whole search.
pub const EXACT_HITS: usize = 64;

/// One section found by closeness.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorHit {
    /// Its note.
    pub key: NoteKey,
    /// Its index in the note's sections.
    pub section: usize,
    /// Calibrated cosine, from -1 to 1; of the first [`EXACT_HITS`] that of the vector as it was put.
    pub similarity: f32,
    /// Of the vector that was closest.
    pub grade: Grade,
}
