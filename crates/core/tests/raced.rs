//! The same call in two processes: the one that comes second finds it done, and says what the first would have said.

use std::sync::Arc;

use quipu_core::model::{FileStat, VaultPath};
use quipu_core::notes::{NewNote, NoteUpdate};
use quipu_core::parse::TitleRule;
use quipu_core::ports::{FileChange, FileContent, Kept, Listing, VaultError, VaultFiles, WriteError};
use quipu_core::{Knowledge, Parts, RequestKey, Session};
use quipu_testkit::store_conformance::Shelf;
use quipu_testkit::{FixedClock, MemShelf, MemSources, MemVault};

/// A vault in which another process carries out every call between the question whether it was and the writing.
struct Raced(MemVault);

impl VaultFiles for Raced {
    fn list(&self) -> Result<Listing, VaultError> {
        self.0.list()
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
    fn apply_for(
        &self,
        changes: &[FileChange],
        request: Option<RequestKey>,
    ) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.0.apply_for(changes, request)?;
        self.0.apply_for(changes, request)
    }
    fn carried_out(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        self.0.carried_out(request)
    }
    fn kept(&self) -> Result<Vec<Kept>, VaultError> {
        self.0.kept()
    }
    fn restore(&self, kept: &Kept) -> Result<FileStat, WriteError> {
        self.0.restore(kept)
    }
}

#[test]
fn a_call_that_another_process_carried_out_meanwhile_is_answered_as_done() {
    let clock = Arc::new(FixedClock::default());
    let files = MemVault::from_fixture(clock.clone(), "//- a.md\nold\n//- b.md\n[[a]]\n");
    let knowledge = Knowledge::new(Parts {
        vault: Arc::new(Raced(files)),
        store: Arc::new(MemShelf::default().open()),
        clock,
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    knowledge.start(&|_| {}).unwrap();
    let session = Session::default();
    let key = |number| Some(RequestKey(number));

    let new = NewNote { id: "c.md", content: "new", title: None, tags: &[] };
    let made = knowledge.create_note(&session, key(1), &new).unwrap();
    assert_eq!(made.note().path.as_str(), "c.md");
    let update = NoteUpdate { id: "a.md", content: Some("other"), title: None, tags: None, update_links: false };
    let updated = knowledge.update_note(&session, key(2), &update).unwrap();
    assert_eq!(updated.note.note().path.as_str(), "a.md");
    assert!(knowledge.delete_note(&session, key(3), "b.md").unwrap());

    // Without a key nobody can tell it from another's write.
    let update = NoteUpdate { content: Some("third"), ..update };
    assert!(knowledge.update_note(&session, None, &update).is_err());
}
