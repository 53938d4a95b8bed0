//! The files of a vault, without its index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_core::index::FileBatch;
use quipu_core::ports::VaultFiles;
use quipu_server::own_files::{self, own_folder};
use quipu_vault::{FolderVault, OpenError, VaultOptions, WatchEvent, WatchOptions};

use super::ComposeError;
use crate::config::{Config, ConfigError, FILE, Pattern};

/// The open files of a vault.
#[derive(Clone)]
pub(crate) struct OpenFiles(Arc<FolderVault>);

impl OpenFiles {
    pub(crate) fn open(root: &Path, config: &Config, read_only: bool) -> Result<Self, ComposeError> {
        let globs = |patterns: &[Pattern]| patterns.iter().map(|pattern| pattern.glob.clone()).collect();
        let options = VaultOptions { include: globs(&config.include), exclude: globs(&config.exclude), read_only };
        let opened = FolderVault::open(root, options).map_err(|error| match error {
            OpenError::Pattern { source } => {
                let all = || config.include.iter().chain(&config.exclude);
                let written =
                    all().find(|pattern| Some(pattern.glob.as_str()) == source.glob()).or_else(|| all().next());
                ConfigError {
                    place: written.map_or_else(|| FILE.to_owned(), |pattern| pattern.place.to_string()),
                    message: source.to_string(),
                    hint: "patterns are globs from the vault's root, such as \"drafts/**\" or \"*.tmp.md\"".into(),
                }
                .into()
            }
            error @ OpenError::Unfinished { .. } => ComposeError::Unfinished(error.to_string()),
            error => ComposeError::Folder(error.to_string()),
        })?;
        Ok(Self(Arc::new(opened)))
    }

    /// The vault's folder.
    pub(crate) fn root(&self) -> &Path {
        self.0.root()
    }

    pub(crate) fn port(&self) -> Arc<dyn VaultFiles> {
        self.0.clone()
    }

    /// Creates `.quipu/` if it does not exist, and denies other users access to it. Returns its path.
    pub(crate) fn make_own_folder(&self) -> std::io::Result<PathBuf> {
        self.0.make_own_folder()?;
        let folder = own_folder(self.root());
        own_files::tighten(&folder)?;
        Ok(folder)
    }

    /// Temporary files that a crash left.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        self.0.leftovers()
    }

    /// Deletes versions from the trash that are older than this. Returns their number.
    pub(crate) fn prune_trash(&self, before_ns: i64) -> std::io::Result<usize> {
        self.0.prune_kept(before_ns)
    }

    /// Reports changes by other programs until the returned value is dropped: what to look at, or a warning.
    pub(crate) fn watch(
        &self,
        on_event: impl Fn(Result<FileBatch, String>) + Send + 'static,
    ) -> Result<Box<dyn Send>, String> {
        let on_change = move |event| {
            on_event(match event {
                WatchEvent::Changed(paths) => Ok(FileBatch::Paths(paths)),
                WatchEvent::Rescan => Ok(FileBatch::All),
                WatchEvent::Warning(message) => Err(message),
            });
        };
        match quipu_vault::watch(&self.0, WatchOptions::default(), on_change) {
            Ok(watcher) => Ok(Box::new(watcher)),
            Err(error) => Err(error.to_string()),
        }
    }
}
