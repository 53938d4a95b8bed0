//! Similar names, found by shared trigrams. These are candidates; the duplicate rule decides.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::memory::model::{Entity, EntityId, name_key};
use crate::memory::names::{NameComparison, NameWords, compare, tells_apart};
use crate::search::words::unaccented;

/// Names compared for one query. Trigrams that bring more are too common to tell anything.
const MAX_COMPARED: usize = 4000;

/// Only names that share a trigram of at most this many names are paired.
const RARE: usize = 48;

/// Every name and alias, by trigrams.
#[derive(Default, Clone)]
pub(in crate::memory) struct NameIndex {
    labels: Vec<Label>,
    free: Vec<u32>,
    of: FxHashMap<EntityId, Vec<u32>>,
    postings: FxHashMap<[char; 3], Vec<u32>>,
}

#[derive(Clone)]
struct Label {
    entity: Option<EntityId>,
    name: Box<str>,
    trigrams: Vec<[char; 3]>,
}

impl NameIndex {
    pub(super) fn put(&mut self, entity: &Entity) {
        self.drop(entity.id);
        let mut labels = Vec::with_capacity(1 + entity.aliases.len());
        for name in [&entity.name].into_iter().chain(&entity.aliases) {
            let trigrams = trigrams(name);
            let label = self.free.pop().unwrap_or_else(|| {
                self.labels.push(Label { entity: None, name: Box::default(), trigrams: Vec::new() });
                u32::try_from(self.labels.len() - 1).expect("fewer than four thousand million names fit into memory")
            });
            for trigram in &trigrams {
                self.postings.entry(*trigram).or_default().push(label);
            }
            self.labels[label as usize] = Label { entity: Some(entity.id), name: name.as_str().into(), trigrams };
            labels.push(label);
        }
        self.of.insert(entity.id, labels);
    }

    pub(super) fn drop(&mut self, entity: EntityId) {
        for label in self.of.remove(&entity).unwrap_or_default() {
            let gone = &mut self.labels[label as usize];
            gone.entity = None;
            for trigram in std::mem::take(&mut gone.trigrams) {
                if let Some(list) = self.postings.get_mut(&trigram) {
                    list.retain(|other| *other != label);
                }
            }
            self.free.push(label);
        }
    }

    /// The `limit` entities with the most similar names, best first, with the cosine of the trigrams.
    pub(in crate::memory) fn like(&self, name: &str, at_least: f32, limit: usize) -> Vec<(EntityId, f32)> {
        let wanted = trigrams(name);
        // A name this similar shares one of the rarest trigrams, so the common ones need not be looked up.
        let mut lists: Vec<&[u32]> =
            wanted.iter().map(|trigram| self.postings.get(trigram).map_or(&[][..], Vec::as_slice)).collect();
        lists.sort_unstable_by_key(|list| list.len());
        let shared_at_least = (wanted.len() as f32 * at_least * at_least).ceil() as usize;
        let rarest = lists.iter().take(lists.len() + 1 - shared_at_least.clamp(1, lists.len().max(1)));
        let mut candidates: FxHashSet<u32> = FxHashSet::default();
        for list in rarest {
            if candidates.len() + list.len() > MAX_COMPARED && !candidates.is_empty() {
                break;
            }
            candidates.extend(*list);
        }
        let mut best: FxHashMap<EntityId, f32> = FxHashMap::default();
        for label in candidates {
            let Label { entity: Some(entity), trigrams, .. } = &self.labels[label as usize] else { continue };
            let cosine = cosine(&wanted, trigrams);
            if cosine >= at_least {
                let known = best.entry(*entity).or_insert(cosine);
                *known = known.max(cosine);
            }
        }
        let mut best: Vec<(EntityId, f32)> = best.into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        best.truncate(limit);
        best
    }
}

impl NameIndex {
    /// Pairs of entities with names at least this similar, or that count as the same, each pair once: the lower id, the higher,
    /// the comparison of the names, and the cosine of the trigrams. Names that differ for certain are left out.
    ///
    /// Only rare trigrams make pairs, so the cost is about linear in the number of names.
    pub(in crate::memory) fn pairs(&self, at_least: f32) -> Vec<(EntityId, EntityId, NameComparison, f32)> {
        let look = |place: usize| {
            let label = &self.labels[place];
            let rare = label.trigrams.iter().filter_map(|trigram| self.postings.get(trigram));
            let rare = rare.filter(|list| list.len() <= RARE);
            let mut others: Vec<u32> = rare.flatten().copied().filter(|other| (*other as usize) > place).collect();
            others.sort_unstable();
            others.dedup();
            let pair = move |other: u32| {
                let other = &self.labels[other as usize];
                let (a, b) = (label.entity?, other.entity?);
                let alike = cosine(&label.trigrams, &other.trigrams);
                if a == b || alike < at_least {
                    return None;
                }
                if tells_apart(&label.name, &other.name) {
                    return None;
                }
                Some((a.min(b), a.max(b), compare(&label.name, &other.name), alike))
            };
            others.into_iter().filter_map(pair)
        };
        let living = (0..self.labels.len()).into_par_iter().filter(|place| self.labels[*place].entity.is_some());
        living.flat_map_iter(look).collect()
    }
}

/// The names of one entity, ready to be compared with those of many.
pub(in crate::memory) struct EntityNames<'a> {
    words: NameWords,
    /// Its name and its aliases.
    labels: Vec<&'a Label>,
}

impl NameIndex {
    /// What an entity is called; `None` where it is gone.
    pub(in crate::memory) fn names_of(&self, entity: EntityId) -> Option<EntityNames<'_>> {
        let labels: Vec<&Label> = self.of.get(&entity)?.iter().map(|label| &self.labels[*label as usize]).collect();
        Some(EntityNames { words: NameWords::of(&labels.first()?.name), labels })
    }
}

impl EntityNames<'_> {
    /// Whether the names of two entities say that they are different things. A name or alias that both have says otherwise.
    pub(in crate::memory) fn tell_apart(&self, other: &Self) -> bool {
        // What is the same has the same trigrams, and these are at hand.
        let is_shared = |a: &Label, b: &Label| a.trigrams == b.trigrams && name_key(&a.name) == name_key(&b.name);
        self.words.tell_apart(&other.words) && !self.labels.iter().any(|a| other.labels.iter().any(|b| is_shared(a, b)))
    }
}

fn cosine(a: &[[char; 3]], b: &[[char; 3]]) -> f32 {
    let shared = a.iter().filter(|trigram| b.binary_search(trigram).is_ok()).count();
    shared as f32 / ((a.len() * b.len()) as f32).sqrt()
}

/// The trigrams of a name, each once, its ends marked.
fn trigrams(name: &str) -> Vec<[char; 3]> {
    let letters =
        unaccented(name_key(name)).chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect::<String>();
    let spaced: Vec<char> = [' ', ' ']
        .into_iter()
        .chain(letters.split_whitespace().flat_map(|word| word.chars().chain([' '])))
        .chain([' '])
        .collect();
    let mut trigrams: Vec<[char; 3]> = spaced.windows(3).map(|trigram| [trigram[0], trigram[1], trigram[2]]).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}
