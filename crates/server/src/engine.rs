//! A vault at work: open, indexed, watched, its vectors made in the background. What the process that owns a vault has, and
//! nobody else.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use parking_lot::{Mutex, MutexGuard};
use quipu_core::Knowledge;
use quipu_core::index::{FileBatch, IndexError};
use quipu_core::memory::{Embedded, Memory};
use quipu_core::model::Warning;
use quipu_core::ports::{Clock, SystemClock};
use quipu_tools::{Registry, ToolError};

use crate::background::Background;
use crate::served_vault::ServedVault;
use crate::service::{ChangeListener, IndexProgress};

/// What the one who starts it wants.
#[derive(Debug, Clone, Copy)]
pub struct EngineOptions {
    /// Whether changes by other programs are looked for.
    pub watches: bool,
    /// Whether lines are read ahead and passages embedded beside the calls.
    pub background: bool,
    /// 0: nothing is removed from the trash.
    pub trash_days: u32,
    pub first_pass: FirstPass,
}

/// The first pass over the files, and who is told how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPass {
    /// The vault has been read already.
    Done,
    /// A person at a terminal started the server.
    ReportToTerminal,
    /// A client started the server.
    ReportToLog,
}

/// A vault at work. It is brought to rest by [`Engine::rest`], or by the end of the process.
pub struct Engine {
    open: Arc<dyn ServedVault>,
    /// With every tool: what a client may use of them is decided where it comes in.
    registry: Registry,
    keeper: Arc<Keeper>,
    beside: Mutex<Option<Beside>>,
}

/// What goes on beside the calls.
struct Beside {
    _background: Option<Background>,
    /// A first pass that still runs at the end is not waited for.
    _kept_current: JoinHandle<()>,
}

impl Engine {
    /// Starts all that goes on beside the calls. Returns at once: calls wait for what they need.
    pub fn start(open: Arc<dyn ServedVault>, options: EngineOptions) -> anyhow::Result<Self> {
        if let Some(why) = open.why_not_kept() {
            tracing::warn!("{why}");
        }
        let herald = Herald { knowledge: open.knowledge().clone(), root: open.root().display().to_string() };
        if let Err(error) = open.memory() {
            herald.warn(&format!("the tools of memory do not work: {error}"));
        }
        let registry = open.registry();
        let keeper = Arc::new(Keeper { open: open.clone(), herald, options, watcher: Mutex::default() });
        let keeping = keeper.clone();
        let kept_current = std::thread::Builder::new().name("keeper".into()).spawn(move || keeping.keep_current());
        let kept_current = kept_current.context("while starting to index")?;
        if let Ok(memory) = open.memory() {
            let (memory, knowledge) = (Arc::downgrade(memory), Arc::downgrade(open.knowledge()));
            let work = move || make_vectors(&memory, &knowledge);
            let started = std::thread::Builder::new().name("memory".into()).spawn(work);
            drop(started.context("while starting to read memory")?);
        }
        let background = options.background.then(|| Background::start(open.knowledge().clone()));
        let background = background.transpose().context("while starting the background")?;
        let beside = Beside { _background: background, _kept_current: kept_current };
        Ok(Self { open, registry, keeper, beside: Mutex::new(Some(beside)) })
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The same, once the vault has been read, or as much as there is after a while: resources, unlike tool calls, have
    /// no way to say that the list is not whole yet.
    pub fn indexed(&self) -> &Registry {
        self.open.knowledge().wait_ready(Registry::PATIENCE);
        &self.registry
    }

    /// How far the vault has been read.
    pub fn progress(&self) -> IndexProgress {
        let is_over = self.open.knowledge().wait_ready(Duration::ZERO);
        IndexProgress { files: self.open.knowledge().snapshot().files().len(), is_over }
    }

    /// Has someone told of every change of the notes from now on.
    pub(crate) fn on_change(&self, listener: ChangeListener) {
        self.open.knowledge().on_change(Box::new(move |changes| listener(changes.into())));
    }

    /// Looks for changes by other programs from now on, if it did not yet.
    pub(crate) fn watch(&self) {
        self.keeper.watch();
    }

    pub fn open(&self) -> &Arc<dyn ServedVault> {
        &self.open
    }

    /// Ends what goes on beside the calls, and keeps what the next start would have to find out.
    pub(crate) fn rest(&self) {
        drop(self.beside.lock().take());
        drop(self.keeper.watcher().take());
        self.open.save();
    }
}

/// Vectors made between two looks at the log.
const VECTORS_AT_ONCE: usize = 16;

/// How long nothing is looked for when nothing was missing, and when making vectors failed.
const IDLE: Duration = Duration::from_secs(2);
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Makes the vectors of what agents remember, for as long as memory is open. Words find everything meanwhile. Clients are told
/// once another program has replaced memory.
fn make_vectors(memory: &Weak<Memory>, knowledge: &Weak<Knowledge>) {
    let mut is_told = false;
    while let Some(memory) = memory.upgrade() {
        if !is_told
            && let Some(message) = memory.store().replaced()
            && let Some(knowledge) = knowledge.upgrade()
        {
            tracing::warn!("{message}");
            knowledge.warn(Warning { path: ".quipu/memory.db".into(), message });
            is_told = true;
        }
        let embedded = memory.embed_some(VECTORS_AT_ONCE);
        drop(memory);
        match embedded {
            Ok(Embedded { missing: 0, .. }) => std::thread::sleep(IDLE),
            // A provider whose vectors cannot be used must not be asked for them without end.
            Ok(Embedded { done: 0, .. }) => std::thread::sleep(AFTER_FAILURE),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("memory is searched by words alone for a while: {error}");
                std::thread::sleep(AFTER_FAILURE);
            }
        }
    }
}

/// Reports changes of files until it is dropped.
type Watching = Box<dyn Send>;

/// Brings the index up to date and keeps it so.
struct Keeper {
    open: Arc<dyn ServedVault>,
    herald: Herald,
    options: EngineOptions,
    /// `None` until it was tried; what cannot be watched is not tried again.
    watcher: Mutex<Option<Option<Watching>>>,
}

impl Keeper {
    /// Indexes first and places the watches after: on a big vault either takes a while, and a client waits for the first
    /// only.
    fn keep_current(&self) {
        self.index();
        if self.options.watches {
            self.watch();
        }
        self.open.knowledge().prepare_for_changes();
        self.prune_trash();
    }

    /// Places the watches. A change that fell between the last look and this is found by another look at the times.
    fn watch(&self) {
        let mut watcher = self.watcher();
        if watcher.is_none() {
            *watcher = Some(self.start_watching());
            drop(watcher);
            self.herald.apply(&FileBatch::All);
        }
    }

    fn watcher(&self) -> MutexGuard<'_, Option<Option<Watching>>> {
        self.watcher.lock()
    }

    /// Last of all, since nobody waits for it.
    fn prune_trash(&self) {
        const DAY_NS: i64 = 24 * 60 * 60 * 1_000_000_000;
        if self.options.trash_days == 0 {
            return;
        }
        match self.open.prune_trash(SystemClock.now_ns().saturating_sub(DAY_NS * i64::from(self.options.trash_days))) {
            Ok(0) => {}
            Ok(versions) => {
                tracing::info!(versions, days = self.options.trash_days, "removed old versions from the trash");
            }
            // A vault that cannot be written is told of where it matters.
            Err(error) => tracing::debug!(%error, "the trash was not pruned"),
        }
    }

    fn index(&self) {
        if let Err(error) = self.open.read(self.options.first_pass) {
            self.herald.warn_of("the vault could not be indexed", error);
        }
    }

    /// Where watching is not possible, serving goes on without.
    fn start_watching(&self) -> Option<Watching> {
        let herald = self.herald.clone();
        let on_event = move |event: Result<FileBatch, String>| {
            // A change during the first pass waits for it: only then is there something to add it to.
            while !herald.knowledge.wait_ready(Duration::from_secs(60)) {}
            match event {
                Ok(batch) => herald.apply(&batch),
                Err(warning) => herald.warn(&warning),
            }
        };
        match self.open.watch(Box::new(on_event)) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                self.herald.warn(&format!("{error}; a change by another program is seen when its note is read"));
                None
            }
        }
    }
}

/// Tells what goes wrong beside the calls: all of it to the log, and to clients what is no secret of this machine.
#[derive(Clone)]
struct Herald {
    knowledge: Arc<Knowledge>,
    /// Where the vault lies, which is nothing to a client.
    root: String,
}

impl Herald {
    fn apply(&self, batch: &FileBatch) {
        match self.knowledge.apply(batch, &|_| {}) {
            Ok(report) => tracing::debug!(?report, "applied changes"),
            Err(error) => self.warn_of("cannot index a change", error),
        }
    }

    /// A client is told of an error as when a call fails of it; the log has what the store or the system said.
    fn warn_of(&self, what: &str, error: IndexError) {
        tracing::warn!("{what}: {error}");
        self.tell_clients(format!("{what}: {}", ToolError::from(error).message));
    }

    fn warn(&self, message: &str) {
        tracing::warn!("{message}");
        self.tell_clients(message.replace(&self.root, "the vault"));
    }

    fn tell_clients(&self, message: String) {
        self.knowledge.warn(Warning { path: ".".into(), message });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use quipu_core::parse::TitleRule;
    use quipu_core::ports::StoreError;
    use quipu_core::{Parts, Session};
    use quipu_testkit::store_conformance::NoteStorage;
    use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

    use super::*;

    #[test]
    fn clients_learn_what_is_wrong_but_not_where_on_this_machine() {
        let clock = Arc::new(FixedClock::default());
        let knowledge = Arc::new(Knowledge::new(Parts {
            vault: Arc::new(MemVault::from_fixture(clock.clone(), "")),
            store: Arc::new(MemNoteStorage::default().open()),
            clock,
            sources: Arc::new(MemSources::default()),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        }));
        let herald = Herald { knowledge, root: "/home/ada/notes".into() };
        herald.warn("cannot watch: No such file about [\"/home/ada/notes/a\"]");
        let error = StoreError::new("write the index", "disk I/O error at /home/ada/notes/.quipu/index/catalog.db");
        herald.warn_of("the vault could not be indexed", IndexError::Store(error));
        assert_eq!(
            herald.knowledge.warnings(&Session::default(), &BTreeSet::new()),
            [
                "\".\": cannot watch: No such file about [\"the vault/a\"]",
                "\".\": the vault could not be indexed: cannot write the index; the server's log has the details",
            ]
        );
    }
}
