//! What git remembers of the files around a vault, asked of the `git` program: many questions in one process each.
//!
//! Nothing is written, not even git's own index, nothing is fetched, and no program that a repository configures for
//! showing differences or checking signatures is run. Filters for line endings are, and those
//! programs for large files that the user's own configuration names; a repository that names some itself goes without.

mod history;
mod objects;
mod program;
mod repository;

use std::path::PathBuf;
use std::time::Duration;

/// How git is asked.
#[derive(Debug, Clone)]
pub struct GitOptions {
    /// The program: `git`, as it is found on the path.
    pub program: PathBuf,
    /// How long is waited for one answer, and how long history is read for one question. 20 seconds.
    pub patience: Duration,
}

impl Default for GitOptions {
    fn default() -> Self {
        Self { program: "git".into(), patience: Duration::from_secs(20) }
    }
}

pub(crate) use history::{Advance, History, Touch};
pub(crate) use program::GitError;
pub(crate) use repository::{AtHead, Repository};
