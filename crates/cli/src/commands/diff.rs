//! `quipu diff`: what differs between two versions of a note.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask_tool::ask;
use super::database::GraphOption;
use super::history::refuse_entity;
use super::note_source::NoteSource;
use super::output::{Line, Output};
use super::{Failure, Outcome};

/// Show what changed between two versions of a note.
///
/// Without versions, shows the last change whose old text is kept.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu diff station/power.md                                      the last change
  quipu diff station/power.md 0123456789abcdef                     everything since a version
  quipu diff station/power.md 0123456789abcdef fedcba9876543210    between two versions

`quipu history` lists the versions.
JSON is the answer of the tool diff_node: {id, from, to, diff}.")]
pub(crate) struct Diff {
    /// Path of the note from the vault's root, in any case.
    note: String,
    /// Version to compare.
    from: Option<String>,
    /// Version to compare with [default: the current one].
    to: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Diff {
    /// The answer of the tool.
    pub(super) fn answer(&self, source: &dyn NoteSource) -> Result<Value, Failure> {
        let open = source.open_notes()?;
        refuse_entity("compare versions of", &self.note, &open)?;
        open.update_index()?;
        let registry = open.notes.registry();
        let from = match &self.from {
            Some(from) => from.clone(),
            None => {
                let arguments = json!({ "id": self.note, "limit": 1000 });
                let history = ask(&registry, ("node_history", "list the versions"), arguments, source)?;
                previous(&history).ok_or_else(|| {
                    Failure::failed(format!("cannot compare {}: no earlier version of it is kept", self.note))
                        .hint("`quipu history` lists its versions")
                })?
            }
        };
        let to = self.to.as_deref().unwrap_or("current");
        let arguments = json!({ "id": self.note, "from": from, "to": to });
        ask(&registry, ("diff_node", "compare the versions"), arguments, source)
    }

    pub(super) fn print(&self, answer: &Value, output: &mut Output) -> Result<Outcome, Failure> {
        if self.json {
            output.json(answer)?;
            return Ok(Outcome::Fine);
        }
        let diff = answer["diff"].as_str().unwrap_or_default();
        if diff.is_empty() {
            output.aside(&Line::new().plain("the versions are equal"));
        }
        for line in diff.lines() {
            output.line(&Line::new().plain(line.to_owned()))?;
        }
        Ok(Outcome::Fine)
    }
}

/// The newest version with another text than the newest of all, if it is kept.
fn previous(history: &Value) -> Option<String> {
    let versions = history["versions"].as_array()?;
    let newest = versions.first()?["version"].as_str();
    let is_other = |version: &&Value| version["version"].as_str() != newest && version["kept"] != false;
    versions.iter().find(is_other)?["version"].as_str().map(str::to_owned)
}
