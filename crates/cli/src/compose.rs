//! Opens a vault: the one place that names the folder of files and the store that stand behind the ports.
//!
//! The index may always live in memory instead of in its folder. Then everything works, and the next start is as slow as
//! this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use quipu_core::memory::{Memory, MemoryParts};
use quipu_core::ports::{Embedder, SystemClock};
use quipu_core::search::Meaning;
use quipu_core::{Knowledge, Parts};
use quipu_embed::{Keys, Provider};
use quipu_server::own_files::{self, own_folder};
use quipu_store_embedded::{EmbeddedStore, MemoryDatabase, MemoryOpenError, StoreOpenError};
use quipu_vault::{FolderSources, FolderVault, VaultOptions};

use crate::config::{Config, ConfigError};
use crate::trust::{self, Allowed};

/// A vault and what stands behind it.
pub(crate) struct OpenVault {
    /// What is asked.
    pub(crate) knowledge: Arc<Knowledge>,
    /// The files.
    pub(crate) vault: Arc<FolderVault>,
    /// The index.
    pub(crate) store: Arc<EmbeddedStore>,
    /// Where the index is kept.
    pub(crate) index: IndexPlace,
    /// What agents learned, or why it cannot be had.
    pub(crate) memory: Result<OpenMemory, MemoryOpenError>,
}

impl std::fmt::Debug for OpenVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenVault")
            .field("root", &self.vault.root())
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// What agents learned, and the file behind it.
#[derive(Clone)]
pub(crate) struct OpenMemory {
    /// What is asked.
    pub(crate) memory: Arc<Memory>,
    /// The file.
    pub(crate) database: Arc<MemoryDatabase>,
}

/// How a command wants to use the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Keeps its index in the vault's `.quipu/`, which is made where there is none.
    Keep,
    /// The same, and forgets first what the index held.
    Rebuild,
    /// Uses the index that is there, and leaves a folder without one as it is.
    Look,
}

/// Where the index is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexPlace {
    /// In this folder.
    Folder(PathBuf),
    /// In this process only.
    Memory(WhyMemory),
}

/// Why the index is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WhyMemory {
    /// Another process has the folder open.
    Owned,
    /// The folder cannot be written.
    Unwritable(String),
    /// There is none yet, and the command only looks.
    NotYet,
}

/// Why a vault could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComposeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Vault(#[from] quipu_vault::OpenError),
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// Makes the folder that is ours, unless it is there, and closes it to other accounts.
pub(crate) fn make_own_folder(vault: &FolderVault) -> std::io::Result<()> {
    vault.make_own_folder()?;
    own_files::tighten(&own_folder(vault.root()))
}

/// Where a vault's index lies.
pub(crate) fn index_folder(root: &Path) -> PathBuf {
    own_folder(root).join("index")
}

/// Where a vault's memory lies.
pub(crate) fn memory_file(root: &Path) -> PathBuf {
    own_folder(root).join("memory.db")
}

/// Opens a vault. Nothing is read yet: see [`Knowledge::start`].
pub(crate) fn open(root: &Path, config: &Config, wish: Wish) -> Result<OpenVault, ComposeError> {
    let vault = Arc::new(open_files(root, config, false)?);
    let (store, index) = open_index(&vault, wish)?;
    let store = Arc::new(store);
    let Allowed { provider, warning } = trust::allowed(vault.root(), &config.embedding);
    let embedder = open_embedder(provider)?;
    let knowledge = Knowledge::new(Parts {
        vault: vault.clone(),
        store: store.clone(),
        clock: Arc::new(SystemClock),
        sources: Arc::new(FolderSources::new(vault.root(), Arc::new(SystemClock))),
        title_rule: config.title_from.clone(),
        stale_after: config.stale_after,
    });
    let knowledge = match &embedder {
        Some(embedder) => {
            knowledge.with_meaning(Meaning::new(embedder.clone(), store.clone()).alone(config.by_meaning_alone))
        }
        None => knowledge,
    };
    if let Some(message) = warning {
        knowledge.warn(quipu_core::model::Warning { path: crate::config::FILE.to_owned(), message });
    }
    let memory = open_memory(&vault, config, embedder, wish)?;
    let knowledge = match &memory {
        Ok(open) => {
            if let Some(notice) = open.database.notice() {
                let path = ".quipu/memory.db".to_owned();
                knowledge.warn(quipu_core::model::Warning { path, message: notice.to_owned() });
            }
            knowledge.with_memory(open.memory.clone())
        }
        Err(_) => knowledge,
    };
    Ok(OpenVault { knowledge: Arc::new(knowledge), vault, store, index, memory })
}

/// Opens a vault's memory alone, for commands that need nothing else.
pub(crate) fn open_memory_alone(
    root: &Path,
    config: &Config,
    wish: Wish,
) -> Result<Result<OpenMemory, MemoryOpenError>, ComposeError> {
    let vault = open_files(root, config, false)?;
    let Allowed { provider, .. } = trust::allowed(vault.root(), &config.embedding);
    open_memory(&vault, config, open_embedder(provider)?, wish)
}

/// What compares meanings, if anything shall.
fn open_embedder(provider: Provider) -> Result<Option<Arc<dyn Embedder>>, ComposeError> {
    let settings = quipu_embed::EmbedderSettings {
        provider,
        keys: Keys::from_environment(),
        ..quipu_embed::EmbedderSettings::default()
    };
    quipu_embed::open(&settings).map_err(|error| no_embedder(&error))
}

/// Fails where no command could ask this provider. Nobody is asked here.
pub(crate) fn check_provider(provider: Provider) -> Result<(), ComposeError> {
    let keys = Keys::from_environment();
    let settings = quipu_embed::EmbedderSettings { provider, keys, ..quipu_embed::EmbedderSettings::default() };
    match quipu_embed::open(&settings) {
        // The key may be set only where the server is started.
        Ok(_) | Err(quipu_embed::SettingsError::NoKey) => Ok(()),
        Err(error) => Err(no_embedder(&error)),
    }
}

fn no_embedder(error: &quipu_embed::SettingsError) -> ComposeError {
    let hint = "look at [embedding]; provider = \"builtin\" needs neither an address nor a key".to_owned();
    ConfigError { place: crate::config::FILE.to_owned(), message: error.to_string(), hint }.into()
}

/// Memory is the one thing here that cannot be made anew: where its file cannot be used, there is none, and the rest works.
fn open_memory(
    vault: &FolderVault,
    config: &Config,
    embedder: Option<Arc<dyn Embedder>>,
    wish: Wish,
) -> Result<Result<OpenMemory, MemoryOpenError>, ComposeError> {
    let file = memory_file(vault.root());
    let database = if wish == Wish::Look && file.symlink_metadata().is_err() {
        MemoryDatabase::in_memory().context("while making an empty memory")?
    } else {
        if let Err(error) = make_own_folder(vault) {
            return Ok(Err(MemoryOpenError::Failed { file, source: error.into() }));
        }
        match MemoryDatabase::open(&file) {
            Ok(database) => {
                if let Some(notice) = database.notice() {
                    tracing::warn!("{notice}");
                }
                database
            }
            Err(error) => return Ok(Err(error)),
        }
    };
    let database = Arc::new(database);
    let memory = Memory::new(MemoryParts {
        store: database.clone(),
        embedder,
        clock: Arc::new(SystemClock),
        types: config.memory_types.clone(),
        rule: config.duplicates,
    });
    Ok(Ok(OpenMemory { memory: Arc::new(memory), database }))
}

pub(crate) fn open_files(root: &Path, config: &Config, read_only: bool) -> Result<FolderVault, ComposeError> {
    let globs = |patterns: &[crate::config::Pattern]| patterns.iter().map(|pattern| pattern.glob.clone()).collect();
    let options = VaultOptions { include: globs(&config.include), exclude: globs(&config.exclude), read_only };
    FolderVault::open(root, options).map_err(|error| match error {
        quipu_vault::OpenError::Pattern { source } => {
            let all = || config.include.iter().chain(&config.exclude);
            let written = all().find(|pattern| Some(pattern.glob.as_str()) == source.glob()).or_else(|| all().next());
            ConfigError {
                place: written.map_or_else(|| crate::config::FILE.to_owned(), |pattern| pattern.place.to_string()),
                message: source.to_string(),
                hint: "patterns are globs from the vault's root, such as \"drafts/**\" or \"*.tmp.md\"".into(),
            }
            .into()
        }
        error => error.into(),
    })
}

fn open_index(vault: &FolderVault, wish: Wish) -> Result<(EmbeddedStore, IndexPlace), ComposeError> {
    let folder = index_folder(vault.root());
    if wish == Wish::Look && !folder.is_dir() {
        return in_memory(WhyMemory::NotYet);
    }
    if let Err(error) = make_own_folder(vault) {
        return in_memory(WhyMemory::Unwritable(error.to_string()));
    }
    let opened = match wish {
        Wish::Keep | Wish::Look => EmbeddedStore::open(&folder),
        Wish::Rebuild => EmbeddedStore::open_empty(&folder),
    };
    match opened {
        Ok(store) => Ok((store, IndexPlace::Folder(folder))),
        Err(StoreOpenError::Owned { .. }) => in_memory(WhyMemory::Owned),
        Err(StoreOpenError::Failed { source, .. }) => in_memory(WhyMemory::Unwritable(source.to_string())),
    }
}

fn in_memory(why: WhyMemory) -> Result<(EmbeddedStore, IndexPlace), ComposeError> {
    let store = EmbeddedStore::in_memory().context("while making an index in memory")?;
    Ok((store, IndexPlace::Memory(why)))
}
