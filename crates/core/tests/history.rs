//! Undo and redaction by the history of notes, with other writers in between.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::notes::NoteError;
use quipu_core::parse::TitleRule;
use quipu_core::ports::{
    Clock, FileChange, NamePeriod, NoteAction, NoteHistory, VaultFiles, WriteFilter, WriteNumber, WriteOrigin,
};
use quipu_core::{Knowledge, Parts, RequestKey, Session};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

const SECRET: &str = "the secret\n";
const PLACEHOLDER: &str = "[redacted: a leak]\n";

struct Home {
    vault: Arc<MemVault>,
    clock: Arc<FixedClock>,
}

impl Home {
    fn new(fixture: &str) -> Self {
        let clock = Arc::new(FixedClock::default());
        Self { vault: Arc::new(MemVault::from_fixture(clock.clone(), fixture)), clock }
    }

    fn start(&self) -> Knowledge {
        let knowledge = Knowledge::new(Parts {
            vault: self.vault.clone(),
            store: Arc::new(MemNoteStorage::default().open()),
            clock: self.clock.clone(),
            sources: Arc::new(MemSources::default()),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        });
        knowledge.start(&|_| {}).unwrap();
        knowledge
    }

    fn replace(&self, at: &str, text: &str, action: NoteAction) {
        let expected = ContentHash::of(&self.vault.bytes(at).unwrap());
        let change = FileChange::Replace { path: path(at), expected, bytes: text.into() };
        self.vault.apply_for(&[change], &WriteOrigin { by: "agent", action, ..WriteOrigin::UNKNOWN }).unwrap();
    }

    /// Every kept text.
    fn kept(&self) -> Vec<String> {
        let writes = self.vault.writes(&WriteFilter::default()).unwrap();
        let kept = writes.iter().flat_map(|write| &write.files).filter_map(|file| file.kept.as_ref());
        let bytes = kept.filter_map(|kept| self.vault.kept_bytes(kept).unwrap());
        bytes.map(|bytes| String::from_utf8(bytes).unwrap()).collect()
    }
}

fn path(text: &str) -> VaultPath {
    VaultPath::parse(text).unwrap()
}

#[test]
fn an_undo_names_its_own_write_also_when_others_write_and_it_is_repeated() {
    let home = Home::new("//- a.md\none\n//- b.md\nbee\n");
    let knowledge = home.start();
    home.replace("a.md", "two\n", NoteAction::Edit);
    let (session, key) = (Session::default(), Some(RequestKey::new(home.clock.now_ns(), 7)));
    let undone = knowledge.undo_write(&session, key, WriteNumber(1)).unwrap();
    assert_eq!((undone.by, home.vault.text("a.md").as_deref()), (Some(WriteNumber(2)), Some("one\n")));
    home.replace("b.md", "another client's\n", NoteAction::Edit);
    let repeated = knowledge.undo_write(&session, key, WriteNumber(1)).unwrap();
    assert_eq!(repeated.by, Some(WriteNumber(2)), "not the newest write of anyone");
    assert_eq!(repeated.steps, undone.steps);
    assert_eq!(home.vault.text("b.md").as_deref(), Some("another client's\n"));
}

/// A client reads `recent_changes` page by page; other writes are most of the history.
#[test]
fn undone_writes_are_found_without_reading_the_other_later_writes() {
    let home = Home::new("//- a.md\n0\n//- b.md\nbee\n");
    let knowledge = home.start();
    home.replace("b.md", "bees\n", NoteAction::Edit);
    knowledge.undo_write(&Session::default(), None, WriteNumber(1)).unwrap();
    for number in 1..=200 {
        home.replace("a.md", &format!("{number}\n"), NoteAction::Edit);
    }
    let writes = home.vault.writes(&WriteFilter::default()).unwrap();
    let before = home.vault.writes_returned();
    let mut undone = Vec::new();
    for page in writes.chunks(20) {
        undone.extend(knowledge.undone_by(&page.iter().collect::<Vec<_>>()).unwrap());
    }
    let expected: Vec<_> = writes.iter().map(|it| (it.number.0 == 1).then_some(WriteNumber(2))).collect();
    assert_eq!(undone, expected);
    assert_eq!(home.vault.writes_returned() - before, 1, "the undo, for the page that has the oldest write");
}

/// A history that came with a vault can have hundreds of thousands of moves.
#[test]
fn history_of_a_note_that_moved_back_and_forth_is_read_in_linear_time() {
    const MOVES: usize = 200;
    let home = Home::new("//- a.md\n0\n");
    let move_note = |from: &str, to: &str| {
        let bytes = home.vault.bytes(from).unwrap();
        let change = FileChange::Move { from: path(from), to: path(to), expected: ContentHash::of(&bytes), bytes };
        home.vault.apply_for(&[change], &WriteOrigin { action: NoteAction::Move, ..WriteOrigin::UNKNOWN }).unwrap();
    };
    move_note("a.md", "b.md");
    for number in 0..MOVES {
        let (from, to) = if number % 2 == 0 { ("b.md", "c.md") } else { ("c.md", "b.md") };
        move_note(from, to);
    }
    let knowledge = home.start();
    // By its name, and by its first name, which leads to the present one.
    for id in ["b.md", "a.md"] {
        let before = home.vault.writes_returned();
        let versions = knowledge.note_versions(&Session::default(), id).unwrap().unwrap();
        assert_eq!((versions.path.as_str(), versions.exists), ("b.md", true));
        assert_eq!(versions.versions.len(), MOVES + 2, "{id}");
        assert_eq!(versions.versions.last().unwrap().action, NoteAction::Edit, "before the first move");
        let returned = home.vault.writes_returned() - before;
        assert!(returned <= 40 * MOVES, "{id}: {returned}");
    }
}

#[test]
fn interrupted_redaction_keeps_later_text_and_removes_the_versions() {
    for is_seen in [false, true] {
        let home = Home::new("//- a.md\nthe secret\n");
        drop(home.start());
        home.replace("a.md", PLACEHOLDER, NoteAction::Redact);
        match is_seen {
            // By a client, which leaves an entry in the history.
            true => home.replace("a.md", "a new note\n", NoteAction::Edit),
            false => home.vault.put("a.md", "a new note\n"),
        }
        assert!(home.kept().contains(&SECRET.to_owned()));
        let knowledge = home.start();
        assert_eq!(home.vault.text("a.md").as_deref(), Some("a new note\n"));
        assert!(!home.kept().contains(&SECRET.to_owned()), "{:?}", home.kept());
        let read = knowledge.read(&Session::default(), "a.md").unwrap().expect("it is still indexed");
        assert_eq!(read.text.as_str(), "a new note\n");
    }
}

#[test]
fn an_interrupted_redaction_is_finished_by_the_next_start() {
    let home = Home::new("//- a.md\nthe secret\n//- b.md\nbee\n");
    drop(home.start());
    home.replace("a.md", PLACEHOLDER, NoteAction::Redact);
    home.start();
    assert_eq!(home.vault.paths(), ["b.md"]);
    assert_eq!(home.kept(), [PLACEHOLDER]);
}

#[test]
fn redaction_interrupted_after_removing_versions_is_finished_by_the_next_start() {
    let home = Home::new("//- a.md\nthe secret\n//- b.md\nbee\n");
    drop(home.start());
    home.replace("a.md", PLACEHOLDER, NoteAction::Redact);
    let name = NamePeriod { path: VaultPath::parse("a.md").unwrap(), since_ns: i64::MIN, until_ns: i64::MAX };
    assert_eq!(home.vault.forget(&[name], WriteNumber(1)).unwrap(), 1);
    home.start();
    assert_eq!(home.vault.paths(), ["b.md"]);
    assert_eq!(home.kept(), [PLACEHOLDER]);
    let listed = home.vault.writes(&WriteFilter::default()).unwrap();
    assert_eq!(listed.iter().map(|write| write.number).collect::<Vec<_>>(), [WriteNumber(2)]);
}

#[test]
fn old_text_with_another_hash_is_not_restored() {
    let home = Home::new("//- a.md\none\n");
    let knowledge = home.start();
    home.replace("a.md", "two\n", NoteAction::Edit);
    home.vault.change_kept("one\n", "changed by an editor that had the file open\n");
    let error = knowledge.undo_write(&Session::default(), None, WriteNumber(1)).unwrap_err();
    assert!(matches!(error, NoteError::CannotUndo { .. }), "{error}");
    assert_eq!(home.vault.text("a.md").as_deref(), Some("two\n"));
}
