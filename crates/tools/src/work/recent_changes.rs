//! `recent_changes`: what changed lately, in notes and memory.

use quipu_core::index::Snapshot;
use quipu_core::memory::{EntityId, Memory, change_line, relation_by_name};
use quipu_core::model::VaultPath;
use quipu_core::notes::ChangedPart;
use quipu_core::ports::{
    ChangeNumber, LoggedChange, LoggedFile, LoggedWrite, MemoryItem, NoteAction, OUTSIDE, WriteNumber,
};
use quipu_core::query::start_of_period;
use quipu_core::{ChangeCursor, ChangeKind, Knowledge, RecentChange, RecentFilter, quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer_size::{LIST_ROOM, fitting};
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::{ToolError, ToolErrorKind};
use crate::truncate::{cut_name, echoed, truncate};

/// Ids of one change that are listed.
const MAX_IDS: usize = 20;

/// Characters of a summary.
const SUMMARY: usize = 160;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// ISO time, or "24h", "7d".
    since: Option<String>,
    /// From an earlier answer: only newer changes.
    cursor: Option<String>,
    /// All by default.
    #[serde(default)]
    kinds: Vec<Kind>,
    /// Part of a client's name; "outside": other programs.
    by: Option<String>,
    /// Only of this entity.
    entity_id: Option<i64>,
    /// Maximum changes.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
}

fn default_limit() -> usize {
    50
}

#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Note,
    Entity,
    Observation,
    Relation,
}

impl From<Kind> for ChangeKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Note => Self::Note,
            Kind::Entity => Self::Entity,
            Kind::Observation => Self::Observation,
            Kind::Relation => Self::Relation,
        }
    }
}

impl From<ChangeKind> for Kind {
    fn from(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Note => Self::Note,
            ChangeKind::Entity => Self::Entity,
            ChangeKind::Observation => Self::Observation,
            ChangeKind::Relation => Self::Relation,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    changes: Vec<Change>,
    cursor: String,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    at: String,
    kind: Kind,
    id: String,
    /// The entity that an observation or a relation is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_id: Option<i64>,
    title: String,
    action: String,
    by: String,
    summary: String,
    /// For undo_change.
    change: String,
    /// All notes of a change of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<String>>,
}

pub(crate) struct RecentChanges;

impl Tool for RecentChanges {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "recent_changes";
    const DESCRIPTION: &'static str = "List changes to notes and memory, newest first: what, when, by whom. For one \
        note use node_history.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let now_ns = call.knowledge.now_ns();
        let since = params.since.as_deref().map(|since| {
            let wrong =
                || ToolError::invalid(format!("`since` is {:?}; it must be an ISO time, or 24h, 7d", echoed(since)));
            start_of_period(since, now_ns).ok_or_else(wrong)
        });
        let filter = RecentFilter {
            since_ns: since.transpose()?.unwrap_or(i64::MIN),
            cursor: params.cursor.as_deref().map(parse_cursor).transpose()?,
            kinds: params.kinds.iter().copied().map(ChangeKind::from).collect(),
            by: params.by,
            entity: params.entity_id.map(EntityId),
            limit: params.limit,
        };
        // Without memory the notes can still be listed.
        let memory = if filter.entity.is_some() { Some(call.memory()?) } else { call.memory().ok() };
        let found = call.knowledge.recent_changes(memory, &filter).map_err(|error| match error {
            quipu_core::RecentError::Notes(error) => ToolError::from(error),
            quipu_core::RecentError::Memory(error) => error.into(),
        })?;
        if let (true, Some(entity), Some(memory)) = (found.changes.is_empty(), filter.entity, memory)
            && memory.store().entities(&[entity])?.pop().flatten().is_none()
        {
            let message = format!("there is no entity {entity}, and no change of it is in the log");
            return Err(ToolError::new(ToolErrorKind::NotFound, message));
        }
        if found.is_cut {
            let rest = if filter.cursor.is_some() {
                "newer ones follow: call again with the cursor"
            } else {
                "older ones exist: raise limit, or narrow since, kinds or by"
            };
            call.warn(format!("{} changes are listed; {rest}", found.changes.len()));
        }
        if let Some(since_ns) = found.searched_since_ns {
            let since = iso_utc(since_ns);
            call.warn(format!(
                "changes before {since} were not searched; for one note node_history goes further back; for one entity `entity_id` does"
            ));
        }
        let snapshot = call.knowledge.snapshot();
        let writes: Vec<&LoggedWrite> = found.changes.iter().filter_map(RecentChange::write).collect();
        let mut undone = call.knowledge.undone_by(&writes)?.into_iter();
        let shown = |change: &RecentChange| match change {
            RecentChange::Notes(write) => Ok(shown_write(call.knowledge, &snapshot, write, undone.next().flatten())),
            RecentChange::Memory(change) => shown_memory(memory, change),
        };
        let mut changes: Vec<Change> = found.changes.iter().map(shown).collect::<Result<_, ToolError>>()?;
        let fits = fitting(&changes, LIST_ROOM);
        // After a cursor none may be skipped.
        if fits < changes.len() && params.limit == default_limit() && filter.cursor.is_none() {
            call.warn(format!("{} changes match; the newest {fits} are listed", changes.len()));
            changes.truncate(fits);
        }
        Ok(Output { changes, cursor: format!("{}.{}", found.cursor.write.0, found.cursor.change.0) })
    }
}

fn parse_cursor(text: &str) -> Result<ChangeCursor, ToolError> {
    let parts = text.split_once('.').and_then(|(write, change)| Some((write.parse().ok()?, change.parse().ok()?)));
    let wrong = || ToolError::invalid("`cursor` must be the cursor of an earlier answer");
    let (write, change) = parts.ok_or_else(wrong)?;
    Ok(ChangeCursor { write: WriteNumber(write), change: ChangeNumber(change) })
}

fn shown_write(
    knowledge: &Knowledge,
    snapshot: &Snapshot,
    write: &LoggedWrite,
    undone_by: Option<WriteNumber>,
) -> Change {
    let notes: Vec<&LoggedFile> = write.files.iter().filter(|file| file.is_note()).collect();
    let first = notes.first().copied().unwrap_or(&write.files[0]);
    let key = snapshot.find_exact(&first.path);
    let title = key.map_or_else(|| first.path.stem().to_owned(), |key| cut_name(&snapshot.note(key).title));
    let id = |path: &VaultPath| {
        snapshot.find_exact(path).map_or_else(|| path.note_id().to_string(), |key| snapshot.note(key).id.to_string())
    };
    let count = notes.len() + write.unlisted;
    let mut summary = file_summary(knowledge, write, first);
    if count > 1 {
        summary = format!("{summary}; {} more {}", count - 1, if count == 2 { "note" } else { "notes" });
    }
    let ids = (count > 1).then(|| notes.iter().take(MAX_IDS).map(|file| id(&file.path)).collect());
    Change {
        at: iso_utc(write.at_ns),
        kind: Kind::Note,
        id: id(&first.path),
        entity_id: None,
        title,
        action: first.action.name().to_owned(),
        by: write.by.clone(),
        summary: ended(&summary, &undone_by.map(|by| format!("; undone by n{}", by.0)).unwrap_or_default()),
        change: format!("n{}", write.number.0),
        ids,
    }
}

/// What was done to a file, in a few words.
fn file_summary(knowledge: &Knowledge, write: &LoggedWrite, file: &LoggedFile) -> String {
    let chars = |version: Option<quipu_core::ports::LoggedVersion>| version.map_or(0, |version| version.chars);
    let (old, new) = (chars(file.before), chars(file.after));
    let size = match new.cast_signed() - old.cast_signed() {
        _ if write.by == OUTSIDE => format!("{new} characters now"),
        0 => "same length".to_owned(),
        difference => format!("{difference:+} characters"),
    };
    match (file.action, &file.from) {
        (NoteAction::Move, Some(from)) => format!("moved from {from}"),
        (NoteAction::Create, _) => format!("created with {new} characters"),
        (_, Some(from)) => format!("moved back from {from}"),
        (NoteAction::Links, _) => "links rewritten".to_owned(),
        (NoteAction::Redact, _) => "redacted".to_owned(),
        _ if file.after.is_none() => format!("deleted with {old} characters"),
        (NoteAction::Edit, _) => match knowledge.changed_part(file) {
            Some(ChangedPart::Properties) => format!("edited properties, {size}"),
            Some(ChangedPart::Section(heading)) => format!("edited {}, {size}", quoted(&heading)),
            None => format!("edited, {size}"),
        },
        (NoteAction::Revert, _) => format!("reverted, {size}"),
        (NoteAction::Undo, _) => format!("undone, {size}"),
        (NoteAction::Restore | NoteAction::Delete | NoteAction::Move, _) => format!("restored, {size}"),
    }
}

fn shown_memory(memory: Option<&Memory>, change: &LoggedChange) -> Result<Change, ToolError> {
    let first = change.steps.first();
    let item = first.and_then(|(before, after)| after.as_ref().or(before.as_ref()));
    let (kind, id, entity, title) = match item {
        Some(MemoryItem::Entity(entity)) => (Kind::Entity, entity.id.to_string(), Some(entity.id), entity.name.clone()),
        Some(MemoryItem::Observation(seen)) => {
            (Kind::Observation, seen.id.to_string(), Some(seen.entity), truncate(&seen.text, 60))
        }
        Some(MemoryItem::Relation(relation)) => {
            let named = memory.map(|memory| relation_by_name(&**memory.store(), relation)).transpose()?;
            let title = named.unwrap_or_else(|| relation.relation_type.clone());
            (Kind::Relation, relation.id.to_string(), Some(relation.from), title)
        }
        None => (Kind::Entity, String::new(), None, String::new()),
    };
    let more = change.steps.len().saturating_sub(1);
    let mut end = if more > 0 { format!("; {more} more") } else { String::new() };
    if let Some(by) = change.undone_by {
        end.push_str(&format!("; undone by {}", by.0));
    }
    let summary = ended(&first.map(change_line).unwrap_or_default(), &end);
    Ok(Change {
        at: iso_utc(change.author.at_ns),
        kind,
        id,
        entity_id: entity.map(|entity| entity.0),
        title,
        action: change.author.tool.clone(),
        by: change.author.client.clone(),
        summary,
        change: change.number.0.to_string(),
        ids: None,
    })
}

/// A summary whose end is never cut.
fn ended(summary: &str, end: &str) -> String {
    truncate(summary, SUMMARY - end.len()) + end
}

#[cfg(test)]
mod tests {
    use quipu_core::Session;
    use serde_json::{Value, json};

    use crate::testing::Harness;

    fn summaries(answer: &Value) -> Vec<String> {
        let text = |change: &Value, name: &str| change[name].as_str().unwrap().to_owned();
        let changes = answer["changes"].as_array().unwrap();
        changes
            .iter()
            .map(|it| format!("{} {} {}: {}", text(it, "by"), text(it, "kind"), text(it, "id"), text(it, "summary")))
            .collect()
    }

    fn call_a_second_later(harness: &Harness, tool: &str, arguments: Value) -> Value {
        harness.clock.advance(1_000_000_000);
        harness.call(tool, arguments)
    }

    #[test]
    fn notes_and_memory_are_merged_and_the_cursor_goes_on() {
        let harness = Harness::new("//- a.md\nx\n//- b.md\n[[a]]\n");
        let call = |tool, arguments| call_a_second_later(&harness, tool, arguments);
        call("create_node", json!({"id": "new.md", "content": "four"}));
        call("create_entity", json!({"name": "Ada", "entity_type": "Author", "observations": ["sails"]}));
        call("edit_node", json!({"id": "a.md", "edits": [{"op": "append", "text": "yz"}]}));
        let answer = call("recent_changes", json!({}));
        let expected = [
            "harness note a.md: edited, +3 characters",
            "harness entity 1: + entity 1 Author: Ada; 1 more",
            "harness note new.md: created with 4 characters",
        ];
        assert_eq!(summaries(&answer), expected);
        let cursor = answer["cursor"].clone();
        assert_eq!(call("recent_changes", json!({"cursor": cursor}))["changes"], json!([]));
        call("move_node", json!({"id": "a.md", "to": "deep/c.md"}));
        call("delete_node", json!({"id": "new.md"}));
        // Nothing is skipped where the limit is lower than what is new.
        let first = call("recent_changes", json!({"cursor": cursor, "limit": 1}));
        assert_eq!(summaries(&first), ["harness note deep/c.md: moved from a.md; 1 more note"]);
        assert_eq!(first["changes"][0]["ids"], json!(["deep/c.md", "b.md"]));
        let second = call("recent_changes", json!({"cursor": first["cursor"], "limit": 1}));
        assert_eq!(summaries(&second), ["harness note new.md: deleted with 4 characters"]);
        assert_eq!(call("recent_changes", json!({"cursor": second["cursor"]}))["changes"], json!([]));
        let memory = call("recent_changes", json!({"kinds": ["entity"]}));
        assert_eq!(memory["changes"].as_array().unwrap().len(), 1);
        assert_eq!(
            call("recent_changes", json!({"since": "1h", "by": "HARN"}))["changes"].as_array().unwrap().len(),
            5
        );
        harness.clock.advance(7_200_000_000_000);
        assert_eq!(call("recent_changes", json!({"since": "1h"}))["changes"], json!([]));
        assert_eq!(call("recent_changes", json!({"by": "somebody"}))["changes"], json!([]));
        let (code, message) = harness.fails("recent_changes", json!({"since": "soon"}));
        assert_eq!((code.as_str(), message.contains("ISO time")), ("INVALID_PARAMS", true), "{message}");
    }

    #[test]
    fn the_summary_of_an_edit_names_the_part_that_it_changed() {
        let harness = Harness::new("//- day.md\n---\nx: 1\n---\n# Log\none\n\n# Todo\n");
        let edited = |edit: Value| {
            call_a_second_later(&harness, "edit_node", json!({"id": "day.md", "edits": [edit]}));
            summaries(&harness.call("recent_changes", json!({})))
        };
        assert_eq!(
            edited(json!({"op": "insert", "heading": "Log", "position": "end", "text": "two"})),
            ["harness note day.md: edited \"Log\", +4 characters"]
        );
        // The text after the first edit is no longer there.
        assert_eq!(
            edited(json!({"op": "set_property", "key": "x", "value": 25})),
            ["harness note day.md: edited properties, +1 characters", "harness note day.md: edited, +4 characters"]
        );
    }

    #[test]
    fn an_undone_change_to_notes_says_so_until_it_is_redone() {
        let harness = Harness::new("//- a.md\nx\n//- b.md\n[[a]]\n");
        let call = |tool, arguments| call_a_second_later(&harness, tool, arguments);
        let listed = || summaries(&harness.call("recent_changes", json!({})));
        call("edit_node", json!({"id": "a.md", "edits": [{"op": "append", "text": "y"}]}));
        call("move_node", json!({"id": "a.md", "to": "c.md"}));
        call("undo_change", json!({"change": "n2"}));
        let moved = "harness note c.md: moved from a.md; 1 more note";
        let edited = "harness note a.md: edited, +2 characters";
        assert_eq!(listed()[1..], [format!("{moved}; undone by n3"), edited.to_owned()]);
        call("undo_change", json!({"change": "n1"}));
        assert_eq!(listed()[3], format!("{edited}; undone by n4"));
        call("undo_change", json!({"change": "n4"}));
        assert_eq!(listed()[4], edited);
        assert_eq!(listed()[1], "harness note a.md: undone, -2 characters; undone by n5");
    }

    /// What happened to an entity, by whom, and back again.
    #[test]
    fn the_changes_of_one_entity_are_listed_and_undone() {
        let harness = Harness::new("//- a.md\nx\n");
        let by = |name: &str, tool: &str, arguments: Value| {
            harness.clock.advance(1_000_000_000);
            harness.called_by(&Session::named(name), tool, arguments);
        };
        by("one", "create_entity", json!({"name": "Ada", "entity_type": "Author", "observations": ["sails"]}));
        by("two", "create_entity", json!({"name": "Boat", "entity_type": "Project"}));
        by("two", "create_relation", json!({"from_entity_id": 1, "to_entity_id": 2, "relation_type": "owns"}));
        by("two", "update_observation", json!({"observation_id": 1, "text_content": "rows"}));
        by("one", "edit_node", json!({"id": "a.md", "edits": [{"op": "append", "text": "y"}]}));
        by("one", "create_entity", json!({"name": "Ada L", "entity_type": "Author", "force": true}));
        by("two", "create_observation", json!({"entity_id": 3, "text_content": "swims"}));
        let of = |entity: i64| harness.call("recent_changes", json!({"entity_id": entity}));
        let relation = &of(1)["changes"][1];
        assert_eq!(
            (&relation["title"], &relation["entity_id"]),
            (&json!("Ada owns Boat"), &json!(1)),
            "by their names"
        );
        let expected = [
            r#"two observation 1: ~ observation 1 of entity 1: "sails" to "rows""#,
            "two relation 1: + relation 1: 1 owns 2",
            "one entity 1: + entity 1 Author: Ada; 1 more",
        ];
        assert_eq!(summaries(&of(1)), expected);
        let undone = harness.call("undo_change", json!({"change": of(1)["changes"][0]["change"]}));
        assert_eq!(undone["undone"], true);
        let listed = summaries(&of(1));
        assert_eq!(listed[0], r#"harness observation 1: ~ observation 1 of entity 1: "rows" to "sails""#);
        assert_eq!(listed[1], r#"two observation 1: ~ observation 1 of entity 1: "sails" to "rows"; undone by 7"#);
        for description in ["Poet", "Sailor"] {
            by("two", "update_entity", json!({"entity_id": 1, "description": description}));
        }
        let listed = summaries(&of(1));
        assert_eq!(listed[0], r#"two entity 1: ~ entity 1: description "Poet" to "Sailor""#);
        assert_eq!(listed[1], r#"two entity 1: ~ entity 1: description "" to "Poet""#);
        // A merge brings the history of the other entity along, until it is undone.
        let merge = harness.call("merge_entities", json!({"entity_id": 3, "into_entity_id": 1}))["change"].clone();
        let listed = summaries(&of(1));
        assert!(listed.contains(&"one entity 3: + entity 3 Author: Ada L".to_owned()), "{listed:?}");
        let gone = summaries(&of(3));
        assert!(gone[0].starts_with("harness ") && gone[0].contains("- entity 3 Author: Ada L"), "{gone:?}");
        harness.call("undo_change", json!({"change": merge}));
        assert!(!summaries(&of(1)).iter().any(|line| line.contains("+ entity 3")));
        assert_eq!(of(3)["changes"].as_array().unwrap().len(), 4);
        let narrowed = harness.call("recent_changes", json!({"entity_id": 1, "by": "one", "kinds": ["entity"]}));
        assert_eq!(summaries(&narrowed), ["one entity 1: + entity 1 Author: Ada; 1 more"]);
        let (code, message) = harness.fails("recent_changes", json!({"entity_id": 9}));
        let expected = ("NODE_NOT_FOUND", "there is no entity 9, and no change of it is in the log");
        assert_eq!((code.as_str(), message.as_str()), expected);
    }

    /// However many changes others made since.
    #[test]
    fn an_old_change_is_found_by_its_client_and_its_kind() {
        let harness = Harness::new("//- a.md\nx\n");
        let by = |name: &str, tool: &str, arguments: Value| {
            harness.clock.advance(1_000_000);
            harness.called_by(&Session::named(name), tool, arguments);
        };
        by("rare", "edit_node", json!({"id": "a.md", "edits": [{"op": "append", "text": "y"}]}));
        by("rare", "create_entity", json!({"name": "Ada", "entity_type": "User"}));
        for number in 0..5_100 {
            by("busy", "create_observation", json!({"entity_id": 1, "text_content": format!("fact {number}")}));
        }
        assert_eq!(
            summaries(&harness.call("recent_changes", json!({"by": "rare"}))),
            ["rare entity 1: + entity 1 User: Ada", "rare note a.md: edited, +2 characters"]
        );
        let entities = harness.call("recent_changes", json!({"kinds": ["entity"], "limit": 1}));
        assert_eq!(summaries(&entities), ["rare entity 1: + entity 1 User: Ada"]);
    }

    #[test]
    fn changes_by_other_programs_are_listed_as_outside() {
        let harness = Harness::new("//- a.md\nx\n");
        harness.vault.put("a.md", "longer");
        harness.vault.put("b.md", "new");
        for id in ["a.md", "b.md"] {
            harness.call("get_node", json!({"id": id}));
        }
        let answer = harness.call("recent_changes", json!({"by": "outside"}));
        let expected = ["outside note b.md: created with 3 characters", "outside note a.md: edited, 6 characters now"];
        assert_eq!(summaries(&answer), expected);
        // What a tool wrote is recorded once, also when another process indexes it again.
        let session = Session::named("other");
        harness.called_by(&session, "create_node", json!({"id": "c.md", "content": "c"}));
        assert_eq!(
            summaries(&harness.call("recent_changes", json!({"limit": 1}))),
            ["other note c.md: created with 1 characters"]
        );
    }
}
