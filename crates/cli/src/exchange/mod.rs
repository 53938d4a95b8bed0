//! Memory as text, out and in: our own lines, the reference memory server's, and lists as GraphMem gives them.

mod document;
mod export;
mod import;
mod over_long;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use export::{ExportError, Format, export};
pub(crate) use import::Import;
