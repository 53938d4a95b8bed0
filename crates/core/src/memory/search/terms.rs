//! The index terms of texts and queries.

use rustc_hash::FxHashMap;

use super::fields::MemoryField;
use crate::memory::entity_types::EntityTypes;
use crate::memory::model::Entity;
use crate::search::words::{WordKind, folded, parts, run_chars, unaccented, words};

/// The rest of a longer query is ignored.
const MAX_QUERY_TERMS: usize = 48;

/// Words with how often each occurs.
pub(super) type Counted = Vec<(String, u32)>;

/// The words of an entity's own fields. Its type is indexed with its synonyms: an agent that created a `Person`, stored as `User`,
/// searches for `Person`.
pub(super) fn fields_of(entity: &Entity, types: &EntityTypes) -> Vec<(MemoryField, Counted)> {
    let variants = types.variants(&entity.entity_type).iter().map(String::as_str);
    let mut fields = vec![
        (MemoryField::Name, count(std::iter::once(&*entity.name))),
        (MemoryField::Type, count(std::iter::once(&*entity.entity_type).chain(variants))),
    ];
    if !entity.aliases.is_empty() {
        fields.push((MemoryField::Aliases, count(entity.aliases.iter().map(String::as_str))));
    }
    if let Some(description) = &entity.description {
        fields.push((MemoryField::Description, count(std::iter::once(&**description))));
    }
    fields
}

/// The index terms of texts: each word, the parts of a compound, and for scripts without spaces each character and pair.
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

/// A folded word without accents.
fn term(word: &str) -> String {
    unaccented(folded(word))
}

/// The terms of a query. In scripts without spaces, two characters or more give their pairs.
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

/// The stem of an English word: `painting` finds `painted`. Only used for look-ups, so a wrong stem costs no more than a weak
/// hit.
pub(super) fn stem(word: &str) -> &str {
    const MIN_STEM: usize = 4;
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    let endings = ["ations", "ation", "ings", "ing", "ies", "ied", "ers", "es", "ed", "er", "ly", "s", "y", "e"];
    let cut = endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= MIN_STEM));
    cut.unwrap_or(word)
}
