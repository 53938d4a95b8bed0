//! `bulk_update` against plain lists: whatever is asked for, in whatever order, all of it is made or nothing is, and the file
//! says the same when it is opened again.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::memory::{
    Bulk, BulkObservation, BulkRelation, DuplicateRule, EntityDraft, EntityId, EntityTypes, Memory, MemoryParts,
    NameOrId,
};
use quipu_core::ports::{Author, MemoryStore, RelationFilter};
use quipu_store_embedded::MemoryDatabase;
use quipu_testkit::FixedClock;

/// Few, so that they collide; two are the same in another case. What looks like a number may be a name.
const NAMES: [&str; 8] = ["Ada", "ADA", "Bo", "Cy", "Dé", "3", " Eve ", " "];
const TYPES: [&str; 3] = ["knows", "part_of", ""];

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn whom() -> impl Strategy<Value = NameOrId> {
    prop_oneof![(0..12_i64).prop_map(|id| NameOrId::Id(EntityId(id))), names().prop_map(NameOrId::Name)]
}

fn facts() -> impl Strategy<Value = String> {
    prop::sample::select(&["one", "two", "three", ""][..]).prop_map(str::to_owned)
}

fn bulk() -> impl Strategy<Value = Bulk> {
    let entity = (names(), prop::collection::vec(facts(), 0..2)).prop_map(|(name, observations)| EntityDraft {
        name,
        entity_type: "Thing".into(),
        observations,
        ..EntityDraft::default()
    });
    let observation = (whom(), facts()).prop_map(|(entity, text)| BulkObservation { entity, text });
    let relation = (whom(), whom(), prop::sample::select(&TYPES[..]))
        .prop_map(|(from, to, relation_type)| BulkRelation { from, to, relation_type: relation_type.into() });
    (
        prop::collection::vec(entity, 0..3),
        prop::collection::vec(observation, 0..3),
        prop::collection::vec(relation, 0..3),
    )
        .prop_map(|(entities, observations, relations)| Bulk { entities, observations, relations })
}

/// What a memory holds, as a person would write it down. An entity's number is its place, from one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Plain {
    entities: Vec<(String, Vec<String>)>,
    relations: Vec<(i64, i64, String)>,
}

impl Plain {
    /// After a bulk; `None` where any part of it cannot be.
    fn with(&self, bulk: &Bulk) -> Option<Self> {
        if bulk.entities.is_empty() && bulk.observations.is_empty() && bulk.relations.is_empty() {
            return None;
        }
        let said = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        let mut after = self.clone();
        for draft in &bulk.entities {
            let name = said(&draft.name)?;
            if after.entities.iter().any(|(taken, _)| taken.to_lowercase() == name.to_lowercase()) {
                return None;
            }
            let facts = draft.observations.iter().map(|fact| said(fact)).collect::<Option<Vec<_>>>()?;
            after.entities.push((name, facts));
        }
        let number = |whom: &NameOrId| {
            let made = |name: &str| {
                let made = after.entities[self.entities.len()..].iter();
                let place =
                    made.map(|(made, _)| made.to_lowercase()).position(|made| made == name.trim().to_lowercase());
                place.map(|place| (self.entities.len() + place) as i64 + 1)
            };
            let number = match whom {
                NameOrId::Id(EntityId(id)) => *id,
                NameOrId::Name(name) => made(name).or_else(|| name.trim().parse().ok())?,
            };
            (1..=after.entities.len() as i64).contains(&number).then_some(number)
        };
        let observed =
            bulk.observations.iter().map(|observation| Some((number(&observation.entity)?, said(&observation.text)?)));
        let observed = observed.collect::<Option<Vec<_>>>()?;
        let related = bulk
            .relations
            .iter()
            .map(|relation| Some((number(&relation.from)?, number(&relation.to)?, said(&relation.relation_type)?)));
        let related = related.collect::<Option<Vec<_>>>()?;
        for (entity, fact) in observed {
            let facts = &mut after.entities[entity as usize - 1].1;
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
        for relation in related {
            if after.relations.contains(&relation) {
                return None;
            }
            after.relations.push(relation);
        }
        Some(after)
    }

    fn of(store: &MemoryDatabase) -> Self {
        let entities = store.entities_after(EntityId(0), 1000).unwrap();
        let ids: Vec<EntityId> = entities.iter().map(|entity| entity.id).collect();
        assert!(ids.iter().map(|id| id.0).eq(1..=ids.len() as i64), "{ids:?}");
        let facts = store.observations_of(&ids).unwrap();
        let facts = facts.into_iter().map(|facts| facts.into_iter().map(|fact| fact.text).collect());
        let relations = store.relations_where(&RelationFilter::default(), 0, 1000).unwrap();
        Self {
            entities: entities.into_iter().map(|entity| entity.name).zip(facts).collect(),
            relations: relations.into_iter().map(|it| (it.from.0, it.to.0, it.relation_type)).collect(),
        }
    }
}

fn open(file: &Path) -> (Arc<MemoryDatabase>, Memory) {
    let store = Arc::new(MemoryDatabase::open(file).unwrap());
    let memory = Memory::new(MemoryParts {
        store: store.clone(),
        embedder: None,
        clock: Arc::new(FixedClock::default()),
        types: EntityTypes::default(),
        rule: DuplicateRule::default(),
    });
    (store, memory)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn bulk_is_applied_whole_or_not_at_all(bulks in prop::collection::vec((bulk(), any::<bool>()), 1..8)) {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("memory.db");
        let (mut store, mut memory) = open(&file);
        let mut plain = Plain::default();
        for (mut bulk, opens_anew) in bulks {
            // Who guesses the number that an entity of the same call will get gets no list of repetitions.
            let guesses = |whom: &NameOrId| match whom {
                NameOrId::Id(EntityId(id)) => *id > plain.entities.len() as i64,
                NameOrId::Name(name) => name.trim().parse::<usize>().is_ok_and(|id| id > plain.entities.len()),
            };
            if !bulk.entities.is_empty() {
                bulk.observations.retain(|observation| !guesses(&observation.entity));
            }
            let author = Author { client: "test".into(), tool: "bulk_update".into(), at_ns: 1, request: None };
            let expected = plain.with(&bulk);
            let made = memory.bulk_update(&bulk, &author);
            prop_assert_eq!(made.is_ok(), expected.is_some(), "{:?} of {:?}", made, bulk);
            plain = expected.unwrap_or(plain);
            if opens_anew {
                drop((store, memory));
                (store, memory) = open(&file);
            }
            prop_assert_eq!(Plain::of(&store), plain.clone());
        }
    }
}
