//! The store: the catalog, the text index and the vectors as one. Every change of notes goes through
//! [`EmbeddedStore::apply`].

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use quipu_core::model::NoteKey;
use quipu_core::ports::{Loaded, NoteChange, NoteStore, RankedText, StoreError, TextHits, TextQuery};
use quipu_core::search::PASSAGES_VERSION;

use crate::catalog::{Catalog, CatalogError};
use crate::folder::{self, OpenError};
use crate::sqlite;
use crate::text::{Mark, TextChange, TextError, TextIndex};
use crate::vectors::{VectorError, Vectors, brought};

/// The default store. See the crate's page for how its two parts stay together.
pub struct EmbeddedStore {
    /// Held through all of `apply`, so that the text index gets lists of changes in the catalog's order.
    pub(crate) catalog: Mutex<Catalog>,
    text: TextIndex,
    pub(crate) vectors: Vectors,
    /// Whether the text index was damaged and started anew while open, so that it lacks notes.
    is_text_lost: AtomicBool,
    notices: Mutex<Vec<String>>,
    /// `None` in memory.
    folder: Option<PathBuf>,
    /// Last, so that the folder is given up when nothing writes to it any more.
    _lock: Option<File>,
}

/// What a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStats {
    /// Notes.
    pub notes: u64,
    /// Sections of all notes.
    pub sections: u64,
    /// Bytes of all files; 0 in memory.
    pub bytes_on_disk: u64,
    /// How many lists of changes were applied since the store was last empty.
    pub seq: u64,
}

impl EmbeddedStore {
    /// Opens the store in a folder, which is made where there is none and belongs to this process until the store is
    /// dropped. What is damaged or of another format is started anew, see [`EmbeddedStore::notices`].
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Ok(Self::of_folder(folder, folder::open(folder, false)?))
    }

    /// Opens the store in a folder and forgets all that it held, but for vectors: those of texts that come back are used
    /// again.
    pub fn open_empty(folder: &Path) -> Result<Self, OpenError> {
        Ok(Self::of_folder(folder, folder::open(folder, true)?))
    }

    fn of_folder(folder: &Path, parts: folder::Folder) -> Self {
        Self {
            catalog: Mutex::new(parts.catalog),
            text: parts.text,
            vectors: Vectors::new(Some(parts.own)),
            is_text_lost: AtomicBool::new(false),
            notices: Mutex::new(parts.notices),
            folder: Some(folder.to_owned()),
            _lock: Some(parts.lock),
        }
    }

    /// An empty store that leaves nothing behind: for a vault that cannot be written or is owned by another process.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self {
            catalog: Mutex::new(Catalog::in_memory().map_err(|error| StoreError::new("opened", error))?),
            text: TextIndex::in_memory().map_err(|error| StoreError::new("opened", error))?,
            vectors: Vectors::new(None),
            is_text_lost: AtomicBool::new(false),
            notices: Mutex::default(),
            folder: None,
            _lock: None,
        })
    }

    /// What had to be started anew and why, as sentences for the user. Complete after the store was loaded, but for
    /// vectors, which are looked at when they are first needed.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = self.notices.lock().clone();
        notices.extend(self.vectors.notices());
        notices
    }

    /// What the store holds, from the catalog.
    pub fn stats(&self) -> Result<StoreStats, StoreError> {
        let catalog = self.catalog();
        let (notes, sections) = catalog.counts().map_err(|error| StoreError::new("counted", error))?;
        let bytes_on_disk = self.folder.as_deref().map_or(Ok(0), folder::bytes_on_disk);
        let bytes_on_disk = bytes_on_disk.map_err(|error| StoreError::new("counted", error))?;
        Ok(StoreStats { notes, sections, bytes_on_disk, seq: catalog.seq() })
    }

    /// Starts the text index anew where it was found damaged. Every note is owed from then on.
    fn replace_damaged_text(&self, catalog: &mut Catalog) -> Result<(), StoreFault> {
        // Two searches may find the same damage.
        let Some(reason) = self.text.damage() else { return Ok(()) };
        tracing::error!("the text index is damaged and started anew: {reason}");
        self.is_text_lost.store(true, Ordering::Release);
        // First, so that whatever happens to the files now, none of the old is taken for whole.
        catalog.settle_debts(None)?;
        self.text.start_anew()?;
        Ok(())
    }

    /// Refuses to look into a text index that lacks notes: finding nothing would be a lie.
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

    fn find(&self, query: &TextQuery) -> Result<TextHits, StoreFault> {
        self.ask_text(|text| text.search(query))
    }

    fn ask_text<Answer>(
        &self,
        question: impl Fn(&TextIndex) -> Result<Answer, TextError>,
    ) -> Result<Answer, StoreFault> {
        self.refuse_lost_text()?;
        match question(&self.text) {
            Err(TextError::Damaged(reason)) => {
                self.replace_damaged_text(&mut self.catalog())?;
                Err(StoreFault::TextDamaged(reason))
            }
            outcome => Ok(outcome?),
        }
    }

    fn update(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreFault> {
        changes.iter().try_for_each(check_ranges)?;
        let passages = brought(changes);
        let mut catalog = self.catalog();
        self.replace_damaged_text(&mut catalog)?;
        let was_there = catalog.apply(changes, &passages, self.text.committed_seq())?;
        self.vectors.follow(changes, &passages);
        let mut text_changes = Vec::with_capacity(changes.len());
        for (change, was_there) in changes.iter().zip(was_there) {
            match *change {
                NoteChange::Put { key, note, text } => {
                    // Forgetting costs a look into every segment, so a first indexing does without.
                    if was_there {
                        text_changes.push(TextChange::Forget(key));
                    }
                    text_changes.push(TextChange::Add(self.text.documents(key, note, text)));
                }
                NoteChange::Remove { key } if was_there => text_changes.push(TextChange::Forget(key)),
                NoteChange::Touch { .. } | NoteChange::Remove { .. } => {}
            }
        }
        if !text_changes.is_empty() {
            self.text.push(text_changes, mark(&catalog));
        }
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
                findings.push(format!("The text index has {found} sections, and the catalog {expected}."));
            }
        }
        Ok(findings)
    }

    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        sqlite::start_operation();
        // A panic inside a transaction rolls it back, so the catalog is whole after it.
        self.catalog.lock()
    }

    /// Everything in the catalog, and the text index brought to agree with it.
    fn load_catalog(&self, catalog: &mut Catalog, fingerprint: &str) -> Result<Loaded, CatalogError> {
        catalog.keep_only(&format!("{fingerprint}, passages {PASSAGES_VERSION}"))?;
        self.vectors.unload();
        // A text index of another epoch holds other notes. One that is ahead has seen what a power cut took from the
        // catalog.
        let text_seq = self
            .text
            .committed()
            .filter(|mark| mark.epoch == catalog.epoch() && mark.seq <= catalog.seq())
            .map(|mark| mark.seq);
        // The old text of a note whose new text was lost must not be found either.
        let outdated: Vec<_> = catalog.settle_debts(text_seq)?.into_iter().map(TextChange::Forget).collect();
        let outdated = if text_seq.is_none() { vec![TextChange::Clear] } else { outdated };
        if !outdated.is_empty() {
            self.text.push(outdated, mark(catalog));
        }
        let rows = catalog.load()?;
        Ok(Loaded { notes: rows.notes, text_missing: rows.owed, links: catalog.links()? })
    }
}

impl NoteStore for EmbeddedStore {
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError> {
        let mut catalog = self.catalog();
        let outcome = match self.load_catalog(&mut catalog, fingerprint) {
            Err(error) if error.is_damage() => {
                let notice = format!("The index was started anew, since its catalog could not be read: {error}.");
                self.notices.lock().push(notice);
                catalog.recreate().and_then(|()| self.load_catalog(&mut catalog, fingerprint))
            }
            outcome => outcome,
        };
        outcome.map_err(|error| StoreError::new("loaded", error))
    }

    fn apply(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        // The caller goes on without the store, and its warning has no reason in it.
        let outcome =
            self.update(changes).inspect_err(|error| tracing::warn!("the index could not be updated: {error}"));
        outcome.map_err(|error| StoreError::new("updated", error))
    }

    fn keep_links(&self, links: &[u8]) -> Result<(), StoreError> {
        self.catalog().keep_links(links).map_err(|error| StoreError::new("updated", error))
    }

    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        self.find(query).map_err(|error| StoreError::new("searched", error))
    }

    fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError> {
        self.ask_text(|index| index.rank(text, limit)).map_err(|error| StoreError::new("searched", error))
    }

    fn text_lost(&self) -> Result<Vec<NoteKey>, StoreError> {
        if !self.is_text_lost.load(Ordering::Acquire) {
            return Ok(Vec::new());
        }
        self.catalog().owed().map_err(|error| StoreError::new("loaded", error))
    }

    fn accept_loss(&self) {
        self.is_text_lost.store(false, Ordering::Release);
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.findings().map_err(|error| StoreError::new("checked", error))
    }
}

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
enum StoreFault {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error(transparent)]
    Vectors(#[from] VectorError),
    #[error(
        "the text index is damaged and was started anew; a running server fills it again, and so does \
         `quipu index --rebuild`: {0}"
    )]
    TextDamaged(String),
    #[error(
        "the text index was damaged and lacks {owed} notes; a running server fills it again, and so does \
         `quipu index --rebuild`"
    )]
    TextLost { owed: usize },
    #[error("section {section} of {path} (key {key}) lies outside its text")]
    Range { section: usize, path: String, key: u32 },
}

/// How far the text index has come once it has all that was pushed.
fn mark(catalog: &Catalog) -> Mark {
    Mark { epoch: catalog.epoch().to_owned(), seq: catalog.seq() }
}

/// Refuses a note whose sections are not of the text it came with.
fn check_ranges(change: &NoteChange<'_>) -> Result<(), StoreFault> {
    let NoteChange::Put { key: NoteKey(key), note, text } = *change else { return Ok(()) };
    match note.sections.iter().position(|section| text.get(section.text_start..section.range.end).is_none()) {
        Some(section) => Err(StoreFault::Range { section, path: note.path.to_string(), key }),
        None => Ok(()),
    }
}
