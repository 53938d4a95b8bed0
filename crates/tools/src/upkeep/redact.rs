//! `redact`: removes a text permanently.

use quipu_core::memory::{EntityId, ObservationId};
use quipu_core::ports::TextOwner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number_or_text::NumberOrText;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// What to redact.
    kind: Kind,
    /// Id of the observation, entity or note.
    id: NumberOrText,
    /// Why, in one line. It is kept in place of the text.
    #[schemars(length(min = 1, max = 200))]
    reason: String,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Kind {
    Observation,
    Entity,
    Note,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    redacted: bool,
    /// Where the text was removed.
    places: Vec<String>,
}

pub(crate) struct Redact;

impl Tool for Redact {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "redact";
    const DESCRIPTION: &'static str = "Permanently remove a secret: an observation, an entity with its \
        observations, or a note, with all copies in history and index. Otherwise use a delete_ tool.";
    const ACCESS: Access = Access::Erase;
    const IDEMPOTENT: bool = true;
    const NEEDS_INDEX: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let reason = params.reason.split_whitespace().collect::<Vec<_>>().join(" ");
        if reason.is_empty() {
            return Err(ToolError::invalid("`reason` is blank; give a text"));
        }
        let owner = match (params.kind, params.id) {
            (Kind::Note, NumberOrText::Text(id)) => return redact_note(call, &id, &reason),
            (Kind::Note, NumberOrText::Number(_)) => {
                return Err(ToolError::invalid("`id` of a note is its path, for example \"a/b.md\""));
            }
            (Kind::Observation, id) => TextOwner::Observation(ObservationId(number(id)?)),
            (Kind::Entity, id) => TextOwner::Entity(EntityId(number(id)?)),
        };
        let redaction = call.memory()?.redact(owner, &reason, &call.author(Self::NAME)?)?;
        if let Some(leftover) = redaction.leftover {
            call.warn(leftover);
        }
        for backup in &redaction.backups {
            call.warn(format!("{backup} was made before and may still have the text; a person must delete it"));
        }
        let counted = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let mut places = vec![format!("memory: {}", counted(redaction.items, "item", "items"))];
        places.push(format!("change log: {}", counted(redaction.log_steps, "entry", "entries")));
        Ok(Output { redacted: true, places })
    }
}

fn redact_note(call: &Call<'_>, id: &str, reason: &str) -> Result<Output, ToolError> {
    let redacted = call.knowledge.redact_note(call.session, call.request, id, reason)?;
    let mut places = Vec::new();
    if redacted.file {
        places.push("file".to_owned());
    }
    if redacted.versions > 0 {
        places.push(format!("kept versions: {}", redacted.versions));
    }
    places.push("index".to_owned());
    Ok(Output { redacted: true, places })
}

fn number(id: NumberOrText) -> Result<i64, ToolError> {
    match id {
        NumberOrText::Number(number) => Ok(number),
        NumberOrText::Text(text) => {
            text.trim().parse().map_err(|_| ToolError::invalid("`id` of an observation or an entity is a whole number"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    #[test]
    fn an_observation_is_removed_and_its_reason_kept() {
        let harness = Harness::new("");
        let entity = json!({"name": "Ada", "entity_type": "Author", "observations": ["password is hunter2", "sails"]});
        harness.call("create_entity", entity);
        harness.call("update_observation", json!({"observation_id": 1, "text_content": "password is hunter3"}));
        let redact = |id: i64| json!({"kind": "observation", "id": id, "reason": "a\npassword"});
        let answer = harness.call("redact", redact(1));
        assert_eq!(answer, json!({"redacted": true, "places": ["memory: 1 item", "change log: 3 entries"]}));
        assert_eq!(harness.call("search_entities", json!({"query": "hunter3"})), json!([]));
        assert_eq!(harness.call("get_entity", json!({"entity_id": 1}))["memory_observations_count"], 1);
        let undone = harness.call("undo_change", json!({"change": 3}))["steps"].clone();
        assert_eq!(
            undone,
            json!(["+ observation 1 of entity 1: [redacted: a password]"]),
            "the text does not come back"
        );
        assert_eq!(
            harness.fails("redact", redact(9)),
            (
                "ResourceNotFound".into(),
                "there is no observation 9; get_entity lists the observations of an entity with their ids".into()
            )
        );
        let wrong = json!({"kind": "entity", "id": "Ada", "reason": "x"});
        assert_eq!(harness.fails("redact", wrong).0, "InvalidArguments");
    }

    #[test]
    fn an_entity_is_removed_with_what_was_merged_into_it() {
        let harness = Harness::new("");
        for (name, fact) in [("Clare Hughes", "sails"), ("Claire Hughes", "rows"), ("Boat", "floats")] {
            let entity = json!({"name": name, "entity_type": "Thing", "observations": [fact], "force": true});
            harness.call("create_entity", entity);
        }
        harness.call("create_relation", json!({"from_entity_id": 1, "to_entity_id": 3, "relation_type": "owns"}));
        harness.call("merge_entities", json!({"entity_id": 1, "into_entity_id": 2}));
        let redact = |id: i64| json!({"kind": "entity", "id": id, "reason": "asked to be forgotten"});
        let absorbed = harness.fails("redact", redact(1));
        assert!(absorbed.0 == "InvalidArguments" && absorbed.1.contains("entity 2"), "{absorbed:?}");
        assert_eq!(harness.call("redact", redact(2))["redacted"], true);
        let log = harness.memory.store().log_before(quipu_core::ports::ChangeNumber(i64::MAX), 100).unwrap();
        let log = format!("{log:?}");
        for text in ["Hughes", "sails", "rows", "owns"] {
            assert!(!log.contains(text), "{text}: {log}");
        }
        assert!(log.contains("Boat") && log.contains("floats") && log.contains("asked to be forgotten"), "{log}");
        assert_eq!(harness.call("redact", redact(2))["redacted"], true, "and again");
    }

    #[test]
    fn a_note_is_removed_with_its_versions() {
        let harness = Harness::new("//- a.md\nfirst secret\n//- b.md\n[[a]]\n");
        harness.call("get_node", json!({"id": "a.md"}));
        harness.call("update_node", json!({"id": "a.md", "content": "second secret\n"}));
        let redact = |id: &str| json!({"kind": "note", "id": id, "reason": "a secret"});
        let answer = harness.call("redact", redact("a.md"));
        assert_eq!(answer, json!({"redacted": true, "places": ["file", "kept versions: 2", "index"]}));
        assert_eq!(harness.call("nodes_exist", json!({"ids": ["a.md", "b.md"]})), json!({"a.md": false, "b.md": true}));
        assert_eq!(harness.knowledge.trashed().unwrap().len(), 1, "the line with the reason");
        let missing = harness.fails("redact", redact("nowhere.md"));
        assert_eq!(missing.0, "ResourceNotFound", "{}", missing.1);
        assert_eq!(harness.fails("redact", json!({"kind": "note", "id": 1, "reason": "x"})).0, "InvalidArguments");
    }
}
