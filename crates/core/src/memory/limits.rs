//! The maximum lengths of memory's texts in characters, for tools and imports.

/// Of a name.
pub const NAME: usize = 500;
/// Of a type of entity or relation.
pub const TYPE: usize = 100;
/// Of all aliases of an entity, with a character between them.
pub const ALIASES: usize = 5_000;
/// Of a description.
pub const DESCRIPTION: usize = 10_000;
/// Of an observation.
pub const OBSERVATION: usize = 50_000;
