//! `quipu history`: the versions of a note, or the changes of an entity.

use clap::Args;
use quipu_core::memory::EntityId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask_tool::ask;
use super::database::GraphOption;
use super::merge::find_entity;
use super::note_source::{NoteSource, OpenNotes};
use super::output::{Line, Output};
use super::{Failure, Outcome};

/// List the versions of a note, or the changes of an entity: who made each, when and how.
///
/// A moved note keeps its history, and a deleted note has one. "outside" is another program; Quipu has no copy of texts
/// that other programs replace. Versions are deleted after `trash_days` days (a setting, default 90).
///
/// The changes of an entity include those of its observations and relations, and of entities that were merged into it. A
/// deleted entity is named by its id.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu history station/power.md                   list its versions, newest first
  quipu diff station/power.md                      show the last change
  quipu revert station/power.md 0123456789abcdef   go back to a version
  quipu history \"Auth service\"               list the changes of an entity, newest first
  quipu history 12                            the same, by its id
  quipu undo 118                              undo one of them
  quipu history plan.md --graph team          the same of a graph in a database

JSON is the answer of the tool node_history:
  {id, versions[{version, at, by, action, chars, change, kept}]}
For an entity, it is the answer of recent_changes:
  {changes[{at, kind, id, entity_id, title, action, by, summary, change}], cursor}")]
pub(crate) struct History {
    /// Path of a note from the vault's root, in any case, or id or name of an entity.
    #[arg(value_name = "NOTE or ENTITY")]
    of: String,
    /// Show at most this many versions or changes.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The answer of a tool.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HistoryAnswer {
    Versions(Value),
    Changes(Value),
}

impl History {
    pub(super) fn answer(&self, source: &dyn NoteSource) -> Result<HistoryAnswer, Failure> {
        let open = source.open_notes()?;
        open.update_index()?;
        let registry = open.notes.registry();
        if let Some(entity) = entity(&self.of, &open)? {
            let arguments = json!({ "entity_id": entity.0, "limit": self.limit });
            return ask(&registry, ("recent_changes", "list the changes"), arguments, source)
                .map(HistoryAnswer::Changes);
        }
        let arguments = json!({ "id": self.of, "limit": self.limit });
        let answer = ask(&registry, ("node_history", "list the versions"), arguments, source).map_err(|failure| {
            if is_note(&self.of) { failure } else { failure.hint("no entity has this name either") }
        })?;
        Ok(HistoryAnswer::Versions(answer))
    }

    pub(super) fn print(&self, answer: &HistoryAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        match answer {
            HistoryAnswer::Versions(answer) | HistoryAnswer::Changes(answer) if self.json => output.json(answer)?,
            HistoryAnswer::Versions(answer) => {
                let versions = || answer["versions"].as_array().into_iter().flatten();
                versions().try_for_each(|version| output.line(&line(version)))?;
                if answer["deleted"] == true {
                    let is_kept = versions().any(|version| version["kept"] != false);
                    let next = if is_kept { "`quipu revert` restores a version" } else { "none of its texts is kept" };
                    output.aside(&Line::new().plain(format!("the note is deleted; {next}")));
                }
            }
            HistoryAnswer::Changes(answer) => {
                for change in answer["changes"].as_array().into_iter().flatten() {
                    output.line(&change_line(change))?;
                }
            }
        }
        Ok(Outcome::Fine)
    }
}

/// The entity that is meant, if it is not a note: a number is the id of an entity, also of a deleted one.
fn entity(of: &str, open: &OpenNotes<'_>) -> Result<Option<EntityId>, Failure> {
    if let Ok(number) = of.parse() {
        return Ok(Some(EntityId(number)));
    }
    match open.notes.memory() {
        Ok(memory) if !is_note(of) => find_entity(memory, of),
        _ => Ok(None),
    }
}

/// The error of a command for notes that was given an entity.
pub(super) fn refuse_entity(verb: &str, of: &str, open: &OpenNotes<'_>) -> Result<(), Failure> {
    match entity(of, open)? {
        None => Ok(()),
        Some(_) => Err(Failure::usage(format!("cannot {verb} {of}: it is an entity, not a note"))
            .hint("`quipu history` lists the changes of an entity, and `quipu undo` undoes one of them")),
    }
}

/// Whether the argument can only be a note.
fn is_note(of: &str) -> bool {
    of.to_lowercase().ends_with(".md")
}

fn client(entry: &Value) -> &str {
    entry["by"].as_str().filter(|by| !by.is_empty()).unwrap_or("unnamed client")
}

fn change_line(change: &Value) -> Line {
    let text = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
    let line = Line::new().bold(text("change")).plain(format!("  {}  {}", text("at"), text("action")));
    line.plain(format!("  {}  {}", client(change), text("summary")))
}

fn line(version: &Value) -> Line {
    let text = |name: &str| version[name].as_str().unwrap_or_default().to_owned();
    let by = client(version);
    let mut line = Line::new().bold(text("version")).plain(format!("  {}  {:<7}", text("at"), text("action")));
    line = line.plain(format!("  {by}  {} characters", version["chars"]));
    if let Some(change) = version["change"].as_str() {
        line = line.dim(format!("  {change}"));
    }
    if version["kept"] == false { line.dim("  text not kept") } else { line }
}
