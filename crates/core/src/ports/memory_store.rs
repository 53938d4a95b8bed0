//! Where memory is kept. Unlike the index it is nobody's copy: it is never rebuilt, only migrated, and every change of it
//! is logged beside it.

use crate::RequestKey;
use crate::memory::{Entity, EntityId, Observation, ObservationId, Relation, RelationId};
use crate::model::VaultPath;

/// Keeps entities, observations and relations, and the log of every change.
///
/// Lists come in ascending order of id unless said otherwise. Answers to a batch come in the order asked.
pub trait MemoryStore: Send + Sync {
    /// The one write door. All changes or none, in their order, each seen by the next; on disk when it returns, through a
    /// kill or a power cut, with a log entry in the same step. An empty list does nothing and is not logged.
    ///
    /// Refuses, naming the change: a name that another entity has in any case, something that is not there, a relation
    /// that is there already. Deleting an entity deletes its observations and relations. Ids are never given twice.
    ///
    /// A request that was applied before, not longer ago than is remembered, changes nothing and gives what it gave then.
    fn apply(&self, changes: &[MemoryChange], author: &Author) -> Result<Applied, ApplyError>;

    /// Whether a request was applied, and is remembered.
    fn was_applied(&self, request: RequestKey) -> Result<bool, MemoryFailure>;

    /// Takes back one logged change as a change of its own, logged in its turn. Refuses where what it made, changed or
    /// removed is no longer as that change left it, or something newer hangs on it.
    ///
    /// An undo can be undone, which brings the change back. To undo it once more is to undo what brought it back: that is the
    /// entry which the log then names.
    ///
    /// A context that the change moved or took away is put back, unless its client has set it since.
    fn undo(&self, change: ChangeNumber, author: &Author) -> Result<LoggedChange, UndoError>;

    /// Entities; `None` where there is none.
    fn entities(&self, ids: &[EntityId]) -> Result<Vec<Option<Entity>>, MemoryFailure>;

    /// For each name, as made by [`crate::memory::name_key`], the entities that have it as name, then those that have it
    /// as an alias.
    fn entities_called(&self, keys: &[String]) -> Result<Vec<Vec<EntityId>>, MemoryFailure>;

    /// At most `limit` entities behind an id.
    fn entities_after(&self, after: EntityId, limit: usize) -> Result<Vec<Entity>, MemoryFailure>;

    /// At most `limit` entities, the first `offset` left out.
    fn entities_from(&self, offset: u64, limit: usize) -> Result<Vec<Entity>, MemoryFailure>;

    /// Observations; `None` where there is none.
    fn observations(&self, ids: &[ObservationId]) -> Result<Vec<Option<Observation>>, MemoryFailure>;

    /// All observations of each entity.
    fn observations_of(&self, entities: &[EntityId]) -> Result<Vec<Vec<Observation>>, MemoryFailure>;

    /// At most `limit` observations behind an id.
    fn observations_after(&self, after: ObservationId, limit: usize) -> Result<Vec<Observation>, MemoryFailure>;

    /// Relations; `None` where there is none.
    fn relations(&self, ids: &[RelationId]) -> Result<Vec<Option<Relation>>, MemoryFailure>;

    /// At most `limit` relations behind an id.
    fn relations_after(&self, after: RelationId, limit: usize) -> Result<Vec<Relation>, MemoryFailure>;

    /// At most `limit` relations that pass a filter, the first `offset` left out.
    fn relations_where(
        &self,
        filter: &RelationFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, MemoryFailure>;

    /// All relations with both ends among these entities.
    fn relations_among(&self, entities: &[EntityId]) -> Result<Vec<Relation>, MemoryFailure>;

    /// The sources of all relations of one type, in whatever case its ASCII letters are, into any of these entities. May
    /// repeat.
    fn sources_into(&self, targets: &[EntityId], relation_type: &str) -> Result<Vec<EntityId>, MemoryFailure>;

    /// How many entities there are.
    fn entity_count(&self) -> Result<u64, MemoryFailure>;

    /// How much there is of everything. Slower: it looks at every row.
    fn counts(&self) -> Result<MemoryCounts, MemoryFailure>;

    /// The newest log entry's number; 0 before the first.
    fn head(&self) -> Result<ChangeNumber, MemoryFailure>;

    /// What changed behind a log entry. Whoever keeps something derived from memory follows it by this, whichever process
    /// made the changes.
    fn touched_since(&self, change: ChangeNumber) -> Result<Touched, MemoryFailure>;

    /// At most `limit` log entries before a number, newest first.
    fn log_before(&self, before: ChangeNumber, limit: usize) -> Result<Vec<LoggedChange>, MemoryFailure>;

    /// The entity that a client last took as its context.
    fn context(&self, client: &str) -> Result<Option<EntityId>, MemoryFailure>;

    /// Remembers a client's context, or that it has none. Not logged. Goes when the entity goes.
    fn set_context(&self, client: &str, entity: Option<EntityId>, at_ns: i64) -> Result<(), MemoryFailure>;

    /// At most `limit` vectors of a space behind an owner, in order of owner.
    fn vectors_after(
        &self,
        space: &str,
        after: Option<TextOwner>,
        limit: usize,
    ) -> Result<Vec<(TextOwner, StoredVector)>, MemoryFailure>;

    /// Keeps vectors, in place of any of the same space and owner. Not logged: they can be computed again. Those whose
    /// owner is gone are passed over. A vector goes with its owner, and stays when the owner's text changes: it says
    /// itself of which text it is.
    fn put_vectors(&self, space: &str, vectors: &[(TextOwner, StoredVector)]) -> Result<(), MemoryFailure>;

    /// The ties of each owner's links, in order of target.
    fn ties_of(&self, owners: &[TextOwner]) -> Result<Vec<Vec<NoteTie>>, MemoryFailure>;

    /// Every tie to the note at a path, in order of owner and target.
    fn ties_to(&self, path: &VaultPath) -> Result<Vec<NoteTie>, MemoryFailure>;

    /// Every description and observation with `[[` in it that was replaced or deleted, and whose it was: an undo may bring
    /// it back. In order of the log; may repeat, and may be there again.
    fn linking_texts_gone(&self) -> Result<Vec<(TextOwner, String)>, MemoryFailure>;

    /// Takes some ties away and then makes others, in place of any of the same owner and target; all or nothing. Not
    /// logged: no text changes by it. A tie stays when its owner goes, since the owner may come back; what takes
    /// over an entity's description in a merge, another entity or an observation, gets its ties.
    fn retie(&self, gone: &[NoteTie], made: &[NoteTie]) -> Result<(), MemoryFailure>;

    /// What another program did to the place where memory is kept while it was open, and what a person can do: nothing is
    /// written there any more. Cheap. `None` where all is well.
    fn replaced(&self) -> Option<String> {
        None
    }

    /// Looks for damage; each finding is a sentence. Slow: reads everything.
    fn check(&self) -> Result<Vec<String>, MemoryFailure>;
}

/// One change of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryChange {
    /// A new entity.
    CreateEntity(NewEntity),
    /// Other fields for an entity.
    UpdateEntity {
        /// Which.
        id: EntityId,
        /// What becomes of it.
        update: EntityUpdate,
    },
    /// More of an entity, whatever it has by then: aliases that it does not have, and a description where there is none.
    CompleteEntity {
        /// Which.
        id: EntityId,
        /// Other names.
        aliases: Vec<String>,
        /// What it is.
        description: Option<String>,
    },
    /// An entity goes, with its observations and relations.
    DeleteEntity {
        /// Which.
        id: EntityId,
    },
    /// One entity becomes part of another: see [`Entity::absorbing`]. Observations move. Relations move too, but for those that
    /// go: between the two, of the one that goes with itself, and what is there already. Whose context it was has the
    /// other for it.
    MergeEntity {
        /// Goes.
        from: EntityId,
        /// Stays.
        into: EntityId,
    },
    /// A new observation.
    AddObservation {
        /// Of what.
        entity: EntityRef,
        /// In words.
        text: String,
    },
    /// An observation goes.
    DeleteObservation {
        /// Which.
        id: ObservationId,
    },
    /// A new relation.
    AddRelation {
        /// The source.
        from: EntityRef,
        /// The target.
        to: EntityRef,
        /// Free text.
        relation_type: String,
    },
    /// A relation goes.
    DeleteRelation {
        /// Which.
        id: RelationId,
    },
    /// The times of what an earlier change of the same list made, for things that come from elsewhere and had a past there.
    SetTimes {
        /// The place of that change in the list.
        made: usize,
        /// When it was made, in nanoseconds since 1970.
        created_ns: i64,
        /// When it last changed.
        updated_ns: i64,
    },
    /// What a link in the text that an earlier change of the same list made is tied to, as it was elsewhere. Not logged, like
    /// [`MemoryStore::retie`].
    Tie {
        /// The place of that change in the list.
        made: usize,
        /// The link's target as written.
        target: String,
        /// Where the note is.
        path: VaultPath,
    },
    /// A change that makes something, which gets this number: greater than any that was given to its kind.
    Numbered {
        /// The number.
        number: i64,
        /// The change.
        change: Box<MemoryChange>,
    },
}

/// An entity that is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewEntity {
    /// Not blank, not taken.
    pub name: String,
    /// Canonical.
    pub entity_type: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// What it is.
    pub description: Option<String>,
}

/// New values for the fields of an entity; `None` leaves one as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityUpdate {
    /// Not blank, not taken.
    pub name: Option<String>,
    /// Canonical.
    pub entity_type: Option<String>,
    /// In place of all there were.
    pub aliases: Option<Vec<String>>,
    /// `Some(None)` takes it away.
    pub description: Option<Option<String>>,
}

impl EntityUpdate {
    /// The entity with the new values, updated at that time.
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

/// An entity that is there, or one that an earlier change of the same list makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityRef {
    /// That is there.
    Id(EntityId),
    /// Made by the change at this place of the list.
    Made(usize),
}

/// Who changes memory, by what, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The client's name; empty when it gave none.
    pub client: String,
    /// The tool or command.
    pub tool: String,
    /// The time, in nanoseconds since 1970.
    pub at_ns: i64,
    /// Names the call, where it may be made again. Not in the log.
    pub request: Option<RequestKey>,
}

/// What came of a list of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The log entry; 0 for an empty list.
    pub change: ChangeNumber,
    /// For each change what it made or left, or what it deleted.
    pub outcomes: Vec<MemoryItem>,
}

/// One thing of memory, as it is or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryItem {
    /// An entity.
    Entity(Entity),
    /// An observation.
    Observation(Observation),
    /// A relation.
    Relation(Relation),
}

impl MemoryItem {
    /// Whose text it has, if it has any.
    pub fn text_owner(&self) -> Option<TextOwner> {
        match self {
            Self::Entity(entity) => Some(TextOwner::Entity(entity.id)),
            Self::Observation(seen) => Some(TextOwner::Observation(seen.id)),
            Self::Relation(_) => None,
        }
    }

    /// The same thing with other times.
    pub fn at_times(&self, created_ns: i64, updated_ns: i64) -> Self {
        match self.clone() {
            Self::Entity(entity) => Self::Entity(Entity { created_ns, updated_ns, ..entity }),
            Self::Observation(seen) => Self::Observation(Observation { created_ns, updated_ns, ..seen }),
            Self::Relation(relation) => Self::Relation(Relation { created_ns, updated_ns, ..relation }),
        }
    }
}

/// The number of a log entry. Later entries have greater ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChangeNumber(pub i64);

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// Its number.
    pub number: ChangeNumber,
    /// Who, by what, when.
    pub author: Author,
    /// The entry that this one took back.
    pub undoes: Option<ChangeNumber>,
    /// The entry that took this one back, unless it was taken back itself.
    pub undone_by: Option<ChangeNumber>,
    /// Each thing that changed: what it was and what it became, in the order of the change.
    pub steps: Vec<(Option<MemoryItem>, Option<MemoryItem>)>,
}

/// Which relations are asked for. What is `None` may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelationFilter {
    /// The source.
    pub from: Option<EntityId>,
    /// The target.
    pub to: Option<EntityId>,
    /// The type, as written.
    pub relation_type: Option<String>,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryCounts {
    /// Entities.
    pub entities: u64,
    /// Observations.
    pub observations: u64,
    /// Relations.
    pub relations: u64,
}

/// What some log entries changed. Whether it is still there must be asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touched {
    /// The newest entry among them.
    pub head: ChangeNumber,
    /// Sorted, none twice.
    pub entities: Vec<EntityId>,
    /// Sorted, none twice.
    pub observations: Vec<ObservationId>,
    /// Sorted, none twice.
    pub relations: Vec<RelationId>,
}

/// Whose text something is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextOwner {
    /// An entity's, see [`Entity::as_text`].
    Entity(EntityId),
    /// An observation's.
    Observation(ObservationId),
}

/// What a link in the text of memory means, now that its note no longer goes by the name it was written with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoteTie {
    /// In whose text.
    pub owner: TextOwner,
    /// The link's target as written.
    pub target: String,
    /// Where the note is.
    pub path: VaultPath,
}

/// A vector of length one in a quarter of its size: each number is its code times the scale.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// Tells the text it was made of from others.
    pub text_hash: i64,
    /// What one step of a code is worth.
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
        /// Its place in the list.
        change: usize,
        /// The rule.
        refusal: Refusal,
    },
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] MemoryFailure),
}

/// Which rule a change breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another entity has the name.
    #[error("entity {by} has the name already")]
    NameTaken {
        /// Which.
        by: EntityId,
    },
    /// There is no such entity.
    #[error("there is no entity {0}")]
    NoEntity(EntityId),
    /// There is no such observation.
    #[error("there is no observation {0}")]
    NoObservation(ObservationId),
    /// There is no such relation.
    #[error("there is no relation {0}")]
    NoRelation(RelationId),
    /// The relation is there.
    #[error("relation {0} says the same already")]
    RelationExists(RelationId),
    /// No earlier change of the list made anything there.
    #[error("change {0} of the list made nothing")]
    NothingMade(usize),
    /// A thing of its kind has or had the number, or a greater one.
    #[error("the number {0} may have been given before")]
    NumberGiven(i64),
    /// An entity cannot become part of itself.
    #[error("entity {0} cannot be merged into itself")]
    Itself(EntityId),
}

/// Why a change was not taken back. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The log has no such entry.
    #[error("there is no change {}", .0.0)]
    Unknown(ChangeNumber),
    /// It was taken back before.
    #[error("change {} was undone by change {} already", .change.0, .by.0)]
    Undone {
        /// Which.
        change: ChangeNumber,
        /// By which.
        by: ChangeNumber,
    },
    /// Something newer hangs on it.
    #[error("change {} cannot be undone: {reason}", .change.0)]
    Depended {
        /// Which.
        change: ChangeNumber,
        /// What is in the way, as the rest of the sentence.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] MemoryFailure),
}

/// Why the store failed. Its own words say no more than what could not be done, since they reach clients, as does the
/// advice; all of why is in its source, for logs and the command line.
#[derive(Debug, thiserror::Error)]
#[error("the memory could not be {action}")]
pub struct MemoryFailure {
    /// What could not be done, to end a sentence: "read", "changed", "checked".
    pub action: &'static str,
    /// What a client may know of why, and what it can do, to follow a colon. `None` where it can do nothing.
    pub advice: Option<String>,
    /// What went wrong, with paths and the backend's words.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl MemoryFailure {
    /// Wraps a backend's error with what could not be done, without advice.
    pub fn new(action: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { action, advice: None, source: source.into() }
    }
}
