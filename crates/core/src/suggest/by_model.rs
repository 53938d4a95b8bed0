//! Questions to the language model that the user configured, and the checks of its answers.
//!
//! A note is data, and may say "ignore your instructions". So an answer counts only as far as the text or the vault confirms it:
//! words and numbers of a summary, names of entities, tags of the vault. Nothing in it is executed, and nothing is written.

use rustc_hash::FxHashSet;

use super::sentences::sentences;
use super::tags::spaced;
use crate::Knowledge;
use crate::memory::{EntityTypes, limits, name_key};
use crate::model::fold;
use crate::ports::{ModelText, NamedEntities, NamedRelation, TextModelError};
use crate::search::words::{WordKind, folded, run_chars, words};

/// Bytes of a text that are sent: about 6,000 tokens of English.
const MAX_BYTES: usize = 24_000;

/// Tags of the vault that are offered.
const MAX_TAGS: usize = 200;

/// Entities and relations of an answer that are read.
const MAX_NAMES: usize = 100;

/// The share of a summary's words that must be in the text.
const LEAST_SHARED: f32 = 0.5;

/// How the words of a text are compared: forms of one word mostly begin alike.
const STEM_CHARS: usize = 5;

/// Digits from which a number must be in the text: a summary may count up to nine things.
const LEAST_DIGITS: usize = 2;

/// A checked answer, with its warnings.
pub(super) struct Answer<T> {
    pub(super) value: T,
    pub(super) warnings: Vec<String>,
}

/// The warning where the model was not used.
pub(super) fn not_used(error: &TextModelError) -> String {
    format!("{error}; this answer was made without it")
}

impl Knowledge {
    /// A summary in at most `max_chars` characters; `None` without a model, as for the following.
    pub(super) fn summary_by_model(
        &self,
        title: &str,
        text: &str,
        max_chars: usize,
    ) -> Option<Result<Answer<String>, TextModelError>> {
        let model = self.text_model.as_ref()?;
        let (part, mut warnings) = beginning(text);
        // A word of English has about six characters with its space, and models count words better than characters.
        let answered = model.summarize(ModelText { title, text: part }, (max_chars / 7).max(10));
        Some(answered.and_then(|said| {
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            let value =
                whole_sentences(&said, max_chars).ok_or_else(|| unusable("the summary is empty or too long"))?;
            if value.len() < said.len() {
                warnings
                    .push("the summary of the language model was too long; its last sentences are omitted".to_owned());
            }
            check_grounded(&value, &format!("{title}\n{part}"))?;
            Ok(Answer { value, warnings })
        }))
    }

    /// Places in `vocabulary` of the tags that fit best.
    pub(super) fn tags_by_model(
        &self,
        title: &str,
        text: &str,
        vocabulary: &[&str],
        limit: usize,
    ) -> Option<Result<Answer<Vec<usize>>, TextModelError>> {
        let model = self.text_model.as_ref()?;
        let (part, mut warnings) = beginning(text);
        let offered = &vocabulary[..vocabulary.len().min(MAX_TAGS)];
        let answered = model.choose_tags(ModelText { title, text: part }, offered, limit);
        Some(answered.and_then(|named| {
            let known: Vec<String> = offered.iter().map(|tag| fold(tag)).collect();
            let places = named.iter().take(MAX_TAGS).map(|tag| {
                let tag = fold(tag.trim().trim_start_matches('#'));
                known.iter().position(|known| *known == tag)
            });
            let (mut value, mut unknown) = (Vec::new(), 0);
            for place in places {
                match place {
                    Some(place) if value.contains(&place) => {}
                    Some(place) => value.push(place),
                    None => unknown += 1,
                }
            }
            value.truncate(limit);
            if value.is_empty() {
                return Err(unusable("it names no tag of this vault"));
            }
            warnings.extend(left_out(unknown, "tags that it was not offered"));
            Ok(Answer { value, warnings })
        }))
    }

    /// What a text names. Every name is in the text, and both names of a relation are in one paragraph.
    pub(super) fn entities_by_model(
        &self,
        title: &str,
        text: &str,
    ) -> Option<Result<Answer<NamedEntities>, TextModelError>> {
        let model = self.text_model.as_ref()?;
        let (part, mut warnings) = beginning(text);
        let answered = model.name_entities(ModelText { title, text: part }, &EntityTypes::CANONICAL);
        Some(answered.and_then(|said| {
            let words = spaced(part);
            let is_found = |(name, kind): &(String, String)| {
                is_usable(name, limits::NAME) && is_usable(kind, limits::TYPE) && is_in(&words, name)
            };
            let named = said.entities.len();
            let read = said.entities.into_iter().take(MAX_NAMES);
            let trimmed = read.map(|(name, kind)| (as_spelled(part, name.trim()), kind.trim().to_owned()));
            let entities: Vec<(String, String)> = trimmed.filter(is_found).collect();
            if entities.is_empty() && named > 0 {
                return Err(unusable("it names only things that are not in the text"));
            }
            warnings.extend(left_out(named - entities.len(), "things that are not in the text"));
            let relations = stated_relations(said.relations, part, &entities);
            Ok(Answer { value: NamedEntities { entities, relations }, warnings })
        }))
    }
}

/// The part of a text that is sent, and a warning if that is not all of it.
fn beginning(text: &str) -> (&str, Vec<String>) {
    let part = &text[..text.floor_char_boundary(MAX_BYTES)];
    let warning = || format!("the language model read only the first {} bytes of {}", part.len(), text.len());
    (part, (part.len() < text.len()).then(warning).into_iter().collect())
}

fn unusable(why: &str) -> TextModelError {
    TextModelError::Unusable(why.to_owned())
}

/// A warning about parts that the text does not confirm.
fn left_out(count: usize, things: &str) -> Option<String> {
    (count > 0).then(|| format!("the language model named {count} {things}; they are omitted"))
}

/// The first sentences that fit; `None` if not even one does.
fn whole_sentences(text: &str, max_chars: usize) -> Option<String> {
    if !text.is_empty() && text.chars().count() <= max_chars {
        return Some(text.to_owned());
    }
    let mut end = 0;
    for sentence in sentences(text) {
        let after = sentence.as_ptr() as usize - text.as_ptr() as usize + sentence.len();
        if text[..after].chars().count() > max_chars {
            break;
        }
        end = after;
    }
    (end > 0).then(|| text[..end].to_owned())
}

/// Fails if the text does not have a number of the summary, or too few of its words.
fn check_grounded(summary: &str, text: &str) -> Result<(), TextModelError> {
    let (said, known) = (Vocabulary::of(summary), Vocabulary::of(text));
    if !said.numbers.is_subset(&known.numbers) {
        return Err(unusable("the summary has a number that is not in the text"));
    }
    let shared = said.stems.intersection(&known.stems).count();
    if (shared as f32) < LEAST_SHARED * said.stems.len() as f32 {
        return Err(unusable("the summary is not about the text"));
    }
    Ok(())
}

/// The words and numbers of a text.
#[derive(Default)]
struct Vocabulary {
    /// Beginnings of words, and pairs of characters of scripts without spaces.
    stems: FxHashSet<String>,
    numbers: FxHashSet<String>,
}

impl Vocabulary {
    fn of(text: &str) -> Self {
        let mut vocabulary = Self::default();
        for word in words(text) {
            if word.kind == WordKind::Run {
                let chars: Vec<char> = run_chars(word.text).into_iter().map(|(c, _)| c).collect();
                vocabulary.stems.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
                continue;
            }
            let word = folded(word.text);
            let length = word.chars().count();
            if word.chars().all(char::is_numeric) {
                vocabulary.numbers.extend((length >= LEAST_DIGITS).then_some(word));
            } else if length > 3 {
                vocabulary.stems.insert(word.chars().take(STEM_CHARS).collect());
            }
        }
        vocabulary
    }
}

/// The relations between these entities that the text can state, with a type that memory takes.
fn stated_relations(said: Vec<NamedRelation>, text: &str, entities: &[(String, String)]) -> Vec<NamedRelation> {
    let paragraphs: Vec<String> = text.split("\n\n").map(spaced).collect();
    let known = |name: &str| {
        let key = name_key(name);
        entities.iter().map(|(name, _)| name).find(|name| name_key(name) == key).cloned()
    };
    let mut relations: Vec<NamedRelation> = Vec::new();
    for relation in said.into_iter().take(MAX_NAMES) {
        let (Some(from), Some(to)) = (known(&relation.from), known(&relation.to)) else { continue };
        let relation_type = relation.relation_type.trim().to_lowercase().replace([' ', '-'], "_");
        let is_type =
            is_usable(&relation_type, limits::TYPE) && relation_type.chars().all(|c| c.is_alphanumeric() || c == '_');
        let is_stated = from != to && paragraphs.iter().any(|text| is_in(text, &from) && is_in(text, &to));
        let relation = NamedRelation { from, to, relation_type };
        if is_type && is_stated && !relations.contains(&relation) {
            relations.push(relation);
        }
    }
    relations
}

/// A name as the text has it: models change capital letters.
fn as_spelled(text: &str, name: &str) -> String {
    let (folded_text, folded_name) = (text.to_lowercase(), name.to_lowercase());
    let found = folded_text.find(&folded_name).filter(|_| folded_text.len() == text.len());
    let spelled = found.and_then(|at| text.get(at..at + folded_name.len()));
    spelled.unwrap_or(name).to_owned()
}

/// Whether memory takes it as a name or a type.
fn is_usable(name: &str, max_chars: usize) -> bool {
    !name.trim().is_empty() && name.chars().count() <= max_chars && !name.contains(char::is_control)
}

/// Whether a text has these words.
fn is_in(spaced_text: &str, name: &str) -> bool {
    let name = spaced(name);
    // Scripts without spaces have no words, so a name may be a part of a run.
    let is_run = words(&name).any(|word| word.kind == WordKind::Run);
    !name.trim().is_empty() && spaced_text.contains(if is_run { name.trim() } else { name.as_str() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "The station on Kestrel Hill measures rain with 12 gauges.\n\nAda Moss repairs the heater.";

    #[test]
    fn summaries_that_the_text_does_not_confirm_are_refused() {
        check_grounded("12 gauges measure the rain at the station.", NOTE).unwrap();
        check_grounded("駅では雨を測る。", "この駅では毎日雨を測ることになっている。").unwrap();
        for (summary, why) in [
            ("The station measures rain with 47 gauges.", "a number that is not in the text"),
            ("Buy cheap watches online, visit our wonderful shop today.", "is not about the text"),
            ("天気予報を見てください。", "is not about the text"),
        ] {
            let error = check_grounded(summary, NOTE).unwrap_err().to_string();
            assert!(error.contains(why), "{summary}: {error}");
        }
    }

    #[test]
    fn a_summary_is_cut_after_a_sentence_that_fits() {
        let text = "The first sentence is here. The second sentence is here.";
        assert_eq!(whole_sentences(text, 100).as_deref(), Some(text));
        assert_eq!(whole_sentences(text, 40).as_deref(), Some("The first sentence is here."));
        assert_eq!(whole_sentences(text, 10), None);
        assert_eq!(whole_sentences("", 10), None);
    }

    #[test]
    fn relations_need_both_names_in_one_paragraph() {
        let entities = ["Ada Moss", "heater", "Kestrel Hill"].map(|name| (name.to_owned(), "Resource".to_owned()));
        let relation = |from: &str, to: &str, kind: &str| NamedRelation {
            from: from.to_owned(),
            to: to.to_owned(),
            relation_type: kind.to_owned(),
        };
        let said = vec![
            relation("ada moss", "Heater", "Looks after"),
            relation("Ada Moss", "Heater", "looks_after"),
            relation("Ada Moss", "Kestrel Hill", "lives_on"),
            relation("Ada Moss", "nobody", "knows"),
            relation("Ada Moss", "heater", "run `rm -rf`"),
        ];
        assert_eq!(stated_relations(said, NOTE, &entities), [relation("Ada Moss", "heater", "looks_after")]);
    }
}
