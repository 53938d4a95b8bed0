//! What goes out comes in again as it was.

use quipu_core::memory::{EntityTypes, ObservationId};
use quipu_core::model::VaultPath;
use quipu_core::ports::{ChangeNumber, MemoryChange, MemoryStore, NoteTie, TextOwner};
use quipu_store_embedded::MemoryDatabase;
use quipu_testkit::MemMemory;
use quipu_testkit::memory_conformance::{author, create, memory_with_a_past, observe, relate};

use super::import::{Imported, Problem};
use super::{Format, Import, export};

fn lines(store: &dyn MemoryStore) -> String {
    let mut out = Vec::new();
    export(store, Format::Quipu, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn import(store: &MemMemory, text: &str) -> (Imported, Vec<Problem>) {
    let types = EntityTypes::default();
    let mut import = Import::new(store, &types);
    import.read(&mut text.as_bytes(), &|_| {}).unwrap();
    let problems = import.problems().to_vec();
    (import.apply(&author(1)).unwrap(), problems)
}

/// Ties a link in each third text.
fn tie_some(store: &MemMemory) {
    let entities = store.entities_from(0, usize::MAX).unwrap().into_iter().map(|entity| TextOwner::Entity(entity.id));
    let observations = store.observations_after(ObservationId(0), usize::MAX).unwrap();
    let owners = entities.chain(observations.into_iter().map(|seen| TextOwner::Observation(seen.id)));
    let tie = |(place, owner)| {
        let path = VaultPath::parse(&format!("notes/{}.md", place % 7)).unwrap();
        NoteTie { owner, target: format!("plan {}", place % 5), path }
    };
    let ties: Vec<NoteTie> = owners.step_by(3).enumerate().map(tie).collect();
    store.retie(&[], &ties).unwrap();
}

#[test]
fn any_memory_comes_back_byte_for_byte() {
    for deeds in (0..400).step_by(20) {
        let memory = memory_with_a_past(deeds);
        tie_some(&memory);
        let (written, copy) = (lines(&memory), MemMemory::default());
        let (_, problems) = import(&copy, &written);
        assert_eq!((lines(&copy), problems), (written.clone(), Vec::new()), "after {deeds} deeds");
        let head = copy.head().unwrap();
        import(&copy, &written);
        assert_eq!((lines(&copy), copy.head().unwrap()), (written, head), "twice is once");
    }
}

/// Takes what is written. Now and then an agent deletes the oldest entity with all that hangs on it, and makes another.
struct Meddled<'a> {
    store: &'a MemoryDatabase,
    out: Vec<u8>,
    writes: usize,
}

impl std::io::Write for Meddled<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.writes.is_multiple_of(2000) {
            let oldest = self.store.entities_from(0, 1).unwrap()[0].id;
            let changes = [MemoryChange::DeleteEntity { id: oldest }, create(&format!("instead of {}", oldest.0))];
            self.store.apply(&changes, &author(2)).unwrap();
        }
        self.writes += 1;
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_changes_meanwhile_is_not_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = MemoryDatabase::open(&folder.path().join("memory.db")).unwrap();
    let mut changes: Vec<MemoryChange> = (1..=1500).map(|number| create(&format!("e{number}"))).collect();
    changes.extend((1..=1500).map(|number| observe(number, "seen")));
    changes.extend((1..1500).map(|number| relate(number, number + 1, "before")));
    store.apply(&changes, &author(1)).unwrap();
    for format in [Format::Quipu, Format::Reference, Format::Graphmem] {
        let mut expected = Vec::new();
        export(&store, format, &mut expected).unwrap();
        let mut meddled = Meddled { store: &store, out: Vec::new(), writes: 0 };
        store.at_one_moment(|still| export(still, format, &mut meddled)).unwrap();
        assert!(meddled.out == expected, "{format:?}");
    }
    assert!(store.head().unwrap() > ChangeNumber(20), "much changed meanwhile");
}

#[test]
fn where_something_was_before_new_numbers_are_given() {
    let memory = memory_with_a_past(200);
    tie_some(&memory);
    let copy = MemMemory::default();
    import(&copy, r#"{"type":"entity","name":"Was here","entityType":"x","observations":["first"]}"#);
    let (imported, problems) = import(&copy, &lines(&memory));
    assert_eq!(problems, []);
    let counts = memory.counts().unwrap();
    assert_eq!((imported.entities as u64, imported.relations as u64), (counts.entities, counts.relations));
    let ties = |text: &str| text.matches(r#""ties":{"#).count();
    assert_eq!(ties(&lines(&copy)), ties(&lines(&memory)));
    assert_eq!(copy.head().unwrap(), ChangeNumber(2));
}

#[test]
fn numbers_that_would_leave_none_over_are_not_kept() {
    let header = r#"{"type":"quipu-memory","version":1}"#;
    for number in ["0", "-3", "9223372036854775807", "null"] {
        let copy = MemMemory::default();
        import(&copy, &format!("{header}\n{{\"type\":\"entity\",\"name\":\"a\",\"id\":{number}}}"));
        assert_eq!(copy.last_ids().0, 1, "{number}");
    }
}

#[test]
fn two_exports_one_behind_the_other_do_not_mix() {
    let of = |name: &str| {
        let entity = format!(r#"{{"type":"entity","id":1,"name":"{name}","entity_type":"x"}}"#);
        let seen = format!(r#"{{"type":"observation","id":1,"entity":1,"text":"seen of {name}"}}"#);
        format!("{{\"type\":\"quipu-memory\",\"version\":1}}\n{entity}\n{seen}\n")
    };
    let copy = MemMemory::default();
    import(&copy, &(of("a") + &of("b")));
    let seen = copy.observations_after(ObservationId(0), 9).unwrap();
    let seen: Vec<_> = seen.into_iter().map(|seen| (seen.entity.0, seen.text)).collect();
    assert_eq!(seen, [(1, "seen of a".to_owned()), (2, "seen of b".to_owned())]);
}

#[test]
fn a_tie_that_leaves_the_vault_is_refused_with_its_line() {
    let copy = MemMemory::default();
    let entity = r#"{"type":"entity","id":1,"name":"a","ties":{"plan":"../secret.md"}}"#;
    let (imported, problems) = import(&copy, &format!("{{\"type\":\"quipu-memory\"}}\n{entity}\n"));
    let message = r#"its link "plan" is tied to no path of a vault"#.to_owned();
    assert_eq!((imported.entities, problems), (0, vec![Problem { line: 2, message }]));
}
