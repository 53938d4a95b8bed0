//! The index against what happens beside it: files that come and go unannounced, looks that disagree, a store that fails.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::index::FileBatch;
use quipu_core::model::{NoteKey, VaultPath};
use quipu_core::notes::{NewNote, NoteError, NoteUpdate};
use quipu_core::parse::TitleRule;
use quipu_core::ports::{Loaded, NoteChange, NoteStore, RankedText, StoreError, TextHits, TextQuery};
use quipu_core::{Knowledge, Parts, Session};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

/// A vault, what is remembered of it, and a client.
struct IndexFixture {
    vault: Arc<MemVault>,
    storage: MemNoteStorage,
    clock: Arc<FixedClock>,
    knowledge: Knowledge,
    client: Session,
}

impl IndexFixture {
    fn new(fixture: &str) -> Self {
        let clock = Arc::new(FixedClock::default());
        let vault = Arc::new(MemVault::from_fixture(clock.clone(), fixture));
        let storage = MemNoteStorage::default();
        let knowledge = start(&vault, Arc::new(storage.open()), &clock);
        Self { vault, storage, clock, knowledge, client: Session::default() }
    }

    fn restarted(self) -> Self {
        let Self { vault, storage, clock, knowledge, client } = self;
        drop(knowledge);
        let knowledge = start(&vault, Arc::new(storage.open()), &clock);
        Self { vault, storage, clock, knowledge, client }
    }

    fn sync(&self, paths: &[&str]) {
        let paths = paths.iter().map(|path| VaultPath::parse(path).unwrap()).collect();
        self.knowledge.apply(&FileBatch::Paths(paths), &|_| {}).unwrap();
    }

    fn paths(&self) -> Vec<String> {
        let snapshot = self.knowledge.snapshot();
        snapshot.files().map(|key| snapshot.note(key).path.to_string()).collect()
    }

    /// The targets of a note's links.
    fn targets(&self, path: &str) -> Vec<Option<String>> {
        let snapshot = self.knowledge.snapshot();
        let target = |key| snapshot.note(key).path.to_string();
        let key = snapshot.lookup(path)[0];
        snapshot.links(key).map(|link| link.target.map(target)).collect()
    }

    fn rename(&self, id: &str, title: &str, update_links: bool) -> Result<(), NoteError> {
        let update = NoteUpdate { id, title: Some(title), update_links, ..NoteUpdate::default() };
        self.knowledge.update_note(&self.client, None, &update).map(drop)
    }

    fn warnings(&self) -> Vec<String> {
        self.knowledge.warnings(&self.client, &BTreeSet::new())
    }
}

fn prepare(vault: &Arc<MemVault>, store: Arc<dyn NoteStore>, clock: &Arc<FixedClock>) -> Knowledge {
    Knowledge::new(Parts {
        vault: vault.clone(),
        store,
        clock: clock.clone(),
        sources: Arc::new(MemSources::default()),
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    })
}

fn start(vault: &Arc<MemVault>, store: Arc<dyn NoteStore>, clock: &Arc<FixedClock>) -> Knowledge {
    let knowledge = prepare(vault, store, clock);
    knowledge.start(&|_| {}).unwrap();
    knowledge
}

#[test]
fn a_rename_onto_a_note_that_was_deleted_elsewhere_leaves_one_note() {
    let desk = IndexFixture::new("//- a.md\nA\n//- b.md\nB\n//- c.md\n[[b]]\n");
    desk.vault.remove("b.md");
    desk.rename("a.md", "b", false).unwrap();
    assert_eq!(desk.paths(), ["b.md", "c.md"]);
    desk.sync(&["a.md", "b.md"]);
    assert_eq!(desk.paths(), ["b.md", "c.md"]);
    let desk = desk.restarted();
    assert_eq!(desk.paths(), ["b.md", "c.md"]);
}

#[test]
fn a_new_note_takes_the_id_of_one_that_was_deleted_elsewhere() {
    let desk = IndexFixture::new("//- Note.md\nold\n");
    desk.vault.remove("Note.md");
    let new = NewNote { id: "note.md", content: "new", title: None, tags: &[] };
    let read = desk.knowledge.create_note(&desk.client, None, &new).unwrap();
    assert_eq!((read.note().path.as_str(), desk.paths()), ("note.md", vec!["note.md".to_owned()]));
}

#[test]
fn a_folder_and_a_file_in_it_may_be_named_together() {
    let desk = IndexFixture::new("//- d/a.md\nA\n//- d/b.md\nB\n");
    desk.vault.remove("d/a.md");
    desk.vault.put("d/c.md", "C");
    desk.sync(&["d", "d/a.md", "d/b.md", "d/c.md"]);
    desk.vault.put("e.md", "E");
    desk.vault.put("f.md", "F");
    desk.sync(&["e.md", "f.md"]);
    assert_eq!(desk.paths(), ["d/b.md", "d/c.md", "e.md", "f.md"]);
}

#[test]
fn unreadable_file_does_not_block_others() {
    let desk = IndexFixture::new("//- a.md\nA\n");
    desk.vault.put("locked.md", "L");
    desk.vault.put("b.md", "B");
    desk.vault.refuse_reading("locked.md");
    desk.sync(&["locked.md", "b.md"]);
    assert_eq!(desk.paths(), ["a.md", "b.md"]);
    let warnings = desk.warnings();
    assert!(warnings.iter().any(|line| line.starts_with("\"locked.md\": cannot be read")), "{warnings:?}");
}

#[test]
fn a_folder_that_cannot_be_read_loses_no_notes() {
    let desk = IndexFixture::new("//- a.md\n[[b]]\n//- d/b.md\nB\n//- d/e/c.md\nC\n//- de/f.md\nF\n");
    let everything = |desk: &IndexFixture| desk.knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    desk.vault.refuse_reading("d");
    desk.vault.remove("de/f.md");
    assert_eq!(everything(&desk).removed, 1);
    desk.sync(&["d", "d/b.md"]);
    assert_eq!(desk.paths(), ["a.md", "d/b.md", "d/e/c.md"]);
    assert_eq!(desk.targets("a.md"), [Some("d/b.md".to_owned())]);
    let desk = desk.restarted();
    assert_eq!(desk.paths(), ["a.md", "d/b.md", "d/e/c.md"]);
    desk.vault.allow_reading();
    desk.vault.remove("d/e/c.md");
    assert_eq!(everything(&desk).removed, 1);
    assert_eq!(desk.paths(), ["a.md", "d/b.md"]);
}

#[test]
fn full_scan_sees_a_second_edit_in_the_same_tick_with_the_same_size() {
    let desk = IndexFixture::new("//- a.md\none [[x]]\n");
    desk.vault.put("a.md", "two [[y]]\n");
    desk.knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    let snapshot = desk.knowledge.snapshot();
    let key = snapshot.files().next().unwrap();
    assert_eq!(snapshot.note(key).links[0].target, "y");
}

#[test]
fn stored_links_are_reused_and_updated_for_offline_changes() {
    let desk = IndexFixture::new("//- a.md\n[[b]] [[c]]\n//- b.md\n//- n/c.md\n");
    desk.knowledge.store_links().unwrap();
    let desk = desk.restarted();
    assert_eq!(desk.targets("a.md"), [Some("b.md".into()), Some("n/c.md".into())]);

    desk.vault.remove("b.md");
    desk.vault.put("c.md", "nearer");
    let desk = desk.restarted();
    assert_eq!(desk.targets("a.md"), [None, Some("c.md".into())]);
    desk.vault.put("b.md", "again");
    desk.sync(&["b.md"]);
    assert_eq!(desk.targets("a.md"), [Some("b.md".into()), Some("c.md".into())]);
}

#[test]
fn stored_links_of_another_set_of_notes_are_ignored() {
    let other = IndexFixture::new("//- a.md\n[[b]]\n//- b.md\n//- c.md\n");
    other.knowledge.store_links().unwrap();
    let kept = other.storage.links().unwrap();
    for foreign in [kept.clone(), kept[..kept.len() - 4].to_vec(), kept[..9].to_vec(), vec![], vec![1; 100]] {
        let desk = IndexFixture::new("//- a.md\n[[c]]\n//- b.md\n//- c.md\n");
        desk.storage.put_links(&foreign);
        assert_eq!(desk.restarted().targets("a.md"), [Some("c.md".into())]);
    }
}

#[test]
fn damaged_stored_links_are_ignored() {
    let whole = IndexFixture::new("//- a.md\n[[b]] [[none]]\n//- b.md\n[[a]]\n");
    whole.knowledge.store_links().unwrap();
    let links = whole.storage.links().unwrap();
    let number = |place: usize, number: u32| {
        let mut damaged = links.clone();
        let at = links.len() - 4 * place;
        damaged[at..at + 4].copy_from_slice(&number.to_le_bytes());
        damaged
    };
    // The last three numbers are the key of a note, the count of its links, and their only target.
    let damaged = [
        links[..links.len() - 4].to_vec(),
        links[..links.len() - 12].to_vec(),
        [&links[..], &[0; 3]].concat(),
        [&links[..], &links[links.len() - 12..]].concat(),
        number(1, 7),
        number(2, 2),
        number(2, u32::MAX),
        number(3, 7),
    ];
    for damaged in damaged {
        let desk = IndexFixture::new("//- a.md\n[[b]] [[none]]\n//- b.md\n[[a]]\n");
        desk.storage.put_links(&damaged);
        let desk = desk.restarted();
        assert_eq!(
            (desk.targets("a.md"), desk.targets("b.md")),
            (vec![Some("b.md".into()), None], vec![Some("a.md".into())])
        );
    }
}

/// A store that fails on demand.
struct Fragile<Store> {
    store: Store,
    broken: Arc<AtomicBool>,
}

impl<Store: NoteStore> NoteStore for Fragile<Store> {
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError> {
        self.store.load(fingerprint)
    }

    fn apply(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreError> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(StoreError::new("update the index", "the disk is full"));
        }
        self.store.apply(changes)
    }

    fn store_links(&self, links: &[u8]) -> Result<(), StoreError> {
        self.store.store_links(links)
    }

    fn store_lines(&self, segment: u32, bytes: &[u8]) -> Result<(), StoreError> {
        self.store.store_lines(segment, bytes)
    }

    fn lines(&self, segment: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.lines(segment)
    }

    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        self.store.search_text(query)
    }

    fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError> {
        self.store.rank_text(text, limit)
    }

    fn text_lost(&self) -> Result<Vec<NoteKey>, StoreError> {
        self.store.text_lost()
    }

    fn accept_loss(&self) {
        self.store.accept_loss();
    }

    fn scrub(&self) -> Result<(), StoreError> {
        self.store.scrub()
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.store.check()
    }
}

#[test]
fn search_on_a_damaged_text_index_rebuilds_it_and_answers() {
    let mut desk = IndexFixture::new("//- a.md\nanemometer\n//- b.md\nbarometer\n");
    let store = Arc::new(MemNoteStorage::default().open());
    desk.knowledge = start(&desk.vault, store.clone(), &desk.clock);
    let find =
        |words: &str| desk.knowledge.search_text(&TextQuery { text: words.into(), limit: 10, ..TextQuery::default() });
    store.lose_text();
    assert_eq!(find("anemometer").unwrap().hits.len(), 1);
    assert_eq!(find("barometer").unwrap().hits.len(), 1);

    // A note that cannot be read does not keep the others from being found.
    store.lose_text();
    desk.vault.refuse_reading("a.md");
    assert_eq!(find("barometer").unwrap().hits.len(), 1);
}

#[test]
fn changes_that_the_store_refused_are_retried() {
    let broken = Arc::new(AtomicBool::new(false));
    let mut desk = IndexFixture::new("//- a.md\nA\n");
    let store = Fragile { store: MemNoteStorage::default().open(), broken: broken.clone() };
    desk.knowledge = start(&desk.vault, Arc::new(store), &desk.clock);

    broken.store(true, Ordering::SeqCst);
    desk.vault.put("b.md", "anemometer");
    desk.sync(&["b.md"]);
    assert_eq!(desk.paths(), ["a.md", "b.md"], "notes are served from memory");
    assert!(desk.warnings().iter().any(|line| line.starts_with("\".quipu/index")));

    broken.store(false, Ordering::SeqCst);
    desk.vault.put("c.md", "barometer");
    desk.sync(&["c.md"]);
    let found = desk
        .knowledge
        .search_text(&TextQuery { text: "anemometer".into(), limit: 10, ..TextQuery::default() })
        .unwrap();
    assert_eq!(found.hits.len(), 1);
}

#[test]
fn title_change_updates_or_refuses_links_by_title() {
    let desk = IndexFixture::new("//- foo.md\n---\ntitle: Bar\n---\n//- b.md\n[[Bar]]\n");
    // The file stays where it is, and the link would break all the same.
    assert!(matches!(desk.rename("foo.md", "foo", false), Err(NoteError::LinkIntegrity { count: 1, .. })));
    assert_eq!(desk.vault.text("b.md").unwrap(), "[[Bar]]\n");
    desk.rename("foo.md", "foo", true).unwrap();
    assert_eq!(desk.vault.text("b.md").unwrap(), "[[foo]]\n");
}

#[test]
fn rename_to_a_used_name_is_refused_before_links_are_checked() {
    let desk = IndexFixture::new("//- a.md\n//- Taken.md\n//- c.md\n[[a]]\n");
    for update_links in [false, true] {
        let refused = desk.rename("a.md", "taken", update_links);
        assert!(matches!(refused, Err(NoteError::Exists { .. })), "{refused:?}");
    }
}

#[test]
fn a_rename_rewrites_links_to_pages_of_a_site() {
    let desk = IndexFixture::new(
        "//- en/docs/pods.md\n//- en/docs/setup/_index.md\n//- en/docs/a.md\n\
         [p](/docs/pods/#x) [s](/docs/setup/) [r]({{< ref \"pods#y\" >}})\n\
         //- b.md\n<a href=\"{{< relref \"/docs/pods\" >}}\">x</a>\n",
    );
    desk.rename("en/docs/pods.md", "My Pods", true).unwrap();
    desk.rename("en/docs/setup/_index.md", "Start", true).unwrap();
    let expected = "[p](/docs/My%20Pods/#x) [s](/docs/setup/Start/) [r]({{< ref \"My Pods#y\" >}})\n";
    assert_eq!(desk.vault.text("en/docs/a.md").unwrap(), expected);
    assert_eq!(desk.vault.text("b.md").unwrap(), "<a href=\"{{< relref \"/docs/My Pods\" >}}\">x</a>\n");
    assert!(desk.targets("en/docs/a.md").iter().all(Option::is_some));
}

#[test]
fn a_rename_does_not_make_links_to_other_pages_ambiguous() {
    let desk = IndexFixture::new("//- one/docs/x.md\n//- two/docs/y.md\n//- a.md\n[x](/docs/x)\n");
    let refused = desk.rename("two/docs/y.md", "x", true);
    assert!(matches!(refused, Err(NoteError::LinkCaptured { .. })), "{refused:?}");
    assert_eq!(desk.targets("a.md"), [Some("one/docs/x.md".to_owned())]);
}

#[test]
fn links_to_pages_are_resolved_again_when_notes_change() {
    let desk = IndexFixture::new("//- ja/a.md\n[x](/docs/x/)\n//- en/docs/x.md\n");
    let put = |path: &str| {
        desk.vault.put(path, "");
        desk.sync(&[path]);
        desk.targets("ja/a.md")[0].clone()
    };
    assert_eq!(put("ja/docs/x/_index.md").as_deref(), Some("ja/docs/x/_index.md"));
    assert_eq!(put("ja/docs/x.md").as_deref(), Some("ja/docs/x.md"));
    assert_eq!(put("docs/x/README.md").as_deref(), Some("docs/x/README.md"));
    for path in ["docs/x/README.md", "ja/docs/x.md", "ja/docs/x/_index.md"] {
        desk.vault.remove(path);
        desk.sync(&[path]);
    }
    assert_eq!(put("de/docs/x.md"), None);
}

#[test]
fn rename_does_not_rewrite_links_to_another_note() {
    let desk = IndexFixture::new("//- Dup.md\n//- a/old.md\n//- a/c.md\n[[Dup]] [[Old]]\n");
    let refused = desk.rename("a/old.md", "Dup", true);
    assert!(matches!(refused, Err(NoteError::LinkCaptured { .. })), "{refused:?}");
    assert_eq!(desk.vault.paths(), ["Dup.md", "a/c.md", "a/old.md"]);
}

#[test]
fn a_warning_is_given_once_and_when_it_becomes_true() {
    let desk = IndexFixture::new("//- a.md\n[[b]] [[gone]] [[gone]]\n//- b.md\nB\n");
    assert_eq!(desk.warnings(), ["\"a.md\": broken link to \"gone\""]);
    assert!(desk.warnings().is_empty());

    desk.vault.put("a.md", "[[b]] [[gone]] and more\n");
    desk.sync(&["a.md"]);
    assert!(desk.warnings().is_empty(), "known before");

    desk.vault.remove("b.md");
    desk.sync(&["b.md"]);
    assert_eq!(desk.warnings(), ["\"a.md\": broken link to \"b\""]);
}

#[test]
fn repaired_problems_are_not_reported() {
    let desk = IndexFixture::new("//- a.md\n[[gone]] [[later]]\n");
    desk.vault.put("a.md", "[[later]]\n");
    desk.sync(&["a.md"]);
    desk.vault.put("later.md", "here\n");
    desk.sync(&["later.md"]);
    assert!(desk.warnings().is_empty());
}

#[test]
fn clients_that_read_a_note_are_warned_once_of_its_change() {
    let desk = IndexFixture::new("//- a.md\none\n");
    desk.knowledge.read(&desk.client, "a.md").unwrap();
    desk.vault.put("a.md", "two!\n");
    desk.sync(&["a.md"]);
    desk.vault.put("a.md", "three\n");
    desk.sync(&["a.md"]);
    assert_eq!(desk.warnings(), ["\"a.md\": changed since you read it; read it again before writing"]);

    desk.vault.put("a.md", "four!!\n");
    desk.sync(&["a.md"]);
    desk.knowledge.read(&desk.client, "a.md").unwrap();
    assert!(desk.warnings().is_empty(), "it has just been read again");
}

#[test]
fn listener_gets_changed_notes_and_whether_the_list_changed() {
    let desk = IndexFixture::new("//- a.md\n[[b]]\n//- b.md\nb\n//- c.md\nc\n");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    desk.knowledge.on_change(Box::new(move |changes| {
        let mut notes: Vec<String> = changes.notes().map(|id| id.to_string()).collect();
        notes.sort();
        log.lock().push((changes.listing(), notes.join(" ")));
    }));
    let heard = || std::mem::take(&mut *heard.lock());

    desk.vault.put("b.md", "changed\n");
    desk.sync(&["b.md"]);
    assert_eq!(heard(), [(false, "b.md".to_owned())]);
    desk.vault.remove("b.md");
    desk.vault.put("d.md", "d\n");
    desk.sync(&["b.md", "d.md"]);
    assert_eq!(heard(), [(true, "b.md d.md".to_owned())], "a.md lost its link, not its bytes");
    desk.vault.put("c.md", "---\ntitle: Sea\n---\nc\n");
    desk.sync(&["c.md"]);
    assert_eq!(heard(), [(true, "c.md".to_owned())], "a title is part of the list");
    desk.sync(&["c.md"]);
    assert_eq!(heard(), []);
    let new = NewNote { id: "e.md", content: "e", title: None, tags: &[] };
    desk.knowledge.create_note(&desk.client, None, &new).unwrap();
    assert_eq!(heard(), [(true, "e.md".to_owned())], "a write of our own is a change like any other");
}

/// As a server on a database starts: what could not be read is read by the next attempt, and notes that a call names come first.
#[test]
fn start_in_steps_gives_the_same_index() {
    let desk = IndexFixture::new("");
    for number in 0..2000 {
        desk.vault.put(&format!("n{number}.md"), format!("[[n{}]] [[nowhere]]", (number * 7 + 1) % 2000));
    }
    desk.knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    let stepped = prepare(&desk.vault, Arc::new(MemNoteStorage::default().open()), &desk.clock);
    desk.vault.refuse_reading("n0.md");
    assert_eq!(stepped.start_in_steps().unwrap().unreadable, 1);
    assert!(!stepped.wait_ready(Duration::ZERO));
    assert!(stepped.snapshot().lookup("n999.md").is_empty());
    stepped.index_first(&["N999.md", "no path\n", "missing.md"]).unwrap();
    assert_eq!(stepped.snapshot().lookup("n999.md").len(), 1);
    let client = Session::default();
    let edited = NoteUpdate { id: "n999.md", content: Some("edited [[n1]]"), ..NoteUpdate::default() };
    stepped.update_note(&client, None, &edited).unwrap();
    let renamed = NoteUpdate { id: "n999.md", title: Some("other"), ..NoteUpdate::default() };
    let refused = stepped.update_note(&client, None, &renamed);
    assert!(matches!(refused, Err(NoteError::Busy)), "links to it may be in notes that are not read");
    assert!(stepped.warnings(&client, &BTreeSet::new()).iter().all(|warning| !warning.contains("broken link")));

    desk.vault.allow_reading();
    assert_eq!(stepped.start_in_steps().unwrap().total, 2000);
    assert!(stepped.wait_ready(Duration::ZERO));
    desk.knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    let links = |knowledge: &Knowledge| {
        let snapshot = knowledge.snapshot();
        let target = |key: Option<NoteKey>| key.map(|key| snapshot.note(key).path.clone());
        let links = |key| snapshot.links(key).map(|link| target(link.target)).collect::<Vec<_>>();
        snapshot.files().map(|key| (snapshot.note(key).path.clone(), links(key))).collect::<Vec<_>>()
    };
    assert_eq!(links(&stepped), links(&desk.knowledge));
    assert!(stepped.warnings(&client, &BTreeSet::new()).iter().any(|warning| warning.contains("broken link")));
}
