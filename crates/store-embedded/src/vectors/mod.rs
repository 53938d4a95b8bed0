//! Vectors of passages: a cache on disk that outlives the index, and the vectors of one space in memory.
//!
//! Memory is filled at the first question, so that a server that is never asked for meaning never pays. Locks are taken in
//! one order: catalog, cache, memory. What is in memory is locked for writing only while rows are copied.

mod vector_store;

mod cache;
mod fixed_point;
mod matrix;
mod nearest;
mod passage_list;
mod resident;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use quipu_core::model::FileStat;
use quipu_core::ports::{Grade, NoteChange, PassageHash};

#[cfg(test)]
pub(crate) use cache::{FORMAT, SCHEMA};
pub(crate) use passage_list::{ListedPassage, brought, decode, encode};

use crate::catalog::{Catalog, CatalogError};
use crate::own_folder::OwnFolder;
use crate::sqlite;
use cache::Cache;
use fixed_point::FixedPoint;
use resident::Resident;

/// The vectors of a store.
pub(crate) struct Vectors {
    /// `None` in memory.
    folder: Option<Arc<OwnFolder>>,
    /// Opened when first needed.
    writer: Mutex<Option<Cache>>,
    /// Likewise; not used in memory, where nothing makes the writer slow.
    reader: Mutex<Option<Cache>>,
    resident: RwLock<Option<Resident>>,
    notices: Mutex<Vec<String>>,
}

/// Why vectors could not be kept or searched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VectorError {
    #[error("vectors of {one} and of {other} dimensions are of no one space")]
    Dimensions { one: usize, other: usize },
    #[error("a vector has no dimensions")]
    Empty,
    #[error("a vector holds a number that is not finite")]
    NotFinite,
    #[error("it has format {0}, and this version of Quipu writes format {format}", format = cache::FORMAT)]
    Format(i64),
    #[error("it {0}")]
    Foreign(String),
    #[error("vector {0} is not whole")]
    Spoiled(i64),
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl VectorError {
    /// Whether starting the cache anew helps.
    fn is_damage(&self) -> bool {
        match self {
            Self::Format(_) | Self::Foreign(_) | Self::Spoiled(_) => true,
            Self::Sql(error) => crate::catalog::is_damage(error),
            Self::Dimensions { .. } | Self::Empty | Self::NotFinite | Self::Catalog(_) => false,
        }
    }
}

impl Vectors {
    /// Those in a folder, or in memory where there is none. Touches nothing yet.
    pub(crate) fn new(folder: Option<Arc<OwnFolder>>) -> Self {
        Self {
            folder,
            writer: Mutex::default(),
            reader: Mutex::default(),
            resident: RwLock::default(),
            notices: Mutex::default(),
        }
    }

    /// What had to be started anew and why, as sentences for the user.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.notices.lock().clone()
    }

    /// Forgets what is in memory, since the catalog was filled anew.
    pub(crate) fn unload(&self) {
        *self.resident.write() = None;
    }

    /// Takes changes of the catalog over, which is held by the caller and has made them, with the passages they brought.
    ///
    /// Cannot fail: what is in memory is given up rather than wrong, and filled again when it is needed.
    pub(crate) fn follow(&self, changes: &[NoteChange<'_>], brought: &[Vec<ListedPassage>]) {
        if self.resident.read().is_none() {
            return;
        }
        if let Err(error) = self.try_follow(changes, brought) {
            tracing::warn!("the vectors of changed notes could not be looked up: {error}");
            self.unload();
        }
    }

    fn try_follow(&self, changes: &[NoteChange<'_>], brought: &[Vec<ListedPassage>]) -> Result<(), VectorError> {
        let mut writer = self.writer.lock();
        let cache = self.opened(&mut writer)?;
        let unknown = |resident: &Resident| -> Option<(String, Vec<PassageHash>)> {
            let hashes = brought.iter().flatten().map(|passage| passage.hash);
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
        // Taken out while it changes: a panic leaves nothing in memory rather than half of a change.
        let mut slot = self.resident.write();
        if let Some(mut resident) = slot.take() {
            resident.follow(changes, brought);
            resident.put_vectors(&found, 0);
            *slot = Some(resident);
        }
        Ok(())
    }

    /// Keeps vectors, on disk first.
    fn put(&self, name: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), VectorError> {
        let Some((_, first)) = vectors.first() else { return Ok(()) };
        if first.is_empty() {
            return Err(VectorError::Empty);
        }
        let fixed = vectors.iter().map(|(hash, vector)| Some((*hash, FixedPoint::new(vector)?)));
        let fixed: Vec<_> = fixed.collect::<Option<_>>().ok_or(VectorError::NotFinite)?;
        let dimensions = first.len();
        if let Some((_, other)) = vectors.iter().find(|(_, vector)| vector.len() != dimensions) {
            return Err(VectorError::Dimensions { one: dimensions, other: other.len() });
        }
        let mut writer = self.writer.lock();
        let put = self.opened(&mut writer)?.put(name, grade, fixed)?;
        // Still with the writer, so that no change of notes comes between. Another space finds them when it is loaded.
        let mut slot = self.resident.write();
        match slot.take() {
            Some(mut resident) if resident.space() == name => {
                // A space whose dimensions change is left out, and filled again when it is needed.
                if resident.takes(dimensions) {
                    resident.put_vectors(&put.changed, put.new);
                    *slot = Some(resident);
                }
            }
            other => *slot = other,
        }
        Ok(())
    }

    /// Has a space go on with vectors of so many dimensions.
    fn turn(&self, name: &str, dimensions: usize) -> Result<(), VectorError> {
        let mut writer = self.writer.lock();
        self.opened(&mut writer)?.turn(name, dimensions)?;
        let mut resident = self.resident.write();
        if resident.as_ref().is_some_and(|resident| resident.space() == name && !resident.takes(dimensions)) {
            *resident = None;
        }
        Ok(())
    }

    /// Works with the vectors of a space in memory, where they are brought if need be, in place of another space's.
    fn with_space<R>(
        &self,
        catalog: &Mutex<Catalog>,
        name: &str,
        work: impl FnOnce(&Resident) -> R,
    ) -> Result<R, VectorError> {
        loop {
            let resident = self.resident.read();
            if let Some(resident) = resident.as_ref().filter(|resident| resident.space() == name) {
                return Ok(work(resident));
            }
            drop(resident);
            self.fill(&catalog.lock(), name)?;
        }
    }

    fn fill(&self, catalog: &Catalog, name: &str) -> Result<(), VectorError> {
        let mut writer = self.writer.lock();
        let cache = self.opened(&mut writer)?;
        let mut resident = self.resident.write();
        if resident.as_ref().is_some_and(|resident| resident.space() == name) {
            return Ok(());
        }
        // First, so that two spaces never lie in memory.
        *resident = None;
        let space = cache.space(name)?;
        let cached = space.map_or(Ok(0), |space| cache.count(space))?;
        let mut filled = Resident::new(name, space.map(|space| space.dimensions), cached);
        catalog.passages(|key, modified_ns, passages| {
            filled.put_note(key, FileStat { modified_ns, size: 0 }.newness(), &passages);
        })?;
        // A rebuild begins without notes: nothing is out of use then.
        if filled.has_notes() {
            let forgotten = cache.tidy(space, |hash| filled.has_text(hash))?;
            tracing::debug!("{forgotten} vectors were out of use for long and are forgotten");
        }
        if let Some(space) = space {
            cache.load_into(&mut filled, space)?;
        }
        filled.file_all();
        *resident = Some(filled);
        Ok(())
    }

    /// Reads from the cache without waiting for its writer.
    fn read<R>(&self, work: impl FnOnce(&Cache) -> Result<R, VectorError>) -> Result<R, VectorError> {
        let mut cache = if self.folder.is_some() { &self.reader } else { &self.writer }.lock();
        work(self.opened(&mut cache)?)
    }

    /// Does what may find the cache damaged; then it is started anew, and the work is done once more.
    fn healing<R>(&self, work: impl Fn() -> Result<R, VectorError>) -> Result<R, VectorError> {
        match work() {
            Err(error) if error.is_damage() => {
                self.start_anew(&error)?;
                work()
            }
            outcome => outcome,
        }
    }

    fn start_anew(&self, error: &VectorError) -> Result<(), VectorError> {
        tracing::error!("the vectors are damaged and started anew: {error}");
        let mut writer = self.writer.lock();
        let mut reader = self.reader.lock();
        (*writer, *reader) = (None, None);
        *self.resident.write() = None;
        if let Some(folder) = &self.folder {
            Cache::remove(folder).map_err(CatalogError::from)?;
        }
        let notice = format!("The vectors were started anew, since they could not be used: {error}.");
        self.notices.lock().push(notice);
        Ok(())
    }

    /// What is wrong with the cache. One that was never made is sound.
    pub(crate) fn check(&self) -> Result<Vec<String>, VectorError> {
        let mut writer = self.writer.lock();
        let is_there = self.folder.as_deref().map_or(Ok(false), Cache::exists).map_err(CatalogError::from)?;
        if writer.is_none() && !is_there {
            return Ok(Vec::new());
        }
        match self.opened(&mut writer).and_then(|cache| cache.check()) {
            Err(error) if error.is_damage() => Ok(vec![format!("The vectors are damaged: {error}.")]),
            outcome => outcome,
        }
    }

    fn opened<'a>(&self, cache: &'a mut Option<Cache>) -> Result<&'a mut Cache, VectorError> {
        sqlite::start_operation();
        Ok(match cache {
            Some(cache) => cache,
            none => none.insert(self.folder.as_deref().map_or_else(Cache::in_memory, Cache::open)?),
        })
    }
}
