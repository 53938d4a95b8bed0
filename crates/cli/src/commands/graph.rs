//! `quipu graph`: the graphs of a team's database.

use clap::{Args, Subcommand};
use quipu_store_postgres::{GraphError, GraphLimits, GraphUsage};
use serde_json::{Value, json};

use super::database::{DatabaseOption, failed};
use super::output::{Line, Output, counted};
use super::{Failure, Outcome};

/// Create, list, rename, limit and delete the graphs of a team's database.
///
/// A graph has its own notes, memory and tokens.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  quipu graph create team --max-notes 50000 --max-bytes 2GB
  quipu graph list
  quipu graph rename team platform
  quipu graph limit team --max-notes none --max-rate 50
  quipu graph delete platform --yes

JSON fields of list:
  [{name, created, notes, bytes, max_notes, max_bytes, max_rate}]"
)]
pub(crate) struct GraphCommand {
    #[command(subcommand)]
    verb: GraphAction,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, Subcommand)]
enum GraphAction {
    /// Create an empty graph.
    Create {
        /// Name of the new graph: letters a-z, digits, - and _.
        name: String,
        #[command(flatten)]
        limits: LimitOptions,
    },
    /// List graphs with their sizes and limits.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give a graph another name.
    Rename {
        /// Name of the graph.
        name: String,
        /// New name.
        new_name: String,
    },
    /// Set the limits of a graph; limits that are not given stay.
    Limit {
        /// Name of the graph.
        name: String,
        #[command(flatten)]
        limits: LimitOptions,
    },
    /// Permanently delete a graph with its notes, their history and its memory.
    Delete {
        /// Name of the graph.
        name: String,
        /// Confirm the deletion.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
struct LimitOptions {
    /// Refuse new notes beyond this number, or none.
    #[arg(long, value_name = "NUMBER", value_parser = limit)]
    max_notes: Option<Limit>,
    /// Refuse to grow beyond this size of notes, versions and memory: bytes, or with KB, MB or GB, or none.
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    max_bytes: Option<Limit>,
    /// Refuse calls beyond this number a second at each server, or none; a burst may be twice as many.
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    max_rate: Option<Limit>,
}

/// A limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit(Option<i64>);

fn limit(text: &str) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let units = [("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("", 1)];
    let parsed = units.into_iter().find_map(|(unit, factor)| {
        let number: i64 = text.strip_suffix(unit)?.parse().ok().filter(|number| *number >= 0)?;
        number.checked_mul(factor)
    });
    parsed.map(|number| Limit(Some(number))).ok_or_else(|| "write it as 5000, 200MB, 2GB or none".to_owned())
}

/// Parses a limit of calls per second. 0 is refused: such a graph would answer no call.
fn rate(text: &str) -> Result<Limit, String> {
    let is_rate = |limit: &Limit| limit.0.is_none_or(|rate| (1..=1_000_000).contains(&rate));
    limit(text).ok().filter(is_rate).ok_or_else(|| "write it as a number from 1 to 1000000, or none".to_owned())
}

impl LimitOptions {
    fn over(&self, current: GraphLimits) -> GraphLimits {
        GraphLimits {
            max_notes: self.max_notes.map_or(current.max_notes, |limit| limit.0),
            max_bytes: self.max_bytes.map_or(current.max_bytes, |limit| limit.0),
            max_rate: self.max_rate.map_or(current.max_rate, |limit| limit.0),
        }
    }
}

impl GraphCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let database = self.database.open()?;
        let usage = || database.graph_usage().map_err(|error| failed(&error));
        let find = |name: &str| {
            let found = usage()?.into_iter().find(|usage| usage.graph.name == name);
            found.ok_or_else(|| refused(&GraphError::Unknown(name.to_owned())))
        };
        match self.verb {
            GraphAction::Create { name, limits } => {
                database.create_graph(&name).map_err(|error| refused(&error))?;
                let limits = limits.over(GraphLimits::default());
                if limits != GraphLimits::default() {
                    database.limit_graph(&name, limits).map_err(|error| refused(&error))?;
                }
                output.line(&Line::new().plain("created ").bold(name))?;
            }
            GraphAction::List { json } => list(&usage()?, json, output)?,
            GraphAction::Rename { name, new_name } => {
                database.rename_graph(&name, &new_name).map_err(|error| refused(&error))?;
                output.line(&Line::new().plain(format!("renamed {name} to ")).bold(new_name))?;
            }
            GraphAction::Limit { name, limits } => {
                let limits = limits.over(find(&name)?.limits);
                database.limit_graph(&name, limits).map_err(|error| refused(&error))?;
                list(&[find(&name)?], false, output)?;
            }
            GraphAction::Delete { name, yes } => {
                let held = counted(find(&name)?.notes, "note", "notes");
                if !yes {
                    let message =
                        format!("cannot delete {name} without --yes: it has {held}, their history and memory");
                    return Err(Failure::usage(message)
                        .hint("a deleted graph can be restored only from a backup of the database"));
                }
                database.delete_graph(&name).map_err(|error| refused(&error))?;
                output.line(&Line::new().plain("deleted ").bold(name).plain(format!(" with {held}")))?;
            }
        }
        Ok(Outcome::Fine)
    }
}

fn list(graphs: &[GraphUsage], json: bool, output: &mut Output) -> Result<(), Failure> {
    if json {
        return output.json(&graphs.iter().map(to_json).collect::<Vec<_>>());
    }
    if graphs.is_empty() {
        output.aside(&Line::new().plain("there are no graphs; `quipu graph create NAME` creates one"));
    }
    for usage in graphs {
        let of = |limit: Option<i64>| limit.map_or_else(String::new, |limit| format!(" of {limit}"));
        let notes = format!("{}{} notes", usage.notes, of(usage.limits.max_notes));
        let bytes = format!("{}{} bytes", usage.bytes, of(usage.limits.max_bytes));
        let rate = usage.limits.max_rate.map_or_else(String::new, |rate| format!(", {rate} calls a second"));
        output.line(&Line::new().bold(usage.graph.name.clone()).plain(format!("  {notes}, {bytes}{rate}")))?;
    }
    Ok(())
}

fn to_json(usage: &GraphUsage) -> Value {
    json!({
        "name": usage.graph.name,
        "created": usage.created.to_string(),
        "notes": usage.notes,
        "bytes": usage.bytes,
        "max_notes": usage.limits.max_notes,
        "max_bytes": usage.limits.max_bytes,
        "max_rate": usage.limits.max_rate,
    })
}

fn refused(error: &GraphError) -> Failure {
    match error {
        GraphError::Failed(error) => failed(error),
        GraphError::Exists(_) | GraphError::Name(_) | GraphError::Unknown(_) => Failure::usage(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_with_a_unit_or_none() {
        let parsed = |text| limit(text).map(|limit| limit.0);
        assert_eq!(parsed("5000"), Ok(Some(5000)));
        assert_eq!(parsed("2GB"), Ok(Some(2_000_000_000)));
        assert_eq!(parsed("none"), Ok(None));
        assert_eq!((rate("50"), rate("none")), (Ok(Limit(Some(50))), Ok(Limit(None))));
        assert!(rate("0").is_err() && rate("2000000").is_err());
        for wrong in ["", "-1", "2 GB", "1.5MB", "GB", "99999999999GB", "１"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
