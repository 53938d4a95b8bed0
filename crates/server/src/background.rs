//! Work beside the calls. First every passage gets a coarse vector, as soon as the vault is indexed, so that search by meaning
//! finds it. The rest has the lowest priority: lines are read ahead for the first search of documents; then the model embeds
//! passages without a full vector, a few at a time, so that it can stop at once and continue later. Changed notes get coarse
//! vectors between two rounds of the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::Knowledge;
use quipu_core::search::{Effort, EmbeddingFailed, Round};

/// Passages of one round: a tenth of a second of work for the builtin model.
const ROUND: usize = 8;
/// How often it checks whether it has to end while the vault is indexed.
const INDEX_CHECK: Duration = Duration::from_millis(100);
/// How often it checks for work.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
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
        let work =
            WorkerState { knowledge, is_over: stop.clone(), has_changed: Arc::new(AtomicBool::new(true)), woken };
        let (has_changed, wake_up) = (work.has_changed.clone(), wake.clone());
        work.knowledge.on_change(Box::new(move |_| {
            has_changed.store(true, Ordering::Relaxed);
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
    /// Whether there may be passages without any vector.
    has_changed: Arc<AtomicBool>,
    woken: Receiver<()>,
}

impl WorkerState {
    fn run(&self) {
        while self.goes_on() && !self.knowledge.wait_ready(INDEX_CHECK) {}
        if let Err(error) = self.embed_changed() {
            tracing::warn!("{error}; until it works again, notes are searched by words only");
        }
        lower_priority();
        if let Err(error) = self.knowledge.read_lines_ahead(|| self.goes_on()) {
            tracing::warn!("the next first search of documents will be slower: {error}: {}", error.source);
        }
        self.embed();
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Makes coarse vectors for new passages.
    fn embed_changed(&self) -> Result<(), EmbeddingFailed> {
        if self.has_changed.swap(false, Ordering::Relaxed) {
            let is_over = &self.is_over;
            let made = self.knowledge.embed_coarse(&|_| !is_over.load(Ordering::Relaxed));
            let made = made.inspect_err(|_| self.has_changed.store(true, Ordering::Relaxed))?;
            tracing::debug!(made, "made coarse vectors");
        }
        Ok(())
    }

    fn embed(&self) {
        let mut is_failing = false;
        while self.knowledge.has_meaning() && self.goes_on() {
            let round = self.embed_changed().and_then(|()| self.knowledge.embed_some(ROUND, Effort::OneThread));
            let pause = match round {
                Ok(Round::Embedded(_)) => {
                    is_failing = false;
                    continue;
                }
                Ok(Round::Idle) => CHECK_INTERVAL,
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
