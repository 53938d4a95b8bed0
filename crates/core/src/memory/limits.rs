//! Limits of memory: the maximum lengths of its texts in characters, for tools and imports, and what its stores read at a time.

/// Maximum characters of a name.
pub const NAME: usize = 500;
/// Maximum characters of an entity or relation type.
pub const TYPE: usize = 100;
/// Maximum characters of all aliases of an entity, with a separator between them.
pub const ALIASES: usize = 5_000;
/// Maximum characters of a description.
pub const DESCRIPTION: usize = 10_000;
/// Maximum characters of an observation.
pub const OBSERVATION: usize = 50_000;

/// Entries of the log that a store reads at a time.
pub const LOG_BATCH: usize = 500;
/// Findings of each kind that a check of memory reports.
pub const MAX_FINDINGS: usize = 20;
