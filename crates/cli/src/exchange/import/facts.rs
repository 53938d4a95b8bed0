//! Imported observations and relations, and the changes of an import.

use std::collections::HashMap;

use quipu_core::model::VaultPath;
use quipu_core::ports::{EntityRef, MemoryChange, RelationFilter};

use super::super::record::RecordOrigin;
use super::{ImportError, Importer, RefKey, key};

/// The greatest id that is kept: every JSON reader represents it exactly, and later ids can follow it.
const MAX_ID: i64 = 1 << 53;

impl Importer<'_> {
    pub(super) fn observe(&mut self, place: EntityRef, text: &str, origin: RecordOrigin) -> Result<(), ImportError> {
        let (text, key) = (text.trim().to_owned(), key(place));
        if let RefKey::Id(id) = key
            && !self.texts.contains_key(&key)
        {
            let mut there: HashMap<String, usize> = HashMap::new();
            for seen in self.store.observations_of(&[id])?.pop().unwrap_or_default() {
                *there.entry(seen.text).or_default() += 1;
            }
            self.texts.insert(key, there);
        }
        let there = self.texts.entry(key).or_default();
        let unmatched = self.unmatched.entry(key).or_insert_with(|| there.clone());
        if let Some(left) = unmatched.get_mut(&text).filter(|left| **left > 0) {
            *left -= 1;
            self.imported.known += 1;
            return Ok(());
        }
        *there.entry(text.clone()).or_default() += 1;
        self.push(MemoryChange::AddObservation { entity: place, text }, origin);
        self.imported.observations += 1;
        Ok(())
    }

    pub(super) fn relate(
        &mut self,
        from: EntityRef,
        to: EntityRef,
        relation_type: &str,
        origin: RecordOrigin,
    ) -> Result<(), ImportError> {
        let key = (key(from), key(to), relation_type.to_owned());
        let is_there = match (from, to) {
            (EntityRef::Id(from), EntityRef::Id(to)) => {
                let filter =
                    RelationFilter { from: Some(from), to: Some(to), relation_type: Some(relation_type.to_owned()) };
                !self.store.relations_where(&filter, 0, 1)?.is_empty()
            }
            _ => false,
        };
        if is_there || !self.related.insert(key) {
            self.imported.known += 1;
            return Ok(());
        }
        self.push(MemoryChange::AddRelation { from, to, relation_type: relation_type.to_owned() }, origin);
        self.imported.relations += 1;
        Ok(())
    }

    /// Adds a change with the id, times and ties of its item in the file; returns its index.
    pub(super) fn push(&mut self, change: MemoryChange, origin: RecordOrigin) -> usize {
        let made = self.changes.len();
        self.changes.push(change);
        self.numbers.push((made, origin.id));
        if let Some((created_ns, updated_ns)) = origin.times {
            self.changes.push(MemoryChange::SetTimes { made, created_ns, updated_ns });
        }
        self.tie(made, origin.ties);
        made
    }

    /// Ties links of the item at an index of the changes. A tie to a missing note has no effect until the note exists.
    pub(super) fn tie(&mut self, made: usize, ties: Vec<(String, VaultPath)>) {
        let ties = ties.into_iter().map(|(target, path)| MemoryChange::Tie { made, target, path });
        self.changes.extend(ties);
    }

    /// Keeps the ids of the file if all of them are valid here: a mixture of old and new ids would be useless.
    pub(super) fn keep_ids(&mut self) {
        let mut greatest = [0; 3];
        let can_be_kept = self.numbers.iter().all(|(place, number)| {
            let last = match self.changes[*place] {
                MemoryChange::CreateEntity(_) => &mut greatest[0],
                MemoryChange::AddObservation { .. } => &mut greatest[1],
                _ => &mut greatest[2],
            };
            let grows = number.is_some_and(|number| *last < number && number <= MAX_ID);
            *last = number.unwrap_or_default();
            grows
        });
        if !can_be_kept {
            return;
        }
        for (place, number) in &self.numbers {
            let change = &mut self.changes[*place];
            if let Some(number) = *number {
                *change = MemoryChange::Numbered { number, change: Box::new(change.clone()) };
            }
        }
    }
}
