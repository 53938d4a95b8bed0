//! An open vault with everything that runs beside calls: indexing, watching, vectors. The owner of a folder has one, a process
//! with its own index in memory, and each open graph of a database.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::Mutex;
use quipu_core::index::{FileBatch, IndexError, IndexReport};
use quipu_core::memory::{Embedded, Memory};
use quipu_core::model::Warning;
use quipu_core::ports::{Clock, SystemClock};
use quipu_core::{Knowledge, RequestKey, Session};
use quipu_tools::{Registry, ToolError, ToolInfo, ToolResponse};
use serde_json::Value;

use crate::background::BackgroundWorker;
use crate::own_files;
use crate::served_vault::ServedVault;
use crate::service::{IndexProgress, Reading, Report, Trail, TrailPage, VaultChangeListener};

/// How often old versions are deleted from the trash while a vault is open.
const PRUNE_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// What an engine does beside answering calls.
#[derive(Debug, Clone, Copy)]
pub struct EngineOptions {
    /// Whether files are watched for changes by other programs.
    pub watches: bool,
    /// Whether lines are read ahead and passages embedded in the background.
    pub background: bool,
    /// Age at which versions are deleted from the trash; 0 keeps them.
    pub trash_days: u32,
    pub first_pass: FirstPass,
}

/// Whether the engine reads every file when it starts, and where it reports the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPass {
    /// The vault has been read already.
    Done,
    /// The follower of a change feed reads the notes.
    Followed,
    /// A person at a terminal started the server.
    ReportToTerminal,
    /// A client started the server.
    ReportToLog,
}

/// A vault that is served. Stopped by [`Engine::stop`], or by the exit of the process.
pub struct Engine {
    open: Arc<dyn ServedVault>,
    /// Every tool: the offer of each process limits what its clients may use.
    registry: Registry,
    trail: Arc<Trail>,
    maintainer: Arc<IndexMaintainer>,
    tasks: Mutex<Option<BackgroundTasks>>,
}

/// Threads that run beside the calls.
struct BackgroundTasks {
    _background: Option<BackgroundWorker>,
    /// Not joined: a first pass that still runs is abandoned.
    _maintaining: JoinHandle<()>,
    /// Dropped to end the wait for the next time that old versions are deleted.
    _stop: Sender<Infallible>,
}

impl Engine {
    /// Starts the background tasks. Returns at once: calls wait for what they need.
    pub fn start(open: Arc<dyn ServedVault>, options: EngineOptions) -> anyhow::Result<Self> {
        Self::start_with(open, options, PRUNE_INTERVAL)
    }

    fn start_with(
        open: Arc<dyn ServedVault>,
        options: EngineOptions,
        prune_interval: Duration,
    ) -> anyhow::Result<Self> {
        if let Some(why) = open.why_not_kept() {
            tracing::warn!("{why}");
        }
        let root = open.root().map(|root| root.display().to_string());
        let reporter = WarningReporter { knowledge: open.knowledge().clone(), root };
        if let Err(error) = open.memory() {
            reporter.warn(&format!("the tools of memory do not work: {error}"));
        }
        let registry = open.registry();
        let trail = Arc::<Trail>::default();
        let maintainer = IndexMaintainer {
            open: open.clone(),
            reporter,
            trail: trail.clone(),
            options,
            file_watch: Mutex::default(),
        };
        let maintainer = Arc::new(maintainer);
        let for_thread = maintainer.clone();
        let (stop, stopped) = mpsc::channel();
        let work = move || for_thread.maintain(&stopped, prune_interval);
        let maintaining = std::thread::Builder::new().name("index".into()).spawn(work);
        let maintaining = maintaining.context("while starting to index")?;
        if let Ok(memory) = open.memory() {
            let read_ahead = Memory::read_ahead(memory);
            let (memory, knowledge) = (Arc::downgrade(memory), Arc::downgrade(open.knowledge()));
            let work = move || {
                if let Err(error) = read_ahead() {
                    tracing::warn!("memory is read by the first search, not ahead: {error}");
                }
                make_vectors(&memory, &knowledge);
            };
            let started = std::thread::Builder::new().name("memory".into()).spawn(work);
            drop(started.context("while starting to read memory")?);
        }
        let background = options.background.then(|| BackgroundWorker::start(open.knowledge().clone()));
        let background = background.transpose().context("while starting the background")?;
        let tasks = BackgroundTasks { _background: background, _maintaining: maintaining, _stop: stop };
        // The listener is kept by the vault itself: a strong reference would keep it open for ever.
        let (changes, knowledge) = (trail.clone(), Arc::downgrade(open.knowledge()));
        let engine = Self { open, registry, trail, maintainer, tasks: Mutex::new(Some(tasks)) };
        engine.on_change(Box::new(move |change| {
            // Notes found by the first pass did not change.
            if knowledge.upgrade().is_some_and(|knowledge| knowledge.wait_ready(Duration::ZERO)) {
                changes.changed(change.notes.iter().flatten(), SystemClock.now_ns());
            }
        }));
        Ok(engine)
    }

    /// Calls a tool, and records the call for `quipu watch` and the explorer.
    pub fn call(&self, tool: &ToolInfo, arguments: Value, session: &Session, key: Option<RequestKey>) -> ToolResponse {
        let call = self.trail.started(&arguments);
        let started = Instant::now();
        let response = self.registry.call(tool, arguments, session, key);
        self.trail.called(tool, call, &session.client(), &response, started.elapsed(), SystemClock.now_ns());
        response
    }

    /// Removes the texts of the trail, after another server redacted something.
    pub fn clear_trail(&self) {
        self.trail.clear_texts();
    }

    /// The calls and changes from a number on.
    pub fn trail(&self, from: u64) -> TrailPage {
        if let Ok(memory) = self.open.memory()
            && let Err(error) = self.trail.remembered(&**memory.store())
        {
            tracing::debug!(%error, "the log of memory cannot be followed");
        }
        self.trail.since(from)
    }

    /// How much there is, and who calls what.
    pub fn report(&self) -> Result<Report, ToolError> {
        let (overview, now_ns, memory_mb) = (self.registry.overview()?, SystemClock.now_ns(), resident_mb());
        let newest = Reading { embedded: overview.embedded, to_embed: overview.to_embed, memory_mb };
        Ok(Report {
            indexed: self.open.knowledge().wait_ready(Duration::ZERO),
            overview,
            clients: self.trail.clients(now_ns),
            latency: self.trail.latencies(),
            hour: self.trail.last_hour(newest, now_ns),
            memory_mb,
        })
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The registry once the vault is indexed, or after a timeout: a list of resources cannot say that it is incomplete.
    pub fn indexed(&self) -> &Registry {
        self.open.knowledge().wait_ready(Registry::PATIENCE);
        &self.registry
    }

    /// How far the vault is indexed.
    pub fn progress(&self) -> IndexProgress {
        let is_over = self.open.knowledge().wait_ready(Duration::ZERO);
        IndexProgress { files: self.open.knowledge().snapshot().files().len(), is_over }
    }

    /// Calls the listener for every change of the notes from now on.
    pub(crate) fn on_change(&self, listener: VaultChangeListener) {
        self.open.knowledge().on_change(Box::new(move |changes| listener(changes.into())));
    }

    /// Watches the files from now on, if it does not yet.
    pub(crate) fn watch(&self) {
        self.maintainer.watch();
    }

    pub fn open(&self) -> &Arc<dyn ServedVault> {
        &self.open
    }

    /// Stops the background tasks, and saves what the next start would have to compute again.
    pub(crate) fn stop(&self) {
        drop(self.tasks.lock().take());
        *self.maintainer.file_watch.lock() = FileWatch::NotStarted;
        self.open.save();
    }
}

/// Vectors made between two reads of the log.
const VECTORS_AT_ONCE: usize = 16;

/// The pause when no vector is missing, and when making vectors failed.
const IDLE: Duration = Duration::from_secs(2);
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Makes the vectors of memory while it is open. Search by words works meanwhile. Clients are notified
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
            Ok(Embedded { done: 0, elsewhere: 1.., .. }) => std::thread::sleep(IDLE),
            // A provider whose vectors cannot be used must not be asked in a loop.
            Ok(Embedded { done: 0, .. }) => std::thread::sleep(AFTER_FAILURE),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("memory is searched by words alone for a while: {error}");
                std::thread::sleep(AFTER_FAILURE);
            }
        }
    }
}

/// Whether changes of files are reported.
#[derive(Default)]
enum FileWatch {
    #[default]
    NotStarted,
    /// It is not retried.
    Failed,
    /// Until this is dropped.
    Active { _watcher: Box<dyn Send> },
}

/// Brings the index up to date and keeps it so.
struct IndexMaintainer {
    open: Arc<dyn ServedVault>,
    reporter: WarningReporter,
    trail: Arc<Trail>,
    options: EngineOptions,
    file_watch: Mutex<FileWatch>,
}

impl IndexMaintainer {
    /// Runs until the engine stops. The vault is not kept open meanwhile.
    fn maintain(self: Arc<Self>, stopped: &Receiver<Infallible>, prune_interval: Duration) {
        self.keep_current();
        let maintainer = Arc::downgrade(&self);
        drop(self);
        while stopped.recv_timeout(prune_interval) == Err(RecvTimeoutError::Timeout) {
            let Some(maintainer) = maintainer.upgrade() else { return };
            maintainer.prune_trash();
        }
    }

    /// Indexes first and watches afterwards: on a big vault both take a while, and clients wait for the index only.
    fn keep_current(&self) {
        if self.options.first_pass != FirstPass::Followed {
            self.index();
            if self.options.watches {
                self.watch();
            }
            self.open.knowledge().prepare_for_changes();
        }
        self.prune_trash();
    }

    /// Starts to watch. A change between the first pass and this is found by comparing times once more.
    fn watch(&self) {
        let mut watch = self.file_watch.lock();
        if matches!(*watch, FileWatch::NotStarted) {
            *watch = self.start_watching();
            drop(watch);
            // First, because a file saved meanwhile waits for it.
            self.open.knowledge().prepare_for_changes();
            self.reporter.report(self.open.knowledge().apply(&FileBatch::All, &|_| {}));
        }
    }

    /// Last, because no client waits for it.
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
            // A vault that cannot be written is reported elsewhere.
            Err(error) => tracing::debug!(%error, "the trash was not pruned"),
        }
    }

    fn index(&self) {
        if let Err(error) = self.open.read(self.options.first_pass) {
            self.reporter.warn_of("the vault could not be indexed", error);
        }
    }

    /// If watching fails, the server continues without it.
    fn start_watching(&self) -> FileWatch {
        let (reporter, trail) = (self.reporter.clone(), self.trail.clone());
        let on_event = move |event: Result<FileBatch, String>| {
            if let Ok(FileBatch::Paths(paths) | FileBatch::Files(paths)) = &event {
                trail.queued(paths.len(), SystemClock.now_ns());
            }
            // A change during the first pass waits for its end.
            while !reporter.knowledge.wait_ready(Duration::from_secs(60)) {}
            match event {
                Ok(batch) => reporter.report(reporter.knowledge.apply(&batch, &|_| {})),
                Err(warning) => reporter.warn(&warning),
            }
        };
        match self.open.watch(Box::new(on_event)) {
            Ok(watcher) => FileWatch::Active { _watcher: watcher },
            Err(error) => {
                self.reporter.warn(&format!("{error}; a change by another program is seen when its note is read"));
                FileWatch::Failed
            }
        }
    }
}

/// Memory of this process, where the system tells it in a file; else 0.
fn resident_mb() -> u64 {
    let status = own_files::text("/proc/self/status".as_ref()).ok().flatten().unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}

/// Reports failures beside the calls: to the log in full, to clients without paths of this machine.
#[derive(Clone)]
struct WarningReporter {
    knowledge: Arc<Knowledge>,
    /// The folder of the vault, which clients must not see.
    root: Option<String>,
}

impl WarningReporter {
    /// Reports how the indexing of a change ended.
    fn report(&self, outcome: Result<IndexReport, IndexError>) {
        match outcome {
            Ok(report) => tracing::debug!(?report, "applied changes"),
            Err(error) => self.warn_of("cannot index a change", error),
        }
    }

    /// Clients get the message of a failed call; the log has the cause.
    fn warn_of(&self, what: &str, error: IndexError) {
        tracing::warn!("{what}: {error}");
        self.tell_clients(format!("{what}: {}", ToolError::from(error).message));
    }

    fn warn(&self, message: &str) {
        tracing::warn!("{message}");
        self.tell_clients(match &self.root {
            Some(root) => message.replace(root, "the vault"),
            None => message.to_owned(),
        });
    }

    fn tell_clients(&self, message: String) {
        self.knowledge.warn(Warning { path: ".".into(), message });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::{io, thread};

    use quipu_core::parse::TitleRule;
    use quipu_core::ports::StoreError;
    use quipu_core::{Parts, Session};
    use quipu_testkit::store_conformance::NoteStorage;
    use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};
    use quipu_tools::RegistryOptions;

    use super::*;

    fn knowledge() -> Arc<Knowledge> {
        let clock = Arc::new(FixedClock::default());
        Arc::new(Knowledge::new(Parts {
            vault: Arc::new(MemVault::from_fixture(clock.clone(), "")),
            store: Arc::new(MemNoteStorage::default().open()),
            clock,
            sources: Arc::new(MemSources::default()),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        }))
    }

    /// A vault that counts how often its old versions are deleted.
    struct CountingVault {
        knowledge: Arc<Knowledge>,
        pruned: AtomicUsize,
    }

    impl ServedVault for CountingVault {
        fn root(&self) -> Option<&Path> {
            None
        }

        fn knowledge(&self) -> &Arc<Knowledge> {
            &self.knowledge
        }

        fn memory(&self) -> Result<&Arc<Memory>, String> {
            Err("none".to_owned())
        }

        fn registry(&self) -> Registry {
            Registry::new(self.knowledge.clone(), RegistryOptions::default())
        }

        fn read(&self, _: FirstPass) -> Result<(), IndexError> {
            Ok(())
        }

        fn is_index_taken(&self) -> bool {
            false
        }

        fn why_not_kept(&self) -> Option<String> {
            None
        }

        fn watch(&self, _: Box<dyn Fn(Result<FileBatch, String>) + Send>) -> Result<Box<dyn Send>, String> {
            Err("none".to_owned())
        }

        fn prune_trash(&self, _: i64) -> io::Result<usize> {
            self.pruned.fetch_add(1, Ordering::Relaxed);
            Ok(0)
        }

        fn save(&self) {}

        fn run_command(self: Arc<Self>, _: &Engine, _: Value) -> Value {
            Value::Null
        }
    }

    #[test]
    fn old_versions_are_deleted_again_while_a_vault_stays_open() {
        let vault = Arc::new(CountingVault { knowledge: knowledge(), pruned: AtomicUsize::new(0) });
        let options =
            EngineOptions { watches: false, background: false, trash_days: 30, first_pass: FirstPass::Followed };
        let engine = Engine::start_with(vault.clone(), options, Duration::from_millis(5)).unwrap();
        let started = Instant::now();
        while vault.pruned.load(Ordering::Relaxed) < 3 {
            assert!(started.elapsed() < Duration::from_secs(20), "old versions are deleted once");
            thread::sleep(Duration::from_millis(5));
        }
        engine.stop();
        drop(engine);
        while Arc::strong_count(&vault) > 1 {
            assert!(started.elapsed() < Duration::from_secs(20), "the vault stays open");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn errors_for_clients_contain_no_absolute_paths() {
        let knowledge = knowledge();
        let reporter = WarningReporter { knowledge, root: Some("/home/ada/notes".into()) };
        reporter.warn("cannot watch: No such file about [\"/home/ada/notes/a\"]");
        let error = StoreError::new("write the index", "disk I/O error at /home/ada/notes/.quipu/index/catalog.db");
        reporter.warn_of("the vault could not be indexed", IndexError::Store(error));
        assert_eq!(
            reporter.knowledge.warnings(&Session::default(), &BTreeSet::new()),
            [
                "\".\": cannot watch: No such file about [\"the vault/a\"]",
                "\".\": the vault could not be indexed: cannot write the index; the server's log has the details",
            ]
        );
    }
}
