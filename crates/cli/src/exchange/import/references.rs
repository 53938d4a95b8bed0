//! References to entities, by id in the file or by name: resolved once all candidates are read.

use quipu_core::memory::name_key;
use quipu_core::ports::EntityRef;
use quipu_core::quoted;

use super::super::document::ItemPosition;
use super::super::record::{Record, Reference};
use super::{ImportError, Importer};

impl Importer<'_> {
    /// Resolves references by id, which are valid in one document only. References by name may still wait.
    pub(super) fn resolve_ids(&mut self) -> Result<(), ImportError> {
        self.unmatched.clear();
        for (spot, record) in std::mem::take(&mut self.waiting) {
            if self.waits_for_name(&record)? {
                self.for_names.push((spot, record));
            } else {
                self.take_waiting(&spot, record)?;
            }
        }
        self.by_id.clear();
        Ok(())
    }

    /// Whether a record refers only to names, one of which is not known yet.
    fn waits_for_name(&mut self, record: &Record) -> Result<bool, ImportError> {
        let ends = match record {
            Record::Observation { entity, .. } => [entity, entity],
            Record::Relation { from, to, .. } => [from, to],
            Record::Entity(_) | Record::Header { .. } | Record::Change(_) | Record::Ties(_) => return Ok(false),
        };
        if ends.iter().any(|end| matches!(end, Reference::Id(_))) {
            return Ok(false);
        }
        Ok(self.find(ends[0])?.is_none() || self.find(ends[1])?.is_none())
    }

    pub(super) fn take_all_waiting(&mut self) -> Result<(), ImportError> {
        self.resolve_ids()?;
        for (spot, record) in std::mem::take(&mut self.for_names) {
            self.take_waiting(&spot, record)?;
        }
        Ok(())
    }

    fn take_waiting(&mut self, spot: &ItemPosition, record: Record) -> Result<(), ImportError> {
        match record {
            Record::Observation { entity, text, origin } => match self.find(&entity)? {
                Some(place) => self.observe(place, &text, origin)?,
                None => self.problem(spot, missing("an observation", &entity)),
            },
            Record::Relation { from, to, relation_type, origin } => {
                let (source, target) = (self.find(&from)?, self.find(&to)?);
                match (source, target) {
                    (Some(source), Some(target)) => self.relate(source, target, relation_type.trim(), origin)?,
                    (None, _) => self.problem(spot, missing("a relation", &from)),
                    (_, None) => self.problem(spot, missing("a relation", &to)),
                }
            }
            Record::Entity(_) | Record::Header { .. } | Record::Change(_) | Record::Ties(_) => {}
        }
        Ok(())
    }

    fn find(&mut self, reference: &Reference) -> Result<Option<EntityRef>, ImportError> {
        match reference {
            Reference::Id(id) => Ok(self.by_id.get(id).copied()),
            Reference::Name(name) => self.named(name),
        }
    }

    pub(super) fn named(&mut self, name: &str) -> Result<Option<EntityRef>, ImportError> {
        let key = name_key(name);
        if let Some(known) = self.by_name.get(&key) {
            return Ok(Some(*known));
        }
        // An entity whose alias is this name is another entity.
        let called = self.store.entities_called(std::slice::from_ref(&key))?.pop().unwrap_or_default();
        let entities = self.store.entities(&called)?;
        let there = entities.into_iter().flatten().find(|entity| name_key(&entity.name) == key);
        let Some(entity) = there else { return Ok(None) };
        let found = EntityRef::Id(entity.id);
        self.there.insert(entity.id, entity);
        self.by_name.insert(key, found);
        Ok(Some(found))
    }
}

fn missing(what: &str, reference: &Reference) -> String {
    match reference {
        Reference::Id(id) => format!("{what} refers to entity {id}, which is not in the file"),
        Reference::Name(name) => {
            format!("{what} refers to {}, which is neither in the file nor in memory", quoted(name))
        }
    }
}
