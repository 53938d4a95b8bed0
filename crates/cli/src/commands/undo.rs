//! `quipu undo`: undoes a change to memory.

use clap::Args;
use quipu_core::Session;
use quipu_core::ports::{ChangeNumber, UndoError};

use super::database::{CommandMemory, GraphOption};
use super::output::{Line, Output};
use super::progress::waiting;
use super::{CLIENT, Failure, Outcome, Shared, change};
use crate::compose::OpenMode;

/// Undo a change to memory; for notes use `quipu revert --change`.
///
/// Without a number, undoes the newest change that has not been undone. To undo a change on which newer ones depend, undo
/// those first. An undo is itself a change in the log and can be undone by its number.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu undo       undo the newest change
  quipu undo 118   undo change 118, as `quipu audit` lists it
  quipu undo 118 --graph team   undo a change of a graph in a database

JSON fields, as in `quipu audit --json`:
  {change, at, client, tool, undoes, undone_by, steps: [{before, after}]}")]
pub(crate) struct Undo {
    /// Number of the change, as `quipu audit` lists it.
    #[arg(value_name = "CHANGE", value_parser = memory_change)]
    number: Option<i64>,
    #[command(flatten)]
    graph: GraphOption,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Undo {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = self.graph.memory(shared, OpenMode::Existing)?;
        let number = match self.number {
            Some(number) => ChangeNumber(number),
            None => newest(&open)?,
        };
        let author = open.memory.author(&Session::named(CLIENT), "undo", None);
        let what = || {
            let Some(database) = &open.database else { return "waiting for the database".to_owned() };
            let holder = database.lock_holder().unwrap_or_else(|| "another program".to_owned());
            format!("waiting for {holder}, which keeps .quipu/memory.db locked")
        };
        let undone = waiting(what, output, || open.memory.store().undo(number, &author));
        let undone = undone.map_err(|error| match error {
            UndoError::Failed(failure) => failure.into(),
            error => Failure::failed(error.to_string()).hint("`quipu audit` lists the changes"),
        })?;
        if self.json {
            output.json(&change::to_json(&undone))?;
            return Ok(Outcome::Fine);
        }
        output.line(&Line::new().plain(format!("change {} is undone by change {}", number.0, undone.number.0)))?;
        for line in change::lines(&undone) {
            output.line(&Line::new().plain(format!("    {line}")))?;
        }
        Ok(Outcome::Fine)
    }
}

/// The number of a change to memory. Changes to notes have an `n` before their number.
fn memory_change(given: &str) -> Result<i64, String> {
    match given.strip_prefix('n').map(str::parse::<i64>) {
        Some(Ok(number)) => Err(format!("it is a change to notes; `quipu revert --change n{number}` undoes it")),
        _ => given.parse().map_err(|_| "it must be a number, as `quipu audit` lists it".to_owned()),
    }
}

/// The newest change that is in effect and is not an undo. A change whose undo was undone is in effect.
fn newest(open: &CommandMemory) -> Result<ChangeNumber, Failure> {
    let mut before = ChangeNumber(i64::MAX);
    loop {
        let changes = open.memory.store().log_before(before, 50)?;
        let Some(oldest) = changes.last() else {
            return Err(Failure::failed("there is nothing to undo").hint("`quipu audit` lists the changes"));
        };
        before = oldest.number;
        if let Some(found) = changes.iter().find(|change| change.undoes.is_none() && change.undone_by.is_none()) {
            return Ok(found.number);
        }
    }
}
