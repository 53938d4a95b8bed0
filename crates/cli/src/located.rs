//! A vault on its way to being open: found, its settings read, and every way to open it, with what to say where one fails.

use std::path::PathBuf;
use std::sync::Arc;

use quipu_core::ports::MemoryStore;
use quipu_server::own_files::own_folder;
use quipu_server::served_vault::{ServedVault, VaultSource};
use quipu_tools::{Registry, RegistryOptions, Toolset};
use quipu_vault::FolderVault;

use crate::compose::{self, ComposeError, IndexPlace, OpenMemory, OpenVault, WhyMemory, Wish};
use crate::config::Config;
use crate::failure::{Failure, advice_on_index};

/// A vault found and its settings read; nothing is open yet.
pub(crate) struct Located {
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
    /// The vault, where this process has it open already: a command then runs over it.
    served: Option<Arc<OpenVault>>,
}

impl Located {
    /// Reads the settings of the vault at a folder.
    pub(crate) fn at(root: PathBuf, served: Option<Arc<OpenVault>>) -> Result<Self, Failure> {
        // Looked at first: else its settings would seem to be what cannot be read.
        if let Err(error) = root.join(".").metadata() {
            let hint = "make the folder readable for yourself (chmod u+rx), or give another one with --vault DIR";
            return Err(Failure::usage(format!("cannot open the vault {}: {error}", root.display())).hint(hint));
        }
        let config = Config::load(&root).map_err(|error| failure(error.into()))?;
        Ok(Self { root, config, served })
    }

    /// Fails where no command could ask the embedding provider that the settings name.
    pub(crate) fn check_provider(&self) -> Result<(), Failure> {
        compose::check_provider(self.config.embedding.provider()).map_err(failure)
    }

    /// The files alone, for reading.
    pub(crate) fn files(&self) -> Result<FolderVault, Failure> {
        compose::open_files(&self.root, &self.config, true).map_err(failure)
    }

    /// Opens the vault without reading it.
    pub(crate) fn open(&self, wish: Wish) -> Result<Arc<OpenVault>, Failure> {
        match &self.served {
            Some(open) => Ok(open.clone()),
            None => compose::open(&self.root, &self.config, wish).map(Arc::new).map_err(failure),
        }
    }

    /// Whether a server has the vault open, and this runs inside it.
    pub(crate) fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// Opens the vault's memory and nothing else.
    pub(crate) fn memory(&self, wish: Wish) -> Result<OpenMemory, Failure> {
        let opened = compose::open_memory_alone(&self.root, &self.config, wish).map_err(failure)?;
        opened.map_err(|error| Failure::failed(error.to_string()))
    }
}

impl VaultSource for Located {
    /// None also where something else has its name: a link would lead out of the vault.
    fn own_folder(&self) -> anyhow::Result<Option<PathBuf>> {
        let vault = self.files()?;
        match compose::make_own_folder(&vault) {
            Ok(()) => Ok(Some(own_folder(vault.root()))),
            Err(error) => {
                tracing::debug!(%error, "there is no folder beside the notes");
                Ok(None)
            }
        }
    }

    fn open(&self) -> anyhow::Result<Arc<dyn ServedVault>> {
        Ok(self.open(Wish::Keep)?)
    }
}

impl OpenVault {
    /// Keeps for the next start what this one had to find out.
    pub(crate) fn keep(&self) {
        if let Err(error) = self.knowledge.keep() {
            tracing::warn!("the next start will take longer: {error}: {}", error.source);
        }
    }

    /// Leaves memory as one file, as far as other processes let it.
    pub(crate) fn settle_memory(&self) {
        if let Ok(open) = &self.memory
            && let Err(error) = open.database.settle()
        {
            match open.database.replaced() {
                Some(what) => tracing::warn!("memory's log stays beside its file: {what}"),
                None => tracing::debug!("memory's log stays beside its file: {error}: {}", error.source),
            }
        }
    }

    /// What to do so that the index is kept.
    pub(crate) fn advice_on_keeping(&self) -> Option<&'static str> {
        match &self.index {
            IndexPlace::Memory(WhyMemory::Unwritable(reason)) => Some(advice_on_index(reason)),
            IndexPlace::Memory(WhyMemory::Owned) => Some("stop that process to have this one keep it"),
            IndexPlace::Memory(WhyMemory::NotYet) | IndexPlace::Folder(_) => None,
        }
    }

    /// Says why the index is not kept, where that is a surprise.
    pub(crate) fn why_not_kept(&self) -> Option<String> {
        let IndexPlace::Memory(why) = &self.index else { return None };
        let folder = compose::index_folder(self.vault.root());
        match why {
            WhyMemory::Owned => Some(format!(
                "{} is in use by another quipu process; this one keeps its index in memory",
                folder.display()
            )),
            WhyMemory::Unwritable(reason) => Some(format!(
                "cannot keep the index in {}: {reason}; it lives in memory and is made anew at every start",
                folder.display()
            )),
            WhyMemory::NotYet => None,
        }
    }

    /// The tools over this vault.
    pub(crate) fn registry(&self, toolsets: Option<&[Toolset]>) -> Registry {
        let toolsets = toolsets.map_or_else(|| Toolset::ALL.to_vec(), <[Toolset]>::to_vec);
        let options = RegistryOptions { toolsets, read_only: false };
        match &self.memory {
            Ok(open) => Registry::with_memory(self.knowledge.clone(), open.memory.clone(), options),
            Err(error) => Registry::without_memory(self.knowledge.clone(), error.for_client(), options),
        }
    }
}

fn failure(error: ComposeError) -> Failure {
    match error {
        ComposeError::Config(error) => Failure::usage(error.to_string()).hint(error.hint),
        ComposeError::Vault(error @ quipu_vault::OpenError::Unfinished { .. }) => {
            Failure::failed(error.to_string()).hint("make room on the disk and the folder writable, then try again")
        }
        ComposeError::Vault(error) => Failure::usage(error.to_string()).hint("give the folder that holds the notes"),
        ComposeError::Other(error) => error.into(),
    }
}
