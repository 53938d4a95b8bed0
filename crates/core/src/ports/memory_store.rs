//! The store of the agents' memory. Unlike the index it is not derived from anything: it is never rebuilt, only migrated,
//! and every change is logged with it.

use crate::RequestKey;
use crate::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId, WholeLog};
use crate::model::VaultPath;

/// Stores entities, observations and relations, and the log of every change.
///
/// Lists are in ascending order of id unless stated otherwise. Answers to a batch are in the order of the batch.
pub trait MemoryStore: Send + Sync {
    /// Every change goes through this method. All changes or none, in their order, each visible to the next. When it
    /// returns, they survive a kill or a power cut, with a log entry in the same transaction. An empty list does nothing and
    /// is not logged.
    ///
    /// Refuses, with the index of the change: a name that another entity has (case ignored), an unknown id, a duplicate
    /// relation. Deleting an entity deletes its observations and relations. Ids are never reused.
    ///
    /// A request whose key is still recorded changes nothing and returns the first result.
    fn apply(&self, changes: &[MemoryChange], author: &Author) -> Result<Applied, ApplyError> {
        self.apply_at(None, changes, author)
    }

    /// Like [`MemoryStore::apply`], for changes that depend on what the caller read: refuses with [`ApplyError::Moved`] if `head`
    /// is no longer the newest log entry, whichever process added one. It is compared inside the transaction, after the key of
    /// the request.
    fn apply_at(
        &self,
        head: Option<ChangeNumber>,
        changes: &[MemoryChange],
        author: &Author,
    ) -> Result<Applied, ApplyError>;

    /// Whether a request was applied and its key is still recorded.
    fn was_applied(&self, request: RequestKey) -> Result<bool, MemoryFailure>;

    /// Undoes one logged change by a new logged change. Refuses if an item has changed since, or a newer item depends on
    /// it.
    ///
    /// An undo can be undone, which redoes the change. To undo that change again, undo the entry that redid it: the log
    /// names it.
    ///
    /// A context that the change moved or cleared is restored, unless its client has set it since.
    ///
    /// A request whose key is still recorded changes nothing and returns the first result.
    fn undo(&self, change: ChangeNumber, author: &Author) -> Result<LoggedChange, UndoError>;

    /// Removes an entity, with its observations and relations, or an observation permanently: deletes it, and puts the reason in
    /// place of its texts in every log entry and every recorded result. Entities that were merged into it are covered too. No
    /// file of the store has the texts afterwards, except those that the result names. Refuses an item that neither exists nor is
    /// in the log, and an entity that a merge made part of another.
    fn redact(&self, owner: TextOwner, reason: &str, author: &Author) -> Result<Redaction, ApplyError>;

    /// Entities; `None` for an unknown id.
    fn entities(&self, ids: &[EntityId]) -> Result<Vec<Option<Entity>>, MemoryFailure>;

    /// For each name key (see [`crate::memory::name_key`]), the entities with that name, then those with that alias.
    fn entities_called(&self, keys: &[String]) -> Result<Vec<Vec<EntityId>>, MemoryFailure>;

    /// The next entities with a greater id, `limit` at most; none only after the last.
    fn entities_after(&self, after: EntityId, limit: usize) -> Result<Vec<Entity>, MemoryFailure>;

    /// At most `limit` entities after the first `offset`.
    fn entities_from(&self, offset: u64, limit: usize) -> Result<Vec<Entity>, MemoryFailure>;

    /// Observations; `None` for an unknown id.
    fn observations(&self, ids: &[ObservationId]) -> Result<Vec<Option<Observation>>, MemoryFailure>;

    /// All observations of each entity.
    fn observations_of(&self, entities: &[EntityId]) -> Result<Vec<Vec<Observation>>, MemoryFailure>;

    /// The next observations with a greater id, `limit` at most; none only after the last.
    fn observations_after(&self, after: ObservationId, limit: usize) -> Result<Vec<Observation>, MemoryFailure>;

    /// Relations; `None` for an unknown id.
    fn relations(&self, ids: &[RelationId]) -> Result<Vec<Option<Relation>>, MemoryFailure>;

    /// The next relations with a greater id, `limit` at most; none only after the last.
    fn relations_after(&self, after: RelationId, limit: usize) -> Result<Vec<Relation>, MemoryFailure>;

    /// At most `limit` relations that match a filter, after the first `offset`.
    fn relations_where(
        &self,
        filter: &RelationFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, MemoryFailure>;

    /// All relations with both ends among these entities.
    fn relations_among(&self, entities: &[EntityId]) -> Result<Vec<Relation>, MemoryFailure>;

    /// The sources of all relations of one type (ASCII case ignored) into any of these entities. May contain
    /// duplicates.
    fn sources_into(&self, targets: &[EntityId], relation_type: &str) -> Result<Vec<EntityId>, MemoryFailure>;

    /// The number of entities.
    fn entity_count(&self) -> Result<u64, MemoryFailure>;

    /// The number of all items. Slower: it scans every row.
    fn counts(&self) -> Result<MemoryCounts, MemoryFailure>;

    /// The newest log entry's number; 0 before the first.
    fn head(&self) -> Result<ChangeNumber, MemoryFailure>;

    /// The change feed: what changed after a log entry, in whichever process. Data derived from memory is kept current
    /// with it.
    fn changed_since(&self, change: ChangeNumber) -> Result<ChangedIds, MemoryFailure>;

    /// At most `limit` log entries before a number, newest first.
    fn log_before(&self, before: ChangeNumber, limit: usize) -> Result<Vec<LoggedChange>, MemoryFailure>;

    /// Copies the log of another memory into one without changes: its entries, the items that they leave, and ties; all or
    /// nothing. Contexts are not part of a log.
    fn copy_log(&self, log: &WholeLog, ties: &[NoteTie]) -> Result<(), CopyLogError>;

    /// The entity that a client last set as its context.
    fn context(&self, client: &str) -> Result<Option<EntityId>, MemoryFailure>;

    /// Stores or clears a client's context. Not logged. Deleting the entity clears it.
    fn set_context(&self, client: &str, entity: Option<EntityId>, at_ns: i64) -> Result<(), MemoryFailure>;

    /// The next vectors of a space after an owner, in order of owner, `limit` at most; none only after the last.
    fn vectors_after(
        &self,
        space: &str,
        after: Option<TextOwner>,
        limit: usize,
    ) -> Result<Vec<(TextOwner, StoredVector)>, MemoryFailure>;

    /// The vectors of some owners, as other processes may have stored them since they were last read.
    fn vectors_of(&self, _space: &str, _owners: &[TextOwner]) -> Result<Vec<(TextOwner, StoredVector)>, MemoryFailure> {
        Ok(Vec::new())
    }

    /// Claims texts, given by their hashes, whose vectors this process should compute, at most `limit`. The others are
    /// being computed by other processes. A claim ends when the vector is stored, or by itself after a while.
    fn claim_texts(&self, _space: &str, hashes: &[i64], limit: usize) -> Result<Vec<i64>, MemoryFailure> {
        Ok(hashes.iter().take(limit).copied().collect())
    }

    /// Stores vectors, replacing those of the same space and owner. Not logged: they can be computed again. Vectors of
    /// unknown owners are ignored. A vector is deleted with its owner, and stays when the owner's text changes:
    /// its `text_hash` tells which text it belongs to.
    fn put_vectors(&self, space: &str, vectors: &[(TextOwner, StoredVector)]) -> Result<(), MemoryFailure>;

    /// The ties of each owner's links, in order of target.
    fn ties_of(&self, owners: &[TextOwner]) -> Result<Vec<Vec<NoteTie>>, MemoryFailure>;

    /// Every tie to the note at a path, in order of owner and target.
    fn ties_to(&self, path: &VaultPath) -> Result<Vec<NoteTie>, MemoryFailure>;

    /// Every replaced or deleted description and observation that contains `[[`, with its owner: an undo may restore it.
    /// In log order; may contain duplicates and texts that exist again.
    fn linking_texts_gone(&self) -> Result<Vec<(TextOwner, String)>, MemoryFailure>;

    /// Removes some ties, then adds others, replacing those of the same owner and target; all or nothing. Not logged: no
    /// text changes. A tie stays when its owner is deleted, since an undo may restore the owner. In a merge, the entity or
    /// observation that takes over a description takes over its ties.
    fn repoint_links(&self, removed: &[NoteTie], added: &[NoteTie]) -> Result<(), MemoryFailure>;

    /// Whether another program replaced the open memory file: cause and next step, for the user. Nothing is written there any
    /// more. Cheap.
    fn replaced(&self) -> Option<String> {
        None
    }

    /// Checks for damage; each finding is a sentence. Slow: reads everything.
    fn check(&self) -> Result<Vec<String>, MemoryFailure>;
}

/// One change to memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryChange {
    CreateEntity(NewEntity),
    /// New values for fields of an entity.
    UpdateEntity {
        id: EntityId,
        update: EntityUpdate,
    },
    /// Adds to an entity: aliases that it does not have, and a description if it has none.
    CompleteEntity {
        id: EntityId,
        /// Other names.
        aliases: Vec<String>,
        description: Option<String>,
    },
    /// Deletes an entity with its observations and relations.
    DeleteEntity {
        id: EntityId,
    },
    /// Merges one entity into another: see [`Entity::absorbing`]. Observations and relations move; relations between the two,
    /// of `from` with itself, and duplicates are deleted, and so are observations with a text that `into` has. Contexts of `from` become contexts of `into`.
    MergeEntity {
        /// The entity that is deleted.
        from: EntityId,
        /// The entity that remains.
        into: EntityId,
    },
    AddObservation {
        entity: EntityRef,
        text: String,
    },
    /// A new text for an observation.
    UpdateObservation {
        id: ObservationId,
        text: String,
    },
    DeleteObservation {
        id: ObservationId,
    },
    AddRelation {
        from: EntityRef,
        to: EntityRef,
        /// Free text.
        relation_type: String,
    },
    DeleteRelation {
        id: RelationId,
    },
    /// Sets the times of an item that an earlier change of the same list created, for imports.
    SetTimes {
        /// The index of that change in the list.
        made: usize,
        /// When it was created, in nanoseconds since 1970.
        created_ns: i64,
        /// When it last changed.
        updated_ns: i64,
    },
    /// Adds a tie to a text that an earlier change of the same list created, for imports. Not logged, like
    /// [`MemoryStore::repoint_links`].
    Tie {
        /// The index of that change in the list.
        made: usize,
        /// The link's target as written.
        target: String,
        /// The note's path.
        path: VaultPath,
    },
    /// A change that creates an item with this id, which must be greater than every earlier id of its kind.
    Numbered {
        number: i64,
        change: Box<MemoryChange>,
    },
}

/// An entity to be created.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewEntity {
    /// Not blank, not taken.
    pub name: String,
    /// Canonical.
    pub entity_type: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// A description of the entity.
    pub description: Option<String>,
}

/// New values for the fields of an entity; `None` leaves one as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityUpdate {
    /// Not blank, not taken.
    pub name: Option<String>,
    /// Canonical.
    pub entity_type: Option<String>,
    /// Replaces all aliases.
    pub aliases: Option<Vec<String>>,
    /// `Some(None)` removes it.
    pub description: Option<Option<String>>,
}

impl EntityUpdate {
    /// The entity with the new values and a new update time.
    pub fn applied_to(&self, entity: &Entity, at_ns: i64) -> Entity {
        let Entity { name, entity_type, aliases, description, .. } = entity;
        Entity {
            name: self.name.as_ref().unwrap_or(name).clone(),
            entity_type: self.entity_type.as_ref().unwrap_or(entity_type).clone(),
            aliases: self.aliases.as_ref().unwrap_or(aliases).clone(),
            description: self.description.as_ref().unwrap_or(description).clone(),
            updated_ns: at_ns,
            ..entity.clone()
        }
    }
}

/// An existing entity, or one that an earlier change of the same list creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityRef {
    /// An existing entity.
    Id(EntityId),
    /// Created by the change at this index of the list.
    Made(usize),
}

/// Who changes memory, with which tool, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The client's name; may be empty.
    pub client: String,
    /// The tool or command.
    pub tool: String,
    /// The time, in nanoseconds since 1970.
    pub at_ns: i64,
    /// The key of the call, if it may be retried. Not in the log.
    pub request: Option<RequestKey>,
}

/// The result of a list of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The log entry; 0 for an empty list.
    pub change: ChangeNumber,
    /// For each change, the item it created, changed or deleted.
    pub outcomes: Vec<MemoryItem>,
}

/// The counts of a redaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redaction {
    /// The log entry.
    pub change: ChangeNumber,
    /// Entities and observations.
    pub items: u64,
    /// Steps of log entries whose texts were replaced.
    pub log_steps: u64,
    /// Where a deleted text may still be, and what to do about it, for the user.
    pub leftover: Option<String>,
    /// Earlier copies of memory that may still have the texts, as paths from the vault.
    pub backups: Vec<String>,
}

/// One item of memory, in its present or a past version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryItem {
    Entity(Entity),
    Observation(Observation),
    Relation(Relation),
}

impl MemoryItem {
    /// The owner of its text, if it has a text.
    pub fn text_owner(&self) -> Option<TextOwner> {
        match self {
            Self::Entity(entity) => Some(TextOwner::Entity(entity.id)),
            Self::Observation(seen) => Some(TextOwner::Observation(seen.id)),
            Self::Relation(_) => None,
        }
    }

    /// This item with other times.
    pub fn at_times(&self, created_ns: i64, updated_ns: i64) -> Self {
        match self.clone() {
            Self::Entity(entity) => Self::Entity(Entity { created_ns, updated_ns, ..entity }),
            Self::Observation(seen) => Self::Observation(Observation { created_ns, updated_ns, ..seen }),
            Self::Relation(relation) => Self::Relation(Relation { created_ns, updated_ns, ..relation }),
        }
    }
}

/// The number of a log entry. Later entries have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChangeNumber(pub i64);

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    pub number: ChangeNumber,
    /// Who made it, with which tool, and when.
    pub author: Author,
    /// The entry that this one undid.
    pub undoes: Option<ChangeNumber>,
    /// The entry that undid this one, unless that was undone.
    pub undone_by: Option<ChangeNumber>,
    /// Each changed item before and after, in the order of the change.
    pub steps: Vec<(Option<MemoryItem>, Option<MemoryItem>)>,
}

/// Selects relations; `None` matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelationFilter {
    pub from: Option<EntityId>,
    pub to: Option<EntityId>,
    /// The type, as written.
    pub relation_type: Option<String>,
}

/// The number of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryCounts {
    pub entities: u64,
    pub observations: u64,
    pub relations: u64,
}

/// The ids of items that some log entries changed. The items may be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedIds {
    /// The newest entry among them.
    pub head: ChangeNumber,
    /// Sorted, without duplicates.
    pub entities: Vec<EntityId>,
    /// Sorted, without duplicates.
    pub observations: Vec<ObservationId>,
    /// Sorted, without duplicates.
    pub relations: Vec<RelationId>,
}

/// The owner of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextOwner {
    /// An entity, see [`Entity::as_text`].
    Entity(EntityId),
    Observation(ObservationId),
}

/// The target of a link in a text of memory whose note no longer has the name in the link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoteTie {
    pub owner: TextOwner,
    /// The link's target as written.
    pub target: String,
    /// The note's path.
    pub path: VaultPath,
}

/// A vector of length one as 8-bit codes: each number is its code times the scale.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// The hash of the embedded text.
    pub text_hash: i64,
    /// The value of one step of a code.
    pub scale: f32,
    /// One for each dimension.
    pub codes: Box<[i8]>,
}

/// Why a list of changes was not applied. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A change breaks a rule.
    #[error("change {change}: {refusal}")]
    Refused {
        /// Its index in the list.
        change: usize,
        refusal: Refusal,
    },
    /// The log has an entry after the one that the caller named.
    #[error("memory has changed since it was read")]
    Moved,
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] MemoryFailure),
}

/// Which rule a change breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another entity has the name.
    #[error("entity {by} already has the name")]
    NameTaken { by: EntityId },
    /// There is no such entity.
    #[error("there is no entity {0}")]
    NoEntity(EntityId),
    /// There is no such observation.
    #[error("there is no observation {0}")]
    NoObservation(ObservationId),
    /// There is no such relation.
    #[error("there is no relation {0}")]
    NoRelation(RelationId),
    #[error("relation {0} already exists")]
    RelationExists(RelationId),
    /// The change at that index created no item.
    #[error("change {0} of the list created nothing")]
    NoItemCreated(usize),
    /// An item of its kind has or had the id or a greater one.
    #[error("the id {0} may have been used before")]
    IdAlreadyUsed(i64),
    /// The entity was merged into another.
    #[error("the entity was merged into entity {by}")]
    Absorbed {
        /// The entity that it is part of.
        by: EntityId,
    },
    /// An entity cannot be merged into itself.
    #[error("entity {0} cannot be merged into itself")]
    MergeIntoItself(EntityId),
}

/// Why a change was not undone. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The log has no such entry.
    #[error("there is no change {}", .0.0)]
    Unknown(ChangeNumber),
    /// It was undone before.
    #[error("change {} was already undone by change {}", .change.0, .by.0)]
    Undone {
        change: ChangeNumber,
        /// The change that undid it.
        by: ChangeNumber,
    },
    /// A newer item depends on it.
    #[error("change {} cannot be undone: {reason}", .change.0)]
    Depended {
        change: ChangeNumber,
        /// The dependency, as the rest of the sentence.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] MemoryFailure),
}

/// Why a log was not copied. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum CopyLogError {
    /// Memory has changes of its own.
    #[error("memory has changes already")]
    NotEmpty,
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] MemoryFailure),
}

/// Why the store failed. The message and the advice reach clients; the full cause is in `source`, for logs and the command
/// line.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the memory")]
pub struct MemoryFailure {
    /// A verb: "read", "change", "check".
    pub action: &'static str,
    /// Cause and next step for the client, to follow a colon. `None` if it can do nothing.
    pub advice: Option<String>,
    /// The cause, with paths and the backend's message.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl MemoryFailure {
    /// Wraps a backend's error with the action that failed, without advice.
    pub fn new(action: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { action, advice: None, source: source.into() }
    }
}
