//! One call in two processes: the one that comes second finds it done, and says what the first would have said.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use quipu_core::index::FileBatch;
use quipu_core::model::{FileStat, VaultPath};
use quipu_core::notes::{NewNote, NoteUpdate};
use quipu_core::parse::TitleRule;
use quipu_core::ports::{
    FileChange, FileContent, Listing, LoggedFile, LoggedWrite, NamePeriod, NoteHistory, TrashedFile, VaultError,
    VaultFiles, WriteError, WriteFilter, WriteNumber, WriteOrigin,
};
use quipu_core::{Knowledge, Parts, RequestKey, Session};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

/// A vault in which another process applies every call after the check for an applied request and before the write.
struct Raced(MemVault, Option<AfterListing>);

/// What another process does after the vault was listed, before the listing is used.
type AfterListing = Box<dyn Fn(&MemVault) + Send + Sync>;

impl VaultFiles for Raced {
    fn list(&self) -> Result<Listing, VaultError> {
        let listing = self.0.list();
        if let Some(after) = &self.1 {
            after(&self.0);
        }
        listing
    }
    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        self.0.list_below(path)
    }
    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        self.0.read(path)
    }
    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        self.0.find_any_case(path)
    }
    fn apply_for(&self, changes: &[FileChange], origin: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.0.apply_for(changes, origin)?;
        self.0.apply_for(changes, origin)
    }
    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        self.0.applied_request(request)
    }
    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        self.0.trashed()
    }
    fn restore(&self, kept: &TrashedFile) -> Result<FileStat, WriteError> {
        self.0.restore(kept)
    }
}

impl NoteHistory for Raced {
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError> {
        self.0.writes(filter)
    }
    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError> {
        self.0.kept_bytes(kept)
    }
    fn record_outside(&self, files: &[LoggedFile]) -> Result<(), WriteError> {
        self.0.record_outside(files)
    }
    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError> {
        self.0.forget(names, unfinished)
    }
    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError> {
        self.0.forget_write(number)
    }
}

/// Opens what is known of a vault's notes.
fn knowledge_of(vault: Arc<dyn VaultFiles>, clock: Arc<FixedClock>) -> Knowledge {
    let knowledge = Knowledge::new(Parts {
        vault,
        store: Arc::new(MemNoteStorage::default().open()),
        clock,
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    knowledge.start(&|_| {}).unwrap();
    knowledge
}

#[test]
fn call_already_applied_by_another_process_is_answered_as_done() {
    let clock = Arc::new(FixedClock::default());
    let files = MemVault::from_fixture(clock.clone(), "//- a.md\nold\n//- b.md\n[[a]]\n");
    let knowledge = knowledge_of(Arc::new(Raced(files, None)), clock);
    let session = Session::default();
    let key = |number| Some(RequestKey(number));

    let new = NewNote { id: "c.md", content: "new", title: None, tags: &[] };
    let made = knowledge.create_note(&session, key(1), &new).unwrap();
    assert_eq!(made.note().path.as_str(), "c.md");
    let update = NoteUpdate { id: "a.md", content: Some("other"), ..NoteUpdate::default() };
    let updated = knowledge.update_note(&session, key(2), &update).unwrap();
    assert_eq!(updated.note.note().path.as_str(), "a.md");
    assert!(knowledge.delete_note(&session, key(3), "b.md").unwrap().is_some());

    // Without a key it cannot be distinguished from the write of another client.
    let update = NoteUpdate { content: Some("third"), ..update };
    assert!(knowledge.update_note(&session, None, &update).is_err());
}

/// A vault in which another process applies a delete at a given access to the note, and in which applied requests cannot be
/// read from then on.
struct Overtaken {
    files: MemVault,
    request: RequestKey,
    /// The other process deletes the note at the next look at it.
    is_armed: AtomicBool,
    /// The folder of the requests cannot be read.
    is_unreadable: AtomicBool,
}

impl VaultFiles for Overtaken {
    fn list(&self) -> Result<Listing, VaultError> {
        self.files.list()
    }
    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        self.files.list_below(path)
    }
    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        if self.is_armed.swap(false, Relaxed)
            && let Some(content) = self.files.read(path)?
        {
            let delete = FileChange::Delete { path: path.clone(), expected: content.hash };
            self.files.apply_for(&[delete], &WriteOrigin::retried(self.request)).unwrap();
        }
        self.files.read(path)
    }
    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        self.files.find_any_case(path)
    }
    fn apply_for(&self, changes: &[FileChange], _: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.is_unreadable.store(true, Relaxed);
        Err(WriteError::Write { path: changes[0].path().to_string(), source: io::ErrorKind::StorageFull.into() })
    }
    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        if self.is_unreadable.load(Relaxed) {
            let source = io::ErrorKind::PermissionDenied.into();
            return Err(VaultError::Read { path: ".quipu".to_owned(), source });
        }
        self.files.applied_request(request)
    }
    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        self.files.trashed()
    }
    fn restore(&self, kept: &TrashedFile) -> Result<FileStat, WriteError> {
        self.files.restore(kept)
    }
}

impl NoteHistory for Overtaken {
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError> {
        self.files.writes(filter)
    }
    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError> {
        self.files.kept_bytes(kept)
    }
    fn record_outside(&self, files: &[LoggedFile]) -> Result<(), WriteError> {
        self.files.record_outside(files)
    }
    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError> {
        self.files.forget(names, unfinished)
    }
    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError> {
        self.files.forget_write(number)
    }
}

fn overtaken() -> (Arc<FixedClock>, Overtaken) {
    let clock = Arc::new(FixedClock::default());
    let files = MemVault::from_fixture(clock.clone(), "//- a.md\nold\n//- b.md\n[[a]]\n");
    let (is_armed, is_unreadable) = (AtomicBool::new(false), AtomicBool::new(false));
    (clock, Overtaken { files, request: RequestKey(1), is_armed, is_unreadable })
}

#[test]
fn delete_already_applied_by_another_process_is_answered_as_done() {
    let (clock, vault) = overtaken();
    let vault = Arc::new(vault);
    let knowledge = knowledge_of(vault.clone(), clock);
    vault.is_armed.store(true, Relaxed);
    assert!(knowledge.delete_note(&Session::default(), Some(RequestKey(1)), "b.md").unwrap().is_some());
    assert!(knowledge.delete_note(&Session::default(), Some(RequestKey(1)), "b.md").unwrap().is_some(), "and again");
    assert_eq!(knowledge.delete_note(&Session::default(), Some(RequestKey(2)), "b.md").unwrap(), None, "another call");
}

#[test]
fn failed_write_is_reported_if_past_requests_cannot_be_read() {
    let (clock, vault) = overtaken();
    let knowledge = knowledge_of(Arc::new(vault), clock);
    let error = knowledge.delete_note(&Session::default(), Some(RequestKey(3)), "b.md").unwrap_err();
    assert!(error.to_string().contains("no storage space"), "{error}");
}

#[test]
fn a_file_saved_while_the_vault_is_listed_is_indexed_at_once_and_kept() {
    let clock = Arc::new(FixedClock::default());
    let files = MemVault::from_fixture(clock.clone(), "//- old.md\nold\n//- gone.md\ngone\n");
    // Times of younger files are not trusted.
    clock.advance(60_000_000_000);
    let knowledge: Arc<OnceLock<Weak<Knowledge>>> = Arc::default();
    let served = knowledge.clone();
    let save = move |files: &MemVault| {
        // Not during the start.
        let Some(knowledge) = served.get().and_then(Weak::upgrade) else { return };
        files.put("new.md", "new\n");
        let path = VaultPath::parse("new.md").unwrap();
        knowledge.apply(&FileBatch::Paths(vec![path]), &|_| {}).unwrap();
        if files.text("gone.md").is_some() {
            files.remove("gone.md");
        }
    };
    let open = Arc::new(knowledge_of(Arc::new(Raced(files, Some(Box::new(save)))), clock));
    knowledge.set(Arc::downgrade(&open)).unwrap();
    // The listing has no `new.md`, and still has `gone.md`.
    open.apply(&FileBatch::All, &|_| {}).unwrap();
    let ids = || -> Vec<String> {
        let snapshot = open.snapshot();
        snapshot.files().map(|key| snapshot.note(key).id.to_string()).collect()
    };
    assert_eq!(ids(), ["gone.md", "new.md", "old.md"]);
    open.apply(&FileBatch::All, &|_| {}).unwrap();
    assert_eq!(ids(), ["new.md", "old.md"]);
}
