//! Links from memory to notes, through everything that can happen to either.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::index::FileBatch;
use quipu_core::memory::{
    Creation, DetailPart, DuplicateRule, EntityDraft, EntityId, EntityTypes, Memory, MemoryParts, ObservationId,
};
use quipu_core::notes::{NoteError, NoteUpdate};
use quipu_core::parse::TitleRule;
use quipu_core::ports::{Author, ChangeNumber, EntityUpdate};
use quipu_core::{Knowledge, Parts, Session};
use quipu_testkit::memory_conformance::{MemoryStorage, author};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemMemoryStorage, MemNoteStorage, MemSources, MemVault};

/// Everything of an entity.
const ALL: DetailPart = DetailPart { observations_offset: 0, relations_offset: 0, limit: 1000 };

/// A vault and a memory, open together.
struct BridgeFixture {
    clock: Arc<FixedClock>,
    vault: Arc<MemVault>,
    index: MemNoteStorage,
    remembered: MemMemoryStorage,
    knowledge: Knowledge,
    memory: Arc<Memory>,
    client: Session,
}

impl BridgeFixture {
    fn new(fixture: &str) -> Self {
        let clock = Arc::new(FixedClock::default());
        let vault = Arc::new(MemVault::from_fixture(clock.clone(), fixture));
        Self::open(clock, vault, MemNoteStorage::default(), MemMemoryStorage::default())
    }

    fn open(clock: Arc<FixedClock>, vault: Arc<MemVault>, index: MemNoteStorage, remembered: MemMemoryStorage) -> Self {
        clock.advance(60_000_000_000);
        let memory = Arc::new(Memory::new(MemoryParts {
            store: Arc::new(remembered.open()),
            embedder: None,
            clock: clock.clone(),
            types: EntityTypes::default(),
            rule: DuplicateRule::default(),
        }));
        let knowledge = Knowledge::new(Parts {
            vault: vault.clone(),
            store: Arc::new(index.open()),
            clock: clock.clone(),
            sources: Arc::new(MemSources::default()),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        });
        let knowledge = knowledge.with_memory(memory.clone());
        knowledge.start(&|_| {}).unwrap();
        Self { clock, vault, index, remembered, knowledge, memory, client: Session::default() }
    }

    fn restarted(self) -> Self {
        self.restarted_after(|_| {})
    }

    /// Closed, something done to the files meanwhile, and opened again.
    fn restarted_after(self, meanwhile: impl FnOnce(&MemVault)) -> Self {
        let Self { clock, vault, index, remembered, knowledge, memory, client: _ } = self;
        drop((knowledge, memory));
        meanwhile(&vault);
        Self::open(clock, vault, index, remembered)
    }

    fn author(&self) -> Author {
        author(1)
    }

    fn entity(&self, name: &str, description: &str, observations: &[&str]) -> EntityId {
        let draft = EntityDraft {
            name: name.into(),
            entity_type: "Thing".into(),
            description: Some(description.into()),
            observations: observations.iter().map(|&text| text.to_owned()).collect(),
            ..EntityDraft::default()
        };
        match self.memory.create_entity(draft, true, &self.author()).unwrap() {
            Creation::Created(entity) => entity.id,
            other => panic!("{other:?}"),
        }
    }

    /// The paths of the notes an entity speaks of, each with the link that leads there.
    fn notes(&self, entity: EntityId) -> Vec<(String, String)> {
        let detail = self.memory.entity_detail(entity, ALL).unwrap();
        let Some(linked_notes) = self.knowledge.linked_notes(&detail).unwrap() else { return Vec::new() };
        let shown = |(key, link)| (linked_notes.snapshot.note(key).path.to_string(), link);
        linked_notes.notes.into_iter().map(shown).collect()
    }

    /// The entities that speak of the note with an id.
    fn linking_entities(&self, id: &str) -> Vec<i64> {
        let snapshot = self.knowledge.snapshot();
        let key = snapshot.lookup(id)[0];
        let (entities, count) = self.knowledge.linking_entities(&snapshot, key, 100).unwrap();
        assert_eq!(entities.len(), count);
        entities.into_iter().map(|entity| entity.id.0).collect()
    }

    fn rename(&self, id: &str, title: &str, update_links: bool) -> Result<(), NoteError> {
        let update = NoteUpdate { id, title: Some(title), update_links, ..NoteUpdate::default() };
        self.knowledge.update_note(&self.client, None, &update).map(drop)
    }

    fn move_file(&self, from: &str, to: &str) {
        moved(&self.vault, from, to);
        self.sync();
    }

    fn sync(&self) {
        self.knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
    }
}

fn moved(vault: &MemVault, from: &str, to: &str) {
    let text = vault.text(from).unwrap();
    vault.remove(from);
    vault.put(to, text);
}

fn to(path: &str, link: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), link.to_owned())]
}

#[test]
fn link_resolves_as_in_a_note_at_the_vault_root() {
    let desk = BridgeFixture::new("//- deep/Plan.md\n---\naliases: [roadmap]\n---\n//- other.md\n//- a b.md\n");
    let id = desk.entity(
        "Ada",
        "Owns [[plan#Goals|the plan]]",
        &["See [[ROADMAP]] and ![[a-b]]", "`[[other]]` in code, [x](other.md), [[nowhere]]", "---\nx: [[other]]\n---"],
    );
    let notes = desk.notes(id);
    let expected = [("deep/Plan.md", "plan"), ("a b.md", "a-b"), ("other.md", "other")];
    assert_eq!(notes, expected.map(|(path, link)| (path.to_owned(), link.to_owned())));
    assert_eq!(desk.linking_entities("deep/plan.md"), [1]);
    assert!(desk.notes(desk.entity("Bea", "none", &[])).is_empty());
}

#[test]
fn broken_link_resolves_when_its_note_appears() {
    let desk = BridgeFixture::new("");
    let id = desk.entity("Ada", "", &["[[plan]]"]);
    assert!(desk.notes(id).is_empty());
    desk.vault.put("x/plan.md", "text");
    desk.sync();
    assert_eq!(desk.notes(id), to("x/plan.md", "plan"));
    assert_eq!(desk.linking_entities("x/plan.md"), [1]);
    desk.memory.delete_observation(ObservationId(1), &desk.author()).unwrap();
    assert!(desk.linking_entities("x/plan.md").is_empty());
    desk.memory.store().undo(ChangeNumber(2), &desk.author()).unwrap();
    assert_eq!(desk.linking_entities("x/plan.md"), [1]);
}

#[test]
fn renamed_note_keeps_its_links_without_rewriting_text() {
    for update_links in [false, true] {
        let desk = BridgeFixture::new("//- plan.md\ntext\n");
        let id = desk.entity("Ada", "[[Plan]]", &["[[plan|it]]"]);
        desk.rename("plan.md", "Old plan", update_links).unwrap();
        assert_eq!(desk.notes(id), to("Old plan.md", "Plan"));
        assert_eq!(desk.linking_entities("old plan.md"), [1]);
        let entity = desk.memory.entity_detail(id, ALL).unwrap();
        assert_eq!(
            (entity.entity.description.as_deref(), &*entity.observations[0].text),
            (Some("[[Plan]]"), "[[plan|it]]")
        );

        // Another note may have the name now; who links by it from now on means that one.
        desk.vault.put("plan.md", "new");
        desk.sync();
        let later = desk.entity("Bea", "[[plan]]", &[]);
        assert_eq!((desk.notes(id), desk.notes(later)), (to("Old plan.md", "Plan"), to("plan.md", "plan")));
        assert_eq!((desk.linking_entities("old plan.md"), desk.linking_entities("plan.md")), (vec![1], vec![2]));
        let desk = desk.restarted();
        assert_eq!((desk.notes(id), desk.notes(later)), (to("Old plan.md", "Plan"), to("plan.md", "plan")));
    }
}

#[test]
fn a_rename_that_fails_leaves_links_as_they_were() {
    let desk = BridgeFixture::new("//- plan.md\ntext\n");
    let id = desk.entity("Ada", "[[plan]]", &[]);
    desk.vault.refuse_writes();
    desk.rename("plan.md", "Other", false).unwrap_err();
    assert_eq!(desk.notes(id), to("plan.md", "plan"));
    desk.vault.put("Other.md", "something else");
    desk.sync();
    assert_eq!(desk.notes(id), to("plan.md", "plan"));
}

#[test]
fn reused_name_still_links_to_the_renamed_note() {
    let desk = BridgeFixture::new("//- x/plan.md\nfirst\n//- draft.md\nsecond\n");
    let id = desk.entity("Ada", "[[plan]]", &[]);
    // At the vault's root, where it would win.
    desk.rename("draft.md", "plan", false).unwrap();
    assert_eq!(desk.notes(id), to("x/plan.md", "plan"));
}

#[test]
fn note_moved_by_another_program_keeps_its_links() {
    let desk = BridgeFixture::new("//- plan.md\ntext\n//- same.md\ncopy\n//- twin.md\ncopy\n");
    let id = desk.entity("Ada", "[[plan]]", &[]);
    desk.move_file("plan.md", "archive/Old.md");
    assert_eq!(desk.notes(id), to("archive/Old.md", "plan"));
    // While no server runs.
    let desk = desk.restarted_after(|vault| moved(vault, "archive/Old.md", "deep/er/older.md"));
    assert_eq!(desk.notes(id), to("deep/er/older.md", "plan"));
    // And back to a name it had.
    desk.move_file("deep/er/older.md", "plan.md");
    assert_eq!(desk.notes(id), to("plan.md", "plan"));
    assert_eq!(desk.memory.store().ties_to(&quipu_core::model::VaultPath::parse("plan.md").unwrap()).unwrap(), []);

    // Of two files with the same bytes the name tells which is which, and where it does not, nothing is guessed.
    let twins = desk.entity("Bea", "[[same]] [[x/twin]]", &[]);
    desk.vault.remove("same.md");
    desk.vault.remove("twin.md");
    desk.vault.put("x/twin.md", "copy\n");
    desk.vault.put("y.md", "copy\n");
    desk.sync();
    assert_eq!(
        desk.notes(twins),
        [("y.md".to_owned(), "same".to_owned()), ("x/twin.md".to_owned(), "x/twin".to_owned())]
    );
}

/// Which links lead to it is known only once memory is read, and indexing does not wait for that.
#[test]
fn note_moved_while_memory_is_read_keeps_its_links() {
    let desk = BridgeFixture::new("//- plan.md\ntext\n");
    let id = desk.entity("Ada", "[[plan]]", &[]);
    let desk = desk.restarted();
    let read_ahead = Memory::read_ahead(&desk.memory);
    desk.move_file("plan.md", "archive/Old.md");
    assert!(desk.notes(id).is_empty());
    read_ahead().unwrap();
    assert_eq!(desk.notes(id), to("archive/Old.md", "plan"));
}

#[test]
fn move_seen_in_two_scans_is_recognized() {
    for first in ["plan.md", "new.md"] {
        let desk = BridgeFixture::new("//- plan.md\ntext\n");
        let id = desk.entity("Ada", "[[plan]]", &[]);
        moved(&desk.vault, "plan.md", "new.md");
        desk.knowledge.read(&desk.client, first).unwrap();
        desk.sync();
        assert_eq!(desk.notes(id), to("new.md", "plan"), "{first} is asked for first");
    }
    // Long after, it is another file.
    let desk = BridgeFixture::new("//- plan.md\ntext\n");
    let id = desk.entity("Ada", "[[plan]]", &[]);
    desk.vault.remove("plan.md");
    desk.sync();
    desk.clock.advance(3_600_000_000_000);
    desk.vault.put("copy.md", "text\n");
    desk.sync();
    assert!(desk.notes(id).is_empty());
}

#[test]
fn deleted_note_breaks_links_and_a_restored_one_repairs_them() {
    let desk = BridgeFixture::new("//- plan.md\ntext\n");
    let id = desk.entity("Ada", "[[plan]]", &[]);
    desk.rename("plan.md", "Done", false).unwrap();
    desk.knowledge.delete_note(&desk.client, None, "done.md").unwrap();
    assert!(desk.notes(id).is_empty());
    let kept = desk.knowledge.trashed().unwrap();
    desk.knowledge.restore(kept.iter().find(|kept| kept.path.as_str() == "Done.md").unwrap()).unwrap();
    assert_eq!(desk.notes(id), to("Done.md", "plan"));
}

#[test]
fn merged_and_restored_entities_keep_their_links() {
    let desk = BridgeFixture::new("//- plan.md\ntext\n");
    let (ada, bea) = (desk.entity("Ada", "[[plan]]", &["[[Plan]]"]), desk.entity("Bea", "", &[]));
    desk.rename("plan.md", "Done", false).unwrap();
    desk.memory.merge_entities(ada, bea, &desk.author()).unwrap();
    assert_eq!(desk.notes(bea), to("Done.md", "plan"));
    desk.memory.store().undo(ChangeNumber(3), &desk.author()).unwrap();
    assert_eq!(desk.notes(ada), to("Done.md", "plan"));
    let update = EntityUpdate { description: Some(None), ..EntityUpdate::default() };
    desk.memory.update_entity(ada, update, &desk.author()).unwrap();
    assert_eq!(desk.notes(ada), to("Done.md", "Plan"), "by the observation");
    desk.memory.delete_entity(ada, &desk.author()).unwrap();
    assert!(desk.linking_entities("done.md").is_empty());
    desk.memory.store().undo(ChangeNumber(6), &desk.author()).unwrap();
    assert_eq!(desk.linking_entities("done.md"), [1]);
}

/// What happens in a history; numbers choose among what there is.
#[derive(Debug, Clone)]
enum Event {
    Write,
    Link(usize),
    Unlink(usize),
    Rename(usize),
    Move(usize),
    MoveWhileClosed(usize),
    Delete(usize),
    Restore(usize),
    UndoLast,
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let any = 0..1000_usize;
    prop_oneof![
        2 => Just(Event::Write),
        4 => any.clone().prop_map(Event::Link),
        1 => any.clone().prop_map(Event::Unlink),
        3 => any.clone().prop_map(Event::Rename),
        3 => any.clone().prop_map(Event::Move),
        1 => any.clone().prop_map(Event::MoveWhileClosed),
        2 => any.clone().prop_map(Event::Delete),
        2 => any.prop_map(Event::Restore),
        1 => Just(Event::UndoLast),
        1 => Just(Event::Restart),
    ]
}

/// One note through all its names. No name is ever given twice, so a link never changes its meaning.
struct Sheet {
    path: String,
    is_there: bool,
    text: String,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever happens, an entity speaks of the note it was linked to, if that is there, and of nothing else.
    #[test]
    fn any_history_keeps_every_link(events in prop::collection::vec(event(), 1..40)) {
        let mut desk = BridgeFixture::new("");
        let mut sheets: Vec<Sheet> = Vec::new();
        // Of each observation, by its number: the note it links to, and whether it is there.
        let mut links: Vec<(usize, bool)> = Vec::new();
        let mut names = 0..;
        let mut name = || format!("n{}", names.next().unwrap());
        let entity = desk.entity("Ada", "", &[]);
        for event in events {
            let chosen = |number: usize, is_there: bool| {
                let fitting: Vec<usize> = (0..sheets.len()).filter(|at| sheets[*at].is_there == is_there).collect();
                (!fitting.is_empty()).then(|| fitting[number % fitting.len()])
            };
            match event {
                Event::Write => {
                    let path = format!("{}.md", name());
                    let text = format!("the text of {path}\n");
                    desk.vault.put(&path, &text);
                    desk.sync();
                    sheets.push(Sheet { path, text, is_there: true });
                }
                Event::Link(number) => if let Some(at) = chosen(number, true) {
                    let stem = sheets[at].path.rsplit('/').next().unwrap().trim_end_matches(".md");
                    desk.memory.create_observation(entity, &format!("{}: about [[{stem}]]", links.len()), &desk.author()).unwrap();
                    links.push((at, true));
                },
                Event::Unlink(number) => if !links.is_empty() {
                    let at = number % links.len();
                    let id = ObservationId(at as i64 + 1);
                    if desk.memory.delete_observation(id, &desk.author()).is_ok() {
                        links[at].1 = false;
                    }
                },
                Event::Rename(number) => if let Some(at) = chosen(number, true) {
                    let title = name();
                    desk.rename(&sheets[at].path, &title, number % 2 == 0).unwrap();
                    let folder = sheets[at].path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
                    sheets[at].path = format!("{folder}{title}.md");
                    sheets[at].text = desk.vault.text(&sheets[at].path).unwrap();
                },
                Event::Move(number) | Event::MoveWhileClosed(number) => if let Some(at) = chosen(number, true) {
                    let (from, to) = (sheets[at].path.clone(), format!("{}/{}.md", name(), name()));
                    if matches!(event, Event::Move(_)) {
                        desk.move_file(&from, &to);
                    } else {
                        desk = desk.restarted_after(|vault| moved(vault, &from, &to));
                    }
                    sheets[at].path = to;
                },
                Event::Delete(number) => if let Some(at) = chosen(number, true) {
                    desk.vault.remove(&sheets[at].path);
                    desk.sync();
                    sheets[at].is_there = false;
                },
                Event::Restore(number) => if let Some(at) = chosen(number, false) {
                    desk.vault.put(&sheets[at].path, &sheets[at].text);
                    desk.sync();
                    sheets[at].is_there = true;
                },
                Event::UndoLast => {
                    let head = desk.memory.store().log_before(ChangeNumber(i64::MAX), 1).unwrap().remove(0);
                    if desk.memory.store().undo(head.number, &desk.author()).is_ok() {
                        let now: Vec<_> = (1..=links.len()).map(|id| ObservationId(id as i64)).collect();
                        let now = desk.memory.store().observations(&now).unwrap();
                        links.iter_mut().zip(now).for_each(|(link, now)| link.1 = now.is_some());
                    }
                    if desk.memory.store().entities(&[entity]).unwrap()[0].is_none() {
                        return Ok(());
                    }
                }
                Event::Restart => desk = desk.restarted(),
            }
            let mut expected: Vec<String> = links
                .iter()
                .filter(|(at, is_linked)| *is_linked && sheets[*at].is_there)
                .map(|(at, _)| sheets[*at].path.clone())
                .collect();
            expected.sort();
            expected.dedup();
            let mut found: Vec<String> = desk.notes(entity).into_iter().map(|(path, _)| path).collect();
            found.sort();
            prop_assert_eq!(&found, &expected);
            for sheet in sheets.iter().filter(|sheet| sheet.is_there) {
                let speaks = !desk.linking_entities(&sheet.path).is_empty();
                prop_assert_eq!(speaks, expected.contains(&sheet.path), "{}", sheet.path);
            }
        }
    }
}
