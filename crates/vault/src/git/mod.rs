//! What git remembers of the files around a vault, asked of the `git` program: many questions in one process each.
//!
//! Nothing is written, not even git's own index, nothing is fetched, and no program that a repository configures for
//! showing differences or checking signatures is run. Filters for line endings are, and those
//! programs for large files that the user's own configuration names; a repository that names some itself goes without.

mod history;
mod objects;
mod program;
mod repository;

pub(crate) use history::{Advance, History, Touch};
pub(crate) use program::GitError;
pub(crate) use repository::{AtHead, Repository};
