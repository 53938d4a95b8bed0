//! The tags of a note in answers. A note can have thousands; an answer has as many as fit.

use quipu_core::model::Note;

use crate::answer_size::fitting;
use crate::truncate::cut_name;

/// Characters of the tags of one note read by id, and of each note of a list.
pub(crate) const MAX_TAGS: usize = 3_000;
pub(crate) const MAX_LISTED_TAGS: usize = 500;

pub(crate) fn tags(note: &Note) -> Vec<String> {
    note.tags.iter().map(|tag| cut_name(&tag.name)).collect()
}

/// Keeps the tags that fit. `total` counts all of them once some are left out.
pub(crate) fn limit_tags(tags: &mut Vec<String>, total: &mut Option<usize>, max_chars: usize) {
    let fits = fitting(tags, max_chars);
    if fits < tags.len() {
        total.get_or_insert(tags.len());
        tags.truncate(fits);
    }
}
