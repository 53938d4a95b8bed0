//! The rules of the `MemoryStore` port as tests. A rule found the hard way becomes a case here.
//!
//! A backend runs them all by `memory_conformance!(storage)` in a test module, where the expression makes a new, empty
//! [`MemoryStorage`].

#![expect(clippy::unwrap_used, reason = "a rule that cannot be asked is broken")]

mod history;
mod log;

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    ApplyError, Author, ChangeNumber, EntityRef, EntityUpdate, MemoryChange, MemoryCounts, MemoryItem, MemoryStore,
    NewEntity, NoteTie, Refusal, RelationFilter, StoredVector, TextOwner,
};

pub use history::{memory_with_a_past, random_memory_changes_match_the_model};
pub use log::{
    change_is_undone, change_of_a_moved_log_is_refused, change_that_later_items_depend_on_is_not_undone,
    every_change_is_in_the_log, log_is_copied_into_an_empty_memory, redaction_leaves_no_text,
    redone_change_is_undone_again, request_is_applied_once, undo_names_what_changed_later, undo_restores_contexts,
};

/// Where memory is kept between runs.
pub trait MemoryStorage {
    /// The store under test.
    type Store: MemoryStore;

    /// Opens the store. What an earlier one kept is there.
    fn open(&self) -> Self::Store;

    /// Lets the time pass for which requests are recorded, where that is not the author's time.
    fn expire_requests(&self) {}
}

/// One `#[test]` for each rule, over the storage that the expression creates.
#[macro_export]
macro_rules! memory_conformance {
    ($storage:expr) => {
        $crate::memory_conformance!(
            $storage,
            new_memory_is_empty,
            created_items_survive_reopening,
            names_are_unique_ignoring_case,
            ids_are_never_reused,
            deleting_an_entity_deletes_its_observations_and_relations,
            list_of_changes_is_atomic,
            later_changes_see_earlier_ones_of_their_list,
            imported_items_keep_their_ids_and_ties,
            equal_relations_are_refused,
            merge_moves_everything_to_one_entity,
            every_change_is_in_the_log,
            request_is_applied_once,
            change_of_a_moved_log_is_refused,
            log_is_copied_into_an_empty_memory,
            change_is_undone,
            redone_change_is_undone_again,
            undo_restores_contexts,
            change_that_later_items_depend_on_is_not_undone,
            undo_names_what_changed_later,
            lists_are_ordered_and_paged,
            context_is_stored_and_deleted_with_its_entity,
            vectors_are_stored_by_space,
            merge_keeps_equal_observations_once,
            merge_loses_no_description_and_no_context,
            ties_survive_deletion_and_merge,
            redaction_leaves_no_text,
            random_memory_changes_match_the_model
        );
    };
    ($storage:expr, $($rule:ident),+) => {
        $(#[test]
        fn $rule() {
            $crate::memory_conformance::$rule(&$storage);
        })+
    };
}

/// A test's author at a time.
pub fn author(at_ns: i64) -> Author {
    Author { client: "tester".into(), tool: "test".into(), at_ns, request: None }
}

/// A change that makes an entity.
pub fn create(name: &str) -> MemoryChange {
    MemoryChange::CreateEntity(NewEntity { name: name.into(), entity_type: "Thing".into(), ..NewEntity::default() })
}

/// A change that observes something of an entity.
pub fn observe(entity: i64, text: &str) -> MemoryChange {
    MemoryChange::AddObservation { entity: EntityRef::Id(EntityId(entity)), text: text.into() }
}

/// A change that relates two entities.
pub fn relate(from: i64, to: i64, relation_type: &str) -> MemoryChange {
    let (from, to) = (EntityRef::Id(EntityId(from)), EntityRef::Id(EntityId(to)));
    MemoryChange::AddRelation { from, to, relation_type: relation_type.into() }
}

fn applied(store: &impl MemoryStore, changes: &[MemoryChange]) -> Vec<MemoryItem> {
    let at_ns = store.head().expect("a memory has a head").0 + 1;
    store.apply(changes, &author(at_ns)).expect("these changes break no rule").outcomes
}

fn refused(store: &impl MemoryStore, changes: &[MemoryChange]) -> (usize, Refusal) {
    match store.apply(changes, &author(99)) {
        Err(ApplyError::Refused { change, refusal }) => (change, refusal),
        other => panic!("{changes:?} gave {other:?}"),
    }
}

fn entity(store: &impl MemoryStore, id: i64) -> Option<Entity> {
    store.entities(&[EntityId(id)]).expect("entities can be read").pop().flatten()
}

fn texts(store: &impl MemoryStore, id: i64) -> Vec<String> {
    let seen = store.observations_of(&[EntityId(id)]).expect("observations can be read").pop().unwrap_or_default();
    seen.into_iter().map(|seen| seen.text).collect()
}

fn all_relations(store: &impl MemoryStore) -> Vec<(i64, i64, String)> {
    let all = store.relations_where(&RelationFilter::default(), 0, 1000).expect("relations can be read");
    all.into_iter().map(|relation| (relation.from.0, relation.to.0, relation.relation_type)).collect()
}

pub fn new_memory_is_empty<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    assert_eq!(store.counts().unwrap(), MemoryCounts::default());
    assert_eq!(store.head().unwrap(), ChangeNumber(0));
    assert!(store.log_before(ChangeNumber(i64::MAX), 10).unwrap().is_empty());
    assert_eq!(entity(&store, 1), None);
    assert_eq!(store.apply(&[], &author(1)).unwrap().change, ChangeNumber(0));
    assert_eq!(store.head().unwrap(), ChangeNumber(0), "nothing is not logged");
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn created_items_survive_reopening<S: MemoryStorage>(storage: &S) {
    let made = {
        let store = storage.open();
        let new = NewEntity {
            name: "Große Idee".into(),
            entity_type: "Project".into(),
            aliases: vec!["日本".into(), "GI".into(), "a|\"b\"".into()],
            description: Some("What\nit is".into()),
        };
        let made = applied(&store, &[MemoryChange::CreateEntity(new)]);
        applied(&store, &[observe(1, "first"), observe(1, "first"), create("Other"), relate(1, 2, "part_of")]);
        made
    };
    let store = storage.open();
    let MemoryItem::Entity(made) = &made[0] else { panic!("{made:?}") };
    assert_eq!(entity(&store, 1).unwrap(), Entity { observation_count: 2, ..made.clone() });
    assert_eq!((made.created_ns, made.updated_ns, made.aliases.len()), (1, 1, 3));
    assert_eq!(texts(&store, 1), ["first", "first"]);
    assert_eq!(all_relations(&store), [(1, 2, "part_of".to_owned())]);
    let update = EntityUpdate { name: Some("Kleine Idee".into()), description: Some(None), ..EntityUpdate::default() };
    let change = MemoryChange::UpdateEntity { id: EntityId(1), update };
    let outcome = applied(&store, &[change]);
    let after = entity(&store, 1).unwrap();
    assert_eq!(outcome, [MemoryItem::Entity(after.clone())]);
    assert_eq!((after.name.as_str(), after.description.as_ref(), after.aliases.len()), ("Kleine Idee", None, 3));
    assert_eq!((after.created_ns, after.updated_ns), (1, 3));
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn names_are_unique_ignoring_case<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("Café Über"), create("other")]);
    for name in ["Café Über", "CAFÉ ÜBER", "cafe\u{301} u\u{308}ber"] {
        assert_eq!(refused(&store, &[create(name)]), (0, Refusal::NameTaken { by: EntityId(1) }), "{name}");
        let update = EntityUpdate { name: Some(name.into()), ..EntityUpdate::default() };
        let rename = |id| MemoryChange::UpdateEntity { id: EntityId(id), update: update.clone() };
        assert_eq!(refused(&store, &[rename(2)]), (0, Refusal::NameTaken { by: EntityId(1) }));
        applied(&store, &[rename(1)]);
    }
    let keys = ["café über", "nothing", "other"].map(str::to_owned);
    assert_eq!(store.entities_called(&keys).unwrap(), [vec![EntityId(1)], vec![], vec![EntityId(2)]]);
    let aliases = Some(vec!["OTHER".into(), "Third".into()]);
    let update = EntityUpdate { aliases, ..EntityUpdate::default() };
    applied(&store, &[MemoryChange::UpdateEntity { id: EntityId(1), update }]);
    let called = store.entities_called(&["other".to_owned(), "third".to_owned()]).unwrap();
    assert_eq!(called, [vec![EntityId(2), EntityId(1)], vec![EntityId(1)]], "a name before an alias");
}

pub fn ids_are_never_reused<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b"), observe(2, "x"), relate(1, 2, "r")]);
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(2) }]);
    drop(store);
    let store = storage.open();
    let made = applied(&store, &[create("b"), observe(3, "x"), relate(1, 3, "r")]);
    assert!(matches!(&made[0], MemoryItem::Entity(Entity { id: EntityId(3), .. })), "{made:?}");
    assert!(matches!(&made[1], MemoryItem::Observation(Observation { id: ObservationId(2), .. })), "{made:?}");
    assert!(matches!(&made[2], MemoryItem::Relation(Relation { id: RelationId(2), .. })), "{made:?}");
}

pub fn deleting_an_entity_deletes_its_observations_and_relations<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b"), create("c")]);
    applied(&store, &[observe(1, "x"), observe(2, "y"), relate(1, 2, "r"), relate(3, 1, "r"), relate(2, 3, "r")]);
    let gone = applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(1) }]);
    assert!(matches!(&gone[0], MemoryItem::Entity(Entity { observation_count: 1, .. })), "{gone:?}");
    assert_eq!(entity(&store, 1), None);
    assert_eq!(all_relations(&store), [(2, 3, "r".to_owned())]);
    assert_eq!(store.counts().unwrap(), MemoryCounts { entities: 2, observations: 1, relations: 1 });
    for (change, refusal) in [
        (MemoryChange::DeleteEntity { id: EntityId(1) }, Refusal::NoEntity(EntityId(1))),
        (observe(1, "x"), Refusal::NoEntity(EntityId(1))),
        (relate(2, 1, "r"), Refusal::NoEntity(EntityId(1))),
        (
            MemoryChange::UpdateObservation { id: ObservationId(1), text: "x".into() },
            Refusal::NoObservation(ObservationId(1)),
        ),
        (MemoryChange::DeleteObservation { id: ObservationId(1) }, Refusal::NoObservation(ObservationId(1))),
        (MemoryChange::DeleteRelation { id: RelationId(1) }, Refusal::NoRelation(RelationId(1))),
        (
            MemoryChange::UpdateEntity { id: EntityId(1), update: EntityUpdate::default() },
            Refusal::NoEntity(EntityId(1)),
        ),
    ] {
        assert_eq!(refused(&store, &[change]), (0, refusal));
    }
}

pub fn list_of_changes_is_atomic<S: MemoryStorage>(storage: &S) {
    let good = [create("a"), create("b"), observe(1, "x"), relate(1, 2, "r")];
    let bad = observe(77, "x");
    for place in 0..=good.len() {
        let store = storage.open();
        let mut list = good.to_vec();
        list.insert(place, bad.clone());
        assert_eq!(refused(&store, &list), (place, Refusal::NoEntity(EntityId(77))));
        drop(store);
        let store = storage.open();
        assert_eq!(store.counts().unwrap(), MemoryCounts::default(), "refused at {place}");
        assert_eq!(store.head().unwrap(), ChangeNumber(0));
    }
    applied(&storage.open(), &good);
}

pub fn later_changes_see_earlier_ones_of_their_list<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    let made = EntityRef::Made(0);
    let list = [
        create("a"),
        MemoryChange::AddObservation { entity: made, text: "x".into() },
        create("b"),
        MemoryChange::AddRelation { from: EntityRef::Made(2), to: made, relation_type: "part_of".into() },
    ];
    applied(&store, &list);
    assert_eq!(all_relations(&store), [(2, 1, "part_of".to_owned())]);
    let times = |made| MemoryChange::SetTimes { made, created_ns: -5, updated_ns: 7 };
    applied(&store, &[create("old"), times(0), observe(3, "seen"), times(2)]);
    let old = entity(&store, 3).unwrap();
    assert_eq!((old.created_ns, old.updated_ns, old.observation_count), (-5, 7, 1));
    assert_eq!(refused(&store, &[times(0)]), (0, Refusal::NoItemCreated(0)));
    assert_eq!(refused(&store, &[create("c"), create("C")]).0, 1);
    let nobody = MemoryChange::AddObservation { entity: EntityRef::Made(0), text: "x".into() };
    assert!(matches!(refused(&store, &[nobody]), (0, Refusal::NoEntity(_))), "nothing was made before it");
}

pub fn imported_items_keep_their_ids_and_ties<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    let numbered = |number, change| MemoryChange::Numbered { number, change: Box::new(change) };
    let seen = MemoryChange::AddObservation { entity: EntityRef::Made(0), text: "Owns [[plan]]".into() };
    let path = VaultPath::parse("Roadmap.md").unwrap();
    let tie = |made| MemoryChange::Tie { made, target: "plan".into(), path: path.clone() };
    let list = [numbered(7, create("a")), numbered(9, seen), tie(1), numbered(4, relate(7, 7, "r")), create("b")];
    applied(&store, &list);
    assert_eq!(entity(&store, 8).map(|entity| entity.name).as_deref(), Some("b"), "counting goes on from there");
    let tied = NoteTie { owner: TextOwner::Observation(ObservationId(9)), target: "plan".into(), path: path.clone() };
    assert_eq!(store.ties_of(&[tied.owner]).unwrap(), [vec![tied]]);
    assert_eq!(store.relations(&[RelationId(4)]).unwrap().len(), 1);
    assert_eq!(refused(&store, &[numbered(8, create("c"))]), (0, Refusal::IdAlreadyUsed(8)));
    assert_eq!(
        refused(&store, &[numbered(3, create("c"))]),
        (0, Refusal::IdAlreadyUsed(3)),
        "it may have been deleted"
    );
    assert_eq!(refused(&store, &[create("c"), tie(1)]), (1, Refusal::NoItemCreated(1)));
    assert_eq!(refused(&store, &[relate(7, 8, "s"), tie(0)]), (1, Refusal::NoItemCreated(0)), "a relation has no text");
}

pub fn equal_relations_are_refused<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b"), relate(1, 2, "r"), relate(2, 1, "r"), relate(1, 2, "R")]);
    applied(&store, &[relate(1, 1, "r")]);
    assert_eq!(refused(&store, &[relate(1, 2, "r")]), (0, Refusal::RelationExists(RelationId(1))));
    let filtered = |from: Option<i64>, to: Option<i64>, relation_type: Option<&str>| {
        let relation_type = relation_type.map(str::to_owned);
        let filter = RelationFilter { from: from.map(EntityId), to: to.map(EntityId), relation_type };
        let found = store.relations_where(&filter, 0, 10).unwrap();
        found.into_iter().map(|relation| relation.id.0).collect::<Vec<_>>()
    };
    assert_eq!(filtered(None, None, None), [1, 2, 3, 4]);
    assert_eq!(filtered(Some(1), None, None), [1, 3, 4]);
    assert_eq!(filtered(None, Some(1), None), [2, 4]);
    assert_eq!(filtered(None, None, Some("R")), [3]);
    assert_eq!(filtered(Some(1), Some(2), Some("r")), [1]);
    assert_eq!(filtered(Some(9), None, None), [0_i64; 0]);
    let among = store.relations_among(&[EntityId(1), EntityId(9)]).unwrap();
    assert_eq!(among.iter().map(|relation| relation.id.0).collect::<Vec<_>>(), [4]);
}

pub fn merge_moves_everything_to_one_entity<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("Colour"), create("Color"), create("other")]);
    applied(&store, &[observe(1, "a"), observe(2, "b"), relate(2, 3, "r"), relate(1, 3, "r")]);
    applied(&store, &[relate(3, 2, "s"), relate(1, 2, "same_as"), relate(2, 2, "self")]);
    let merge = |from, into| MemoryChange::MergeEntity { from: EntityId(from), into: EntityId(into) };
    assert_eq!(refused(&store, &[merge(1, 1)]), (0, Refusal::MergeIntoItself(EntityId(1))));
    assert_eq!(refused(&store, &[merge(9, 1)]), (0, Refusal::NoEntity(EntityId(9))));
    let before = (entity(&store, 1), entity(&store, 2), all_relations(&store), texts(&store, 1));
    let outcome = applied(&store, &[merge(2, 1)]);
    let kept = entity(&store, 1).unwrap();
    assert_eq!(outcome, [MemoryItem::Entity(kept.clone())]);
    assert_eq!((kept.aliases.as_slice(), kept.observation_count), (&["Color".to_owned()][..], 2));
    assert_eq!(entity(&store, 2), None);
    assert_eq!(texts(&store, 1), ["a", "b"]);
    assert_eq!(all_relations(&store), [(1, 3, "r".to_owned()), (3, 1, "s".to_owned())]);
    let head = store.head().unwrap();
    store.undo(head, &author(50)).unwrap();
    assert_eq!((entity(&store, 1), entity(&store, 2), all_relations(&store), texts(&store, 1)), before);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn merge_keeps_equal_observations_once<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    let described = |name: &str, description: &str| {
        let (name, entity_type, description) = (name.into(), "Thing".into(), Some(description.into()));
        MemoryChange::CreateEntity(NewEntity { name, entity_type, description, ..NewEntity::default() })
    };
    applied(&store, &[described("Colour", "A"), described("Color", "seen")]);
    applied(&store, &[observe(1, "seen"), observe(2, "seen"), observe(2, "new"), observe(1, "own")]);
    let all = || (store.observations_after(ObservationId(0), 9).unwrap(), entity(&store, 1), entity(&store, 2));
    let before = all();
    applied(&store, &[MemoryChange::MergeEntity { from: EntityId(2), into: EntityId(1) }]);
    assert_eq!(texts(&store, 1), ["seen", "new", "own"], "the description is among them too");
    assert_eq!(entity(&store, 1).unwrap().observation_count, 3);
    assert!(store.observations(&[ObservationId(2)]).unwrap()[0].is_none(), "the one of the remaining entity stays");
    let merged = all();
    let undone = store.undo(store.head().unwrap(), &author(50)).unwrap().number;
    assert_eq!(all(), before);
    store.undo(undone, &author(51)).unwrap();
    assert_eq!(all(), merged);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn merge_loses_no_description_and_no_context<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    let described = |name: &str, description: &str| {
        let (name, entity_type, description) = (name.into(), "Thing".into(), Some(description.into()));
        MemoryChange::CreateEntity(NewEntity { name, entity_type, description, ..NewEntity::default() })
    };
    let merge = |from, into| MemoryChange::MergeEntity { from: EntityId(from), into: EntityId(into) };
    applied(&store, &[described("Colour", "What the eye sees"), described("Color", "Of [[light]]")]);
    let tie = |owner| NoteTie { owner, target: "light".into(), path: VaultPath::parse("sun.md").unwrap() };
    store.repoint_links(&[], &[tie(TextOwner::Entity(EntityId(2)))]).unwrap();
    store.set_context("painter", Some(EntityId(2)), 1).unwrap();
    let outcome = applied(&store, &[merge(2, 1)]);
    let kept = entity(&store, 1).unwrap();
    assert_eq!(outcome, [MemoryItem::Entity(kept.clone())]);
    assert_eq!((kept.description.as_deref(), kept.observation_count), (Some("What the eye sees"), 1));
    assert_eq!(texts(&store, 1), ["Of [[light]]"]);
    let seen = TextOwner::Observation(ObservationId(1));
    assert_eq!(store.ties_of(&[seen]).unwrap()[0], [tie(seen)], "its link means what it meant");
    assert_eq!(store.context("painter").unwrap(), Some(EntityId(1)));
    store.undo(store.head().unwrap(), &author(50)).unwrap();
    assert_eq!((texts(&store, 1).len(), texts(&store, 2).len()), (0, 0));
    assert_eq!(store.context("painter").unwrap(), Some(EntityId(2)));
    assert_eq!(entity(&store, 2).unwrap().description.as_deref(), Some("Of [[light]]"));
    applied(&store, &[described("Hue", "What the eye sees"), merge(3, 1)]);
    assert_eq!(texts(&store, 1).len(), 0, "the same words are not said twice");
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn lists_are_ordered_and_paged<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    let changes: Vec<_> = (0..10).map(|number| create(&format!("e{number}"))).collect();
    applied(&store, &changes);
    let mut more: Vec<_> = (1..=5).map(|number| observe(number, &format!("o{number}"))).collect();
    more.extend((2..=5).map(|number| relate(number, 1, if number == 4 { "Part_Of" } else { "part_of" })));
    applied(&store, &more);
    let ids = |entities: Vec<Entity>| entities.into_iter().map(|entity| entity.id.0).collect::<Vec<_>>();
    assert_eq!(store.entity_count().unwrap(), 10);
    assert_eq!(ids(store.entities_after(EntityId(3), 3).unwrap()), [4, 5, 6]);
    assert_eq!(ids(store.entities_from(8, 5).unwrap()), [9, 10]);
    assert_eq!(ids(store.entities_from(u64::MAX, 5).unwrap()), [0_i64; 0]);
    let found = store.entities(&[EntityId(7), EntityId(99), EntityId(2), EntityId(7)]).unwrap();
    let found: Vec<_> = found.into_iter().map(|entity| entity.map(|entity| entity.id.0)).collect();
    assert_eq!(found, [Some(7), None, Some(2), Some(7)]);
    let seen = store.observations_after(ObservationId(2), 2).unwrap();
    assert_eq!(seen.iter().map(|seen| seen.text.as_str()).collect::<Vec<_>>(), ["o3", "o4"]);
    let of = store.observations_of(&[EntityId(3), EntityId(9), EntityId(1)]).unwrap();
    assert_eq!(of.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 1]);
    let relations = store.relations_after(RelationId(1), 2).unwrap();
    assert_eq!(relations.iter().map(|relation| relation.id.0).collect::<Vec<_>>(), [2, 3]);
    let filter = RelationFilter::default();
    let relations = store.relations_where(&filter, 1, 2).unwrap();
    assert_eq!(relations.iter().map(|relation| relation.id.0).collect::<Vec<_>>(), [2, 3]);
    let relations = store.relations(&[RelationId(4), RelationId(9)]).unwrap();
    assert!(relations[0].is_some() && relations[1].is_none());
    let parts = store.sources_into(&[EntityId(1), EntityId(2)], "part_of").unwrap();
    assert_eq!(parts, [EntityId(2), EntityId(3), EntityId(4), EntityId(5)]);
    assert!(store.observations(&[ObservationId(9)]).unwrap()[0].is_none());
}

pub fn context_is_stored_and_deleted_with_its_entity<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b")]);
    store.set_context("x", Some(EntityId(1)), 5).unwrap();
    store.set_context("y", Some(EntityId(2)), 6).unwrap();
    store.set_context("x", Some(EntityId(2)), 7).unwrap();
    store.set_context("z", Some(EntityId(1)), 7).unwrap();
    store.set_context("z", None, 8).unwrap();
    drop(store);
    let store = storage.open();
    assert_eq!(store.context("x").unwrap(), Some(EntityId(2)));
    assert_eq!((store.context("z").unwrap(), store.context("w").unwrap()), (None, None));
    assert!(store.set_context("w", Some(EntityId(9)), 9).is_err());
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(2) }]);
    assert_eq!((store.context("x").unwrap(), store.context("y").unwrap()), (None, None));
}

pub fn ties_survive_deletion_and_merge<S: MemoryStorage>(storage: &S) {
    let path = |path: &str| VaultPath::parse(path).unwrap();
    let tie = |owner: TextOwner, target: &str, to: &str| NoteTie { owner, target: target.into(), path: path(to) };
    let (ada, bea) = (TextOwner::Entity(EntityId(1)), TextOwner::Entity(EntityId(2)));
    let seen = TextOwner::Observation(ObservationId(1));
    {
        let store = storage.open();
        applied(&store, &[create("Ada"), create("Bea"), observe(1, "[[plan]]")]);
        let made = [tie(seen, "plan", "b.md"), tie(ada, "plan", "b.md"), tie(ada, "Old", "c.md")];
        store.repoint_links(&[], &made).unwrap();
    }
    let store = storage.open();
    let of = |owners: &[TextOwner]| store.ties_of(owners).unwrap();
    assert_eq!(of(&[seen, bea]), [vec![tie(seen, "plan", "b.md")], vec![]]);
    assert_eq!(of(&[ada])[0], [tie(ada, "Old", "c.md"), tie(ada, "plan", "b.md")]);
    assert_eq!(store.ties_to(&path("b.md")).unwrap(), [tie(ada, "plan", "b.md"), tie(seen, "plan", "b.md")]);
    store.repoint_links(&[tie(ada, "plan", "b.md"), tie(bea, "never", "x.md")], &[tie(seen, "plan", "d.md")]).unwrap();
    assert_eq!(of(&[ada, seen]), [vec![tie(ada, "Old", "c.md")], vec![tie(seen, "plan", "d.md")]]);
    applied(&store, &[MemoryChange::DeleteObservation { id: ObservationId(1) }]);
    assert_eq!(of(&[seen])[0].len(), 1, "it may come back");
    assert_eq!(store.linking_texts_gone().unwrap(), [(seen, "[[plan]]".to_owned())]);
    applied(&store, &[MemoryChange::MergeEntity { from: EntityId(1), into: EntityId(2) }]);
    assert_eq!(of(&[bea])[0], [tie(bea, "Old", "c.md")]);
    let own = EntityUpdate { description: Some(Some("[[Old]]".into())), ..EntityUpdate::default() };
    applied(&store, &[create("Cy"), MemoryChange::UpdateEntity { id: EntityId(3), update: own }]);
    applied(&store, &[MemoryChange::MergeEntity { from: EntityId(2), into: EntityId(3) }]);
    assert_eq!(of(&[TextOwner::Entity(EntityId(3))])[0], [], "its own words mean what they meant");
    assert_eq!(store.check().unwrap(), [""; 0]);
}

pub fn vectors_are_stored_by_space<S: MemoryStorage>(storage: &S) {
    let store = storage.open();
    applied(&store, &[create("a"), create("b"), observe(1, "x")]);
    let vector = |text_hash, codes: &[i8]| StoredVector { text_hash, scale: 0.25, codes: codes.into() };
    let (first, second) = (TextOwner::Entity(EntityId(1)), TextOwner::Entity(EntityId(2)));
    let seen = TextOwner::Observation(ObservationId(1));
    let nobody = TextOwner::Entity(EntityId(77));
    let put = [(seen, vector(3, &[1])), (first, vector(-1, &[-128, 127, 0])), (nobody, vector(0, &[1]))];
    store.put_vectors("m1", &put).unwrap();
    store.put_vectors("m1", &[(second, vector(2, &[5])), (first, vector(i64::MIN, &[6]))]).unwrap();
    store.put_vectors("m2", &[(second, vector(9, &[9]))]).unwrap();
    drop(store);
    let store = storage.open();
    let all = store.vectors_after("m1", None, 10).unwrap();
    assert_eq!(all, [(first, vector(i64::MIN, &[6])), (second, vector(2, &[5])), (seen, vector(3, &[1]))]);
    assert_eq!(store.vectors_after("m1", None, 1).unwrap(), all[..1]);
    assert_eq!(store.vectors_after("m1", Some(first), 1).unwrap(), all[1..2]);
    assert_eq!(store.vectors_after("m1", Some(second), 9).unwrap(), all[2..]);
    assert_eq!(store.vectors_after("m1", Some(seen), 9).unwrap(), []);
    applied(&store, &[MemoryChange::DeleteEntity { id: EntityId(1) }]);
    assert_eq!(store.vectors_after("m1", None, 10).unwrap(), all[1..2]);
    assert_eq!(store.vectors_after("m2", None, 10).unwrap().len(), 1);
}
