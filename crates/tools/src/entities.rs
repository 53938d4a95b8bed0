//! The memory entities that link to a note, as tools for notes and pages show them on request.

use quipu_core::index::Snapshot;
use quipu_core::model::NoteKey;
use quipu_core::quoted;

pub(crate) use crate::memory::EntityName;
use crate::tool::Call;
use crate::tool_error::ToolError;

/// Entities in the answer about one note.
pub(crate) const MAX_ENTITIES: usize = 20;

/// At most `limit` entities whose description or observations link to a note. Warns if there are more.
pub(crate) fn linking_entities(
    call: &Call<'_>,
    snapshot: &Snapshot,
    key: NoteKey,
    limit: usize,
) -> Result<Vec<EntityName>, ToolError> {
    call.await_memory();
    let (entities, count) = call.knowledge.linking_entities(snapshot, key, limit)?;
    if count > entities.len() {
        call.warn(format!(
            "{} of {count} entities that link to {} are shown",
            entities.len(),
            quoted(snapshot.note(key).path.as_str())
        ));
    }
    Ok(entities.into_iter().map(EntityName::from).collect())
}
