//! A vault opened as the program opens it, for benchmarks.

use std::path::Path;
use std::sync::Arc;

use quipu_core::ports::SystemClock;
use quipu_core::{Knowledge, Parts};
use quipu_store_embedded::EmbeddedStore;
use quipu_vault::{FolderSources, FolderVault, VaultOptions};

/// The vault, not started yet, and its index, kept in a folder of this name.
pub(crate) fn open(vault: &Path, index: &str) -> anyhow::Result<(Knowledge, Arc<EmbeddedStore>)> {
    let store = Arc::new(EmbeddedStore::open(&vault.join(".quipu").join(index))?);
    let knowledge = Knowledge::new(Parts {
        vault: Arc::new(FolderVault::open(vault, VaultOptions::default())?),
        store: store.clone(),
        clock: Arc::new(SystemClock),
        sources: Arc::new(FolderSources::new(vault, Arc::new(SystemClock))),
        title_rule: Default::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    Ok((knowledge, store))
}
