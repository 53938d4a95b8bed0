//! The vault of a command that needs the index: opened by the command, or open in the server that answers for another process.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::index::IndexReport;
use quipu_server::engine::Engine;
use quipu_server::sharing::OwnerLock;
use serde::{Deserialize, Serialize};

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::progress::waiting;
use crate::compose::{InMemoryReason, IndexLocation, OpenMode, OpenVault};
use crate::failure::Failure;

/// When indexing takes longer than this, the command suggests to keep an index.
const SLOW_INDEXING: Duration = Duration::from_secs(2);

/// A vault, and the process in which the command runs.
pub(super) struct CommandVault<'a> {
    pub(super) location: VaultLocation,
    process: Process<'a>,
}

enum Process<'a> {
    /// The one that the user started: notices and progress are printed at once.
    User { output: &'a Output, lock: Mutex<Option<OwnerLock>> },
    /// The owner process: notices are sent with the answer.
    Server { engine: &'a Engine, open: Arc<OpenVault>, notices: Mutex<Vec<Notice>> },
}

/// What the user should know beside the answer, even if the command fails.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Notice {
    Warning { message: String, hint: Option<String> },
    Remark(String),
}

impl Notice {
    pub(super) fn print(&self, output: &Output) {
        match self {
            Self::Warning { message, hint } => output.warning(message, hint.as_deref()),
            Self::Remark(text) => output.aside(&Line::new().dim(text.clone())),
        }
    }
}

impl<'a> CommandVault<'a> {
    /// A vault that the command opens itself. The lock is that of the vault, if this process holds it; it is held as long as this
    /// value exists, unless it is taken.
    pub(super) fn of_user(location: VaultLocation, output: &'a Output, lock: Option<OwnerLock>) -> Self {
        Self { location, process: Process::User { output, lock: Mutex::new(lock) } }
    }

    /// The vault of the server that answers for another process.
    pub(super) fn of_server(engine: &'a Engine, open: Arc<OpenVault>) -> Result<Self, Failure> {
        let location = VaultLocation::at(open.vault.root().to_owned())?;
        Ok(Self { location, process: Process::Server { engine, open, notices: Mutex::default() } })
    }

    /// The lock of the vault, if this process holds it.
    pub(super) fn take_lock(&self) -> Option<OwnerLock> {
        match &self.process {
            Process::User { lock, .. } => lock.lock().take(),
            Process::Server { .. } => None,
        }
    }

    /// The server that runs the command, if it runs in one.
    pub(super) fn server(&self) -> Option<&'a Engine> {
        match &self.process {
            Process::User { .. } => None,
            Process::Server { engine, .. } => Some(engine),
        }
    }

    pub(super) fn is_served(&self) -> bool {
        self.server().is_some()
    }

    /// Where progress is shown.
    pub(super) fn progress(&self) -> Option<&'a Output> {
        match &self.process {
            Process::User { output, .. } => Some(output),
            Process::Server { .. } => None,
        }
    }

    /// Runs `work`, and shows `what` if it takes long.
    pub(super) fn waiting<T>(&self, what: impl FnOnce() -> String + Send, work: impl FnOnce() -> T) -> T {
        match self.progress() {
            Some(output) => waiting(what, output, work),
            None => work(),
        }
    }

    /// Reports a problem that does not stop the command, and what to do.
    pub(super) fn warn(&self, message: impl Into<String>, hint: Option<&str>) {
        self.tell(Notice::Warning { message: message.into(), hint: hint.map(str::to_owned) });
    }

    pub(super) fn remark(&self, text: impl Into<String>) {
        self.tell(Notice::Remark(text.into()));
    }

    fn tell(&self, notice: Notice) {
        match &self.process {
            Process::User { output, .. } => notice.print(output),
            Process::Server { notices, .. } => notices.lock().push(notice),
        }
    }

    /// The notices that are not printed yet.
    pub(super) fn into_notices(self) -> Vec<Notice> {
        match self.process {
            Process::User { .. } => Vec::new(),
            Process::Server { notices, .. } => notices.into_inner(),
        }
    }

    /// Opens the vault without reading it.
    pub(super) fn open(&self, mode: OpenMode) -> Result<Arc<OpenVault>, Failure> {
        match &self.process {
            Process::User { .. } => self.location.open(mode),
            Process::Server { open, .. } => Ok(open.clone()),
        }
    }

    /// Opens the vault and updates its index.
    pub(super) fn open_indexed(&self, mode: OpenMode) -> Result<IndexedVault, Failure> {
        self.index(self.open(mode)?)
    }

    /// Updates the index of an open vault.
    pub(super) fn index(&self, open: Arc<OpenVault>) -> Result<IndexedVault, Failure> {
        let (report, took) = open.update_index(self.progress())?;
        if open.index == IndexLocation::Memory(InMemoryReason::Missing) && took > SLOW_INDEXING {
            self.remark("`quipu index` keeps an index in .quipu/, which makes the next command fast");
        }
        Ok(IndexedVault { open, report, took })
    }
}

/// A vault whose index is up to date.
pub(super) struct IndexedVault {
    pub(super) open: Arc<OpenVault>,
    pub(super) report: IndexReport,
    pub(super) took: Duration,
}

impl IndexedVault {
    /// The number of notes, as every command counts them.
    pub(super) fn notes(&self) -> usize {
        self.open.notes()
    }

    /// What commands say about a vault without notes.
    pub(super) fn without_notes(&self) -> Option<String> {
        let root = self.open.vault.root().display();
        (self.notes() == 0)
            .then(|| format!("no notes in {root}; choose another folder with --vault, or put Markdown files there"))
    }

    /// A message and advice when notes could not be saved in the index.
    pub(super) fn unsaved(&self) -> Option<(String, &'static str)> {
        let IndexReport { unsaved, total, .. } = self.report;
        let advice = "make room on the disk, or run `quipu index --rebuild`; no note was changed";
        (unsaved > 0).then(|| (format!("cannot save {unsaved} of {total} notes in the index"), advice))
    }
}
