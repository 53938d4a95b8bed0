//! What is done in the background, below everything else. First every passage gets a coarse vector, so that it is found by
//! meaning; then the lines are read ahead that the first search of documents would otherwise have to read; then the model
//! embeds what lacks a full vector, a little at a time, so that it can stop at once and goes on where it was. A note that
//! changes gets its coarse vectors at once, between two rounds of the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::Knowledge;
use quipu_core::search::{Effort, EmbeddingFailed, Round};

/// Passages of one round: a tenth of a second of work for the builtin model.
const ROUND: usize = 8;
/// How often it is looked whether there is something to do.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a provider that fails is left alone.
const PAUSE: Duration = Duration::from_secs(10);
/// How long the end waits for the round under way. A provider elsewhere may take longer, and is not waited for.
const LAST_ROUND: Duration = Duration::from_millis(500);

/// The thread. Dropping this ends it.
pub(crate) struct Background {
    stop: Arc<AtomicBool>,
    wake: SyncSender<()>,
    done: Mutex<Receiver<()>>,
}

impl Background {
    /// Starts once the vault is indexed. Lines are read where somebody may search them, and there is nothing to embed
    /// without an embedder.
    pub(crate) fn start(knowledge: Arc<Knowledge>) -> std::io::Result<Self> {
        // One message says all there is to say: look again.
        let (wake, woken) = sync_channel(1);
        let (ended, done) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work { knowledge, is_over: stop.clone(), has_changed: Arc::new(AtomicBool::new(true)), woken };
        let (has_changed, wake_up) = (work.has_changed.clone(), wake.clone());
        work.knowledge.on_change(Box::new(move |_| {
            has_changed.store(true, Ordering::Relaxed);
            let _ = wake_up.try_send(());
        }));
        std::thread::Builder::new().name("background".into()).spawn(move || {
            give_way();
            work.run();
            // First, so that whoever waits for this thread is the last to hold the vault.
            drop(work);
            let _ = ended.send(());
        })?;
        Ok(Self { stop, wake, done: Mutex::new(done) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.wake.try_send(());
        let _ = self.done.lock().recv_timeout(LAST_ROUND);
    }
}

/// What the thread works with.
struct Work {
    knowledge: Arc<Knowledge>,
    is_over: Arc<AtomicBool>,
    /// Whether there may be passages without any vector.
    has_changed: Arc<AtomicBool>,
    woken: Receiver<()>,
}

impl Work {
    fn run(&self) {
        while self.goes_on() && !self.knowledge.wait_ready(Duration::ZERO) {
            let _ = self.woken.recv_timeout(LOOK_AGAIN);
        }
        if let Err(error) = self.embed_changed() {
            tracing::warn!("{error}; notes are searched by words until that is over");
        }
        self.knowledge.read_lines_ahead(|| self.goes_on());
        self.embed();
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Gives passages that came since the last time a coarse vector.
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
                Ok(Round::Idle) => LOOK_AGAIN,
                Err(error) => {
                    // Searches say it to clients; the log need not say it every ten seconds.
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!("{error}; notes are searched by words until that is over");
                    }
                    PAUSE
                }
            };
            let _ = self.woken.recv_timeout(pause);
        }
    }
}

/// Lets every other thread of the machine go first. Elsewhere than on Linux a priority is of the whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!("the background runs at normal priority: {error}");
    }
}
