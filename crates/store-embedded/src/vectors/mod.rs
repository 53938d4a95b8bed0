//! Vectors of passages: a cache on disk that outlives the index, and the vectors of one space in memory.
//!
//! The first search by meaning loads the vectors into memory. The order of locks is: loading, catalog, cache, memory. Memory
//! is locked for writing only while rows are copied, and loading locks the catalog only for a moment at a time, so that saved notes
//! need not wait: what changes meanwhile is recorded, and applied at the end.

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
pub(crate) use passage_list::{ListedPassage, NotePassages, decode, encode, passages_of};

use crate::catalog::Catalog;
use crate::index_database::IndexFileError;
use crate::sqlite;
use cache::{Cache, Put};
use fixed_point::FixedPoint;
use quipu_own_folder::OwnFolder;
use resident::{CachedVector, NewPassages, Resident};

/// Notes whose passages are read from the catalog at a time: some milliseconds.
const PASSAGES_AT_ONCE: usize = 2000;

/// The vectors of an [`EmbeddedStore`](crate::EmbeddedStore).
pub(crate) struct Vectors {
    /// `None` in memory.
    folder: Option<Arc<OwnFolder>>,
    /// Opened at the first use.
    writer: Mutex<Option<Cache>>,
    /// Opened at the first use; unused without a folder, where the writer is never slow.
    reader: Mutex<Option<Cache>>,
    /// Whether one of them is open.
    is_open: AtomicBool,
    resident: RwLock<Option<Resident>>,
    /// Held while a space is loaded, so that two threads do not do the same work.
    loading: Mutex<()>,
    /// What happened while a space is loaded; `None` at other times, and once the load has become void.
    meanwhile: Mutex<Option<ChangesDuringLoad>>,
    notices: Mutex<Vec<String>>,
}

/// What happened while vectors were loaded.
#[derive(Default)]
struct ChangesDuringLoad {
    notes: Vec<NewPassages>,
    /// The new vectors of each space, by its name.
    vectors: Vec<(String, Put)>,
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
            loading: Mutex::default(),
            meanwhile: Mutex::default(),
            notices: Mutex::default(),
        }
    }

    /// What was rebuilt and why, as sentences for the user.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.notices.lock().clone()
    }

    /// Drops the vectors in memory; the next search loads them again.
    pub(crate) fn unload(&self) {
        self.drop_resident();
    }

    /// Also voids a load that is under way.
    fn drop_resident(&self) {
        *self.meanwhile.lock() = None;
        *self.resident.write() = None;
    }

    /// Applies changes that the catalog, which the caller has locked, has made, each with the passages of its note.
    ///
    /// Cannot fail: on an error the vectors in memory are dropped and loaded again at the next search.
    pub(crate) fn apply(&self, changes: &[NoteChange<'_>], passages: &[Vec<ListedPassage>]) {
        let new = || changes.iter().zip(passages).map(|(change, passages)| NewPassages::new(change, passages));
        if let Some(meanwhile) = &mut *self.meanwhile.lock() {
            meanwhile.notes.extend(new());
            return;
        }
        if self.resident.read().is_none() {
            return;
        }
        if let Err(error) = self.try_apply(&new().collect::<Vec<_>>()) {
            tracing::warn!("cannot read the vectors of changed notes: {error}");
            self.unload();
        }
    }

    fn try_apply(&self, changes: &[NewPassages]) -> Result<(), IndexFileError> {
        let mut writer = self.writer.lock();
        let cache = self.opened(&mut writer)?;
        let found = self.resident.read().as_ref().map(|resident| vectors_of(cache, resident, changes));
        let found = found.transpose()?.unwrap_or_default();
        // Taken out while it changes, so that a panic leaves nothing in memory rather than half of a change.
        let mut slot = self.resident.write();
        if let Some(mut resident) = slot.take() {
            resident.apply(changes);
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
        if let Some(meanwhile) = &mut *self.meanwhile.lock() {
            meanwhile.vectors.push((name.to_owned(), put));
            return Ok(());
        }
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
        // A load that is under way may be of the other dimensions.
        *self.meanwhile.lock() = None;
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
            self.load(catalog, name)?;
        }
    }

    /// Loads a space, unless it has been loaded meanwhile. A load that something has voided leaves nothing in memory.
    fn load(&self, catalog: &Mutex<Catalog>, name: &str) -> Result<(), IndexFileError> {
        let _loading = self.loading.lock();
        if self.resident.read().as_ref().is_some_and(|resident| resident.space() == name) {
            return Ok(());
        }
        self.begin_load(catalog);
        let loaded = self.read_all(catalog, name);
        self.end_load(catalog, loaded)
    }

    /// From here on, every change of the catalog is recorded.
    fn begin_load(&self, catalog: &Mutex<Catalog>) {
        let _catalog = catalog.lock();
        *self.meanwhile.lock() = Some(ChangesDuringLoad::default());
        // First, so that two spaces are never in memory.
        *self.resident.write() = None;
    }

    /// Applies what happened meanwhile.
    fn end_load(
        &self,
        catalog: &Mutex<Catalog>,
        loaded: Result<Resident, IndexFileError>,
    ) -> Result<(), IndexFileError> {
        let _catalog = catalog.lock();
        let mut writer = self.writer.lock();
        let Some(meanwhile) = self.meanwhile.lock().take() else { return Ok(()) };
        let mut loaded = loaded?;
        let found = vectors_of(self.opened(&mut writer)?, &loaded, &meanwhile.notes)?;
        loaded.apply(&meanwhile.notes);
        loaded.put_vectors(&found, 0);
        for (space, put) in &meanwhile.vectors {
            if space != loaded.space() {
                continue;
            }
            if !put.changed.iter().all(|vector| loaded.accepts(vector.coarse.len())) {
                // Its dimensions changed: the caller loads it again.
                return Ok(());
            }
            loaded.put_vectors(&put.changed, put.new);
        }
        *self.resident.write() = Some(loaded);
        Ok(())
    }

    /// The passages of all notes and the vectors of a space, without what changes meanwhile.
    fn read_all(&self, catalog: &Mutex<Catalog>, name: &str) -> Result<Resident, IndexFileError> {
        let mut passages = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            let read = catalog.lock().passages_from(from, PASSAGES_AT_ONCE, &mut passages);
            next = read.map_err(|error| IndexFileError::Catalog(error.into()))?;
        }
        let mut writer = self.writer.lock();
        let cache = self.opened(&mut writer)?;
        // Vectors put before this moment are in the cache.
        if let Some(meanwhile) = &mut *self.meanwhile.lock() {
            meanwhile.vectors.clear();
        }
        let space = cache.space(name)?;
        let cached = space.map_or(Ok(0), |space| cache.count(space))?;
        let mut loaded = Resident::new(name, space.map(|space| space.dimensions), cached);
        for NotePassages { key, modified_ns, passages } in passages {
            loaded.put_note(key, FileStat { modified_ns, size: 0 }.newness(), &passages);
        }
        // A rebuild begins without notes: no vector is unused then.
        if loaded.has_notes() {
            let deleted = cache.delete_unused(space, |hash| loaded.has_text(hash))?;
            tracing::debug!("deleted {deleted} vectors that no note has needed for long");
        }
        if let Some(space) = space {
            cache.load_into(&mut loaded, space)?;
        }
        loaded.add_all_to_levels();
        Ok(loaded)
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
        self.drop_resident();
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
        let mut passages = Vec::new();
        catalog.passages_from(0, usize::MAX, &mut passages)?;
        let used: BTreeSet<_> = passages.iter().flat_map(|note| &note.passages).map(|passage| passage.hash.0).collect();
        self.opened(&mut writer)?.rewrite(&used)?;
        // Their ids may have changed.
        self.drop_resident();
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

/// The vectors that the cache has for new texts of changed notes.
fn vectors_of(
    cache: &Cache,
    resident: &Resident,
    changes: &[NewPassages],
) -> Result<Vec<CachedVector>, IndexFileError> {
    let Some(space) = cache.space(resident.space())?.filter(|_| resident.has_unused()) else { return Ok(Vec::new()) };
    let hashes = changes.iter().flat_map(NewPassages::passages).map(|passage| passage.hash);
    cache.find(space, &hashes.filter(|hash| !resident.has_text(*hash)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use quipu_core::model::NoteKey;
    use quipu_core::ports::{NoteStore, VectorQuery, VectorStore};
    use quipu_core::search::passages;
    use quipu_testkit::store_conformance::note;

    use super::*;
    use crate::EmbeddedStore;

    const SPACE: &str = "model";

    fn put(store: &EmbeddedStore, key: u32, text: &str) -> PassageHash {
        let note = note(&format!("n{key}.md"), text);
        store.apply(&[NoteChange::Put { key: NoteKey(key), note: &note, text }]).unwrap();
        passages(&note, text)[0].hash()
    }

    #[test]
    fn changes_while_vectors_are_loaded_are_not_lost() {
        let store = EmbeddedStore::in_memory().unwrap();
        store.load("parser").unwrap();
        let hashes = [1, 2, 3].map(|key| put(&store, key, &format!("text {key}")));
        let near = vec![1.0, 0.0];
        store.put_vectors(SPACE, Grade::FULL, &[(hashes[0], near.clone()), (hashes[1], near.clone())]).unwrap();
        store.vectors.begin_load(&store.catalog);
        let loaded = store.vectors.read_all(&store.catalog, SPACE);
        store.put_vectors(SPACE, Grade::FULL, &[(hashes[2], near.clone())]).unwrap();
        store.apply(&[NoteChange::Remove { key: NoteKey(1) }]).unwrap();
        put(&store, 4, "new");
        store.vectors.end_load(&store.catalog, loaded).unwrap();
        let is_loaded = store.vectors.resident.read().is_some();
        let hits = store.nearest(&VectorQuery::new(SPACE, &near, 9)).unwrap();
        assert!(is_loaded, "nothing has voided the load");
        assert_eq!(hits.iter().map(|hit| hit.key.0).collect::<Vec<_>>(), [2, 3]);
        let coverage = store.coverage(SPACE).unwrap();
        assert_eq!((coverage.passages, coverage.embedded), (3, 2));
    }

    #[test]
    fn a_load_that_was_voided_leaves_nothing_in_memory() {
        let store = EmbeddedStore::in_memory().unwrap();
        store.load("parser").unwrap();
        let hash = put(&store, 1, "text");
        store.put_vectors(SPACE, Grade::FULL, &[(hash, vec![1.0, 0.0])]).unwrap();
        store.vectors.begin_load(&store.catalog);
        let loaded = store.vectors.read_all(&store.catalog, SPACE);
        store.vectors.unload();
        store.vectors.end_load(&store.catalog, loaded).unwrap();
        assert!(store.vectors.resident.read().is_none());
        assert_eq!(store.coverage(SPACE).unwrap().embedded, 1, "the next question loads them");
    }
}
