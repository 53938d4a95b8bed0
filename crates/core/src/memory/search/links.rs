//! Links to notes, by the loose hash of their targets. They are resolved by the bridge.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::memory::links::NoteLink;
use crate::memory::model::EntityId;
use crate::model::{Link, hash_of_target};
use crate::parse::wikilinks;
use crate::ports::TextOwner;

/// The links of every text that has some.
#[derive(Default)]
pub(in crate::memory) struct LinkIndex {
    of: FxHashMap<TextOwner, (EntityId, Vec<Link>)>,
    by_hash: FxHashMap<u64, FxHashSet<TextOwner>>,
}

impl LinkIndex {
    /// Replaces the links of a text.
    pub(super) fn put(&mut self, owner: TextOwner, entity: EntityId, text: &str) {
        self.drop(owner);
        let links = wikilinks(text);
        if links.is_empty() {
            return;
        }
        for link in &links {
            self.by_hash.entry(hash_of_target(&link.target)).or_default().insert(owner);
        }
        self.of.insert(owner, (entity, links));
    }

    pub(super) fn drop(&mut self, owner: TextOwner) {
        for link in self.of.remove(&owner).map(|(_, links)| links).unwrap_or_default() {
            let hash = hash_of_target(&link.target);
            if let Some(owners) = self.by_hash.get_mut(&hash) {
                owners.remove(&owner);
                if owners.is_empty() {
                    self.by_hash.remove(&hash);
                }
            }
        }
    }

    /// Links whose target has one of these hashes, in no order.
    pub(in crate::memory) fn like<'a>(&'a self, hashes: &'a FxHashSet<u64>) -> impl Iterator<Item = NoteLink> + 'a {
        let owners: FxHashSet<TextOwner> =
            hashes.iter().filter_map(|hash| self.by_hash.get(hash)).flatten().copied().collect();
        owners
            .into_iter()
            .flat_map(|owner| self.of(owner))
            .filter(|link| hashes.contains(&hash_of_target(&link.link.target)))
    }

    /// Every link, in no order.
    pub(in crate::memory) fn all(&self) -> impl Iterator<Item = NoteLink> + '_ {
        self.of.keys().flat_map(|owner| self.of(*owner))
    }

    /// The links of one text.
    pub(in crate::memory) fn of(&self, owner: TextOwner) -> impl Iterator<Item = NoteLink> + '_ {
        let links = self.of.get(&owner).into_iter();
        links.flat_map(move |(entity, links)| {
            links.iter().map(move |link| NoteLink { owner, entity: *entity, link: link.clone() })
        })
    }
}
