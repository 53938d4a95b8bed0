//! Ranking by words: the score of every section, added up term by term.
//!
//! Each section has an element in an array, and each term adds to the elements of the sections that have it. A query of four
//! words has some forty terms, its forms in every field: reading all their postings once, in order, costs less than seeking in
//! them section by section, and misses nothing.

use quipu_core::model::NoteKey;
use quipu_core::ports::TextHit;
use rustc_hash::FxHashSet;
use tantivy::index::SegmentReader;
use tantivy::query::{Bm25Weight, EnableScoring, Query, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, TERMINATED, Term};

use super::bm25::{self, Occurrence, Occurrences};
use super::query::{Demand, PhraseBonus, QueryLevel, QueryWords, ScoredTerm};
use super::schema::{IndexFields, PLACE, key_and_section};
use super::view::IndexView;

/// The best sections of one reading of a query, by score, then by key and section, and the number of matches. Sections that tie
/// with the last of `limit` are included.
pub(super) fn search(
    level: &QueryLevel,
    named: Option<&dyn Query>,
    limit: usize,
    among: Option<&FxHashSet<NoteKey>>,
    view: &IndexView,
    fields: &IndexFields,
) -> tantivy::Result<(Vec<TextHit>, usize)> {
    let phrases = level.phrases.iter().map(|phrase| view.weight(&**phrase)).collect::<tantivy::Result<Vec<_>>>()?;
    let must = level.must.as_ref().map(|must| must.weight(EnableScoring::disabled_from_searcher(&view.searcher)));
    let (must, named) = (must.transpose()?, named.map(|named| view.weight(named)).transpose()?);
    let mut tallies = tallied(&level.terms, view, fields)?;
    for (tally, (place, _)) in tallies.iter_mut().zip(view.segments()) {
        phrases.iter().try_for_each(|phrase| tally.add(&**phrase))?;
        tally.drop_deleted(view.deleted_in(place));
        must.iter().try_for_each(|must| tally.keep_only(&**must))?;
        if let Some(among) = among {
            tally.keep_among(among)?;
        }
        let matching = tally.matching();
        named.iter().try_for_each(|named| tally.add_where(&matching, &**named))?;
    }
    let total = tallies.iter().map(|tally| tally.matching().len()).sum();
    Ok((best(&tallies, limit)?, total))
}

/// The best sections by their words, by score, then by key and section. Sections that tie with the last of `limit` are included.
/// `most` is the highest possible score.
pub(super) fn rank(
    words: &QueryWords,
    most: f32,
    limit: usize,
    view: &IndexView,
    fields: &IndexFields,
) -> tantivy::Result<Vec<TextHit>> {
    let (scored, demand) = words.terms();
    let mut tallies = tallied(&scored, view, fields)?;
    for (tally, (place, _)) in tallies.iter_mut().zip(view.segments()) {
        tally.drop_deleted(view.deleted_in(place));
    }
    // Having every word is worth more where the words stand together, or in the note's name.
    if let Some(named) = words.named(most, fields) {
        let named = view.weight(&*named)?;
        for tally in &mut tallies {
            let complete = tally.complete(&demand, f32::NEG_INFINITY);
            tally.add_where(&complete, &*named)?;
        }
    }
    let (mut together, mut most_together) = (Vec::new(), 0.0);
    for PhraseBonus { query, terms, factor } in words.phrase_bonuses(fields) {
        if are_all_in(view, &terms)? {
            together.push(view.weight(&*query)?);
            most_together += factor * Bm25Weight::for_terms(view, &terms)?.max_score();
        }
    }
    if !together.is_empty() {
        // A section with a lower score can no longer be among the best.
        let least = least_of_best(&tallies, limit) - most_together;
        for tally in &mut tallies {
            let complete = tally.complete(&demand, least);
            together.iter().try_for_each(|phrase| tally.add_where(&complete, &**phrase))?;
        }
    }
    best(&tallies, limit)
}

fn are_all_in(view: &IndexView, terms: &[Term]) -> tantivy::Result<bool> {
    for term in terms {
        if view.count(term)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The scores of all sections by some terms, deleted sections included.
fn tallied<'v>(
    terms: &[ScoredTerm],
    view: &'v IndexView,
    fields: &IndexFields,
) -> tantivy::Result<Vec<SegmentScores<'v>>> {
    let body = fields.body();
    let fields = fields.words.map(|words| CountedField {
        field: words.field,
        occurrence: Occurrence::new(words, view.mean_length(words.field)),
        is_body: words.field == body,
    });
    let mut tallies: Vec<SegmentScores<'v>> = view.segments().map(|(_, segment)| SegmentScores::new(segment)).collect();
    for term in terms {
        let mut count = 0;
        for tally in &mut tallies {
            count += tally.gather(&term.text, &fields)?;
        }
        let most = term.worth * bm25::most(count, view.sections());
        tallies.iter_mut().for_each(|tally| tally.score(term, most));
    }
    Ok(tallies)
}

/// A field in which occurrences are counted.
struct CountedField {
    field: Field,
    occurrence: Occurrence,
    is_body: bool,
}

/// The scores of the sections of one segment.
struct SegmentScores<'s> {
    segment: &'s SegmentReader,
    /// By document; zero for those that do not match or are deleted.
    scores: Vec<f32>,
    /// The words of each document, as bits; see [`ScoredTerm`].
    found: Vec<u64>,
    /// The documents with the term that is being scored, and how often each document has it; zero for all others.
    having: Vec<DocId>,
    occurrences: Vec<Occurrences>,
}

impl<'s> SegmentScores<'s> {
    fn new(segment: &'s SegmentReader) -> Self {
        let documents = segment.max_doc() as usize;
        let (scores, occurrences) = (vec![0.0; documents], vec![Occurrences::default(); documents]);
        Self { segment, scores, found: vec![0; documents], having: Vec::new(), occurrences }
    }

    /// Reads where a term occurs; the number of documents with it, without deleted ones.
    fn gather(&mut self, text: &str, fields: &[CountedField]) -> tantivy::Result<u64> {
        for CountedField { field, occurrence, is_body } in fields {
            let term = Term::from_field_text(*field, text);
            let index = self.segment.inverted_index(*field)?;
            let Some(mut postings) = index.read_block_postings(&term, IndexRecordOption::WithFreqs)? else { continue };
            let lengths = self.segment.get_fieldnorms_reader(*field)?;
            while !postings.docs().is_empty() {
                for (document, count) in postings.docs().iter().zip(postings.freqs()) {
                    let occurrences = &mut self.occurrences[*document as usize];
                    if occurrences.all == 0.0 {
                        self.having.push(*document);
                    }
                    let here = *count as f32 * occurrence.in_length(lengths.fieldnorm_id(*document));
                    occurrences.all += here;
                    occurrences.outside_body += if *is_body { 0.0 } else { here };
                }
                postings.advance();
            }
        }
        let Some(alive) = self.segment.alive_bitset() else { return Ok(self.having.len() as u64) };
        Ok(self.having.iter().filter(|document| alive.is_alive(**document)).count() as u64)
    }

    /// Scores the term that was gathered.
    fn score(&mut self, term: &ScoredTerm, most: f32) {
        for document in self.having.drain(..) {
            let at = document as usize;
            let occurrences = std::mem::take(&mut self.occurrences[at]);
            if !term.is_support || self.scores[at] > 0.0 {
                self.scores[at] += most * occurrences.score();
                self.found[at] |= term.bits;
            }
        }
    }

    fn drop_deleted(&mut self, deleted: &[DocId]) {
        deleted.iter().for_each(|document| self.scores[*document as usize] = 0.0);
    }

    /// Adds the scores of a query to the documents that it matches.
    fn add(&mut self, weight: &dyn Weight) -> tantivy::Result<()> {
        let mut scorer = weight.scorer(self.segment, 1.0)?;
        while scorer.doc() != TERMINATED {
            self.scores[scorer.doc() as usize] += scorer.score();
            scorer.advance();
        }
        Ok(())
    }

    /// Drops the documents that a query does not match.
    fn keep_only(&mut self, weight: &dyn Weight) -> tantivy::Result<()> {
        let mut scorer = weight.scorer(self.segment, 1.0)?;
        let mut from = 0;
        while scorer.doc() != TERMINATED {
            let at = scorer.doc() as usize;
            self.scores[from..at].fill(0.0);
            from = at + 1;
            scorer.advance();
        }
        self.scores[from..].fill(0.0);
        Ok(())
    }

    /// Drops the documents of other notes.
    fn keep_among(&mut self, among: &FxHashSet<NoteKey>) -> tantivy::Result<()> {
        let places = self.segment.fast_fields().u64(PLACE)?;
        for (document, score) in (0..).zip(&mut self.scores).filter(|(_, score)| **score > 0.0) {
            let key = places.first(document).map(|place| NoteKey(key_and_section(place).0));
            if !key.is_some_and(|key| among.contains(&key)) {
                *score = 0.0;
            }
        }
        Ok(())
    }

    /// The documents that match, in order.
    fn matching(&self) -> Vec<DocId> {
        (0..).zip(&self.scores).filter(|(_, score)| **score > 0.0).map(|(document, _)| document).collect()
    }

    /// The documents that have every word and at least this score, in order.
    fn complete(&self, demand: &Demand, least: f32) -> Vec<DocId> {
        let documents = (0..).zip(self.scores.iter().zip(&self.found));
        let complete =
            documents.filter(|(_, (score, found))| **score > 0.0 && **score >= least && demand.is_met(**found));
        complete.map(|(document, _)| document).collect()
    }

    /// Adds the scores of a query to those of some documents that it matches.
    fn add_where(&mut self, documents: &[DocId], weight: &dyn Weight) -> tantivy::Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let mut scorer = weight.scorer(self.segment, 1.0)?;
        for document in documents {
            if scorer.doc() < *document {
                scorer.seek(*document);
            }
            if scorer.doc() == *document {
                self.scores[*document as usize] += scorer.score();
            } else if scorer.doc() == TERMINATED {
                break;
            }
        }
        Ok(())
    }
}

/// The score that a section needs to be among the best; zero if all are.
fn least_of_best(tallies: &[SegmentScores<'_>], limit: usize) -> f32 {
    let scores = tallies.iter().flat_map(|tally| &tally.scores).copied();
    let mut scores: Vec<f32> = scores.filter(|score| *score > 0.0).collect();
    if scores.len() < limit {
        return 0.0;
    }
    *scores.select_nth_unstable_by(limit - 1, |a, b| b.total_cmp(a)).1
}

fn best(tallies: &[SegmentScores<'_>], limit: usize) -> tantivy::Result<Vec<TextHit>> {
    let least = least_of_best(tallies, limit);
    let mut hits = Vec::new();
    for SegmentScores { segment, scores, .. } in tallies {
        let places = segment.fast_fields().u64(PLACE)?;
        let good = (0..).zip(scores).filter(|(_, score)| **score > 0.0 && **score >= least);
        hits.extend(good.filter_map(|(document, score)| {
            let (key, section) = key_and_section(places.first(document)?);
            Some(TextHit { key: NoteKey(key), section, score: *score })
        }));
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.key, a.section).cmp(&(b.key, b.section))));
    Ok(hits)
}
