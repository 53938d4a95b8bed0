//! The passages of all notes and the vectors that one space has for them, in memory.
//!
//! A text is stored once, however many notes contain it. Texts live in slots; notes refer to slots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use quipu_core::model::NoteKey;
use quipu_core::ports::{Coverage, Grade, MissingVector, NoteChange, PassageHash};
use rustc_hash::{FxHashMap, FxHashSet};

use super::matrix::Matrix;
use super::passage_list::ListedPassage;

/// The part of one space that is in memory.
pub(super) struct Resident {
    space: String,
    /// `None` while the space has no vector.
    matrix: Option<Matrix>,
    /// The number of vectors of the space in the cache, in use or not.
    cached: usize,
    notes: FxHashMap<NoteKey, NoteEntry>,
    texts: Vec<Text>,
    free_slots: Vec<u32>,
    slot_of: FxHashMap<PassageHash, u32>,
    /// Slots of texts that a note stopped containing; another note may contain them.
    orphans: Vec<u32>,
    /// Texts with a vector of full grade.
    full: usize,
    /// Notes by the lowest level of their passages, then newest first.
    by_level: BTreeMap<EmbeddingLevel, BTreeSet<(Reverse<i64>, NoteKey)>>,
}

/// A vector in the cache, as the scan needs it.
pub(super) struct CachedVector {
    pub(super) hash: PassageHash,
    pub(super) id: i64,
    pub(super) grade: Grade,
    pub(super) scale: f32,
    pub(super) coarse: Vec<i8>,
}

/// What a change of the catalog means for passages.
pub(super) enum NewPassages {
    Put { key: NoteKey, newness: i64, passages: Vec<ListedPassage> },
    Touch { key: NoteKey, newness: i64 },
    Remove { key: NoteKey },
}

impl NewPassages {
    /// Takes the passages of a changed note.
    pub(super) fn new(change: &NoteChange<'_>, passages: &[ListedPassage]) -> Self {
        match *change {
            NoteChange::Put { key, note, .. } => {
                Self::Put { key, newness: note.stat.newness(), passages: passages.to_vec() }
            }
            NoteChange::Touch { key, stat } => Self::Touch { key, newness: stat.newness() },
            NoteChange::Remove { key } => Self::Remove { key },
        }
    }

    pub(super) fn passages(&self) -> &[ListedPassage] {
        match self {
            Self::Put { passages, .. } => passages,
            Self::Touch { .. } | Self::Remove { .. } => &[],
        }
    }
}

/// A section that contains a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectionRef {
    pub(super) key: NoteKey,
    pub(super) section: u32,
}

/// How well a text is embedded: zero without a vector, else one more than the grade.
type EmbeddingLevel = u16;

fn level(grade: Grade) -> EmbeddingLevel {
    EmbeddingLevel::from(grade.0) + 1
}

fn is_full(of_text: EmbeddingLevel) -> bool {
    of_text >= level(Grade::FULL)
}

struct NoteEntry {
    /// See [`quipu_core::model::FileStat::newness`].
    newness: i64,
    /// Its key in `by_level`; `None` without passages, or while it is not there.
    level: Option<EmbeddingLevel>,
    /// Sections and slots.
    passages: Box<[(u32, u32)]>,
}

struct Text {
    hash: PassageHash,
    level: EmbeddingLevel,
    /// Row in the matrix and id in the cache; unused at level zero.
    row: u32,
    id: i64,
    /// Most texts are in one section only.
    first: Option<SectionRef>,
    others: Vec<SectionRef>,
}

impl Text {
    fn sections(&self) -> impl Iterator<Item = SectionRef> {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

impl Resident {
    /// A space without notes. `dimensions` and `cached` are those of the space in the cache.
    pub(super) fn new(space: &str, dimensions: Option<usize>, cached: usize) -> Self {
        Self {
            space: space.to_owned(),
            matrix: dimensions.map(Matrix::new),
            cached,
            notes: FxHashMap::default(),
            texts: Vec::new(),
            free_slots: Vec::new(),
            slot_of: FxHashMap::default(),
            orphans: Vec::new(),
            full: 0,
            by_level: BTreeMap::new(),
        }
    }

    pub(super) fn space(&self) -> &str {
        &self.space
    }

    pub(super) fn matrix(&self) -> Option<&Matrix> {
        self.matrix.as_ref()
    }

    /// Whether a vector of so many dimensions fits the space.
    pub(super) fn accepts(&self, dimensions: usize) -> bool {
        self.matrix.as_ref().is_none_or(|matrix| matrix.dimensions() == dimensions)
    }

    /// The sections that contain the text in a slot.
    pub(super) fn sections(&self, slot: u32) -> impl Iterator<Item = SectionRef> {
        self.texts[slot as usize].sections()
    }

    /// The rows of a section's passages that have a vector.
    pub(super) fn rows_of(&self, key: NoteKey, section: usize) -> impl Iterator<Item = u32> {
        let passages = self.notes.get(&key).map_or(&[][..], |note| &note.passages);
        // In the order of sections.
        let start = passages.partition_point(|(of, _)| (*of as usize) < section);
        let own = passages[start..].iter().take_while(move |(of, _)| *of as usize == section);
        own.map(|(_, slot)| &self.texts[*slot as usize]).filter(|text| text.level > 0).map(|text| text.row)
    }

    /// The row of a slot that has one in the matrix.
    pub(super) fn row(&self, slot: u32) -> u32 {
        self.texts[slot as usize].row
    }

    /// The id in the cache of the vector in a slot.
    pub(super) fn id(&self, slot: u32) -> i64 {
        self.texts[slot as usize].id
    }

    pub(super) fn has_text(&self, hash: PassageHash) -> bool {
        self.slot_of.contains_key(&hash)
    }

    /// Whether the cache has vectors of texts that no note contains.
    pub(super) fn has_unused(&self) -> bool {
        self.cached > self.embedded()
    }

    pub(super) fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    pub(super) fn coverage(&self) -> Coverage {
        Coverage { passages: self.slot_of.len(), embedded: self.embedded(), full: self.full }
    }

    fn embedded(&self) -> usize {
        self.matrix.as_ref().map_or(0, Matrix::len)
    }

    /// Passages below a grade: of some notes, in their order, or of all notes, the newest first. The cost grows with the
    /// result or with the list of notes, not with the vault.
    pub(super) fn missing(&self, grade: Grade, of: Option<&[NoteKey]>, limit: usize) -> Vec<MissingVector> {
        let mut named = FxHashSet::default();
        let mut of_note = |key: NoteKey| -> Vec<MissingVector> {
            let passages = self.notes[&key].passages.iter().enumerate();
            let texts = passages.map(|(passage, (_, slot))| (passage, *slot, &self.texts[*slot as usize]));
            let below = texts.filter(|(_, slot, text)| text.level < level(grade) && named.insert(*slot));
            below.map(|(passage, _, text)| MissingVector { key, passage, hash: text.hash }).collect()
        };
        match of {
            Some(keys) => {
                let is_below = |key: &NoteKey| {
                    self.notes.get(key).and_then(|note| note.level).is_some_and(|least| least < level(grade))
                };
                keys.iter().copied().filter(is_below).flat_map(&mut of_note).take(limit).collect()
            }
            None => self.newest_below(grade).flat_map(&mut of_note).take(limit).collect(),
        }
    }

    /// The notes with a passage below a grade, newest first.
    fn newest_below(&self, grade: Grade) -> impl Iterator<Item = NoteKey> {
        let mut levels: Vec<_> =
            self.by_level.range(..level(grade)).map(|(_, notes)| notes.iter().peekable()).collect();
        std::iter::from_fn(move || {
            let tops = levels.iter_mut().enumerate().filter_map(|(at, notes)| Some((*notes.peek()?, at)));
            let (_, next) = tops.min()?;
            levels[next].next().map(|(_, key)| *key)
        })
    }

    /// Adds a note or a new version of it. The caller adds it to its level.
    pub(super) fn put_note(&mut self, key: NoteKey, newness: i64, passages: &[ListedPassage]) {
        let passages = passages.iter().map(|passage| {
            let slot = self.slot(passage.hash);
            let text = &mut self.texts[slot as usize];
            let section = SectionRef { key, section: passage.section };
            match text.first {
                None => text.first = Some(section),
                Some(_) => text.others.push(section),
            }
            (passage.section, slot)
        });
        let entry = NoteEntry { newness, level: None, passages: passages.collect() };
        self.remove_note(key);
        self.notes.insert(key, entry);
    }

    /// Adds every note to its level, where none is yet.
    pub(super) fn add_all_to_levels(&mut self) {
        let keys: Vec<NoteKey> = self.notes.keys().copied().collect();
        keys.into_iter().for_each(|key| self.add_to_level(key));
    }

    /// Applies changes of the catalog.
    pub(super) fn apply(&mut self, changes: &[NewPassages]) {
        for change in changes {
            match change {
                NewPassages::Put { key, newness, passages } => {
                    self.put_note(*key, *newness, passages);
                    self.add_to_level(*key);
                }
                NewPassages::Touch { key, newness } => {
                    self.remove_from_level(*key);
                    if let Some(note) = self.notes.get_mut(key) {
                        note.newness = *newness;
                    }
                    self.add_to_level(*key);
                }
                NewPassages::Remove { key } => self.remove_note(*key),
            }
        }
        // At the end, since a moved note is removed under one key and put under another.
        self.drop_orphans();
    }

    /// Adds or replaces vectors, `new` of which the cache did not have before.
    pub(super) fn put_vectors(&mut self, vectors: &[CachedVector], new: usize) {
        self.cached += new;
        let mut changed = BTreeSet::new();
        for vector in vectors {
            if let Some(slot) = self.put_vector(vector) {
                changed.extend(self.sections(slot).map(|section| section.key));
            }
        }
        for key in changed {
            self.remove_from_level(key);
            self.add_to_level(key);
        }
    }

    /// Adds or replaces a vector and returns its slot; `None` if no note contains its text. The levels of notes stay as they
    /// are.
    pub(super) fn put_vector(&mut self, vector: &CachedVector) -> Option<u32> {
        let slot = *self.slot_of.get(&vector.hash)?;
        let text = &mut self.texts[slot as usize];
        let matrix = self.matrix.get_or_insert_with(|| Matrix::new(vector.coarse.len()));
        if text.level == 0 {
            text.row = matrix.push(slot, vector.grade, vector.scale, &vector.coarse);
        } else {
            matrix.replace(text.row, vector.grade, vector.scale, &vector.coarse);
        }
        self.full += usize::from(is_full(level(vector.grade)));
        self.full -= usize::from(is_full(text.level));
        (text.level, text.id) = (level(vector.grade), vector.id);
        Some(slot)
    }

    /// The slot of a text; a new text gets one.
    fn slot(&mut self, hash: PassageHash) -> u32 {
        *self.slot_of.entry(hash).or_insert_with(|| {
            let text = Text { hash, level: 0, row: 0, id: 0, first: None, others: Vec::new() };
            if let Some(slot) = self.free_slots.pop() {
                self.texts[slot as usize] = text;
                slot
            } else {
                self.texts.push(text);
                u32::try_from(self.texts.len() - 1).expect("fewer than 2^32 texts fit into memory")
            }
        })
    }

    fn remove_note(&mut self, key: NoteKey) {
        self.remove_from_level(key);
        let Some(note) = self.notes.remove(&key) else { return };
        for (section, slot) in note.passages {
            let text = &mut self.texts[slot as usize];
            let removed = SectionRef { key, section };
            if text.first == Some(removed) {
                text.first = text.others.pop();
            } else if let Some(at) = text.others.iter().position(|other| *other == removed) {
                text.others.swap_remove(at);
            }
            if text.first.is_none() {
                self.orphans.push(slot);
            }
        }
    }

    fn drop_orphans(&mut self) {
        for slot in std::mem::take(&mut self.orphans) {
            let text = &mut self.texts[slot as usize];
            // A note may contain it again, or its slot may be free already.
            if text.first.is_some() || self.slot_of.get(&text.hash) != Some(&slot) {
                continue;
            }
            let (hash, level, row) = (text.hash, text.level, text.row);
            if level > 0
                && let Some(matrix) = &mut self.matrix
                && let Some(moved) = matrix.remove(row)
            {
                self.texts[moved as usize].row = row;
            }
            self.full -= usize::from(is_full(level));
            self.slot_of.remove(&hash);
            self.free_slots.push(slot);
        }
    }

    fn remove_from_level(&mut self, key: NoteKey) {
        let Some(note) = self.notes.get_mut(&key) else { return };
        let Some(level) = note.level.take() else { return };
        let Some(notes) = self.by_level.get_mut(&level) else { return };
        notes.remove(&(Reverse(note.newness), key));
        if notes.is_empty() {
            self.by_level.remove(&level);
        }
    }

    /// Adds a note to the lowest level of its passages.
    fn add_to_level(&mut self, key: NoteKey) {
        let Some(note) = self.notes.get_mut(&key) else { return };
        note.level = note.passages.iter().map(|(_, slot)| self.texts[*slot as usize].level).min();
        if let Some(level) = note.level {
            self.by_level.entry(level).or_default().insert((Reverse(note.newness), key));
        }
    }
}
