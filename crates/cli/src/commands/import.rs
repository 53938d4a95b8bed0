//! `quipu import`: imports memory from a file.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use quipu_core::Session;
use quipu_core::memory::EntityTypes;
use quipu_core::ports::{Author, Clock, MemoryStore, SystemClock};
use serde_json::json;

use super::database::{GraphOption, settings};
use super::open_vault::VaultLocation;
use super::output::{Line, Output, counted};
use super::{CLIENT, Failure, Outcome, Shared};
use crate::compose::{OpenMode, PostgresMemory};
use crate::exchange;

/// Problems that are listed: in a file of another kind every line is one.
const MAX_PROBLEMS: usize = 20;

/// Import entities, observations and relations into memory.
///
/// Reads the output of `quipu export`, the file of the reference memory server even if it is damaged, and GraphMem documents.
/// Existing items are not added again; an existing entity gets the aliases and the description that it lacks. The import is
/// one change, which `quipu undo` reverts. Ids from `quipu export` are kept if memory has no changes yet, and so is the log from
/// `quipu export --with-log`; otherwise items get new ids.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu import memory.json            import the file of the reference memory server
  quipu import --strict export.jsonl  import everything or nothing
  ssh host quipu export | quipu import -
  quipu import --graph team export.jsonl   import into a graph of a team's database

JSON fields:
  {entities, observations, relations, known, completed, changes, changes_left,
   problems: [{line, message}]}; changes are those of the log that were copied, changes_left
   those that were not

Invalid lines and items are listed and the rest is imported; the exit code is then 1.")]
pub(crate) struct Import {
    /// File to read, or - for standard input.
    file: PathBuf,
    #[command(flatten)]
    graph: GraphOption,
    /// Import nothing when any item is invalid.
    #[arg(long)]
    strict: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        if let Some((database, graph)) = self.graph.find()? {
            let memory = PostgresMemory::new(database, &graph);
            return self.import(&memory, &settings()?.memory_types, output);
        }
        let location = VaultLocation::find(None, shared)?;
        let open = location.memory(OpenMode::Create)?;
        self.import(&**open.memory.store(), &location.config.memory_types, output)
    }

    fn import(&self, store: &dyn MemoryStore, types: &EntityTypes, output: &mut Output) -> Result<Outcome, Failure> {
        let mut file = self.open()?;
        let mut import = exchange::Importer::new(store, types);
        let progress = |line: usize| {
            if line.is_multiple_of(50_000) {
                output.aside(&Line::new().dim(format!("{line} lines read")));
            }
        };
        import.read(&mut file, &progress).map_err(|error| Failure::failed(error.to_string()))?;
        let problems = import.problems().to_vec();
        if !self.json {
            for problem in problems.iter().take(MAX_PROBLEMS) {
                output.warning(&format!("line {}: {}", problem.line, problem.message), None);
            }
            if problems.len() > MAX_PROBLEMS {
                let more = counted(problems.len() - MAX_PROBLEMS, "more item is", "more items are");
                output.warning(&format!("{more} invalid"), Some("--json lists all of them"));
            }
        }
        if self.strict && !problems.is_empty() {
            let invalid = counted(problems.len(), "item is", "items are");
            let message = format!("cannot import the file: {invalid} invalid; nothing was imported");
            return Err(Failure::failed(message).hint("omit --strict to import the rest"));
        }
        let (client, tool) = (Session::named(CLIENT).client(), "import".to_owned());
        let author = Author { client, tool, at_ns: SystemClock.now_ns(), request: None };
        let imported = import.apply(&author).map_err(|error| Failure::failed(error.to_string()))?;
        let outcome = if problems.is_empty() { Outcome::Fine } else { Outcome::Negative };
        if self.json {
            let problems: Vec<_> =
                problems.iter().map(|problem| json!({ "line": problem.line, "message": problem.message })).collect();
            output.json(&json!({
                "entities": imported.entities,
                "observations": imported.observations,
                "relations": imported.relations,
                "known": imported.known,
                "completed": imported.completed,
                "changes": imported.changes,
                "changes_left": imported.changes_left,
                "problems": problems,
            }))?;
            return Ok(outcome);
        }
        let completed = match imported.completed {
            0 => String::new(),
            some => format!(", {some} of them got aliases or a description"),
        };
        output.line(&Line::new().plain(format!(
            "imported {}, {}, {}; {} existed already{completed}",
            counted(imported.entities, "entity", "entities"),
            counted(imported.observations, "observation", "observations"),
            counted(imported.relations, "relation", "relations"),
            counted(imported.known, "item", "items")
        )))?;
        if imported.changes > 0 {
            let changes = counted(imported.changes, "change", "changes");
            output.line(&Line::new().plain(format!("copied the log of {changes}")))?;
        }
        if imported.changes_left > 0 {
            let changes = counted(imported.changes_left, "change", "changes");
            output.warning(
                &format!("the log of {changes} was not copied: memory has changes already"),
                Some("a new folder or graph takes over the log"),
            );
        }
        Ok(outcome)
    }

    #[expect(clippy::disallowed_methods, reason = "the file is named by the person who typed the command")]
    fn open(&self) -> Result<Box<dyn BufRead>, Failure> {
        if self.file == Path::new("-") {
            return Ok(Box::new(BufReader::new(std::io::stdin())));
        }
        let file = std::fs::File::open(&self.file);
        let file = file.map_err(|error| Failure::usage(format!("cannot read {}: {error}", self.file.display())))?;
        Ok(Box::new(BufReader::new(file)))
    }
}
