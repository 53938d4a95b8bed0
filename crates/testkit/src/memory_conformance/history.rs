//! A long history of lists of changes and undos, with the store reopened in between, gives at each step what plain maps
//! give.
//!
//! One history on one store rather than many short ones: ids, names and the log then have a past, as in life. It is the
//! same at every run.

#![expect(clippy::unwrap_used, reason = "a rule that cannot be asked is broken")]

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use quipu_core::memory::{EntityId, ObservationId, RelationId};
use quipu_core::ports::{
    ApplyError, ChangeNumber, EntityRef, EntityUpdate, MemoryChange, MemoryStore, NewEntity, RelationFilter, UndoError,
};

use super::{MemoryStorage, author};
use crate::MemMemory;

/// Things done to a memory in one run.
const DEEDS: i64 = 3000;

/// Who has a context.
const CLIENTS: [&str; 3] = ["x", "y", "z"];

#[derive(Debug, Clone)]
enum Deed {
    Apply(Vec<MemoryChange>),
    Undo(i64),
    SetContext(&'static str, Option<EntityId>),
    Reopen,
}

/// Most lists break some rule somewhere: then they must be rolled back whole.
pub fn random_memory_changes_match_the_model<S: MemoryStorage>(storage: &S) {
    let model = MemMemory::default();
    let mut store = storage.open();
    let mut runner = TestRunner::deterministic();
    for time in 0..DEEDS {
        let newest = Newest::of(&model);
        let deed = deed(newest).new_tree(&mut runner).expect("every deed can be made").current();
        let before = format!("{deed:?}");
        match deed {
            Deed::Apply(changes) => compare_apply(&store, &model, &changes, time),
            Deed::Undo(back) => compare_undo(&store, &model, ChangeNumber(newest.change - back), time),
            Deed::SetContext(client, entity) => {
                let (real, expected) =
                    (store.set_context(client, entity, time), model.set_context(client, entity, time));
                assert_eq!(real.is_ok(), expected.is_ok(), "deed {time}: {before}");
            }
            Deed::Reopen => store = storage.open(),
        }
        assert_eq!(store.head().unwrap(), model.head().unwrap(), "after deed {time}: {before}");
        for client in CLIENTS {
            assert_eq!(store.context(client).unwrap(), model.context(client).unwrap(), "after deed {time}: {before}");
        }
        if time % 50 == 0 {
            compare_all(&store, &model);
        }
    }
    compare_all(&store, &model);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// A memory after so many things were done to it: what is in it has gaps, moves and times of its own.
pub fn memory_with_a_past(deeds: i64) -> MemMemory {
    let memory = MemMemory::default();
    let mut runner = TestRunner::deterministic();
    for time in 0..deeds {
        let newest = Newest::of(&memory);
        // What a deed is refused for belongs to the past as well.
        match deed(newest).new_tree(&mut runner).expect("every deed can be made").current() {
            Deed::Apply(changes) => drop(memory.apply(&changes, &author(time))),
            Deed::Undo(back) => drop(memory.undo(ChangeNumber(newest.change - back), &author(time))),
            Deed::SetContext(client, entity) => drop(memory.set_context(client, entity, time)),
            Deed::Reopen => {}
        }
    }
    memory
}

/// The greatest numbers given so far.
#[derive(Debug, Clone, Copy)]
struct Newest {
    entity: i64,
    observation: i64,
    relation: i64,
    change: i64,
}

impl Newest {
    fn of(model: &MemMemory) -> Self {
        let (entity, observation, relation) = model.last_ids();
        Self { entity, observation, relation, change: model.head().expect("maps can be read").0 }
    }
}

fn deed(newest: Newest) -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => prop::collection::vec(change(newest), 1..6).prop_map(Deed::Apply),
        3 => (-1..12_i64).prop_map(Deed::Undo),
        2 => (prop::sample::select(CLIENTS.to_vec()), prop::option::of((newest.entity - 5).max(0)..newest.entity + 2))
            .prop_map(|(client, entity)| Deed::SetContext(client, entity.map(EntityId))),
        1 => Just(Deed::Reopen),
    ]
}

/// Names from a small set, so that they collide; ids around those given last, so that some are there and some are not.
fn change(newest: Newest) -> impl Strategy<Value = MemoryChange> {
    let name = || prop::sample::select(vec!["Ada", "ADA", "Bo", "Cy", "Dé", "De\u{301}", "Eve", "Flo", "Gus", "Hal"]);
    let names = move || prop::collection::vec(name().prop_map(str::to_owned), 0..3);
    let near = |greatest: i64| (greatest - 12).max(0)..greatest + 2;
    let entity_id = move || near(newest.entity).prop_map(EntityId);
    let entity = move || {
        prop_oneof![
            4 => entity_id().prop_map(EntityRef::Id),
            1 => (0..5_usize).prop_map(EntityRef::Made),
        ]
    };
    let word = || prop::sample::select(vec!["r", "part_of", "s"]).prop_map(str::to_owned);
    let new = (name(), names(), any::<bool>()).prop_map(|(name, aliases, described)| {
        MemoryChange::CreateEntity(NewEntity {
            name: name.to_owned(),
            entity_type: "Thing".to_owned(),
            aliases,
            description: described.then(|| "what it is".to_owned()),
        })
    });
    let update = (entity_id(), prop::option::of(name()), prop::option::of(names()), any::<bool>()).prop_map(
        |(id, name, aliases, clears)| {
            let description = clears.then_some(None);
            let name = name.map(str::to_owned);
            MemoryChange::UpdateEntity { id, update: EntityUpdate { name, aliases, description, entity_type: None } }
        },
    );
    prop_oneof![
        4 => new,
        2 => update,
        1 => (entity_id(), names(), any::<bool>()).prop_map(|(id, aliases, described)| {
            let description = described.then(|| "more of it".to_owned());
            MemoryChange::CompleteEntity { id, aliases, description }
        }),
        1 => entity_id().prop_map(|id| MemoryChange::DeleteEntity { id }),
        1 => (entity_id(), entity_id()).prop_map(|(from, into)| MemoryChange::MergeEntity { from, into }),
        5 => (entity(), word()).prop_map(|(entity, text)| MemoryChange::AddObservation { entity, text }),
        1 => (near(newest.observation), word())
            .prop_map(|(id, text)| MemoryChange::UpdateObservation { id: ObservationId(id), text }),
        1 => near(newest.observation).prop_map(|id| MemoryChange::DeleteObservation { id: ObservationId(id) }),
        4 => (entity(), entity(), word())
            .prop_map(|(from, to, relation_type)| MemoryChange::AddRelation { from, to, relation_type }),
        1 => near(newest.relation).prop_map(|id| MemoryChange::DeleteRelation { id: RelationId(id) }),
    ]
}

fn compare_apply(store: &impl MemoryStore, model: &MemMemory, changes: &[MemoryChange], time: i64) {
    let outcome = |outcome: Result<_, ApplyError>| {
        outcome.map_err(|error| match error {
            ApplyError::Refused { change, refusal } => (change, refusal),
            ApplyError::Failed(failure) => panic!("{failure}: {}", failure.source),
            ApplyError::Moved => panic!("no log entry was named"),
        })
    };
    let (real, expected) = (store.apply(changes, &author(time)), model.apply(changes, &author(time)));
    assert_eq!(outcome(real), outcome(expected), "deed {time}: {changes:?}");
}

fn compare_undo(store: &impl MemoryStore, model: &MemMemory, number: ChangeNumber, time: i64) {
    // The reasons are each store's own words.
    let outcome = |outcome: Result<_, UndoError>| {
        outcome.map_err(|error| match error {
            UndoError::Unknown(_) => "unknown".to_owned(),
            UndoError::Undone { by, .. } => format!("undone by {}", by.0),
            UndoError::Depended { .. } => "depended".to_owned(),
            UndoError::Failed(failure) => panic!("{failure}: {}", failure.source),
        })
    };
    let (real, expected) = (store.undo(number, &author(time)), model.undo(number, &author(time)));
    let (real, expected) = (outcome(real), outcome(expected));
    let steps =
        |entry: Result<quipu_core::ports::LoggedChange, String>| entry.map(|entry| (entry.number, entry.undoes));
    assert_eq!(steps(real), steps(expected), "deed {time}: undo {number:?}");
}

pub(super) fn compare_all(store: &impl MemoryStore, model: &MemMemory) {
    assert_eq!(store.counts().unwrap(), model.counts().unwrap());
    let (real, expected) = (store.entities_from(0, 5000).unwrap(), model.entities_from(0, 5000).unwrap());
    assert_eq!(real, expected);
    let ids: Vec<EntityId> = expected.iter().map(|entity| entity.id).collect();
    assert_eq!(store.observations_of(&ids).unwrap(), model.observations_of(&ids).unwrap());
    let all = RelationFilter::default();
    assert_eq!(store.relations_where(&all, 0, 5000).unwrap(), model.relations_where(&all, 0, 5000).unwrap());
    let newest = ChangeNumber(i64::MAX);
    let entries = |entries: Vec<quipu_core::ports::LoggedChange>| {
        entries.into_iter().map(|entry| (entry.number, entry.undoes, entry.undone_by, entry.steps)).collect::<Vec<_>>()
    };
    assert_eq!(entries(store.log_before(newest, 100).unwrap()), entries(model.log_before(newest, 100).unwrap()));
}
