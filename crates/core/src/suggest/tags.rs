//! Tags for a note: those of similar and linked notes, and those whose name is in its text.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::sentences::plain_text;
use crate::Knowledge;
use crate::index::Snapshot;
use crate::model::{Note, NoteKey, Tag};
use crate::ports::StoreError;
use crate::search::words::{folded, words};
use crate::search::{By, NoteSearch};

/// Similar notes whose tags count.
const NEIGHBOURS: usize = 20;

/// Characters of a note that are compared with others.
const QUERY_CHARS: usize = 1_500;

/// Words of the comparison where there is no embedder: a longer query is slow and hardly better.
const QUERY_WORDS: usize = 24;

/// The weight of a linked note, against 1 for the most similar note.
const LINKED: f32 = 0.6;

/// What a tag gains whose name is in the title, or only in the text.
const IN_TITLE: f32 = 0.5;
const IN_TEXT: f32 = 0.2;

/// Bytes of a text in which names of tags are looked for, and the fewest bytes of such a name.
const MAX_NAMED_BYTES: usize = 20_000;
const LEAST_NAME_BYTES: usize = 3;

/// Tags for a note.
#[derive(Debug, Clone, PartialEq)]
pub struct TagSuggestions {
    /// Best first, ties by name.
    pub tags: Vec<SuggestedTag>,
    /// Whether notes were compared by meaning, and not by words alone.
    pub by_meaning: bool,
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
}

#[derive(Default)]
struct Votes {
    name: String,
    weight: f32,
    notes: usize,
    example: Option<NoteKey>,
    in_text: f32,
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
        let mut votes: BTreeMap<&str, Votes> = BTreeMap::new();
        let total: f32 = neighbours.iter().map(|(_, weight)| weight).sum::<f32>().max(f32::MIN_POSITIVE);
        for (neighbour, weight) in &neighbours {
            for tag in &snapshot.note(*neighbour).tags {
                let vote =
                    votes.entry(&tag.folded).or_insert_with(|| Votes { name: tag.name.clone(), ..Votes::default() });
                vote.weight += weight / total;
                vote.notes += 1;
                vote.example.get_or_insert(*neighbour);
            }
        }
        for (tag, weight) in named_in(snapshot, note, &plain) {
            let vote = votes.entry(&tag.folded).or_insert_with(|| Votes { name: tag.name.clone(), ..Votes::default() });
            vote.in_text = weight;
        }
        let has = |folded: &str| note.tags.iter().any(|tag| tag.folded == folded);
        let is_forgotten = |folded: &str| forgotten.iter().any(|tag| tag.folded == folded);
        let suggested = votes.into_iter().filter(|(folded, _)| !has(folded) || is_forgotten(folded));
        let mut tags: Vec<SuggestedTag> = suggested
            .map(|(_, vote)| SuggestedTag {
                tag: vote.name,
                score: (vote.weight + vote.in_text) / (1.0 + IN_TITLE),
                notes: vote.notes,
                example: vote.example,
                is_in_text: vote.in_text > 0.0,
            })
            .collect();
        tags.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.tag.cmp(&b.tag)));
        tags.truncate(limit);
        Ok(TagSuggestions { tags, by_meaning })
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
            weights.insert(*other, ((score - floor).max(0.0) / best).powi(2));
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
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 2);
    spaced.push(' ');
    for word in words(text) {
        spaced.push_str(&folded(word.text));
        spaced.push(' ');
    }
    spaced
}
