//! One vector for each entity and each observation, searched by a full scan.
//!
//! An exact scan over 8-bit vectors is fast enough for millions, works with every filter, and has no index to rebuild.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dot_products::{dot_product, dot_products};
use crate::memory::model::{EntityId, ObservationId};
use crate::ports::{StoredVector, TextOwner};

/// Rows that one task scans.
const CHUNK: usize = 4096;

/// Vectors of one space, and the texts without one.
#[derive(Default, Clone)]
pub(in crate::memory) struct VectorIndex {
    dimensions: usize,
    codes: Vec<i8>,
    rows: Vec<Option<VectorRow>>,
    free: Vec<u32>,
    row_of: FxHashMap<TextOwner, u32>,
    /// Texts without a vector, and their hashes.
    pending: FxHashMap<TextOwner, (EntityId, i64)>,
    /// The texts of `pending` in order, without those that cannot be embedded.
    queue: BTreeSet<TextOwner>,
}

#[derive(Clone, Copy)]
struct VectorRow {
    owner: TextOwner,
    entity: EntityId,
    text_hash: i64,
    scale: f32,
}

/// An entity with its nearest vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::memory) struct Near {
    pub(in crate::memory) entity: EntityId,
    pub(in crate::memory) cosine: f32,
    pub(in crate::memory) observation: Option<ObservationId>,
}

/// The hash that identifies a text.
pub(super) fn text_hash(text: &str) -> i64 {
    let hash = blake3::hash(text.as_bytes());
    i64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}

/// A vector with 8 bits a number.
pub(super) fn stored(vector: &[f32], text_hash: i64) -> StoredVector {
    let (scale, codes) = coded(vector);
    StoredVector { text_hash, scale, codes: codes.into() }
}

fn coded(vector: &[f32]) -> (f32, Vec<i8>) {
    let peak = vector.iter().fold(0.0_f32, |peak, number| peak.max(number.abs()));
    let scale = if peak > 0.0 { peak / 127.0 } else { 1.0 };
    #[expect(clippy::cast_possible_truncation, reason = "a number divided by a 127th of the greatest fits into a byte")]
    let codes = vector.iter().map(|number| (number / scale).round() as i8).collect();
    (scale, codes)
}

impl VectorIndex {
    /// Sets the text of an owner, which needs a vector unless it has one of that text.
    pub(super) fn expect(&mut self, owner: TextOwner, entity: EntityId, text_hash: i64) {
        if let Some(&row) = self.row_of.get(&owner) {
            let known = self.rows[row as usize].as_mut().expect("a row that is looked up is there");
            if known.text_hash == text_hash {
                known.entity = entity;
                return;
            }
        }
        self.drop(owner);
        self.pending.insert(owner, (entity, text_hash));
        self.queue.insert(owner);
    }

    /// Sets the dimensions of the model's vectors. If they differ, the model changed under the same name, and all texts need new
    /// vectors.
    pub(super) fn settle_dimensions(&mut self, dimensions: usize) {
        if self.is_of(dimensions) {
            return;
        }
        for row in std::mem::take(&mut self.rows).into_iter().flatten() {
            self.pending.insert(row.owner, (row.entity, row.text_hash));
            self.queue.insert(row.owner);
        }
        self.codes.clear();
        self.free.clear();
        self.row_of.clear();
        self.dimensions = dimensions;
    }

    /// Whether vectors of this many dimensions can be compared with these.
    pub(super) fn is_of(&self, dimensions: usize) -> bool {
        self.dimensions == 0 || self.dimensions == dimensions
    }

    /// Adds a vector, unless it is of another text or not needed.
    pub(super) fn put(&mut self, owner: TextOwner, vector: &StoredVector) {
        let Some(&(entity, text_hash)) = self.pending.get(&owner) else { return };
        if text_hash != vector.text_hash || vector.codes.is_empty() {
            return;
        }
        if self.dimensions == 0 {
            self.dimensions = vector.codes.len();
        }
        if vector.codes.len() != self.dimensions {
            return;
        }
        self.pending.remove(&owner);
        self.queue.remove(&owner);
        let entry = VectorRow { owner, entity, text_hash, scale: vector.scale };
        let row = match self.free.pop() {
            Some(row) => {
                let start = row as usize * self.dimensions;
                self.codes[start..start + self.dimensions].copy_from_slice(&vector.codes);
                self.rows[row as usize] = Some(entry);
                row
            }
            None => {
                self.codes.extend_from_slice(&vector.codes);
                self.rows.push(Some(entry));
                u32::try_from(self.rows.len() - 1).expect("fewer than four thousand million vectors fit into memory")
            }
        };
        self.row_of.insert(owner, row);
    }

    pub(super) fn drop(&mut self, owner: TextOwner) {
        self.pending.remove(&owner);
        self.queue.remove(&owner);
        if let Some(row) = self.row_of.remove(&owner) {
            self.rows[row as usize] = None;
            self.free.push(row);
        }
    }

    /// Marks a text that cannot be embedded, until it changes.
    pub(super) fn set_aside(&mut self, owner: TextOwner) {
        self.queue.remove(&owner);
    }

    /// Some texts without a vector and their hashes, entities first.
    pub(super) fn wanted(&self, limit: usize) -> Vec<(TextOwner, i64)> {
        let hash = |owner: &TextOwner| self.pending.get(owner).map(|(_, hash)| (*owner, *hash));
        self.queue.iter().take(limit).filter_map(hash).collect()
    }

    pub(super) fn pending(&self) -> usize {
        self.queue.len()
    }

    /// Entities with a cosine of at least `at_least` to a vector, nearest first, by the wanted kinds of vectors: at most `limit`
    /// members of the client's project, and as many others.
    pub(in crate::memory) fn near(
        &self,
        vector: &[f32],
        at_least: f32,
        wanted: impl Fn(TextOwner) -> bool + Sync,
        is_member: impl Fn(EntityId) -> bool + Sync,
        limit: usize,
    ) -> Vec<Near> {
        if vector.len() != self.dimensions || self.dimensions == 0 {
            return Vec::new();
        }
        let (scale, query) = coded(vector);
        let look = |(chunk, rows): (usize, &[Option<VectorRow>])| {
            let mut found: Vec<Near> = Vec::new();
            let start = chunk * CHUNK * self.dimensions;
            let mut products = [0; CHUNK];
            let products = &mut products[..rows.len()];
            dot_products(&query, &self.codes[start..start + rows.len() * self.dimensions], products);
            for (row, product) in rows.iter().zip(products) {
                let Some(row) = row.filter(|row| wanted(row.owner)) else { continue };
                let cosine = *product as f32 * scale * row.scale;
                // Most of a big memory is far away and need not be sorted.
                if cosine < at_least {
                    continue;
                }
                let observation = match row.owner {
                    TextOwner::Entity(_) => None,
                    TextOwner::Observation(id) => Some(id),
                };
                found.push(Near { entity: row.entity, cosine, observation });
            }
            keep_nearest(&mut found, &is_member, limit);
            found
        };
        // For a few thousand, scheduling costs more than the scan.
        let mut found: Vec<Near> = if self.rows.len() <= 2 * CHUNK {
            self.rows.chunks(CHUNK).enumerate().flat_map(look).collect()
        } else {
            self.rows.par_chunks(CHUNK).enumerate().flat_map_iter(look).collect()
        };
        keep_nearest(&mut found, &is_member, limit);
        found
    }
}

/// Keeps the nearest, in order: at most `limit` members, and as many others. One vector for each entity, else one with many
/// observations would push out all others.
fn keep_nearest(found: &mut Vec<Near>, is_member: impl Fn(EntityId) -> bool, limit: usize) {
    found.sort_unstable_by(nearest_first);
    let mut seen = FxHashSet::default();
    let mut room = [limit; 2];
    found.retain(|near| {
        let room = &mut room[usize::from(is_member(near.entity))];
        let is_kept = *room > 0 && seen.insert(near.entity);
        *room -= usize::from(is_kept);
        is_kept
    });
}

/// How many pivots each entity is assigned to in the search for pairs.
const BESIDE: usize = 3;

/// How many entities of the same pivot an entity is compared with.
const COMPARED: usize = 512;

/// The most pairs of one entity: thousands of similar ones are no duplicates.
const PAIRS_OF_ONE: usize = 16;

/// An entity's vector in the search for pairs.
#[derive(Clone, Copy)]
struct PairCandidate<'a> {
    entity: EntityId,
    scale: f32,
    codes: &'a [i8],
    /// The first part of the codes, enough for most comparisons.
    head: &'a [i8],
    /// The square of its length, and of its head's.
    square: f32,
    head_square: f32,
}

impl PairCandidate<'_> {
    fn cosine(&self, other: &Self) -> f32 {
        dot_product(self.codes, other.codes) as f32 * self.scale * other.scale
    }

    fn head_cosine(&self, other: &Self) -> f32 {
        dot_product(self.head, other.head) as f32 * self.scale * other.scale
    }

    /// The cosine, if it is at least this. Two vectors are never nearer than their heads, so these decide most comparisons.
    fn near(&self, other: &Self, at_least: f32) -> Option<f32> {
        let apart = self.head_square + other.head_square - 2.0 * self.head_cosine(other);
        let allowed = self.square + other.square - 2.0 * at_least;
        if apart > allowed {
            return None;
        }
        Some(self.cosine(other)).filter(|cosine| *cosine >= at_least)
    }
}

impl VectorIndex {
    /// Pairs of entities with nearer vectors than this whose names do not rule it out, the lower id first. `name` is called once
    /// or twice for each entity with a near one.
    ///
    /// Some vectors are pivots. Every entity is assigned to its few nearest pivots and compared with entities of the same pivot
    /// at a similar distance. Near entities mostly share a pivot: two or three in a thousand pairs are missed at the distance
    /// of `suggest_merges`, more at greater ones (docs/memory.md). The work grows with n·√n.
    pub(in crate::memory) fn near_pairs<Name>(
        &self,
        at_least: f32,
        name: impl Fn(EntityId) -> Name + Sync,
        may_be_one: impl Fn(&Name, &Name) -> bool + Sync,
    ) -> Vec<(EntityId, EntityId, f32)> {
        let rows: Vec<PairCandidate<'_>> = self.candidates().collect();
        let step = rows.len().isqrt().max(1);
        let chosen: Vec<PairCandidate<'_>> = rows.iter().step_by(step).copied().collect();
        let beside = |row: &PairCandidate<'_>| {
            let nearness = |other: &PairCandidate<'_>| 2.0 * row.head_cosine(other) - other.head_square;
            nearest_few(chosen.iter().enumerate().map(|(place, other)| (nearness(other), place)).collect(), BESIDE)
        };
        let places: Vec<Vec<(f32, usize)>> = rows.par_iter().map(beside).collect();
        let mut cells: Vec<Vec<(f32, usize)>> = vec![Vec::new(); chosen.len()];
        for (row, places) in places.iter().enumerate() {
            places.iter().for_each(|(nearness, place)| cells[*place].push((*nearness, row)));
        }
        let look = |mut cell: Vec<(f32, usize)>| {
            cell.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            // Contiguous in memory, since each is read hundreds of times.
            let heads: Vec<i8> = cell.iter().flat_map(|(_, row)| rows[*row].head).copied().collect();
            let heads = heads.chunks_exact(self.head());
            let members = cell.iter().zip(heads).map(|((_, row), head)| PairCandidate { head, ..rows[*row] });
            let members: Vec<PairCandidate<'_>> = members.collect();
            let names: Vec<OnceCell<Name>> = members.iter().map(|_| OnceCell::new()).collect();
            let name_at = |place: usize| names[place].get_or_init(|| name(members[place].entity));
            let mut pairs = Vec::new();
            for (place, a) in members.iter().enumerate() {
                let others = members.iter().enumerate().skip(place + 1).take(COMPARED);
                let near = others.filter_map(|(place, b)| Some((a.near(b, at_least)?, place)));
                // Filtered before the nearest are taken: a thousand invoices are nearer to each other than to an alias of one.
                let near = near.filter(|(_, other)| may_be_one(name_at(place), name_at(*other)));
                for (cosine, b) in nearest_few(near.collect(), PAIRS_OF_ONE) {
                    let (a, b) = (a.entity, members[b].entity);
                    pairs.push((a.min(b), a.max(b), cosine));
                }
            }
            pairs
        };
        let mut pairs: Vec<(EntityId, EntityId, f32)> = cells.into_par_iter().flat_map_iter(look).collect();
        pairs.par_sort_unstable_by_key(|(a, b, _)| (*a, *b));
        pairs.dedup_by_key(|(a, b, _)| (*a, *b));
        pairs
    }

    /// How many of a vector's numbers make its head.
    fn head(&self) -> usize {
        self.dimensions.div_ceil(4).max(1)
    }

    /// The vectors of entities themselves.
    fn candidates(&self) -> impl Iterator<Item = PairCandidate<'_>> {
        let head = self.head();
        let rows = self.rows.iter().zip(self.codes.chunks_exact(self.dimensions.max(1)));
        rows.filter_map(move |(row, codes)| {
            let VectorRow { owner: TextOwner::Entity(_), entity, scale, .. } = (*row)? else { return None };
            let square = |codes: &[i8]| dot_product(codes, codes) as f32 * scale * scale;
            let (square, head_square) = (square(codes), square(&codes[..head]));
            Some(PairCandidate { entity, scale, codes, head: &codes[..head], square, head_square })
        })
    }
}

/// The few with the greatest cosine; ties in order.
fn nearest_few(mut found: Vec<(f32, usize)>, count: usize) -> Vec<(f32, usize)> {
    if found.len() > count {
        found.select_nth_unstable_by(count - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.truncate(count);
    }
    found
}

fn nearest_first(a: &Near, b: &Near) -> std::cmp::Ordering {
    b.cosine.total_cmp(&a.cosine).then(a.entity.cmp(&b.entity)).then(a.observation.cmp(&b.observation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMENSIONS: usize = 64;

    fn direction(seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut number = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u32 << 24) as f32 - 0.5
        };
        (0..DIMENSIONS).map(|_| number()).collect()
    }

    /// A vector of length one for each entity.
    fn index(vectors: impl Iterator<Item = Vec<f32>>) -> VectorIndex {
        let mut index = VectorIndex::default();
        for (id, vector) in (1..).map(EntityId).zip(vectors) {
            let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
            let vector: Vec<f32> = vector.into_iter().map(|number| number / length).collect();
            index.expect(TextOwner::Entity(id), id, 0);
            index.put(TextOwner::Entity(id), &stored(&vector, 0));
        }
        index
    }

    /// As if nothing had a name.
    fn near_pairs(index: &VectorIndex, at_least: f32) -> Vec<(EntityId, EntityId, f32)> {
        index.near_pairs(at_least, |_| (), |(), ()| true)
    }

    #[test]
    fn vectors_with_the_same_direction_are_paired() {
        let pairs = near_pairs(&index((0..2000).chain(0..2000).map(direction)), 0.98);
        let is_expected = |(place, (a, b, _)): (i64, &(EntityId, EntityId, f32))| (a.0, b.0) == (place, place + 2000);
        assert!((1..).zip(&pairs).all(is_expected) && pairs.len() == 2000, "{}", pairs.len());
    }

    #[test]
    fn most_near_pairs_are_found_among_similar_vectors() {
        let common = direction(77_777);
        let mixed = |own: u64, slip: u64, share: f32| {
            let slip: Vec<f32> = direction(slip).into_iter().map(|number| number * share).collect();
            let own = direction(own).into_iter().zip(&common).zip(slip);
            own.map(|((own, common), slip)| own + common + slip).collect()
        };
        let index =
            index((0..2000).map(|own| mixed(own, 0, 0.0)).chain((0..2000).map(|own| mixed(own, own + 9000, 0.4))));
        let rows: Vec<PairCandidate<'_>> = index.candidates().collect();
        let near = |a: usize| rows[a + 1..].iter().filter(|b| rows[a].cosine(b) >= 0.94).count();
        let all: usize = (0..rows.len()).map(near).sum();
        let found = near_pairs(&index, 0.94).len();
        assert!(all > 1000 && found <= all && found * 100 >= all * 98, "{found} of {all}");
    }

    #[test]
    fn pairs_among_thousands_of_equal_vectors_are_bounded() {
        let pairs = near_pairs(&index(std::iter::repeat_n(direction(7), 2000)), 0.9);
        assert!(pairs.len() > 2000 && pairs.len() <= 2000 * BESIDE * PAIRS_OF_ONE, "{}", pairs.len());
    }

    #[test]
    fn no_vectors_give_no_pairs() {
        assert_eq!(near_pairs(&VectorIndex::default(), 0.0), []);
    }

    /// A thousand invoices and aliases of some, each with a hundred invoices nearer to it than its own.
    #[test]
    fn duplicate_is_found_among_thousands_of_similar_vectors() {
        const INVOICES: u64 = 5000;
        let common = direction(77_777);
        // They differ in few ways, so each has many close by.
        let vector = |number: u64, slip: f32| {
            let mut vector: Vec<f32> = common.iter().map(|number| number * 8.0).collect();
            let (own, other) = (direction(number), direction(number + INVOICES));
            (0..6).for_each(|place| vector[place] += own[place] + other[place] * slip);
            vector
        };
        let invoices = (0..INVOICES).map(|number| vector(number, 0.0));
        let index = index(invoices.chain((0..INVOICES).step_by(50).map(|number| vector(number, 0.5))));
        let other_name = |a: EntityId, b: EntityId| b.0 - INVOICES as i64 - 1 == (a.0 - 1) / 50 && (a.0 - 1) % 50 == 0;
        let rows: Vec<PairCandidate<'_>> = index.candidates().collect();
        let nearer = |a: usize, b: usize| rows.iter().filter(|c| rows[a].cosine(c) > rows[a].cosine(&rows[b])).count();
        let ranks: Vec<usize> = (0..100).map(|place| nearer(place * 50, INVOICES as usize + place)).collect();
        let found = index.near_pairs(0.9, |id| id, |a, b| other_name(*a.min(b), *a.max(b))).len();
        let far = ranks.iter().filter(|nearer| **nearer > PAIRS_OF_ONE).count();
        assert!(
            far > 60 && found >= 90,
            "{found} of 100 are found; {far} of 100 have more than {PAIRS_OF_ONE} others nearer"
        );
    }
}
