//! What changed lately in notes and memory, in one order; also to one entity.

use std::collections::{BTreeSet, VecDeque};

use crate::Knowledge;
use crate::index::IndexError;
use crate::memory::{EntityId, Memory, MemoryError, merges};
use crate::ports::{ChangeNumber, LoggedChange, LoggedWrite, MemoryItem, WriteFilter, WriteNumber};

/// Changes of a log that are looked at when no cursor says where to begin.
const MAX_SCANNED: usize = 100_000;

/// Log entries that are read at a time: few at first, since most calls want the newest ones.
const FIRST_BATCH: usize = 200;
const MAX_BATCH: usize = 10_000;

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
    Note,
    Entity,
    Observation,
    Relation,
}

/// One change.
#[derive(Debug, Clone)]
pub enum RecentChange {
    Notes(LoggedWrite),
    /// A change to memory.
    Memory(LoggedChange),
}

/// The changes that match.
#[derive(Debug)]
pub struct RecentChangePage {
    /// Newest first.
    pub changes: Vec<RecentChange>,
    /// Where to go on, towards newer changes.
    pub cursor: ChangeCursor,
    /// Whether changes that match are left out: older ones without a cursor, newer ones after one.
    pub is_cut: bool,
    /// The time of the oldest change that was looked at, if a log is too long to be searched to its end.
    pub searched_since_ns: Option<i64>,
}

/// Why the logs could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecentError {
    /// The changes of notes could not be read.
    #[error(transparent)]
    Notes(#[from] IndexError),
    /// The changes of memory could not be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl RecentChange {
    /// The write, if it is one of notes.
    pub fn write(&self) -> Option<&LoggedWrite> {
        match self {
            Self::Notes(write) => Some(write),
            Self::Memory(_) => None,
        }
    }

    fn at_ns(&self) -> i64 {
        match self {
            Self::Notes(write) => write.at_ns,
            Self::Memory(change) => change.author.at_ns,
        }
    }

    /// Its number in its log.
    fn number(&self) -> i64 {
        match self {
            Self::Notes(write) => write.number.0,
            Self::Memory(change) => change.number.0,
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
    pub fn recent_changes(
        &self,
        memory: Option<&Memory>,
        filter: &RecentFilter,
    ) -> Result<RecentChangePage, RecentError> {
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
        let notes = if filter.entity.is_some() {
            Scanned::default()
        } else {
            let older_than = |before, limit| {
                let before = WriteNumber(before);
                let filter = WriteFilter {
                    after: after.write,
                    before,
                    since_ns: filter.since_ns,
                    limit,
                    ..WriteFilter::default()
                };
                let writes = self.vault.writes(&filter).map_err(IndexError::from)?;
                Ok(writes.into_iter().map(RecentChange::Notes).collect())
            };
            scan(filter, (after.write.0, MAX_SCANNED), older_than, |it| Ok(Some(it)))?
        };
        let learned = match (memory, filter.entity) {
            (Some(memory), Some(entity)) => {
                let mut about = AboutEntity { memory, entities: BTreeSet::from([entity]) };
                let older_than = |before, limit| changes_before(memory, ChangeNumber(before), limit);
                scan(filter, (after.change.0, usize::MAX), older_than, |it| about.narrowed(it))?
            }
            (Some(memory), None) => {
                let older_than = |before, limit| changes_before(memory, ChangeNumber(before), limit);
                scan(filter, (after.change.0, MAX_SCANNED), older_than, |it| Ok(Some(it)))?
            }
            (None, _) => Scanned::default(),
        };
        let searched_since_ns = notes.since_ns.max(learned.since_ns);
        let (changes, cursor, is_cut) = selected(merged(notes.found, learned.found), filter, after, head);
        Ok(RecentChangePage { changes, cursor, is_cut, searched_since_ns })
    }
}

/// The newest log entries of memory before a number, newest first.
fn changes_before(memory: &Memory, before: ChangeNumber, limit: usize) -> Result<Vec<RecentChange>, RecentError> {
    let changes = memory.store().log_before(before, limit).map_err(MemoryError::from)?;
    Ok(changes.into_iter().map(RecentChange::Memory).collect())
}

/// The parts of the log that are about an entity.
struct AboutEntity<'m> {
    memory: &'m Memory,
    /// The entity, and those that were merged into it, as far as the log was read.
    entities: BTreeSet<EntityId>,
}

impl AboutEntity<'_> {
    /// A log entry with only the steps about the entity; `None` if there are none. Call it newest first.
    fn narrowed(&mut self, change: RecentChange) -> Result<Option<RecentChange>, RecentError> {
        let RecentChange::Memory(mut change) = change else { return Ok(None) };
        for (from, into) in merges(&change) {
            // After an undone merge the other entity is there again, with its own history.
            if self.entities.contains(&into) && self.is_gone(from)? {
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
        Ok(Some(change).filter(|change| !change.steps.is_empty()).map(RecentChange::Memory))
    }

    fn is_gone(&self, entity: EntityId) -> Result<bool, RecentError> {
        let found = self.memory.store().entities(&[entity]).map_err(MemoryError::from)?;
        Ok(found.iter().all(Option::is_none))
    }
}

/// The changes of one log that match.
#[derive(Default)]
struct Scanned {
    /// Oldest first: one more than the limit at most, the newest ones, or after a cursor the oldest ones.
    found: Vec<RecentChange>,
    /// The time of the oldest change that was looked at, if the scan ended at its maximum.
    since_ns: Option<i64>,
}

/// Reads a log from its end until enough changes match, or to the number `after`. Without a cursor it looks at `max_scanned`
/// changes; after a cursor at all, since none may be skipped.
fn scan(
    filter: &RecentFilter,
    (after, max_scanned): (i64, usize),
    older_than: impl Fn(i64, usize) -> Result<Vec<RecentChange>, RecentError>,
    mut narrowed: impl FnMut(RecentChange) -> Result<Option<RecentChange>, RecentError>,
) -> Result<Scanned, RecentError> {
    let mut found: VecDeque<RecentChange> = VecDeque::new();
    let (mut before, mut limit, mut scanned, mut since_ns) = (i64::MAX, FIRST_BATCH, 0, None);
    'log: loop {
        let batch = older_than(before, limit.min(max_scanned))?;
        limit = (limit * 4).min(MAX_BATCH);
        let Some((oldest, at_ns)) = batch.last().map(|oldest| (oldest.number(), oldest.at_ns())) else { break };
        before = oldest;
        scanned += batch.len();
        for change in batch.into_iter().filter(|change| change.number() > after) {
            let Some(change) = narrowed(change)?.filter(|change| change.is_wanted(filter)) else { continue };
            found.push_front(change);
            if found.len() > filter.limit + 1 {
                found.pop_back();
            }
            if found.len() > filter.limit && filter.cursor.is_none() {
                break 'log;
            }
        }
        if oldest <= after || at_ns < filter.since_ns {
            break;
        }
        if scanned >= max_scanned && filter.cursor.is_none() {
            since_ns = Some(at_ns).filter(|_| oldest > 1);
            break;
        }
    }
    Ok(Scanned { found: found.into(), since_ns })
}

/// Both logs by time, oldest first; each keeps its own order.
fn merged(notes: Vec<RecentChange>, learned: Vec<RecentChange>) -> Vec<RecentChange> {
    let (mut notes, mut learned) = (notes.into_iter().peekable(), learned.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let is_note = match (notes.peek(), learned.peek()) {
            (Some(note), Some(change)) => note.at_ns() <= change.at_ns(),
            (note, _) => note.is_some(),
        };
        match if is_note { notes.next() } else { learned.next() } {
            Some(next) => all.push(next),
            None => return all,
        }
    }
}

/// The changes to list, newest first, the cursor after them, and whether others are left out.
fn selected(
    mut all: Vec<RecentChange>,
    filter: &RecentFilter,
    after: ChangeCursor,
    head: ChangeCursor,
) -> (Vec<RecentChange>, ChangeCursor, bool) {
    let is_cut = all.len() > filter.limit;
    let mut cursor = head;
    if is_cut && filter.cursor.is_some() {
        // The oldest ones come first, so that none is skipped.
        all.truncate(filter.limit);
        cursor = after;
        for change in &all {
            match change {
                RecentChange::Notes(write) => cursor.write = write.number,
                RecentChange::Memory(change) => cursor.change = change.number,
            }
        }
    }
    all.reverse();
    all.truncate(filter.limit);
    (all, cursor, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten writes, one a second, by two clients in turn.
    fn scanned(filter: &RecentFilter, after: i64, max_scanned: usize) -> (Vec<i64>, Option<i64>) {
        let write = |number| {
            let by = if number % 2 == 0 { "even" } else { "odd" }.to_owned();
            RecentChange::Notes(LoggedWrite {
                number: WriteNumber(number),
                at_ns: number,
                by,
                files: Vec::new(),
                unlisted: 0,
            })
        };
        let older_than =
            |before: i64, limit| Ok((1..=10).rev().filter(|number| *number < before).take(limit).map(write).collect());
        let scanned = scan(filter, (after, max_scanned), older_than, |it| Ok(Some(it))).unwrap();
        (scanned.found.iter().map(RecentChange::number).collect(), scanned.since_ns)
    }

    #[test]
    fn log_is_searched_until_enough_changes_match_and_its_end_is_reported() {
        let since_ns = i64::MIN;
        let filter = RecentFilter {
            since_ns,
            cursor: None,
            kinds: Vec::new(),
            by: Some("EVEN".to_owned()),
            entity: None,
            limit: 2,
        };
        assert_eq!(scanned(&filter, 0, 4), (vec![8, 10], Some(7)), "the search ended at its maximum");
        assert_eq!(scanned(&filter, 0, 100), (vec![6, 8, 10], None), "one more than the limit is enough");
        assert_eq!(scanned(&RecentFilter { limit: 9, ..filter.clone() }, 0, 100), (vec![2, 4, 6, 8, 10], None));
        assert_eq!(scanned(&RecentFilter { since_ns: 9, limit: 9, ..filter.clone() }, 0, 100).0, [10]);
        // After a cursor none is skipped, however many there are.
        let cursor = Some(ChangeCursor { write: WriteNumber(1), change: ChangeNumber(0) });
        assert_eq!(scanned(&RecentFilter { cursor, ..filter }, 1, 4), (vec![2, 4, 6], None));
    }
}
