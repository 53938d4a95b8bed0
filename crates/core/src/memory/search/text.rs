//! An inverted index over the fields of entities, ranked by BM25. Every field of an entity, and every observation, is a unit
//! that can be replaced or removed.
//!
//! It has no positions: texts are a sentence or two, so words in one text are mostly near each other.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::fields::{MemoryField, MemoryFields};
use super::function_words::{self, is_function_word};
use super::terms::{Counted, count, fields_of, query_words, stem};
use crate::memory::entity_types::EntityTypes;
use crate::memory::model::{Entity, EntityId, Observation, ObservationId};

/// BM25's term saturation and length normalization. Low, since most texts are a sentence or two.
const K1: f32 = 1.2;
const B: f32 = 0.4;

/// The weight of the best single observation, which has the words together.
const TOGETHER: f32 = 0.4;

/// The weight of a word that only starts with the query's word, or is another form of it.
const VARIANT_WEIGHT: f32 = 0.45;

/// Shorter prefixes match too many words.
const MIN_PREFIX_CHARS: usize = 3;
const MAX_VARIANTS: usize = 48;

const FREE: u32 = u32::MAX;

/// The words of all units.
#[derive(Default)]
pub(in crate::memory) struct TextIndex {
    terms: FxHashMap<Arc<str>, u32>,
    sorted: BTreeMap<Arc<str>, u32>,
    postings: Vec<Vec<Posting>>,
    units: Vec<Unit>,
    free_units: Vec<u32>,
    slots: Vec<EntitySlot>,
    free_slots: Vec<u32>,
    slot_of: FxHashMap<EntityId, u32>,
    unit_of: FxHashMap<ObservationId, u32>,
    /// By field, the words in all units in use, and the number of these units.
    lengths: [(u64, u64); 5],
    /// Postings of removed units.
    dead: usize,
    living: usize,
}

#[derive(Clone, Copy)]
struct Posting {
    unit: u32,
    count: u32,
}

struct Unit {
    /// `FREE` when it is not in use.
    slot: u32,
    field: MemoryField,
    length: u32,
    observation: ObservationId,
    terms: u32,
}

#[derive(Default)]
struct EntitySlot {
    entity: Option<EntityId>,
    /// The units of its own fields.
    units: Vec<u32>,
    observations: u32,
}

/// A term that matches a word of a query.
#[derive(Clone, Copy, PartialEq)]
struct WordForm {
    term: u32,
    /// Its weight compared with the word itself.
    weight: f32,
    /// How many units in use have it.
    units: usize,
}

/// An entity with some of the words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EntityTextHit {
    pub(super) entity: EntityId,
    pub(super) score: f32,
    pub(super) fields: MemoryFields,
    /// The observation with the most of them.
    pub(super) best: Option<ObservationId>,
}

impl TextIndex {
    /// Adds or replaces entities.
    pub(super) fn put_entities(&mut self, entities: &[Entity], types: &EntityTypes) {
        let counted: Vec<Vec<(MemoryField, Counted)>> = map_all(entities, |entity| fields_of(entity, types));
        for (entity, fields) in entities.iter().zip(counted) {
            self.drop_fields(entity.id);
            let slot = self.slot(entity.id);
            for (field, words) in fields {
                let unit = self.add(slot, field, ObservationId(0), words);
                self.slots[slot as usize].units.push(unit);
            }
        }
    }

    /// Adds or replaces observations.
    pub(super) fn put_observations(&mut self, observations: &[Observation]) {
        let counted = map_all(observations, |seen: &Observation| count(std::iter::once(&*seen.text)));
        for (observation, words) in observations.iter().zip(counted) {
            self.drop_observation(observation.id);
            let slot = self.slot(observation.entity);
            self.slots[slot as usize].observations += 1;
            let unit = self.add(slot, MemoryField::Observations, observation.id, words);
            self.unit_of.insert(observation.id, unit);
        }
    }

    pub(super) fn drop_entity(&mut self, id: EntityId) {
        self.drop_fields(id);
        self.free_if_empty(id);
    }

    pub(super) fn drop_observation(&mut self, id: ObservationId) {
        let Some(unit) = self.unit_of.remove(&id) else { return };
        let slot = self.units[unit as usize].slot;
        self.slots[slot as usize].observations -= 1;
        self.remove(unit);
        if let Some(entity) = self.slots[slot as usize].entity {
            self.free_if_empty(entity);
        }
    }

    /// Every entity with some word of the query in these fields, in no order.
    pub(super) fn search(&self, query: &str, fields: MemoryFields) -> Vec<EntityTextHit> {
        let mut groups = self.understand(query);
        // Function words find nothing by themselves, but count in texts that other words found.
        groups.sort_by_key(|group| is_weak(group));
        let has_others = groups.first().is_some_and(|group| !is_weak(group));
        let mut scores = vec![0.0_f32; self.slots.len()];
        let mut found_in = vec![MemoryFields::default(); self.slots.len()];
        let mut best_of_group = vec![0.0_f32; self.slots.len()];
        let mut together = vec![0.0_f32; self.units.len()];
        let mut slots: Vec<u32> = Vec::new();
        let mut units: Vec<u32> = Vec::new();
        for group in &groups {
            let mut touched: Vec<u32> = Vec::new();
            let group_rarity = self.rarity(group);
            let finds = !(has_others && is_weak(group));
            for form in group {
                let postings = &self.postings[form.term as usize];
                let rarity = group_rarity * form.weight;
                for posting in postings {
                    let unit = &self.units[posting.unit as usize];
                    if unit.slot == FREE || !fields.has(unit.field) {
                        continue;
                    }
                    let score = rarity * self.saturated(unit, posting.count);
                    let slot = unit.slot as usize;
                    if !finds && found_in[slot].is_empty() {
                        continue;
                    }
                    if best_of_group[slot] == 0.0 {
                        touched.push(unit.slot);
                    }
                    best_of_group[slot] = best_of_group[slot].max(score);
                    if found_in[slot].is_empty() {
                        slots.push(unit.slot);
                    }
                    found_in[slot] = found_in[slot].with(unit.field);
                    if unit.field == MemoryField::Observations {
                        let sum = &mut together[posting.unit as usize];
                        if *sum == 0.0 {
                            units.push(posting.unit);
                        }
                        *sum += score;
                    }
                }
            }
            for slot in touched {
                scores[slot as usize] += std::mem::take(&mut best_of_group[slot as usize]);
            }
        }
        let mut best_units = vec![FREE; self.slots.len()];
        for unit in units {
            let best = &mut best_units[self.units[unit as usize].slot as usize];
            let rank = |unit: u32| (together[unit as usize], Reverse(self.units[unit as usize].observation));
            if *best == FREE || rank(unit) > rank(*best) {
                *best = unit;
            }
        }
        let hit = |slot: u32| {
            let best = Some(best_units[slot as usize]).filter(|unit| *unit != FREE);
            let bonus = best.map_or(0.0, |unit| together[unit as usize] * TOGETHER);
            Some(EntityTextHit {
                entity: self.slots[slot as usize].entity?,
                score: scores[slot as usize] + bonus,
                fields: found_in[slot as usize],
                best: best.map(|unit| self.units[unit as usize].observation),
            })
        };
        slots.into_iter().filter_map(hit).collect()
    }

    /// The observations of these entities that have some word of the query, best first.
    pub(super) fn observations_with(
        &self,
        query: &str,
        entities: &[EntityId],
    ) -> FxHashMap<EntityId, Vec<ObservationId>> {
        let slots: FxHashMap<u32, EntityId> =
            entities.iter().filter_map(|entity| Some((*self.slot_of.get(entity)?, *entity))).collect();
        let mut sums: FxHashMap<u32, f32> = FxHashMap::default();
        for group in self.understand(query) {
            // Function words say nothing about why a text matches.
            if is_weak(&group) {
                continue;
            }
            let rarity = self.rarity(&group);
            for WordForm { term, weight, .. } in group {
                for posting in &self.postings[term as usize] {
                    let unit = &self.units[posting.unit as usize];
                    if unit.field == MemoryField::Observations && slots.contains_key(&unit.slot) {
                        *sums.entry(posting.unit).or_default() += rarity * weight * self.saturated(unit, posting.count);
                    }
                }
            }
        }
        let mut best: Vec<(u32, f32)> = sums.into_iter().collect();
        let observation = |unit: u32| self.units[unit as usize].observation;
        // Ties: newest first.
        best.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| observation(b.0).cmp(&observation(a.0))));
        let mut fitting: FxHashMap<EntityId, Vec<ObservationId>> = FxHashMap::default();
        for (unit, _) in best {
            fitting.entry(slots[&self.units[unit as usize].slot]).or_default().push(observation(unit));
        }
        fitting
    }

    /// For each word of a query, the matching terms that a unit in use has: results must not depend on removed texts.
    fn understand(&self, query: &str) -> Vec<Vec<WordForm>> {
        let mut groups: Vec<Vec<WordForm>> = Vec::new();
        let words = query_words(query);
        // A query of function words alone searches for them.
        let has_others = words.iter().any(|word| !is_function_word(word));
        for text in words {
            let is_weak = has_others && is_function_word(&text);
            let mut group = Vec::new();
            let form = |term: u32, weight: f32| {
                let units = self.living_units(term);
                (units > 0).then_some(WordForm { term, weight, units })
            };
            let exact = self.terms.get(&*text).copied();
            group.extend(exact.and_then(|term| form(term, if is_weak { function_words::WEIGHT } else { 1.0 })));
            let stem = stem(&text);
            if !is_weak && stem.chars().count() >= MIN_PREFIX_CHARS && text.chars().all(char::is_alphanumeric) {
                let kin = self
                    .sorted
                    .range::<str, _>((Bound::Included(stem), Bound::Unbounded))
                    .take_while(|(term, _)| term.starts_with(stem));
                let kin = kin.map(|(_, term)| *term).filter(|term| Some(*term) != exact);
                group.extend(kin.filter_map(|term| form(term, VARIANT_WEIGHT)).take(MAX_VARIANTS));
            }
            if !group.is_empty() && !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// How many units in use have a term.
    fn living_units(&self, term: u32) -> usize {
        let postings = &self.postings[term as usize];
        if self.dead == 0 {
            return postings.len();
        }
        postings.iter().filter(|posting| self.units[posting.unit as usize].slot != FREE).count()
    }

    /// The rarity of all forms of a word together, else `the` would have the rarity of `theatre`.
    fn rarity(&self, group: &[WordForm]) -> f32 {
        let occurrences: usize = group.iter().map(|form| form.units).sum();
        let all = self.lengths.iter().map(|(_, units)| units).sum::<u64>() as f32;
        let with = (occurrences as f32).min(all);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    fn saturated(&self, unit: &Unit, count: u32) -> f32 {
        let (words, units) = self.lengths[unit.field as usize];
        let average = words as f32 / units.max(1) as f32;
        let count = count as f32;
        let length = 1.0 - B + B * unit.length as f32 / average.max(1.0);
        unit.field.weight() * count * (K1 + 1.0) / (count + K1 * length)
    }

    fn slot(&mut self, entity: EntityId) -> u32 {
        if let Some(slot) = self.slot_of.get(&entity) {
            return *slot;
        }
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(EntitySlot::default());
            number(self.slots.len() - 1)
        });
        self.slots[slot as usize].entity = Some(entity);
        self.slot_of.insert(entity, slot);
        slot
    }

    fn free_if_empty(&mut self, entity: EntityId) {
        let Some(&slot) = self.slot_of.get(&entity) else { return };
        let kept = &mut self.slots[slot as usize];
        if kept.units.is_empty() && kept.observations == 0 {
            kept.entity = None;
            self.slot_of.remove(&entity);
            self.free_slots.push(slot);
        }
    }

    fn drop_fields(&mut self, entity: EntityId) {
        let Some(&slot) = self.slot_of.get(&entity) else { return };
        for unit in std::mem::take(&mut self.slots[slot as usize].units) {
            self.remove(unit);
        }
    }

    fn add(&mut self, slot: u32, field: MemoryField, observation: ObservationId, words: Counted) -> u32 {
        let length: u32 = words.iter().map(|(_, count)| count).sum();
        let entry = Unit { slot, field, length, observation, terms: number(words.len()) };
        let unit = match self.free_units.pop() {
            Some(unit) => {
                self.units[unit as usize] = entry;
                unit
            }
            None => {
                self.units.push(entry);
                number(self.units.len() - 1)
            }
        };
        let (sum, units) = &mut self.lengths[field as usize];
        (*sum, *units) = (*sum + u64::from(length), *units + 1);
        self.living += words.len();
        for (word, count) in words {
            let term = self.term(word);
            self.postings[term as usize].push(Posting { unit, count });
        }
        unit
    }

    fn term(&mut self, word: String) -> u32 {
        if let Some(term) = self.terms.get(word.as_str()) {
            return *term;
        }
        let (word, term): (Arc<str>, u32) = (word.into(), number(self.postings.len()));
        self.postings.push(Vec::new());
        self.terms.insert(word.clone(), term);
        self.sorted.insert(word, term);
        term
    }

    fn remove(&mut self, unit: u32) {
        let entry = &mut self.units[unit as usize];
        entry.slot = FREE;
        let (sum, units) = &mut self.lengths[entry.field as usize];
        (*sum, *units) = (*sum - u64::from(entry.length), *units - 1);
        self.dead += entry.terms as usize;
        self.living -= entry.terms as usize;
        if self.dead > self.living + 10_000 {
            self.sweep();
        }
    }

    /// Removes the postings of removed units; only then may their numbers be reused.
    fn sweep(&mut self) {
        let units = &self.units;
        self.postings.par_iter_mut().for_each(|list| list.retain(|posting| units[posting.unit as usize].slot != FREE));
        let gone = self.units.iter().enumerate().filter(|(_, unit)| unit.slot == FREE);
        self.free_units = gone.map(|(unit, _)| number(unit)).collect();
        self.dead = 0;
    }
}

/// Whether a word of a query is a function word.
fn is_weak(group: &[WordForm]) -> bool {
    group.iter().all(|form| form.weight <= function_words::WEIGHT)
}

/// Maps all items, in parallel where there are enough: for a few, scheduling costs more than the work.
fn map_all<T: Sync, U: Send>(items: &[T], map: impl Fn(&T) -> U + Sync + Send) -> Vec<U> {
    const ENOUGH: usize = 128;
    if items.len() < ENOUGH { items.iter().map(map).collect() } else { items.par_iter().map(map).collect() }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than four thousand million words fit into memory")
}

#[cfg(test)]
mod tests;
