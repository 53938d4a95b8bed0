//! Queries over the metadata of all notes: conditions, order, and groups with counts. In memory; no file is read.
//!
//! Text is compared without regard to case, numbers as numbers, ISO dates as dates. A list matches by any of its items.

mod column;
mod condition;
mod field;
mod scalar;

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

pub(crate) use column::Columns;
pub use condition::{Condition, ConditionError, Operator};
pub use field::{Field, FieldValue};
pub use scalar::start_of_period;

use crate::index::Snapshot;
use crate::model::{NoteKey, Value, fold};
use column::Column;
use condition::Test;

/// A query for notes.
#[derive(Debug, Clone, Default)]
pub struct NoteQuery {
    /// All of these hold.
    pub all: Vec<Condition>,
    /// One of these holds, if there are any.
    pub any: Vec<Condition>,
}

/// A field to sort by.
#[derive(Debug, Clone)]
pub struct SortKey {
    pub field: Field,
    /// Whether the largest comes first. Notes without a value come last either way.
    pub descending: bool,
}

/// A value of a field, and the notes that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// `None` for the notes without a value.
    pub value: Option<Value>,
    /// How many notes.
    pub count: usize,
}

/// A condition with what it needs of one snapshot.
enum Prepared {
    /// Whether each value of the column passes.
    Values {
        column: std::sync::Arc<Column>,
        passing: Vec<bool>,
        negated: bool,
    },
    Notes {
        linked: FxHashSet<NoteKey>,
        negated: bool,
    },
}

impl Prepared {
    fn new(snapshot: &Snapshot, condition: &Condition) -> Self {
        let column = || snapshot.columns().get(&condition.field, snapshot);
        match &condition.test {
            Test::Notes { names, negated } => {
                Self::Notes { linked: linked(snapshot, &condition.field, names), negated: *negated }
            }
            Test::Values { passes, negated } => {
                let column = column();
                let mut passing = vec![false; column.len()];
                passes.passing(&column).into_iter().for_each(|range| passing[range].fill(true));
                Self::Values { column, passing, negated: *negated }
            }
            exists => {
                let column = column();
                let passing = vec![true; column.len()];
                Self::Values { column, passing, negated: matches!(exists, Test::Missing) }
            }
        }
    }

    fn holds(&self, key: NoteKey) -> bool {
        match self {
            Self::Values { column, passing, negated } => {
                column.of(key).iter().any(|number| passing[*number as usize]) != *negated
            }
            Self::Notes { linked, negated } => linked.contains(&key) != *negated,
        }
    }
}

/// The notes that link to one of the named notes, or that one of them links to. A name that no note has still finds the
/// broken links to it.
fn linked(snapshot: &Snapshot, field: &Field, names: &[String]) -> FxHashSet<NoteKey> {
    let mut found = FxHashSet::default();
    let mut unknown: FxHashSet<String> = FxHashSet::default();
    for name in names {
        let notes = snapshot.called(name);
        for key in &notes {
            match field {
                Field::LinkedFrom => found.extend(snapshot.graph().out(*key)),
                _ => found.extend(snapshot.graph().incoming(*key).iter()),
            }
        }
        if notes.is_empty() && *field == Field::LinksTo {
            unknown.insert(fold(name));
        }
    }
    if !unknown.is_empty() {
        let has_target = |key: &NoteKey| snapshot.broken_links(*key).any(|link| unknown.contains(&fold(&link.target)));
        found.extend(snapshot.files().filter(has_target));
    }
    found
}

impl Snapshot {
    /// The notes that a client means by an id, a path, or a title, alias or file stem.
    pub fn called(&self, name: &str) -> Vec<NoteKey> {
        let found = self.lookup(name);
        if found.is_empty() { self.named(name) } else { found }
    }

    /// The notes that a query finds, by id.
    pub fn query(&self, query: &NoteQuery) -> Vec<NoteKey> {
        let prepare = |conditions: &[Condition]| -> Vec<Prepared> {
            conditions.iter().map(|condition| Prepared::new(self, condition)).collect()
        };
        let (all, any) = (prepare(&query.all), prepare(&query.any));
        let holds = |key: &NoteKey| {
            all.iter().all(|condition| condition.holds(*key))
                && (any.is_empty() || any.iter().any(|condition| condition.holds(*key)))
        };
        self.files().filter(holds).collect()
    }

    /// Whether some note has the property or path of this field, with a value or without; true of every other field.
    pub fn has_property(&self, field: &Field) -> bool {
        let Field::Property(name) = field else { return true };
        let has_it = |key| !field::properties(self.note(key), name).is_empty();
        !self.columns().get(field, self).is_unused() || self.files().any(has_it)
    }

    /// The first notes in an order; ties stay by id. `found` is by id.
    pub fn sorted(&self, found: Vec<NoteKey>, sort: &[SortKey], limit: usize) -> Vec<NoteKey> {
        let columns: Vec<_> = sort.iter().map(|key| (self.columns().get(&key.field, self), key.descending)).collect();
        let rank = |key: NoteKey, (column, descending): &(std::sync::Arc<Column>, bool)| match column.of(key).first() {
            Some(number) if *descending => (false, Reverse(*number), 0),
            Some(number) => (false, Reverse(0), *number),
            None => (true, Reverse(0), 0),
        };
        let by_rank = |a: &(usize, NoteKey), b: &(usize, NoteKey)| {
            let ranks = columns.iter().map(|column| rank(a.1, column).cmp(&rank(b.1, column)));
            ranks.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(a.0.cmp(&b.0))
        };
        let mut placed: Vec<(usize, NoteKey)> = found.into_iter().enumerate().collect();
        if !columns.is_empty() {
            if limit < placed.len() {
                placed.select_nth_unstable_by(limit, by_rank);
                placed.truncate(limit);
            }
            placed.sort_unstable_by(by_rank);
        }
        placed.truncate(limit);
        placed.into_iter().map(|(_, key)| key).collect()
    }

    /// The values of a field in some notes with how many have each, most first; last the notes without one. Times are
    /// grouped by day.
    pub fn groups(&self, found: &[NoteKey], field: &Field) -> Vec<Group> {
        let column = self.columns().get(field, self);
        let mut counts = vec![0_usize; column.len()];
        let mut without = 0;
        for key in found {
            let numbers = column.of(*key);
            without += usize::from(numbers.is_empty());
            for number in numbers {
                counts[*number as usize] += 1;
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for (number, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let value = Some(column.shown(number));
            match groups.last_mut() {
                // Several times of one day.
                Some(last) if last.value == value => last.count += count,
                _ => groups.push(Group { value, count }),
            }
        }
        // Stable: equal counts stay in the order of values.
        groups.sort_by_key(|group| Reverse(group.count));
        groups.extend((without > 0).then_some(Group { value: None, count: without }));
        groups
    }
}
