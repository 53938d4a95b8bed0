//! Entities, observations and relations in answers.

use std::collections::{BTreeSet, HashMap};

use quipu_core::memory::{
    Entity, EntityId, EntityTypes, Memory, Observation, ObservationId, PageRequest, Relation, Subgraph, contradictions,
    limits,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::room::{cost, fitting_then_newest, shares};
use crate::answer_size::{self, LIST_ROOM, json_chars};
use crate::time::iso_utc;
use crate::tool::Call;
use crate::tool_error::ToolError;
use crate::truncate::{LISTED, echoed, truncate};

/// Characters of an entity name beside its id.
const MAX_NAME_BESIDE: usize = 200;

/// Characters reserved for observations and relations, however many entities there are.
const MIN_ROOM: usize = 10_000;

/// Separates aliases in arguments and answers.
const SEPARATOR: char = '|';

#[derive(Serialize, JsonSchema)]
pub(crate) struct EntityOutput {
    entity_id: i64,
    name: String,
    entity_type: String,
    description: Option<String>,
    /// Separated by |.
    aliases: Option<String>,
    memory_observations_count: u64,
    created_at: String,
    updated_at: String,
}

impl From<Entity> for EntityOutput {
    fn from(entity: Entity) -> Self {
        Self {
            entity_id: entity.id.0,
            aliases: join_aliases(&entity.aliases),
            name: entity.name,
            entity_type: entity.entity_type,
            description: entity.description,
            memory_observations_count: entity.observation_count,
            created_at: iso_utc(entity.created_ns),
            updated_at: iso_utc(entity.updated_ns),
        }
    }
}

/// Warns if the type was mapped to its canonical name.
pub(crate) fn warn_of_mapped_type(call: &Call<'_>, given: &str, kept: &str) {
    if EntityTypes::is_other_word(given, kept) {
        call.warn(format!(
            "entity_type {:?} is stored as {kept:?}; searches find it by either word",
            echoed(given.trim())
        ));
    }
}

/// Pairs of contradicting observations named in one answer.
const MAX_CONTRADICTIONS: usize = 3;

/// Warns of observations of an entity that contradict each other, where one of a pair is wanted. `observations` are all of it.
pub(crate) fn warn_of_contradictions(
    call: &Call<'_>,
    observations: &[Observation],
    is_wanted: impl Fn(ObservationId) -> bool,
) {
    let pairs = contradictions(observations).into_iter();
    let mut pairs: Vec<_> = pairs.filter(|(older, newer)| is_wanted(*older) || is_wanted(*newer)).collect();
    let more = pairs.split_off(pairs.len().min(MAX_CONTRADICTIONS)).len();
    for (older, newer) in pairs {
        let text = |id| observations.iter().find(|seen| seen.id == id).map_or("", |seen| seen.text.as_str());
        call.warn(format!(
            "observations {older} ({:?}) and {newer} ({:?}) may contradict each other; correct or delete the wrong one",
            echoed(text(older)),
            echoed(text(newer))
        ));
    }
    if let (1.., Some(observation)) = (more, observations.first()) {
        let pairs = if more == 1 { "pair" } else { "pairs" };
        call.warn(format!("entity {} has {more} more {pairs} of observations that may contradict", observation.entity));
    }
}

impl EntityOutput {
    /// The entity in a list: long texts are cut.
    fn listed(self, max_chars: usize) -> Self {
        let cut = |text: Option<String>| text.map(|text| truncate(&text, max_chars));
        Self { name: listed_name(&self.name), description: cut(self.description), aliases: cut(self.aliases), ..self }
    }
}

/// A name in a list. Tools refuse longer names; an older memory may have some.
pub(super) fn listed_name(name: &str) -> String {
    truncate(name, limits::NAME)
}

/// An entity by id, name and type.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EntityName {
    entity_id: i64,
    name: String,
    entity_type: String,
}

impl From<Entity> for EntityName {
    fn from(entity: Entity) -> Self {
        let entity_type = truncate(&entity.entity_type, limits::TYPE);
        Self { entity_id: entity.id.0, name: listed_name(&entity.name), entity_type }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ObservationOutput {
    observation_id: i64,
    memory_entity_id: i64,
    observation_content: String,
    created_at: String,
    updated_at: String,
}

impl From<Observation> for ObservationOutput {
    fn from(observation: Observation) -> Self {
        Self {
            observation_id: observation.id.0,
            memory_entity_id: observation.entity.0,
            observation_content: observation.text,
            created_at: iso_utc(observation.created_ns),
            updated_at: iso_utc(observation.updated_ns),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RelationOutput {
    relation_id: i64,
    from_entity_id: i64,
    from_entity_name: String,
    to_entity_id: i64,
    to_entity_name: String,
    relation_type: String,
    created_at: String,
    updated_at: String,
}

impl RelationOutput {
    /// One relation with the names of its entities.
    pub(super) fn named(memory: &Memory, relation: Relation) -> Result<Self, ToolError> {
        Ok(Self::all(memory, vec![relation])?.remove(0))
    }

    /// Relations with the names of their entities, in the same order.
    pub(super) fn all(memory: &Memory, relations: Vec<Relation>) -> Result<Vec<Self>, ToolError> {
        let names = names_of_ends(memory, &relations)?;
        let output = |relation: Relation| Self {
            relation_id: relation.id.0,
            from_entity_id: relation.from.0,
            from_entity_name: names.of(relation.from),
            to_entity_id: relation.to.0,
            to_entity_name: names.of(relation.to),
            relation_type: relation.relation_type,
            created_at: iso_utc(relation.created_ns),
            updated_at: iso_utc(relation.updated_ns),
        };
        Ok(relations.into_iter().map(output).collect())
    }
}

/// Names of entities by id.
pub(super) struct NamesById(HashMap<EntityId, String>);

impl NamesById {
    pub(super) fn of(&self, id: EntityId) -> String {
        self.0.get(&id).map(|name| truncate(name, MAX_NAME_BESIDE)).unwrap_or_default()
    }
}

/// The names of the entities of some relations.
pub(super) fn names_of_ends<'r>(
    memory: &Memory,
    relations: impl IntoIterator<Item = &'r Relation>,
) -> Result<NamesById, ToolError> {
    let ids: BTreeSet<EntityId> = relations.into_iter().flat_map(|relation| [relation.from, relation.to]).collect();
    let ids: Vec<EntityId> = ids.into_iter().collect();
    Ok(NamesById(memory.entity_names(&ids)?.into_iter().collect()))
}

pub(super) fn first_page() -> u64 {
    1
}

pub(super) fn default_per_page() -> usize {
    20
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Pagination {
    total_entities: u64,
    per_page: usize,
    current_page: u64,
    total_pages: u64,
}

impl Pagination {
    pub(super) fn of(page: PageRequest, total: u64) -> Self {
        Self {
            total_entities: total,
            per_page: page.size,
            current_page: page.number,
            total_pages: page.pages_of(total),
        }
    }
}

/// An entity with its observations.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GraphEntity {
    #[serde(flatten)]
    entity: EntityOutput,
    observations: Vec<GraphObservation>,
}

#[derive(Serialize, JsonSchema)]
struct GraphObservation {
    observation_id: i64,
    content: String,
    created_at: String,
    updated_at: String,
}

/// A subgraph for an answer; warns of what is left out. `fitting` has the matching observations of each entity, best first:
/// they are shown before the others.
pub(super) fn show_subgraph(
    call: &Call<'_>,
    subgraph: Subgraph,
    fitting: &[Vec<ObservationId>],
) -> Result<(Vec<GraphEntity>, Vec<RelationOutput>), ToolError> {
    let (entities, observed): (Vec<Entity>, Vec<Vec<Observation>>) = subgraph.entities.into_iter().unzip();
    let entities = listed_entities(entities);
    let room = LIST_ROOM.saturating_sub(json_chars(&entities)).max(MIN_ROOM);
    let mut relations = RelationOutput::all(call.memory()?, subgraph.relations)?;
    let count = relations.len();
    relations.truncate(answer_size::fitting(&relations, room / 4));
    if relations.len() < count {
        let shown = relations.len();
        call.warn(format!("{shown} of {count} relations are shown; request fewer entities to see the others"));
    }
    let room = room.saturating_sub(json_chars(&relations));
    let costs = |seen: &[Observation]| -> Vec<usize> { seen.iter().map(|seen| cost(&seen.text)).collect() };
    let costs: Vec<Vec<usize>> = observed.iter().map(|seen| costs(seen)).collect();
    let rooms = shares(&costs.iter().map(|costs| costs.iter().sum()).collect::<Vec<_>>(), room);
    let mut shortened = Vec::new();
    let mut shown_entities = Vec::with_capacity(entities.len());
    for (((entity, observations), costs), room) in entities.into_iter().zip(observed).zip(costs).zip(rooms) {
        let place = |id: &ObservationId| observations.binary_search_by_key(id, |observation| observation.id).ok();
        let fitting: Vec<usize> = fitting.get(shown_entities.len()).into_iter().flatten().filter_map(place).collect();
        let shown = fitting_then_newest(&costs, &fitting, room);
        let is_cut = |place: &usize| observations[*place].text.chars().nth(room).is_some();
        if shown.len() < costs.len() || shown.iter().any(is_cut) {
            shortened.push(EntityId(entity.entity_id));
        }
        let show = |place: usize| {
            let observation = &observations[place];
            GraphObservation {
                observation_id: observation.id.0,
                content: truncate(&observation.text, room),
                created_at: iso_utc(observation.created_ns),
                updated_at: iso_utc(observation.updated_ns),
            }
        };
        let observations = shown.into_iter().map(show).collect();
        shown_entities.push(GraphEntity { entity, observations });
    }
    if !shortened.is_empty() {
        let which = if fitting.is_empty() { "newest observations" } else { "best matching and newest observations" };
        call.warn(format!(
            "only the {which} of entities {} are shown; for all of them read one entity at a time",
            listed(&shortened)
        ));
    }
    Ok((shown_entities, relations))
}

/// Entities of a list: the longer the list, the shorter their texts.
fn listed_entities(entities: Vec<Entity>) -> Vec<EntityOutput> {
    let mut entities: Vec<EntityOutput> = entities.into_iter().map(EntityOutput::from).collect();
    for max_chars in [LISTED, LISTED / 2, LISTED / 5] {
        entities = entities.into_iter().map(|entity| entity.listed(max_chars)).collect();
        if json_chars(&entities) <= LIST_ROOM / 2 {
            break;
        }
    }
    entities
}

pub(super) fn join_aliases(aliases: &[String]) -> Option<String> {
    (!aliases.is_empty()).then(|| aliases.join(&SEPARATOR.to_string()))
}

pub(super) fn split_aliases(text: &str) -> Vec<String> {
    text.split(SEPARATOR).map(|alias| alias.trim().to_owned()).filter(|alias| !alias.is_empty()).collect()
}

/// Rounded to four decimals.
pub(super) fn rounded(number: f32) -> f64 {
    (f64::from(number) * 10_000.0).round() / 10_000.0
}

/// Ids separated by commas.
pub(super) fn listed(ids: &[EntityId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Reply;
    use crate::testing::Harness;

    /// Two entities get half of the space each.
    #[test]
    fn an_observation_that_fits_is_whole_and_has_no_warning() {
        for (length, is_whole) in [(18_000, true), (20_000, false)] {
            let harness = Harness::new("");
            for name in ["Letter", "Postcard"] {
                let text = "x".repeat(length);
                harness.call("create_entity", json!({"name": name, "entity_type": "x", "observations": [text]}));
            }
            let called = harness.called("get_subgraph_by_ids", json!({"entity_ids": [1, 2]}));
            let Reply::Answer(answer) = called.reply else { panic!("it answers") };
            let shown = answer["entities"][1]["observations"][0]["content"].as_str().unwrap();
            assert_eq!(
                (shown.ends_with('x'), called.warnings.is_empty()),
                (is_whole, is_whole),
                "{:?}",
                called.warnings
            );
        }
    }

    #[test]
    fn observations_too_long_to_show_are_refused() {
        let harness = Harness::new("");
        let entity = |length: usize| json!({"name": "Ada", "entity_type": "x", "observations": ["x".repeat(length)]});
        for (tool, arguments) in [
            ("create_entity", entity(50_001)),
            ("bulk_update", json!({"entities": [entity(50_001)]})),
            ("create_entity", entity(0)),
        ] {
            let (code, message) = harness.fails(tool, arguments);
            assert_eq!(code, "InvalidArguments", "{message}");
        }
        harness.call("create_entity", entity(50_000));
        let cut = harness.called("get_entity", json!({"entity_id": 1}));
        assert_eq!(cut.warnings, ["observation 1 is cut; `limit` 1 and `observations_offset` 0 return all of it"]);
        let shown = harness.called("get_entity", json!({"entity_id": 1, "limit": 1}));
        assert!(shown.warnings.is_empty(), "{:?}", shown.warnings);
        let Reply::Answer(shown) = shown.reply else { panic!("it answers") };
        assert_eq!(shown["observations"][0]["observation_content"].as_str().unwrap().len(), 50_000);
    }
}
