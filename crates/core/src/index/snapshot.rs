//! The whole vault at one moment: what every read uses. Immutable, shared, cheap to rebuild after a small change.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ids::CaseVariants;
use super::names::{NameHashes, NameTable, names_of};
use super::publish::resolver_of;
use super::resolve::Resolver;
use super::tables::{ChangedSlots, Tables, Unchanged};
use crate::graph::{LinkGraph, pagerank};
use crate::model::{ContentHash, Link, Note, NoteKey, Tag, fold, loose_hash};
use crate::query::Columns;

/// Notes, their order and their links at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    entries: Vec<Option<SnapshotEntry>>,
    /// By id.
    order: Vec<NoteKey>,
    case_variants: CaseVariants,
    graph: LinkGraph,
    tables: Tables,
}

#[derive(Debug, Clone)]
pub(super) struct SnapshotEntry {
    pub(super) note: Arc<Note>,
    /// The target of each of the note's links, in the same order.
    pub(super) targets: Arc<[Option<NoteKey>]>,
}

/// A link and its target.
#[derive(Debug, Clone, Copy)]
pub struct ResolvedLink<'a> {
    /// As written.
    pub link: &'a Link,
    /// `None` when the link is broken.
    pub target: Option<NoteKey>,
}

/// How central a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubMetric {
    /// Notes linking to it.
    InDegree,
    /// Notes it links to.
    OutDegree,
    /// Links from notes that are themselves central.
    PageRank,
}

/// How several tags combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagMode {
    /// A note has at least one of the tags.
    Any,
    /// A note has every tag.
    All,
}

impl Snapshot {
    pub(super) fn new(
        entries: Vec<Option<SnapshotEntry>>,
        order: Vec<NoteKey>,
        case_variants: CaseVariants,
        graph: LinkGraph,
    ) -> Self {
        Self { entries, order, case_variants, graph, tables: Tables::default() }
    }

    /// With those tables of the predecessor that the change did not affect.
    pub(super) fn with_tables_of(mut self, before: &Self, unchanged: Unchanged, changed: ChangedSlots) -> Self {
        self.tables = Tables::still_of(&before.tables, unchanged, changed);
        self
    }

    pub(super) fn entries(&self) -> &[Option<SnapshotEntry>] {
        &self.entries
    }

    pub(super) fn order(&self) -> &[NoteKey] {
        &self.order
    }

    pub(super) fn case_variants(&self) -> &CaseVariants {
        &self.case_variants
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn columns(&self) -> &Columns {
        &self.tables.columns
    }

    /// A resolver over the notes of this snapshot.
    pub(super) fn resolver(&self) -> Resolver {
        resolver_of(&self.entries)
    }

    /// The targets of links that are in no note, as in a note at the vault's root.
    pub(crate) fn resolve_from_root<'l>(&self, links: impl Iterator<Item = &'l Link>) -> Vec<Option<NoteKey>> {
        let resolver = self.resolver();
        links.map(|link| resolver.resolve_from_root(link)).collect()
    }

    /// The parts a successor is made from.
    pub(super) fn parts(&self) -> (Vec<Option<SnapshotEntry>>, Vec<NoteKey>, CaseVariants) {
        (self.entries.clone(), self.order.clone(), self.case_variants.clone())
    }

    /// Every note, by id.
    pub fn files(&self) -> impl ExactSizeIterator<Item = NoteKey> + '_ {
        self.order.iter().copied()
    }

    /// A note by its slot.
    ///
    /// # Panics
    /// When the key is not of this snapshot.
    pub fn note(&self, key: NoteKey) -> &Note {
        &self.entry(key).note
    }

    /// A note by its slot, if the slot is in use.
    pub fn get(&self, key: NoteKey) -> Option<&Note> {
        self.in_slot(key).map(|note| &**note)
    }

    /// How many slots there are, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.entries.len()
    }

    /// The note in a slot. While the pointer is held, a different one in the slot is another version.
    pub(crate) fn in_slot(&self, key: NoteKey) -> Option<&Arc<Note>> {
        self.entries.get(key.slot())?.as_ref().map(|entry| &entry.note)
    }

    /// The files in some slots.
    pub(crate) fn in_slots(&self, slots: Range<usize>) -> impl Iterator<Item = (NoteKey, &Arc<Note>)> {
        slots.map(NoteKey::of_slot).filter_map(|key| Some((key, self.in_slot(key)?)))
    }

    /// The place of a file among all, by id.
    pub fn place(&self, key: NoteKey) -> u32 {
        let places = self.tables.places.get_or_init(|| {
            let mut places = vec![0; self.entries.len()];
            for (place, key) in (0..).zip(&self.order) {
                places[key.slot()] = place;
            }
            places
        });
        places[key.slot()]
    }

    fn entry(&self, key: NoteKey) -> &SnapshotEntry {
        self.entries[key.slot()].as_ref().expect("the key comes from this snapshot")
    }

    /// A note's links in order of appearance.
    pub fn links(&self, key: NoteKey) -> impl Iterator<Item = ResolvedLink<'_>> {
        let entry = self.entry(key);
        entry.note.links.iter().zip(entry.targets.iter()).map(|(link, target)| ResolvedLink { link, target: *target })
    }

    /// The links of a note, each syntax and target once. All counts of links use these.
    pub fn distinct_links(&self, key: NoteKey) -> impl Iterator<Item = ResolvedLink<'_>> {
        let mut known = FxHashSet::default();
        self.links(key).filter(move |resolved| known.insert((resolved.link.syntax, resolved.link.target.as_str())))
    }

    /// The distinct broken links of a note, without attachments.
    pub fn broken_links(&self, key: NoteKey) -> impl Iterator<Item = &Link> {
        let mut known = FxHashSet::default();
        // Filtered first: most notes have none, and a start asks every note.
        let broken = self.links(key).filter(|resolved| resolved.target.is_none() && !resolved.link.is_attachment());
        broken.map(|resolved| resolved.link).filter(move |link| known.insert((link.syntax, link.target.as_str())))
    }

    /// The graph of links.
    pub fn graph(&self) -> &LinkGraph {
        &self.graph
    }

    /// The first `limit` of the notes that link to this one, by id.
    pub fn incoming(&self, key: NoteKey, limit: usize) -> Vec<NoteKey> {
        let mut sources = self.graph.incoming(key).to_vec();
        if limit < sources.len() {
            sources.select_nth_unstable_by_key(limit, |source| &self.note(*source).id);
            sources.truncate(limit);
        }
        sources.sort_by_key(|source| &self.note(*source).id);
        sources
    }

    /// The first of the shortest paths from one note to another, by id.
    pub fn shortest_path(&self, source: NoteKey, target: NoteKey) -> Option<Vec<NoteKey>> {
        self.graph.shortest_path(source, target, |key| &self.note(key).id)
    }

    /// The most central notes, best first, ties by id.
    pub fn hubs(&self, metric: HubMetric, limit: usize) -> Vec<(NoteKey, f64)> {
        let score = |key: NoteKey| match metric {
            HubMetric::InDegree => self.graph.incoming(key).len() as f64,
            HubMetric::OutDegree => self.graph.out(key).len() as f64,
            // Equal ranks differ in their last digits by the order of summing; rounded, they tie.
            HubMetric::PageRank => (self.ranks().get(key.slot()).copied().unwrap_or_default() * 1e12).round() / 1e12,
        };
        let mut hubs: Vec<(NoteKey, f64)> = self.files().map(|key| (key, score(key))).collect();
        let by_score = |a: &(NoteKey, f64), b: &(NoteKey, f64)| {
            b.1.total_cmp(&a.1).then_with(|| self.note(a.0).id.cmp(&self.note(b.0).id))
        };
        if limit < hubs.len() {
            hubs.select_nth_unstable_by(limit, by_score);
            hubs.truncate(limit);
        }
        hubs.sort_by(by_score);
        hubs
    }

    fn ranks(&self) -> &[f64] {
        self.tables.ranks.get_or_init(|| pagerank(&self.graph, &self.files().collect::<Vec<_>>()))
    }

    /// The notes with these tags or with tags nested below them, by id.
    pub fn tagged(&self, tags: &[String], mode: TagMode) -> Vec<NoteKey> {
        let mut wanted: Vec<String> = tags.iter().map(|tag| Tag::new(tag).folded).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut places: Vec<u32> = wanted.iter().flat_map(|tag| self.places_with_tag(tag)).collect();
        places.sort_unstable();
        let enough = match mode {
            TagMode::Any => 1,
            TagMode::All => wanted.len(),
        };
        places
            .chunk_by(|a, b| a == b)
            .filter(|same| same.len() >= enough)
            .map(|same| self.order[same[0] as usize])
            .collect()
    }

    /// The places of the notes with a tag or one nested below it, each once.
    fn places_with_tag(&self, folded: &str) -> Vec<u32> {
        let tags = self.tables.tags.get_or_init(|| {
            let mut tags: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for (place, key) in (0_u32..).zip(&self.order) {
                for tag in &self.note(*key).tags {
                    tags.entry(tag.folded.clone()).or_default().push(place);
                }
            }
            tags
        });
        let mut places: Vec<u32> = tags
            .range(folded.to_owned()..)
            .take_while(|(tag, _)| tag.starts_with(folded))
            .filter(|(tag, _)| tag.len() == folded.len() || tag.as_bytes()[folded.len()] == b'/')
            .flat_map(|(_, places)| places.iter().copied())
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The files of one area of the vault, in any case, by id.
    pub fn in_area(&self, area: &str) -> &[NoteKey] {
        let areas = self.tables.areas.get_or_init(|| {
            let mut areas: FxHashMap<String, Vec<NoteKey>> = FxHashMap::default();
            for key in self.files() {
                areas.entry(fold(&self.note(key).area())).or_default().push(key);
            }
            areas
        });
        areas.get(&fold(area)).map_or(&[], Vec::as_slice)
    }

    /// A note of that content, if it names sources.
    pub(super) fn sourced(&self, hash: ContentHash) -> Option<&Note> {
        let sourced = self.tables.sourced.get_or_init(|| {
            let mut sourced = FxHashMap::default();
            for key in self.files().filter(|key| self.note(*key).property("source_refs").is_some()) {
                sourced.entry(self.note(key).hash).or_insert(key);
            }
            sourced
        });
        sourced.get(&hash).map(|key| self.note(*key))
    }

    /// Every file whose title, alias or file stem is this name, folded; in no order.
    pub fn named(&self, name: &str) -> Vec<NoteKey> {
        let folded = fold(name.trim());
        let exact = &self.tables.exact_names;
        let known = exact.hashes.get_or_init(|| NameHashes::new(self));
        let mut found: Vec<NoteKey> =
            known.with_hash(loose_hash(&folded)).chain(exact.changed.iter().copied()).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|key| self.get(*key).is_some_and(|note| names_of(note).any(|name| fold(name) == folded)));
        found
    }

    /// Like [`Self::named`], for many names at once, most of which no note has: the places of the others, with their notes.
    pub fn named_each(&self, names: &[&str]) -> Vec<(usize, Vec<NoteKey>)> {
        let exact = &self.tables.exact_names;
        let known = exact.hashes.get_or_init(|| NameHashes::new(self));
        let changed = exact.changed.iter().filter_map(|key| self.get(*key)).flat_map(names_of);
        let changed: FxHashSet<u64> = changed.map(|name| loose_hash(&fold(name))).collect();
        let is_known = |name: &str| {
            let hash = loose_hash(&fold(name.trim()));
            changed.contains(&hash) || known.with_hash(hash).next().is_some()
        };
        let places = names.iter().enumerate().filter(|(_, name)| is_known(name));
        places.map(|(place, name)| (place, self.named(name))).filter(|(_, notes)| !notes.is_empty()).collect()
    }

    /// The names by which notes are found when people mistype them.
    pub(super) fn name_table(&self) -> &NameTable {
        self.tables.names.get_or_init(|| NameTable::new(self))
    }
}
