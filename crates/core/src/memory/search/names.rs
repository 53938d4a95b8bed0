//! Names that look alike, by the three-letter pieces they share. Finds candidates; whether two names mean one thing is the
//! duplicate rule's to say.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::memory::model::{Entity, EntityId, name_key};

/// A piece that this share of all labels has says nothing, once there are enough of them.
const COMMON_SHARE: usize = 8;
const ALWAYS_LOOKED_AT: usize = 2000;

/// Every name and alias, by its pieces.
#[derive(Default)]
pub(in crate::memory) struct NameIndex {
    labels: Vec<Label>,
    free: Vec<u32>,
    of: FxHashMap<EntityId, Vec<u32>>,
    postings: FxHashMap<[char; 3], Vec<u32>>,
}

struct Label {
    entity: Option<EntityId>,
    pieces: Vec<[char; 3]>,
}

impl NameIndex {
    pub(super) fn put(&mut self, entity: &Entity) {
        self.drop(entity.id);
        let mut labels = Vec::with_capacity(1 + entity.aliases.len());
        for name in [&entity.name].into_iter().chain(&entity.aliases) {
            let pieces = pieces(name);
            let label = self.free.pop().unwrap_or_else(|| {
                self.labels.push(Label { entity: None, pieces: Vec::new() });
                u32::try_from(self.labels.len() - 1).expect("fewer than four thousand million names fit into memory")
            });
            for piece in &pieces {
                self.postings.entry(*piece).or_default().push(label);
            }
            self.labels[label as usize] = Label { entity: Some(entity.id), pieces };
            labels.push(label);
        }
        self.of.insert(entity.id, labels);
    }

    pub(super) fn drop(&mut self, entity: EntityId) {
        for label in self.of.remove(&entity).unwrap_or_default() {
            let gone = &mut self.labels[label as usize];
            gone.entity = None;
            for piece in std::mem::take(&mut gone.pieces) {
                if let Some(list) = self.postings.get_mut(&piece) {
                    list.retain(|other| *other != label);
                }
            }
            self.free.push(label);
        }
    }

    /// At most `limit` entities with a name like this one, the most alike first, with the cosine of the pieces.
    pub(in crate::memory) fn like(&self, name: &str, at_least: f32, limit: usize) -> Vec<(EntityId, f32)> {
        let wanted = pieces(name);
        let common = (self.labels.len() / COMMON_SHARE).max(ALWAYS_LOOKED_AT);
        let lists = wanted.iter().filter_map(|piece| self.postings.get(piece)).filter(|list| list.len() <= common);
        let candidates: FxHashSet<u32> = lists.flatten().copied().collect();
        let mut best: FxHashMap<EntityId, f32> = FxHashMap::default();
        for label in candidates {
            let Label { entity: Some(entity), pieces } = &self.labels[label as usize] else { continue };
            let shared = pieces.iter().filter(|piece| wanted.binary_search(piece).is_ok()).count();
            let cosine = shared as f32 / ((wanted.len() * pieces.len()) as f32).sqrt();
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

/// The pieces of a name, each once, its ends marked.
fn pieces(name: &str) -> Vec<[char; 3]> {
    let letters = name_key(name).chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect::<String>();
    let spaced: Vec<char> = [' ', ' '].into_iter().chain(letters.split_whitespace().flat_map(|word| word.chars().chain([' ']))).chain([' ']).collect();
    let mut pieces: Vec<[char; 3]> = spaced.windows(3).map(|piece| [piece[0], piece[1], piece[2]]).collect();
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}
