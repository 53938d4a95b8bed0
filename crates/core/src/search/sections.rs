//! Sections by words, spread over several notes: one long note must not fill the answer.

use rustc_hash::FxHashMap;

use crate::Knowledge;
use crate::model::NoteKey;
use crate::ports::{StoreError, TextHit, TextHits, TextQuery};

/// The factor by which more sections are fetched than asked for, again each time they are of too few notes.
const OVERFETCH: usize = 6;

impl Knowledge {
    /// As [`Knowledge::search_text`], with at most `per_note` sections of one note, unless other notes leave room for more.
    pub fn search_sections(&self, query: &TextQuery, per_note: usize) -> Result<TextHits, StoreError> {
        let mut limit = query.limit;
        loop {
            limit = limit.saturating_mul(OVERFETCH);
            let found = self.search_text(&TextQuery { limit, ..query.clone() })?;
            let is_all = found.hits.len() < limit;
            if let Some(hits) = spread(&found.hits, query.limit, per_note, is_all) {
                return Ok(TextHits { hits, ..found });
            }
        }
    }
}

/// The best hits, in order; `None` when they are of too few notes and the store has more.
fn spread(hits: &[TextHit], limit: usize, per_note: usize, is_all: bool) -> Option<Vec<TextHit>> {
    let mut shown: FxHashMap<NoteKey, usize> = FxHashMap::default();
    let is_within = |place: &usize| {
        let count = shown.entry(hits[*place].key).or_default();
        *count += 1;
        *count <= per_note
    };
    let (mut chosen, beyond): (Vec<usize>, Vec<usize>) = (0..hits.len()).partition(is_within);
    if chosen.len() < limit && !is_all {
        return None;
    }
    chosen.truncate(limit);
    chosen.extend(beyond.into_iter().take(limit - chosen.len()));
    chosen.sort_unstable();
    Some(chosen.into_iter().map(|place| hits[place].clone()).collect())
}
