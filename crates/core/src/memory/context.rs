//! The project a client works in: its members come first in what the client searches.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::error::MemoryError;
use super::memory::Memory;
use super::model::{Entity, EntityId, PART_OF};
use crate::session::Session;

impl Memory {
    /// Sets the client's context, for this connection and the next of a client with the same name.
    pub fn set_context(&self, session: &Session, project: EntityId) -> Result<Entity, MemoryError> {
        let entity = self.entity(project)?;
        self.remember(session, Some(project))?;
        Ok(entity)
    }

    /// The client's context; `None` when it has none, cleared it, or the entity is deleted.
    pub fn context(&self, session: &Session) -> Result<Option<Entity>, MemoryError> {
        let known = match session.context() {
            Some(known) => known,
            None => {
                let client = session.client();
                let last = if client.is_empty() { None } else { self.store.context(&client)? };
                session.set_context(last);
                last
            }
        };
        let Some(project) = known else { return Ok(None) };
        let there = self.store.entities(&[project])?.into_iter().next().flatten();
        if there.is_some() {
            return Ok(there);
        }
        // It may have been merged into another: then the store knows which.
        let client = session.client();
        let merged_into = if client.is_empty() { None } else { self.store.context(&client)? };
        // The session keeps the deleted id: an undo may restore it.
        let Some(merged_into) = merged_into.filter(|id| *id != project) else { return Ok(None) };
        Ok(self.store.entities(&[merged_into])?.into_iter().next().flatten())
    }

    /// Clears the context; returns it.
    pub fn clear_context(&self, session: &Session) -> Result<Option<Entity>, MemoryError> {
        let context = self.context(session)?;
        self.remember(session, None)?;
        Ok(context)
    }

    /// The project and everything that is part of it, directly or not.
    pub(super) fn members(&self, project: EntityId) -> Result<Arc<FxHashSet<EntityId>>, MemoryError> {
        self.follower.members(project, || {
            let mut members = FxHashSet::from_iter([project]);
            let mut frontier = vec![project];
            while !frontier.is_empty() {
                let parts = self.store.sources_into(&frontier, PART_OF)?;
                frontier = parts.into_iter().filter(|part| members.insert(*part)).collect();
            }
            Ok(members)
        })
    }

    fn remember(&self, session: &Session, project: Option<EntityId>) -> Result<(), MemoryError> {
        let client = session.client();
        // A client without a name cannot be recognised later: its context ends with its connection.
        if !client.is_empty() {
            self.store.set_context(&client, project, self.now_ns())?;
        }
        session.set_context(project);
        Ok(())
    }
}
