//! The tools an agent can call: descriptions, arguments, answers, limits and errors, over one open vault.
//!
//! No files, SQL or MCP types here. A transport lists the tools of a [`Registry`] and calls them. A tool is
//! one file named as the tool; adding one is that file and a line in `registry.rs`.

mod offer;
mod registry;
mod tool;
mod tool_error;

mod docs;
mod memory;
mod notes;
mod pages;
mod upkeep;
mod work;

mod answer_size;
mod arguments;
mod embeds;
mod entities;
mod hints;
mod nearest;
mod not_found;
mod number_or_text;
mod overview;
mod parts;
mod reference;
mod resources;
mod schema;
mod score;
mod tags;
mod time;
mod truncate;
mod whole_graph;

#[cfg(test)]
mod testing;

pub use nearest::nearest;
pub use offer::Offer;
pub use overview::{Overview, WarningGroup, WarningTopic};
pub use reference::reference;
pub use registry::{Registry, RegistryOptions, Reply, ToolResponse, every_tool};
pub use resources::{Completion, Resource, ResourcePage, ResourceText};
pub use tool::{Access, ToolInfo, Toolset};
pub use tool_error::{ToolError, ToolErrorKind};
pub use truncate::{echoed, truncate};
pub use whole_graph::{EntityColumns, FreshnessColumns, NoteColumns, WholeGraph};
