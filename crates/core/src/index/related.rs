//! Typed links, and the notes near a note with the link that leads to each.

use rustc_hash::{FxHashMap, FxHashSet};

use super::snapshot::Snapshot;
use crate::model::{LinkType, NoteKey};

/// A note some links away from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelatedNote {
    pub key: NoteKey,
    /// The type of the last link on the path to it; the strongest of several.
    pub link_type: LinkType,
    /// Whether that link points to it, or back towards the start.
    pub is_outgoing: bool,
    /// How many links away, in either direction.
    pub depth: usize,
}

impl Snapshot {
    /// The notes a note links to, in order of appearance: each target once for each type, without itself.
    pub fn typed_links(&self, key: NoteKey) -> Vec<(NoteKey, LinkType)> {
        let mut seen = FxHashSet::default();
        let links = self.links(key).filter_map(|resolved| Some((resolved.target?, resolved.link.link_type)));
        links.filter(|(target, _)| *target != key).filter(|edge| seen.insert(*edge)).collect()
    }

    /// The notes that link to a note, by path, then by type.
    pub fn typed_backlinks(&self, key: NoteKey) -> Vec<(NoteKey, LinkType)> {
        let sources = self.graph().incoming(key).iter();
        let edges = |source: &NoteKey| {
            let links = self.typed_links(*source).into_iter().filter(|(target, _)| *target == key);
            links.map(|(_, link_type)| (*source, link_type)).collect::<Vec<_>>()
        };
        let mut backlinks: Vec<(NoteKey, LinkType)> = sources.flat_map(edges).collect();
        backlinks.sort_by_key(|(source, link_type)| (&self.note(*source).path, *link_type));
        backlinks
    }

    /// The notes up to `depth` links away in either direction, a list for each distance, nearest first. In a list, by the
    /// strength of the link, outgoing first, then by the count of backlinks, then by path.
    ///
    /// Not by PageRank, which the first question after each saved file would have to compute for the whole vault.
    pub fn related(&self, start: NoteKey, depth: usize) -> Vec<Vec<RelatedNote>> {
        const UNSEEN: u8 = u8::MAX;
        let mut distance = vec![UNSEEN; self.graph().slots().max(start.slot() + 1)];
        distance[start.slot()] = 0;
        let mut levels: Vec<Vec<RelatedNote>> = Vec::new();
        let mut near = vec![start];
        for step in 1..=u8::try_from(depth).unwrap_or(UNSEEN - 1) {
            let mut next: Vec<NoteKey> = Vec::new();
            for key in &near {
                for other in self.graph().out(*key).iter().chain(self.graph().incoming(*key)) {
                    if distance[other.slot()] == UNSEEN {
                        distance[other.slot()] = step;
                        next.push(*other);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            levels.push(self.best_links(&near, &next, &distance, step));
            near = next;
        }
        levels
    }

    /// The best link between the notes of one distance and those of the next. Reads each note's links once.
    fn best_links(&self, near: &[NoteKey], next: &[NoteKey], distance: &[u8], step: u8) -> Vec<RelatedNote> {
        let mut best: FxHashMap<NoteKey, (LinkType, bool)> = FxHashMap::default();
        let mut offer = |key: NoteKey, link: (LinkType, bool)| {
            let best = best.entry(key).or_insert(link);
            if (link.0.strength(), link.1) > (best.0.strength(), best.1) {
                *best = link;
            }
        };
        for key in near {
            for (target, link_type) in self.typed_links(*key) {
                if distance[target.slot()] == step {
                    offer(target, (link_type, true));
                }
            }
        }
        for key in next {
            for (target, link_type) in self.typed_links(*key) {
                if distance[target.slot()] == step - 1 {
                    offer(*key, (link_type, false));
                }
            }
        }
        let related = |key: &NoteKey| {
            let (link_type, is_outgoing) = best.get(key).copied()?;
            Some(RelatedNote { key: *key, link_type, is_outgoing, depth: usize::from(step) })
        };
        let mut level: Vec<RelatedNote> = next.iter().filter_map(related).collect();
        let usefulness = |related: &RelatedNote| {
            let linked = self.graph().incoming(related.key).len();
            (related.link_type.strength(), related.is_outgoing, linked)
        };
        level.sort_by(|a, b| {
            usefulness(b).cmp(&usefulness(a)).then_with(|| self.note(a.key).path.cmp(&self.note(b.key).path))
        });
        level
    }
}
