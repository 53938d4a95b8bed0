//! Documents by title, tag and line: plain substring matching that counts every line, so that a reader can see why.
//!
//! Opening 100,000 files takes seconds, so what their lines say is kept, in shelves of neighbouring slots: filled by the
//! first search, or ahead of it by whoever has time. A shelf is made anew when one of its notes has another version; only
//! the files of those notes are read.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::shelf::{Query, Shelf};
use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::NoteKey;
use crate::parse::{decode, text_start};
use crate::ports::VaultFiles;

const MAX_EXCERPTS: usize = 3;

/// Shelves beyond this many bytes are not kept, and filled again by every search.
const KEPT_BYTES: usize = 512 << 20;

/// What the lines of notes say that were searched before.
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
        if query.is_empty() {
            return (Vec::new(), 0);
        }
        let shelves = self.lines.shelves(&*self.vault, snapshot);
        let of_shelves: Vec<Vec<(NoteKey, usize)>> = shelves.par_iter().map(|shelf| shelf.matches(&query)).collect();
        let mut found = of_shelves.concat();
        let total = found.len();
        if limit < total {
            // By score alone first, so that only those with the last score that counts need be told apart by their place.
            let last = found.select_nth_unstable_by_key(limit, |(_, score)| Reverse(*score)).1.1;
            found.retain(|(_, score)| *score >= last);
        }
        let mut found: Vec<(Reverse<usize>, u32, NoteKey)> =
            found.into_iter().map(|(key, score)| (Reverse(score), snapshot.place(key), key)).collect();
        found.sort_unstable();
        found.truncate(limit);
        let with_excerpts = |&(Reverse(score), _, key): &(Reverse<usize>, u32, NoteKey)| LineMatch {
            key,
            score,
            excerpts: self.excerpts(snapshot, key, &query),
        };
        (found.par_iter().map(with_excerpts).collect(), total)
    }

    /// Reads what the lines of every note say, so that the first search need not; `goes_on` is asked between two shelves.
    pub fn read_lines_ahead(&self, goes_on: impl Fn() -> bool) {
        let snapshot = self.snapshot();
        for number in 0..Shelf::count(&snapshot) {
            if !goes_on() || !self.lines.fill(&*self.vault, &snapshot, number) {
                return;
            }
        }
    }

    fn excerpts(&self, snapshot: &Snapshot, key: NoteKey, query: &Query) -> Vec<String> {
        let note = snapshot.note(key);
        let Ok(Some(content)) = self.vault.read(&note.path) else { return Vec::new() };
        let text = decode(content.bytes);
        let lines: Vec<&str> = text[text_start(text.as_bytes())..].lines().collect();
        let matching = lines.iter().enumerate().filter(|(_, line)| query.is_in(line));
        matching
            .take(MAX_EXCERPTS)
            .map(|(number, _)| {
                lines[number.saturating_sub(1)..(number + 2).min(lines.len())].join("\n").trim().to_owned()
            })
            .collect()
    }
}

impl Lines {
    fn kept(&self) -> MutexGuard<'_, Vec<Arc<Shelf>>> {
        // Whole shelves are put there, so a panic leaves none half filled.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines of every file of a snapshot. Two searches may fill the same shelf; both are right, and one is kept.
    fn shelves(&self, vault: &dyn VaultFiles, snapshot: &Snapshot) -> Vec<Arc<Shelf>> {
        let known = self.kept().clone();
        let shelves: Vec<Arc<Shelf>> = (0..Shelf::count(snapshot))
            .into_par_iter()
            .map(|number| current(vault, snapshot, number, known.get(number)))
            .collect();
        let is_new = known.len() != shelves.len() || known.iter().zip(&shelves).any(|(a, b)| !Arc::ptr_eq(a, b));
        if is_new {
            let mut room = KEPT_BYTES;
            let within = |shelf: &&Arc<Shelf>| {
                room = room.saturating_sub(shelf.bytes());
                room > 0
            };
            *self.kept() = shelves.iter().take_while(within).cloned().collect();
        }
        shelves
    }

    /// Fills one shelf, those before it being full; `false` where there is no room for it.
    fn fill(&self, vault: &dyn VaultFiles, snapshot: &Snapshot, number: usize) -> bool {
        let known = self.kept().get(number).cloned();
        let shelf = current(vault, snapshot, number, known.as_ref());
        let mut kept = self.kept();
        if kept.iter().take(number).map(|shelf| shelf.bytes()).sum::<usize>() + shelf.bytes() >= KEPT_BYTES {
            return false;
        }
        if number < kept.len() {
            kept[number] = shelf;
        } else if number == kept.len() {
            kept.push(shelf);
        }
        // Else the vault has shrunk meanwhile, and a search has found out.
        true
    }
}

fn current(vault: &dyn VaultFiles, snapshot: &Snapshot, number: usize, known: Option<&Arc<Shelf>>) -> Arc<Shelf> {
    match known {
        Some(shelf) if shelf.is_of(snapshot, number) => shelf.clone(),
        older => Arc::new(Shelf::new(vault, snapshot, number, older.map(|shelf| &**shelf))),
    }
}
