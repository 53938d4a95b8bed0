//! The observations and relations of a file, and the changes that an import makes.

use std::collections::HashMap;

use quipu_core::model::VaultPath;
use quipu_core::ports::{EntityRef, MemoryChange, RelationFilter};

use super::super::record::Origin;
use super::{Import, ImportError, RefKey, key};

/// The greatest number that is kept: every reader of JSON knows it exactly, and counting can go on from there.
const GREATEST_KEPT: i64 = 1 << 53;

impl Import<'_> {
    pub(super) fn observe(&mut self, place: EntityRef, text: &str, origin: Origin) -> Result<(), ImportError> {
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
        origin: Origin,
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

    /// Adds a change, and what its thing was where the file comes from; returns its place.
    pub(super) fn push(&mut self, change: MemoryChange, origin: Origin) -> usize {
        let made = self.changes.len();
        self.changes.push(change);
        self.numbers.push((made, origin.id));
        if let Some((created_ns, updated_ns)) = origin.times {
            self.changes.push(MemoryChange::SetTimes { made, created_ns, updated_ns });
        }
        self.tie(made, origin.ties);
        made
    }

    /// Ties links of what is at a place of the changes. A tie to a note that is not here counts for nothing until it is.
    pub(super) fn tie(&mut self, made: usize, ties: Vec<(String, VaultPath)>) {
        let ties = ties.into_iter().map(|(target, path)| MemoryChange::Tie { made, target, path });
        self.changes.extend(ties);
    }

    /// Has everything made under the number it has in the file, if those can be numbers here: all or none, since a mixture
    /// would say nothing to anyone.
    pub(super) fn keep_numbers(&mut self) {
        let mut greatest = [0; 3];
        let can_be_kept = self.numbers.iter().all(|(place, number)| {
            let last = match self.changes[*place] {
                MemoryChange::CreateEntity(_) => &mut greatest[0],
                MemoryChange::AddObservation { .. } => &mut greatest[1],
                _ => &mut greatest[2],
            };
            let grows = number.is_some_and(|number| *last < number && number <= GREATEST_KEPT);
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
