//! Tags for a note: those of similar and linked notes and of its folder, and those whose name is in its text. A language model
//! chooses among them if there is one.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Method;
use super::by_model::not_used;
use super::sentences::plain_text;
use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::{Note, NoteKey, Tag, fold};
use crate::ports::StoreError;
use crate::search::words::{folded, words};
use crate::search::{By, NoteSearch};

/// Similar notes whose tags count. `cargo bench --bench suggest` measures this and the weights below.
const NEIGHBOURS: usize = 20;

/// Characters of a note that are compared with others.
const QUERY_CHARS: usize = 1_500;

/// Words of the comparison where there is no embedder: a longer query is slow and hardly better.
const QUERY_WORDS: usize = 24;

/// How fast the weight of a note falls with its similarity.
const STEEPNESS: i32 = 4;

/// The weight of a linked note, against 1 for the most similar note.
const LINKED: f32 = 0.3;

/// What a tag gains whose name is in the title, or only in the text.
const IN_TITLE: f32 = 0.5;
const IN_TEXT: f32 = 0.2;

/// What a tag gains that all notes of the same folder have.
const IN_FOLDER: f32 = 0.5;

/// Tags with a smaller share of the best score are left out: most notes have one or two tags, and a doubtful one costs trust.
const LEAST_SHARE: f32 = 0.7;

/// Bytes of a text in which names of tags are looked for, and the fewest bytes of such a name.
const MAX_NAMED_BYTES: usize = 20_000;
const LEAST_NAME_BYTES: usize = 3;

/// Tags for a note.
#[derive(Debug, Clone, PartialEq)]
pub struct TagSuggestions {
    /// Best first, ties by name.
    pub tags: Vec<SuggestedTag>,
    /// How they were chosen.
    pub method: Method,
    /// Why a language model was not used, and which of its tags were not.
    pub warnings: Vec<String>,
}

/// A tag that the note does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestedTag {
    /// As the vault writes it.
    pub tag: String,
    /// From 0 to 1; compares within one answer.
    pub score: f32,
    /// Similar or linked notes that have it.
    pub notes: usize,
    /// The most similar of them.
    pub example: Option<NoteKey>,
    /// Whether the text has its name.
    pub is_in_text: bool,
    /// Notes in the folder of the note that have it.
    pub in_folder: usize,
}

#[derive(Default)]
struct Votes {
    name: String,
    weight: f32,
    notes: usize,
    example: Option<NoteKey>,
    in_folder: usize,
    in_text: f32,
}

impl Votes {
    fn of(tag: &Tag) -> Self {
        Self { name: tag.name.clone(), ..Self::default() }
    }
}

impl Knowledge {
    /// Suggests tags for a note; `body` is its text. Tags that it has are left out, except `forgotten` ones, which count as
    /// if the note did not have them: for measuring.
    pub fn suggest_tags(
        &self,
        snapshot: &Snapshot,
        key: NoteKey,
        body: &str,
        limit: usize,
        forgotten: &[Tag],
    ) -> Result<TagSuggestions, StoreError> {
        let note = snapshot.note(key);
        let plain = plain_text(body);
        let (neighbours, by_meaning) = self.neighbours(snapshot, key, &plain)?;
        let mut tags = ranked(snapshot, key, &plain, &neighbours);
        let has = |tag: &SuggestedTag| note.has_tag(&fold(&tag.tag));
        let is_forgotten = |tag: &SuggestedTag| forgotten.iter().any(|known| known.folded == fold(&tag.tag));
        tags.retain(|tag| !has(tag) || is_forgotten(tag));
        let least = tags.first().map_or(0.0, |best| best.score * LEAST_SHARE);
        let mut suggestions = TagSuggestions { tags, method: Method::without_model(by_meaning), warnings: Vec::new() };
        if self.text_model.is_some() && !plain.trim().is_empty() {
            self.choose_by_model(snapshot, note, body, limit, &mut suggestions);
        }
        if suggestions.method != Method::Model {
            suggestions.tags.retain(|tag| tag.score >= least);
        }
        suggestions.tags.truncate(limit);
        Ok(suggestions)
    }

    /// Lets the language model choose, from the suggestions and the other tags of the vault.
    fn choose_by_model(
        &self,
        snapshot: &Snapshot,
        note: &Note,
        body: &str,
        limit: usize,
        suggestions: &mut TagSuggestions,
    ) {
        let mut offered = suggestions.tags.clone();
        let known: FxHashSet<String> = offered.iter().map(|tag| fold(&tag.tag)).collect();
        let others = frequent_tags(snapshot).into_iter();
        let others = others.filter(|tag| !known.contains(&tag.folded) && !note.has_tag(&tag.folded));
        offered.extend(others.map(|tag| SuggestedTag::unseen(&tag.name)));
        let names: Vec<&str> = offered.iter().map(|tag| tag.tag.as_str()).collect();
        match self.tags_by_model(&note.title, body, &names, limit) {
            Some(Ok(answer)) => {
                let count = answer.value.len() as f32;
                let chosen = answer.value.iter().enumerate();
                // A model gives an order, not a score.
                let scored = chosen.map(|(place, at)| {
                    let score = 1.0 - place as f32 / (count + 1.0);
                    SuggestedTag { score, ..offered[*at].clone() }
                });
                suggestions.tags = scored.collect();
                suggestions.method = Method::Model;
                suggestions.warnings = answer.warnings;
            }
            Some(Err(why)) => suggestions.warnings = vec![not_used(&why)],
            None => {}
        }
    }

    /// Similar and linked notes with their weight, most similar first.
    fn neighbours(
        &self,
        snapshot: &Snapshot,
        key: NoteKey,
        plain: &str,
    ) -> Result<(Vec<(NoteKey, f32)>, bool), StoreError> {
        let note = snapshot.note(key);
        let beginning = &plain[..plain.char_indices().nth(QUERY_CHARS).map_or(plain.len(), |(at, _)| at)];
        let query = match self.has_meaning() {
            true => format!("{}\n{beginning}", note.title),
            false => frequent_words(&note.title, beginning),
        };
        let by = if self.has_meaning() { By::Meaning } else { By::Words };
        let found = self.search(&NoteSearch { by, ..NoteSearch::new(&query, NEIGHBOURS + 1) })?;
        // The search may have used a newer snapshot.
        let known = found.found.iter().filter_map(|hit| {
            let known = snapshot.find_exact(&found.snapshot.note(hit.key).path)?;
            Some((known, hit.score() as f32 / 1000.0))
        });
        let similar: Vec<(NoteKey, f32)> = known.filter(|(other, _)| *other != key).take(NEIGHBOURS).collect();
        let floor = if found.by_meaning { self.unrelated() } else { 0.0 };
        let best = similar.first().map_or(0.0, |(_, score)| score - floor).max(f32::MIN_POSITIVE);
        let mut weights: FxHashMap<NoteKey, f32> = FxHashMap::default();
        for (other, score) in &similar {
            weights.insert(*other, ((score - floor).max(0.0) / best).powi(STEEPNESS));
        }
        let graph = snapshot.graph();
        let linked = graph.out(key).iter().take(NEIGHBOURS).chain(graph.incoming(key).iter().take(NEIGHBOURS));
        for other in linked.filter(|other| **other != key) {
            let weight = weights.entry(*other).or_default();
            *weight = weight.max(LINKED);
        }
        let mut neighbours: Vec<(NoteKey, f32)> = weights.into_iter().collect();
        neighbours.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| snapshot.place(a.0).cmp(&snapshot.place(b.0))));
        Ok((neighbours, found.by_meaning))
    }
}

impl SuggestedTag {
    fn unseen(tag: &str) -> Self {
        Self { tag: tag.to_owned(), score: 0.0, notes: 0, example: None, is_in_text: false, in_folder: 0 }
    }
}

/// The tags of neighbours, of the folder, and those named in the text, best first.
fn ranked(snapshot: &Snapshot, key: NoteKey, plain: &str, neighbours: &[(NoteKey, f32)]) -> Vec<SuggestedTag> {
    let mut votes: BTreeMap<&str, Votes> = BTreeMap::new();
    let tagged = neighbours.iter().filter(|(neighbour, _)| !snapshot.note(*neighbour).tags.is_empty());
    let total: f32 = tagged.map(|(_, weight)| weight).sum::<f32>().max(f32::MIN_POSITIVE);
    for (neighbour, weight) in neighbours {
        for tag in &snapshot.note(*neighbour).tags {
            let vote = votes.entry(&tag.folded).or_insert_with(|| Votes::of(tag));
            vote.weight += weight / total;
            vote.notes += 1;
            vote.example.get_or_insert(*neighbour);
        }
    }
    let note = snapshot.note(key);
    let siblings: Vec<&Note> = siblings(snapshot, key).collect();
    for tag in siblings.iter().flat_map(|sibling| &sibling.tags) {
        votes.entry(&tag.folded).or_insert_with(|| Votes::of(tag)).in_folder += 1;
    }
    for (tag, weight) in named_in(snapshot, note, plain) {
        votes.entry(&tag.folded).or_insert_with(|| Votes::of(tag)).in_text = weight;
    }
    let in_folder = |vote: &Votes| IN_FOLDER * vote.in_folder as f32 / siblings.len().max(1) as f32;
    let mut tags: Vec<SuggestedTag> = votes
        .into_values()
        .map(|vote| SuggestedTag {
            score: (vote.weight + in_folder(&vote) + vote.in_text) / (1.0 + IN_FOLDER + IN_TITLE),
            tag: vote.name,
            notes: vote.notes,
            example: vote.example,
            is_in_text: vote.in_text > 0.0,
            in_folder: vote.in_folder,
        })
        .collect();
    tags.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.tag.cmp(&b.tag)));
    tags
}

/// Other tagged notes in the folder of a note. None at the root of the vault, where notes have nothing in common.
fn siblings(snapshot: &Snapshot, key: NoteKey) -> impl Iterator<Item = &Note> {
    let folder = snapshot.note(key).path.folder();
    let others = snapshot.files().filter(move |other| *other != key && !folder.is_empty());
    others.map(|other| snapshot.note(other)).filter(move |note| note.path.folder() == folder && !note.tags.is_empty())
}

/// The tags of a vault, most frequent first.
fn frequent_tags(snapshot: &Snapshot) -> Vec<&Tag> {
    let mut counts: BTreeMap<&str, (&Tag, usize)> = BTreeMap::new();
    for tag in snapshot.files().flat_map(|key| &snapshot.note(key).tags) {
        counts.entry(&tag.folded).or_insert((tag, 0)).1 += 1;
    }
    let mut tags: Vec<(&Tag, usize)> = counts.into_values().collect();
    tags.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    tags.into_iter().map(|(tag, _)| tag).collect()
}

/// The title and the most frequent longer words of a text.
fn frequent_words(title: &str, text: &str) -> String {
    let mut counts: FxHashMap<String, usize> = FxHashMap::default();
    for word in words(text).filter(|word| word.text.chars().count() > 3) {
        *counts.entry(folded(word.text)).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let words = counts.into_iter().take(QUERY_WORDS).map(|(word, _)| word);
    [title.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// The tags of the vault whose name, or the last part of a nested one, is in the title or the text of a note.
fn named_in<'s>(snapshot: &'s Snapshot, note: &Note, plain: &str) -> Vec<(&'s Tag, f32)> {
    let title = spaced(&note.title);
    let text = spaced(&plain[..plain.floor_char_boundary(MAX_NAMED_BYTES)]);
    let mut seen = FxHashSet::default();
    let tags = snapshot.files().flat_map(|key| &snapshot.note(key).tags);
    let weighed = tags.filter(|tag| seen.insert(tag.folded.as_str())).filter_map(|tag| {
        let name = spaced(tag.folded.rsplit('/').next().unwrap_or_default());
        let is_name = name.trim().chars().map(char::len_utf8).sum::<usize>() >= LEAST_NAME_BYTES;
        match () {
            () if !is_name => None,
            () if title.contains(&name) => Some((tag, IN_TITLE)),
            () if text.contains(&name) => Some((tag, IN_TEXT)),
            () => None,
        }
    });
    weighed.collect()
}

/// The words of a text, folded, each between spaces, so that a part of a word does not match.
pub(super) fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 2);
    spaced.push(' ');
    for word in words(text) {
        spaced.push_str(&folded(word.text));
        spaced.push(' ');
    }
    spaced
}
