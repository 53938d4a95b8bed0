//! Memory with an embedder: what is found by meaning, when vectors are made, and what becomes of them.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quipu_core::Session;
use quipu_core::memory::{
    Bulk, Creation, DuplicateRule, Entity, EntityDraft, EntityId, EntityTypes, Memory, MemoryField, MemoryFields,
    MemoryParts, PageRequest, ReadProgress, SearchBy, SearchQuery, SubgraphQuery,
};
use quipu_core::ports::{Author, EmbedError, Embedder, EntityUpdate, RelationFilter, Role};
use quipu_testkit::memory_conformance::MemoryStorage;
use quipu_testkit::{FixedClock, MemMemoryStorage};

/// Knows three subjects, and words for each: texts on one subject lie in one direction.
#[derive(Default)]
struct Subjects {
    texts: AtomicUsize,
    is_down: AtomicBool,
    /// Directions beyond those of the subjects, which no text points in.
    more: AtomicUsize,
}

const SUBJECTS: [&[&str]; 3] = [&["car", "automobile", "vehicle"], &["cat", "feline", "kitten"], &["tea", "beverage"]];

impl Embedder for Subjects {
    fn space(&self) -> &str {
        "subjects"
    }

    fn worth_beyond_english(&self) -> f32 {
        1.0
    }

    fn unrelated(&self) -> f32 {
        0.0
    }

    fn embed(&self, _role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err(EmbedError::Unavailable("it is down".into()));
        }
        if texts.iter().any(|text| text.contains("unspeakable")) {
            return Err(EmbedError::Unusable("one of them is too much for it".into()));
        }
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        let vector = |text: &&str| {
            let has = |words: &&[&str]| words.iter().any(|word| text.to_lowercase().contains(word));
            let subject = SUBJECTS.iter().position(has).unwrap_or(3);
            let mut vector = vec![0.0; 4 + self.more.load(Ordering::Relaxed)];
            vector[subject] = 1.0;
            // What means nothing is a little near to everything.
            if text.contains("zzz") {
                vector.fill(0.13);
            }
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

fn memory(storage: &MemMemoryStorage, embedder: &Arc<Subjects>) -> Memory {
    Memory::new(MemoryParts {
        store: Arc::new(storage.open()),
        embedder: Some(embedder.clone()),
        clock: Arc::new(FixedClock::default()),
        types: EntityTypes::default(),
        rule: DuplicateRule::default(),
    })
}

fn author() -> Author {
    Author { client: "test".into(), tool: "test".into(), at_ns: 1, request: None }
}

fn create(memory: &Memory, name: &str, observation: &str) -> EntityId {
    let draft = EntityDraft {
        name: name.into(),
        entity_type: "Thing".into(),
        observations: vec![observation.into()],
        ..EntityDraft::default()
    };
    match memory.create_entity(draft, false, &author()).unwrap() {
        Creation::Created(entity) => entity.id,
        held @ Creation::Duplicate { .. } => panic!("{held:?}"),
    }
}

/// What is found, with whether words did it.
fn found(memory: &Memory, text: &str) -> Vec<(i64, bool)> {
    let query = SearchQuery { text: text.into(), limit: 10, project: None, by: SearchBy::Both };
    let found = memory.search(&Session::default(), &query).unwrap();
    assert!(found.iter().all(|found| (0.0..=1.0).contains(&found.score)));
    found.into_iter().map(|found| (found.entity.id.0, !found.fields.is_empty())).collect()
}

fn make_all(memory: &Memory) {
    while memory.embed_some(2).unwrap().missing > 0 {}
}

#[test]
fn search_by_meaning_finds_what_words_miss() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    create(&memory, "Garage", "holds one automobile");
    create(&memory, "Sofa", "the kitten sleeps there");
    assert_eq!(found(&memory, "sofa"), [(2, true)], "words find it at once");
    assert_eq!(found(&memory, "feline"), [], "no vectors yet");
    make_all(&memory);
    assert_eq!(found(&memory, "feline"), [(2, false)]);
    assert_eq!(found(&memory, "car"), [(1, false)]);
    assert_eq!(found(&memory, "tea"), [], "nothing is near");
    assert_eq!(found(&memory, "the kitten"), [(2, true)]);
}

#[test]
fn search_matches_with_and_without_accents() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    create(&memory, "Café Noir", "in der Straße");
    assert_eq!(found(&memory, "cafe"), [(1, true)]);
    assert_eq!(found(&memory, "café strasse"), [(1, true)]);
    let draft = EntityDraft { name: "Cafe Noir".into(), entity_type: "Thing".into(), ..EntityDraft::default() };
    assert!(matches!(memory.create_entity(draft, false, &author()).unwrap(), Creation::Duplicate { .. }));
}

#[test]
fn function_words_alone_find_nothing() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    create(&memory, "Office rules", "the rest is in the drawer");
    create(&memory, "Login form", "visitors sign here, in the end");
    assert_eq!(found(&memory, "how do I sign in to the site"), [(2, true)]);
    assert_eq!(found(&memory, "in the"), [(1, true), (2, true)], "unless nothing else is asked for");
}

#[test]
fn refused_text_does_not_block_other_vectors() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    create(&memory, "Horror", "something unspeakable");
    create(&memory, "Sofa", "the kitten sleeps there");
    make_all(&memory);
    assert_eq!(found(&memory, "feline"), [(2, false)]);
    assert_eq!(found(&memory, "unspeakable"), [(1, true)], "words find it");
}

#[test]
fn project_members_are_found_by_meaning_among_many_others() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    let project = create(&memory, "Moving house", "in May");
    for number in 0..150 {
        create(&memory, &format!("Lot {number}"), "an automobile");
    }
    let member = create(&memory, "Garage", "holds one vehicle");
    memory.create_relation(member, project, "part_of", &author()).unwrap();
    make_all(&memory);
    let query = SearchQuery { text: "car".into(), limit: 5, project: Some(project), by: SearchBy::Both };
    let first = memory.search(&Session::default(), &query).unwrap().swap_remove(0);
    assert_eq!(first.entity.id, member);
}

/// The first is the last by words, out of more than are ranked, and the first by meaning.
#[test]
fn matched_fields_are_right_for_common_words() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    create(&memory, "Long story", &format!("tea {}", "and so on ".repeat(200)));
    for round in 0..22 {
        let draft = |number| EntityDraft {
            name: format!("Cup {}", round * 50 + number),
            entity_type: "Thing".into(),
            observations: vec!["tea".into()],
            ..EntityDraft::default()
        };
        memory.bulk_update(&Bulk { entities: (0..50).map(draft).collect(), ..Bulk::default() }, &author()).unwrap();
    }
    while memory.embed_some(500).unwrap().missing > 0 {}
    let query = SearchQuery { text: "tea".into(), limit: 200, project: None, by: SearchBy::Both };
    let found = memory.search(&Session::default(), &query).unwrap();
    let story = found.iter().find(|found| found.entity.id == EntityId(1)).expect("it is near");
    assert!(story.fields.has(MemoryField::Observations), "{story:?}");
    let page = PageRequest { number: 1, size: 10 };
    let query = SubgraphQuery { text: "tea".into(), fields: MemoryFields::ALL, page, project: None };
    assert_eq!(memory.search_subgraph(&Session::default(), &query).unwrap().total, 1101);
}

/// Every invoice lies as near to the bill as its own.
#[test]
fn duplicate_is_suggested_among_many_similar_entities() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    let invoices: Vec<EntityId> = (100..200).map(|number| create(&memory, &format!("Invoice {number}"), "x")).collect();
    let draft = EntityDraft { name: "Bill no 142".into(), entity_type: "Thing".into(), ..EntityDraft::default() };
    let Creation::Created(bill) = memory.create_entity(draft, true, &author()).unwrap() else { panic!("it is forced") };
    make_all(&memory);
    let suggested = memory.suggest_merges(0.3, 20, None).unwrap();
    let suggested: Vec<_> = suggested.into_iter().map(|pair| (pair.a.id, pair.b.id)).collect();
    assert_eq!(suggested, [(invoices[42], bill.id)]);
}

#[test]
fn nonsense_query_finds_nothing() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    create(&memory, "Garage", "holds one automobile");
    create(&memory, "Sofa", "the kitten sleeps there");
    make_all(&memory);
    assert_eq!(found(&memory, "zzzq zzz"), [], "nearness alone must be greater");
    assert_eq!(found(&memory, "zzzq sofa"), [(2, true)]);
}

/// What a search in some fields finds, and of each the observations that fit.
fn found_in(memory: &Memory, text: &str, fields: &[MemoryField]) -> Vec<(i64, Vec<i64>)> {
    let page = PageRequest { number: 1, size: 10 };
    let query = SubgraphQuery {
        text: text.into(),
        fields: fields.iter().copied().collect::<MemoryFields>(),
        page,
        project: None,
    };
    let found = memory.search_subgraph(&Session::default(), &query).unwrap();
    let fitting = found.fitting.into_iter().map(|fitting| fitting.into_iter().map(|id| id.0).collect());
    found.subgraph.entities.into_iter().map(|(entity, _)| entity.id.0).zip(fitting).collect()
}

#[test]
fn search_in_some_fields_ignores_the_others() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    create(&memory, "Automobile", "red");
    let observed = create(&memory, "Sofa", "red");
    for text in ["the kitten sleeps there", "blue"] {
        memory.create_observation(observed, text, &author()).unwrap();
    }
    make_all(&memory);
    let own = [MemoryField::Name, MemoryField::Type, MemoryField::Aliases, MemoryField::Description];
    for field in own {
        assert_eq!(found_in(&memory, "vehicle", &[field]), [], "{field:?} has no such word");
    }
    assert_eq!(found_in(&memory, "vehicle", &[MemoryField::Observations]), []);
    assert_eq!(found_in(&memory, "automobile", &[MemoryField::Type]), []);
    assert_eq!(found_in(&memory, "automobile", &[MemoryField::Name]), [(1, vec![])]);
    assert_eq!(found_in(&memory, "vehicle", &own), [(1, vec![])], "all that the vector is made of");
    assert_eq!(
        found_in(&memory, "feline", &[MemoryField::Observations]),
        [(2, vec![3])],
        "by meaning, and which it is"
    );
    assert_eq!(found_in(&memory, "blue kitten", &MemoryField::ALL), [(2, vec![4, 3])]);
}

#[test]
fn vectors_are_stored_and_recomputed_when_a_text_changes() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    {
        let memory = memory(&storage, &embedder);
        create(&memory, "Garage", "holds one automobile");
        make_all(&memory);
    }
    let made = embedder.texts.load(Ordering::Relaxed);
    let memory = memory(&storage, &embedder);
    make_all(&memory);
    assert_eq!(embedder.texts.load(Ordering::Relaxed), made, "they are still there");
    let update = EntityUpdate { description: Some(Some("for a feline".into())), ..EntityUpdate::default() };
    memory.update_entity(EntityId(1), update, &author()).unwrap();
    assert_eq!(found(&memory, "kitten"), [], "the old vector is not used for the new text");
    make_all(&memory);
    assert_eq!(found(&memory, "kitten"), [(1, false)]);
    memory.delete_entity(EntityId(1), &author()).unwrap();
    assert_eq!(found(&memory, "kitten"), []);
}

#[test]
fn model_with_new_dimensions_recomputes_all_vectors() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let dimensions = |memory: &Memory| {
        let kept = memory.store().vectors_after("subjects", None, 100).unwrap();
        kept.into_iter().map(|(_, vector)| vector.codes.len()).collect::<Vec<_>>()
    };
    let first = memory(&storage, &embedder);
    create(&first, "Garage", "holds one automobile");
    create(&first, "Sofa", "the kitten sleeps there");
    make_all(&first);
    assert_eq!(dimensions(&first), [4; 4]);

    // Told by a question, with nothing new to be made a vector of.
    embedder.more.store(3, Ordering::Relaxed);
    assert_eq!(found(&first, "feline"), [], "the old vectors are not compared with the new one");
    make_all(&first);
    assert_eq!((found(&first, "feline"), dimensions(&first)), (vec![(2, false)], vec![7; 4]));

    // Told by a new text, and ended half way: the next start finds vectors of both kinds.
    embedder.more.store(1, Ordering::Relaxed);
    create(&first, "Kettle", "for tea");
    first.embed_some(2).unwrap();
    assert!(dimensions(&first).contains(&5) && dimensions(&first).contains(&7));
    let next = memory(&storage, &embedder);
    make_all(&next);
    assert_eq!(dimensions(&next), [5; 6]);
    for (question, answer) in [("vehicle", 1), ("feline", 2), ("beverage", 3)] {
        assert_eq!(found(&next, question), [(answer, false)]);
    }
}

#[test]
fn without_an_embedder_search_uses_words() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let memory = memory(&storage, &embedder);
    embedder.is_down.store(true, Ordering::Relaxed);
    create(&memory, "Garage", "holds one automobile");
    assert_eq!(found(&memory, "automobile"), [(1, true)]);
    assert!(memory.embed_some(8).is_err());
    embedder.is_down.store(false, Ordering::Relaxed);
    make_all(&memory);
    assert_eq!(found(&memory, "vehicle"), [(1, false)]);
}

#[test]
fn search_finds_what_has_been_read_while_memory_is_read_ahead() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    create(&memory(&storage, &embedder), "Garage", "holds one automobile");
    let open = || Arc::new(memory(&storage, &embedder));
    let ahead = open();
    let read_ahead = Memory::read_ahead(&ahead);
    let nothing = Err(ReadProgress::default());
    assert_eq!((found(&ahead, "garage"), ahead.wait_read(Duration::ZERO)), (vec![], nothing));
    read_ahead().unwrap();
    assert_eq!((found(&ahead, "garage"), ahead.wait_read(Duration::ZERO)), (vec![(1, true)], Ok(())));
    // What needs all of memory waits for that thread.
    let ahead = open();
    let read_ahead = Memory::read_ahead(&ahead);
    std::thread::scope(|scope| {
        let created = scope.spawn(|| create(&ahead, "Kitchen", "holds a cup of tea"));
        read_ahead().unwrap();
        assert_eq!(created.join().unwrap(), EntityId(2));
    });
    assert_eq!(found(&open(), "garage"), [(1, true)], "no thread reads ahead");
}

#[test]
fn changes_of_another_process_are_applied() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::new(Subjects::default()));
    let (one, other) = (memory(&storage, &embedder), memory(&storage, &embedder));
    assert_eq!(found(&one, "garage"), []);
    create(&other, "Garage", "holds one automobile");
    assert_eq!(found(&one, "garage"), [(1, true)]);
    other.store().undo(other.store().head().unwrap(), &author()).unwrap();
    assert_eq!(found(&one, "garage"), []);
}

#[test]
fn merge_matches_its_plan() {
    let (storage, embedder) = (MemMemoryStorage::default(), Arc::default());
    let memory = memory(&storage, &embedder);
    let (from, into) =
        (create(&memory, "Auth svc", "signs tokens"), create(&memory, "Login service", "asks for a password"));
    for (id, description) in [(from, "Makes tokens."), (into, "Lets people in.")] {
        let update = EntityUpdate { description: Some(Some(description.into())), ..EntityUpdate::default() };
        memory.update_entity(id, update, &author()).unwrap();
    }
    let other = create(&memory, "Gateway", "asks both");
    for (source, target, relation_type) in
        [(other, from, "uses"), (other, into, "uses"), (from, into, "same_as"), (from, other, "serves")]
    {
        memory.create_relation(source, target, relation_type, &author()).unwrap();
    }
    let plan = memory.plan_merge(from, into).unwrap();
    assert_eq!((plan.relations, plan.relations_dropped), (1, 2), "one is there already, one would be with itself");
    let merged = memory.merge_entities(from, into, &author()).unwrap().into;
    assert_eq!(memory.store().relations_where(&RelationFilter::default(), 0, 9).unwrap().len(), 2);
    assert_eq!(plan.into.observation_count, 3, "each had one, and a description became the third");
    assert_eq!(plan.into, Entity { updated_ns: plan.into.updated_ns, ..merged });
}
