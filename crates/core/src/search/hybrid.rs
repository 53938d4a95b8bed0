//! One ranking from three: words, meaning and links. Every part of a score is kept, so that a hit can be explained.
//!
//! Words and meaning are scaled before they are added. Words: the score of a section divided by the geometric mean of the best
//! section's score and the highest possible one, so that a section with half the words has half the score even if it is the
//! best. Meaning: the cosine above that of unrelated texts. Their weighted sum beats either alone, and reciprocal rank fusion, on
//! every judged set in English (docs/search.md).
//!
//! A note whose name is the query always comes first.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Knowledge;
use crate::graph::nearness;
use crate::index::Snapshot;
use crate::model::{LinkType, NoteKey};
use crate::ports::{Grade, NoteSet, RankedText, Role, StoreError, VectorHit, VectorQuery};

/// Sections taken from each ranking: enough that good hits of one are in the other.
const CANDIDATES: usize = 300;

/// The weight of meaning, for a text that the model understands; the rest is that of words.
const MEANING: f32 = 0.6;

/// The weight of coarse vectors against full ones, for an English query. Other languages then use words alone: on Japanese,
/// coarse vectors rank far below full ones (docs/search.md).
const COARSE: f32 = 0.6;

/// The least share of Latin letters for which coarse vectors count: a question in another script may have a name in Latin ones.
const ENGLISH: f32 = 0.5;

/// The least cosine of a section without any of the words, above that of unrelated texts.
const NEARER_BY: f32 = 0.08;

/// The least cosine of the best section where no section has any of the words, so that nothing else supports the match. The
/// builtin model puts nonsense (`zzqqxx flurbl`, `zzzzq`) as near as 0.63 to a section, and unrelated texts at 0.5. Coarse
/// vectors can put nonsense above this limit; a question in other words than the notes use must be found from the start, too.
const ALONE_NEARER_BY: f32 = 0.16;

/// The weight of links to the best hits: enough to break ties, too little to lift unrelated notes.
const LINKS: f32 = 0.06;

/// The number of best notes from which nearness is computed.
const SOURCES: usize = 8;

/// The highest score. Scores are integers in thousandths, so that shown parts add up and equal scores are equal.
const WHOLE: u32 = 1000;

/// Notes of one name that get different scores, most linked first: the most that one answer has.
const NAMED_APART: u32 = 50;

/// A search for notes.
#[derive(Debug, Clone)]
pub struct NoteSearch<'a> {
    /// As typed.
    pub text: &'a str,
    /// At most this many notes.
    pub limit: usize,
    /// The most links between a note and the best hits for it to count as near.
    pub depth: usize,
    /// The types of links that count; empty for all.
    pub link_types: &'a [LinkType],
    /// The rankings that count.
    pub by: RankingSources,
}

/// The rankings that count in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankingSources {
    /// Words, meaning and links.
    Everything,
    /// Words and links, as without an embedder.
    Words,
    /// Meaning alone: the score is the cosine.
    Meaning,
}

impl<'a> NoteSearch<'a> {
    /// A search for the best notes, with links of all types.
    pub fn new(text: &'a str, limit: usize) -> Self {
        Self { text, limit, depth: 2, link_types: &[], by: RankingSources::Everything }
    }
}

/// The result of a search.
#[derive(Debug)]
pub struct SearchResults {
    /// The vault they were found in.
    pub snapshot: Arc<Snapshot>,
    /// Best first, ties by id.
    pub found: Vec<FoundNote>,
    /// The number of all notes found, beyond the limit too.
    pub total: usize,
    /// Whether meaning was used.
    pub by_meaning: bool,
    /// Why meaning was not used, or only in part, although there is an embedder.
    pub degraded: Option<String>,
    /// That the order may change while full vectors replace coarse ones.
    pub provisional: Option<String>,
}

/// One note found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundNote {
    /// The note.
    pub key: NoteKey,
    /// Thousandths by words.
    pub words: u32,
    /// Thousandths by meaning.
    pub meaning: u32,
    /// Thousandths by links to the best hits.
    pub links: u32,
    /// Whether its title, an alias or its file stem is the query.
    pub is_named: bool,
    /// Its matching sections, best first.
    pub sections: Vec<FoundSection>,
}

/// One section found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundSection {
    /// Its index in the note's sections.
    pub section: usize,
    /// By words and meaning.
    pub score: f32,
    /// By words.
    pub words: f32,
    /// By meaning.
    pub meaning: f32,
}

impl FoundNote {
    /// The sum of its parts, at most a thousand.
    pub fn score(&self) -> u32 {
        self.words + self.meaning + self.links
    }

    /// Sets the sum: raises words, or lowers all parts in proportion.
    fn set_score(&mut self, score: u32) {
        let now = self.score();
        if score < now {
            self.meaning = self.meaning * score / now;
            self.links = self.links * score / now;
        }
        self.words = score - self.meaning - self.links;
    }
}

impl Knowledge {
    /// Searches by words, meaning and links. Without an embedder, or when it fails, by words and links.
    pub fn search(&self, search: &NoteSearch<'_>) -> Result<SearchResults, StoreError> {
        let (near, degraded) = match search.by {
            RankingSources::Words => (None, None),
            RankingSources::Everything | RankingSources::Meaning => self.close_in_meaning(search.text),
        };
        let provisional = near.as_ref().filter(|_| degraded.is_none()).and_then(|near| self.provisional(near));
        let meaning_only = search.by == RankingSources::Meaning && near.is_some();
        let words = if meaning_only { RankedText::default() } else { self.rank_text(search.text, CANDIDATES)? };
        // Taken after both rankings, so that it has every note they found, or the note is deleted.
        let snapshot = self.snapshot();
        let by_meaning = near.is_some();
        let worth = match (&near, &self.meaning) {
            (Some(_), _) if meaning_only => 1.0,
            (Some(near), Some(meaning)) => {
                MEANING * worth_on(search.text, meaning.embedder.worth_beyond_english(), full_share(near))
            }
            _ => 0.0,
        };
        let unrelated = if meaning_only { 0.0 } else { self.unrelated() };
        let near = near.unwrap_or_default();
        let least = match () {
            () if meaning_only => f32::NEG_INFINITY,
            () if words.hits.is_empty() && !is_evidence(&near, unrelated) => f32::INFINITY,
            () => unrelated + NEARER_BY,
        };
        let sections = weighed(&words, &near, worth, unrelated, least);
        let mut notes = notes_of(sections);
        // Drops notes and sections that were deleted meanwhile.
        notes.retain_mut(|(key, best)| {
            let count = snapshot.get(*key).map_or(0, |note| note.sections.len());
            best.retain(|found| found.section < count);
            !best.is_empty()
        });
        let near = if meaning_only { FxHashMap::default() } else { near_the_best(&snapshot, &notes, search) };
        let links = if meaning_only { 0.0 } else { LINKS };
        let mut found: Vec<FoundNote> =
            notes.into_iter().map(|(key, sections)| found(key, sections, links, near.get(&key).copied())).collect();
        let named = snapshot.named(search.text);
        put_named_first(&snapshot, &mut found, named);
        found.sort_by_key(|found| (Reverse(found.score()), snapshot.place(found.key)));
        let total = found.len();
        found.truncate(search.limit);
        Ok(SearchResults { snapshot, found, total, by_meaning, degraded, provisional })
    }

    /// The note closest in meaning to a text, among some notes, with its cosine.
    pub fn closest(&self, text: &str, among: &NoteSet) -> Result<Option<(NoteKey, f32)>, super::EmbeddingFailed> {
        let Some(meaning) = &self.meaning else { return Ok(None) };
        let vector = meaning.embedder.embed(Role::Query, &[text])?.pop().unwrap_or_default();
        let calibration = meaning.embedder.coarse_calibration();
        let space = meaning.embedder.space();
        let query = VectorQuery { calibration, among: Some(among), ..VectorQuery::new(space, &vector, 1) };
        let near = meaning.vectors.nearest(&query)?;
        Ok(near.first().map(|hit| (hit.key, hit.similarity)))
    }

    fn provisional(&self, near: &[VectorHit]) -> Option<String> {
        if near.iter().all(|hit| hit.grade >= Grade::FULL) {
            return None;
        }
        let coverage = self.coverage()?.ok()?;
        let (full, passages) = (coverage.full, coverage.passages);
        Some(format!("the order of results may still change: {full} of {passages} passages have full vectors so far"))
    }

    pub(crate) fn unrelated(&self) -> f32 {
        self.meaning.as_ref().map_or(0.0, |meaning| meaning.embedder.unrelated())
    }

    /// The sections closest in meaning, or why there are none.
    fn close_in_meaning(&self, text: &str) -> (Option<Vec<VectorHit>>, Option<String>) {
        let Some(meaning) = &self.meaning else { return (None, None) };
        let vector = match meaning.embedder.embed(Role::Query, &[text]) {
            Ok(mut vectors) => vectors.pop().unwrap_or_default(),
            Err(error) => return (None, Some(format!("searched by words alone: {error}"))),
        };
        let space = meaning.embedder.space();
        let calibration = meaning.embedder.coarse_calibration();
        let query = VectorQuery { calibration, ..VectorQuery::new(space, &vector, CANDIDATES) };
        match meaning.vectors.nearest(&query) {
            Ok(near) => {
                let coverage = meaning.vectors.coverage(space).unwrap_or_default();
                let missing = coverage.passages - coverage.embedded.min(coverage.passages);
                // A few that are being embedded right now need no remark.
                let degraded = (missing * 20 > coverage.passages).then(|| {
                    format!(
                        "{} of {} passages are embedded so far; the others were found by words alone",
                        coverage.embedded, coverage.passages
                    )
                });
                (Some(near), degraded)
            }
            Err(error) => (None, Some(format!("searched by words alone: {error}"))),
        }
    }
}

/// Whether sections close in meaning are a match although no section has any of the words.
fn is_evidence(near: &[VectorHit], unrelated: f32) -> bool {
    near.iter().any(|hit| hit.similarity >= unrelated + ALONE_NEARER_BY)
}

/// The share of full vectors among the closest: one weight for the whole ranking, so that no note gains by its vector's grade.
fn full_share(near: &[VectorHit]) -> f32 {
    let full = near.iter().filter(|hit| hit.grade >= Grade::FULL).count();
    if near.is_empty() { 1.0 } else { full as f32 / near.len() as f32 }
}

/// How well the vectors represent a query: 1 for Latin letters and full vectors.
fn worth_on(text: &str, beyond_english: f32, full: f32) -> f32 {
    let beyond_english = beyond_english * full;
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let (latin, all) = letters.fold((0_u32, 0_u32), |(latin, all), c| (latin + u32::from(c < '\u{250}'), all + 1));
    if all == 0 {
        return beyond_english;
    }
    let share = latin as f32 / all as f32;
    let coarse = if share < ENGLISH { 0.0 } else { COARSE };
    let english = coarse * (1.0 - full) + full;
    share * english + (1.0 - share) * beyond_english
}

/// The sections of both rankings with both parts of their scores, without those that have none of the words and a cosine below
/// `least_alone`.
fn weighed(
    words: &RankedText,
    near: &[VectorHit],
    worth: f32,
    unrelated: f32,
    least_alone: f32,
) -> Vec<(NoteKey, FoundSection)> {
    let best = words.hits.first().map_or(0.0, |hit| hit.score);
    let scale = (best * words.most.max(best)).sqrt();
    let meaning_of = |similarity: f32| worth * ((similarity - unrelated) / (1.0 - unrelated)).clamp(0.0, 1.0);
    // Sections that are not among the closest are at most as close as the last of them.
    let least = near.last().filter(|_| near.len() >= CANDIDATES).map_or(0.0, |hit| meaning_of(hit.similarity));
    let mut sections: FxHashMap<(NoteKey, usize), (f32, f32)> = FxHashMap::default();
    for hit in near {
        sections.insert((hit.key, hit.section), (0.0, meaning_of(hit.similarity)));
    }
    for hit in &words.hits {
        let share = (1.0 - worth) * (hit.score / scale).min(1.0);
        sections.entry((hit.key, hit.section)).or_insert((0.0, least)).0 = share;
    }
    for hit in near.iter().filter(|hit| worth == 0.0 || hit.similarity < least_alone) {
        if sections.get(&(hit.key, hit.section)).is_some_and(|(words, _)| *words == 0.0) {
            sections.remove(&(hit.key, hit.section));
        }
    }
    let section =
        |((key, section), (words, meaning))| (key, FoundSection { section, score: words + meaning, words, meaning });
    sections.into_iter().map(section).collect()
}

/// Sections by their notes, best first.
fn notes_of(sections: Vec<(NoteKey, FoundSection)>) -> Vec<(NoteKey, Vec<FoundSection>)> {
    let mut by_note: FxHashMap<NoteKey, Vec<FoundSection>> = FxHashMap::default();
    for (key, section) in sections {
        by_note.entry(key).or_default().push(section);
    }
    let mut notes: Vec<(NoteKey, Vec<FoundSection>)> = by_note.into_iter().collect();
    for (_, sections) in &mut notes {
        sections.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.section.cmp(&b.section)));
    }
    notes
}

/// How near notes are to the best ones along links.
fn near_the_best(
    snapshot: &Snapshot,
    notes: &[(NoteKey, Vec<FoundSection>)],
    search: &NoteSearch<'_>,
) -> FxHashMap<NoteKey, f32> {
    let mut best: Vec<(NoteKey, f32)> = notes.iter().map(|(key, sections)| (*key, sections[0].score)).collect();
    best.sort_by_key(|(key, score)| (Reverse(score.to_bits()), snapshot.place(*key)));
    best.truncate(SOURCES);
    nearness(&best, search.depth, |key| neighbours(snapshot, key, search.link_types), |key| snapshot.place(key))
}

/// A note with the score of its best section, scaled down by the weight of links, and its links score.
fn found(key: NoteKey, sections: Vec<FoundSection>, links: f32, nearness: Option<f32>) -> FoundNote {
    let thousandths = |part: f32| (part * WHOLE as f32).round() as u32;
    let best = sections[0];
    let mut found = FoundNote {
        key,
        words: thousandths(best.words * (1.0 - links)),
        meaning: thousandths(best.meaning * (1.0 - links)),
        links: thousandths(links * nearness.unwrap_or_default()),
        is_named: false,
        sections,
    };
    // Three rounded parts may add up to more.
    found.set_score(found.score().min(WHOLE));
    found
}

/// Puts the notes whose name is the query first, most linked first.
fn put_named_first(snapshot: &Snapshot, found: &mut Vec<FoundNote>, mut named: Vec<NoteKey>) {
    if named.is_empty() {
        return;
    }
    named.sort_by_key(|key| (Reverse(snapshot.graph().incoming(*key).len()), snapshot.place(*key)));
    let is_named: FxHashSet<NoteKey> = named.iter().copied().collect();
    let (known, mut others): (Vec<FoundNote>, Vec<FoundNote>) =
        std::mem::take(found).into_iter().partition(|found| is_named.contains(&found.key));
    let mut known: FxHashMap<NoteKey, FoundNote> = known.into_iter().map(|found| (found.key, found)).collect();
    let mut first: Vec<FoundNote> =
        named.iter().map(|key| known.remove(key).unwrap_or_else(|| by_name_alone(snapshot, *key))).collect();
    // Each a thousandth above the next, up to `NAMED_APART`; the others are scaled to lie below.
    let places_from_top = |place: usize| u32::try_from(place).unwrap_or(u32::MAX).min(NAMED_APART);
    let last = first.len() - 1;
    let room = WHOLE - places_from_top(last) - 1;
    let best = others.iter().map(FoundNote::score).max().unwrap_or_default();
    if best > room {
        others.iter_mut().for_each(|found| found.set_score(found.score() * room / best));
    }
    let mut below = best.min(room);
    for (place, found) in first.iter_mut().enumerate().rev() {
        let step = u32::from(place < NAMED_APART as usize || place == last);
        below = found.score().max(below + step).min(WHOLE - places_from_top(place));
        found.set_score(below);
        found.is_named = true;
    }
    found.extend(first);
    found.extend(others);
}

/// A note found by its name only, with its first section.
fn by_name_alone(snapshot: &Snapshot, key: NoteKey) -> FoundNote {
    let beginning = FoundSection { section: 0, score: 0.0, words: 0.0, meaning: 0.0 };
    let sections = snapshot.note(key).sections.first().map(|_| beginning).into_iter().collect();
    FoundNote { key, words: 0, meaning: 0, links: 0, is_named: true, sections }
}

fn neighbours(snapshot: &Snapshot, key: NoteKey, link_types: &[LinkType]) -> Vec<NoteKey> {
    let graph = snapshot.graph();
    if link_types.is_empty() {
        return graph.out(key).iter().chain(graph.incoming(key)).copied().collect();
    }
    let mut neighbours: Vec<NoteKey> = snapshot
        .typed_links(key)
        .into_iter()
        .chain(snapshot.typed_backlinks(key))
        .filter(|(_, link_type)| link_types.contains(link_type))
        .map(|(other, _)| other)
        .collect();
    neighbours.sort_unstable();
    neighbours.dedup();
    neighbours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_vectors_count_for_queries_that_are_mostly_in_latin_letters() {
        assert_eq!(worth_on("how to export", 0.2, 0.0), COARSE);
        assert_eq!(worth_on("PDFに書き出す方法", 0.2, 0.0), 0.0);
        assert!((worth_on("PDFに書き出す方法", 0.2, 1.0) - (3.0 + 7.0 * 0.2) / 10.0).abs() < 1e-6);
        assert_eq!((worth_on("how to export", 0.2, 1.0), worth_on("書き出す", 0.2, 1.0)), (1.0, 0.2));
    }
}
