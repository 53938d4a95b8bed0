//! The user's files: the only crate that opens them.
//!
//! [`FolderVault`] is a folder of Markdown behind the port [`VaultFiles`](quipu_core::ports::VaultFiles); [`watch`] tells
//! when something in it changed; [`FolderSources`] knows the files that its notes are about, and their history. Unix only: everything below the root is reached through folder handles.

#![warn(missing_docs)]

mod folder_vault;

mod beneath;
mod folder;
mod rules;

mod read;
mod walk;

mod adopt;
mod effect;
mod journal;
mod permissions;
mod requests;
mod step;
mod temporary;
mod trash;
mod write;
mod write_lock;

mod watch;

mod git;
mod sources;

#[cfg(test)]
mod crash_tests;

pub use folder_vault::{FolderVault, OpenError, VaultOptions};
pub use git::GitOptions;
pub use sources::FolderSources;
pub use watch::{WatchError, WatchEvent, WatchOptions, Watcher, watch};
