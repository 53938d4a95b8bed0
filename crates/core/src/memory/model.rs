//! Entities, their observations and their relations.

use std::fmt;

use crate::model::composed_lowercase;

/// The id of an entity, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub i64);

/// The id of an observation, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObservationId(pub i64);

/// The id of a relation, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationId(pub i64);

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ObservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A thing that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    pub id: EntityId,
    /// As given; unique, ignoring case.
    pub name: String,
    /// Its canonical type, or the type as given where none is known.
    pub entity_type: String,
    /// Other names, in the order given. Two entities may share one.
    pub aliases: Vec<String>,
    /// A short description.
    pub description: Option<String>,
    /// How many observations it has.
    pub observation_count: u64,
    /// When it was created, in nanoseconds since 1970.
    pub created_ns: i64,
    /// When its own fields last changed. Observations and relations have their own times.
    pub updated_ns: i64,
}

/// A fact about an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub id: ObservationId,
    pub entity: EntityId,
    pub text: String,
    /// When it was created, in nanoseconds since 1970.
    pub created_ns: i64,
    /// When it last changed: it moves when two entities are merged.
    pub updated_ns: i64,
}

/// A relation between two entities. No two have the same source, target and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub id: RelationId,
    pub from: EntityId,
    pub to: EntityId,
    /// Free text.
    pub relation_type: String,
    /// When it was created, in nanoseconds since 1970.
    pub created_ns: i64,
    /// When it last changed.
    pub updated_ns: i64,
}

/// The form in which names and aliases are compared: ignores case and Unicode normal form.
///
/// It is stored with every name, so a change here needs a migration of the memory.
pub fn name_key(name: &str) -> String {
    composed_lowercase(name.trim())
}

/// The relation from a member to its project.
pub const PART_OF: &str = "part_of";

/// The text of an entity or a draft that is embedded.
pub(super) fn text_of_entity(entity_type: &str, name: &str, aliases: &[String], description: Option<&str>) -> String {
    let mut text = format!("{entity_type}: {name}");
    for more in aliases.iter().map(String::as_str).chain(description) {
        text.push_str(". ");
        text.push_str(more);
    }
    text
}

impl Entity {
    /// The text of the entity that is embedded.
    pub fn as_text(&self) -> String {
        text_of_entity(&self.entity_type, &self.name, &self.aliases, self.description.as_deref())
    }

    /// The aliases and the description of this entity after another is merged into it: the other's name and aliases become
    /// aliases, its description is used where there was none; else see [`Entity::observing_of`].
    pub fn absorbing(&self, other: &Self) -> (Vec<String>, Option<String>) {
        self.completed_by([&other.name].into_iter().chain(&other.aliases), other.description.as_ref())
    }

    /// The aliases and the description of this entity with more names, and with a description if it has none.
    pub fn completed_by<'n>(
        &self,
        names: impl IntoIterator<Item = &'n String>,
        description: Option<&String>,
    ) -> (Vec<String>, Option<String>) {
        let mut aliases = self.aliases.clone();
        for name in names {
            let key = name_key(name);
            if key != name_key(&self.name) && aliases.iter().all(|alias| name_key(alias) != key) {
                aliases.push(name.clone());
            }
        }
        (aliases, self.description.as_ref().or(description).cloned())
    }

    /// The text that becomes an observation when another entity is merged into this one: the other's description, if both have
    /// one and they differ.
    pub fn observing_of<'o>(&self, other: &'o Self) -> Option<&'o str> {
        let own = self.description.as_deref()?;
        other.description.as_deref().filter(|description| *description != own)
    }
}
