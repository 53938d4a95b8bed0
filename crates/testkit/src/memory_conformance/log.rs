//! What is written down of every change, and what that is good for: taking it back, knowing a request again, telling what
//! changed.

use quipu_core::RequestKey;
use quipu_core::memory::{EntityId, ObservationId, RelationId, WholeLog};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    ApplyError, Author, ChangeNumber, CopyLogError, EntityRef, EntityUpdate, MemoryChange, MemoryCounts, MemoryItem,
    MemoryStore, NoteTie, Refusal, StoredVector, TextOwner, UndoError,
};

use super::history::compare_all;
use super::{
    MemoryStorage, all_relations, applied, author, create, entity, memory_with_a_past, observe, relate, texts,
};
use crate::MemMemory;

pub fn every_change_is_in_the_log<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), observe(1, "x")]);
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(1) }]);
    let _ = store.apply(&[observe(1, "x")], &author(9));
    drop(store);
    let store = storage.open();
    let log = store.log_before(ChangeNumber(i64::MAX), 10).unwrap();
    assert_eq!(log.iter().map(|entry| entry.number.0).collect::<Vec<_>>(), [2, 1], "a refused change is not there");
    assert_eq!(log[1].author, author(1));
    assert_eq!(log[1].steps.len(), 2);
    assert!(matches!(&log[1].steps[1], (None, Some(MemoryItem::Observation(seen))) if seen.text == "x"));
    assert!(matches!(&log[0].steps[0], (Some(MemoryItem::Observation(_)), None)), "what hangs on it goes first");
    assert!(matches!(&log[0].steps[1], (Some(MemoryItem::Entity(entity)), None) if entity.name == "a"));
    assert_eq!(store.log_before(ChangeNumber(2), 10).unwrap().len(), 1);
    assert_eq!(store.log_before(ChangeNumber(i64::MAX), 1).unwrap().len(), 1);
}

/// A call that is made again, because its answer was lost, changes nothing and gives the same answer.
pub fn request_is_applied_once<S: MemoryStorage>(storage: &S) {
    let asked = |key, at_ns| Author { request: Some(RequestKey(key)), ..author(at_ns) };
    let store = storage.open();
    let changes = [create("Ada"), MemoryChange::AddObservation { entity: EntityRef::Made(0), text: "sails".into() }];
    let first = store.apply(&changes, &asked(1, 5)).unwrap();
    store.apply(&[observe(1, "whistles")], &asked(2, 6)).unwrap();
    let last = store.apply(&[MemoryChange::DeleteEntity { id: EntityId(1) }], &asked(3, 7)).unwrap();
    drop(store);

    let store = storage.open();
    let head = store.head().unwrap();
    assert_eq!(store.apply(&changes, &asked(1, 8)).unwrap(), first, "what it gave then, though it is gone now");
    assert_eq!(store.apply(&[MemoryChange::DeleteEntity { id: EntityId(1) }], &asked(3, 9)).unwrap(), last);
    assert_eq!((store.head().unwrap(), entity(&store, 1)), (head, None));
    assert_eq!([1, 2, 4].map(|key| store.was_applied(RequestKey(key)).unwrap()), [true, true, false]);
    assert_eq!(store.log_before(ChangeNumber(i64::MAX), 1).unwrap()[0].author, author(7), "the log does not name it");

    let undone = store.undo(ChangeNumber(3), &asked(6, 9)).unwrap();
    let again = store.undo(ChangeNumber(3), &asked(6, 10)).unwrap();
    assert_eq!((again.number, again.steps), (undone.number, undone.steps), "an undo too");
    store.undo(undone.number, &author(10)).unwrap();

    // What was refused was not applied, and may be asked for again.
    let refused = store.apply(&[observe(1, "sings")], &asked(4, 10));
    assert!(matches!(refused, Err(ApplyError::Refused { refusal: Refusal::NoEntity(_), .. })), "{refused:?}");
    assert!(!store.was_applied(RequestKey(4)).unwrap());
    storage.expire_requests();
    store.apply(&[create("Bo")], &asked(5, 11 + RequestKey::REMEMBERED_NS)).unwrap();
    assert!(!store.was_applied(RequestKey(1)).unwrap(), "not remembered for ever");
}

pub fn change_of_a_moved_log_is_refused<S: MemoryStorage>(storage: &S) {
    let (one, other) = (storage.open(), storage.open());
    let seen = one.head().unwrap();
    other.apply_at(Some(seen), &[create("Ada")], &author(1)).unwrap();
    let asked = Author { request: Some(RequestKey(1)), ..author(2) };
    for head in [seen, ChangeNumber(9)] {
        let moved = one.apply_at(Some(head), &[create("Bo")], &asked);
        assert!(matches!(moved, Err(ApplyError::Moved)), "{moved:?}");
    }
    assert_eq!((entity(&one, 2), one.head().unwrap()), (None, ChangeNumber(1)));
    assert!(!one.was_applied(RequestKey(1)).unwrap());
    let made = one.apply_at(Some(ChangeNumber(1)), &[create("Bo")], &asked).unwrap();
    let again = other.apply_at(Some(ChangeNumber(1)), &[create("Bo")], &asked).unwrap();
    assert_eq!(again, made, "a repeated request has its first result, although the log has moved");

    // Of two that read the same entry, exactly one applies its change.
    let head = one.head().unwrap();
    let racing = [&one, &other].map(|store| move |name: &str| store.apply_at(Some(head), &[create(name)], &author(3)));
    let done = std::thread::scope(|scope| {
        let [first, second] = racing;
        let (first, second) = (scope.spawn(move || first("Cy")), scope.spawn(move || second("Di")));
        [first.join().unwrap(), second.join().unwrap()]
    });
    let won = done.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(won == 1 && done.iter().any(|outcome| matches!(outcome, Err(ApplyError::Moved))), "{done:?}");
    assert_eq!(one.entity_count().unwrap(), 3);
}

pub fn log_is_copied_into_an_empty_memory<S: MemoryStorage>(storage: &S) {
    let model = memory_with_a_past(400);
    let mut entries = model.log_before(ChangeNumber(i64::MAX), usize::MAX).unwrap();
    entries.reverse();
    let (path, owner) = (VaultPath::parse("Roadmap.md").unwrap(), TextOwner::Entity(EntityId(1)));
    let tie = NoteTie { owner, target: "plan".into(), path };
    storage.open().copy_log(&WholeLog::new(entries).unwrap(), std::slice::from_ref(&tie)).unwrap();
    let store = storage.open();
    compare_all(&store, &model);
    assert_eq!(store.ties_of(&[owner]).unwrap(), [vec![tie]], "also of an entity that is deleted");
    assert_eq!(store.check().unwrap(), [""; 0]);
    // It goes on as the other would have: ids and numbers count on, and old changes are undone.
    let list = [create("new"), create("newer")];
    assert_eq!(store.apply(&list, &author(1_000)).unwrap(), model.apply(&list, &author(1_000)).unwrap());
    let newest = model.head().unwrap();
    for number in (1..=newest.0).rev().take(40).map(ChangeNumber) {
        let (real, expected) = (store.undo(number, &author(1_001)), model.undo(number, &author(1_001)));
        assert_eq!(real.map_err(|error| error.to_string()), expected.map_err(|error| error.to_string()));
    }
    compare_all(&store, &model);
    let one = MemMemory::default();
    applied(&one, &[create("only")]);
    let one = WholeLog::new(one.log_before(ChangeNumber(i64::MAX), 9).unwrap()).unwrap();
    assert!(matches!(store.copy_log(&one, &[]), Err(CopyLogError::NotEmpty)));
    compare_all(&store, &model);
}

pub fn change_is_undone<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b"), observe(1, "x"), relate(1, 2, "r")]);
    let update = EntityUpdate { name: Some("A".into()), ..EntityUpdate::default() };
    applied(&store, &[MemoryChange::UpdateEntity { id: EntityId(1), update }]);
    let before = (entity(&store, 1), texts(&store, 1), all_relations(&store));
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(1) }]);
    let undone = store.undo(ChangeNumber(3), &author(10)).unwrap();
    assert_eq!((undone.number, undone.undoes), (ChangeNumber(4), Some(ChangeNumber(3))));
    assert_eq!((entity(&store, 1), texts(&store, 1), all_relations(&store)), before);
    let log = store.log_before(ChangeNumber(4), 1).unwrap();
    assert_eq!(log[0].undone_by, Some(ChangeNumber(4)));
    assert!(matches!(store.undo(ChangeNumber(3), &author(11)), Err(UndoError::Undone { by: ChangeNumber(4), .. })));
    store.undo(ChangeNumber(4), &author(12)).unwrap();
    assert_eq!(entity(&store, 1), None, "an undo can be undone");
    store.undo(ChangeNumber(5), &author(13)).unwrap();
    store.undo(ChangeNumber(2), &author(14)).unwrap();
    store.undo(ChangeNumber(1), &author(15)).unwrap();
    assert_eq!(store.counts().unwrap(), MemoryCounts::default());
    assert!(matches!(store.undo(ChangeNumber(99), &author(16)), Err(UndoError::Unknown(ChangeNumber(99)))));
    assert!(matches!(store.undo(ChangeNumber(0), &author(16)), Err(UndoError::Unknown(ChangeNumber(0)))));
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn redone_change_is_undone_again<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a")]);
    applied(&store, &[create("b")]);
    let undone = |number| match store.undo(ChangeNumber(number), &author(10)) {
        Ok(undo) => Ok((undo.number.0, undo.undoes.unwrap().0)),
        Err(UndoError::Undone { by, .. }) => Err(by.0),
        other => panic!("{other:?}"),
    };
    let undone_by = || {
        let log = store.log_before(ChangeNumber(i64::MAX), 10).unwrap();
        log.iter().rev().map(|entry| entry.undone_by.map(|by| by.0)).collect::<Vec<_>>()
    };
    assert_eq!(undone(2), Ok((3, 2)));
    assert_eq!(undone_by(), [None, Some(3), None]);
    assert_eq!(undone(3), Ok((4, 3)));
    assert_eq!(undone_by(), [None, None, Some(4), None], "an undo that was undone does not count");
    assert_eq!((entity(&store, 2).is_some(), undone(3)), (true, Err(4)));
    assert_eq!(undone(2), Ok((5, 4)), "by undoing what brought it back");
    assert_eq!(undone_by(), [None, Some(3), None, Some(5), None], "the first undo stands again");
    assert_eq!((entity(&store, 2), undone(2), undone(4)), (None, Err(3), Err(5)));
    assert_eq!(undone(3), Ok((6, 5)));
    assert_eq!(undone(2), Ok((7, 6)));
    assert_eq!((entity(&store, 1).is_some(), entity(&store, 2)), (true, None));
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn undo_restores_contexts<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b")]);
    let set = |client, entity: Option<i64>| store.set_context(client, entity.map(EntityId), 5).unwrap();
    let contexts = || ["x", "y", "z"].map(|client| store.context(client).unwrap().map(|entity| entity.0));
    let undo = |number| store.undo(ChangeNumber(number), &author(50)).unwrap().number.0;
    ["x", "y", "z"].into_iter().for_each(|client| set(client, Some(2)));
    applied(&store, &[MemoryChange::MergeEntity { from: EntityId(2), into: EntityId(1) }]);
    assert_eq!(contexts(), [Some(1), Some(1), Some(1)]);
    set("y", Some(1));
    set("z", None);
    let undone = undo(2);
    assert_eq!(contexts(), [Some(2), Some(1), None], "but for those who set theirs since");
    let again = undo(undone);
    assert_eq!(contexts(), [Some(1), Some(1), None]);
    undo(again);
    assert_eq!(contexts(), [Some(2), Some(1), None]);
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(2) }, MemoryChange::DeleteEntity { id: EntityId(1) }]);
    assert_eq!(contexts(), [None, None, None]);
    set("y", None);
    undo(store.head().unwrap().0);
    assert_eq!(contexts(), [Some(2), None, None], "none is a wish too");
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn redaction_leaves_no_text<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    let asked = Author { request: Some(RequestKey(1)), ..author(1) };
    store
        .apply(&[create("Secret name"), create("b"), observe(1, "secret [[fact]]"), relate(1, 2, "secret")], &asked)
        .unwrap();
    applied(&store, &[observe(2, "plain")]);
    applied(&store, &[MemoryChange::UpdateObservation { id: ObservationId(1), text: "secret again".into() }]);
    let vector = StoredVector { text_hash: 1, scale: 0.25, codes: [1].into() };
    store.put_vectors("space", &[(TextOwner::Observation(ObservationId(1)), vector)]).unwrap();
    let redacted = |owner| store.redact(owner, "private", &author(9));
    let shown = || format!("{:?}", store.log_before(ChangeNumber(i64::MAX), 100).unwrap());
    let observation = redacted(TextOwner::Observation(ObservationId(1))).unwrap();
    assert_eq!((observation.change, observation.items, observation.log_steps), (ChangeNumber(4), 1, 3));
    assert!(!shown().contains("fact") && !shown().contains("again") && shown().contains("[redacted: private]"));
    assert_eq!(texts(&store, 1), [""; 0]);
    assert!(store.linking_texts_gone().unwrap().is_empty());
    assert_eq!(store.vectors_after("space", None, 9).unwrap(), []);
    redacted(TextOwner::Entity(EntityId(1))).unwrap();
    assert!(!shown().to_lowercase().contains("secret"), "{}", shown());
    assert!(!format!("{:?}", store.apply(&[], &asked)).contains("secret"));
    assert!(!format!("{:?}", store.apply(&[create("x")], &asked)).to_lowercase().contains("secret"), "nor the results");
    assert_eq!((texts(&store, 2), entity(&store, 1)), (vec!["plain".to_owned()], None), "others keep theirs");
    redacted(TextOwner::Entity(EntityId(1))).unwrap();
    for (owner, refusal) in [
        (TextOwner::Entity(EntityId(9)), Refusal::NoEntity(EntityId(9))),
        (TextOwner::Observation(ObservationId(9)), Refusal::NoObservation(ObservationId(9))),
    ] {
        let head = store.head().unwrap();
        assert!(matches!(redacted(owner), Err(ApplyError::Refused { refusal: said, .. }) if said == refusal));
        assert_eq!(store.head().unwrap(), head);
    }
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn change_that_later_items_depend_on_is_not_undone<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    let depended = |number| match store.undo(ChangeNumber(number), &author(50)) {
        Err(UndoError::Depended { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    applied(&store, &[create("a"), create("b")]);
    applied(&store, &[observe(1, "x")]);
    assert!(!depended(1).is_empty(), "the observation would go too");
    let update = |name: &str| EntityUpdate { name: Some(name.into()), ..EntityUpdate::default() };
    applied(&store, &[MemoryChange::UpdateEntity { id: EntityId(2), update: update("c") }]);
    applied(&store, &[MemoryChange::UpdateEntity { id: EntityId(2), update: update("d") }]);
    depended(3);
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(1) }]);
    applied(&store, &[create("A")]);
    depended(5);
    depended(2);
    let counts = MemoryCounts { entities: 2, observations: 0, relations: 0 };
    assert_eq!((store.counts().unwrap(), store.head().unwrap()), (counts, ChangeNumber(6)), "nothing has changed");
    store.undo(ChangeNumber(6), &author(51)).unwrap();
    store.undo(ChangeNumber(5), &author(52)).unwrap();
    assert_eq!(texts(&store, 1), ["x"]);
}

pub fn undo_names_what_changed_later<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b"), observe(2, "x")]);
    applied(&store, &[observe(1, "y"), relate(1, 2, "r")]);
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(2) }]);
    let since = store.changed_since(ChangeNumber(1)).unwrap();
    assert_eq!(since.head, ChangeNumber(3));
    assert_eq!(since.entities, [EntityId(2)]);
    assert_eq!(since.observations, [ObservationId(1), ObservationId(2)]);
    assert_eq!(since.relations, [RelationId(1)]);
    let nothing = store.changed_since(ChangeNumber(3)).unwrap();
    assert_eq!((nothing.head, nothing.entities.len()), (ChangeNumber(3), 0));
}
