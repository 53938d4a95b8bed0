//! Texts as the words they are found by.

use rustc_hash::FxHashMap;

use super::fields::Field;
use crate::memory::entity_types::EntityTypes;
use crate::memory::model::Entity;
use crate::search::words::{WordKind, folded, parts, run_chars, unaccented, words};

/// A pasted page is searched by its beginning.
const MAX_QUERY_TERMS: usize = 48;

/// Words with how often each occurs.
pub(super) type Counted = Vec<(String, u32)>;

/// The words of an entity's own fields. Its type is found by every word that becomes it: whoever created a `Person`, kept
/// as `User`, searches for `Person`.
pub(super) fn fields_of(entity: &Entity, types: &EntityTypes) -> Vec<(Field, Counted)> {
    let variants = types.variants(&entity.entity_type).iter().map(String::as_str);
    let mut fields = vec![
        (Field::Name, count(std::iter::once(&*entity.name))),
        (Field::Type, count(std::iter::once(&*entity.entity_type).chain(variants))),
    ];
    if !entity.aliases.is_empty() {
        fields.push((Field::Aliases, count(entity.aliases.iter().map(String::as_str))));
    }
    if let Some(description) = &entity.description {
        fields.push((Field::Description, count(std::iter::once(&**description))));
    }
    fields
}

/// The words of some texts as they are indexed: each word, the parts of a compound, and for scripts without spaces each
/// character and each pair.
pub(super) fn count<'a>(texts: impl Iterator<Item = &'a str>) -> Counted {
    let mut counted: FxHashMap<String, u32> = FxHashMap::default();
    let mut add = |word: String| *counted.entry(word).or_default() += 1;
    for text in texts {
        for word in words(text) {
            match word.kind {
                WordKind::Plain => {
                    add(term(word.text));
                    parts(word.text).into_iter().for_each(|(_, part)| add(term(part)));
                }
                WordKind::Emoji => add(folded(word.text)),
                WordKind::Run => {
                    let chars: Vec<char> = run_chars(word.text).into_iter().map(|(c, _)| c).collect();
                    chars.iter().for_each(|c| add(c.to_string()));
                    chars.windows(2).for_each(|pair| add(pair.iter().collect()));
                }
            }
        }
    }
    counted.into_iter().collect()
}

/// A word as it is found: in any case, with its accents or without.
fn term(word: &str) -> String {
    unaccented(folded(word))
}

/// The words of a query. A run of two characters or more is its pairs.
pub(super) fn query_words(query: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for word in words(query) {
        match word.kind {
            WordKind::Plain => {
                terms.push(term(word.text));
                terms.extend(parts(word.text).into_iter().map(|(_, part)| term(part)));
            }
            WordKind::Emoji => terms.push(folded(word.text)),
            WordKind::Run => {
                let chars: Vec<char> = run_chars(word.text).into_iter().map(|(c, _)| c).collect();
                match chars.as_slice() {
                    [only] => terms.push(only.to_string()),
                    several => terms.extend(several.windows(2).map(|pair| pair.iter().collect::<String>())),
                }
            }
        }
        if terms.len() >= MAX_QUERY_TERMS {
            break;
        }
    }
    let mut seen = rustc_hash::FxHashSet::default();
    terms.retain(|term| seen.insert(term.clone()));
    terms.truncate(MAX_QUERY_TERMS);
    terms
}

/// What an English word shares with its other forms: `painting` finds `painted`. Only for looking up, so an odd stem does
/// no harm beyond a weak hit.
pub(super) fn stem(word: &str) -> &str {
    const MIN_STEM: usize = 4;
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    let endings = ["ations", "ation", "ings", "ing", "ies", "ied", "ers", "es", "ed", "er", "ly", "s", "y", "e"];
    let cut = endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= MIN_STEM));
    cut.unwrap_or(word)
}
