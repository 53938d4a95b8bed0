//! From the command line to an open vault: finds the folder, reads its settings, opens it, and updates the index.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::index::{FileBatch, IndexError, IndexReport, Progress};
use quipu_core::model::VaultPath;
use quipu_core::ports::{Image, MemoryStore};
use quipu_server::own_files::{self, own_folder};
use quipu_server::served_vault::{ServedVault, VaultSource};
use quipu_tools::{Registry, RegistryOptions, Toolset};

use super::Shared;
use super::output::{Line, Output, counted};
use super::progress::{Meter, seconds};
use crate::compose::{self, ComposeError, InMemoryReason, IndexLocation, OpenFiles, OpenMemory, OpenMode, OpenVault};
use crate::config::Config;
use crate::failure::{Failure, advice_on_index};

const VARIABLE: &str = "QUIPU_VAULT";

/// A vault's folder and settings; nothing is open yet.
pub(crate) struct VaultLocation {
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
}

impl VaultLocation {
    /// Finds the vault and reads its settings. `given` is the command's own argument.
    pub(super) fn find(given: Option<&Path>, shared: &Shared) -> Result<Self, Failure> {
        Self::at(find_folder(given, shared)?)
    }

    /// Reads the settings of the vault in a folder.
    pub(super) fn at(root: PathBuf) -> Result<Self, Failure> {
        // Checked first: otherwise the error would blame the settings file.
        if let Err(error) = root.join(".").metadata() {
            let hint = "make the folder readable for yourself (chmod u+rx), or choose another one with --vault DIR";
            return Err(Failure::usage(format!("cannot open the vault {}: {error}", root.display())).hint(hint));
        }
        let config = Config::load(&root).map_err(|error| failure(error.into()))?;
        Ok(Self { root, config })
    }

    /// Fails if no command could use a provider that the settings name.
    pub(super) fn check_provider(&self) -> Result<(), Failure> {
        compose::check_providers(&self.config).map_err(failure)
    }

    /// Opens the files alone, for reading.
    pub(super) fn files(&self) -> Result<OpenFiles, Failure> {
        OpenFiles::open(&self.root, &self.config, true).map_err(failure)
    }

    /// Opens the files alone, for reading and writing.
    pub(super) fn writable_files(&self) -> Result<OpenFiles, Failure> {
        OpenFiles::open(&self.root, &self.config, false).map_err(failure)
    }

    /// Opens the vault without reading it.
    pub(super) fn open(&self, mode: OpenMode) -> Result<Arc<OpenVault>, Failure> {
        compose::open(&self.root, &self.config, mode).map(Arc::new).map_err(failure)
    }

    /// Opens the vault's memory and nothing else.
    pub(super) fn memory(&self, mode: OpenMode) -> Result<OpenMemory, Failure> {
        let opened = compose::open_memory_alone(&self.root, &self.config, mode).map_err(failure)?;
        opened.map_err(|error| Failure::failed(error.to_string()))
    }
}

impl VaultSource for VaultLocation {
    /// `None` also where a file or a link has its name: a link could lead out of the vault.
    fn own_folder(&self) -> anyhow::Result<Option<PathBuf>> {
        match self.files()?.make_own_folder() {
            Ok(folder) => Ok(Some(folder)),
            Err(error) => {
                tracing::debug!(%error, "cannot create .quipu/ in the vault");
                Ok(None)
            }
        }
    }

    fn open(&self) -> anyhow::Result<Arc<dyn ServedVault>> {
        Ok(self.open(OpenMode::Create)?)
    }

    fn image(&self, note: &VaultPath, target: &str) -> anyhow::Result<Option<Image>> {
        Ok(self.files()?.port().image(note, target)?)
    }
}

/// The vault's folder: the one given, else that of the environment, else the nearest folder upwards with `.quipu/`, else
/// the current folder.
pub(super) fn find_folder(given: Option<&Path>, shared: &Shared) -> Result<PathBuf, Failure> {
    if let (Some(given), Some(flag)) = (given, &shared.vault) {
        let message =
            format!("cannot choose a vault: {} and --vault {} were both given", given.display(), flag.display());
        return Err(Failure::usage(message).hint("omit one of them"));
    }
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    match (given.or(shared.vault.as_deref()), variable) {
        (Some(folder), _) => existing_folder(folder, ""),
        (None, Some(folder)) => existing_folder(&folder, " (from QUIPU_VAULT)"),
        (None, None) => nearest_folder(),
    }
}

fn existing_folder(folder: &Path, origin: &str) -> Result<PathBuf, Failure> {
    // Absolute, so that messages and the snippet for a client's configuration hold wherever they are read.
    let cannot = |why: String| format!("cannot open the vault {}{origin}: {why}", folder.display());
    match folder.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(Failure::usage(cannot("it is not a folder".to_owned())).hint("give the folder with the notes")),
        Err(error) => {
            Err(Failure::usage(cannot(error.to_string()))
                .hint("give a folder that exists, for instance: --vault ~/notes"))
        }
    }
}

fn nearest_folder() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::usage(format!("cannot use the current folder: {error}")).hint("choose the vault with --vault DIR")
    })?;
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    // Folders above the home folder are shared with other users: a `.quipu` there may be someone else's.
    let ceiling = home.as_deref().filter(|home| here.starts_with(home));
    let mut upwards = here.ancestors().take_while(|folder| ceiling.is_none_or(|ceiling| folder.starts_with(ceiling)));
    if let Some(vault) = upwards.find(|folder| own_folder(folder).is_dir()) {
        if vault != here {
            let text = format!("using the vault {}, found above the current folder", vault.display());
            Output::new().aside(&Line::new().dim(text));
        }
        return Ok(vault.to_owned());
    }
    // Clients often start a server in `/` or in the home folder. Indexing those is never intended.
    if here.parent().is_none() || home.as_deref() == Some(&here) {
        let message = format!("cannot choose a vault: none was given, and {} is not a folder of notes", here.display());
        return Err(Failure::usage(message).hint("give one with --vault ~/notes or QUIPU_VAULT=~/notes"));
    }
    Ok(here)
}

impl OpenVault {
    /// Updates the index, or fails in words for a terminal. Shows progress if there is an output.
    pub(super) fn update_index(&self, output: Option<&Output>) -> Result<(IndexReport, Duration), Failure> {
        self.index_files(output)
            .map_err(|error| Failure::from(error).about(&format!("cannot index {}", self.vault.root().display())))
    }

    /// Updates the index for a server that a person started in a terminal.
    pub(super) fn index_for_terminal(&self) -> Result<(), IndexError> {
        let output = Output::new();
        let (_, took) = self.index_files(Some(&output))?;
        output.aside(&Line::new().plain(format!(
            "indexed {} in {}",
            counted(self.notes(), "note", "notes"),
            seconds(took)
        )));
        Ok(())
    }

    /// Updates the index for a server that a client started.
    pub(super) fn index_for_client(&self) -> Result<(), IndexError> {
        let (_, took) = self.index_files(Some(&Output::new()))?;
        tracing::info!(notes = self.notes(), took = seconds(took), "indexed");
        Ok(())
    }

    fn index_files(&self, output: Option<&Output>) -> Result<(IndexReport, Duration), IndexError> {
        let meter = Meter::start("indexing", "files read", output);
        let progress = |progress: Progress| meter.update(progress);
        let report = match self.knowledge.wait_ready(Duration::ZERO) {
            false => self.knowledge.start(&progress),
            // This process is a server that has read the vault already.
            true => self.knowledge.apply(&FileBatch::All, &progress),
        };
        let took = meter.finish();
        let report = report?;
        self.save_derived();
        for notice in self.store.notices() {
            tracing::warn!("{notice}");
        }
        Ok((report, took))
    }

    pub(super) fn notes(&self) -> usize {
        self.knowledge.snapshot().files().len()
    }

    /// Saves resolved links and the line index, so that the next start need not compute them again.
    pub(super) fn save_derived(&self) {
        let saved = self.knowledge.store_links().and_then(|_| self.knowledge.store_lines());
        if let Err(error) = saved {
            tracing::warn!("the next start will be slower: {error}: {}", error.source);
        }
    }

    /// Merges the write-ahead log of memory into its file, unless another process has the file open.
    pub(super) fn settle_memory(&self) {
        if let Ok(open) = &self.memory
            && let Err(error) = open.database.settle()
        {
            match open.database.replaced() {
                Some(what) => tracing::warn!("memory's log stays beside its file: {what}"),
                None => tracing::debug!("memory's log stays beside its file: {error}: {}", error.source),
            }
        }
    }

    /// Why the index is not kept on disk, unless that is expected.
    pub(super) fn why_not_kept(&self) -> Option<String> {
        let IndexLocation::Memory(why) = &self.index else { return None };
        let folder = own_files::index_folder(self.vault.root());
        match why {
            InMemoryReason::InUse => Some(format!(
                "{} is in use by the owner process; this process keeps its index in memory",
                folder.display()
            )),
            InMemoryReason::Unwritable(reason) => Some(format!(
                "cannot keep the index in {}: {reason}; the index is in memory, and is rebuilt at every start",
                folder.display()
            )),
            InMemoryReason::Missing => None,
        }
    }

    /// What to do so that the index is kept on disk.
    pub(super) fn advice_on_keeping(&self) -> Option<&'static str> {
        match &self.index {
            IndexLocation::Memory(InMemoryReason::Unwritable(reason)) => Some(advice_on_index(reason)),
            IndexLocation::Memory(InMemoryReason::InUse) => Some("stop that process, then run this again"),
            IndexLocation::Memory(InMemoryReason::Missing) | IndexLocation::Folder(_) => None,
        }
    }

    /// The tools over this vault.
    pub(super) fn registry(&self, toolsets: Option<&[Toolset]>) -> Registry {
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
        ComposeError::Folder(message) => Failure::usage(message).hint("give the folder with the notes"),
        ComposeError::Unfinished(message) => {
            Failure::failed(message).hint("make room on the disk and make the folder writable, then retry")
        }
        ComposeError::Other(error) => error.into(),
    }
}
