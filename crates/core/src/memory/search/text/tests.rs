//! Words in, entities out; what was changed before leaves no trace.

use super::*;

fn entity(id: i64, name: &str) -> Entity {
    Entity {
        id: EntityId(id),
        name: name.into(),
        entity_type: "Task".into(),
        aliases: Vec::new(),
        description: None,
        observation_count: 0,
        created_ns: 0,
        updated_ns: 0,
    }
}

fn seen(id: i64, of: i64, text: &str) -> Observation {
    Observation { id: ObservationId(id), entity: EntityId(of), text: text.into(), created_ns: 0, updated_ns: 0 }
}

fn found(index: &TextIndex, query: &str) -> Vec<i64> {
    let mut hits = index.search(query, MemoryFields::ALL);
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity)));
    hits.into_iter().map(|hit| hit.entity.0).collect()
}

#[test]
fn a_name_outranks_a_mention_and_every_field_is_named() {
    let mut index = TextIndex::default();
    index.put_entities(&[entity(1, "Login page"), entity(2, "Session store")], &EntityTypes::default());
    index.put_observations(&[seen(1, 2, "used by the login page"), seen(2, 1, "slow")]);
    assert_eq!(found(&index, "login"), [1, 2]);
    let hits = index.search("login slow task", MemoryFields::ALL);
    let first = hits.iter().find(|hit| hit.entity == EntityId(1)).unwrap();
    assert_eq!(
        first.fields.iter().collect::<Vec<_>>(),
        [MemoryField::Name, MemoryField::Type, MemoryField::Observations]
    );
    assert_eq!(first.best, Some(ObservationId(2)));
    assert_eq!(index.search("login", MemoryFields::from_iter([MemoryField::Observations])).len(), 1);
}

#[test]
fn observations_that_have_the_words_are_named_best_first() {
    let mut index = TextIndex::default();
    index.put_entities(&[entity(1, "Harbour"), entity(2, "Pelican")], &EntityTypes::default());
    let texts = [
        (1, 1, "the pelican brought the invoice"),
        (2, 1, "it rains what it can"),
        (3, 1, "a pelican"),
        (4, 2, "a pelican"),
    ];
    index.put_observations(&texts.map(|(id, of, text)| seen(id, of, text)));
    let fitting = index.observations_with("what did the pelican do with the invoice", &[EntityId(1)]);
    assert_eq!(fitting, FxHashMap::from_iter([(EntityId(1), vec![ObservationId(1), ObservationId(3)])]));
}

#[test]
fn scores_do_not_depend_on_what_was_changed_before() {
    let types = EntityTypes::default();
    let entities = [entity(1, "Harbour pilot"), entity(2, "Harbour dues"), entity(3, "Pilot light")];
    let mut edited = TextIndex::default();
    edited.put_entities(&entities, &types);
    edited.put_observations(&[seen(1, 2, "the pilot pays no dues")]);
    for round in 0..30 {
        edited.put_entities(&[entity(3, &format!("Pilot harbour pilots{round}"))], &types);
        edited.put_observations(&[seen(1, 2, &format!("harbourside {round}"))]);
    }
    edited.put_entities(&entities, &types);
    edited.put_observations(&[seen(1, 2, "the pilot pays no dues")]);
    let mut fresh = TextIndex::default();
    fresh.put_entities(&entities, &types);
    fresh.put_observations(&[seen(1, 2, "the pilot pays no dues")]);
    for query in ["pilot", "harbour", "harbour pilot", "what are the dues"] {
        let hits = |index: &TextIndex| {
            let mut hits = index.search(query, MemoryFields::ALL);
            hits.sort_by_key(|hit| hit.entity);
            hits
        };
        assert!(!hits(&fresh).is_empty(), "{query}");
        assert_eq!(hits(&edited), hits(&fresh), "{query}");
    }
}

#[test]
fn type_is_found_by_its_original_word() {
    let mut index = TextIndex::default();
    let ada = Entity { entity_type: "User".into(), ..entity(1, "Ada") };
    index.put_entities(&[ada, entity(2, "Grace")], &EntityTypes::default());
    let hits = index.search("Person", MemoryFields::ALL);
    assert_eq!(hits.iter().map(|hit| hit.entity).collect::<Vec<_>>(), [EntityId(1)]);
    assert_eq!(hits[0].fields.iter().collect::<Vec<_>>(), [MemoryField::Type]);
}

#[test]
fn other_forms_beginnings_parts_and_characters_are_found() {
    let mut index = TextIndex::default();
    index.put_entities(
        &[entity(1, "getUserName"), entity(2, "Painted fence"), entity(3, "全文検索の設計")],
        &EntityTypes::default(),
    );
    for (query, expected) in [
        ("user", 1),
        ("getusername", 1),
        ("painting", 2),
        ("fences", 2),
        ("paint", 2),
        ("検索", 3),
        ("索", 3),
        ("全文検索", 3),
    ] {
        assert_eq!(found(&index, query), [expected], "{query}");
    }
    assert_eq!(found(&index, "… ::"), [0_i64; 0]);
}

#[test]
fn removed_entity_is_not_found_and_its_slot_is_reused() {
    let of_round = |round: i64| format!("{}o", "x".repeat(usize::try_from(round).unwrap() + 3));
    let mut index = TextIndex::default();
    for round in 0..40 {
        let name = |id: i64| format!("thing {id} {}", of_round(round));
        let entities: Vec<Entity> = (0..500).map(|id| entity(id, &name(id))).collect();
        index.put_entities(&entities, &EntityTypes::default());
        index.put_observations(&[seen(7, round, "moves about")]);
        assert_eq!(found(&index, "moves"), [round]);
    }
    assert_eq!(index.search(&of_round(39), MemoryFields::ALL).len(), 500);
    assert_eq!(found(&index, &of_round(38)), [0_i64; 0]);
    assert!(index.units.len() < 500 * 40, "{} units", index.units.len());
    (0..500).for_each(|id| index.drop_entity(EntityId(id)));
    index.drop_observation(ObservationId(7));
    assert_eq!((index.slot_of.len(), index.living), (0, 0));
}
