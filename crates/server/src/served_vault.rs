//! An open vault as the server uses it. The composition root implements this over the files and stores it chose.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_core::Knowledge;
use quipu_core::index::{FileBatch, IndexError};
use quipu_core::memory::Memory;
use quipu_core::model::VaultPath;
use quipu_core::ports::Image;
use quipu_tools::Registry;
use serde_json::Value;

use crate::engine::{Engine, FirstPass};
use crate::service::Metric;

/// Finds and opens one vault.
pub trait VaultSource: Send + Sync {
    /// The vault's `.quipu/` folder, created if possible. `None` otherwise: then the vault is not shared.
    fn own_folder(&self) -> anyhow::Result<Option<PathBuf>>;

    /// Opens the vault without reading it.
    fn open(&self) -> anyhow::Result<Arc<dyn ServedVault>>;

    /// See [`quipu_core::ports::VaultFiles::image`]. Read by this process, whichever one owns the vault: images are in no index.
    fn image(&self, note: &VaultPath, target: &str) -> anyhow::Result<Option<Image>>;
}

/// An open vault.
pub trait ServedVault: Send + Sync {
    /// The folder of notes; `None` for notes in a database.
    fn root(&self) -> Option<&Path>;

    /// The domain that tools use.
    fn knowledge(&self) -> &Arc<Knowledge>;

    /// Memory, or why it cannot be used, for the log.
    fn memory(&self) -> Result<&Arc<Memory>, String>;

    /// Every tool over this vault.
    fn registry(&self) -> Registry;

    /// Reads every file that the index does not know.
    fn read(&self, first_pass: FirstPass) -> Result<(), IndexError>;

    /// Whether another process has the index open, so that this one keeps its own in memory.
    fn is_index_taken(&self) -> bool;

    /// Why the index is not on disk, if that is unexpected.
    fn why_not_kept(&self) -> Option<String>;

    /// Reports changes by other programs until the returned value is dropped: what to look at, or a warning.
    fn watch(&self, on_event: Box<dyn Fn(Result<FileBatch, String>) + Send>) -> Result<Box<dyn Send>, String>;

    /// Deletes versions from the trash that are older than this. Returns their number.
    fn prune_trash(&self, before_ns: i64) -> io::Result<usize>;

    /// Saves what the next start would otherwise compute again.
    fn save(&self);

    /// Metrics of this vault or graph.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    /// Runs a command of the command line for another process, and returns its reply.
    fn run_command(self: Arc<Self>, engine: &Engine, command: Value) -> Value;
}
