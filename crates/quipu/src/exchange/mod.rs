//! Memory as text, out and in: our own lines, the reference memory server's, and lists as GraphMem gives them.

mod export;
mod import;
mod record;

pub(crate) use export::{ExportError, Format, export};
pub(crate) use import::Import;
