//! An index from each different word of some notes to its lines.
//!
//! A query may match inside a word, so the list of words is scanned. It is many times shorter than the text.

use std::cmp::Reverse;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memmem;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::line_set::{LineSet, lines_in};
use super::varint::{Varints, push_varint};
use crate::index::Snapshot;
use crate::model::{Note, NoteKey, VaultPath, fold};
use crate::parse::{decode, text_start};
use crate::ports::{FileContent, VaultFiles};

/// Bytes of `words` for each entry of `blocks`.
const BLOCK: usize = 64;

const TITLE_SCORE: usize = 10;
const TAG_SCORE: usize = 5;
const LINE_SCORE: usize = 1;

/// From `a` to `z`.
const LETTERS: usize = 26;

/// The first byte of an encoded index. To be raised when the encoding, [`fold`] or [`words`] change.
const FORMAT: u8 = 1;

/// The words of some notes and their lines.
#[derive(Debug, Default)]
pub(super) struct WordLineIndex {
    /// Every different word, folded, each followed by a line break; those without an ASCII character last.
    words: String,
    /// Where the words without an ASCII character start.
    without_ascii: usize,
    /// Where each word starts in `words`, and where the last one ends.
    starts: Vec<usize>,
    /// For each block of `words`, the word of its first byte: finds the word of a hit in a few steps.
    blocks: Vec<u32>,
    /// Where the lines of each word start in `lines`, and where those of the last one end.
    uses: Vec<usize>,
    /// The lines of each word in turn, see [`lines_in`].
    lines: Vec<u8>,
    /// For each letter from `a` to `z`, the set of lines that have it: a query of one letter would match most words.
    letters: Vec<u8>,
    notes: Vec<IndexedNote>,
    /// Whether the store has it.
    is_stored: AtomicBool,
}

/// A note of the index. Lines are numbered through the whole index: the note's title, each tag, then the lines of its text
/// that have words.
#[derive(Debug)]
pub(super) struct IndexedNote {
    key: NoteKey,
    /// Held, so that an equal address means the same version. `None` when the file was newer than the note, or the note
    /// changed since the index was stored: the next search reads it again.
    version: Option<Arc<Note>>,
    start: u32,
    tags_start: u32,
    text_start: u32,
    end: u32,
}

impl IndexedNote {
    fn is_current(&self, note: &Arc<Note>) -> bool {
        self.version.as_ref().is_some_and(|version| Arc::ptr_eq(version, note))
    }

    /// Whether the snapshot has this version.
    pub(super) fn is_in(&self, snapshot: &Snapshot) -> bool {
        snapshot.in_slot(self.key).is_some_and(|note| self.is_current(note))
    }

    /// The score of its lines that are in the set.
    fn score(&self, lines: &LineSet) -> usize {
        TITLE_SCORE * lines.count(self.start..self.tags_start)
            + TAG_SCORE * lines.count(self.tags_start..self.text_start)
            + LINE_SCORE * lines.count(self.text_start..self.end)
    }
}

impl WordLineIndex {
    /// Indexes notes, in order of slots. Reads only the files of notes that the older index has in another version.
    pub(super) fn new(vault: &dyn VaultFiles, notes: &[(NoteKey, &Arc<Note>)], older: &Self) -> Self {
        let missing = older.missing(notes.iter().copied());
        let missing: Vec<&VaultPath> = missing.iter().map(|(_, note)| &note.path).collect();
        let mut contents = vault.read_in_batches(&missing);
        let mut builder = Builder::default();
        let mut known = older.notes.iter().peekable();
        // The new number of each line of the older index.
        let mut moved = vec![None; older.line_count() as usize];
        for &(key, note) in notes {
            while known.next_if(|member| member.key < key).is_some() {}
            match known.peek().filter(|member| member.key == key && member.is_current(note)) {
                Some(member) => {
                    let start = builder.line;
                    let places = moved[member.start as usize..member.end as usize].iter_mut();
                    places.zip(start..).for_each(|(place, line)| *place = Some(line));
                    let shift = |line: u32| line - member.start + start;
                    builder.line = shift(member.end);
                    builder.notes.push(IndexedNote {
                        key,
                        version: Some(note.clone()),
                        start,
                        tags_start: shift(member.tags_start),
                        text_start: shift(member.text_start),
                        end: builder.line,
                    });
                }
                None => builder.add(key, note, contents.next().and_then(Result::ok).flatten()),
            }
        }
        builder.copy_unchanged(older, &moved);
        builder.finish()
    }

    /// How many notes it has, in whatever version.
    pub(super) fn len(&self) -> usize {
        self.notes.len()
    }

    /// The notes, in order of slots, that it does not have in this version.
    pub(super) fn missing<'n>(
        &self,
        notes: impl Iterator<Item = (NoteKey, &'n Arc<Note>)>,
    ) -> Vec<(NoteKey, &'n Arc<Note>)> {
        let mut known = self.notes.iter().peekable();
        notes
            .filter(|(key, note)| {
                while known.next_if(|member| member.key < *key).is_some() {}
                !known.peek().is_some_and(|member| member.key == *key && member.is_current(note))
            })
            .collect()
    }

    /// The memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.words.len()
            + (self.starts.len() + self.uses.len()) * size_of::<usize>()
            + self.blocks.len() * size_of::<u32>()
            + self.lines.len()
            + self.letters.len()
            + self.notes.len() * size_of::<IndexedNote>()
    }

    /// The notes with a title, tag or line that has every word of the query, with their scores.
    pub(super) fn matches(&self, query: &LineQuery, admits: impl Fn(&IndexedNote) -> bool) -> Vec<(NoteKey, usize)> {
        let mut matching: Option<LineSet> = None;
        for word in &query.words {
            let mut lines = LineSet::new(self.line_count());
            self.add_lines(word, &mut lines);
            if let Some(before) = &matching {
                lines.keep_only(before);
            }
            if lines.is_empty() {
                return Vec::new();
            }
            matching = Some(lines);
        }
        let Some(matching) = matching else { return Vec::new() };
        let scored = self.notes.iter().map(|member| (member, member.score(&matching)));
        scored
            .filter(|(member, score)| *score > 0 && admits(member))
            .map(|(member, score)| (member.key, score))
            .collect()
    }

    /// Adds every line with a word that contains the text.
    fn add_lines(&self, wanted: &memmem::Finder<'_>, found: &mut LineSet) {
        if let [letter @ b'a'..=b'z'] = wanted.needle() {
            let length = LineSet::bytes_of(self.line_count());
            let start = usize::from(letter - b'a') * length;
            return found.add(&self.letters[start..start + length]);
        }
        let has_ascii = wanted.needle().iter().any(u8::is_ascii);
        let bytes = if has_ascii { &self.words.as_bytes()[..self.without_ascii] } else { self.words.as_bytes() };
        let mut from = 0;
        while let Some(hit) = wanted.find(&bytes[from..]).map(|at| from + at) {
            let mut word = self.blocks[hit / BLOCK] as usize;
            while self.starts[word + 1] <= hit {
                word += 1;
            }
            found.add(&self.lines[self.uses[word]..self.uses[word + 1]]);
            from = self.starts[word + 1];
        }
    }

    fn line_count(&self) -> u32 {
        self.notes.last().map_or(0, |member| member.end)
    }

    /// Every word with its lines.
    fn words(&self) -> impl Iterator<Item = (&str, Vec<u32>)> {
        let lines = self.uses.windows(2).map(|ends| lines_in(&self.lines[ends[0]..ends[1]], self.line_count()));
        self.starts.windows(2).map(|ends| &self.words[ends[0]..ends[1] - 1]).zip(lines)
    }
}

/// The index as bytes, for the next start.
impl WordLineIndex {
    pub(super) fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Relaxed)
    }

    pub(super) fn set_stored(&self) {
        self.is_stored.store(true, Ordering::Relaxed);
    }

    /// The notes, the words, the length of each word's lines, the lines, the letters.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.push(FORMAT);
        push_varint(&mut bytes, self.notes.len() as u64);
        for note in &self.notes {
            push_varint(&mut bytes, u64::from(note.key.0));
            bytes.extend_from_slice(&note.version.as_deref().map_or(0, stamp).to_le_bytes());
            push_varint(&mut bytes, u64::from(note.text_start - note.tags_start));
            push_varint(&mut bytes, u64::from(note.end - note.text_start));
        }
        push_varint(&mut bytes, self.without_ascii as u64);
        push_varint(&mut bytes, self.words.len() as u64);
        bytes.extend_from_slice(self.words.as_bytes());
        self.uses.windows(2).for_each(|ends| push_varint(&mut bytes, (ends[1] - ends[0]) as u64));
        push_varint(&mut bytes, self.lines.len() as u64);
        bytes.extend_from_slice(&self.lines);
        bytes.extend_from_slice(&self.letters);
        bytes
    }

    /// The index that was encoded. Notes that the snapshot has in another version count as not indexed. `None` if the bytes
    /// are of another format or damaged.
    pub(super) fn decode(bytes: &[u8], snapshot: &Snapshot) -> Option<Self> {
        let mut rest = Varints(bytes.strip_prefix(&[FORMAT])?);
        let count = rest.next_length()?;
        let mut notes: Vec<IndexedNote> = Vec::with_capacity(count.min(bytes.len()));
        for _ in 0..count {
            let key = NoteKey(u32::try_from(rest.next()?).ok()?);
            let stored = u64::from_le_bytes(rest.take(8)?.try_into().ok()?);
            let version = snapshot.in_slot(key).filter(|note| stamp(note) == stored).cloned();
            let start = notes.last().map_or(0, |last| last.end);
            let tags_start = start.checked_add(1)?;
            let text_start = tags_start.checked_add(u32::try_from(rest.next()?).ok()?)?;
            let end = text_start.checked_add(u32::try_from(rest.next()?).ok()?)?;
            if notes.last().is_some_and(|last| last.key >= key) {
                return None;
            }
            notes.push(IndexedNote { key, version, start, tags_start, text_start, end });
        }
        let without_ascii = rest.next_length()?;
        let length = rest.next_length()?;
        let words = String::from_utf8(rest.take(length)?.to_vec()).ok()?;
        let ends_word = |at: usize| at == 0 || words.as_bytes().get(at - 1) == Some(&b'\n');
        if !ends_word(without_ascii) || !ends_word(words.len()) {
            return None;
        }
        let breaks = memchr::memchr_iter(b'\n', words.as_bytes()).map(|at| at + 1);
        let starts: Vec<usize> = std::iter::once(0).chain(breaks).collect();
        let mut uses = Vec::with_capacity(starts.len());
        let mut end = 0_usize;
        uses.push(end);
        for _ in 1..starts.len() {
            end = end.checked_add(rest.next_length()?)?;
            uses.push(end);
        }
        let length = rest.next_length()?;
        let lines = rest.take(length)?.to_vec();
        let line_count = notes.last().map_or(0, |last| last.end);
        let letters = rest.0.to_vec();
        let is_whole = end == lines.len() && letters.len() == LETTERS * LineSet::bytes_of(line_count);
        let blocks = blocks(&starts);
        let is_stored = AtomicBool::new(true);
        is_whole.then_some(Self { words, without_ascii, starts, blocks, uses, lines, letters, notes, is_stored })
    }
}

/// Differs between two versions of a note whose lines differ, except by chance.
fn stamp(note: &Note) -> u64 {
    let tags = note
        .tags
        .iter()
        .map(|tag| FxBuildHasher.hash_one(&tag.folded))
        .fold(0, |sum: u64, tag| sum.rotate_left(5) ^ tag);
    FxBuildHasher.hash_one((note.hash.0, &note.title, tags))
}

/// An index being built.
#[derive(Default)]
struct Builder {
    /// The id of each word by its hash, or by the next free number. A note may have millions of different words, and a key for
    /// each in memory of its own would take several times the note's size.
    ids: FxHashMap<u64, u32>,
    /// The words, one after the other.
    text: String,
    /// Where each word ends in `text`, by its id.
    ends: Vec<usize>,
    /// For each word the last line it was added to, so that each line has it once.
    last_line: Vec<u32>,
    /// Pairs of word and line.
    uses: Vec<(u32, u32)>,
    notes: Vec<IndexedNote>,
    /// The next line's number.
    line: u32,
}

impl Builder {
    /// Adds a note and the present content of its file. A file that cannot be read still has its title and tags.
    fn add(&mut self, key: NoteKey, note: &Arc<Note>, content: Option<FileContent>) {
        let start = self.line;
        self.push_line(&fold(&note.title));
        // A title or tag without words still is a line: the scores go by line numbers.
        self.line = start + 1;
        let tags_start = self.line;
        for (tag, line) in note.tags.iter().zip(tags_start..) {
            self.push_line(&tag.folded);
            self.line = line + 1;
        }
        let text_start = self.line;
        let version = content.as_ref().filter(|content| content.hash == note.hash).map(|_| note.clone());
        if let Some(content) = content {
            let text = decode(content.bytes);
            fold(&text[self::text_start(text.as_bytes())..]).split('\n').for_each(|line| self.push_line(line));
        }
        let end = self.line;
        self.notes.push(IndexedNote { key, version, start, tags_start, text_start, end });
    }

    /// Adds a folded line, unless it has no words.
    fn push_line(&mut self, line: &str) {
        let mut has_words = false;
        for word in words(line) {
            has_words = true;
            let id = self.id(word);
            let last_line = &mut self.last_line[id as usize];
            if *last_line != self.line {
                *last_line = self.line;
                self.uses.push((id, self.line));
            }
        }
        self.line += u32::from(has_words);
    }

    /// Copies the words of lines that did not change.
    fn copy_unchanged(&mut self, older: &WordLineIndex, moved: &[Option<u32>]) {
        for (word, lines) in older.words() {
            let mut id = None;
            for line in lines.iter().filter_map(|line| *moved.get(*line as usize)?) {
                let id = *id.get_or_insert_with(|| self.id(word));
                self.uses.push((id, line));
            }
        }
    }

    fn id(&mut self, word: &str) -> u32 {
        let mut key = FxBuildHasher.hash_one(word);
        while let Some(id) = self.ids.get(&key).copied() {
            if self.word(id) == word {
                return id;
            }
            key = key.wrapping_add(1);
        }
        let id = self.last_line.len() as u32;
        self.ids.insert(key, id);
        self.text += word;
        self.ends.push(self.text.len());
        self.last_line.push(u32::MAX);
        id
    }

    fn word(&self, id: u32) -> &str {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.text[start..self.ends[id]]
    }

    /// The words in order, where each starts, where those without an ASCII character start, and the place of each word by its id.
    fn ordered_words(&mut self) -> (String, Vec<usize>, usize, Vec<u32>) {
        self.ids = FxHashMap::default();
        let count = self.ends.len();
        let has_ascii = |id: &u32| self.word(*id).bytes().any(|byte| byte.is_ascii());
        let ids = || 0..count as u32;
        let (mut words, mut starts) = (String::with_capacity(self.text.len() + count), Vec::with_capacity(count + 1));
        let mut places = vec![0; count];
        let mut without_ascii = 0;
        for is_ascii in [true, false] {
            without_ascii = words.len();
            for id in ids().filter(|id| has_ascii(id) == is_ascii) {
                places[id as usize] = starts.len() as u32;
                starts.push(words.len());
                words += self.word(id);
                words.push('\n');
            }
        }
        starts.push(words.len());
        (self.text, self.ends) = Default::default();
        (words, starts, without_ascii, places)
    }

    fn finish(mut self) -> WordLineIndex {
        let (words, starts, without_ascii, places) = self.ordered_words();
        let (by_word, ends) = self.lines_by_word(&places);
        let mut uses = Vec::with_capacity(starts.len());
        let mut lines = Vec::new();
        let mut letters = vec![LineSet::new(self.line); LETTERS];
        for (word, ends) in starts.windows(2).zip(ends.windows(2)) {
            uses.push(lines.len());
            LineSet::encode(&by_word[ends[0]..ends[1]], self.line, &mut lines);
            let mut known = 0_u32;
            for letter in words[word[0]..word[1]].bytes().filter(u8::is_ascii_lowercase).map(|byte| byte - b'a') {
                if known & 1 << letter == 0 {
                    known |= 1 << letter;
                    letters[usize::from(letter)].add(&lines[uses[uses.len() - 1]..]);
                }
            }
        }
        uses.push(lines.len());
        lines.shrink_to_fit();
        let letters = letters.iter().flat_map(LineSet::to_bytes).collect();
        let blocks = blocks(&starts);
        let is_stored = AtomicBool::new(false);
        WordLineIndex { words, without_ascii, starts, blocks, uses, lines, letters, notes: self.notes, is_stored }
    }

    /// The lines of each word in turn, rising, and where those of each word start.
    fn lines_by_word(&mut self, places: &[u32]) -> (Vec<u32>, Vec<usize>) {
        let mut starts = vec![0_usize; places.len() + 1];
        self.uses.iter().for_each(|(word, _)| starts[places[*word as usize] as usize + 1] += 1);
        for word in 1..starts.len() {
            starts[word] += starts[word - 1];
        }
        let mut next = starts.clone();
        let mut lines = vec![0; self.uses.len()];
        for (word, line) in std::mem::take(&mut self.uses) {
            let next = &mut next[places[word as usize] as usize];
            lines[*next] = line;
            *next += 1;
        }
        // Those of an older index come after the lines of changed notes.
        for ends in starts.windows(2).filter(|ends| !lines[ends[0]..ends[1]].is_sorted()).collect::<Vec<_>>() {
            lines[ends[0]..ends[1]].sort_unstable();
        }
        (lines, starts)
    }
}

/// For each block of the words, the word of its first byte.
fn blocks(starts: &[usize]) -> Vec<u32> {
    let mut blocks = Vec::with_capacity(starts.last().map_or(0, |end| end / BLOCK + 1));
    for (word, ends) in (0..).zip(starts.windows(2)) {
        while blocks.len() * BLOCK < ends[1] {
            blocks.push(word);
        }
    }
    blocks
}

/// The words of a query, folded. A text that has the whole query has every word of it, so the words are enough.
pub(super) struct LineQuery {
    /// The longest first: it is the rarest, and without a hit the others are not searched.
    words: Vec<memmem::Finder<'static>>,
}

impl LineQuery {
    pub(super) fn new(text: &str) -> Self {
        let folded = fold(text);
        let mut words: Vec<&str> = words(&folded).collect();
        words.sort_by_key(|word| (Reverse(word.len()), *word));
        words.dedup();
        Self { words: words.into_iter().map(|word| memmem::Finder::new(word).into_owned()).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether an unfolded line has every word.
    pub(super) fn is_in(&self, line: &str) -> bool {
        let folded = fold(line);
        self.words.iter().all(|wanted| words(&folded).any(|word| wanted.find(word.as_bytes()).is_some()))
    }
}

/// The words of a folded line. Dashes and underscores read as spaces, so that `getting-started` is found by its words.
fn words(folded: &str) -> impl Iterator<Item = &str> {
    folded.split(|c: char| c.is_whitespace() || c == '-' || c == '_').filter(|word| !word.is_empty())
}
