//! Ranking by words: what every section scores, added up term by term.
//!
//! Each section has a place in an array, and each term adds to the places of the sections that have it. A query of four
//! words asks for some forty terms, its forms in every field; to read all their postings once, in order, costs less than
//! to skip about in them section by section, and leaves nothing out.

use quipu_core::model::NoteKey;
use quipu_core::ports::TextHit;
use tantivy::index::SegmentReader;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, EnableScoring, Query, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Searcher, TERMINATED, Term};

use super::query::{Demand, QueryWords, ScoredTerm, Together};
use super::schema::{Fields, PLACE, key_and_section};

/// The best sections: by score, ties by key and section. `most` is the scale of the scores.
pub(super) fn rank(
    words: &QueryWords,
    most: f32,
    limit: usize,
    searcher: &Searcher,
    fields: &Fields,
) -> tantivy::Result<Vec<TextHit>> {
    let (scored, demand) = words.terms();
    let weighted = weighted(&scored, searcher, fields)?;
    let mut tallies = Vec::with_capacity(searcher.segment_readers().len());
    for segment in searcher.segment_readers() {
        tallies.push(Tally::of(segment, &weighted)?);
    }
    // Having every word is worth more where the words stand together, or in the note's name.
    if let Some(named) = words.named(most, fields) {
        let named = scoring(&*named, searcher)?;
        for tally in &mut tallies {
            let complete = tally.complete(&demand, f32::NEG_INFINITY);
            tally.add_where(&complete, &*named)?;
        }
    }
    let (mut together, mut most_together) = (Vec::new(), 0.0);
    for Together { query, terms, factor } in words.standing_together(fields) {
        if are_all_in(searcher, &terms)? {
            together.push(scoring(&*query, searcher)?);
            most_together += factor * Bm25Weight::for_terms(searcher, &terms)?.max_score();
        }
    }
    if !together.is_empty() {
        // What scores less cannot be lifted among the best any more.
        let least = least_of_best(&tallies, limit) - most_together;
        for tally in &mut tallies {
            let complete = tally.complete(&demand, least);
            together.iter().try_for_each(|phrase| tally.add_where(&complete, &**phrase))?;
        }
    }
    best(&tallies, limit)
}

fn scoring(query: &dyn Query, searcher: &Searcher) -> tantivy::Result<Box<dyn Weight>> {
    query.weight(EnableScoring::enabled_from_searcher(searcher))
}

fn are_all_in(searcher: &Searcher, terms: &[Term]) -> tantivy::Result<bool> {
    for term in terms {
        if searcher.doc_freq(term)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A term in one field.
struct WeightedTerm {
    term: Term,
    weight: Bm25Weight,
    bits: u64,
}

/// Every term in every field that has it.
fn weighted(scored: &[ScoredTerm<'_>], searcher: &Searcher, fields: &Fields) -> tantivy::Result<Vec<WeightedTerm>> {
    let sections = searcher.total_num_docs()?;
    let mut measured = Vec::with_capacity(fields.words.len());
    for (field, factor) in fields.words {
        measured.push((field, factor, searcher.total_num_tokens(field)? as f32 / sections as f32));
    }
    let mut weighted = Vec::new();
    for scored in scored {
        for (field, factor, mean_length) in measured.iter().copied() {
            let term = Term::from_field_text(field, scored.text);
            let with_it = searcher.doc_freq(&term)?;
            if with_it > 0 {
                let weight = Bm25Weight::for_one_term_without_explain(with_it, sections, mean_length);
                weighted.push(WeightedTerm { term, weight: weight.boost_by(factor * scored.worth), bits: scored.bits });
            }
        }
    }
    Ok(weighted)
}

/// What the sections of one segment score.
struct Tally<'s> {
    segment: &'s SegmentReader,
    /// By document; zero for one without any of the words, and for one that was deleted.
    scores: Vec<f32>,
    /// Which words it has, as bits; see [`ScoredTerm`].
    found: Vec<u64>,
}

impl<'s> Tally<'s> {
    fn of(segment: &'s SegmentReader, terms: &[WeightedTerm]) -> tantivy::Result<Self> {
        let documents = segment.max_doc() as usize;
        let mut tally = Self { segment, scores: vec![0.0; documents], found: vec![0; documents] };
        for WeightedTerm { term, weight, bits } in terms {
            let index = segment.inverted_index(term.field())?;
            let Some(mut postings) = index.read_block_postings(term, IndexRecordOption::WithFreqs)? else { continue };
            let lengths = segment.get_fieldnorms_reader(term.field())?;
            while !postings.docs().is_empty() {
                for (document, count) in postings.docs().iter().zip(postings.freqs()) {
                    let at = *document as usize;
                    tally.scores[at] += weight.score(lengths.fieldnorm_id(*document), *count);
                    tally.found[at] |= bits;
                }
                postings.advance();
            }
        }
        if let Some(alive) = segment.alive_bitset() {
            let gone = (0..segment.max_doc()).filter(|document| alive.is_deleted(*document));
            gone.for_each(|document| tally.scores[document as usize] = 0.0);
        }
        Ok(tally)
    }

    /// The documents that have every word and score at least so much, in order.
    fn complete(&self, demand: &Demand, least: f32) -> Vec<DocId> {
        let documents = (0..).zip(self.scores.iter().zip(&self.found));
        let complete =
            documents.filter(|(_, (score, found))| **score > 0.0 && **score >= least && demand.is_met(**found));
        complete.map(|(document, _)| document).collect()
    }

    /// Adds what a query gives to those of some documents that it matches.
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

/// What a section must score to be among the best; zero where all are.
fn least_of_best(tallies: &[Tally<'_>], limit: usize) -> f32 {
    let scores = tallies.iter().flat_map(|tally| &tally.scores).copied();
    let mut scores: Vec<f32> = scores.filter(|score| *score > 0.0).collect();
    if scores.len() < limit {
        return 0.0;
    }
    *scores.select_nth_unstable_by(limit - 1, |a, b| b.total_cmp(a)).1
}

fn best(tallies: &[Tally<'_>], limit: usize) -> tantivy::Result<Vec<TextHit>> {
    let least = least_of_best(tallies, limit);
    let mut hits = Vec::with_capacity(limit);
    for Tally { segment, scores, .. } in tallies {
        let places = segment.fast_fields().u64(PLACE)?;
        let good = (0..).zip(scores).filter(|(_, score)| **score > 0.0 && **score >= least);
        hits.extend(good.filter_map(|(document, score)| {
            let (key, section) = key_and_section(places.first(document)?);
            Some(TextHit { key: NoteKey(key), section, score: *score })
        }));
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.key, a.section).cmp(&(b.key, b.section))));
    hits.truncate(limit);
    Ok(hits)
}
