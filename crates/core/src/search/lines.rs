//! Documents by title, tag and line: plain substring matching that counts every line, so that a reader can see why.
//!
//! Opening 100,000 files takes seconds, so what their lines say is kept, in bays of neighbouring slots: filled by the first
//! search, or ahead of it by whoever has time. Of a note that has another version since, only its file is read.

use std::cmp::Reverse;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rayon::prelude::*;

use super::bay::Bay;
use super::shelf::Query;
use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::NoteKey;
use crate::parse::{decode, text_start};
use crate::ports::VaultFiles;

const MAX_EXCERPTS: usize = 3;

/// Bays beyond this many bytes are not kept, and filled again by every search.
const KEPT_BYTES: usize = 512 << 20;

/// What the lines of notes say that were searched before.
#[derive(Debug, Default)]
pub struct Lines {
    bays: Mutex<Vec<Bay>>,
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
        let bays = self.lines.bays(&*self.vault, snapshot);
        let of_bays: Vec<Vec<(NoteKey, usize)>> = bays.par_iter().map(|bay| bay.matches(snapshot, &query)).collect();
        let mut found = of_bays.concat();
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

    /// Reads what the lines of every note say, so that the first search need not; `goes_on` is asked between two bays.
    pub fn read_lines_ahead(&self, goes_on: impl Fn() -> bool) {
        let snapshot = self.snapshot();
        for number in 0..Bay::count(&snapshot) {
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
    fn kept(&self) -> MutexGuard<'_, Vec<Bay>> {
        // Whole bays are put there, so a panic leaves none half filled.
        self.bays.lock()
    }

    /// The lines of every file of a snapshot. Two searches may fill the same bay; both are right, and one is kept.
    fn bays(&self, vault: &dyn VaultFiles, snapshot: &Snapshot) -> Vec<Bay> {
        let known = self.kept().clone();
        let empty = Bay::default();
        let bays: Vec<Bay> = (0..Bay::count(snapshot))
            .into_par_iter()
            .map(|number| known.get(number).unwrap_or(&empty).at(vault, snapshot, number))
            .collect();
        let is_new = known.len() != bays.len() || known.iter().zip(&bays).any(|(before, now)| !before.is(now));
        if is_new {
            let mut room = KEPT_BYTES;
            let within = |bay: &&Bay| {
                room = room.saturating_sub(bay.bytes());
                room > 0
            };
            *self.kept() = bays.iter().take_while(within).cloned().collect();
        }
        bays
    }

    /// Fills one bay, those before it being full; `false` where there is no room for it.
    fn fill(&self, vault: &dyn VaultFiles, snapshot: &Snapshot, number: usize) -> bool {
        let known = self.kept().get(number).cloned().unwrap_or_default();
        let bay = known.at(vault, snapshot, number);
        let mut kept = self.kept();
        if kept.iter().take(number).map(Bay::bytes).sum::<usize>() + bay.bytes() >= KEPT_BYTES {
            return false;
        }
        if number < kept.len() {
            kept[number] = bay;
        } else if number == kept.len() {
            kept.push(bay);
        }
        // Else the vault has shrunk meanwhile, and a search has found out.
        true
    }
}
