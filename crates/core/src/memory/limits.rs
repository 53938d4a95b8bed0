//! The maximum lengths of memory's texts in characters, for tools and imports.

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
