//! What a query asks for, level by level. Everything typed is text: there is no syntax, so nothing is a mistake.

use quipu_core::ports::TextMatch;
use quipu_core::search::words::{WordKind, folded, parts, run_chars, words};
use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

use super::schema::Fields;

/// A pasted page is searched by its beginning.
const MAX_TERMS: usize = 64;

/// The words of a query.
#[derive(Debug, PartialEq)]
pub(super) struct QueryWords {
    words: Vec<QueryWord>,
}

/// One word, or one run of characters without spaces.
#[derive(Debug, Clone, PartialEq)]
struct QueryWord {
    /// With the position of each in the query: one for a word, the pairs of a run.
    terms: Vec<(usize, String)>,
    /// Of a compound.
    parts: Vec<String>,
    /// Whether it touches the word before, as in `a::b`.
    joined: bool,
}

impl QueryWords {
    pub(super) fn understand(text: &str) -> Self {
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
            let parts = match word.kind {
                WordKind::Plain => parts(word.text).into_iter().map(|(_, part)| folded(part)).collect(),
                WordKind::Run | WordKind::Emoji => Vec::new(),
            };
            understood.push(QueryWord { terms, parts, joined });
        }
        Self { words: understood }
    }

    /// The query for each level, strictest first. Levels that could find nothing more are left out; none for no words.
    pub(super) fn levels(&self, fields: &Fields) -> Vec<(TextMatch, Box<dyn Query>)> {
        let phrase = self.phrase();
        if phrase.is_empty() {
            return Vec::new();
        }
        let mut levels = vec![(TextMatch::Phrase, in_any_field(&phrase, fields))];
        let is_single = phrase.len() == 1 && self.words[0].parts.is_empty();
        if !is_single {
            levels.push((TextMatch::AllWords, self.all_words(fields)));
            levels.push((TextMatch::AnyWord, self.any_word(fields)));
        }
        levels
    }

    fn phrase(&self) -> Vec<(usize, String)> {
        self.words.iter().flat_map(|word| word.terms.iter().cloned()).collect()
    }

    /// Each word somewhere in the section; words typed in one piece count more when they stand together.
    fn all_words(&self, fields: &Fields) -> Box<dyn Query> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            let seen = self.words[..index].iter().any(|earlier| earlier.is_like(word));
            if !seen {
                clauses.push((Occur::Must, word.somewhere(fields)));
            }
        }
        clauses.extend(self.pieces().map(|piece| (Occur::Should, in_any_field(&piece, fields))));
        Box::new(BooleanQuery::new(clauses))
    }

    /// Any word, any pair of a run, any part of a compound.
    fn any_word(&self, fields: &Fields) -> Box<dyn Query> {
        let terms = self.words.iter().flat_map(|word| word.terms.iter().map(|(_, term)| term).chain(&word.parts));
        let mut distinct: Vec<&String> = terms.collect();
        distinct.sort_unstable();
        distinct.dedup();
        // One flat list of terms, since tantivy skips ahead in such a list and in no other.
        let terms = distinct.into_iter().flat_map(|term| {
            fields.words.map(|(field, weight)| (Occur::Should, boosted(term_query(field, term), weight)))
        });
        Box::new(BooleanQuery::new(terms.collect()))
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
    /// The word in any field, or all its parts.
    fn somewhere(&self, fields: &Fields) -> Box<dyn Query> {
        let whole = in_any_field(&self.terms, fields);
        if self.parts.is_empty() {
            return whole;
        }
        let parts = self.parts.iter().map(|part| (Occur::Must, in_any_field(&[(0, part.clone())], fields)));
        Box::new(BooleanQuery::union(vec![whole, Box::new(BooleanQuery::new(parts.collect()))]))
    }

    fn is_like(&self, other: &Self) -> bool {
        self.terms.iter().map(|(_, term)| term).eq(other.terms.iter().map(|(_, term)| term))
    }
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
    let in_field = |(field, weight): (Field, f32)| match terms {
        [(_, only)] => boosted(term_query(field, only), weight),
        several => {
            let terms = several.iter().map(|(position, term)| (*position, Term::from_field_text(field, term)));
            boosted(Box::new(PhraseQuery::new_with_offset(terms.collect())), weight)
        }
    };
    Box::new(BooleanQuery::union(fields.words.map(in_field).into()))
}

fn term_query(field: Field, term: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, term), IndexRecordOption::WithFreqs))
}

fn boosted(query: Box<dyn Query>, weight: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(query, weight))
}
