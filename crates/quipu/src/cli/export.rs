//! `quipu export`: memory as text.

use clap::Args;

use super::output::Output;
use super::{Failure, Outcome, Shared, opened};
use crate::compose::Wish;
use crate::exchange::{self, ExportError, Format};

/// Write all of memory to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu export > memory.jsonl                       everything: numbers, times, ties to notes
  quipu export --format reference > memory.json     for the reference memory server
  quipu export --format graphmem > graph.json       one document with numbered entities

The log of changes is not exported; `quipu backup` copies that too.")]
pub(crate) struct Export {
    /// The form.
    #[arg(long, value_enum, default_value = "quipu")]
    format: Format,
}

impl Export {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let open = opened::locate(None, shared)?.memory(Wish::Look)?;
        exchange::export(&**open.memory.store(), self.format, &mut output.writer()).map_err(|error| match error {
            ExportError::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            error => Failure::failed(error.to_string()),
        })?;
        Ok(Outcome::Fine)
    }
}
