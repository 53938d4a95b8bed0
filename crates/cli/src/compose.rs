//! The composition root: the one place that names the implementations behind the ports.
//!
//! If the index cannot be kept in its folder it is kept in memory: everything works, but every start reads all files.

mod files;
mod graph;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use quipu_core::memory::{Memory, MemoryParts};
use quipu_core::ports::{Embedder, SystemClock, TextModel};
use quipu_core::search::Meaning;
use quipu_core::{Knowledge, Parts};
use quipu_embed::{ChatProvider, ChatTimeouts, Keys, Provider, Purpose, SettingsError};
use quipu_server::own_files::{self, own_folder};
use quipu_store_embedded::{EmbeddedStore, MemoryOpenError, StoreOpenError};
use quipu_vault::FolderSources;
use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError};
use crate::trust::{self, Allowed};

pub(crate) use files::OpenFiles;
pub(crate) use graph::{Database, GraphFiles, OpenDatabaseError, OpenGraph, memory_of_graph};
pub(crate) use quipu_store_embedded::MemoryDatabase;
pub(crate) use quipu_store_postgres::PostgresMemory;

/// An open vault.
pub(crate) struct OpenVault {
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) vault: OpenFiles,
    pub(crate) store: Arc<EmbeddedStore>,
    /// Where `store` is kept.
    pub(crate) index: IndexLocation,
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

/// An open memory and its database.
#[derive(Clone)]
pub(crate) struct OpenMemory {
    pub(crate) memory: Arc<Memory>,
    pub(crate) database: Arc<MemoryDatabase>,
}

/// How a command uses `.quipu/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// Creates the index and memory if they do not exist.
    Create,
    /// As `Create`, and deletes the existing index first.
    Rebuild,
    /// Uses what exists and creates nothing.
    Existing,
}

/// Where the index is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexLocation {
    Folder(PathBuf),
    /// In the memory of this process.
    Memory(InMemoryReason),
}

/// Why the index is not kept on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InMemoryReason {
    /// Another process has it open.
    InUse,
    /// Its folder cannot be written.
    Unwritable(String),
    /// It does not exist, and the command does not create it.
    Missing,
}

/// Why a vault could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComposeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder cannot be used.
    #[error("{0}")]
    Folder(String),
    /// A write that a crash interrupted cannot be completed.
    #[error("{0}")]
    Unfinished(String),
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// The file of a vault's memory.
pub(crate) fn memory_file(root: &Path) -> PathBuf {
    own_folder(root).join("memory.db")
}

/// Opens a vault. Nothing is read yet: see [`Knowledge::start`].
pub(crate) fn open(root: &Path, config: &Config, mode: OpenMode) -> Result<OpenVault, ComposeError> {
    let vault = OpenFiles::open(root, config, false)?;
    let (store, index) = open_index(&vault, mode)?;
    let store = Arc::new(store);
    let Allowed { provider, warning } = trust::allowed(vault.root(), &config.embedding);
    let embedder = open_embedder(provider)?;
    let knowledge = Knowledge::new(Parts {
        vault: vault.port(),
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
    let llm = trust::allowed_llm(vault.root(), &config.llm);
    let knowledge = match &llm.provider {
        Some(provider) => knowledge.with_text_model(open_text_model(provider)?),
        None => knowledge,
    };
    for message in warning.into_iter().chain(llm.warning) {
        knowledge.warn(quipu_core::model::Warning { path: crate::config::FILE.to_owned(), message });
    }
    let memory = open_memory(&vault, config, embedder, mode)?;
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

/// Opens a vault's memory without its index.
pub(crate) fn open_memory_alone(
    root: &Path,
    config: &Config,
    mode: OpenMode,
) -> Result<Result<OpenMemory, MemoryOpenError>, ComposeError> {
    let vault = OpenFiles::open(root, config, false)?;
    let Allowed { provider, .. } = trust::allowed(vault.root(), &config.embedding);
    open_memory(&vault, config, open_embedder(provider)?, mode)
}

/// The embedder of a provider; `None` for the provider `none`.
fn open_embedder(provider: Provider) -> Result<Option<Arc<dyn Embedder>>, ComposeError> {
    embedder(provider).map_err(|error| invalid_provider(Purpose::Embedding, &error))
}

fn embedder(provider: Provider) -> Result<Option<Arc<dyn Embedder>>, SettingsError> {
    let keys = Keys::from_environment(Purpose::Embedding);
    quipu_embed::open(&quipu_embed::EmbedderSettings { provider, keys, ..quipu_embed::EmbedderSettings::default() })
}

fn open_text_model(provider: &ChatProvider) -> Result<Arc<dyn TextModel>, ComposeError> {
    text_model(provider).map_err(|error| invalid_provider(Purpose::Llm, &error))
}

fn text_model(provider: &ChatProvider) -> Result<Arc<dyn TextModel>, SettingsError> {
    quipu_embed::open_chat(provider, &Keys::from_environment(Purpose::Llm), ChatTimeouts::default())
}

/// Fails if the settings of a provider are invalid. Sends nothing to it.
pub(crate) fn check_providers(config: &Config) -> Result<(), ComposeError> {
    let embedding = embedder(config.embedding.provider()).map(|_| ());
    let llm = config.llm.provider().map_or(Ok(()), |provider| text_model(&provider).map(|_| ()));
    for (purpose, opened) in [(Purpose::Embedding, embedding), (Purpose::Llm, llm)] {
        match opened {
            // The key may be set only in the environment of the server.
            Ok(()) | Err(SettingsError::NoKey { .. }) => {}
            Err(error) => return Err(invalid_provider(purpose, &error)),
        }
    }
    Ok(())
}

fn invalid_provider(purpose: Purpose, error: &SettingsError) -> ComposeError {
    let hint = match purpose {
        Purpose::Embedding => "change the table [embedding]; provider = \"builtin\" needs neither an address nor a key",
        Purpose::Llm => "change the table [llm]; provider = \"none\" needs neither an address, a model nor a key",
    };
    ConfigError { place: crate::config::FILE.to_owned(), message: error.to_string(), hint: hint.to_owned() }.into()
}

/// Memory cannot be rebuilt. If its file cannot be used, the inner error says why, and the rest of the vault works.
fn open_memory(
    vault: &OpenFiles,
    config: &Config,
    embedder: Option<Arc<dyn Embedder>>,
    mode: OpenMode,
) -> Result<Result<OpenMemory, MemoryOpenError>, ComposeError> {
    let file = memory_file(vault.root());
    let database = if mode == OpenMode::Existing && file.symlink_metadata().is_err() {
        MemoryDatabase::in_memory().context("cannot create an empty memory")?
    } else {
        if let Err(error) = vault.make_own_folder() {
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

fn open_index(vault: &OpenFiles, mode: OpenMode) -> Result<(EmbeddedStore, IndexLocation), ComposeError> {
    let folder = own_files::index_folder(vault.root());
    if mode == OpenMode::Existing && !folder.is_dir() {
        return in_memory(InMemoryReason::Missing);
    }
    if let Err(error) = vault.make_own_folder() {
        return in_memory(InMemoryReason::Unwritable(error.to_string()));
    }
    let opened = match mode {
        OpenMode::Create | OpenMode::Existing => EmbeddedStore::open_for_notes(&folder, &|| bytes_of_notes(vault)),
        OpenMode::Rebuild => EmbeddedStore::open_empty(&folder),
    };
    match opened {
        Ok(store) => Ok((store, IndexLocation::Folder(folder))),
        Err(StoreOpenError::Owned { .. }) => in_memory(InMemoryReason::InUse),
        Err(StoreOpenError::Failed { source, .. }) => in_memory(InMemoryReason::Unwritable(source.to_string())),
    }
}

/// A vault that cannot be listed counts as large.
fn bytes_of_notes(vault: &OpenFiles) -> u64 {
    vault.port().list().map_or(u64::MAX, |listing| listing.files.iter().map(|file| file.stat.size).sum())
}

fn in_memory(why: InMemoryReason) -> Result<(EmbeddedStore, IndexLocation), ComposeError> {
    let store = EmbeddedStore::in_memory().context("cannot create an index in memory")?;
    Ok((store, IndexLocation::Memory(why)))
}
