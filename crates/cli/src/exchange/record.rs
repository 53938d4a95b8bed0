//! One item of an imported file.
//!
//! Three dialects are read by one parser, since their fields do not conflict: ours (`id`, `entity`, `text`), the reference
//! server's (`entityType`, `relationType`, `from` and `to` by name) and GraphMem's (`entity_id`, `memory_observations`,
//! aliases separated by `|`).

use std::collections::HashSet;

use quipu_core::memory::name_key;
use quipu_core::model::VaultPath;
use quipu_core::ports::{LoggedChange, NoteTie};
use quipu_core::quoted;
use serde_json::{Map, Value};

/// One item of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Record {
    Entity(EntityRecord),
    Observation {
        entity: Reference,
        text: String,
        origin: RecordOrigin,
    },
    Relation {
        from: Reference,
        to: Reference,
        relation_type: String,
        origin: RecordOrigin,
    },
    /// The first line of our own format.
    Header {
        version: i64,
    },
    /// An entry of the log.
    Change(LoggedChange),
    /// The ties of a deleted item.
    Ties(Vec<NoteTie>),
}

/// An entity of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EntityRecord {
    pub(super) name: String,
    /// As written; some files of the reference server have entities without one.
    pub(super) entity_type: Option<String>,
    pub(super) aliases: Vec<String>,
    pub(super) description: Option<String>,
    pub(super) observations: Vec<(String, RecordOrigin)>,
    /// Why some of its observations are not imported.
    pub(super) faults: Vec<String>,
    pub(super) origin: RecordOrigin,
}

impl EntityRecord {
    /// Normalised as by the tools: texts trimmed, blank aliases removed.
    pub(super) fn normalized(mut self) -> Self {
        // Aliases are shown separated by `|`, so none may contain it.
        self.aliases = self.aliases.iter().flat_map(|alias| alias.split('|')).map(|it| it.trim().to_owned()).collect();
        let aliases = self.new_aliases(&[]);
        let description = self.description.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self { aliases, description, ..self }
    }

    /// The aliases that are neither its name nor among these, without duplicates.
    pub(super) fn new_aliases(&self, there: &[String]) -> Vec<String> {
        if self.aliases.is_empty() {
            return Vec::new();
        }
        let mut keys: HashSet<String> = there.iter().chain([&self.name]).map(|name| name_key(name)).collect();
        let is_new = |alias: &&String| !alias.trim().is_empty() && keys.insert(name_key(alias));
        self.aliases.iter().filter(is_new).cloned().collect()
    }
}

/// Id, times and ties of an item in the memory that it was exported from.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RecordOrigin {
    pub(super) id: Option<i64>,
    /// When it was created and last changed, in nanoseconds since 1970.
    pub(super) times: Option<(i64, i64)>,
    /// Links in its text whose note was renamed: their target, and the path of the note.
    pub(super) ties: Vec<(String, VaultPath)>,
}

/// An entity of the same file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Reference {
    Id(i64),
    Name(String),
}

/// The values of `type`.
pub(super) const KINDS: [&str; 6] =
    ["entity", "observation", "relation", super::export::HEADER, super::log::CHANGE, super::log::TIES];

/// Whether a value is a whole item by its `type`, not a part of one.
pub(super) fn has_kind(value: &Value) -> bool {
    value.get("type").and_then(Value::as_str).is_some_and(|kind| KINDS.contains(&kind))
}

/// Parses an item, or says why it is invalid.
pub(super) fn record(value: &Value) -> Result<Record, String> {
    let Value::Object(object) = value else {
        return Err(format!("{} is not an entity, observation or relation", shown(value)));
    };
    let kind = object.get("type").and_then(Value::as_str);
    if kind == Some(super::export::HEADER) {
        // The first version may omit it.
        return Ok(Record::Header { version: number(object, &["version"]).unwrap_or(1) });
    }
    match kind {
        Some(super::log::CHANGE) => return super::log::entry(object).map(Record::Change),
        Some(super::log::TIES) => return super::log::ties(object).map(Record::Ties),
        _ => {}
    }
    if let Some(other) = kind.filter(|kind| !KINDS.contains(kind)) {
        return Err(format!("its `type` is {}, not \"entity\", \"observation\" or \"relation\"", quoted(other)));
    }
    let relation_type = text(object, &["relation_type", "relationType"]);
    if let Some(relation_type) = relation_type {
        if relation_type.trim().is_empty() {
            return Err("its `relationType` is blank".into());
        }
        return Ok(Record::Relation {
            from: reference(object, &["from_entity_id", "from"])?,
            to: reference(object, &["to_entity_id", "to"])?,
            relation_type,
            origin: origin(object)?,
        });
    }
    if let Some(name) = text(object, &["name"]) {
        return entity(object, name);
    }
    match text(object, &OBSERVATION_TEXTS) {
        Some(text) if text.trim().is_empty() => Err("its `text` is blank".into()),
        Some(text) => Ok(Record::Observation {
            entity: reference(object, &["entity", "memory_entity_id", "entity_id", "entityName"])?,
            text,
            origin: origin(object)?,
        }),
        None => Err(match kind {
            Some("entity") => "it is an entity without a `name`".into(),
            Some("observation") => "it is an observation without a `text`".into(),
            Some("relation") => "it is a relation without a `relationType`".into(),
            _ => "it has neither a `name`, nor a `relationType`, nor a `text`".into(),
        }),
    }
}

const OBSERVATION_TEXTS: [&str; 5] = ["text", "content", "observation_content", "text_content", "contents"];

fn entity(object: &Map<String, Value>, name: String) -> Result<Record, String> {
    if name.trim().is_empty() {
        return Err("its `name` is blank".into());
    }
    let observations = ["observations", "memory_observations"].iter().find_map(|key| object.get(*key));
    let (mut seen, mut faults) = (Vec::new(), Vec::new());
    match observations {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => {
            for item in items {
                match observation(item) {
                    Ok(observation) => seen.push(observation),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        Some(other) => faults.push(format!("its `observations` are {}, not a list", shown(other))),
    }
    let aliases = match object.get("aliases") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(joined)) => joined.split('|').map(|alias| alias.trim().to_owned()).collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(other) => return Err(format!("its `aliases` are {}, not a list", shown(other))),
    };
    Ok(Record::Entity(EntityRecord {
        entity_type: text(object, &["entity_type", "entityType"]).filter(|written| !written.trim().is_empty()),
        aliases: aliases.into_iter().filter(|alias| !alias.is_empty()).collect(),
        description: text(object, &["description"]),
        observations: seen.into_iter().filter(|(text, _)| !text.trim().is_empty()).collect(),
        faults,
        origin: RecordOrigin { id: number(object, &["id", "entity_id"]), ..origin(object)? },
        name,
    }))
}

fn observation(value: &Value) -> Result<(String, RecordOrigin), String> {
    match value {
        Value::String(text) => Ok((text.clone(), RecordOrigin::default())),
        Value::Object(object) => {
            let text = text(object, &OBSERVATION_TEXTS).ok_or("an observation has no text")?;
            Ok((text, origin(object)?))
        }
        other => Err(format!("an observation is {}, not a string", shown(other))),
    }
}

fn reference(object: &Map<String, Value>, keys: &[&str]) -> Result<Reference, String> {
    let found = keys.iter().find_map(|key| object.get(*key));
    match found {
        Some(Value::Number(number)) if number.is_i64() => Ok(Reference::Id(number.as_i64().unwrap_or_default())),
        Some(Value::String(name)) if !name.trim().is_empty() => Ok(Reference::Name(name.clone())),
        _ => Err(format!("its `{}` does not name an entity", keys[keys.len() - 1])),
    }
}

fn text(object: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| object.get(*key)).and_then(Value::as_str).map(str::to_owned)
}

fn number(object: &Map<String, Value>, keys: &[&str]) -> Option<i64> {
    keys.iter().find_map(|key| object.get(*key)).and_then(Value::as_i64)
}

fn origin(object: &Map<String, Value>) -> Result<RecordOrigin, String> {
    Ok(RecordOrigin { id: number(object, &["id"]), times: times(object), ties: ties(object)? })
}

pub(super) fn ties(object: &Map<String, Value>) -> Result<Vec<(String, VaultPath)>, String> {
    let Some(ties) = object.get("ties").and_then(Value::as_object) else { return Ok(Vec::new()) };
    let tie = |(target, path): (&String, &Value)| {
        let path = path.as_str().and_then(|path| VaultPath::parse(path).ok());
        let path = path.ok_or_else(|| format!("its link {target:?} is tied to an invalid path"))?;
        Ok((target.clone(), path))
    };
    ties.iter().map(tie).collect()
}

fn times(object: &Map<String, Value>) -> Option<(i64, i64)> {
    let nanoseconds = |key: &str| object.get(key).and_then(Value::as_i64);
    let written = |key: &str| {
        let time: jiff::Timestamp = object.get(key)?.as_str()?.parse().ok()?;
        i64::try_from(time.as_nanosecond()).ok()
    };
    let created = nanoseconds("created_ns").or_else(|| written("created_at"))?;
    Some((created, nanoseconds("updated_ns").or_else(|| written("updated_at")).unwrap_or(created)))
}

fn shown(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
