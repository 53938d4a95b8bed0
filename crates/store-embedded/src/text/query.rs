//! The readings of a query, from strict to relaxed. There is no query syntax, so no query is invalid.

use std::collections::BTreeMap;

use quipu_core::ports::TextMatch;
use quipu_core::search::words::{WordKind, folded, is_han, parts, run_chars, words};
use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

use super::bm25;
use super::language::{Language, Stems};
use super::schema::{IndexFields, WordField};
use super::similar::similar;
use super::view::IndexView;

/// Unknown words of a query that are replaced by similar ones: a pasted page is not full of typos.
const MAX_UNKNOWN: usize = 8;

/// A word in this share of all sections is common and does not distinguish them.
const COMMON_SHARE: f32 = 0.3;

/// With fewer sections no word counts as common.
const FEW_SECTIONS: u64 = 50;

/// The most terms of a query; the rest of a pasted page is ignored.
const MAX_TERMS: usize = 64;

/// The weight of a word as written beside its stem, which matches too.
const EXACT_BONUS: f32 = 0.3;

/// The bonus for words that stand together as typed.
const TOGETHER_BONUS: f32 = 0.5;

/// The bonus for a note with all words in its name, as a share of the highest possible score.
const NAME_BONUS: f32 = 0.2;

/// A query of more words is not a name.
const MAX_NAME_WORDS: usize = 6;

/// The weight of a single character of a run beside the pairs.
const CHARACTER: f32 = 0.5;

/// The words of a query.
#[derive(Debug, PartialEq)]
pub(super) struct QueryWords {
    words: Vec<QueryWord>,
}

/// A form of a word of the query.
pub(super) struct ScoredTerm {
    pub(super) text: String,
    /// The factor on its BM25.
    pub(super) worth: f32,
    /// The bits that a section with it gets; see [`Demand`].
    pub(super) bits: u64,
    /// Whether it counts only in sections that have another term.
    pub(super) is_support: bool,
}

impl ScoredTerm {
    fn new(text: &str, worth: f32) -> Self {
        Self { text: text.to_owned(), worth, bits: 0, is_support: false }
    }
}

/// What a section needs to have every word: for each word the alternatives, each as a set of bits.
pub(super) struct Demand {
    words: Vec<Vec<u64>>,
}

impl Demand {
    pub(super) fn is_met(&self, found: u64) -> bool {
        self.words.iter().all(|ways| ways.iter().any(|way| found & way == *way))
    }
}

/// One reading of a query.
pub(super) struct QueryLevel {
    pub(super) matched: TextMatch,
    /// What a section must match; `None` for any of the terms and phrases.
    pub(super) must: Option<Box<dyn Query>>,
    /// A section's score is the sum of the terms and phrases that it has.
    pub(super) terms: Vec<ScoredTerm>,
    pub(super) phrases: Vec<Box<dyn Query>>,
}

impl QueryLevel {
    fn new(matched: TextMatch) -> Self {
        Self { matched, must: None, terms: Vec::new(), phrases: Vec::new() }
    }

    /// Adds a word, or a phrase in any one field.
    fn push(&mut self, terms: &[(usize, String)], fields: &IndexFields) {
        match terms {
            [(_, only)] => self.terms.push(ScoredTerm::new(only, 1.0)),
            several => {
                self.phrases
                    .extend(fields.words.map(|words| boosted(phrase_query(several, words.field), words.phrase)));
            }
        }
    }
}

/// A phrase in one field that earns a bonus.
pub(super) struct PhraseBonus {
    pub(super) query: Box<dyn Query>,
    pub(super) terms: Vec<Term>,
    /// The factor of the query, on the BM25 of the terms.
    pub(super) factor: f32,
}

/// One word, or one run of characters without spaces.
#[derive(Debug, Clone, PartialEq)]
struct QueryWord {
    /// With their positions in the query: one term for a word, pairs for a run.
    terms: Vec<(usize, String)>,
    /// Its stems in the languages of the vault that differ from it.
    stems: Vec<String>,
    /// The parts of a compound.
    parts: Vec<String>,
    /// Similar words with their closeness, if the index has neither this word nor its stems.
    instead: Vec<(String, f32)>,
    /// Whether no space separates it from the word before, as in `a::b`.
    joined: bool,
    /// See [`COMMON_SHARE`].
    is_common: bool,
}

impl QueryWords {
    /// Parses a query for an index of these languages.
    pub(super) fn parse(text: &str, languages: &[Language]) -> Self {
        let stems: Vec<Stems> = languages.iter().map(|language| language.stemmer()).collect();
        let mut parsed: Vec<QueryWord> = Vec::new();
        let (mut position, mut count, mut end) = (0, 0, 0);
        for word in words(text) {
            if count >= MAX_TERMS {
                break;
            }
            let joined = position > 0 && !text[end..word.start].contains(char::is_whitespace);
            end = word.start + word.text.len();
            let (mut terms, length) = match word.kind {
                WordKind::Plain | WordKind::Emoji => (vec![(position, folded(word.text))], 1),
                WordKind::Run => run_terms(word.text, position),
            };
            terms.truncate(MAX_TERMS - count);
            position += length;
            count += terms.len();
            let (parts, stems) = match word.kind {
                WordKind::Plain => (
                    parts(word.text).into_iter().map(|(_, part)| folded(part)).collect(),
                    distinct(stems.iter().filter_map(|stems| stems.stem(&terms.first()?.1))),
                ),
                WordKind::Run | WordKind::Emoji => (Vec::new(), Vec::new()),
            };
            parsed.push(QueryWord { terms, stems, parts, instead: Vec::new(), joined, is_common: false });
        }
        Self { words: parsed }
    }

    /// The strictest reading; `None` without words.
    pub(super) fn strictest(&self, fields: &IndexFields) -> Option<QueryLevel> {
        let phrase = self.phrase();
        (!phrase.is_empty()).then(|| {
            let mut level = QueryLevel::new(TextMatch::Phrase);
            level.push(&phrase, fields);
            level
        })
    }

    /// The next reading. Readings that could not find more are skipped.
    pub(super) fn relaxed(&self, from: TextMatch, fields: &IndexFields) -> Option<QueryLevel> {
        let is_single = self.words.len() == 1 && self.words[0].is_single();
        let has_instead = self.words.iter().any(|word| !word.instead.is_empty());
        match from {
            // With an unknown word, no section has all words.
            TextMatch::Phrase if has_instead => Some(self.distinctive_words(TextMatch::Similar, fields)),
            TextMatch::Phrase if !is_single => Some(self.distinctive_words(TextMatch::AllWords, fields)),
            TextMatch::AllWords | TextMatch::Similar if !is_single => Some(self.any_word()),
            _ => None,
        }
    }

    /// The bonus for notes with all words in their name; `None` for more words than a name has. `most` is the highest possible
    /// score.
    pub(super) fn named(&self, most: f32, fields: &IndexFields) -> Option<Box<dyn Query>> {
        if self.words.len() > MAX_NAME_WORDS {
            return None;
        }
        let named = fields.names().map(|field| {
            let each = self.words.iter().map(|word| (Occur::Must, word.in_field(field)));
            Box::new(BooleanQuery::new(each.collect())) as Box<dyn Query>
        });
        Some(Box::new(ConstScoreQuery::new(Box::new(BooleanQuery::union(named.into())), NAME_BONUS * most)))
    }

    /// The bonuses for phrases: the whole query, and its pieces.
    pub(super) fn phrase_bonuses(&self, fields: &IndexFields) -> Vec<PhraseBonus> {
        let phrase = self.phrase();
        let phrases: Vec<_> = (phrase.len() > 1).then_some(phrase).into_iter().chain(self.pieces()).collect();
        let in_fields = phrases.iter().flat_map(|phrase| {
            fields.words.map(|WordField { field, phrase: weight, .. }| {
                let factor = TOGETHER_BONUS * weight;
                let terms = phrase.iter().map(|(_, term)| Term::from_field_text(field, term)).collect();
                PhraseBonus { query: boosted(phrase_query(phrase, field), factor), terms, factor }
            })
        });
        in_fields.collect()
    }

    /// Every form of every word once, with its weight, and which forms a section needs to have every word. Terms that are mere
    /// support come last.
    pub(super) fn terms(&self) -> (Vec<ScoredTerm>, Demand) {
        let mut scored: BTreeMap<&str, ScoredTerm> = BTreeMap::new();
        for (text, worth) in self.words.iter().flat_map(QueryWord::weighted) {
            let known = scored.entry(text).or_insert_with(|| ScoredTerm::new(text, worth));
            known.worth = known.worth.max(worth);
        }
        let mut bits = (0..u64::BITS).map(|place| 1_u64 << place);
        let mut demand = Demand { words: Vec::with_capacity(self.words.len()) };
        for word in &self.words {
            let mut ways = Vec::new();
            for needed in word.ways() {
                // An alternative beyond the last bit is dropped: no section has every word of a pasted page.
                ways.extend(needed.iter().try_fold(0, |way, forms| {
                    let bit = bits.next()?;
                    forms.iter().for_each(|form| {
                        scored.entry(form).or_insert_with(|| ScoredTerm::new(form, 0.0)).bits |= bit;
                    });
                    Some(way | bit)
                }));
            }
            demand.words.push(ways);
        }
        let support = distinct(self.words.iter().flat_map(QueryWord::characters));
        let support = support.into_iter().filter(|character| !scored.contains_key(character.as_str()));
        let support: Vec<String> = support.collect();
        let support =
            support.into_iter().map(|text| ScoredTerm { is_support: true, ..ScoredTerm::new(&text, CHARACTER) });
        (scored.into_values().chain(support).collect(), demand)
    }

    /// The highest possible score: that of a section with the rarest form of every word.
    pub(super) fn most(&self, view: &IndexView, fields: &IndexFields) -> tantivy::Result<f32> {
        let mut most = 0.0;
        for word in &self.words {
            // Each pair of a run counts as a word.
            for forms in word.forms() {
                let mut rarest = u64::MAX;
                for form in forms {
                    let count = view.most_in_a_field(form, fields)?;
                    rarest = if count > 0 { rarest.min(count) } else { rarest };
                }
                most += bm25::most(if rarest == u64::MAX { 0 } else { rarest }, view.sections());
            }
        }
        Ok(most)
    }

    /// Finds similar words for those that the index does not have.
    pub(super) fn find_similar(&mut self, view: &IndexView, fields: &IndexFields) -> tantivy::Result<()> {
        let mut unknown = Vec::new();
        for (place, word) in self.words.iter().enumerate() {
            let [(_, only)] = word.terms.as_slice() else { continue };
            if unknown.len() < MAX_UNKNOWN && word.most_sections(view, fields)? == 0 {
                unknown.push((place, only.clone()));
            }
        }
        let words: Vec<&str> = unknown.iter().map(|(_, word)| word.as_str()).collect();
        for ((place, _), instead) in unknown.iter().zip(similar(view, fields, &words)?) {
            self.words[*place].instead = instead;
        }
        Ok(())
    }

    /// Marks common words. If all words are common, none is marked.
    pub(super) fn find_common(&mut self, view: &IndexView, fields: &IndexFields) -> tantivy::Result<()> {
        let sections = view.sections();
        if sections < FEW_SECTIONS {
            return Ok(());
        }
        for word in &mut self.words {
            word.is_common = word.most_sections(view, fields)? as f32 >= COMMON_SHARE * sections as f32;
        }
        if self.words.iter().all(|word| word.is_common) {
            self.words.iter_mut().for_each(|word| word.is_common = false);
        }
        Ok(())
    }

    fn phrase(&self) -> Vec<(usize, String)> {
        self.words.iter().flat_map(|word| word.terms.iter().cloned()).collect()
    }

    /// Each word somewhere in the section, except common ones: "how do I deploy" is about deploying, and a section that happens
    /// to have "how" and "do" must not hide all others. Words typed without spaces score more when they stand together.
    fn distinctive_words(&self, matched: TextMatch, fields: &IndexFields) -> QueryLevel {
        let mut level = QueryLevel::new(matched);
        let mut must: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            let seen = self.words[..index].iter().any(|earlier| earlier.is_like(word));
            if !seen {
                level.push(&word.terms, fields);
                level.terms.extend(word.others());
                if !word.is_common {
                    must.push((Occur::Must, word.somewhere(fields)));
                }
            }
        }
        self.pieces().for_each(|piece| level.push(&piece, fields));
        level.must = Some(Box::new(BooleanQuery::new(must)));
        level
    }

    /// Any word, pair of a run, or part of a compound.
    fn any_word(&self) -> QueryLevel {
        QueryLevel { terms: self.terms().0, ..QueryLevel::new(TextMatch::AnyWord) }
    }

    /// Words typed without spaces between them, as phrases: `a::b`, `snake_case`.
    fn pieces(&self) -> impl Iterator<Item = Vec<(usize, String)>> {
        let several = self.words.chunk_by(|_, next| next.joined).filter(|piece| piece.len() > 1);
        // The whole query is not a piece: the stricter reading has it as a phrase.
        let several = several.filter(|piece| piece.len() < self.words.len());
        several.map(|piece| piece.iter().flat_map(|word| word.terms.iter().cloned()).collect())
    }
}

impl QueryWord {
    /// The word in any field, a stem, a similar word, or all its parts.
    fn somewhere(&self, fields: &IndexFields) -> Box<dyn Query> {
        let mut ways = vec![in_any_field(&self.terms, fields)];
        ways.extend(self.stems.iter().map(|stem| in_any_field(&[(0, stem.clone())], fields)));
        ways.extend(self.instead.iter().map(|(term, _)| in_any_field(&[(0, term.clone())], fields)));
        if !self.parts.is_empty() {
            let parts = self.parts.iter().map(|part| (Occur::Must, in_any_field(&[(0, part.clone())], fields)));
            ways.push(Box::new(BooleanQuery::new(parts.collect())));
        }
        match ways.len() {
            1 => ways.remove(0),
            _ => Box::new(BooleanQuery::union(ways)),
        }
    }

    /// The terms that match beside the word itself.
    fn others(&self) -> impl Iterator<Item = ScoredTerm> {
        let others = self.stems.iter().chain(&self.parts).map(|term| (term, 1.0));
        let others = others.chain(self.instead.iter().map(|(term, close)| (term, *close)));
        others.map(|(term, worth)| ScoredTerm::new(term, worth))
    }

    /// The word in one field, or a stem of it.
    fn in_field(&self, field: Field) -> Box<dyn Query> {
        let mut ways = vec![phrase_query(&self.terms, field)];
        ways.extend(self.stems.iter().map(|stem| term_query(field, stem)));
        Box::new(BooleanQuery::union(ways))
    }

    /// Each form of the word that scores by itself.
    fn weighted(&self) -> impl Iterator<Item = (&str, f32)> {
        let exact = if self.stems.is_empty() { 1.0 } else { EXACT_BONUS };
        let terms = self.terms.iter().map(move |(_, term)| (term.as_str(), exact));
        let others = self.stems.iter().chain(&self.parts).map(|term| (term.as_str(), 1.0));
        terms.chain(others).chain(self.instead.iter().map(|(term, close)| (term.as_str(), *close)))
    }

    /// The Han characters of a run, which mean something alone, where the letters of Kana, Hangul or Thai do not.
    fn characters(&self) -> impl Iterator<Item = String> {
        let pairs = self.terms.iter().filter(|(_, term)| term.chars().count() > 1);
        pairs.flat_map(|(_, pair)| pair.chars()).filter(|c| is_han(*c)).map(String::from)
    }

    /// The number of sections with the most frequent form of a word, in any one field; zero for a run.
    fn most_sections(&self, view: &IndexView, fields: &IndexFields) -> tantivy::Result<u64> {
        let [(_, only)] = self.terms.as_slice() else { return Ok(0) };
        let mut most = 0;
        for form in std::iter::once(only).chain(&self.stems).chain(&self.parts) {
            most = most.max(view.most_in_a_field(form, fields)?);
        }
        Ok(most)
    }

    /// How a text can have the word: as it is, or as all parts of a compound.
    fn ways(&self) -> Vec<Vec<Vec<&str>>> {
        let parts: Vec<Vec<&str>> = self.parts.iter().map(|part| vec![part.as_str()]).collect();
        [self.forms(), parts].into_iter().filter(|way| !way.is_empty()).collect()
    }

    /// The terms that a text needs, each in all its forms.
    fn forms(&self) -> Vec<Vec<&str>> {
        match self.terms.as_slice() {
            [(_, only)] => {
                let instead = self.instead.iter().map(|(term, _)| term);
                vec![std::iter::once(only).chain(&self.stems).chain(instead).map(String::as_str).collect()]
            }
            several => several.iter().map(|(_, term)| vec![term.as_str()]).collect(),
        }
    }

    fn is_single(&self) -> bool {
        self.terms.len() == 1 && self.parts.is_empty() && self.stems.is_empty()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.terms.iter().map(|(_, term)| term).eq(other.terms.iter().map(|(_, term)| term))
    }
}

fn distinct(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = words.collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The pairs of a run, or its only character, and how many positions it takes.
fn run_terms(run: &str, position: usize) -> (Vec<(usize, String)>, usize) {
    let chars: Vec<char> = run_chars(run).into_iter().map(|(c, _)| c).collect();
    let terms = match chars.as_slice() {
        [only] => vec![(position, only.to_string())],
        several => several.windows(2).enumerate().map(|(at, pair)| (position + at, pair.iter().collect())).collect(),
    };
    (terms, chars.len())
}

/// The terms as a phrase in any one field.
fn in_any_field(terms: &[(usize, String)], fields: &IndexFields) -> Box<dyn Query> {
    Box::new(BooleanQuery::union(fields.words.map(|words| phrase_query(terms, words.field)).into()))
}

/// The terms as a phrase in one field.
fn phrase_query(terms: &[(usize, String)], field: Field) -> Box<dyn Query> {
    match terms {
        [(_, only)] => term_query(field, only),
        several => {
            let terms = several.iter().map(|(position, term)| (*position, Term::from_field_text(field, term)));
            Box::new(PhraseQuery::new_with_offset(terms.collect()))
        }
    }
}

fn term_query(field: Field, term: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, term), IndexRecordOption::WithFreqs))
}

fn boosted(query: Box<dyn Query>, weight: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(query, weight))
}
