//! What git remembers of the files around a vault, asked of the `git` program: many questions in one process each.
//!
//! Nothing is written, not even git's own index, nothing is fetched, and no program that a repository configures for
//! showing differences or checking signatures is run. Its filters for line endings and large files are.

mod history;
mod objects;
mod program;
mod repository;

pub(crate) use history::{Advance, History, Touch};
pub(crate) use program::GitError;
pub(crate) use repository::{AtHead, Repository};
