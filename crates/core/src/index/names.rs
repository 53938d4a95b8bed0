//! Notes by name: title, alias or file stem, exact or similar.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Snapshot;
use crate::model::{Note, NoteKey, fold, loose_hash};

/// A note found by a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NameMatch {
    pub key: NoteKey,
    /// 1 for the exact name, else the similarity.
    pub score: f64,
}

/// Every name of every note, and by character bigram the names that have it.
///
/// A query compares only the names that share a bigram: under a millisecond for 100,000 names instead of 30. In parts, since
/// joining them would take half of the time of building the table, on one thread.
#[derive(Debug)]
pub(super) struct NameTable(Vec<NamePart>);

/// The names of some notes.
#[derive(Debug)]
struct NamePart {
    /// In order of ids.
    names: Vec<NoteName>,
    /// Places in `names`, rising.
    with_pair: FxHashMap<Pair, Vec<u32>>,
}

#[derive(Debug)]
struct NoteName {
    key: NoteKey,
    /// Folded.
    text: Box<str>,
    pairs: u32,
}

/// Two neighbouring characters, and in the lowest [`REPEAT_BITS`] how often they occurred in the name before, so that
/// repetitions count. One number, because hashing and sorting these takes most of the time of building the table.
type Pair = u64;

const REPEAT_BITS: u32 = 16;

/// Notes whose names are one part.
const NOTES_A_PART: usize = 8192;

impl NameTable {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let parts = snapshot.order().par_chunks(NOTES_A_PART).with_max_len(1);
        Self(parts.map(|keys| NamePart::new(snapshot, keys)).collect())
    }

    /// The names that share bigrams with these, in order of ids, and how many.
    fn sharing(&self, wanted: &[Pair]) -> impl Iterator<Item = (&NoteName, u32)> {
        self.0.iter().flat_map(|part| part.sharing(wanted))
    }
}

impl NamePart {
    fn new(snapshot: &Snapshot, keys: &[NoteKey]) -> Self {
        let mut part = Self { names: Vec::with_capacity(2 * keys.len()), with_pair: FxHashMap::default() };
        for key in keys {
            let mut folded: Vec<String> = names_of(snapshot.note(*key)).map(fold).collect();
            folded.sort_unstable();
            folded.dedup();
            for name in folded {
                let place = part.names.len() as u32;
                let pairs = pairs(&name);
                part.names.push(NoteName { key: *key, text: name.into(), pairs: pairs.len() as u32 });
                for pair in pairs {
                    part.with_pair.entry(pair).or_default().push(place);
                }
            }
        }
        part
    }

    fn sharing(&self, wanted: &[Pair]) -> impl Iterator<Item = (&NoteName, u32)> {
        let mut shared = vec![0_u32; self.names.len()];
        let mut seen = Vec::new();
        for place in wanted.iter().filter_map(|pair| self.with_pair.get(pair)).flatten() {
            let count = &mut shared[*place as usize];
            if *count == 0 {
                seen.push(*place);
            }
            *count += 1;
        }
        seen.sort_unstable();
        seen.into_iter().map(move |place| (&self.names[place as usize], shared[place as usize]))
    }
}

/// By the hash of each folded name the files that have it, sorted. Hashes may collide: the caller compares the names.
#[derive(Debug)]
pub(super) struct NameHashes(Vec<(u64, NoteKey)>);

impl NameHashes {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let hashes_of = |slot: usize| {
            let key = NoteKey::of_slot(slot);
            let names = snapshot.get(key).into_iter().flat_map(names_of);
            names.map(move |name| (loose_hash(&fold(name)), key)).collect::<Vec<_>>()
        };
        let mut hashes: Vec<(u64, NoteKey)> = (0..snapshot.slots()).into_par_iter().flat_map_iter(hashes_of).collect();
        hashes.par_sort_unstable();
        hashes.dedup();
        Self(hashes)
    }

    pub(super) fn with_hash(&self, hash: u64) -> impl Iterator<Item = NoteKey> {
        let start = self.0.partition_point(|(other, _)| *other < hash);
        self.0[start..].iter().take_while(move |(other, _)| *other == hash).map(|(_, key)| *key)
    }
}

/// The names of a note.
pub(super) fn names_of(note: &Note) -> impl Iterator<Item = &str> {
    [note.title.as_str(), note.path.stem()].into_iter().chain(note.aliases.iter().map(String::as_str))
}

/// The note with this name, ignoring case; the first by id of several.
pub fn exact_match(snapshot: &Snapshot, name: &str, admits: impl Fn(&Note) -> bool) -> Option<NameMatch> {
    let named = snapshot.named(name).into_iter();
    let found = named.filter(|key| admits(snapshot.note(*key)));
    found.min_by_key(|key| snapshot.place(*key)).map(|key| NameMatch { key, score: 1.0 })
}

/// The admitted note with the most similar name; ties by id. Similarity is the Dice coefficient over character bigrams without
/// spaces, or goes by the number of swaps when names differ only by swapped neighbouring letters.
pub fn best_match(
    snapshot: &Snapshot,
    name: &str,
    threshold: f64,
    admits: impl Fn(&Note) -> bool,
) -> Option<NameMatch> {
    if let Some(exact) = exact_match(snapshot, name, &admits) {
        return Some(exact);
    }
    let name = fold(name.trim());
    let wanted = pairs(&name);
    let table = snapshot.name_table();
    let mut best: Option<NameMatch> = None;
    for (candidate, shared) in table.sharing(&wanted) {
        let mut score = dice(shared, wanted.len() as u32, candidate.pairs);
        if candidate.pairs as usize == wanted.len() {
            score = score.max(exchanged(&name, &candidate.text));
        }
        if score >= threshold && score > best.map_or(0.0, |best| best.score) && admits(snapshot.note(candidate.key)) {
            best = Some(NameMatch { key: candidate.key, score });
        }
    }
    best
}

/// The notes with the names most similar to a name or path that no note has, best first; ties by id.
pub fn near_names(snapshot: &Snapshot, name: &str, limit: usize) -> Vec<NoteKey> {
    /// Less similar names would confuse more than help.
    const LIKE_ENOUGH: f64 = 0.4;
    let file_name = name.trim().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let folded = fold(file_name);
    let folded = folded.strip_suffix(".md").unwrap_or(&folded);
    // Comparing takes time by length, and no real name has hundreds of characters.
    if folded.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let wanted = pairs(folded);
    let table = snapshot.name_table();
    let score = |(candidate, shared): (&NoteName, u32)| {
        (dice(shared, wanted.len() as u32, candidate.pairs).max(exchanged(folded, &candidate.text)), candidate.key)
    };
    let alike = table.sharing(&wanted).map(score);
    let mut found: Vec<(f64, NoteKey)> = alike.filter(|(score, _)| *score >= LIKE_ENOUGH).collect();
    // Stable, so ties stay in order of ids.
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut near: Vec<NoteKey> = Vec::new();
    for (_, key) in found {
        if near.len() < limit && !near.contains(&key) {
            near.push(key);
        }
    }
    near
}

/// Longer names are not compared.
const MAX_NAME_BYTES: usize = 1000;

/// Pairs of neighbouring characters, without spaces.
fn pairs(folded: &str) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::with_capacity(folded.len());
    let mut characters = folded.chars().filter(|c| !c.is_whitespace());
    let mut before = characters.next();
    for character in characters {
        pairs.extend(before.map(|before| (u64::from(before) << 24 | u64::from(character)) << REPEAT_BITS));
        before = Some(character);
    }
    pairs.sort_unstable();
    for at in 1..pairs.len() {
        let before = pairs[at - 1];
        // One that occurs more often than the bits can count stays as it is: no name is that long.
        if pairs[at] >> REPEAT_BITS == before >> REPEAT_BITS && (before + 1) >> REPEAT_BITS == before >> REPEAT_BITS {
            pairs[at] = before + 1;
        }
    }
    pairs
}

/// The similarity of two names that differ only by swapped neighbouring letters, else 0. Dice is too strict here: one swap
/// changes three bigrams.
fn exchanged(a: &str, b: &str) -> f64 {
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let (mut at, mut exchanges) = (0, 0_u32);
    while at < a.len().max(b.len()) {
        match (a.get(at..at + 2), b.get(at..at + 2)) {
            _ if a.get(at) == b.get(at) => at += 1,
            (Some([first, second]), Some([third, fourth])) if first == fourth && second == third => {
                exchanges += 1;
                at += 2;
            }
            _ => return 0.0,
        }
    }
    (1.0 - EXCHANGE_COST * f64::from(exchanges) / a.len() as f64).max(0.0)
}

/// The cost of a swap, in letters. A name of five letters with one swap is still above the usual threshold; a shorter one may
/// be another word, as `form` is not `from`.
const EXCHANGE_COST: f64 = 1.5;

fn dice(shared: u32, a: u32, b: u32) -> f64 {
    2.0 * f64::from(shared) / f64::from(a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(a: &str, b: &str) -> f64 {
        let (a, b) = (pairs(a), pairs(b));
        let shared = a.iter().filter(|pair| b.contains(pair)).count();
        dice(shared as u32, a.len() as u32, b.len() as u32)
    }

    #[test]
    fn typo_has_a_similarity_of_two_thirds() {
        let likeness = likeness("chikken", "chicken");
        assert!((likeness - 2.0 / 3.0).abs() < 1e-9, "{likeness}");
    }

    #[test]
    fn repeated_pairs_count_as_often_as_they_occur() {
        assert_eq!(likeness("aaaa", "aa"), 0.5);
        assert_eq!(likeness("aaaa", "aaaa"), 1.0);
    }

    #[test]
    fn transposed_letters_are_similar_and_other_letters_are_not() {
        assert!((exchanged("grpah view", "graph view") - 5.0 / 6.0).abs() < 1e-9);
        assert_eq!(exchanged("grpah", "graph"), 0.7);
        assert!(exchanged("from", "form") < 0.7);
        for (a, b) in [("chikken", "chicken"), ("graph", "graphs"), ("graph", "hparg"), ("ab", "a")] {
            assert_eq!(exchanged(a, b), 0.0, "{a} / {b}");
        }
    }

    #[test]
    fn single_characters_have_no_bigrams() {
        assert!(pairs("a").is_empty());
    }
}
