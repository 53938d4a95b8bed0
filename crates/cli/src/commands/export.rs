//! `quipu export`: writes memory as text.

use clap::Args;

use super::database::GraphOption;
use super::open_vault::VaultLocation;
use super::output::Output;
use super::{Failure, Outcome, Shared};
use crate::compose::OpenMode;
use crate::exchange::{self, ExportError, ExportFormat};

/// Write all of memory to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu export > memory.jsonl                     export everything: ids, times, links to notes
  quipu export --format reference > memory.json   export for the reference memory server
  quipu export --format graphmem > graph.json     export one document with numbered entities
  quipu export --graph team > memory.jsonl        export the memory of a graph in a database
  quipu export | quipu import --graph team -      move this memory into a graph, with its ids

The log of changes is not exported; `quipu backup` copies that too.")]
pub(crate) struct Export {
    /// Write this format.
    #[arg(long, value_enum, default_value = "quipu")]
    format: ExportFormat,
    #[command(flatten)]
    graph: GraphOption,
}

impl Export {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        // Agents may write meanwhile: without one snapshot, a relation could be exported without its entity.
        let written = match self.graph.memory()? {
            Some(memory) => {
                let mut out = output.writer();
                memory.at_one_moment(|memory| exchange::export(memory, self.format, &mut out))?
            }
            None => {
                let open = VaultLocation::find(None, shared)?.memory(OpenMode::Existing)?;
                let mut out = output.writer();
                open.database.at_one_moment(|store| exchange::export(store, self.format, &mut out))
            }
        };
        written.map_err(|error| match error {
            ExportError::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            error => Failure::failed(error.to_string()),
        })?;
        Ok(Outcome::Fine)
    }
}
