//! Names that people type to the notes they mean: titles, aliases and file stems, exactly or by likeness.

use rustc_hash::FxHashMap;

use super::Snapshot;
use crate::model::{Note, NoteKey, fold};

/// A note found by a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NameMatch {
    /// Which note.
    pub key: NoteKey,
    /// 1 for the very name, else the likeness.
    pub score: f64,
}

/// Every name of every note with its bigrams sorted, made once for a snapshot.
///
/// Comparing prepared bigrams takes 6 ms for 100,000 names; preparing them at each call took 92.
#[derive(Debug)]
pub(super) struct NameTable {
    /// In the order of ids.
    names: Vec<Name>,
    /// Places in `names`.
    exact: FxHashMap<Box<str>, Vec<usize>>,
}

#[derive(Debug)]
struct Name {
    key: NoteKey,
    folded: Box<str>,
    bigrams: Box<[u64]>,
}

impl NameTable {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let mut names = Vec::new();
        for key in snapshot.notes() {
            let mut folded: Vec<String> = names_of(snapshot.note(key)).map(fold).collect();
            folded.sort_unstable();
            folded.dedup();
            names.extend(folded.into_iter().map(|name| Name {
                key,
                bigrams: bigrams(&name).into(),
                folded: name.into(),
            }));
        }
        let mut exact: FxHashMap<Box<str>, Vec<usize>> = FxHashMap::default();
        for (place, name) in names.iter().enumerate() {
            exact.entry(name.folded.clone()).or_default().push(place);
        }
        Self { names, exact }
    }
}

fn names_of(note: &Note) -> impl Iterator<Item = &str> {
    [note.title.as_str(), note.path.stem()].into_iter().chain(note.aliases.iter().map(String::as_str))
}

/// The note that has just this name, regardless of case; the first by id when several have it.
pub fn exact_match(snapshot: &Snapshot, name: &str, admits: impl Fn(&Note) -> bool) -> Option<NameMatch> {
    let table = snapshot.name_table();
    let mut found = table.exact.get(&*fold(name.trim()))?.iter().map(|place| &table.names[*place]);
    found.find(|name| admits(snapshot.note(name.key))).map(|name| NameMatch { key: name.key, score: 1.0 })
}

/// The note whose name is most alike by the Dice coefficient over character bigrams, spaces left out; ties by id. Every
/// admitted note is compared.
pub fn best_match(
    snapshot: &Snapshot,
    name: &str,
    threshold: f64,
    admits: impl Fn(&Note) -> bool,
) -> Option<NameMatch> {
    if let Some(exact) = exact_match(snapshot, name, &admits) {
        return Some(exact);
    }
    let wanted = bigrams(&fold(name.trim()));
    let mut best: Option<NameMatch> = None;
    for candidate in &snapshot.name_table().names {
        let score = dice(&wanted, &candidate.bigrams);
        if score >= threshold && score > best.map_or(0.0, |best| best.score) && admits(snapshot.note(candidate.key)) {
            best = Some(NameMatch { key: candidate.key, score });
        }
    }
    best
}

/// Pairs of neighbouring characters, sorted, repetitions kept.
fn bigrams(folded: &str) -> Vec<u64> {
    let characters: Vec<u64> = folded.chars().filter(|c| !c.is_whitespace()).map(u64::from).collect();
    let mut pairs: Vec<u64> = characters.windows(2).map(|pair| pair[0] << 32 | pair[1]).collect();
    pairs.sort_unstable();
    pairs
}

fn dice(a: &[u64], b: &[u64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let (mut shared, mut i, mut j) = (0_usize, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (shared, i, j) = (shared + 1, i + 1, j + 1),
        }
    }
    2.0 * shared as f64 / (a.len() + b.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_alike_by_two_thirds() {
        let likeness = dice(&bigrams("chikken"), &bigrams("chicken"));
        assert!((likeness - 2.0 / 3.0).abs() < 1e-9, "{likeness}");
    }

    #[test]
    fn repeated_pairs_count_as_often_as_they_occur() {
        assert_eq!(dice(&bigrams("aaaa"), &bigrams("aa")), 0.5);
    }

    #[test]
    fn one_character_is_like_nothing() {
        assert_eq!(dice(&bigrams("a"), &bigrams("a")), 0.0);
    }
}
