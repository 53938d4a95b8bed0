//! `quipu history`: the versions of a note.

use clap::Args;
use quipu_tools::Toolset;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask_tool::ask;
use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};
use crate::compose::OpenMode;

/// List the versions of a note: who made each, when and how.
///
/// A moved note keeps its history, and a deleted note has one. "outside" is another program; Quipu has no copy of texts
/// that other programs replace. Versions are deleted after `trash_days` days (a setting, default 90).
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu history station/power.md                   list its versions, newest first
  quipu diff station/power.md                      show the last change
  quipu revert station/power.md 0123456789abcdef   go back to a version

JSON is the answer of the tool node_history:
  {id, versions[{version, at, by, action, chars, change, kept}]}")]
pub(crate) struct History {
    /// Path of the note from the vault's root, in any case.
    note: String,
    /// Show at most this many versions.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl History {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let ready = VaultLocation::find(None, shared)?.open_indexed(OpenMode::Existing, output)?;
        let registry = ready.open.registry(Some(&[Toolset::Work]));
        let arguments = json!({ "id": self.note, "limit": self.limit });
        let answer = ask(&registry, ("node_history", "list the versions"), arguments, output)?;
        if self.json {
            output.json(&answer)?;
            return Ok(Outcome::Fine);
        }
        for version in answer["versions"].as_array().into_iter().flatten() {
            output.line(&line(version))?;
        }
        if answer["deleted"] == true {
            output.aside(&Line::new().plain("the note is deleted; `quipu revert` restores a version"));
        }
        Ok(Outcome::Fine)
    }
}

fn line(version: &Value) -> Line {
    let text = |name: &str| version[name].as_str().unwrap_or_default().to_owned();
    let by = if text("by").is_empty() { "unnamed client".to_owned() } else { text("by") };
    let mut line = Line::new().bold(text("version")).plain(format!("  {}  {:<7}", text("at"), text("action")));
    line = line.plain(format!("  {by}  {} characters", version["chars"]));
    if let Some(change) = version["change"].as_str() {
        line = line.dim(format!("  {change}"));
    }
    if version["kept"] == false { line.dim("  text not kept") } else { line }
}
