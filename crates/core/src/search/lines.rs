//! Documents by title, tag and line: plain substring matching that counts every line, so that a reader can see why.
//!
//! Opening 100,000 files takes seconds, so the folded text of every note is kept after the first search. It lies in shelves
//! of neighbouring slots, each one long text that is scanned from hit to hit. A shelf is made anew when one of its notes
//! has another version; only the files of those notes are read.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use rayon::prelude::*;

use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::{Note, NoteKey, fold};
use crate::parse::{decode, text_start};
use crate::ports::VaultFiles;

const TITLE_SCORE: usize = 10;
const TAG_SCORE: usize = 5;
const LINE_SCORE: usize = 1;
const MAX_EXCERPTS: usize = 3;

/// Slots on one shelf: what a changed note costs to copy, against what a search pays for each shelf.
const SHELF: usize = 512;

/// Text beyond this many bytes is not kept, and read again by every search.
const KEPT_BYTES: usize = 512 << 20;

/// The folded text of notes that were searched before.
#[derive(Debug, Default)]
pub struct Lines {
    shelves: Mutex<Vec<Arc<Shelf>>>,
}

/// A document that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMatch {
    /// Which.
    pub key: NoteKey,
    /// Ten for the title, five for each tag, one for each line.
    pub score: usize,
    /// The first matching lines, each with its neighbours.
    pub excerpts: Vec<String>,
}

impl Knowledge {
    /// Every file whose title, tags or lines have the whole query or every word of it, best first, ties by id and path.
    /// Excerpts are made for the first `limit` only; the second value counts all that matched.
    pub fn search_lines(&self, snapshot: &Arc<Snapshot>, query: &str, limit: usize) -> (Vec<LineMatch>, usize) {
        let query = Query::new(query);
        if query.words.is_empty() {
            return (Vec::new(), 0);
        }
        let shelves = self.lines.shelves(&*self.vault, snapshot);
        let mut found: Vec<(Reverse<usize>, u32, NoteKey)> = shelves
            .par_iter()
            .flat_map_iter(|shelf| shelf.matches(&query))
            .map(|(key, score)| (Reverse(score), snapshot.place(key), key))
            .collect();
        let total = found.len();
        if limit < total {
            found.select_nth_unstable(limit);
            found.truncate(limit);
        }
        found.sort_unstable();
        let with_excerpts = |&(Reverse(score), _, key): &(Reverse<usize>, u32, NoteKey)| LineMatch {
            key,
            score,
            excerpts: self.excerpts(snapshot, key, &query),
        };
        (found.par_iter().map(with_excerpts).collect(), total)
    }

    fn excerpts(&self, snapshot: &Snapshot, key: NoteKey, query: &Query) -> Vec<String> {
        let note = snapshot.note(key);
        let Ok(Some(content)) = self.vault.read(&note.path) else { return Vec::new() };
        let text = decode(content.bytes);
        let lines: Vec<&str> = text[text_start(text.as_bytes())..].lines().collect();
        let matching = lines.iter().enumerate().filter(|(_, line)| query.is_in(&spaced(&fold(line))));
        matching
            .take(MAX_EXCERPTS)
            .map(|(number, _)| {
                lines[number.saturating_sub(1)..(number + 2).min(lines.len())].join("\n").trim().to_owned()
            })
            .collect()
    }
}

impl Lines {
    /// The text of every file of a snapshot. Two searches may fill the same shelf; both are right, and one is kept.
    fn shelves(&self, vault: &dyn VaultFiles, snapshot: &Snapshot) -> Vec<Arc<Shelf>> {
        let kept = || self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().clone();
        let shelves: Vec<Arc<Shelf>> = (0..snapshot.slots().div_ceil(SHELF))
            .into_par_iter()
            .map(|number| match known.get(number) {
                Some(shelf) if shelf.is_of(snapshot, number) => shelf.clone(),
                older => Arc::new(Shelf::new(vault, snapshot, number, older.map(|shelf| &**shelf))),
            })
            .collect();
        let is_new = known.len() != shelves.len() || known.iter().zip(&shelves).any(|(a, b)| !Arc::ptr_eq(a, b));
        if is_new {
            let mut room = KEPT_BYTES;
            let within = |shelf: &&Arc<Shelf>| {
                let bytes = shelf.text.len();
                room = room.saturating_sub(bytes);
                room > 0
            };
            *kept() = shelves.iter().take_while(within).cloned().collect();
        }
        shelves
    }
}

/// The folded text of neighbouring slots.
///
/// Of each note a line with its title, a line for each tag, then its body.
#[derive(Debug, Default)]
struct Shelf {
    text: String,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    key: NoteKey,
    /// Held, so that the same place in memory means the same version.
    note: Arc<Note>,
    start: usize,
    tags_start: usize,
    body_start: usize,
    end: usize,
    /// A file that was already newer when it was read is read again by the next search.
    is_of_note: bool,
}

impl Shelf {
    fn new(vault: &dyn VaultFiles, snapshot: &Snapshot, number: usize, older: Option<&Self>) -> Self {
        let mut shelf = Self::default();
        let mut known = older.map_or(&[][..], |older| &older.members).iter().peekable();
        for (key, note) in snapshot.in_slots(slots(number)) {
            while known.next_if(|member| member.key < key).is_some() {}
            let same = known.peek().filter(|member| member.key == key && member.is_current(note));
            let body = match same.zip(older) {
                Some((member, older)) => Ok(&older.text[member.body_start..member.end]),
                None => Err(body_of(vault, note)),
            };
            shelf.push(key, note, body);
        }
        shelf.text.shrink_to_fit();
        shelf
    }

    /// Adds a note with its body, kept from before or just read.
    fn push(&mut self, key: NoteKey, note: &Arc<Note>, body: Result<&str, (String, bool)>) {
        let start = self.text.len();
        self.push_line(&note.title);
        let tags_start = self.text.len();
        for tag in &note.tags {
            self.push_line(&tag.folded);
        }
        let body_start = self.text.len();
        let is_of_note = match body {
            Ok(known) => {
                self.text += known;
                true
            }
            Err((read, is_of_note)) => {
                self.text += &read;
                is_of_note
            }
        };
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let end = self.text.len();
        self.members.push(Member { key, note: note.clone(), start, tags_start, body_start, end, is_of_note });
    }

    fn push_line(&mut self, text: &str) {
        self.text += &spaced(&fold(text)).replace(['\n', '\r'], " ");
        self.text.push('\n');
    }

    fn is_of(&self, snapshot: &Snapshot, number: usize) -> bool {
        let mut members = self.members.iter();
        snapshot
            .in_slots(slots(number))
            .all(|(key, note)| members.next().is_some_and(|member| member.key == key && member.is_current(note)))
            && members.next().is_none()
    }

    /// The notes that match, each with its score.
    fn matches(&self, query: &Query) -> Vec<(NoteKey, usize)> {
        let mut found: Vec<(NoteKey, usize)> = Vec::new();
        let mut members = self.members.iter().peekable();
        query.matching_lines(&self.text, |line_start| {
            while members.next_if(|member| member.end <= line_start).is_some() {}
            let Some(member) = members.peek() else { return };
            debug_assert!(member.start <= line_start, "members follow each other without a gap");
            let score = match line_start {
                at if at < member.tags_start => TITLE_SCORE,
                at if at < member.body_start => TAG_SCORE,
                _ => LINE_SCORE,
            };
            match found.last_mut() {
                Some((key, sum)) if *key == member.key => *sum += score,
                _ => found.push((member.key, score)),
            }
        });
        found
    }
}

fn slots(shelf: usize) -> Range<usize> {
    shelf * SHELF..(shelf + 1) * SHELF
}

impl Member {
    fn is_current(&self, note: &Arc<Note>) -> bool {
        self.is_of_note && Arc::ptr_eq(&self.note, note)
    }
}

/// A body as it is compared, and whether it is that of the note's version. A file that cannot be read has none: its title
/// and tags still match.
fn body_of(vault: &dyn VaultFiles, note: &Note) -> (String, bool) {
    let Ok(Some(content)) = vault.read(&note.path) else { return (String::new(), false) };
    let is_of_note = content.hash == note.hash;
    let text = decode(content.bytes);
    (spaced(&fold(&text[text_start(text.as_bytes())..])), is_of_note)
}

/// What is looked for, folded. A text that has the whole query has every word of it, so the words are all we need.
struct Query {
    /// The longest first: it is looked for, the others only where it is found.
    words: Vec<memmem::Finder<'static>>,
}

impl Query {
    fn new(text: &str) -> Self {
        let folded = spaced(&fold(text));
        let mut words: Vec<&str> = folded.split_whitespace().collect();
        words.sort_by_key(|word| (Reverse(word.len()), *word));
        words.dedup();
        Self { words: words.into_iter().map(|word| memmem::Finder::new(word).into_owned()).collect() }
    }

    fn is_in(&self, folded: &str) -> bool {
        self.words.iter().all(|word| word.find(folded.as_bytes()).is_some())
    }

    /// Tells where each matching line starts. Jumps from hit to hit of the longest word; most lines are never looked at.
    fn matching_lines(&self, folded: &str, mut tell: impl FnMut(usize)) {
        let bytes = folded.as_bytes();
        let Some((longest, others)) = self.words.split_first() else { return };
        let mut from = 0;
        while let Some(hit) = longest.find(&bytes[from..]).map(|at| from + at) {
            let start = memchr::memrchr(b'\n', &bytes[from..hit]).map_or(from, |at| from + at + 1);
            let end = memchr::memchr(b'\n', &bytes[hit..]).map_or(bytes.len(), |at| hit + at + 1);
            if others.iter().all(|word| word.find(&bytes[start..end]).is_some()) {
                tell(start);
            }
            from = end;
        }
    }
}

/// Dashes and underscores read as spaces, so that `getting-started` is found by its words.
fn spaced(folded: &str) -> String {
    folded.replace(['-', '_'], " ")
}
