//! `extract_entities`: what a note or a text names, ready for `bulk_update`.

use quipu_core::suggest::{EntitySuggestions, SuggestedEntity, SuggestedRelation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::no_such_note;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

/// The most operations of one `bulk_update`.
const MAX_BULK: usize = quipu_core::memory::Memory::MAX_BULK;

/// Less sure names are shown, but not stored by passing the answer on.
const LEAST_CONFIDENCE: f32 = 0.4;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note; or give `text`.
    id: Option<String>,
    /// Any text.
    #[schemars(length(max = 100_000))]
    text: Option<String>,
    /// Maximum entities.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

fn default_limit() -> usize {
    20
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    entities: Vec<EntityFound>,
    relations: Vec<RelationFound>,
    /// Arguments of `bulk_update` for what memory does not have, from a confidence of 0.4 on; absent if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    bulk_update: Option<Map<String, Value>>,
    /// "links_names_patterns", or "llm" with the configured model.
    method: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct EntityFound {
    name: String,
    entity_type: String,
    confidence: f64,
    mentions: Vec<MentionFound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_entity_id: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
struct MentionFound {
    line: usize,
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct RelationFound {
    from: String,
    to: String,
    relation_type: String,
}

pub(crate) struct ExtractEntities;

impl Tool for ExtractEntities {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "extract_entities";
    const DESCRIPTION: &'static str = "Find the people, projects and things that a note or text names, and which of \
        them are in memory. Stores nothing: check the result, then pass its field bulk_update to bulk_update.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let found = match (&params.id, &params.text) {
            (Some(id), None) => {
                let read = call.read(id)?.ok_or_else(|| no_such_note(call, id))?;
                let note = Some((&*read.snapshot, read.key));
                call.knowledge.extract_entities(note, &read.text, params.limit)?
            }
            (None, Some(text)) => call.knowledge.extract_entities(None, text, params.limit)?,
            _ => return Err(ToolError::invalid("give either `id` or `text`")),
        };
        let bulk_update = bulk_update(&found);
        let EntitySuggestions { entities, relations, by_model, warnings } = found;
        warnings.into_iter().for_each(|warning| call.warn(warning));
        let entity = |found: SuggestedEntity| EntityFound {
            name: found.name,
            entity_type: found.entity_type,
            confidence: (f64::from(found.confidence) * 100.0).round() / 100.0,
            mentions: found
                .mentions
                .into_iter()
                .map(|place| MentionFound { line: place.line, text: place.text })
                .collect(),
            existing_entity_id: found.existing.map(|id| id.0),
        };
        let relation = |found: SuggestedRelation| RelationFound {
            from: found.from,
            to: found.to,
            relation_type: found.relation_type,
        };
        Ok(Output {
            entities: entities.into_iter().map(entity).collect(),
            relations: relations.into_iter().map(relation).collect(),
            bulk_update,
            method: if by_model { "llm" } else { "links_names_patterns" },
        })
    }
}

/// The entities and relations that memory does not have, as arguments of `bulk_update`.
fn bulk_update(found: &EntitySuggestions) -> Option<Map<String, Value>> {
    let is_sure = |entity: &SuggestedEntity| entity.existing.is_some() || entity.confidence >= LEAST_CONFIDENCE;
    let is_new = |entity: &&SuggestedEntity| entity.existing.is_none() && is_sure(entity);
    let is_stored = |name: &str| found.entities.iter().any(|entity| entity.name == name && is_sure(entity));
    let entities: Vec<Value> = found
        .entities
        .iter()
        .filter(is_new)
        .map(|entity| json!({"name": entity.name, "entity_type": entity.entity_type}))
        .collect();
    let reference = |name: &str| -> Value {
        let entity = found.entities.iter().find(|entity| entity.name == name);
        entity.and_then(|entity| entity.existing).map_or_else(|| name.into(), |id| id.0.into())
    };
    let relations: Vec<Value> = found
        .relations
        .iter()
        .filter(|relation| !relation.is_known && is_stored(&relation.from) && is_stored(&relation.to))
        .take(MAX_BULK.saturating_sub(entities.len()))
        .map(|relation| {
            json!({
                "from_entity_id": reference(&relation.from),
                "to_entity_id": reference(&relation.to),
                "relation_type": relation.relation_type
            })
        })
        .collect();
    let mut arguments = Map::new();
    for (name, items) in [("entities", entities), ("relations", relations)] {
        if !items.is_empty() {
            arguments.insert(name.to_owned(), items.into());
        }
    }
    (!arguments.is_empty()).then_some(arguments)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Harness;

    const NOTES: &str = "\
//- alpha.md
---
title: Alpha
type: Project
---
The plan was reviewed by Grace Hopper and @ada.
It needs [[Beta]] and the `DataLoader`, says Grace Hopper. A Rain Gauge is not a person.
//- beta.md
---
title: Beta
type: Service
---
";

    fn named<'a>(answer: &'a Value, name: &str) -> &'a Value {
        let entities = answer["entities"].as_array().unwrap();
        entities.iter().find(|entity| entity["name"] == name).unwrap_or_else(|| panic!("{name} is not in {answer}"))
    }

    #[test]
    fn result_is_valid_input_of_bulk_update() {
        let harness = Harness::new(NOTES);
        let answer = harness.call("extract_entities", json!({"id": "alpha.md"}));
        let grace = json!({
            "name": "Grace Hopper", "entity_type": "User", "confidence": 0.6,
            "mentions": [
                {"line": 5, "text": "The plan was reviewed by Grace Hopper and @ada."},
                {"line": 6, "text": "It needs [[Beta]] and the `DataLoader`, says Grace Hopper. A Rain Gauge is not a person."}
            ]
        });
        assert_eq!(named(&answer, "Grace Hopper"), &grace);
        assert_eq!(named(&answer, "ada")["entity_type"], "User");
        assert_eq!(named(&answer, "DataLoader")["entity_type"], "Component");
        let gauge = named(&answer, "Rain Gauge");
        assert_eq!((&gauge["entity_type"], &gauge["confidence"]), (&json!("Resource"), &json!(0.2)));
        assert_eq!(
            (&named(&answer, "Alpha")["entity_type"], &named(&answer, "Beta")["entity_type"]),
            (&json!("Project"), &json!("Service"))
        );
        assert_eq!(answer["relations"], json!([{"from": "Alpha", "to": "Beta", "relation_type": "references"}]));

        let made = harness.call("bulk_update", answer["bulk_update"].clone());
        assert_eq!(made["summary"], json!({"entities_created": 5, "observations_created": 0, "relations_created": 1}));

        let again = harness.call("extract_entities", json!({"id": "alpha.md"}));
        let is_stored = |entity: &Value| entity["existing_entity_id"].is_i64() || entity["name"] == "Rain Gauge";
        assert!(again["entities"].as_array().unwrap().iter().all(is_stored), "{again}");
        assert!(again.get("bulk_update").is_none(), "memory has everything: {again}");
    }

    #[test]
    fn names_and_aliases_of_memory_are_found_in_a_text() {
        let harness = Harness::new(NOTES);
        let made =
            harness.call("create_entity", json!({"name": "Rust compiler", "entity_type": "Tool", "aliases": "rustc"}));
        let answer = harness.call("extract_entities", json!({"text": "A bug of rustc.\nThe rust compiler again."}));
        let found = named(&answer, "Rust compiler");
        assert_eq!(found["existing_entity_id"], made["entity_id"]);
        let lines: Vec<&Value> = found["mentions"].as_array().unwrap().iter().map(|mention| &mention["line"]).collect();
        assert_eq!(lines, [1, 2]);
        assert_eq!(answer["entities"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn links_of_a_text_are_found() {
        let harness = Harness::new(NOTES);
        let text = "First line.\nSee [[beta]], [the plan](alpha.md), [[people/Ada Lovelace|Ada]] and ![[photo.png]].";
        let answer = harness.call("extract_entities", json!({ "text": text }));
        let line = text.lines().nth(1).unwrap();
        let beta = json!({
            "name": "Beta", "entity_type": "Service", "confidence": 0.8, "mentions": [{"line": 2, "text": line}]
        });
        assert_eq!(named(&answer, "Beta"), &beta);
        assert_eq!(named(&answer, "Alpha")["entity_type"], "Project");
        let ada = named(&answer, "Ada Lovelace");
        assert_eq!(
            (&ada["confidence"], &ada["mentions"][0]["line"]),
            (&json!(0.5), &json!(2)),
            "no note has this name"
        );
        let names: Vec<&Value> = answer["entities"].as_array().unwrap().iter().map(|entity| &entity["name"]).collect();
        assert!(!names.iter().any(|name| name.as_str().unwrap().contains("photo")), "{names:?}");
    }

    #[test]
    fn either_a_note_or_a_text_is_needed() {
        let harness = Harness::new(NOTES);
        let message = "give either `id` or `text`".to_owned();
        assert_eq!(harness.fails("extract_entities", json!({})), ("INVALID_PARAMS".into(), message.clone()));
        assert_eq!(harness.fails("extract_entities", json!({"id": "a.md", "text": "b"})).1, message);
        assert_eq!(harness.fails("extract_entities", json!({"id": "gone.md"})).0, "NODE_NOT_FOUND");
        let empty = harness.call("extract_entities", json!({"text": ""}));
        assert_eq!(empty, json!({"entities": [], "relations": [], "method": "links_names_patterns"}));
    }
}
