//! Typed links, and the notes around a note with the link that leads to each.

use rustc_hash::FxHashSet;

use super::snapshot::Snapshot;
use crate::model::{LinkType, NoteKey};

/// A note some links away from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Related {
    /// Which.
    pub key: NoteKey,
    /// What the last link on the way to it means; the strongest where there are several.
    pub link_type: LinkType,
    /// Whether that link points to it, or from it back towards the middle.
    pub is_outgoing: bool,
    /// How many links away, in whichever direction.
    pub depth: usize,
}

impl Snapshot {
    /// What a note links to, and how: resolved, in order of appearance, each target once for each type, itself left out.
    pub fn typed_links(&self, key: NoteKey) -> Vec<(NoteKey, LinkType)> {
        let mut seen = FxHashSet::default();
        let links = self.links(key).filter_map(|resolved| Some((resolved.target?, resolved.link.link_type)));
        links.filter(|(target, _)| *target != key).filter(|edge| seen.insert(*edge)).collect()
    }

    /// Who links to a note, and how: by path, then by type.
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

    /// The notes around a note, nearest first, up to some links away in whichever direction. Each distance is a list of
    /// its own, the most useful first: by what the link means, those pointed to before those pointing, then by how many
    /// notes link there, then by path.
    ///
    /// Not by PageRank: it is of the whole vault, and would be made anew for the first question after each saved file.
    pub fn around(&self, middle: NoteKey, depth: usize) -> Vec<Vec<Related>> {
        const UNSEEN: u8 = u8::MAX;
        let mut distance = vec![UNSEEN; self.graph().slots().max(middle.slot() + 1)];
        distance[middle.slot()] = 0;
        let mut levels: Vec<Vec<Related>> = Vec::new();
        let mut near = vec![middle];
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
            levels.push(self.ways_to(&near, &next, &distance, step));
            near = next;
        }
        levels
    }

    /// The best link between the notes of one distance and those of the next. Every note's links are looked at once.
    fn ways_to(&self, near: &[NoteKey], next: &[NoteKey], distance: &[u8], step: u8) -> Vec<Related> {
        let mut ways: rustc_hash::FxHashMap<NoteKey, (LinkType, bool)> = rustc_hash::FxHashMap::default();
        let mut offer = |key: NoteKey, way: (LinkType, bool)| {
            let best = ways.entry(key).or_insert(way);
            if (way.0.strength(), way.1) > (best.0.strength(), best.1) {
                *best = way;
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
            let (link_type, is_outgoing) = ways.get(key).copied()?;
            Some(Related { key: *key, link_type, is_outgoing, depth: usize::from(step) })
        };
        let mut level: Vec<Related> = next.iter().filter_map(related).collect();
        let usefulness = |related: &Related| {
            let linked = self.graph().incoming(related.key).len();
            (related.link_type.strength(), related.is_outgoing, linked)
        };
        level.sort_by(|a, b| {
            usefulness(b).cmp(&usefulness(a)).then_with(|| self.note(a.key).path.cmp(&self.note(b.key).path))
        });
        level
    }
}
