//! Single changes: create, update, delete.

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, name_key};
use crate::ports::{
    ApplyError, Author, ChangeNumber, EntityRef, EntityUpdate, LoggedChange, MemoryChange, MemoryItem, NewEntity,
};

/// An entity to create.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityDraft {
    pub name: String,
    /// Its type, as written.
    pub entity_type: String,
    /// Other names.
    pub aliases: Vec<String>,
    pub description: Option<String>,
    pub observations: Vec<String>,
}

/// The result of creating an entity.
#[derive(Debug, Clone, PartialEq)]
pub enum Creation {
    Created(Entity),
    /// Nothing was created: an entity is likely the same.
    Duplicate {
        /// That entity.
        existing: Entity,
        /// How far the two are apart: 0 is the same, 1 is unrelated.
        distance: f32,
        /// Whether the name itself is taken, so that `force` does not help.
        name_taken: bool,
    },
}

/// The result of adding an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The observation, new or existing.
    pub observation: Observation,
    /// Whether the entity had it already, so that nothing was stored.
    pub was_there: bool,
}

impl Memory {
    /// Creates an entity, unless one of this or another name is likely the same. `force` skips that check, except for a taken
    /// name.
    pub fn create_entity(&self, draft: EntityDraft, force: bool, author: &Author) -> Result<Creation, MemoryError> {
        let draft = self.checked(draft)?;
        let meaning = if force { None } else { self.meaning_of(&draft) };
        let changes = creation(draft.clone(), 0);
        if !force {
            // While memory is still being read, this waits here, and not where other writes wait for it.
            self.follower.read_first()?;
        }
        self.checked_at_head(|head| {
            if !self.is_repeated(author)?
                && let Some(duplicate) = self.duplicate_of(&draft, force, meaning.as_deref())?
            {
                return Ok(duplicate);
            }
            let applied = self.store.apply_at(head, &changes, author)?;
            let observation_count = (applied.outcomes.len() - 1) as u64;
            let entity = into_entity(applied.outcomes.into_iter().next());
            Ok(Creation::Created(Entity { observation_count, ..entity }))
        })
    }

    /// Changes an entity's own fields.
    pub fn update_entity(&self, id: EntityId, update: EntityUpdate, author: &Author) -> Result<Entity, MemoryError> {
        if update == EntityUpdate::default() {
            return Err(MemoryError::NothingToChange);
        }
        let name = update.name.as_deref().map(|name| text_of("name", name)).transpose()?;
        let update = EntityUpdate {
            entity_type: update
                .entity_type
                .map(|written| Ok::<_, MemoryError>(self.types.canonical(&text_of("entity_type", &written)?)))
                .transpose()?,
            aliases: update.aliases.map(|aliases| tidy_aliases(aliases, name.as_deref())),
            description: update.description.map(tidy_description),
            name: name.clone(),
        };
        let applied = self.store.apply(&[MemoryChange::UpdateEntity { id, update }], author);
        Ok(into_entity(named(applied, name.as_deref().unwrap_or_default())?.outcomes.into_iter().next()))
    }

    /// Deletes an entity with its observations and relations; returns it, and the number of deleted relations.
    pub fn delete_entity(&self, id: EntityId, author: &Author) -> Result<(Entity, usize), MemoryError> {
        let applied = self.store.apply(&[MemoryChange::DeleteEntity { id }], author)?;
        // The log has what this change deleted, whatever else is written meanwhile.
        let logged = self.store.log_before(ChangeNumber(applied.change.0 + 1), 1)?;
        let steps = logged.iter().flat_map(|change| &change.steps);
        let relations = steps.filter(|(before, _)| matches!(before, Some(MemoryItem::Relation(_)))).count();
        Ok((into_entity(applied.outcomes.into_iter().next()), relations))
    }

    /// Adds an observation, unless the entity has it already.
    pub fn create_observation(&self, entity: EntityId, text: &str, author: &Author) -> Result<Observed, MemoryError> {
        let text = text_of("text_content", text)?;
        let change = [MemoryChange::AddObservation { entity: EntityRef::Id(entity), text: text.clone() }];
        self.checked_at_head(|head| {
            if !self.is_repeated(author)?
                && let Some(observation) = self.observation_like(entity, &text)?
            {
                return Ok(Observed { observation, was_there: true });
            }
            let applied = self.store.apply_at(head, &change, author)?;
            Ok(Observed { observation: into_observation(applied.outcomes.into_iter().next()), was_there: false })
        })
    }

    /// All observations of an entity.
    pub fn observations_of(&self, entity: EntityId) -> Result<Vec<Observation>, MemoryError> {
        Ok(self.store.observations_of(&[entity])?.pop().unwrap_or_default())
    }

    /// The observation of an entity with this text.
    pub(super) fn observation_like(&self, entity: EntityId, text: &str) -> Result<Option<Observation>, MemoryError> {
        Ok(self.observations_of(entity)?.into_iter().find(|observation| observation.text == text))
    }

    /// Replaces the text of an observation. Nothing is stored if it has this text; another observation of the entity may not
    /// have it.
    pub fn update_observation(&self, id: ObservationId, text: &str, author: &Author) -> Result<Observed, MemoryError> {
        let text = text_of("text_content", text)?;
        let change = [MemoryChange::UpdateObservation { id, text: text.clone() }];
        self.checked_at_head(|head| {
            if !self.is_repeated(author)? {
                let observation = self.observation(id)?;
                match self.observation_like(observation.entity, &text)? {
                    Some(observation) if observation.id == id => return Ok(Observed { observation, was_there: true }),
                    Some(same) => return Err(MemoryError::ObservationExists(same.id)),
                    None => {}
                }
            }
            let applied = self.store.apply_at(head, &change, author)?;
            Ok(Observed { observation: into_observation(applied.outcomes.into_iter().next()), was_there: false })
        })
    }

    fn observation(&self, id: ObservationId) -> Result<Observation, MemoryError> {
        let found = self.store.observations(&[id])?.pop().flatten();
        found.ok_or(MemoryError::NotFound { kind: "observation", id: id.0 })
    }

    /// Deletes an observation; returns it.
    pub fn delete_observation(&self, id: ObservationId, author: &Author) -> Result<Observation, MemoryError> {
        let applied = self.store.apply(&[MemoryChange::DeleteObservation { id }], author)?;
        Ok(into_observation(applied.outcomes.into_iter().next()))
    }

    /// Undoes a logged change; returns the log's entry of the undo.
    pub fn undo_change(&self, change: ChangeNumber, author: &Author) -> Result<LoggedChange, MemoryError> {
        Ok(self.store.undo(change, author)?)
    }

    /// Creates a relation between two entities.
    pub fn create_relation(
        &self,
        from: EntityId,
        to: EntityId,
        relation_type: &str,
        author: &Author,
    ) -> Result<Relation, MemoryError> {
        let relation_type = text_of("relation_type", relation_type)?;
        let (from, to) = (EntityRef::Id(from), EntityRef::Id(to));
        let applied = self.store.apply(&[MemoryChange::AddRelation { from, to, relation_type }], author)?;
        Ok(into_relation(applied.outcomes.into_iter().next()))
    }

    /// Deletes a relation; returns it.
    pub fn delete_relation(&self, id: RelationId, author: &Author) -> Result<Relation, MemoryError> {
        let applied = self.store.apply(&[MemoryChange::DeleteRelation { id }], author)?;
        Ok(into_relation(applied.outcomes.into_iter().next()))
    }

    /// The draft normalized: texts trimmed, each observation once, the type canonical.
    pub(super) fn checked(&self, draft: EntityDraft) -> Result<EntityDraft, MemoryError> {
        let name = text_of("name", &draft.name)?;
        let in_list = |place: usize| MemoryError::Blank { field: format!("observations[{place}]").into() };
        let observations = draft.observations.iter().enumerate();
        let observations = observations.map(|(place, text)| text_of("observations", text).map_err(|_| in_list(place)));
        let mut distinct: Vec<String> = Vec::with_capacity(draft.observations.len());
        for text in observations {
            let text = text?;
            if !distinct.contains(&text) {
                distinct.push(text);
            }
        }
        Ok(EntityDraft {
            entity_type: self.types.canonical(&text_of("entity_type", &draft.entity_type)?),
            aliases: tidy_aliases(draft.aliases, Some(&name)),
            description: tidy_description(draft.description),
            observations: distinct,
            name,
        })
    }
}

/// The changes that create a draft, when the first of them is at `place` of the list.
pub(super) fn creation(draft: EntityDraft, place: usize) -> Vec<MemoryChange> {
    let EntityDraft { name, entity_type, aliases, description, observations } = draft;
    let entity = MemoryChange::CreateEntity(NewEntity { name, entity_type, aliases, description });
    let observe = |text| MemoryChange::AddObservation { entity: EntityRef::Made(place), text };
    [entity].into_iter().chain(observations.into_iter().map(observe)).collect()
}

/// Adds the requested name to a refusal.
pub(super) fn named<T>(outcome: Result<T, ApplyError>, name: &str) -> Result<T, MemoryError> {
    outcome.map_err(|error| match error {
        ApplyError::Refused { refusal, .. } => MemoryError::refused(&refusal, name),
        other => other.into(),
    })
}

/// A trimmed text, which must not be empty.
pub(super) fn text_of(field: &'static str, text: &str) -> Result<String, MemoryError> {
    let text = text.trim();
    if text.is_empty() { Err(MemoryError::Blank { field: field.into() }) } else { Ok(text.to_owned()) }
}

/// Without blank ones, duplicates and the name itself.
fn tidy_aliases(aliases: Vec<String>, name: Option<&str>) -> Vec<String> {
    let mut seen: Vec<String> = name.map(name_key).into_iter().collect();
    let mut kept = Vec::with_capacity(aliases.len());
    for alias in aliases {
        let key = name_key(&alias);
        if !key.is_empty() && !seen.contains(&key) {
            kept.push(alias.trim().to_owned());
            seen.push(key);
        }
    }
    kept
}

fn tidy_description(description: Option<String>) -> Option<String> {
    description.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(super) fn into_entity(item: Option<MemoryItem>) -> Entity {
    match item {
        Some(MemoryItem::Entity(entity)) => entity,
        other => unreachable!("a change of an entity gives an entity, not {other:?}"),
    }
}

pub(super) fn into_observation(item: Option<MemoryItem>) -> Observation {
    match item {
        Some(MemoryItem::Observation(observation)) => observation,
        other => unreachable!("a change of an observation gives an observation, not {other:?}"),
    }
}

pub(super) fn into_relation(item: Option<MemoryItem>) -> Relation {
    match item {
        Some(MemoryItem::Relation(relation)) => relation,
        other => unreachable!("a change of a relation gives a relation, not {other:?}"),
    }
}
