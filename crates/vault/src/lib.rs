//! Access to the user's files; no other crate opens them.
//!
//! [`FolderVault`] implements the port [`VaultFiles`](quipu_core::ports::VaultFiles) for a folder of Markdown; [`watch`](fn@watch)
//! reports changes in it; [`FolderSources`] finds the files that notes are about, and their history. Linux and macOS only: every access
//! below the root goes through directory handles.
//!
//! A write runs through `write` (all of its steps), `write_lock`, `write_plan` (checks), `journal` (what is about to happen),
//! `file_op` (one rename for each file), `trash` and `history`; `recovery` completes or undoes it after a crash.

mod folder_vault;

mod dir;
mod folder;
mod own_folder;
mod rules;

mod images;
mod read;
mod walk;

mod failpoint;
mod file_op;
mod forget;
mod history;
mod journal;
mod kept_file;
mod other_files;
mod permissions;
mod recovery;
mod requests;
mod temporary;
mod trash;
mod write;
mod write_lock;
mod write_plan;
mod written;

mod watch;

mod git;
mod sources;

#[cfg(test)]
mod crash_tests;

pub use folder_vault::{FolderVault, OpenError, VaultOptions};
pub use git::GitOptions;
pub use sources::FolderSources;
pub use watch::{WatchError, WatchEvent, WatchOptions, Watcher, watch};
