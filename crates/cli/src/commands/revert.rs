//! `quipu revert`: goes back to an earlier version of a note, or undoes a whole change to notes.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask_tool::ask;
use super::database::GraphOption;
use super::history::refuse_entity;
use super::note_source::NoteSource;
use super::output::{Line, Output};
use super::{Failure, Outcome};

/// Go back to an earlier version of a note, or undo a whole change to notes.
///
/// The text that is replaced is kept as a version. A deleted note is restored at its last path. With --change, undoes all
/// files of one call, such as the move of a folder with its links, or none if one of them has changed since.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu revert station/power.md 0123456789abcdef   a version that `quipu history` lists
  quipu revert --change n12                        a whole change, as `quipu history` lists it
  quipu revert --change n12 --graph team           the same in a graph of a database

JSON is the answer of the tool revert_node: {id, version, diff}; with --change, that of
undo_change: {change, undone, steps, undone_by}.")]
pub(crate) struct Revert {
    /// Path of the note from the vault's root, in any case.
    #[arg(required_unless_present = "change", requires = "version")]
    note: Option<String>,
    /// Version to go back to.
    version: Option<String>,
    /// Undo this change to notes instead.
    #[arg(long, value_name = "CHANGE", conflicts_with_all = ["note", "version"])]
    change: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Revert {
    /// The answer of the tool.
    pub(super) fn answer(&self, source: &dyn NoteSource) -> Result<Value, Failure> {
        let open = source.open_notes()?;
        if let Some(note) = &self.note {
            refuse_entity("revert", note, &open)?;
        }
        open.update_index()?;
        let registry = open.notes.registry();
        let Some(change) = &self.change else {
            let arguments = json!({ "id": self.note, "version": self.version });
            return ask(&registry, ("revert_node", "revert the note"), arguments, source);
        };
        if !change.starts_with('n') {
            return Err(Failure::usage(format!("cannot undo {change}: changes to notes are named n1, n2, …"))
                .hint("`quipu undo` undoes changes to memory"));
        }
        ask(&registry, ("undo_change", "undo the change"), json!({ "change": change }), source)
    }

    pub(super) fn print(&self, answer: &Value, output: &mut Output) -> Result<Outcome, Failure> {
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        if self.json {
            output.json(answer)?;
        } else if let Some(change) = &self.change {
            output.line(&Line::new().plain(format!("change {change} is undone by change {}", text("undone_by"))))?;
            for step in answer["steps"].as_array().into_iter().flatten() {
                output.line(&Line::new().plain(format!("    {}", step.as_str().unwrap_or_default())))?;
            }
        } else {
            output.line(&Line::new().bold(text("id")).plain(format!(" has version {} again", text("version"))))?;
            text("diff").lines().try_for_each(|line| output.line(&Line::new().plain(line.to_owned())))?;
        }
        Ok(Outcome::Fine)
    }
}
