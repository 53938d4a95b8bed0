//! Links to notes: `[[note]]` in a description or an observation. The bridge resolves them; memory does not see notes.

use rustc_hash::FxHashSet;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::EntityId;
use super::read::EntityDetail;
use super::search::DerivedIndexes;
use crate::model::{Link, hash_of_target};
use crate::parse::wikilinks;
use crate::ports::{NoteTie, TextOwner};

/// A link, and the text it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoteLink {
    pub(crate) owner: TextOwner,
    pub(crate) entity: EntityId,
    pub(crate) link: Link,
}

impl EntityDetail {
    /// The links in these texts, in order.
    pub(crate) fn links(&self) -> Vec<NoteLink> {
        let id = self.entity.id;
        let description = self.entity.description.iter().map(|text| (TextOwner::Entity(id), text));
        let observations = self.observations.iter().map(|seen| (TextOwner::Observation(seen.id), &seen.text));
        let links = description.chain(observations).flat_map(|(owner, text)| {
            wikilinks(text).into_iter().map(move |link| NoteLink { owner, entity: id, link })
        });
        links.collect()
    }
}

impl Memory {
    /// Like [`Memory::links_like`], with links in deleted texts: an undo may restore them.
    pub(crate) fn links_like_with_deleted(
        &self,
        hashes: &FxHashSet<u64>,
        ties: &[NoteTie],
    ) -> Result<Vec<NoteLink>, MemoryError> {
        let view = self.follower.view()?;
        let mut links = links_in(&view, hashes, ties);
        drop(view);
        for (owner, text) in self.store.linking_texts_gone()? {
            let is_wanted = |link: &Link| {
                let is_tied = |tie: &NoteTie| tie.owner == owner && tie.target == link.target;
                hashes.contains(&hash_of_target(&link.target)) || ties.iter().any(is_tied)
            };
            let link = |link| NoteLink { owner, entity: EntityId(0), link };
            links.extend(wikilinks(&text).into_iter().filter(is_wanted).map(link));
        }
        Ok(each_once(links))
    }

    /// The links of all texts, ordered by text.
    pub(crate) fn all_links(&self) -> Result<Vec<NoteLink>, MemoryError> {
        Ok(each_once(self.follower.view()?.links.all().collect()))
    }

    /// The links whose target has one of these hashes, and the links with one of these ties; while memory is
    /// read ahead, in what has been read.
    pub(crate) fn links_like(&self, hashes: &FxHashSet<u64>, ties: &[NoteTie]) -> Result<Vec<NoteLink>, MemoryError> {
        let view = self.follower.view_so_far()?;
        Ok(links_in(&view, hashes, ties))
    }
}

fn links_in(derived: &DerivedIndexes, hashes: &FxHashSet<u64>, ties: &[NoteTie]) -> Vec<NoteLink> {
    let is_tied = |link: &NoteLink, tie: &NoteTie| link.link.target == tie.target;
    let tied = ties.iter().flat_map(|tie| derived.links.of(tie.owner).filter(move |link| is_tied(link, tie)));
    each_once(derived.links.like(hashes).chain(tied).collect())
}

/// One link for each text and target, whatever the label or heading.
fn each_once(mut links: Vec<NoteLink>) -> Vec<NoteLink> {
    links.sort_by(|a, b| (a.owner, &a.link.target).cmp(&(b.owner, &b.link.target)));
    links.dedup_by(|a, b| (a.owner, &a.link.target) == (b.owner, &b.link.target));
    links
}
