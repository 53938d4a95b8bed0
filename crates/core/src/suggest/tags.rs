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
use crate::search::{NoteSearch, RankingSources};

/// Similar notes whose tags count.
const NEIGHBOURS: usize = 20;

/// Characters of a note that are compared with others.
const QUERY_CHARS: usize = 1_500;

/// Words of the comparison where there is no embedder: a longer query is slow and hardly better.
const QUERY_WORDS: usize = 24;

/// Bytes of a text in which names of tags are looked for, and the fewest bytes of such a name.
const MAX_NAMED_BYTES: usize = 20_000;
const LEAST_NAME_BYTES: usize = 3;

/// How much each sign for a tag counts. `cargo bench --bench suggest` measures them on one half of the notes of real vaults; with
/// `--tune` it looks for better ones on the other half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TagWeights {
    /// How fast the weight of a note falls with its similarity.
    pub steepness: i32,
    /// The weight of a linked note, against 1 for the most similar note.
    pub linked: f32,
    /// What a tag gains whose name is in the title.
    pub in_title: f32,
    /// What a tag gains whose name is only in the text.
    pub in_text: f32,
    /// What a tag gains that all notes of the same folder have.
    pub in_folder: f32,
    /// Tags with a smaller share of the best score are left out: most notes have one or two tags, and a doubtful one costs trust.
    pub least_share: f32,
}

impl TagWeights {
    /// The weights in use. They were chosen by hand: those that `--tune` finds are not better on the other half (docs/suggestions.md).
    pub const CHOSEN: Self =
        Self { steepness: 4, linked: 0.3, in_title: 0.5, in_text: 0.2, in_folder: 0.5, least_share: 0.7 };
}

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
    is_in_text: bool,
}

impl Votes {
    fn of(tag: &Tag) -> Self {
        Self { name: tag.name.clone(), ..Self::default() }
    }
}

/// The evidence for the tags of a note, before it is weighted.
pub struct TagSigns<'s> {
    snapshot: &'s Snapshot,
    key: NoteKey,
    /// Similar notes, each with its similarity as a share of the best, most similar first.
    similar: Vec<(NoteKey, f32)>,
    linked: Vec<NoteKey>,
    /// Tagged notes in the same folder.
    siblings: Vec<&'s Note>,
    /// Tags whose name is in the title (`true`) or only in the text.
    named: Vec<(&'s Tag, bool)>,
    by_meaning: bool,
}

impl Knowledge {
    /// Suggests tags for a note that it does not have; `body` is its text.
    pub fn suggest_tags(
        &self,
        snapshot: &Snapshot,
        key: NoteKey,
        body: &str,
        limit: usize,
    ) -> Result<TagSuggestions, StoreError> {
        let note = snapshot.note(key);
        let plain = plain_text(body);
        let signs = self.tag_signs(snapshot, key, &plain)?;
        let (method, weights) = (Method::without_model(signs.by_meaning), TagWeights::CHOSEN);
        let mut tags = signs.ranked(&weights);
        tags.retain(|tag| !note.has_tag(&fold(&tag.tag)));
        let mut suggestions = TagSuggestions { tags, method, warnings: Vec::new() };
        if self.text_model.is_some() && !plain.trim().is_empty() {
            self.choose_by_model(snapshot, note, body, limit, &mut suggestions);
        }
        if suggestions.method != Method::Model {
            weights.leave_doubtful_out(&mut suggestions.tags);
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

    /// The evidence for the tags of a note; `plain` is its text as [`plain_text`] returns it.
    pub fn tag_signs<'s>(&self, snapshot: &'s Snapshot, key: NoteKey, plain: &str) -> Result<TagSigns<'s>, StoreError> {
        let (similar, by_meaning) = self.similar_notes(snapshot, key, plain)?;
        let graph = snapshot.graph();
        let linked = graph.out(key).iter().take(NEIGHBOURS).chain(graph.incoming(key).iter().take(NEIGHBOURS));
        let linked = linked.copied().filter(|other| *other != key).collect();
        let named = named_in(snapshot, snapshot.note(key), plain);
        Ok(TagSigns { snapshot, key, similar, linked, siblings: siblings(snapshot, key).collect(), named, by_meaning })
    }

    /// Similar notes with their similarity as a share of the best, most similar first, and whether they were found by meaning.
    fn similar_notes(
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
        let by = if self.has_meaning() { RankingSources::Meaning } else { RankingSources::Words };
        let found = self.search(&NoteSearch { by, ..NoteSearch::new(&query, NEIGHBOURS + 1) })?;
        // The search may have used a newer snapshot.
        let known = found.found.iter().filter_map(|hit| {
            let known = snapshot.find_exact(&found.snapshot.note(hit.key).path)?;
            Some((known, hit.score() as f32 / 1000.0))
        });
        let mut similar: Vec<(NoteKey, f32)> = known.filter(|(other, _)| *other != key).take(NEIGHBOURS).collect();
        let floor = if found.by_meaning { self.unrelated() } else { 0.0 };
        let best = similar.first().map_or(0.0, |(_, score)| score - floor).max(f32::MIN_POSITIVE);
        similar.iter_mut().for_each(|(_, score)| *score = (*score - floor).max(0.0) / best);
        Ok((similar, found.by_meaning))
    }
}

impl TagWeights {
    /// Leaves out the tags whose score is too small a share of the best. They are sorted.
    pub fn leave_doubtful_out(&self, tags: &mut Vec<SuggestedTag>) {
        let least = tags.first().map_or(0.0, |best| best.score * self.least_share);
        tags.retain(|tag| tag.score >= least);
    }
}

impl TagSigns<'_> {
    /// The tags of similar and linked notes, of the folder, and those named in the text, best first; also those that the note
    /// has.
    pub fn ranked(&self, weights: &TagWeights) -> Vec<SuggestedTag> {
        let neighbours = self.neighbours(weights);
        let mut votes: BTreeMap<&str, Votes> = BTreeMap::new();
        let tagged = neighbours.iter().filter(|(neighbour, _)| !self.snapshot.note(*neighbour).tags.is_empty());
        let total: f32 = tagged.map(|(_, weight)| weight).sum::<f32>().max(f32::MIN_POSITIVE);
        for (neighbour, weight) in neighbours {
            for tag in &self.snapshot.note(neighbour).tags {
                let vote = votes.entry(&tag.folded).or_insert_with(|| Votes::of(tag));
                vote.weight += weight / total;
                vote.notes += 1;
                vote.example.get_or_insert(neighbour);
            }
        }
        for tag in self.siblings.iter().flat_map(|sibling| &sibling.tags) {
            votes.entry(&tag.folded).or_insert_with(|| Votes::of(tag)).in_folder += 1;
        }
        for (tag, is_in_title) in &self.named {
            let weight = if *is_in_title { weights.in_title } else { weights.in_text };
            let vote = votes.entry(&tag.folded).or_insert_with(|| Votes::of(tag));
            (vote.in_text, vote.is_in_text) = (weight, true);
        }
        let siblings = self.siblings.len().max(1) as f32;
        let in_folder = |vote: &Votes| weights.in_folder * vote.in_folder as f32 / siblings;
        let highest = 1.0 + weights.in_folder + weights.in_title;
        let mut tags: Vec<SuggestedTag> = votes
            .into_values()
            .map(|vote| SuggestedTag {
                score: (vote.weight + in_folder(&vote) + vote.in_text) / highest,
                tag: vote.name,
                notes: vote.notes,
                example: vote.example,
                is_in_text: vote.is_in_text,
                in_folder: vote.in_folder,
            })
            .collect();
        tags.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.tag.cmp(&b.tag)));
        tags
    }

    /// Similar and linked notes with their weight, heaviest first.
    fn neighbours(&self, weights: &TagWeights) -> Vec<(NoteKey, f32)> {
        let similar = self.similar.iter().map(|(other, share)| (*other, share.powi(weights.steepness)));
        let mut weighed: FxHashMap<NoteKey, f32> = similar.collect();
        for other in &self.linked {
            let weight = weighed.entry(*other).or_default();
            *weight = weight.max(weights.linked);
        }
        let mut neighbours: Vec<(NoteKey, f32)> = weighed.into_iter().collect();
        let place = |key| self.snapshot.place(key);
        neighbours.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| place(a.0).cmp(&place(b.0))));
        neighbours
    }

    /// The most similar note that has tags.
    pub fn most_similar(&self) -> Option<NoteKey> {
        let similar = self.similar.iter().map(|(other, _)| *other);
        similar.into_iter().find(|other| *other != self.key && !self.snapshot.note(*other).tags.is_empty())
    }
}

impl SuggestedTag {
    fn unseen(tag: &str) -> Self {
        Self { tag: tag.to_owned(), score: 0.0, notes: 0, example: None, is_in_text: false, in_folder: 0 }
    }
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

/// The tags of the vault whose name, or the last part of a nested one, is in the title (`true`) or the text of a note.
fn named_in<'s>(snapshot: &'s Snapshot, note: &Note, plain: &str) -> Vec<(&'s Tag, bool)> {
    let title = spaced(&note.title);
    let text = spaced(&plain[..plain.floor_char_boundary(MAX_NAMED_BYTES)]);
    let mut seen = FxHashSet::default();
    let tags = snapshot.files().flat_map(|key| &snapshot.note(key).tags);
    let weighed = tags.filter(|tag| seen.insert(tag.folded.as_str())).filter_map(|tag| {
        let name = spaced(tag.folded.rsplit('/').next().unwrap_or_default());
        let is_name = name.trim().chars().map(char::len_utf8).sum::<usize>() >= LEAST_NAME_BYTES;
        match () {
            () if !is_name => None,
            () if title.contains(&name) => Some((tag, true)),
            () if text.contains(&name) => Some((tag, false)),
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
