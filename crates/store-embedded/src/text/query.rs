//! What a query asks for, level by level. Everything typed is text: there is no syntax, so nothing is a mistake.

use std::collections::BTreeMap;

use quipu_core::ports::TextMatch;
use quipu_core::search::words::{WordKind, folded, parts, run_chars, words};
use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

use super::language::{Language, Stems};
use super::schema::Fields;
use super::similar::similar;
use super::view::View;

/// For so many words that the index does not have, others are looked for: a pasted page is not full of slips.
const MAX_UNKNOWN: usize = 8;

/// A word that is in this share of all sections tells nothing apart.
const COMMON_SHARE: f32 = 0.3;

/// In an index of fewer sections nothing can be said of what is common.
const FEW_SECTIONS: u64 = 50;

/// A pasted page is searched by its beginning.
const MAX_TERMS: usize = 64;

/// What a word as written is worth beside its stem, which finds it too.
const EXACT_BONUS: f32 = 0.3;

/// What words standing together as typed are worth beside finding each of them.
const TOGETHER_BONUS: f32 = 0.5;

/// What having all words in its name is worth to a note, as a share of the most that words could be worth.
const NAME_BONUS: f32 = 0.2;

/// Names are short: more words than this are a question.
const MAX_NAME_WORDS: usize = 6;

/// Tantivy's BM25 gives a word at most so many times its rarity.
const MOST_FOR_RARITY: f32 = 2.2;

/// The words of a query.
#[derive(Debug, PartialEq)]
pub(super) struct QueryWords {
    words: Vec<QueryWord>,
}

/// A form of some word of the query.
pub(super) struct ScoredTerm<'w> {
    pub(super) text: &'w str,
    /// A factor on its BM25.
    pub(super) worth: f32,
    /// What a section with it has; see [`Demand`].
    pub(super) bits: u64,
}

/// What a section needs to have every word: for each word the ways to have it, each as the bits that it takes.
pub(super) struct Demand {
    words: Vec<Vec<u64>>,
}

impl Demand {
    pub(super) fn is_met(&self, found: u64) -> bool {
        self.words.iter().all(|ways| ways.iter().any(|way| found & way == *way))
    }
}

/// One reading of a query, strict or relaxed.
pub(super) struct Level {
    pub(super) matched: TextMatch,
    /// What a section must match; without it, any of the parts.
    pub(super) must: Option<Box<dyn Query>>,
    /// What a section scores: the sum of the parts that it has.
    pub(super) parts: Vec<Part>,
}

/// A word in one field, or several that stand together there, with a factor on their BM25.
pub(super) struct Part {
    terms: Vec<(usize, String)>,
    field: Field,
    pub(super) factor: f32,
}

impl Part {
    /// The only word, where it is one.
    pub(super) fn single(&self) -> Option<Term> {
        match self.terms.as_slice() {
            [(_, only)] => Some(Term::from_field_text(self.field, only)),
            _ => None,
        }
    }

    /// The words standing together, with the factor.
    pub(super) fn query(&self) -> Box<dyn Query> {
        boosted(together(&self.terms, self.field), self.factor)
    }
}

/// Words standing in one field as typed.
pub(super) struct Together {
    pub(super) query: Box<dyn Query>,
    pub(super) terms: Vec<Term>,
    /// On the BM25 of the terms, as the query has it.
    pub(super) factor: f32,
}

/// One word, or one run of characters without spaces.
#[derive(Debug, Clone, PartialEq)]
struct QueryWord {
    /// With the position of each in the query: one for a word, the pairs of a run.
    terms: Vec<(usize, String)>,
    /// In the languages of the vault, where they are other words.
    stems: Vec<String>,
    /// Of a compound.
    parts: Vec<String>,
    /// Words of the index instead, where it has neither this one nor its stems; with how close they are.
    instead: Vec<(String, f32)>,
    /// Whether it touches the word before, as in `a::b`.
    joined: bool,
    /// Whether nearly every section has it.
    is_common: bool,
}

impl QueryWords {
    /// What a query asks for in an index of these languages.
    pub(super) fn understand(text: &str, languages: &[Language]) -> Self {
        let stems: Vec<Stems> = languages.iter().map(|language| language.stemmer()).collect();
        let mut understood: Vec<QueryWord> = Vec::new();
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
            understood.push(QueryWord { terms, stems, parts, instead: Vec::new(), joined, is_common: false });
        }
        Self { words: understood }
    }

    /// The first level to try; none for no words.
    pub(super) fn strictest(&self, fields: &Fields) -> Option<Level> {
        let phrase = self.phrase();
        let parts = || parts_in(fields, &phrase, 1.0).collect();
        (!phrase.is_empty()).then(|| Level { matched: TextMatch::Phrase, must: None, parts: parts() })
    }

    /// The next level to try. Levels that could find nothing more are left out.
    pub(super) fn relaxed(&self, from: TextMatch, fields: &Fields) -> Option<Level> {
        let is_single = self.words.len() == 1 && self.words[0].is_single();
        let has_instead = self.words.iter().any(|word| !word.instead.is_empty());
        match from {
            // Without a word that is not there, all words cannot be found.
            TextMatch::Phrase if has_instead => Some(self.telling_words(TextMatch::Similar, fields)),
            TextMatch::Phrase if !is_single => Some(self.telling_words(TextMatch::AllWords, fields)),
            TextMatch::AllWords | TextMatch::Similar if !is_single => Some(self.any_word(fields)),
            _ => None,
        }
    }

    /// A bonus for notes that have the whole of what was typed in their name; none for more words than a name has. `most`
    /// is the scale of the scores.
    pub(super) fn named(&self, most: f32, fields: &Fields) -> Option<Box<dyn Query>> {
        if self.words.len() > MAX_NAME_WORDS {
            return None;
        }
        let named = fields.names().map(|field| {
            let each = self.words.iter().map(|word| (Occur::Must, word.in_field(field)));
            Box::new(BooleanQuery::new(each.collect())) as Box<dyn Query>
        });
        Some(Box::new(ConstScoreQuery::new(Box::new(BooleanQuery::union(named.into())), NAME_BONUS * most)))
    }

    /// What words standing as typed are worth beside finding each of them: the whole query, and its pieces.
    pub(super) fn standing_together(&self, fields: &Fields) -> Vec<Together> {
        let phrase = self.phrase();
        let phrases: Vec<_> = (phrase.len() > 1).then_some(phrase).into_iter().chain(self.pieces()).collect();
        let in_fields = phrases.iter().flat_map(|phrase| {
            fields.words.map(|(field, weight)| {
                let factor = TOGETHER_BONUS * weight;
                let terms = phrase.iter().map(|(_, term)| Term::from_field_text(field, term)).collect();
                Together { query: boosted(together(phrase, field), factor), terms, factor }
            })
        });
        in_fields.collect()
    }

    /// Every form of every word once, with what it is worth, and which of them make a section have every word.
    pub(super) fn terms(&self) -> (Vec<ScoredTerm<'_>>, Demand) {
        let mut scored: BTreeMap<&str, (f32, u64)> = BTreeMap::new();
        for (text, worth) in self.words.iter().flat_map(QueryWord::weighted) {
            let known = scored.entry(text).or_default();
            known.0 = known.0.max(worth);
        }
        let mut bits = (0..u64::BITS).map(|place| 1_u64 << place);
        let mut demand = Demand { words: Vec::with_capacity(self.words.len()) };
        for word in &self.words {
            let mut ways = Vec::new();
            for needed in word.ways() {
                // A way without bits is no way: of a pasted page no section is expected to have every word.
                ways.extend(needed.iter().try_fold(0, |way, forms| {
                    let bit = bits.next()?;
                    forms.iter().for_each(|form| scored.entry(form).or_default().1 |= bit);
                    Some(way | bit)
                }));
            }
            demand.words.push(ways);
        }
        (scored.into_iter().map(|(text, (worth, bits))| ScoredTerm { text, worth, bits }).collect(), demand)
    }

    /// What a section that had nothing but the rarest forms of every word could score.
    pub(super) fn most(&self, view: &View, fields: &Fields) -> tantivy::Result<f32> {
        let sections = view.sections() as f32;
        let mut most = 0.0;
        for word in &self.words {
            // The pairs of a run are as many words.
            for forms in word.forms() {
                let rarest = forms.iter().flat_map(|form| fields.words.map(|(field, _)| (field, form)));
                let counts = rarest.map(|(field, form)| view.count(&Term::from_field_text(field, form)));
                let known =
                    counts.filter(|count| !matches!(count, Ok(0))).min_by_key(|count| count.as_ref().ok().copied());
                let count = known.transpose()?.unwrap_or(0) as f32;
                most += MOST_FOR_RARITY * (1.0 + (sections - count + 0.5) / (count + 0.5)).ln();
            }
        }
        Ok(most)
    }

    /// Finds words of the index for those it does not have.
    pub(super) fn find_instead(&mut self, view: &View, fields: &Fields) -> tantivy::Result<()> {
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

    /// Finds out which words nearly every section has. Where that is all of them, none counts as such.
    pub(super) fn find_common(&mut self, view: &View, fields: &Fields) -> tantivy::Result<()> {
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

    /// Each word somewhere in the section, but for those that nearly every section has: "how do I deploy" is about deploying,
    /// and a section that happens to have "how" and "do" as well must not hide all others. Words typed in one piece count
    /// more when they stand together.
    fn telling_words(&self, matched: TextMatch, fields: &Fields) -> Level {
        let mut must: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            let seen = self.words[..index].iter().any(|earlier| earlier.is_like(word));
            if !seen {
                parts.extend(word.parts_somewhere(fields));
                if !word.is_common {
                    must.push((Occur::Must, word.somewhere(fields)));
                }
            }
        }
        parts.extend(self.pieces().flat_map(|piece| parts_in(fields, &piece, 1.0).collect::<Vec<_>>()));
        Level { matched, must: Some(Box::new(BooleanQuery::new(must))), parts }
    }

    /// Any word, any pair of a run, any part of a compound.
    fn any_word(&self, fields: &Fields) -> Level {
        let terms = self.terms().0;
        let parts = terms
            .iter()
            .flat_map(|form| parts_in(fields, &[(0, form.text.to_owned())], form.worth).collect::<Vec<_>>());
        Level { matched: TextMatch::AnyWord, must: None, parts: parts.collect() }
    }

    /// The words typed in one piece, as phrases, where there are more than one: `a::b`, `snake_case`.
    fn pieces(&self) -> impl Iterator<Item = Vec<(usize, String)>> {
        let several = self.words.chunk_by(|_, next| next.joined).filter(|piece| piece.len() > 1);
        // The whole query is no piece: standing together would have been found one level up.
        let several = several.filter(|piece| piece.len() < self.words.len());
        several.map(|piece| piece.iter().flat_map(|word| word.terms.iter().cloned()).collect())
    }
}

impl QueryWord {
    /// The word in any field, a stem of it, what stands in for it, or all its parts.
    fn somewhere(&self, fields: &Fields) -> Box<dyn Query> {
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

    /// What each of these gives.
    fn parts_somewhere(&self, fields: &Fields) -> Vec<Part> {
        let others = self.stems.iter().chain(&self.parts).map(|term| (term, 1.0));
        let others = others.chain(self.instead.iter().map(|(term, close)| (term, *close)));
        let others =
            others.flat_map(|(term, factor)| parts_in(fields, &[(0, term.clone())], factor).collect::<Vec<_>>());
        parts_in(fields, &self.terms, 1.0).chain(others).collect()
    }

    /// The word in one field, or a stem of it.
    fn in_field(&self, field: Field) -> Box<dyn Query> {
        let mut ways = vec![together(&self.terms, field)];
        ways.extend(self.stems.iter().map(|stem| term_query(field, stem)));
        Box::new(BooleanQuery::union(ways))
    }

    /// Each form of the word that is worth something by itself.
    fn weighted(&self) -> impl Iterator<Item = (&str, f32)> {
        let exact = if self.stems.is_empty() { 1.0 } else { EXACT_BONUS };
        let terms = self.terms.iter().map(move |(_, term)| (term.as_str(), exact));
        let others = self.stems.iter().chain(&self.parts).map(|term| (term.as_str(), 1.0));
        terms.chain(others).chain(self.instead.iter().map(|(term, close)| (term.as_str(), *close)))
    }

    /// In how many sections the most frequent form of a single word is, in whichever field; none for a run.
    fn most_sections(&self, view: &View, fields: &Fields) -> tantivy::Result<u64> {
        let [(_, only)] = self.terms.as_slice() else { return Ok(0) };
        let mut most = 0;
        for form in std::iter::once(only).chain(&self.stems).chain(&self.parts) {
            for (field, _) in fields.words {
                most = most.max(view.count(&Term::from_field_text(field, form))?);
            }
        }
        Ok(most)
    }

    /// How a text may have the word: as it is, or all parts of a compound. Each way with the words that it takes.
    fn ways(&self) -> Vec<Vec<Vec<&str>>> {
        let parts: Vec<Vec<&str>> = self.parts.iter().map(|part| vec![part.as_str()]).collect();
        [self.forms(), parts].into_iter().filter(|way| !way.is_empty()).collect()
    }

    /// The words that a text should have, each in all its forms.
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

/// The terms standing together in one field, whichever.
fn in_any_field(terms: &[(usize, String)], fields: &Fields) -> Box<dyn Query> {
    Box::new(BooleanQuery::union(fields.words.map(|(field, _)| together(terms, field)).into()))
}

/// What the terms standing together give in each field.
fn parts_in(fields: &Fields, terms: &[(usize, String)], factor: f32) -> impl Iterator<Item = Part> {
    fields.words.into_iter().map(move |(field, weight)| Part { terms: terms.to_vec(), field, factor: factor * weight })
}

/// The terms standing together in one field.
fn together(terms: &[(usize, String)], field: Field) -> Box<dyn Query> {
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
