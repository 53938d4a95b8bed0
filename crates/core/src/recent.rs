//! What changed lately in notes and memory, in one order; also to one entity.

use std::collections::BTreeSet;

use crate::Knowledge;
use crate::index::IndexError;
use crate::memory::{EntityId, Memory, MemoryError, merges};
use crate::ports::{ChangeNumber, LoggedChange, LoggedWrite, MemoryItem, WriteFilter, WriteNumber};

/// Changes that are looked at when no cursor says where to begin.
const SCANNED: usize = 5_000;

/// Log entries of memory that are read at a time.
const BATCH: usize = 200;

/// A position in both logs: everything up to it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeCursor {
    /// The last write of notes.
    pub write: WriteNumber,
    /// The last change to memory.
    pub change: ChangeNumber,
}

/// Which changes to return.
#[derive(Debug, Clone)]
pub struct RecentFilter {
    /// Only changes at or after this time, in nanoseconds since 1970.
    pub since_ns: i64,
    /// Only changes after this position.
    pub cursor: Option<ChangeCursor>,
    /// Only changes of these kinds; all if empty.
    pub kinds: Vec<ChangeKind>,
    /// Only changes by clients whose name has this in it, in any case.
    pub by: Option<String>,
    /// Only changes of this entity, of its observations and relations, and of the entities that were merged into it. The whole
    /// log is searched.
    pub entity: Option<EntityId>,
    /// At most so many.
    pub limit: usize,
}

/// The subject of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Notes.
    Note,
    /// An entity.
    Entity,
    /// An observation.
    Observation,
    /// A relation.
    Relation,
}

/// One change.
#[derive(Debug, Clone)]
pub enum RecentChange {
    /// A write of notes.
    Notes(LoggedWrite),
    /// A change to memory.
    Memory(LoggedChange),
}

/// The changes that match.
#[derive(Debug)]
pub struct RecentChanges {
    /// Newest first.
    pub changes: Vec<RecentChange>,
    /// Where to go on, towards newer changes.
    pub cursor: ChangeCursor,
    /// Whether changes that match are left out: older ones without a cursor, newer ones after one.
    pub is_cut: bool,
}

/// Why the logs could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecentError {
    /// That of notes.
    #[error(transparent)]
    Notes(#[from] IndexError),
    /// That of memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl RecentChange {
    fn at_ns(&self) -> i64 {
        match self {
            Self::Notes(write) => write.at_ns,
            Self::Memory(change) => change.author.at_ns,
        }
    }

    fn by(&self) -> &str {
        match self {
            Self::Notes(write) => &write.by,
            Self::Memory(change) => &change.author.client,
        }
    }

    /// The subjects of the change.
    pub fn kinds(&self) -> Vec<ChangeKind> {
        match self {
            Self::Notes(_) => vec![ChangeKind::Note],
            Self::Memory(change) => {
                let items = change.steps.iter().filter_map(|(before, after)| after.as_ref().or(before.as_ref()));
                items.map(ChangeKind::of).collect()
            }
        }
    }

    fn is_wanted(&self, filter: &RecentFilter) -> bool {
        let is_by = |by: &String| self.by().to_lowercase().contains(&by.to_lowercase());
        self.at_ns() >= filter.since_ns
            && filter.by.as_ref().is_none_or(is_by)
            && (filter.kinds.is_empty() || self.kinds().iter().any(|kind| filter.kinds.contains(kind)))
    }
}

impl ChangeKind {
    /// The kind of an item of memory.
    pub fn of(item: &MemoryItem) -> Self {
        match item {
            MemoryItem::Entity(_) => Self::Entity,
            MemoryItem::Observation(_) => Self::Observation,
            MemoryItem::Relation(_) => Self::Relation,
        }
    }
}

impl Knowledge {
    /// The changes to notes and, if given, to memory.
    pub fn recent_changes(&self, memory: Option<&Memory>, filter: &RecentFilter) -> Result<RecentChanges, RecentError> {
        let newest =
            self.vault.writes(&WriteFilter { limit: 1, ..WriteFilter::default() }).map_err(IndexError::from)?;
        let head = ChangeCursor {
            write: newest.first().map_or(WriteNumber(0), |write| write.number),
            change: memory
                .map(|memory| memory.store().head())
                .transpose()
                .map_err(MemoryError::from)?
                .unwrap_or(ChangeNumber(0)),
        };
        // A position beyond the end is one in a log that was deleted since.
        let after = ChangeCursor {
            write: filter
                .cursor
                .map_or(WriteNumber(0), |it| if it.write > head.write { WriteNumber(0) } else { it.write }),
            change: filter
                .cursor
                .map_or(ChangeNumber(0), |it| if it.change.0 > head.change.0 { ChangeNumber(0) } else { it.change }),
        };
        let scanned = if filter.cursor.is_some() { usize::MAX } else { SCANNED };
        let limit = if filter.entity.is_some() { 0 } else { scanned };
        let notes = WriteFilter { after: after.write, since_ns: filter.since_ns, limit, ..WriteFilter::default() };
        let mut notes = self.vault.writes(&notes).map_err(IndexError::from)?;
        notes.reverse();
        let learned = match (memory, filter.entity) {
            (Some(memory), Some(entity)) => {
                let mut about = AboutEntity { memory, entities: BTreeSet::from([entity]) };
                let narrowed = |change: LoggedChange| about.narrowed(change);
                memory_changes(memory, after.change, filter.since_ns, usize::MAX, narrowed)?
            }
            (Some(memory), None) => memory_changes(memory, after.change, filter.since_ns, scanned, |it| Ok(Some(it)))?,
            (None, _) => Vec::new(),
        };
        Ok(selected(merged(notes, learned), filter, after, head))
    }
}

/// The parts of the log that are about an entity.
struct AboutEntity<'m> {
    memory: &'m Memory,
    /// The entity, and those that were merged into it, as far as the log was read.
    entities: BTreeSet<EntityId>,
}

impl AboutEntity<'_> {
    /// A log entry with only the steps about the entity; `None` if there are none. Call it newest first.
    fn narrowed(&mut self, mut change: LoggedChange) -> Result<Option<LoggedChange>, MemoryError> {
        for (from, into) in merges(&change) {
            // After an undone merge the other entity is there again, with its own history.
            if self.entities.contains(&into) && self.memory.store().entities(&[from])?.pop().flatten().is_none() {
                self.entities.insert(from);
            }
        }
        let is_about = |item: &MemoryItem| match item {
            MemoryItem::Entity(entity) => self.entities.contains(&entity.id),
            MemoryItem::Observation(seen) => self.entities.contains(&seen.entity),
            MemoryItem::Relation(relation) => {
                self.entities.contains(&relation.from) || self.entities.contains(&relation.to)
            }
        };
        change.steps.retain(|(before, after)| before.iter().chain(after).any(is_about));
        // What happened to the entity itself tells more than what moved along with it.
        change
            .steps
            .sort_by_key(|(before, after)| !matches!(after.as_ref().or(before.as_ref()), Some(MemoryItem::Entity(_))));
        Ok(Some(change).filter(|change| !change.steps.is_empty()))
    }
}

/// The log entries of memory after a number that are `wanted`, oldest first.
fn memory_changes(
    memory: &Memory,
    after: ChangeNumber,
    since_ns: i64,
    limit: usize,
    mut wanted: impl FnMut(LoggedChange) -> Result<Option<LoggedChange>, MemoryError>,
) -> Result<Vec<LoggedChange>, MemoryError> {
    let mut found: Vec<LoggedChange> = Vec::new();
    let mut before = ChangeNumber(i64::MAX);
    loop {
        let batch = memory.store().log_before(before, BATCH)?;
        let Some(oldest) = batch.last() else { break };
        before = oldest.number;
        let is_last = oldest.number.0 <= after.0 || oldest.author.at_ns < since_ns || found.len() >= limit;
        for change in batch.into_iter().filter(|change| change.number.0 > after.0) {
            found.extend(wanted(change)?);
        }
        if is_last {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// Both logs by time; each keeps its own order.
fn merged(notes: Vec<LoggedWrite>, learned: Vec<LoggedChange>) -> Vec<RecentChange> {
    let (mut notes, mut learned) = (notes.into_iter().peekable(), learned.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let is_note = match (notes.peek(), learned.peek()) {
            (Some(note), Some(change)) => note.at_ns <= change.author.at_ns,
            (note, _) => note.is_some(),
        };
        let next =
            if is_note { notes.next().map(RecentChange::Notes) } else { learned.next().map(RecentChange::Memory) };
        match next {
            Some(next) => all.push(next),
            None => return all,
        }
    }
}

fn selected(all: Vec<RecentChange>, filter: &RecentFilter, after: ChangeCursor, head: ChangeCursor) -> RecentChanges {
    let mut cursor = after;
    let mut changes = Vec::new();
    let mut is_cut = false;
    for change in all {
        let is_wanted = change.is_wanted(filter);
        // After a cursor the oldest changes come first, so that none is skipped.
        if is_wanted && filter.cursor.is_some() && changes.len() == filter.limit {
            is_cut = true;
            break;
        }
        match &change {
            RecentChange::Notes(write) => cursor.write = write.number,
            RecentChange::Memory(change) => cursor.change = change.number,
        }
        if is_wanted {
            changes.push(change);
        }
    }
    changes.reverse();
    if filter.cursor.is_none() {
        is_cut = changes.len() > filter.limit;
        changes.truncate(filter.limit);
    }
    RecentChanges { changes, cursor: if is_cut && filter.cursor.is_some() { cursor } else { head }, is_cut }
}
