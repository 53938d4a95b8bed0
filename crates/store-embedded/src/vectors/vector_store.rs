//! The [`VectorStore`] of the embedded store.

use quipu_core::model::NoteKey;
use quipu_core::ports::{Coverage, Grade, MissingVector, PassageHash, StoreError, VectorHit, VectorQuery, VectorStore};

use super::nearest::{nearest, similarities};
use super::resident::Resident;
use crate::index_database::IndexFileError;
use crate::store::EmbeddedStore;

impl VectorStore for EmbeddedStore {
    fn missing(
        &self,
        space: &str,
        grade: Grade,
        of: Option<&[NoteKey]>,
        limit: usize,
    ) -> Result<Vec<MissingVector>, StoreError> {
        ask(self, space, |resident| resident.missing(grade, of, limit))
    }

    fn coverage(&self, space: &str) -> Result<Coverage, StoreError> {
        ask(self, space, Resident::coverage)
    }

    fn put_vectors(&self, space: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError> {
        let outcome = self.vectors.with_repair(|| self.vectors.put(space, grade, vectors));
        outcome.map_err(|error| StoreError::new("update the index", error))
    }

    fn nearest(&self, query: &VectorQuery<'_>) -> Result<Vec<VectorHit>, StoreError> {
        searched(self.vectors.with_repair(|| nearest(self, query)))
    }

    fn similarities(
        &self,
        query: &VectorQuery<'_>,
        sections: &[(NoteKey, usize)],
    ) -> Result<Vec<Option<f32>>, StoreError> {
        searched(self.vectors.with_repair(|| similarities(self, query, sections)))
    }
}

fn ask<R>(store: &EmbeddedStore, space: &str, question: impl Fn(&Resident) -> R) -> Result<R, StoreError> {
    searched(store.vectors.with_repair(|| store.vectors.with_space(&store.catalog, space, &question)))
}

fn searched<R>(outcome: Result<R, IndexFileError>) -> Result<R, StoreError> {
    outcome.map_err(|error| StoreError::new("search the index", error))
}
