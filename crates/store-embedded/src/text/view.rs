//! A view of the index with the statistics that BM25 needs.
//!
//! Tantivy's own statistics count deleted documents until a merge, and estimate lengths after it: scores would depend on
//! earlier edits. These count existing sections only, so they equal those of a fresh index. Lengths are cached by segment, and
//! postings are counted only in segments with deletions.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tantivy::index::{InvertedIndexReader, SegmentId, SegmentReader};
use tantivy::postings::TermInfo;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring, Query, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Searcher, Term};

use super::language::Language;
use super::schema::IndexFields;

/// Tokens by word field, in the order of [`IndexFields::words`].
type Lengths = [u64; 5];

/// A seek in a posting list costs about as much as reading this many postings.
const SEEK_COST: usize = 8;

/// Term counts that are cached.
const MAX_COUNTED: usize = 10_000;

/// The committed state of the index.
pub(super) struct IndexView {
    pub(super) searcher: Searcher,
    /// The languages of the sections.
    pub(super) languages: Vec<Language>,
    /// The deleted documents of each segment, ascending.
    deleted: Vec<Vec<DocId>>,
    /// The number of tokens in each field of all sections.
    lengths: FxHashMap<Field, u64>,
    /// The number of tokens of all documents of a segment, deleted ones included. A segment never changes, so the next view
    /// reuses them.
    of_segments: FxHashMap<SegmentId, Lengths>,
    /// How many sections have a term, for terms that had to be counted because of deletions.
    counted: Mutex<FxHashMap<Term, u64>>,
}

impl IndexView {
    pub(super) fn new(searcher: Searcher, fields: &IndexFields, before: Option<&Self>) -> tantivy::Result<Self> {
        let mut deleted = Vec::new();
        let mut of_segments = FxHashMap::default();
        let mut lengths: FxHashMap<Field, u64> = fields.words.iter().map(|words| (words.field, 0)).collect();
        for segment in searcher.segment_readers() {
            let alive = segment.alive_bitset();
            let gone: Vec<DocId> = alive
                .map(|alive| (0..segment.max_doc()).filter(|document| alive.is_deleted(*document)).collect())
                .unwrap_or_default();
            let known = before.and_then(|before| before.of_segments.get(&segment.segment_id()).copied());
            let all = known.map_or_else(|| lengths_of(segment, fields, &(0..segment.max_doc())), Ok)?;
            let of_gone = lengths_of(segment, fields, &gone.iter().copied())?;
            for (words, (all, gone)) in fields.words.iter().zip(all.iter().zip(of_gone)) {
                *lengths.entry(words.field).or_default() += all - gone;
            }
            of_segments.insert(segment.segment_id(), all);
            deleted.push(gone);
        }
        let mut view =
            Self { searcher, languages: Vec::new(), deleted, lengths, of_segments, counted: Mutex::default() };
        view.languages = view.find_languages(fields)?;
        Ok(view)
    }

    pub(super) fn sections(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// The segments with their numbers.
    pub(super) fn segments(&self) -> impl Iterator<Item = (usize, &SegmentReader)> {
        self.searcher.segment_readers().iter().enumerate()
    }

    /// The documents of a segment that were deleted, ascending.
    pub(super) fn deleted_in(&self, segment: usize) -> &[DocId] {
        &self.deleted[segment]
    }

    /// How many sections have a term.
    pub(super) fn count(&self, term: &Term) -> tantivy::Result<u64> {
        let mut count = 0;
        let mut is_counted = false;
        for (place, segment) in self.segments() {
            let index = segment.inverted_index(term.field())?;
            let Some(info) = index.get_term_info(term)? else { continue };
            if !self.deleted[place].is_empty() && !is_counted {
                if let Some(known) = self.counted.lock().get(term) {
                    return Ok(*known);
                }
                is_counted = true;
            }
            count += u64::from(self.count_in(place, &index, &info)?);
        }
        if is_counted {
            let mut counted = self.counted.lock();
            if counted.len() >= MAX_COUNTED {
                counted.clear();
            }
            counted.insert(term.clone(), count);
        }
        Ok(count)
    }

    /// How many sections have a word in the same field, the one where most do.
    pub(super) fn most_in_a_field(&self, word: &str, fields: &IndexFields) -> tantivy::Result<u64> {
        let mut most = 0;
        for words in fields.words {
            most = most.max(self.count(&Term::from_field_text(words.field, word))?);
        }
        Ok(most)
    }

    /// How many sections of a segment have a term.
    pub(super) fn count_in(
        &self,
        segment: usize,
        index: &InvertedIndexReader,
        info: &TermInfo,
    ) -> tantivy::Result<u32> {
        let (deleted, Some(alive)) = (&self.deleted[segment], self.searcher.segment_readers()[segment].alive_bitset())
        else {
            return Ok(info.doc_freq);
        };
        let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
        if deleted.len().saturating_mul(SEEK_COST) > info.doc_freq as usize {
            return Ok(postings.doc_freq_given_deletes(alive));
        }
        let mut count = info.doc_freq;
        for document in deleted {
            if postings.doc() < *document {
                postings.seek(*document);
            }
            count -= u32::from(postings.doc() == *document);
        }
        Ok(count)
    }

    /// The weight of a query.
    pub(super) fn weight(&self, query: &dyn Query) -> tantivy::Result<Box<dyn Weight>> {
        query.weight(EnableScoring::enabled_from_statistics_provider(self, &self.searcher))
    }

    /// The mean number of tokens of a field.
    pub(super) fn mean_length(&self, field: Field) -> f32 {
        self.lengths.get(&field).copied().unwrap_or_default() as f32 / self.sections() as f32
    }

    fn find_languages(&self, fields: &IndexFields) -> tantivy::Result<Vec<Language>> {
        let mut languages = Vec::new();
        for (place, segment) in self.segments() {
            let index = segment.inverted_index(fields.language)?;
            let mut terms = index.terms().stream()?;
            while terms.advance() {
                let language = std::str::from_utf8(terms.key()).ok().and_then(Language::from_code);
                let Some(language) = language.filter(|language| !languages.contains(language)) else { continue };
                if self.count_in(place, &index, terms.value())? > 0 {
                    languages.push(language);
                }
            }
        }
        Ok(languages)
    }
}

impl Bm25StatisticsProvider for IndexView {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.lengths.get(&field).copied().unwrap_or_default())
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.sections())
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.count(term)
    }
}

/// The number of tokens of some documents, as exact as tantivy stores each document's length.
fn lengths_of(
    segment: &SegmentReader,
    fields: &IndexFields,
    documents: &(impl Iterator<Item = DocId> + Clone),
) -> tantivy::Result<Lengths> {
    let mut lengths = Lengths::default();
    for (length, words) in lengths.iter_mut().zip(fields.words) {
        if let Some(of_documents) = segment.fieldnorms_readers().get_field(words.field)? {
            *length = documents.clone().map(|document| u64::from(of_documents.fieldnorm(document))).sum();
        }
    }
    Ok(lengths)
}
