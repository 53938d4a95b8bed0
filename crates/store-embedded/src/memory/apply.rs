//! Applies changes and logs each step, inside one transaction that the caller commits.

use quipu_core::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, name_key};
use quipu_core::ports::{
    Author, ChangeNumber, EntityRef, EntityUpdate, MemoryChange, MemoryItem, NewEntity, NoteTie, Refusal, TextOwner,
};
use rusqlite::{OptionalExtension, Transaction};
use rustc_hash::FxHashSet;

use super::contexts;
use super::read;
use super::rows;
use super::ties;

/// Why a change was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
}

/// Writes one change and its log entry.
pub(super) struct ChangeWriter<'tx> {
    pub(super) tx: &'tx Transaction<'tx>,
    pub(super) change: ChangeNumber,
    at_ns: i64,
    position: i64,
    /// The id that the next created item must get.
    number: Option<i64>,
}

impl<'tx> ChangeWriter<'tx> {
    pub(super) fn start(
        tx: &'tx Transaction<'tx>,
        author: &Author,
        undoes: Option<ChangeNumber>,
    ) -> rusqlite::Result<Self> {
        let mut insert =
            tx.prepare_cached("INSERT INTO change (at_ns, client, tool, undoes) VALUES (?1, ?2, ?3, ?4)")?;
        let undoes = undoes.map(|change| change.0);
        let number = insert.insert((author.at_ns, &author.client, &author.tool, undoes))?;
        Ok(Self { tx, change: ChangeNumber(number), at_ns: author.at_ns, position: 0, number: None })
    }

    /// Applies one change; `made` are the results of those before it.
    pub(super) fn apply(&mut self, change: &MemoryChange, made: &[MemoryItem]) -> Result<MemoryItem, StepError> {
        match change {
            MemoryChange::CreateEntity(new) => self.create_entity(new),
            MemoryChange::UpdateEntity { id, update } => self.update_entity(*id, update).map(MemoryItem::Entity),
            MemoryChange::CompleteEntity { id, aliases, description } => {
                self.complete_entity(*id, aliases, description.as_ref()).map(MemoryItem::Entity)
            }
            MemoryChange::DeleteEntity { id } => self.delete_entity(*id).map(MemoryItem::Entity),
            MemoryChange::MergeEntity { from, into } => self.merge(*from, *into).map(MemoryItem::Entity),
            MemoryChange::AddObservation { entity, text } => self.add_observation(target(*entity, made), text),
            MemoryChange::UpdateObservation { id, text } => {
                self.update_observation(*id, text).map(MemoryItem::Observation)
            }
            MemoryChange::DeleteObservation { id } => self.delete_observation(*id).map(MemoryItem::Observation),
            MemoryChange::AddRelation { from, to, relation_type } => {
                self.add_relation(target(*from, made), target(*to, made), relation_type)
            }
            MemoryChange::DeleteRelation { id } => self.delete_relation(*id).map(MemoryItem::Relation),
            MemoryChange::SetTimes { made: place, created_ns, updated_ns } => {
                let before = made.get(*place).ok_or(Refusal::NoItemCreated(*place))?;
                let after = before.at_times(*created_ns, *updated_ns);
                self.replace(before, &after)?;
                Ok(after)
            }
            MemoryChange::Tie { made: place, target, path } => {
                let item = made.get(*place).ok_or(Refusal::NoItemCreated(*place))?;
                let owner = item.text_owner().ok_or(Refusal::NoItemCreated(*place))?;
                ties::repoint_links(self.tx, &[], &[NoteTie { owner, target: target.clone(), path: path.clone() }])?;
                Ok(item.clone())
            }
            MemoryChange::Numbered { number, change } => {
                self.number = Some(*number);
                let outcome = self.apply(change, made);
                self.number = None;
                outcome
            }
        }
    }

    fn create_entity(&mut self, new: &NewEntity) -> Result<MemoryItem, StepError> {
        self.refuse_taken(&new.name, None)?;
        self.create(MemoryItem::Entity(Entity {
            id: EntityId(0),
            name: new.name.clone(),
            entity_type: new.entity_type.clone(),
            aliases: new.aliases.clone(),
            description: new.description.clone(),
            observation_count: 0,
            created_ns: self.at_ns,
            updated_ns: self.at_ns,
        }))
    }

    fn update_entity(&mut self, id: EntityId, update: &EntityUpdate) -> Result<Entity, StepError> {
        let before = self.entity(id)?;
        if let Some(name) = &update.name {
            self.refuse_taken(name, Some(id))?;
        }
        let after = update.applied_to(&before, self.at_ns);
        self.replace_entity(before, after)
    }

    fn complete_entity(
        &mut self,
        id: EntityId,
        aliases: &[String],
        description: Option<&String>,
    ) -> Result<Entity, StepError> {
        let before = self.entity(id)?;
        let (aliases, description) = before.completed_by(aliases, description);
        let after = Entity { aliases, description, updated_ns: self.at_ns, ..before.clone() };
        self.replace_entity(before, after)
    }

    pub(super) fn delete_entity(&mut self, id: EntityId) -> Result<Entity, StepError> {
        let entity = self.entity(id)?;
        for relation in read::relations_touching(self.tx, id)? {
            self.remove(&MemoryItem::Relation(relation))?;
        }
        for observation in read::observations_of(self.tx, id)? {
            self.remove(&MemoryItem::Observation(observation))?;
        }
        self.remove(&MemoryItem::Entity(entity.clone()))?;
        Ok(entity)
    }

    fn merge(&mut self, from: EntityId, into: EntityId) -> Result<Entity, StepError> {
        if from == into {
            return Err(Refusal::MergeIntoItself(from).into());
        }
        let (gone, kept) = (self.entity(from)?, self.entity(into)?);
        let mut texts: FxHashSet<String> =
            read::observations_of(self.tx, into)?.into_iter().map(|observation| observation.text).collect();
        for observation in read::observations_of(self.tx, from)? {
            if !texts.insert(observation.text.clone()) {
                self.remove(&MemoryItem::Observation(observation))?;
                continue;
            }
            let moved = Observation { entity: into, updated_ns: self.at_ns, ..observation.clone() };
            self.replace(&MemoryItem::Observation(observation), &MemoryItem::Observation(moved))?;
        }
        for relation in read::relations_touching(self.tx, from)? {
            let end = |id: EntityId| if id == from { into } else { id };
            let (source, target) = (end(relation.from), end(relation.to));
            if source == target || read::relation_id(self.tx, source, target, &relation.relation_type)?.is_some() {
                self.remove(&MemoryItem::Relation(relation))?;
            } else {
                let moved = Relation { from: source, to: target, updated_ns: self.at_ns, ..relation.clone() };
                self.replace(&MemoryItem::Relation(relation), &MemoryItem::Relation(moved))?;
            }
        }
        // First, since deleting it deletes its contexts.
        contexts::hand_over(self.tx, self.change, from, Some(into))?;
        self.remove(&MemoryItem::Entity(gone.clone()))?;
        // With its description the kept entity takes over the ties of its links.
        if kept.description.is_none() {
            ties::hand_over(self.tx, from, TextOwner::Entity(into))?;
        }
        if let Some(text) = kept.observing_of(&gone).filter(|text| !texts.contains(*text)) {
            let observation = self.add_observation(into, text)?;
            observation.text_owner().map_or(Ok(()), |owner| ties::hand_over(self.tx, from, owner))?;
        }
        let (aliases, description) = kept.absorbing(&gone);
        let after = Entity { aliases, description, updated_ns: self.at_ns, ..kept.clone() };
        self.replace_entity(kept, after)?;
        self.entity(into)
    }

    fn add_observation(&mut self, entity: EntityId, text: &str) -> Result<MemoryItem, StepError> {
        self.refuse_missing(entity)?;
        let (id, created_ns, updated_ns) = (ObservationId(0), self.at_ns, self.at_ns);
        self.create(MemoryItem::Observation(Observation { id, entity, text: text.to_owned(), created_ns, updated_ns }))
    }

    fn update_observation(&mut self, id: ObservationId, text: &str) -> Result<Observation, StepError> {
        let before = read::observation(self.tx, id)?.ok_or(Refusal::NoObservation(id))?;
        let after = Observation { text: text.to_owned(), updated_ns: self.at_ns, ..before.clone() };
        self.replace(&MemoryItem::Observation(before), &MemoryItem::Observation(after.clone()))?;
        Ok(after)
    }

    pub(super) fn delete_observation(&mut self, id: ObservationId) -> Result<Observation, StepError> {
        let observation = read::observation(self.tx, id)?.ok_or(Refusal::NoObservation(id))?;
        self.remove(&MemoryItem::Observation(observation.clone()))?;
        Ok(observation)
    }

    fn add_relation(&mut self, from: EntityId, to: EntityId, relation_type: &str) -> Result<MemoryItem, StepError> {
        self.refuse_missing(from)?;
        self.refuse_missing(to)?;
        if let Some(id) = read::relation_id(self.tx, from, to, relation_type)? {
            return Err(Refusal::RelationExists(id).into());
        }
        let (id, created_ns, updated_ns) = (RelationId(0), self.at_ns, self.at_ns);
        let relation_type = relation_type.to_owned();
        self.create(MemoryItem::Relation(Relation { id, from, to, relation_type, created_ns, updated_ns }))
    }

    fn delete_relation(&mut self, id: RelationId) -> Result<Relation, StepError> {
        let relation = read::relation(self.tx, id)?.ok_or(Refusal::NoRelation(id))?;
        self.remove(&MemoryItem::Relation(relation.clone()))?;
        Ok(relation)
    }

    fn replace_entity(&mut self, before: Entity, after: Entity) -> Result<Entity, StepError> {
        self.replace(&MemoryItem::Entity(before), &MemoryItem::Entity(after.clone()))?;
        Ok(after)
    }

    /// Inserts a new item with the id that was asked for, or else the next one of its table.
    fn create(&mut self, item: MemoryItem) -> Result<MemoryItem, StepError> {
        let id = put(self.tx, self.number(rows::key(&item).0)?, &item)?;
        let item = rows::with_id(item, id);
        self.log(None, Some(&item))?;
        Ok(item)
    }

    /// Restores an item with the id that it had.
    pub(super) fn insert(&mut self, item: &MemoryItem) -> rusqlite::Result<()> {
        put(self.tx, Some(rows::key(item).1), item)?;
        self.log(None, Some(item))
    }

    pub(super) fn remove(&mut self, item: &MemoryItem) -> rusqlite::Result<()> {
        if let MemoryItem::Entity(entity) = item {
            contexts::hand_over(self.tx, self.change, entity.id, None)?;
        }
        let (kind, id) = rows::key(item);
        self.tx.prepare_cached(&format!("DELETE FROM {kind} WHERE id = ?1"))?.execute([id])?;
        self.log(Some(item), None)
    }

    pub(super) fn replace(&mut self, before: &MemoryItem, after: &MemoryItem) -> rusqlite::Result<()> {
        put(self.tx, Some(rows::key(after).1), after)?;
        self.log(Some(before), Some(after))
    }

    pub(super) fn log(&mut self, before: Option<&MemoryItem>, after: Option<&MemoryItem>) -> rusqlite::Result<()> {
        let (kind, id) = rows::key(after.or(before).expect("a step changes something"));
        let mut insert = self.tx.prepare_cached(
            "INSERT INTO change_step (change, position, kind, id, before, after) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let (before, after) = (before.map(rows::to_json), after.map(rows::to_json));
        insert.execute((self.change.0, self.position, kind, id, before, after))?;
        self.position += 1;
        Ok(())
    }

    /// The id that was asked for a new row; it must be above all ids that the table ever had.
    fn number(&self, table: &str) -> Result<Option<i64>, StepError> {
        let Some(number) = self.number else { return Ok(None) };
        let mut find = self.tx.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = ?1")?;
        let greatest: Option<i64> = find.query_row([table], |row| row.get(0)).optional()?;
        let is_free = number > greatest.unwrap_or_default();
        if is_free { Ok(Some(number)) } else { Err(Refusal::IdAlreadyUsed(number).into()) }
    }

    fn entity(&self, id: EntityId) -> Result<Entity, StepError> {
        Ok(read::entity(self.tx, id)?.ok_or(Refusal::NoEntity(id))?)
    }

    fn refuse_missing(&self, id: EntityId) -> Result<(), StepError> {
        let mut find = self.tx.prepare_cached("SELECT 1 FROM entity WHERE id = ?1")?;
        if find.exists([id.0])? { Ok(()) } else { Err(Refusal::NoEntity(id).into()) }
    }

    fn refuse_taken(&self, name: &str, but_for: Option<EntityId>) -> Result<(), StepError> {
        let mut find = self.tx.prepare_cached("SELECT id FROM entity WHERE name_key = ?1")?;
        let owner: Option<i64> = find.query_row([name_key(name)], |row| row.get(0)).optional()?;
        match owner.map(EntityId).filter(|owner| Some(*owner) != but_for) {
            Some(by) => Err(Refusal::NameTaken { by }.into()),
            None => Ok(()),
        }
    }
}

fn target(entity: EntityRef, made: &[MemoryItem]) -> EntityId {
    match entity {
        EntityRef::Id(id) => id,
        EntityRef::Made(place) => match made.get(place) {
            Some(MemoryItem::Entity(entity)) => entity.id,
            // Never an id: refused as missing.
            _ => EntityId(0),
        },
    }
}

/// Writes the row of an item, new or not; returns its id.
pub(super) fn put(tx: &Transaction<'_>, id: Option<i64>, item: &MemoryItem) -> rusqlite::Result<i64> {
    let statement = |sql| tx.prepare_cached(sql);
    let returned = |row: &rusqlite::Row<'_>| row.get(0);
    match item {
        MemoryItem::Entity(Entity { name, entity_type, aliases, description, created_ns, updated_ns, .. }) => {
            let id = statement(
                "INSERT INTO entity (id, name, name_key, type, description, created_ns, updated_ns) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO UPDATE SET (name, name_key, type, \
                 description, created_ns, updated_ns) = (?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
            )?
            .query_row((id, name, name_key(name), entity_type, description, created_ns, updated_ns), returned)?;
            put_aliases(tx, EntityId(id), aliases)?;
            Ok(id)
        }
        MemoryItem::Observation(Observation { entity, text, created_ns, updated_ns, .. }) => statement(
            "INSERT INTO observation (id, entity, text, created_ns, updated_ns) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (id) DO UPDATE SET (entity, text, created_ns, updated_ns) = (?2, ?3, ?4, ?5) RETURNING id",
        )?
        .query_row((id, entity.0, text, created_ns, updated_ns), returned),
        MemoryItem::Relation(Relation { from, to, relation_type, created_ns, updated_ns, .. }) => statement(
            "INSERT INTO relation (id, source, target, type, created_ns, updated_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (id) DO UPDATE SET (source, target, type, created_ns, updated_ns) = (?2, ?3, ?4, ?5, ?6) \
             RETURNING id",
        )?
        .query_row((id, from.0, to.0, relation_type, created_ns, updated_ns), returned),
    }
}

fn put_aliases(tx: &Transaction<'_>, id: EntityId, aliases: &[String]) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM alias WHERE entity = ?1")?.execute([id.0])?;
    let mut insert =
        tx.prepare_cached("INSERT INTO alias (entity, position, alias, alias_key) VALUES (?1, ?2, ?3, ?4)")?;
    for (position, alias) in aliases.iter().enumerate() {
        insert.execute((id.0, position as i64, alias, name_key(alias)))?;
    }
    Ok(())
}
