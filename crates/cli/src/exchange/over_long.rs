//! The tools' limits on names and texts, applied to imported items.

use quipu_core::memory::limits;

use super::record::{EntityRecord, Record};

/// Why an item is too long to import. Too long observations of an entity are removed and added to its faults.
pub(super) fn over_long(record: &mut Record) -> Option<String> {
    match record {
        Record::Entity(entity) => {
            leave_out_long_observations(entity);
            let aliases: usize = entity.aliases.iter().map(|alias| alias.chars().count() + 1).sum();
            let fields = [
                ("name", chars(&entity.name), limits::NAME),
                ("type", entity.entity_type.as_deref().map_or(0, chars), limits::TYPE),
                ("aliases", aliases.saturating_sub(1), limits::ALIASES),
                ("description", entity.description.as_deref().map_or(0, chars), limits::DESCRIPTION),
            ];
            fields.into_iter().find_map(|(field, length, max)| fault(&format!("its `{field}`"), length, max))
        }
        Record::Observation { text, .. } => fault("its text", chars(text), limits::OBSERVATION),
        Record::Relation { relation_type, .. } => fault("its type", chars(relation_type), limits::TYPE),
        Record::Header { .. } | Record::Change(_) | Record::Ties(_) => None,
    }
}

fn leave_out_long_observations(entity: &mut EntityRecord) {
    let faults = &mut entity.faults;
    entity.observations.retain(|(text, _)| {
        let fault = fault("an observation", chars(text), limits::OBSERVATION);
        faults.extend(fault.clone());
        fault.is_none()
    });
}

fn chars(text: &str) -> usize {
    text.trim().chars().count()
}

fn fault(what: &str, length: usize, max: usize) -> Option<String> {
    (length > max).then(|| format!("{what} has {length} characters, more than the {max} that are allowed"))
}
