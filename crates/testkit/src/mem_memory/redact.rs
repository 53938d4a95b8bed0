//! Redaction in plain maps.

use std::convert::Infallible;

use quipu_core::memory::{EntityId, RedactionScope, merges};
use quipu_core::ports::{Author, ChangeNumber, LoggedChange, MemoryChange, Redaction, Refusal, TextOwner};

use super::state::State;

impl State {
    /// The state without the texts of an item.
    pub(super) fn redacted(
        &self,
        owner: TextOwner,
        reason: &str,
        author: &Author,
    ) -> Result<(Self, Redaction), Refusal> {
        let mut next = self.clone();
        let exists = |id: EntityId| self.entities.contains_key(&id);
        let mut scope = RedactionScope::of(owner);
        for change in self.log.iter().rev() {
            let stands = change.undoes.is_none() && self.standing_undo(change.number).is_none();
            let absorbed =
                merges(change).find(|(from, _)| TextOwner::Entity(*from) == owner && stands && !exists(*from));
            if let Some((_, by)) = absorbed {
                return Err(Refusal::Absorbed { by });
            }
            let entity_of = |id| Ok(self.observations.get(&id).map(|observation| observation.entity));
            let Ok(()) = scope.widen::<Infallible>(change, |id| Ok(exists(id)), entity_of);
        }
        let (delete, missing) = match owner {
            TextOwner::Entity(id) => (MemoryChange::DeleteEntity { id }, Refusal::NoEntity(id)),
            TextOwner::Observation(id) => (MemoryChange::DeleteObservation { id }, Refusal::NoObservation(id)),
        };
        let number = ChangeNumber(next.log.len() as i64 + 1);
        let mut steps = Vec::new();
        // What was deleted before is redacted in the log only.
        let _ = next.change(&delete, &[], author.at_ns, &mut steps);
        next.note_moved(number, &self.contexts);
        let author = Author { request: None, ..author.clone() };
        next.log.push(LoggedChange { number, author, undoes: None, undone_by: None, steps });
        let mut log_steps = 0;
        for (before, after) in next.log.iter_mut().flat_map(|change| &mut change.steps) {
            if before.iter().chain(after.iter()).any(|item| scope.covers(item)) {
                [before, after].into_iter().flatten().for_each(|item| *item = item.redacted(reason));
                log_steps += 1;
            }
        }
        if log_steps == 0 {
            return Err(missing);
        }
        for outcome in next.requests.values_mut().flat_map(|(_, applied)| &mut applied.outcomes) {
            if scope.covers(outcome) {
                *outcome = outcome.redacted(reason);
            }
        }
        let owners: Vec<TextOwner> = scope.owners().collect();
        next.ties.retain(|(owner, _), _| !owners.contains(owner));
        let items = owners.len() as u64;
        Ok((next, Redaction { change: number, items, log_steps, leftover: None, backups: Vec::new() }))
    }
}
