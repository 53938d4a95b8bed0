//! Export and import of memory: our own lines, those of the reference memory server, and GraphMem documents.

mod document;
mod export;
mod import;
mod log;
mod over_long;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use export::{ExportError, ExportFormat, export, export_log};
pub(crate) use import::Importer;
