//! Work beside the calls. First every passage gets a coarse vector, as soon as the vault is indexed, so that search by meaning
//! finds it. The rest has the lowest priority: resolved links are stored for the next start; lines are read ahead for the first
//! search of documents; then the model embeds passages without a full vector, a few at a time, so that it can stop at once and
//! continue later. Between two rounds of the model, changed notes get coarse vectors, and links are stored once no file has changed
//! for a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quipu_core::Knowledge;
use quipu_core::search::{Effort, EmbeddingFailed, Round};

/// Passages of one round: a tenth of a second of work for the builtin model.
const ROUND: usize = 8;
/// How often it checks whether it has to end while the vault is indexed.
const INDEX_CHECK: Duration = Duration::from_millis(100);
/// How often it checks for work.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often it checks for work without an embedder, while no links have to be stored.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);
/// Links are stored once no note has changed for this long: all of them are written.
const LINKS_QUIET: Duration = Duration::from_secs(2);
/// The pause after a provider failed.
const PAUSE: Duration = Duration::from_secs(10);
/// How long the end waits for the current round. A remote provider may take longer.
const LAST_ROUND: Duration = Duration::from_millis(500);

/// The thread. Dropping this ends it.
pub(crate) struct BackgroundWorker {
    stop: Arc<AtomicBool>,
    wake: SyncSender<()>,
    done: Mutex<Receiver<()>>,
}

impl BackgroundWorker {
    /// Starts once the vault is indexed.
    pub(crate) fn start(knowledge: Arc<Knowledge>) -> std::io::Result<Self> {
        // One message is enough: check again.
        let (wake, woken) = sync_channel(1);
        let (ended, done) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let changes = Arc::new(Changes { passages: AtomicBool::new(true), links: Mutex::default() });
        let work = WorkerState { knowledge, is_over: stop.clone(), changes: changes.clone(), woken };
        let wake_up = wake.clone();
        work.knowledge.on_change(Box::new(move |_| {
            changes.passages.store(true, Ordering::Relaxed);
            *changes.links.lock() = Some(Instant::now());
            let _ = wake_up.try_send(());
        }));
        std::thread::Builder::new().name("background".into()).spawn(move || {
            work.run();
            // First, so that the thread that waits for this one is the last to hold the vault.
            drop(work);
            let _ = ended.send(());
        })?;
        Ok(Self { stop, wake, done: Mutex::new(done) })
    }
}

impl Drop for BackgroundWorker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.wake.try_send(());
        let _ = self.done.lock().recv_timeout(LAST_ROUND);
    }
}

/// The state of the thread.
struct WorkerState {
    knowledge: Arc<Knowledge>,
    is_over: Arc<AtomicBool>,
    changes: Arc<Changes>,
    woken: Receiver<()>,
}

/// What changes of notes leave to do.
struct Changes {
    /// Whether there may be passages without any vector.
    passages: AtomicBool,
    /// When the last note changed since links were stored.
    links: Mutex<Option<Instant>>,
}

impl WorkerState {
    fn run(&self) {
        while self.goes_on() && !self.knowledge.wait_ready(INDEX_CHECK) {}
        // Most passages of a saved index have vectors, and looking for the others must not delay the first calls.
        if self.knowledge.was_saved() {
            lower_priority();
        }
        if let Err(error) = self.embed_changed() {
            tracing::warn!("{error}; until it works again, notes are searched by words only");
        }
        lower_priority();
        self.store_links();
        if let Err(error) = self.knowledge.read_lines_ahead(|| self.goes_on()) {
            tracing::warn!("the next first search of documents will be slower: {error}: {}", error.source);
        }
        self.work();
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Makes coarse vectors for new passages.
    fn embed_changed(&self) -> Result<(), EmbeddingFailed> {
        if self.changes.passages.swap(false, Ordering::Relaxed) {
            let is_over = &self.is_over;
            let made = self.knowledge.embed_coarse(&|_| !is_over.load(Ordering::Relaxed));
            let made = made.inspect_err(|_| self.changes.passages.store(true, Ordering::Relaxed))?;
            tracing::debug!(made, "made coarse vectors");
        }
        Ok(())
    }

    /// Stores the resolved links: after a kill, the next start need not resolve them.
    fn store_links(&self) {
        *self.changes.links.lock() = None;
        match self.knowledge.store_links() {
            Ok(true) => {}
            Ok(false) => *self.changes.links.lock() = Some(Instant::now()),
            Err(error) => tracing::warn!("the next start will be slower: {error}: {}", error.source),
        }
    }

    fn work(&self) {
        let mut is_failing = false;
        while self.goes_on() {
            let changed = *self.changes.links.lock();
            if changed.is_some_and(|changed| changed.elapsed() >= LINKS_QUIET) {
                self.store_links();
            }
            let round = self.embed_changed().and_then(|()| self.knowledge.embed_some(ROUND, Effort::OneThread));
            let pause = match round {
                Ok(Round::Embedded(_)) => {
                    is_failing = false;
                    continue;
                }
                Ok(Round::Idle) if self.knowledge.has_meaning() || changed.is_some() => CHECK_INTERVAL,
                Ok(Round::Idle) => IDLE_INTERVAL,
                Err(error) => {
                    // Searches report it to clients; the log need not repeat it every ten seconds.
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!("{error}; until it works again, notes are searched by words only");
                    }
                    PAUSE
                }
            };
            let _ = self.woken.recv_timeout(pause);
        }
    }
}

/// Lowers the priority of this thread. Outside Linux a priority belongs to the whole process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!("the background runs at normal priority: {error}");
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::Parts;
    use quipu_core::index::FileBatch;
    use quipu_core::parse::TitleRule;
    use quipu_testkit::store_conformance::NoteStorage;
    use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};

    use super::*;

    #[test]
    fn links_are_stored_after_a_change_without_a_clean_end() {
        let clock = Arc::new(FixedClock::default());
        let vault = Arc::new(MemVault::from_fixture(clock.clone(), "//- a.md\n[[b]]\n//- b.md\n"));
        let storage = MemNoteStorage::default();
        let knowledge = Arc::new(Knowledge::new(Parts {
            vault: vault.clone(),
            store: Arc::new(storage.open()),
            clock,
            sources: Arc::new(MemSources::default()),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        }));
        let worker = BackgroundWorker::start(knowledge.clone()).unwrap();
        knowledge.start(&|_| {}).unwrap();
        let stored_other_than = |before: Option<Vec<u8>>| {
            let started = Instant::now();
            loop {
                match storage.links() {
                    Some(links) if Some(&links) != before.as_ref() => return links,
                    _ => std::thread::sleep(Duration::from_millis(5)),
                }
                assert!(started.elapsed() < Duration::from_secs(60), "no links are stored");
            }
        };
        let first = stored_other_than(None);
        vault.put("c.md", "[[a]] [[b]]\n");
        knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
        stored_other_than(Some(first));
        drop(worker);
    }
}
