//! One ranking from three: words, meaning and links. Every part of a score is kept, so that a hit can be explained.
//!
//! `fusion` weighs words and meaning; links and names come on top. A note whose name is the query always comes first.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::fusion::{MeaningScale, Similar, Weights, least_alone, weighed};
use crate::Knowledge;
use crate::graph::nearness;
use crate::index::Snapshot;
use crate::model::{LinkType, NoteKey};
use crate::ports::{Grade, NoteSet, RankedText, Role, StoreError, VectorHit, VectorQuery};

/// Sections taken from each ranking: enough that good hits of one are in the other.
const CANDIDATES: usize = 300;

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
    /// How much each ranking counts.
    pub weights: Weights,
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
        Self { text, limit, depth: 2, link_types: &[], by: RankingSources::Everything, weights: Weights::default() }
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
    pub words: f32,
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

/// What is close to a query in meaning.
struct Near {
    /// The query's vector.
    vector: Vec<f32>,
    /// Closest first.
    hits: Vec<VectorHit>,
}

impl Knowledge {
    /// Searches by words, meaning and links. Without an embedder, or when it fails, by words and links.
    pub fn search(&self, search: &NoteSearch<'_>) -> Result<SearchResults, StoreError> {
        let (near, degraded) = match search.by {
            RankingSources::Words => (None, None),
            RankingSources::Everything | RankingSources::Meaning => self.close_in_meaning(search.text),
        };
        let provisional = near.as_ref().filter(|_| degraded.is_none()).and_then(|near| self.provisional(&near.hits));
        let meaning_only = search.by == RankingSources::Meaning && near.is_some();
        let words = if meaning_only { RankedText::default() } else { self.rank_text(search.text, CANDIDATES)? };
        let by_meaning = near.is_some();
        let sections = match near {
            Some(near) => {
                let scale = self.meaning_scale(search, &near, &words, meaning_only);
                weighed(&words, &self.similar(near, &words)?, &scale)
            }
            None => weighed(&words, &Similar::default(), &MeaningScale::NONE),
        };
        // Taken after both rankings, so that it has every note they found, or the note is deleted.
        let snapshot = self.snapshot();
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

    /// How similarities become parts of scores.
    fn meaning_scale(
        &self,
        search: &NoteSearch<'_>,
        near: &Near,
        words: &RankedText,
        meaning_only: bool,
    ) -> MeaningScale {
        let Some(meaning) = self.meaning.as_ref().filter(|_| !meaning_only) else { return MeaningScale::ALONE };
        let unrelated = meaning.embedder.unrelated();
        let beyond_english = meaning.embedder.worth_beyond_english();
        let (hits, has_words) = (&near.hits, !words.hits.is_empty());
        let weight = search.weights.of_meaning(search.text, beyond_english, full_share(hits));
        MeaningScale { weight, unrelated, least_alone: least_alone(hits, unrelated, has_words) }
    }

    /// The closest sections, and how similar those are that only words found.
    fn similar(&self, near: Near, words: &RankedText) -> Result<Similar, StoreError> {
        let mut similar = Similar::new(near.hits);
        let others: Vec<(NoteKey, usize)> = words.hits.iter().map(|hit| (hit.key, hit.section)).collect();
        let others: Vec<_> = others.into_iter().filter(|section| !similar.has(*section)).collect();
        if let Some(meaning) = self.meaning.as_ref().filter(|_| !others.is_empty()) {
            let calibration = meaning.embedder.coarse_calibration();
            let query = VectorQuery { calibration, ..VectorQuery::new(meaning.embedder.space(), &near.vector, 0) };
            let similarities = meaning.vectors.similarities(&query, &others)?;
            similar.add(others.into_iter().zip(similarities));
        }
        Ok(similar)
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
    fn close_in_meaning(&self, text: &str) -> (Option<Near>, Option<String>) {
        let Some(meaning) = &self.meaning else { return (None, None) };
        let vector = match meaning.embedder.embed(Role::Query, &[text]) {
            Ok(mut vectors) => vectors.pop().unwrap_or_default(),
            Err(error) => return (None, Some(format!("searched by words alone: {error}"))),
        };
        let space = meaning.embedder.space();
        let calibration = meaning.embedder.coarse_calibration();
        let query = VectorQuery { calibration, ..VectorQuery::new(space, &vector, CANDIDATES) };
        match meaning.vectors.nearest(&query) {
            Ok(hits) => {
                let coverage = meaning.vectors.coverage(space).unwrap_or_default();
                let missing = coverage.passages - coverage.embedded.min(coverage.passages);
                // A few that are being embedded right now need no remark.
                let degraded = (missing * 20 > coverage.passages).then(|| {
                    format!(
                        "{} of {} passages are embedded so far; the others were found by words alone",
                        coverage.embedded, coverage.passages
                    )
                });
                (Some(Near { vector, hits }), degraded)
            }
            Err(error) => (None, Some(format!("searched by words alone: {error}"))),
        }
    }
}

/// The share of full vectors among the closest: one weight for the whole ranking, so that no note gains by its vector's grade.
fn full_share(near: &[VectorHit]) -> f32 {
    let full = near.iter().filter(|hit| hit.grade >= Grade::FULL).count();
    if near.is_empty() { 1.0 } else { full as f32 / near.len() as f32 }
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
