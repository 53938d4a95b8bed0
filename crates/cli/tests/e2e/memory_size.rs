//! Answers about much that is remembered: as long as an agent can use, with word of the rest and the way to it.

use serde_json::{Value, json};

use crate::client::{Client, first_block, warnings};

/// Clients cut or refuse answers that are much longer.
const BEARABLE: usize = 160_000;

/// An entity with so many observations of so many characters.
fn remember(client: &mut Client, name: &str, count: usize, length: usize) {
    let seen = |number: usize| format!("{number:05} {}", "x".repeat(length - 6));
    for start in (0..count).step_by(200) {
        let observations: Vec<String> = (start..count.min(start + 200)).map(seen).collect();
        if start == 0 {
            let entity = json!({"name": name, "entity_type": "x", "observations": observations, "force": true});
            client.answer("create_entity", entity);
            continue;
        }
        for part in observations.chunks(50) {
            let more: Vec<Value> = part.iter().map(|text| json!({"entity_id": 1, "text_content": text})).collect();
            client.answer("bulk_update", json!({ "observations": more }));
        }
    }
}

/// The numbers that the observations of an answer begin with, and its warnings.
fn look(client: &mut Client, arguments: Value) -> (Vec<usize>, Vec<String>) {
    let result = client.call("get_entity", arguments);
    assert!(result["content"][0]["text"].as_str().unwrap().len() < BEARABLE);
    let entity = first_block(&result);
    let observations = entity["observations"].as_array().unwrap();
    let number = |seen: &Value| seen["observation_content"].as_str().unwrap()[..5].parse().unwrap();
    (observations.iter().map(number).collect(), warnings(&result))
}

#[test]
fn an_entity_of_many_observations_is_read_in_parts_newest_first() {
    let mut client = Client::open("");
    remember(&mut client, "Diary", 450, 30);
    let (newest, told) = look(&mut client, json!({"entity_id": 1}));
    assert_eq!(newest, (350..450).collect::<Vec<_>>());
    let message = "entity 1 has 450 observations, of which 100 are shown; the 350 older ones follow at \
        `observations_offset` 100";
    assert_eq!(told, [message]);
    assert_eq!(client.answer("get_entity", json!({"entity_id": 1}))["observations_total"], 450);
    let (older, _) = look(&mut client, json!({"entity_id": 1, "observations_offset": 100, "limit": 250}));
    assert_eq!(older, (100..350).collect::<Vec<_>>());
    let (oldest, told) = look(&mut client, json!({"entity_id": 1, "observations_offset": 400}));
    assert_eq!((oldest, told), ((0..50).collect::<Vec<_>>(), Vec::new()));
    assert_eq!(look(&mut client, json!({"entity_id": 1, "observations_offset": 450})), (Vec::new(), Vec::new()));
    // Paging with defaults reaches each of them once.
    let mut seen: Vec<usize> = Vec::new();
    while seen.len() < 450 {
        let (page, _) = look(&mut client, json!({"entity_id": 1, "observations_offset": seen.len()}));
        assert!(!page.is_empty());
        seen.splice(0..0, page);
    }
    assert_eq!(seen, (0..450).collect::<Vec<_>>());
}

#[test]
fn long_observations_are_whole_and_fewer() {
    let mut client = Client::open("");
    remember(&mut client, "Pages", 6, 20_000);
    let (shown, told) = look(&mut client, json!({"entity_id": 1}));
    assert_eq!((shown, told.len()), (vec![5], 1));
    let (shown, _) = look(&mut client, json!({"entity_id": 1, "observations_offset": 2, "limit": 2}));
    assert_eq!(shown, [2, 3]);
    remember(&mut client, "Book", 1, 50_000);
    let book = client.answer("get_entity", json!({"entity_id": 2, "limit": 1}));
    assert_eq!(book["observations"][0]["observation_content"].as_str().unwrap().len(), 50_000);
}

#[test]
fn a_part_of_the_graph_leaves_room_for_every_entity() {
    let mut client = Client::open("");
    remember(&mut client, "Diary of the house", 400, 300);
    remember(&mut client, "Letter to the house", 1, 40_000);
    remember(&mut client, "House", 3, 50);
    for result in [
        client.call("search_subgraph", json!({"query": "house"})),
        client.call("get_subgraph_by_ids", json!({"entity_ids": [1, 2, 3]})),
    ] {
        assert!(result["content"][0]["text"].as_str().unwrap().len() < BEARABLE);
        let mut found = first_block(&result)["entities"].as_array().unwrap().clone();
        found.sort_by_key(|entity| entity["entity_id"].as_i64());
        let lengths = |entity: &Value| -> Vec<usize> {
            let observations = entity["observations"].as_array().unwrap().iter();
            observations.map(|seen| seen["content"].as_str().unwrap().len()).collect()
        };
        let diary = lengths(&found[0]);
        assert!(diary.len() > 30 && diary.len() < 60 && diary.iter().all(|length| *length == 300), "{diary:?}");
        let newest = &found[0]["observations"][diary.len() - 1]["content"];
        assert!(newest.as_str().unwrap().starts_with("00399"), "{newest}");
        let letter = found[1]["observations"][0]["content"].as_str().unwrap();
        assert!(letter.len() > 15_000 && letter.ends_with("... [truncated]"), "{}", letter.len());
        assert_eq!((lengths(&found[2]), &found[0]["memory_observations_count"]), (vec![50; 3], &json!(400)));
        let message = "newest observations of entities ";
        assert!(warnings(&result).iter().any(|told| told.contains(message)), "{:?}", warnings(&result));
    }
}

#[test]
fn matches_are_shown_before_the_newest() {
    let mut client = Client::open("");
    let asked = "the pelican delivered the invoice to Marrakesh";
    client.answer("create_entity", json!({"name": "Errands", "entity_type": "x", "observations": [asked]}));
    for part in 0..3 {
        let filler = |number: usize| format!("{:05} {}", part * 50 + number, "x".repeat(970));
        let more: Vec<Value> = (0..50).map(|n| json!({"entity_id": 1, "text_content": filler(n)})).collect();
        client.answer("bulk_update", json!({ "observations": more }));
    }
    let result = client.call("search_subgraph", json!({"query": "pelican invoice Marrakesh"}));
    let observations = first_block(&result)["entities"][0]["observations"].as_array().unwrap().clone();
    let texts: Vec<&str> = observations.iter().map(|seen| seen["content"].as_str().unwrap()).collect();
    assert_eq!(texts[0], asked);
    assert!(texts.len() > 30 && texts[1..].is_sorted() && texts[texts.len() - 1].starts_with("00149"), "{texts:?}");
    let told = "only the best matching and newest observations of entities 1 are shown; for all of them read one entity at a time";
    assert_eq!(warnings(&result), [told]);
}

#[test]
fn a_hundred_long_descriptions_are_cut_in_lists_and_whole_alone() {
    let mut client = Client::open("");
    for part in 0..2 {
        let entity = |number: usize| {
            json!({"name": format!("Thing {}", part * 50 + number), "entity_type": "x",
                "description": format!("house {}", "y".repeat(9000)), "observations": ["z".repeat(2000)]})
        };
        let entities: Vec<Value> = (0..50).map(entity).collect();
        client.answer("bulk_update", json!({ "entities": entities }));
    }
    for (tool, arguments) in [
        ("search_entities", json!({"query": "house", "limit": 100})),
        ("search_subgraph", json!({"query": "house", "per_page": 100})),
        ("get_subgraph_by_ids", json!({"entity_ids": (1..=100).collect::<Vec<_>>()})),
    ] {
        let answer = client.answer(tool, arguments).to_string();
        assert_eq!(answer.matches("\"entity_id\"").count(), 100);
        assert!(answer.len() < BEARABLE, "{tool}: {}", answer.len());
    }
    let one = client.answer("get_entity", json!({"entity_id": 7}));
    assert_eq!(one["description"].as_str().unwrap().len(), 9006);
}

/// JSON has six characters for each of these.
#[test]
fn entity_longer_than_an_answer_is_shown_with_its_relations() {
    let mut client = Client::open("");
    let long = "\u{1}".repeat(10_000);
    client.answer("create_entity", json!({"name": "Long", "entity_type": "x", "description": long}));
    client.answer("create_entity", json!({"name": "Other", "entity_type": "x", "observations": ["short"]}));
    client.answer("create_relation", json!({"from_entity_id": 1, "to_entity_id": 2, "relation_type": "knows"}));
    let entity = client.answer("get_entity", json!({"entity_id": 1}));
    assert_eq!(entity["description"], json!(long));
    assert_eq!(entity["relations_from"].as_array().unwrap().len(), 1, "{entity}");
    let part = client.answer("get_subgraph_by_ids", json!({"entity_ids": [1, 2]}));
    assert_eq!(part["relations"].as_array().unwrap().len(), 1, "{part}");
}
