//! Notes that a new one may duplicate: with the same title, or nearly the same text.
//!
//! Titles are compared in memory. For texts, the index names a few candidates by rare words, and only these are read.

use rustc_hash::FxHashSet;

use super::sentences::plain_text;
use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::{Note, NoteKey, VaultPath, fold};
use crate::ports::StoreError;
use crate::search::words::{folded, words};

/// Sections that the index names, and notes of theirs that are compared by text.
const RANKED_SECTIONS: usize = 20;
const CANDIDATES: usize = 3;

/// Bytes of a text that are compared: its beginning tells a copy.
const MAX_BYTES: usize = 20_000;

/// Words of the query for candidates.
const QUERY_WORDS: usize = 6;

/// The fewest words of a text that is compared: shorter ones are alike by chance.
const LEAST_WORDS: usize = 40;

/// Words of a shingle, and the share of common shingles from which texts are nearly the same.
const SHINGLE: usize = 4;
const ALIKE: f64 = 0.6;

/// Names that more notes have are a convention of the vault, such as `index`.
const MAX_SAME_NAME: usize = 2;

/// Titles that say nothing.
const GENERIC: [&str; 12] = [
    "index",
    "_index",
    "readme",
    "home",
    "untitled",
    "overview",
    "notes",
    "todo",
    "changelog",
    "about",
    "template",
    "inbox",
];

/// A note that another one may duplicate.
#[derive(Debug, Clone, PartialEq)]
pub struct LikelyDuplicate {
    /// The other note.
    pub note: NoteKey,
    /// Why.
    pub kind: DuplicateKind,
}

/// What two notes have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DuplicateKind {
    /// The title, ignoring case.
    Title,
    /// This share of the text.
    Text(f64),
}

impl Knowledge {
    /// The notes that a note, which may not be made yet, may duplicate, surest first; `body` is its text.
    pub fn likely_duplicates(
        &self,
        snapshot: &Snapshot,
        note: &Note,
        body: &str,
    ) -> Result<Vec<LikelyDuplicate>, StoreError> {
        let mut found = self.with_same_text(snapshot, snapshot.find_exact(&note.path), body)?;
        for note in with_same_title(snapshot, note) {
            if found.iter().all(|known| known.note != note) {
                found.push(LikelyDuplicate { note, kind: DuplicateKind::Title });
            }
        }
        Ok(found)
    }

    fn with_same_text(
        &self,
        snapshot: &Snapshot,
        own: Option<NoteKey>,
        body: &str,
    ) -> Result<Vec<LikelyDuplicate>, StoreError> {
        let Some(text) = Shingles::of(body) else { return Ok(Vec::new()) };
        let ranked = self.rank_text(&text.rare_words.join(" "), RANKED_SECTIONS)?;
        let mut seen: FxHashSet<NoteKey> = FxHashSet::from_iter(own);
        let candidates = ranked.hits.into_iter().map(|hit| hit.key).filter(|other| seen.insert(*other));
        let candidates: Vec<NoteKey> =
            candidates.filter(|other| snapshot.get(*other).is_some()).take(CANDIDATES).collect();
        let bodies = self.bodies(snapshot, &candidates);
        let mut found: Vec<LikelyDuplicate> = candidates
            .into_iter()
            .zip(bodies)
            .filter_map(|(note, body)| {
                let share = Shingles::of(&body?)?.share(&text);
                (share >= ALIKE).then_some(LikelyDuplicate { note, kind: DuplicateKind::Text(share) })
            })
            .collect();
        let share = |duplicate: &LikelyDuplicate| match duplicate.kind {
            DuplicateKind::Text(share) => share,
            DuplicateKind::Title => 0.0,
        };
        found.sort_by(|a, b| share(b).total_cmp(&share(a)));
        Ok(found)
    }
}

/// The notes with the title of a note, unless it is a convention: many have it, or the folders mirror each other.
fn with_same_title(snapshot: &Snapshot, note: &Note) -> Vec<NoteKey> {
    let folder_name = |path: &VaultPath| path.folder().rsplit('/').next().unwrap_or_default().to_owned();
    let title = fold(note.title.trim());
    if GENERIC.contains(&title.as_str()) || !title.chars().any(char::is_alphabetic) {
        return Vec::new();
    }
    let has_title = |other: &NoteKey| {
        let other = snapshot.note(*other);
        other.path != note.path && fold(other.title.trim()) == title
    };
    let others: Vec<NoteKey> = snapshot.named(&note.title).into_iter().filter(has_title).collect();
    let is_mirror = |other: &NoteKey| {
        let other_path = &snapshot.note(*other).path;
        fold(other_path.stem()) == fold(note.path.stem()) && folder_name(other_path) == folder_name(&note.path)
    };
    if others.len() > MAX_SAME_NAME {
        return Vec::new();
    }
    let mut others: Vec<NoteKey> = others.into_iter().filter(|other| !is_mirror(other)).collect();
    others.sort_by_key(|other| snapshot.place(*other));
    others
}

/// A text for the comparison.
struct Shingles {
    hashes: FxHashSet<u64>,
    /// The longest words, which are rarest.
    rare_words: Vec<String>,
}

impl Shingles {
    /// `None` if the text is too short.
    fn of(body: &str) -> Option<Self> {
        use std::hash::BuildHasher;
        let plain = plain_text(&body[..body.floor_char_boundary(MAX_BYTES)]);
        let found: Vec<String> = words(&plain).map(|word| folded(word.text)).collect();
        if found.len() < LEAST_WORDS {
            return None;
        }
        let hasher = rustc_hash::FxBuildHasher;
        let hashes = found.windows(SHINGLE).map(|shingle| hasher.hash_one(shingle)).collect();
        let mut rare_words: Vec<String> = found.into_iter().collect::<FxHashSet<_>>().into_iter().collect();
        rare_words.sort_by(|a, b| b.chars().count().cmp(&a.chars().count()).then_with(|| a.cmp(b)));
        rare_words.truncate(QUERY_WORDS);
        Some(Self { hashes, rare_words })
    }

    /// The share of common shingles among all of both (Jaccard).
    fn share(&self, other: &Self) -> f64 {
        let common = self.hashes.intersection(&other.hashes).count() as f64;
        common / self.hashes.union(&other.hashes).count().max(1) as f64
    }
}
