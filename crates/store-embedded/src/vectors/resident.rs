//! The passages of all notes and the vectors that one space has for them, in memory.
//!
//! A text is held once, however many notes have it. Texts live in slots; notes name them by these.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use quipu_core::model::NoteKey;
use quipu_core::ports::{Coverage, Grade, Lacking, NoteChange, PassageHash};
use rustc_hash::{FxHashMap, FxHashSet};

use super::matrix::Matrix;
use super::passage_list::ListedPassage;

/// What is in memory of one space.
pub(super) struct Resident {
    space: String,
    /// `None` as long as the space has no vector.
    matrix: Option<Matrix>,
    /// Vectors of the space in the cache, used or not.
    cached: usize,
    notes: FxHashMap<NoteKey, NoteEntry>,
    texts: Vec<Text>,
    free_slots: Vec<u32>,
    slot_of: FxHashMap<PassageHash, u32>,
    /// Texts that lost a place and may have none left.
    orphans: Vec<u32>,
    /// Texts with a vector of full grade.
    full: usize,
    /// Notes by how well the least of their passages is embedded, then newest first.
    by_level: BTreeMap<Level, BTreeSet<(Reverse<i64>, NoteKey)>>,
}

/// A vector in the cache, as the scan needs it.
pub(super) struct CachedVector {
    pub(super) hash: PassageHash,
    pub(super) id: i64,
    pub(super) grade: Grade,
    pub(super) scale: f32,
    pub(super) coarse: Vec<i8>,
}

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) key: NoteKey,
    pub(super) section: u32,
}

/// Zero without a vector, else one more than the grade.
type Level = u16;

fn level(grade: Grade) -> Level {
    Level::from(grade.0) + 1
}

fn is_full(of_text: Level) -> bool {
    of_text >= level(Grade::FULL)
}

struct NoteEntry {
    /// See [`quipu_core::model::FileStat::newness`].
    newness: i64,
    /// Under which it is filed; `None` without passages.
    level: Option<Level>,
    /// Sections and slots.
    passages: Box<[(u32, u32)]>,
}

struct Text {
    hash: PassageHash,
    level: Level,
    /// In the matrix and in the cache; of no meaning at level zero.
    row: u32,
    id: i64,
    /// Most texts stand in one place.
    first: Option<Place>,
    others: Vec<Place>,
}

impl Text {
    fn places(&self) -> impl Iterator<Item = Place> {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

impl Resident {
    /// Without any note. `dimensions` and `cached` are those of the space in the cache.
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

    /// Whether a vector of so many dimensions can lie among the others.
    pub(super) fn takes(&self, dimensions: usize) -> bool {
        self.matrix.as_ref().is_none_or(|matrix| matrix.dimensions() == dimensions)
    }

    /// Where the text in a slot stands.
    pub(super) fn places(&self, slot: u32) -> impl Iterator<Item = Place> {
        self.texts[slot as usize].places()
    }

    /// The row of a slot that has one in the matrix.
    pub(super) fn row(&self, slot: u32) -> u32 {
        self.texts[slot as usize].row
    }

    /// What the vector in a slot is called in the cache.
    pub(super) fn id(&self, slot: u32) -> i64 {
        self.texts[slot as usize].id
    }

    pub(super) fn has_text(&self, hash: PassageHash) -> bool {
        self.slot_of.contains_key(&hash)
    }

    /// Whether the cache may have vectors of texts that no note has.
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

    /// Passages below a grade, of the newest notes first. Costs what it finds.
    pub(super) fn lacking(&self, grade: Grade, limit: usize) -> Vec<Lacking> {
        let mut found = Vec::new();
        let mut named = FxHashSet::default();
        let mut levels: Vec<_> =
            self.by_level.range(..level(grade)).map(|(_, notes)| notes.iter().peekable()).collect();
        while let Some((_, next)) =
            levels.iter_mut().enumerate().filter_map(|(at, notes)| Some((*notes.peek()?, at))).min()
        {
            let Some((_, key)) = levels[next].next() else { break };
            for (passage, (_, slot)) in self.notes[key].passages.iter().enumerate() {
                let text = &self.texts[*slot as usize];
                if text.level >= level(grade) || !named.insert(*slot) {
                    continue;
                }
                if found.len() == limit {
                    return found;
                }
                found.push(Lacking { key: *key, passage, hash: text.hash });
            }
        }
        found
    }

    /// Puts a note in, or a new version of it. It is not filed yet.
    pub(super) fn put_note(&mut self, key: NoteKey, newness: i64, passages: &[ListedPassage]) {
        let passages = passages.iter().map(|passage| {
            let slot = self.slot(passage.hash);
            let text = &mut self.texts[slot as usize];
            let place = Place { key, section: passage.section };
            match text.first {
                None => text.first = Some(place),
                Some(_) => text.others.push(place),
            }
            (passage.section, slot)
        });
        let entry = NoteEntry { newness, level: None, passages: passages.collect() };
        self.remove_note(key);
        self.notes.insert(key, entry);
    }

    /// Files all notes, which must not be filed yet.
    pub(super) fn file_all(&mut self) {
        let keys: Vec<NoteKey> = self.notes.keys().copied().collect();
        keys.into_iter().for_each(|key| self.file(key));
    }

    /// Makes changes of the catalog, which brought these passages.
    pub(super) fn follow(&mut self, changes: &[NoteChange<'_>], brought: &[Vec<ListedPassage>]) {
        for (change, passages) in changes.iter().zip(brought) {
            match *change {
                NoteChange::Put { key, note, .. } => {
                    self.put_note(key, note.stat.newness(), passages);
                    self.file(key);
                }
                NoteChange::Touch { key, stat } => {
                    self.unfile(key);
                    if let Some(note) = self.notes.get_mut(&key) {
                        note.newness = stat.newness();
                    }
                    self.file(key);
                }
                NoteChange::Remove { key } => self.remove_note(key),
            }
        }
        // Only now: a note that is moved is removed under one key and put under another.
        self.drop_orphans();
    }

    /// Takes vectors in, `new` of which the cache did not have before.
    pub(super) fn put_vectors(&mut self, vectors: &[CachedVector], new: usize) {
        self.cached += new;
        let mut changed = BTreeSet::new();
        for vector in vectors {
            if let Some(slot) = self.put_vector(vector) {
                changed.extend(self.places(slot).map(|place| place.key));
            }
        }
        for key in changed {
            self.unfile(key);
            self.file(key);
        }
    }

    /// Takes a vector in and says for which slot, unless no note has its text. The notes are not filed anew.
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

    /// The slot of a text, which is made where there is none.
    fn slot(&mut self, hash: PassageHash) -> u32 {
        *self.slot_of.entry(hash).or_insert_with(|| {
            let text = Text { hash, level: 0, row: 0, id: 0, first: None, others: Vec::new() };
            if let Some(slot) = self.free_slots.pop() {
                self.texts[slot as usize] = text;
                slot
            } else {
                self.texts.push(text);
                u32::try_from(self.texts.len() - 1).expect("memory ends before the slots do")
            }
        })
    }

    fn remove_note(&mut self, key: NoteKey) {
        self.unfile(key);
        let Some(note) = self.notes.remove(&key) else { return };
        for (section, slot) in note.passages {
            let text = &mut self.texts[slot as usize];
            let place = Some(Place { key, section });
            if text.first == place {
                text.first = text.others.pop();
            } else if let Some(at) = text.others.iter().position(|other| Some(*other) == place) {
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
            // It may have a place again, or have been dropped before and be free already.
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

    /// Takes a note out of its level.
    fn unfile(&mut self, key: NoteKey) {
        let Some(note) = self.notes.get_mut(&key) else { return };
        let Some(level) = note.level.take() else { return };
        let Some(filed) = self.by_level.get_mut(&level) else { return };
        filed.remove(&(Reverse(note.newness), key));
        if filed.is_empty() {
            self.by_level.remove(&level);
        }
    }

    /// Puts a note into the level of the least of its passages.
    fn file(&mut self, key: NoteKey) {
        let Some(note) = self.notes.get_mut(&key) else { return };
        note.level = note.passages.iter().map(|(_, slot)| self.texts[*slot as usize].level).min();
        if let Some(level) = note.level {
            self.by_level.entry(level).or_default().insert((Reverse(note.newness), key));
        }
    }
}
