//! What a client does with memory: observations of its entity, and other entities that it creates, relates, merges and deletes.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::writer::Writer;

/// A client merges or deletes entities when it has this many.
const MOST: usize = 10;

impl Writer<'_> {
    pub(super) fn observe(&mut self) -> anyhow::Result<()> {
        let text = self.word("saw", self.done.observations.len());
        self.write_own("create_observation", &json!({ "entity_id": self.entity, "text_content": text }))?;
        self.done.observations.push(text);
        Ok(())
    }

    /// Creates an entity with an observation and a relation, or merges one into the client's own, or deletes one.
    pub(super) fn change_things(&mut self) -> anyhow::Result<()> {
        let count = self.done.things.len();
        self.made += 1;
        if count == 0 || (count < MOST && self.random.below(2) == 0) {
            // Names as unlike each other as can be: what is alike is held for the same.
            let name = format!("{:016x} {}", self.random.next_u64(), self.made);
            let word = self.word("thing", self.made);
            let entity = json!({ "name": name, "entity_type": "Component", "force": true, "observations": [word] });
            let made = self.write_own("create_entity", &entity)?;
            let id = made["entity_id"].as_i64().with_context(|| format!("{made}"))?;
            self.done.things.insert(id, word);
            let related = json!({ "from_entity_id": id, "to_entity_id": self.entity, "relation_type": "part_of" });
            self.write_own("create_relation", &related)?;
            return Ok(());
        }
        let picked = self.done.things.keys().nth(self.random.below(count)).copied().context("an entity")?;
        let word = self.done.things.remove(&picked).context("its word")?;
        if self.random.below(2) == 0 {
            let merge = json!({ "entity_id": picked, "into_entity_id": self.entity });
            self.write_own("merge_entities", &merge)?;
            self.done.observations.push(word);
        } else {
            self.write_own("delete_entity", &json!({ "entity_id": picked }))?;
            self.done.gone_thing = Some(word);
        }
        Ok(())
    }

    /// Looks for the client's last observation, and for an entity that was created or deleted; lists the relations.
    pub(super) fn check_found_things(&mut self) -> anyhow::Result<()> {
        let last = self.done.observations.last().cloned().map(|text| (text, Some(self.entity)));
        let any = self.random.below(self.done.things.len().max(1));
        let kept = self.done.things.iter().nth(any).map(|(id, word)| (word.clone(), Some(*id)));
        let gone = self.done.gone_thing.clone().map(|word| (word, None));
        for (word, expected) in [last, kept, gone].into_iter().flatten() {
            if let Some(found) = self.read("search_entities", &json!({ "query": word }))? {
                check_found(&word, &found, expected)?;
            }
        }
        if let Some(related) = self.read("find_relations", &related_to(self.entity))? {
            check_related(&related, self.done.things.keys().copied())?;
        }
        Ok(())
    }
}

/// The call that lists what is related to an entity.
pub(super) fn related_to(entity: i64) -> Value {
    json!({ "to_entity_id": entity, "limit": 1000 })
}

pub(super) fn check_found(word: &str, found: &Value, expected: Option<i64>) -> anyhow::Result<()> {
    let (ids, expected) = (ids(found, "entity_id"), expected.into_iter().collect());
    ensure!(ids == expected, "search_entities finds {ids:?} for {word}, not {expected:?}");
    Ok(())
}

pub(super) fn check_related(related: &Value, expected: impl IntoIterator<Item = i64>) -> anyhow::Result<()> {
    let (ids, expected) = (ids(related, "from_entity_id"), expected.into_iter().collect());
    ensure!(ids == expected, "find_relations finds {ids:?}, not {expected:?}");
    Ok(())
}

/// The ids in a field of any object of an answer.
fn ids(answer: &Value, field: &str) -> BTreeSet<i64> {
    match answer {
        Value::Object(fields) => {
            let own = fields.get(field).and_then(Value::as_i64);
            own.into_iter().chain(fields.values().flat_map(|value| ids(value, field))).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| ids(item, field)).collect(),
        _ => BTreeSet::new(),
    }
}
