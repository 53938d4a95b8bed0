//! `create_entity`: creates an entity unless it is a likely duplicate.

use quipu_core::memory::{Creation, Entity, EntityDraft, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{EntityOutput, join_aliases, rounded, split_aliases, warn_of_contradictions, warn_of_mapped_type};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::echoed;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Unique name, regardless of case.
    #[schemars(length(min = 1, max = limits::NAME))]
    name: String,
    /// Such as Project, Task, Issue, User; "bug" is mapped to Issue.
    #[schemars(length(min = 1, max = limits::TYPE))]
    entity_type: String,
    /// Other names, separated by |.
    #[schemars(length(max = limits::ALIASES))]
    aliases: Option<String>,
    /// What it is, in a sentence.
    #[schemars(length(max = limits::DESCRIPTION))]
    description: Option<String>,
    /// Facts, one each.
    #[serde(default)]
    #[schemars(length(max = 200), inner(length(min = 1, max = limits::OBSERVATION)))]
    observations: Vec<String>,
    /// Create it despite a similar one.
    #[serde(default)]
    force: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("type" = "object"))]
pub(crate) enum Output {
    Created(EntityOutput),
    Duplicate {
        /// Why nothing was created.
        warning: String,
        existing_entity: Existing,
    },
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Existing {
    entity_id: i64,
    name: String,
    entity_type: String,
    description: Option<String>,
    aliases: Option<String>,
    /// 0 is the same, 1 is unrelated.
    similarity_distance: f64,
}

fn warning(existing: &Entity, name_taken: bool) -> String {
    let Entity { id, name, .. } = existing;
    let name = echoed(name);
    if name_taken {
        format!("Nothing was created: entity {id} has this name. Add an observation to it, or choose another name.")
    } else {
        format!(
            "Nothing was created: entity {id}, {name:?}, is likely the same. Add an observation to it, or pass \
             force: true if this is something else."
        )
    }
}

pub(crate) struct CreateEntity;

impl Tool for CreateEntity {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "create_entity";
    const DESCRIPTION: &'static str = "Create an entity in memory. If its name is taken or a similar one exists, \
        nothing is created and existing_entity is returned: add to it, or pass force. For several use bulk_update.";
    const ACCESS: Access = Access::Write;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let draft = EntityDraft {
            name: params.name,
            entity_type: params.entity_type,
            aliases: params.aliases.as_deref().map(split_aliases).unwrap_or_default(),
            description: params.description,
            observations: params.observations,
        };
        let author = call.author(Self::NAME)?;
        let (given, observations) = (draft.entity_type.clone(), draft.observations.len() as u64);
        Ok(match call.memory()?.create_entity(draft, params.force, &author)? {
            Creation::Created(entity) => {
                warn_of_mapped_type(call, &given, &entity.entity_type);
                if entity.observation_count < observations {
                    let stored = entity.observation_count;
                    call.warn(format!(
                        "{stored} of {observations} observations were stored: equal ones are stored once"
                    ));
                }
                if observations > 1 {
                    warn_of_contradictions(call, &call.memory()?.observations_of(entity.id)?, |_| true);
                }
                Output::Created(entity.into())
            }
            Creation::Duplicate { existing, distance, name_taken } => Output::Duplicate {
                warning: warning(&existing, name_taken),
                existing_entity: Existing {
                    entity_id: existing.id.0,
                    aliases: join_aliases(&existing.aliases),
                    name: existing.name,
                    entity_type: existing.entity_type,
                    description: existing.description,
                    similarity_distance: rounded(distance),
                },
            },
        })
    }
}
