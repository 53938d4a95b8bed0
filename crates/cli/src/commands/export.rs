//! `quipu export`: writes memory as text.

use std::io::Write;

use clap::Args;
use quipu_core::ports::MemoryStore;

use super::database::GraphOption;
use super::open_vault::VaultLocation;
use super::output::Output;
use super::{Failure, Outcome, Shared};
use crate::compose::{OpenMode, PostgresMemory};
use crate::exchange::{self, ExportError, ExportFormat};

/// Write all of memory to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu export > memory.jsonl                     export everything: ids, times, links to notes
  quipu export --format reference > memory.json   export for the reference memory server
  quipu export --format graphmem > graph.json     export one document with numbered entities
  quipu export --graph team > memory.jsonl        export the memory of a graph in a database
  quipu export --with-log | quipu import --graph team -
                                                  move this memory into a graph with its log

The log has every change, and so the texts that were replaced or deleted. Without it, an
import is one new change.")]
pub(crate) struct Export {
    /// Write this format.
    #[arg(long, value_enum, default_value = "quipu")]
    format: ExportFormat,
    /// Add the log of changes, which an empty memory takes over: ids, authors, times and undo.
    #[arg(long)]
    with_log: bool,
    #[command(flatten)]
    graph: GraphOption,
}

impl Export {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        if self.with_log && self.format != ExportFormat::Quipu {
            return Err(Failure::usage("cannot add the log: the format has no place for it")
                .hint("leave out --format, or --with-log"));
        }
        // Agents may write meanwhile: without one snapshot, a relation could be exported without its entity.
        let written = match self.graph.find()? {
            Some((database, graph)) => {
                let mut out = output.writer();
                PostgresMemory::new(database, &graph).at_one_moment(|memory| self.write(memory, &mut out))?
            }
            None => {
                let open = VaultLocation::find(None, shared)?.memory(OpenMode::Existing)?;
                let mut out = output.writer();
                open.database.at_one_moment(|store| self.write(store, &mut out))
            }
        };
        written.map_err(|error| match error {
            ExportError::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            error => Failure::failed(error.to_string()),
        })?;
        Ok(Outcome::Fine)
    }

    fn write(&self, store: &dyn MemoryStore, out: &mut dyn Write) -> Result<(), ExportError> {
        exchange::export(store, self.format, out)?;
        if self.with_log { exchange::export_log(store, out) } else { Ok(()) }
    }
}
