//! The values of one field in all notes: each different value once, in order, and for each note the numbers of its values.
//!
//! So the values that pass a condition are a few ranges of numbers, and sorting and grouping compare numbers. A column is built at
//! the first question about its field. The next snapshot takes it over and replaces the changed notes' values.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::Snapshot;
use crate::model::{NoteKey, Value};

use super::field::Field;
use super::scalar::{Scalar, ScalarKind, Span};

/// Columns kept for one snapshot. A vault has a few dozen properties; names that clients make up must not fill the memory.
const MAX_COLUMNS: usize = 64;

/// Changed notes beyond which a column is rebuilt.
const MANY_CHANGED: usize = 1_000;

/// The values of a field.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    /// In order. After changes some may be in no note.
    values: Vec<Arc<ColumnValue>>,
    /// By slot.
    cells: Vec<Cell>,
    /// Nanoseconds of the longest time: those that overlap a period start at most so long before it.
    longest: i64,
}

/// One of the different values of a field.
#[derive(Debug, Clone)]
struct ColumnValue {
    scalar: Scalar,
    /// As first written, where the scalar does not show it.
    written: Option<Value>,
}

/// The numbers of a note's values, in its own order.
#[derive(Debug, Clone, Default)]
enum Cell {
    #[default]
    None,
    One(u32),
    Many(Box<[u32]>),
}

impl Cell {
    fn new(numbers: &[u32]) -> Self {
        match numbers {
            [] => Self::None,
            [one] => Self::One(*one),
            many => Self::Many(many.into()),
        }
    }

    fn numbers(&self) -> &[u32] {
        match self {
            Self::None => &[],
            Self::One(number) => std::slice::from_ref(number),
            Self::Many(numbers) => numbers,
        }
    }

    fn numbers_mut(&mut self) -> &mut [u32] {
        match self {
            Self::None => &mut [],
            Self::One(number) => std::slice::from_mut(number),
            Self::Many(numbers) => numbers,
        }
    }
}

/// Values of one note up to which they are compared one by one.
const FEW_VALUES: usize = 32;

/// The different numbers of one note's values, as they come.
#[derive(Default)]
struct NoteNumbers {
    numbers: Vec<u32>,
    /// The numbers as a set, once there are more than a few.
    known: FxHashSet<u32>,
}

impl NoteNumbers {
    fn add(&mut self, number: u32) {
        let is_new = if self.numbers.len() < FEW_VALUES {
            !self.numbers.contains(&number)
        } else {
            if self.known.is_empty() {
                self.known.extend(&self.numbers);
            }
            self.known.insert(number)
        };
        if is_new {
            self.numbers.push(number);
        }
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.known.clear();
    }
}

impl Column {
    fn new(field: &Field, snapshot: &Snapshot) -> Self {
        let all: Vec<NoteKey> = snapshot.files().collect();
        Self::default().with(field, snapshot, &all)
    }

    /// With the present values of some notes.
    fn with(&self, field: &Field, snapshot: &Snapshot, changed: &[NoteKey]) -> Self {
        let mut added: BTreeMap<Scalar, (u32, Option<Value>)> = BTreeMap::new();
        let mut next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let mut cells = self.cells.clone();
        cells.resize_with(snapshot.slots(), Cell::default);
        let mut numbers = NoteNumbers::default();
        for key in changed {
            numbers.clear();
            if snapshot.get(*key).is_some() {
                field.scalars(snapshot, *key, &mut |scalar, written| {
                    let number = self.find(&scalar).unwrap_or_else(|| {
                        let entry = added.entry(scalar).or_insert_with(|| {
                            next += 1;
                            (next - 1, written.cloned())
                        });
                        entry.0
                    });
                    numbers.add(number);
                });
            }
            cells[key.slot()] = Cell::new(&numbers.numbers);
        }
        self.merged(added, cells)
    }

    fn find(&self, scalar: &Scalar) -> Option<u32> {
        let at = self.values.binary_search_by(|value| value.scalar.cmp(scalar)).ok()?;
        u32::try_from(at).ok()
    }

    /// Puts added values, which have numbers behind all others, into order.
    fn merged(&self, added: BTreeMap<Scalar, (u32, Option<Value>)>, mut cells: Vec<Cell>) -> Self {
        if added.is_empty() {
            return Self { values: self.values.clone(), cells, longest: self.longest };
        }
        let lengths = added.keys().map(|scalar| match scalar {
            Scalar::Time(span) => span.end.saturating_sub(span.start),
            _ => 0,
        });
        let longest = lengths.fold(self.longest, i64::max);
        let mut places = vec![0_u32; self.values.len() + added.len()];
        let mut values = Vec::with_capacity(places.len());
        let mut old = (0_u32..).zip(&self.values).peekable();
        let mut place = |values: &mut Vec<Arc<ColumnValue>>, number: u32, value: Arc<ColumnValue>| {
            places[number as usize] = u32::try_from(values.len()).unwrap_or(u32::MAX);
            values.push(value);
        };
        for (scalar, (number, written)) in added {
            while let Some((before, value)) = old.next_if(|(_, value)| value.scalar < scalar) {
                place(&mut values, before, value.clone());
            }
            place(&mut values, number, Arc::new(ColumnValue { scalar, written }));
        }
        for (number, value) in old {
            place(&mut values, number, value.clone());
        }
        for number in cells.iter_mut().flat_map(Cell::numbers_mut) {
            *number = places[*number as usize];
        }
        Self { values, cells, longest }
    }

    #[cfg(test)]
    pub(super) fn with_values(&self, scalars: Vec<Scalar>) -> Self {
        let new: std::collections::BTreeSet<Scalar> =
            scalars.into_iter().filter(|scalar| self.find(scalar).is_none()).collect();
        let numbers = u32::try_from(self.values.len()).expect("a test has few values")..;
        let added = new.into_iter().zip(numbers).map(|(scalar, number)| (scalar, (number, None))).collect();
        self.merged(added, self.cells.clone())
    }

    /// The numbers of a note's values.
    pub(super) fn of(&self, key: NoteKey) -> &[u32] {
        self.cells.get(key.slot()).map_or(&[], Cell::numbers)
    }

    /// How many different values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no note has a value.
    pub(super) fn is_unused(&self) -> bool {
        self.cells.iter().all(|cell| matches!(cell, Cell::None))
    }

    /// The text of a value.
    pub(super) fn text(&self, number: usize) -> Option<&str> {
        match &self.values[number].scalar {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of the first value that is not before a place in the order.
    fn first(&self, is_before: impl Fn(&Scalar) -> bool) -> usize {
        self.values.partition_point(|value| is_before(&value.scalar))
    }

    /// The values from one to another, both included; for few values, which are counted and not searched for a second time.
    pub(super) fn between(&self, least: &Scalar, most: &Scalar) -> Range<usize> {
        let start = self.first(|scalar| scalar < least);
        start..start + self.values[start..].iter().take_while(|value| value.scalar <= *most).count()
    }

    /// The values of a kind.
    pub(super) fn of_kind(&self, kind: ScalarKind) -> Range<usize> {
        self.first(|scalar| scalar.kind() < kind)..self.first(|scalar| scalar.kind() <= kind)
    }

    /// The texts that start with this one.
    pub(super) fn starting_with(&self, start: &str) -> Range<usize> {
        let is_before = |scalar: &Scalar| match scalar {
            Scalar::Text(text) => text.as_str() < start,
            other => other.kind() < ScalarKind::Text,
        };
        let goes_on = |scalar: &Scalar| matches!(scalar, Scalar::Text(text) if text.starts_with(start));
        self.first(is_before)..self.first(|scalar| is_before(scalar) || goes_on(scalar))
    }

    /// The times that start in a period.
    pub(super) fn starting_in(&self, period: Span) -> Range<usize> {
        let from = |start| self.first(|scalar| *scalar < Scalar::Time(Span { start, end: i64::MIN }));
        from(period.start)..from(period.end)
    }

    /// The times that overlap a period.
    pub(super) fn overlapping(&self, period: Span) -> Vec<Range<usize>> {
        let starting = self.starting_in(period);
        let reaches_in = |at: &usize| matches!(self.values[*at].scalar, Scalar::Time(span) if period.start < span.end);
        let before = Span { start: period.start.saturating_sub(self.longest), end: period.start };
        self.starting_in(before).filter(reaches_in).map(|at| at..at + 1).chain([starting]).collect()
    }

    /// A value as it is shown in a list of groups.
    pub(super) fn shown(&self, number: usize) -> Value {
        let value = &self.values[number];
        match (&value.written, &value.scalar) {
            (Some(written), _) => written.clone(),
            (None, Scalar::Bool(flag)) => Value::Bool(*flag),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the guard leaves whole numbers that i64 holds exactly"
            )]
            (None, Scalar::Number(number)) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Value::Int(*number as i64)
            }
            (None, Scalar::Number(number)) => Value::Float(*number),
            (None, Scalar::Time(span)) => Value::Text(span.day()),
            (None, Scalar::Text(text)) => Value::Text(text.clone()),
            (None, Scalar::Map) => Value::Text("{…}".to_owned()),
        }
    }
}

/// The columns of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct Columns(Mutex<FxHashMap<Field, KeptColumn>>);

#[derive(Debug, Clone)]
struct KeptColumn {
    column: Arc<Column>,
    /// Notes whose values may have changed since the column was built.
    changed: Vec<NoteKey>,
}

impl Columns {
    /// The columns for the snapshot after a change; `changed` are the notes of which some field may differ.
    pub(crate) fn after(&self, changed: &[NoteKey]) -> Self {
        let mut kept = self.0.lock().clone();
        kept.retain(|_, kept| {
            kept.changed.extend(changed);
            kept.changed.sort_unstable();
            kept.changed.dedup();
            kept.changed.len() <= MANY_CHANGED && kept.column.values.len() <= 2 * kept.column.cells.len() + MANY_CHANGED
        });
        Self(Mutex::new(kept))
    }

    /// The column of a field in the snapshot that has these columns.
    pub(super) fn get(&self, field: &Field, snapshot: &Snapshot) -> Arc<Column> {
        let kept = self.0.lock().get(field).cloned();
        let column = match kept {
            Some(KeptColumn { column, changed }) if changed.is_empty() => return column,
            Some(KeptColumn { column, changed }) => column.with(field, snapshot, &changed),
            None => Column::new(field, snapshot),
        };
        let column = Arc::new(column);
        let mut columns = self.0.lock();
        if columns.len() >= MAX_COLUMNS && !columns.contains_key(field) {
            columns.clear();
        }
        columns.insert(field.clone(), KeptColumn { column: column.clone(), changed: Vec::new() });
        column
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn different_values_of_a_note_are_kept_in_its_order() {
        let mut numbers = NoteNumbers::default();
        for count in [5, 32, 33, 100] {
            let own: Vec<u32> = (0..count).rev().collect();
            own.iter().chain(&own).for_each(|number| numbers.add(*number));
            assert_eq!(numbers.numbers, own);
            numbers.clear();
        }
    }

    #[test]
    fn time_for_a_note_of_many_values_is_linear() {
        let (mut numbers, started) = (NoteNumbers::default(), Instant::now());
        (0..400_000).for_each(|number| numbers.add(number));
        assert_eq!(numbers.numbers.len(), 400_000);
        // Minutes if each is compared with all.
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
}
