//! Search by title, tag and line: substring matching that counts matching lines.
//!
//! Opening 100,000 files takes seconds, so the lines are indexed in memory, in segments of neighbouring slots, by the first
//! search or ahead of it by a background task. After a change only the changed files are read. The store keeps the segments
//! for the next start.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rayon::prelude::*;

use super::line_segment::LineSegment;
use super::word_line_index::LineQuery;
use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::NoteKey;
use crate::parse::{decode, text_start};
use crate::ports::{NoteStore, StoreError, VaultFiles};

const MAX_EXCERPTS: usize = 3;

/// How long a search reads lines while the vault is still being indexed.
const PARTIAL_PATIENCE: Duration = Duration::from_secs(2);

/// Segments beyond this many bytes are not cached: every search builds them again.
const MAX_CACHED_BYTES: usize = 512 << 20;

/// The cached segments.
#[derive(Debug, Default)]
pub struct LineIndex {
    segments: Mutex<CachedSegments>,
    /// Held while segments are stored or forgotten; locked before `segments`.
    storing: Mutex<()>,
}

#[derive(Debug, Default)]
struct CachedSegments {
    by_number: Vec<LineSegment>,
    /// Counts calls of [`LineIndex::forget`]: segments that were begun before one are not cached.
    generation: u64,
}

/// Where segments are built from.
#[derive(Clone, Copy)]
pub(super) struct LineSources<'a> {
    pub(super) vault: &'a dyn VaultFiles,
    pub(super) store: &'a dyn NoteStore,
    pub(super) snapshot: &'a Snapshot,
}

/// A note that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMatch {
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
        let query = LineQuery::new(query);
        if query.is_empty() {
            return (Vec::new(), 0);
        }
        // While the vault is read, an answer covers a part of it anyway, and a client must not wait for all lines read so far.
        let until = (!self.wait_ready(Duration::ZERO)).then(|| Instant::now() + PARTIAL_PATIENCE);
        let segments = self.lines.updated(self.line_sources(snapshot), until);
        let by_segment: Vec<Vec<(NoteKey, usize)>> =
            segments.par_iter().map(|segment| segment.matches(snapshot, &query)).collect();
        let mut found = by_segment.concat();
        let total = found.len();
        if limit < total {
            // By score alone first: only notes with the lowest score that counts are compared by place.
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

    /// Builds the line index ahead of the first search, and stores it. `goes_on` is asked before each segment.
    pub fn read_lines_ahead(&self, goes_on: impl Fn() -> bool) -> Result<(), StoreError> {
        let snapshot = self.snapshot();
        for number in 0..LineSegment::count(&snapshot) {
            if !goes_on() || !self.lines.fill(self.line_sources(&snapshot), number) {
                break;
            }
            self.store_lines()?;
        }
        Ok(())
    }

    /// Builds the whole line index with every core, and stores it, so that the first search of the next process need not.
    pub fn build_lines(&self) -> Result<(), StoreError> {
        let snapshot = self.snapshot();
        self.lines.updated(self.line_sources(&snapshot), None);
        self.store_lines()
    }

    /// Stores the segments of the line index that the store does not have, for the next start.
    pub fn store_lines(&self) -> Result<(), StoreError> {
        self.lines.store(&*self.store)
    }

    fn line_sources<'a>(&'a self, snapshot: &'a Snapshot) -> LineSources<'a> {
        LineSources { vault: &*self.vault, store: &*self.store, snapshot }
    }

    fn excerpts(&self, snapshot: &Snapshot, key: NoteKey, query: &LineQuery) -> Vec<String> {
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

impl LineIndex {
    /// All segments of a snapshot. Two searches may build the same segment; one of the two is cached.
    /// Segments not begun in time are returned as they were last.
    fn updated(&self, sources: LineSources<'_>, until: Option<Instant>) -> Vec<LineSegment> {
        let (known, generation) = self.cached();
        let empty = LineSegment::default();
        let segments: Vec<LineSegment> = (0..LineSegment::count(sources.snapshot))
            .into_par_iter()
            .map(|number| {
                let known = known.get(number).unwrap_or(&empty);
                let is_late = until.is_some_and(|until| Instant::now() >= until);
                if is_late { known.clone() } else { known.updated(sources, number) }
            })
            .collect();
        let is_new =
            known.len() != segments.len() || known.iter().zip(&segments).any(|(before, now)| !before.is_same(now));
        let mut cached = self.segments.lock();
        if is_new && cached.generation == generation {
            let mut room = MAX_CACHED_BYTES;
            let within = |segment: &&LineSegment| {
                room = room.saturating_sub(segment.bytes());
                room > 0
            };
            cached.by_number = segments.iter().take_while(within).cloned().collect();
        }
        segments
    }

    /// Builds and caches one segment after the ones before it; `false` when the cache is full.
    fn fill(&self, sources: LineSources<'_>, number: usize) -> bool {
        let (known, generation) = self.cached();
        let segment = known.get(number).cloned().unwrap_or_default().updated(sources, number);
        let mut cached = self.segments.lock();
        let before: usize = cached.by_number.iter().take(number).map(LineSegment::bytes).sum();
        if before + segment.bytes() >= MAX_CACHED_BYTES {
            return false;
        }
        if cached.generation != generation {
            return true;
        }
        if number < cached.by_number.len() {
            cached.by_number[number] = segment;
        } else if number == cached.by_number.len() {
            cached.by_number.push(segment);
        }
        // Else the vault shrank meanwhile, and a search removed segments.
        true
    }

    fn cached(&self) -> (Vec<LineSegment>, u64) {
        let cached = self.segments.lock();
        (cached.by_number.clone(), cached.generation)
    }

    fn store(&self, store: &dyn NoteStore) -> Result<(), StoreError> {
        let _storing = self.storing.lock();
        let (segments, _) = self.cached();
        (0..).zip(segments).try_for_each(|(number, segment)| segment.store(store, number))
    }

    /// Drops every segment, then has the store delete its own: the words of a redacted note must not be stored again.
    pub(crate) fn forget<T>(&self, scrub: impl FnOnce() -> T) -> T {
        let _storing = self.storing.lock();
        let mut cached = self.segments.lock();
        cached.by_number.clear();
        cached.generation += 1;
        drop(cached);
        scrub()
    }
}
