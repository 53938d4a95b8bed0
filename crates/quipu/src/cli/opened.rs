//! What most commands begin with: find the vault, read its settings, open it, and bring the index up to date.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::index::{IndexError, SyncReport};
use quipu_tools::{Registry, RegistryOptions, Toolset};

use super::Shared;
use super::failure::Failure;
use super::output::{Line, Output};
use super::progress::Meter;
use crate::compose::{self, ComposeError, IndexPlace, OpenMemory, OpenVault, WhyMemory, Wish};
use crate::config::Config;

/// An index that takes longer to make is worth keeping.
const NOTICEABLE: Duration = Duration::from_secs(2);

/// A vault found and its settings read; nothing is open yet.
pub(crate) struct Located {
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
}

/// A vault whose index is up to date.
pub(crate) struct Ready {
    pub(crate) open: OpenVault,
    /// What the index had to take in.
    pub(crate) report: SyncReport,
    pub(crate) took: Duration,
}

/// Finds the vault and reads its settings.
pub(crate) fn locate(given: Option<&Path>, shared: &Shared) -> Result<Located, Failure> {
    let root = super::locate::vault(given, shared)?;
    let config = Config::load(&root).map_err(|error| failure(error.into()))?;
    Ok(Located { root, config })
}

impl Located {
    /// Opens the vault without reading it.
    pub(crate) fn open(&self, wish: Wish, read_only: bool) -> Result<OpenVault, Failure> {
        compose::open(&self.root, &self.config, wish, read_only).map_err(failure)
    }

    /// Opens the vault's memory and nothing else.
    pub(crate) fn memory(&self, wish: Wish) -> Result<OpenMemory, Failure> {
        let opened = compose::open_memory_alone(&self.root, &self.config, wish).map_err(failure)?;
        opened.map_err(|error| Failure::failed(error.to_string()))
    }

    /// Opens the vault and waits until the index is up to date.
    pub(crate) fn ready(self, wish: Wish, output: &Output) -> Result<Ready, Failure> {
        let open = self.open(wish, false)?;
        let (report, took) = start(&open, output)?;
        if open.index == IndexPlace::Memory(WhyMemory::NotYet) && took > NOTICEABLE {
            output.aside(&Line::new().dim("`quipu index` keeps an index in .quipu/, so that the next answer is quick"));
        }
        Ok(Ready { open, report, took })
    }
}

/// Brings an open vault's index up to date, or says why not to the person who typed the command.
pub(crate) fn start(open: &OpenVault, output: &Output) -> Result<(SyncReport, Duration), Failure> {
    index(open, output)
        .map_err(|error| Failure::failed(format!("cannot index {}: {error}", open.vault.root().display())))
}

/// Brings an open vault's index up to date, showing how far it is.
pub(crate) fn index(open: &OpenVault, output: &Output) -> Result<(SyncReport, Duration), IndexError> {
    let meter = Meter::start("indexing", "files read");
    let report = open.knowledge.start(&|progress| meter.update(progress, output));
    let took = meter.finish(output);
    let report = report?;
    open.keep();
    for notice in open.store.notices() {
        tracing::warn!("{notice}");
    }
    Ok((report, took))
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
            tracing::debug!("memory's log stays beside its file: {error}");
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
    pub(crate) fn registry(&self, toolsets: Option<&[Toolset]>, read_only: bool) -> Registry {
        let toolsets = toolsets.map_or_else(|| Toolset::ALL.to_vec(), <[Toolset]>::to_vec);
        let options = RegistryOptions { toolsets, read_only };
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
