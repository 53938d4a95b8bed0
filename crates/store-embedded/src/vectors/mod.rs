//! Vectors of passages: a cache on disk that outlives the index, and the vectors of one space in memory.
//!
//! The first search by meaning loads the vectors into memory. The order of locks is: catalog, cache, memory. Memory
//! is locked for writing only while rows are copied.

mod vector_store;

mod cache;
mod fixed_point;
mod matrix;
mod nearest;
mod passage_list;
mod resident;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use quipu_core::model::FileStat;
use quipu_core::ports::{Grade, NoteChange, PassageHash};

#[cfg(test)]
pub(crate) use cache::{FORMAT, SCHEMA};
pub(crate) use passage_list::{ListedPassage, decode, encode, passages_of};

use crate::catalog::Catalog;
use crate::index_database::IndexFileError;
use crate::sqlite;
use cache::Cache;
use fixed_point::FixedPoint;
use quipu_own_folder::OwnFolder;
use resident::Resident;

/// The vectors of an [`EmbeddedStore`](crate::EmbeddedStore).
pub(crate) struct Vectors {
    /// `None` in memory.
    folder: Option<Arc<OwnFolder>>,
    /// Opened at the first use.
    writer: Mutex<Option<Cache>>,
    /// The same; unused without a folder, where the writer is never slow.
    reader: Mutex<Option<Cache>>,
    /// Whether one of them is open.
    is_open: AtomicBool,
    resident: RwLock<Option<Resident>>,
    notices: Mutex<Vec<String>>,
}

impl Vectors {
    /// Vectors in a folder, or in memory without one. Opens nothing yet.
    pub(crate) fn new(folder: Option<Arc<OwnFolder>>) -> Self {
        Self {
            folder,
            writer: Mutex::default(),
            reader: Mutex::default(),
            is_open: AtomicBool::new(false),
            resident: RwLock::default(),
            notices: Mutex::default(),
        }
    }

    /// What was rebuilt and why, as sentences for the user.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.notices.lock().clone()
    }

    /// Drops the vectors in memory; the next search loads them again.
    pub(crate) fn unload(&self) {
        *self.resident.write() = None;
    }

    /// Applies changes that the catalog, which the caller has locked, has made, each with the passages of its note.
    ///
    /// Cannot fail: on an error the vectors in memory are dropped and loaded again at the next search.
    pub(crate) fn apply(&self, changes: &[NoteChange<'_>], passages: &[Vec<ListedPassage>]) {
        if self.resident.read().is_none() {
            return;
        }
        if let Err(error) = self.try_apply(changes, passages) {
            tracing::warn!("cannot read the vectors of changed notes: {error}");
            self.unload();
        }
    }

    fn try_apply(&self, changes: &[NoteChange<'_>], passages: &[Vec<ListedPassage>]) -> Result<(), IndexFileError> {
        let mut writer = self.writer.lock();
        let cache = self.opened(&mut writer)?;
        let unknown = |resident: &Resident| -> Option<(String, Vec<PassageHash>)> {
            let hashes = passages.iter().flatten().map(|passage| passage.hash);
            let unknown = hashes.filter(|hash| !resident.has_text(*hash)).collect();
            resident.has_unused().then(|| (resident.space().to_owned(), unknown))
        };
        let unknown = self.resident.read().as_ref().and_then(unknown);
        let found = match unknown {
            Some((name, hashes)) => match cache.space(&name)? {
                Some(space) => cache.find(space, &hashes)?,
                None => Vec::new(),
            },
            None => Vec::new(),
        };
        // Taken out while it changes, so that a panic leaves nothing in memory rather than half of a change.
        let mut slot = self.resident.write();
        if let Some(mut resident) = slot.take() {
            resident.apply(changes, passages);
            resident.put_vectors(&found, 0);
            *slot = Some(resident);
        }
        Ok(())
    }

    /// Stores vectors, on disk first.
    fn put(&self, name: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), IndexFileError> {
        let Some((_, first)) = vectors.first() else { return Ok(()) };
        if first.is_empty() {
            return Err(IndexFileError::Empty);
        }
        let fixed = vectors.iter().map(|(hash, vector)| Some((*hash, FixedPoint::new(vector)?)));
        let fixed: Vec<_> = fixed.collect::<Option<_>>().ok_or(IndexFileError::NotFinite)?;
        let dimensions = first.len();
        if let Some((_, other)) = vectors.iter().find(|(_, vector)| vector.len() != dimensions) {
            return Err(IndexFileError::Dimensions { one: dimensions, other: other.len() });
        }
        let mut writer = self.writer.lock();
        let put = self.opened(&mut writer)?.put(name, grade, fixed)?;
        // The writer is still locked, so that no change of notes comes between. Another space finds them when it is loaded.
        let mut slot = self.resident.write();
        match slot.take() {
            Some(mut resident) if resident.space() == name => {
                // A space whose dimensions changed is dropped, and loaded again at the next search.
                if resident.accepts(dimensions) {
                    resident.put_vectors(&put.changed, put.new);
                    *slot = Some(resident);
                }
            }
            other => *slot = other,
        }
        Ok(())
    }

    /// Sets the dimensions of a space.
    fn set_dimensions(&self, name: &str, dimensions: usize) -> Result<(), IndexFileError> {
        let mut writer = self.writer.lock();
        self.opened(&mut writer)?.set_dimensions(name, dimensions)?;
        let mut resident = self.resident.write();
        if resident.as_ref().is_some_and(|resident| resident.space() == name && !resident.accepts(dimensions)) {
            *resident = None;
        }
        Ok(())
    }

    /// Works with the vectors of a space in memory. They are loaded first where another space is in memory, or none.
    fn with_space<R>(
        &self,
        catalog: &Mutex<Catalog>,
        name: &str,
        work: impl FnOnce(&Resident) -> R,
    ) -> Result<R, IndexFileError> {
        loop {
            let resident = self.resident.read();
            if let Some(resident) = resident.as_ref().filter(|resident| resident.space() == name) {
                return Ok(work(resident));
            }
            drop(resident);
            self.load(&catalog.lock(), name)?;
        }
    }

    fn load(&self, catalog: &Catalog, name: &str) -> Result<(), IndexFileError> {
        let mut writer = self.writer.lock();
        let cache = self.opened(&mut writer)?;
        let mut resident = self.resident.write();
        if resident.as_ref().is_some_and(|resident| resident.space() == name) {
            return Ok(());
        }
        // First, so that two spaces are never in memory.
        *resident = None;
        let space = cache.space(name)?;
        let cached = space.map_or(Ok(0), |space| cache.count(space))?;
        let mut loaded = Resident::new(name, space.map(|space| space.dimensions), cached);
        let read = catalog.passages(|key, modified_ns, passages| {
            loaded.put_note(key, FileStat { modified_ns, size: 0 }.newness(), &passages);
        });
        read.map_err(|error| IndexFileError::Catalog(error.into()))?;
        // A rebuild begins without notes: no vector is unused then.
        if loaded.has_notes() {
            let deleted = cache.delete_unused(space, |hash| loaded.has_text(hash))?;
            tracing::debug!("deleted {deleted} vectors that no note has needed for long");
        }
        if let Some(space) = space {
            cache.load_into(&mut loaded, space)?;
        }
        loaded.add_all_to_levels();
        *resident = Some(loaded);
        Ok(())
    }

    /// Reads from the cache without waiting for its writer.
    fn read<R>(&self, work: impl FnOnce(&Cache) -> Result<R, IndexFileError>) -> Result<R, IndexFileError> {
        let mut cache = if self.folder.is_some() { &self.reader } else { &self.writer }.lock();
        work(self.opened(&mut cache)?)
    }

    /// Does the work, and once more with a new cache if it finds the cache damaged.
    fn with_repair<R>(&self, work: impl Fn() -> Result<R, IndexFileError>) -> Result<R, IndexFileError> {
        match work() {
            Err(error) if error.is_damage() => {
                self.recreate(&error)?;
                work()
            }
            outcome => outcome,
        }
    }

    fn recreate(&self, error: &IndexFileError) -> Result<(), IndexFileError> {
        tracing::error!("cannot read the stored vectors: {error}; they are rebuilt");
        let mut writer = self.writer.lock();
        let mut reader = self.reader.lock();
        for cache in [writer.take(), reader.take()].into_iter().flatten() {
            cache.abandon()?;
        }
        self.is_open.store(false, Ordering::Release);
        *self.resident.write() = None;
        if let Some(folder) = &self.folder {
            Cache::remove(folder)?;
        }
        self.notices.lock().push(format!("Cannot read the stored vectors: {error}; they are rebuilt."));
        Ok(())
    }

    /// Deletes every vector that no note needs, and rewrites the file. The caller has locked the catalog.
    pub(crate) fn rewrite(&self, catalog: &Catalog) -> Result<(), IndexFileError> {
        let mut writer = self.writer.lock();
        // A reader would keep the log from being emptied.
        let _reader = self.reader.lock();
        let is_there = self.folder.as_deref().map_or(Ok(false), Cache::exists)?;
        if writer.is_none() && !is_there {
            return Ok(());
        }
        let mut used = BTreeSet::new();
        catalog.passages(|_, _, passages| used.extend(passages.iter().map(|passage| passage.hash.0)))?;
        self.opened(&mut writer)?.rewrite(&used)?;
        // Their ids may have changed.
        *self.resident.write() = None;
        Ok(())
    }

    /// Problems of the cache, as sentences. A cache that was never created has none.
    pub(crate) fn check(&self) -> Result<Vec<String>, IndexFileError> {
        let mut writer = self.writer.lock();
        let is_there = self.folder.as_deref().map_or(Ok(false), Cache::exists)?;
        if writer.is_none() && !is_there {
            return Ok(Vec::new());
        }
        match self.opened(&mut writer).and_then(|cache| cache.check()) {
            Err(error) if error.is_damage() => Ok(vec![format!("The vectors are damaged: {error}.")]),
            outcome => outcome,
        }
    }

    fn opened<'a>(&self, cache: &'a mut Option<Cache>) -> Result<&'a mut Cache, IndexFileError> {
        sqlite::start_operation();
        if let Some(folder) = self.folder.as_deref().filter(|_| self.is_open.load(Ordering::Acquire)) {
            Cache::check_shared_memory(folder)?;
        }
        let cache = match cache {
            Some(cache) => cache,
            none => none.insert(self.folder.as_deref().map_or_else(Cache::in_memory, Cache::open)?),
        };
        self.is_open.store(true, Ordering::Release);
        Ok(cache)
    }
}
