//! `bulk_update`: creates entities, observations and relations in one transaction.

use std::collections::BTreeSet;

use quipu_core::memory::{Bulk, BulkEntity, BulkObservation, BulkRelation, EntityId, NameOrId, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{
    EntityOutput, ObservationOutput, RelationOutput, split_aliases, warn_of_contradictions, warn_of_mapped_type,
};
use crate::number_or_text::NumberOrText;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::echoed;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Entities to create.
    #[serde(default)]
    entities: Vec<EntityItem>,
    /// Observations to add.
    #[serde(default)]
    observations: Vec<NewObservation>,
    /// Relations to create.
    #[serde(default)]
    relations: Vec<NewRelation>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EntityItem {
    #[schemars(length(min = 1, max = limits::NAME))]
    name: String,
    #[schemars(length(min = 1, max = limits::TYPE))]
    entity_type: String,
    #[schemars(length(max = limits::ALIASES))]
    aliases: Option<String>,
    #[schemars(length(max = limits::DESCRIPTION))]
    description: Option<String>,
    #[serde(default)]
    #[schemars(length(max = 200), inner(length(min = 1, max = limits::OBSERVATION)))]
    observations: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewObservation {
    entity_id: NumberOrText,
    #[schemars(length(min = 1, max = limits::OBSERVATION))]
    text_content: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRelation {
    from_entity_id: NumberOrText,
    to_entity_id: NumberOrText,
    #[schemars(length(min = 1, max = limits::TYPE))]
    relation_type: String,
}

/// The id of an entity, or the name of one created in the same call.
impl From<NumberOrText> for NameOrId {
    fn from(given: NumberOrText) -> Self {
        match given {
            NumberOrText::Number(id) => Self::Id(EntityId(id)),
            NumberOrText::Text(name) => Self::Name(name),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    created_entities: Vec<EntityOutput>,
    created_observations: Vec<ObservationOutput>,
    created_relations: Vec<RelationOutput>,
    summary: BulkSummary,
}

#[derive(Serialize, JsonSchema)]
struct BulkSummary {
    entities_created: usize,
    observations_created: usize,
    relations_created: usize,
}

pub(crate) struct BulkUpdate;

impl Tool for BulkUpdate {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "bulk_update";
    const DESCRIPTION: &'static str = "Create entities, observations and relations in one call: 1 to 50 in all, all \
        or nothing. An entity id can also be the name of an entity in this call.";
    const ACCESS: Access = Access::Write;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let entity = |new: EntityItem| BulkEntity {
            name: new.name,
            entity_type: new.entity_type,
            aliases: new.aliases.as_deref().map(split_aliases).unwrap_or_default(),
            description: new.description,
            observations: new.observations,
        };
        let observation =
            |new: NewObservation| BulkObservation { entity: new.entity_id.into(), text: new.text_content };
        let relation = |new: NewRelation| BulkRelation {
            from: new.from_entity_id.into(),
            to: new.to_entity_id.into(),
            relation_type: new.relation_type,
        };
        let bulk = Bulk {
            entities: params.entities.into_iter().map(entity).collect(),
            observations: params.observations.into_iter().map(observation).collect(),
            relations: params.relations.into_iter().map(relation).collect(),
        };
        let given: Vec<String> = bulk.entities.iter().map(|entity| entity.entity_type.clone()).collect();
        let made = call.memory()?.bulk_update(&bulk, &call.author(Self::NAME)?)?;
        for (given, entity) in given.iter().zip(&made.entities) {
            warn_of_mapped_type(call, given, &entity.entity_type);
        }
        for (place, twin) in &made.likely_duplicates {
            let (id, name) = (made.entities[*place].id, echoed(&twin.name));
            call.warn(format!(
                "entities[{place}] was created as entity {id}, though entity {}, {name:?}, is likely the same; if it is, \
                 delete the new one and add to that",
                twin.id
            ));
        }
        for (place, id) in &made.repeated {
            call.warn(format!("observations[{place}] was not added: the entity already has it as observation {id}"));
        }
        let entities: BTreeSet<EntityId> = made.observations.iter().map(|seen| seen.entity).collect();
        for entity in entities {
            let is_new = |id| made.observations.iter().any(|seen| seen.id == id);
            warn_of_contradictions(call, &call.memory()?.observations_of(entity)?, is_new);
        }
        let summary = BulkSummary {
            entities_created: made.entities.len(),
            observations_created: made.observations.len() - made.repeated.len(),
            relations_created: made.relations.len(),
        };
        Ok(Output {
            created_entities: made.entities.into_iter().map(EntityOutput::from).collect(),
            created_observations: made.observations.into_iter().map(ObservationOutput::from).collect(),
            created_relations: RelationOutput::all(call.memory()?, made.relations)?,
            summary,
        })
    }
}
