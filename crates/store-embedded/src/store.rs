//! The store: the catalog, the text index and the vectors together. Every change of notes goes through
//! [`EmbeddedStore::apply`].

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use quipu_core::model::NoteKey;
use quipu_core::ports::{Loaded, NoteChange, NoteStore, RankedText, StoreError, TextHits, TextQuery};
use quipu_core::search::PASSAGES_VERSION;

use crate::catalog::Catalog;
use crate::folder::{self, StoreOpenError};
use crate::index_database::IndexFileError;
use crate::lines::LineFiles;
use crate::sqlite;
use crate::text::{IndexPosition, SectionIndex, TextChange, TextError};
use crate::vectors::{Vectors, passages_of};

/// The default store. The crate's documentation says how its parts stay consistent.
pub struct EmbeddedStore {
    /// Locked during all of `apply`, so that the text index gets lists of changes in the catalog's order.
    pub(crate) catalog: Mutex<Catalog>,
    text: SectionIndex,
    lines: LineFiles,
    pub(crate) vectors: Vectors,
    /// Whether the text index was damaged and reset while open, so that texts are missing from it.
    is_text_lost: AtomicBool,
    notices: Mutex<Vec<String>>,
    /// `None` in memory.
    folder: Option<PathBuf>,
    /// The last field, so that the lock is released when nothing writes.
    _lock: Option<File>,
}

/// The size of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    pub notes: u64,
    /// Sections of all notes.
    pub sections: u64,
    /// Bytes of all files; 0 in memory.
    pub bytes_on_disk: u64,
    /// The number of lists of changes applied since the store was empty.
    pub seq: u64,
}

impl EmbeddedStore {
    /// Opens or creates the store in a folder, which belongs to this process until the store is dropped. Parts that are
    /// damaged or of another format are rebuilt, see [`EmbeddedStore::notices`].
    pub fn open(folder: &Path) -> Result<Self, StoreOpenError> {
        Self::open_for_notes(folder, &|| u64::MAX)
    }

    /// Like [`EmbeddedStore::open`], for notes whose bytes can be counted, which takes time. An index that is far larger than
    /// they can need did not come from them, and is rebuilt: it would be read into memory.
    pub fn open_for_notes(folder: &Path, notes_bytes: &dyn Fn() -> u64) -> Result<Self, StoreOpenError> {
        Ok(Self::of_folder(folder, folder::open(folder, Some(notes_bytes))?))
    }

    /// Opens the store in a folder and deletes its content, except vectors: texts that come back use them again.
    pub fn open_empty(folder: &Path) -> Result<Self, StoreOpenError> {
        Ok(Self::of_folder(folder, folder::open(folder, None)?))
    }

    fn of_folder(folder: &Path, parts: folder::OpenedFolder) -> Self {
        Self {
            catalog: Mutex::new(parts.catalog),
            text: parts.text,
            lines: parts.lines,
            vectors: Vectors::new(Some(parts.own)),
            is_text_lost: AtomicBool::new(false),
            notices: Mutex::new(parts.notices),
            folder: Some(folder.to_owned()),
            _lock: Some(parts.lock),
        }
    }

    /// An empty store without files, for a vault that is read-only or owned by another process.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self {
            catalog: Mutex::new(Catalog::in_memory().map_err(|error| StoreError::new("open the index", error))?),
            text: SectionIndex::in_memory().map_err(|error| StoreError::new("open the index", error))?,
            lines: LineFiles::in_memory(),
            vectors: Vectors::new(None),
            is_text_lost: AtomicBool::new(false),
            notices: Mutex::default(),
            folder: None,
            _lock: None,
        })
    }

    /// What was rebuilt and why, as sentences for the user. Complete once the store is loaded, except for vectors, which are
    /// opened at the first search by meaning.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = self.notices.lock().clone();
        notices.extend(self.vectors.notices());
        notices
    }

    /// The size of the store.
    pub fn stats(&self) -> Result<StoreStats, StoreError> {
        let catalog = self.catalog();
        let (notes, sections) = catalog.counts().map_err(|error| StoreError::new("measure the index", error))?;
        let bytes_on_disk = self.folder.as_deref().map_or(Ok(0), folder::bytes_on_disk);
        let bytes_on_disk = bytes_on_disk.map_err(|error| StoreError::new("measure the index", error))?;
        Ok(StoreStats { notes, sections, bytes_on_disk, seq: catalog.seq() })
    }

    /// Resets the text index if it was found damaged. The text of every note is missing then.
    fn reset_damaged_text(&self, catalog: &mut Catalog) -> Result<(), StoreFault> {
        // Another search may have found the same damage and reset it.
        let Some(reason) = self.text.damage() else { return Ok(()) };
        tracing::error!("the text index is damaged: {reason}; it is rebuilt");
        self.is_text_lost.store(true, Ordering::Release);
        // First, so that the old files are not trusted, whatever happens to them now.
        catalog.mark_missing_texts(None)?;
        self.text.reset()?;
        Ok(())
    }

    /// Fails while texts are missing from the text index: finding nothing would be wrong.
    fn refuse_lost_text(&self) -> Result<(), StoreFault> {
        if self.is_text_lost.load(Ordering::Acquire) {
            let owed = self.catalog().owed()?.len();
            if owed > 0 {
                return Err(StoreFault::TextLost { owed });
            }
            self.is_text_lost.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn ask_text<Answer>(
        &self,
        question: impl Fn(&SectionIndex) -> Result<Answer, TextError>,
    ) -> Result<Answer, StoreFault> {
        self.refuse_lost_text()?;
        match question(&self.text) {
            Err(TextError::Damaged(reason)) => {
                self.reset_damaged_text(&mut self.catalog())?;
                Err(StoreFault::TextDamaged(reason))
            }
            outcome => Ok(outcome?),
        }
    }

    fn update(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreFault> {
        changes.iter().try_for_each(check_ranges)?;
        let passages = passages_of(changes);
        let mut catalog = self.catalog();
        self.reset_damaged_text(&mut catalog)?;
        let was_there = catalog.apply(changes, &passages, self.text.committed_seq())?;
        self.vectors.apply(changes, &passages);
        let mut text_changes = Vec::with_capacity(changes.len());
        for (change, was_there) in changes.iter().zip(was_there) {
            match *change {
                NoteChange::Put { key, note, text } => {
                    // A deletion reads every segment, so a first indexing does without.
                    if was_there {
                        text_changes.push(TextChange::Delete(key));
                    }
                    text_changes.push(TextChange::Add(self.text.documents(key, note, text)));
                }
                NoteChange::Remove { key } if was_there => text_changes.push(TextChange::Delete(key)),
                NoteChange::Touch { .. } | NoteChange::Remove { .. } => {}
            }
        }
        if !text_changes.is_empty() {
            self.text.push(text_changes, position(&catalog));
        }
        Ok(())
    }

    /// The text index is emptied: its segments have the words of deleted notes until a merge.
    fn rewrite(&self) -> Result<(), StoreFault> {
        let mut catalog = self.catalog();
        self.lines.clear()?;
        self.is_text_lost.store(true, Ordering::Release);
        catalog.mark_missing_texts(None)?;
        self.text.reset()?;
        catalog.rewrite()?;
        self.vectors.rewrite(&catalog)?;
        Ok(())
    }

    fn findings(&self) -> Result<Vec<String>, StoreFault> {
        let catalog = self.catalog();
        let mut findings = catalog.check()?;
        findings.extend(self.text.check()?);
        findings.extend(self.vectors.check()?);
        if findings.is_empty() {
            let (_, expected) = catalog.counts()?;
            let found = self.text.sections()?;
            if found != expected {
                findings.push(format!("The text index has {found} sections, but the catalog has {expected}."));
            }
        }
        Ok(findings)
    }

    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        sqlite::start_operation();
        // A panic inside a transaction rolls it back, so the catalog is always consistent.
        self.catalog.lock()
    }

    /// Loads the catalog and makes the text index agree with it.
    fn load_catalog(&self, catalog: &mut Catalog, fingerprint: &str) -> Result<Loaded, IndexFileError> {
        catalog.keep_only(&format!("{fingerprint}, passages {PASSAGES_VERSION}"))?;
        self.vectors.unload();
        // A text index of another epoch has other notes. One that is ahead has changes that the catalog lost in a power cut.
        let text_seq =
            self.text.committed().filter(|at| at.epoch == catalog.epoch() && at.seq <= catalog.seq()).map(|at| at.seq);
        // The old text of a note whose new text is missing must not be found either.
        let outdated: Vec<_> = catalog.mark_missing_texts(text_seq)?.into_iter().map(TextChange::Delete).collect();
        let outdated = if text_seq.is_none() { vec![TextChange::Clear] } else { outdated };
        if !outdated.is_empty() {
            self.text.push(outdated, position(catalog));
        }
        let started = Instant::now();
        let rows = catalog.load()?;
        tracing::debug!(notes = rows.notes.len(), took = ?started.elapsed(), "loaded the catalog");
        Ok(Loaded { notes: rows.notes, text_missing: rows.owed, links: catalog.links()? })
    }
}

impl NoteStore for EmbeddedStore {
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError> {
        let mut catalog = self.catalog();
        let outcome = match self.load_catalog(&mut catalog, fingerprint) {
            Err(error) if error.is_damage() => {
                let notice = format!("Cannot read the catalog of the index: {error}; the index is rebuilt.");
                self.notices.lock().push(notice);
                catalog.recreate().and_then(|()| self.load_catalog(&mut catalog, fingerprint))
            }
            outcome => outcome,
        };
        outcome.map_err(|error| StoreError::new("load the index", error))
    }

    fn apply(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        // The caller continues without the store, and its warning has no cause in it.
        let outcome = self.update(changes).inspect_err(|error| tracing::warn!("cannot update the index: {error}"));
        outcome.map_err(|error| StoreError::new("update the index", error))
    }

    fn store_links(&self, links: &[u8]) -> Result<(), StoreError> {
        self.catalog().store_links(links).map_err(|error| StoreError::new("update the index", error))
    }

    fn store_lines(&self, segment: u32, bytes: &[u8]) -> Result<(), StoreError> {
        self.lines.store(segment, bytes).map_err(|error| StoreError::new("update the index", error))
    }

    fn lines(&self, segment: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.lines.read(segment).map_err(|error| StoreError::new("load the index", error))
    }

    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        self.ask_text(|index| index.search(query)).map_err(|error| StoreError::new("search the index", error))
    }

    fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError> {
        self.ask_text(|index| index.rank(text, limit)).map_err(|error| StoreError::new("search the index", error))
    }

    fn text_lost(&self) -> Result<Vec<NoteKey>, StoreError> {
        if !self.is_text_lost.load(Ordering::Acquire) {
            return Ok(Vec::new());
        }
        self.catalog().owed().map_err(|error| StoreError::new("load the index", error))
    }

    fn accept_loss(&self) {
        self.is_text_lost.store(false, Ordering::Release);
    }

    fn scrub(&self) -> Result<(), StoreError> {
        self.rewrite().map_err(|error| StoreError::new("rewrite the index", error))
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.findings().map_err(|error| StoreError::new("check the index", error))
    }
}

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
enum StoreFault {
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error(transparent)]
    Index(#[from] IndexFileError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("the text index is damaged: {0}; a running server rebuilds it, and so does `quipu index --rebuild`")]
    TextDamaged(String),
    #[error(
        "{owed} notes are missing from the text index, which was damaged; a running server adds them, and so does \
         `quipu index --rebuild`"
    )]
    TextLost { owed: usize },
    #[error("section {section} of {path} (key {key}) is outside its text")]
    Range { section: usize, path: String, key: u32 },
}

/// The position of the text index once it has everything that was pushed.
fn position(catalog: &Catalog) -> IndexPosition {
    IndexPosition { epoch: catalog.epoch().to_owned(), seq: catalog.seq() }
}

/// Fails if a section of a note is outside the note's text.
fn check_ranges(change: &NoteChange<'_>) -> Result<(), StoreFault> {
    let NoteChange::Put { key: NoteKey(key), note, text } = *change else { return Ok(()) };
    match note.sections.iter().position(|section| text.get(section.text_start..section.range.end).is_none()) {
        Some(section) => Err(StoreFault::Range { section, path: note.path.to_string(), key }),
        None => Ok(()),
    }
}
