//! The git history of the files around a vault, read with the `git` program, with many queries in each process.
//!
//! Nothing is written, not even git's index, and nothing is fetched. No diff, signature or filter program runs, not even one of the user:
//! one that the user installed may read its commands from the repository's configuration, as Git LFS does.

mod blob;
mod history;
mod objects;
mod program;
mod repository;

use std::path::PathBuf;
use std::time::Duration;

/// Options for running git.
#[derive(Debug, Clone)]
pub struct GitOptions {
    /// The program, found in PATH unless it is a path. Default: `git`.
    pub program: PathBuf,
    /// The time limit of one command, and of reading history in one call. Default: 20 seconds.
    pub patience: Duration,
}

impl Default for GitOptions {
    fn default() -> Self {
        Self { program: "git".into(), patience: Duration::from_secs(20) }
    }
}

pub(crate) use history::{Advance, GitHistory, PathChange};
pub(crate) use program::GitError;
pub(crate) use repository::{HeadCache, Repository};
