//! `quipu import`: somebody's memory taken into this one.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use quipu_core::Session;
use serde_json::json;

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{CLIENT, Failure, Outcome, Shared};
use crate::compose::OpenMode;
use crate::exchange;

/// Problems that are told one by one: whoever gives the wrong file need not see all of it.
const PROBLEMS_TOLD: usize = 20;

/// Import entities, observations and relations into memory.
///
/// Reads the lines of `quipu export`, the file of the reference memory server with whatever damage it has, and documents as
/// GraphMem gives them. What is there already is not added again; an entity gets the aliases and the description that it lacks.
/// All of it is one change: `quipu undo` takes it back. Numbers of `quipu export` are kept in a memory that never held
/// anything, else new ones are given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu import memory.json            the reference memory server's file
  quipu import --strict export.jsonl  nothing, unless all can be taken in
  ssh host quipu export | quipu import -

JSON fields:
  {entities, observations, relations, known, completed, problems: [{line, message}]}

A line or item that cannot be taken in is named and the rest is kept; the exit code is then 1.")]
pub(crate) struct Import {
    /// File to read, or - for standard input.
    file: PathBuf,
    /// Import nothing when any item is invalid.
    #[arg(long)]
    strict: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let location = VaultLocation::find(None, shared)?;
        let mut file = self.open()?;
        let open = location.memory(OpenMode::Create)?;
        let mut import = exchange::Import::new(&**open.memory.store(), &location.config.memory_types);
        let progress = |line: usize| {
            if line.is_multiple_of(50_000) {
                output.aside(&Line::new().dim(format!("{line} lines read")));
            }
        };
        import.read(&mut file, &progress).map_err(|error| Failure::failed(error.to_string()))?;
        let problems = import.problems().to_vec();
        if !self.json {
            for problem in problems.iter().take(PROBLEMS_TOLD) {
                output.warning(&format!("line {}: {}", problem.line, problem.message), None);
            }
            if problems.len() > PROBLEMS_TOLD {
                let more = problems.len() - PROBLEMS_TOLD;
                output.warning(&format!("{more} more things cannot be taken in"), Some("--json lists all of them"));
            }
        }
        if self.strict && !problems.is_empty() {
            let message = format!("nothing was taken: {} things cannot be taken in", problems.len());
            return Err(Failure::failed(message).hint("leave out --strict to keep the rest"));
        }
        let author = open.memory.author(&Session::named(CLIENT), "import", None);
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
                "problems": problems,
            }))?;
            return Ok(outcome);
        }
        let completed = match imported.completed {
            0 => String::new(),
            some => format!(", and {some} of them got aliases or a description"),
        };
        output.line(&Line::new().plain(format!(
            "taken in: {} entities, {} observations, {} relations; {} were there already{completed}",
            imported.entities, imported.observations, imported.relations, imported.known
        )))?;
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
