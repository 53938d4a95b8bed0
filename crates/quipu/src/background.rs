//! What is done in the background, on one thread below everything else: reading ahead the lines that the first search of
//! documents would otherwise have to read, then embedding what lacks vectors. A little at a time, so that it can stop at
//! once; embedding goes on where it was.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quipu_core::Knowledge;
use quipu_core::search::{Effort, Round};

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
    wake: Sender<()>,
    done: Mutex<Receiver<()>>,
}

impl Background {
    /// Starts once the vault is indexed. Lines are read where somebody may search them, and there is nothing to embed
    /// without an embedder.
    pub(crate) fn start(knowledge: Arc<Knowledge>) -> std::io::Result<Self> {
        let (wake, woken) = channel();
        let (ended, done) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        std::thread::Builder::new().name("background".into()).spawn(move || {
            give_way();
            read_lines(&knowledge, &is_over, &woken);
            embed(&knowledge, &is_over, &woken);
            // First, so that whoever waits for this thread is the last to hold the vault.
            drop(knowledge);
            let _ = ended.send(());
        })?;
        Ok(Self { stop, wake, done: Mutex::new(done) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.wake.send(());
        let _ = self.done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LAST_ROUND);
    }
}

fn read_lines(knowledge: &Knowledge, is_over: &AtomicBool, woken: &Receiver<()>) {
    let goes_on = || !is_over.load(Ordering::Relaxed);
    while goes_on() && !knowledge.wait_ready(Duration::ZERO) {
        let _ = woken.recv_timeout(LOOK_AGAIN);
    }
    knowledge.read_lines_ahead(goes_on);
}

fn embed(knowledge: &Knowledge, is_over: &AtomicBool, woken: &Receiver<()>) {
    let mut is_failing = false;
    while knowledge.has_meaning() && !is_over.load(Ordering::Relaxed) {
        let pause = if !knowledge.wait_ready(Duration::ZERO) {
            LOOK_AGAIN
        } else {
            match knowledge.embed_some(ROUND, Effort::OneThread) {
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
            }
        };
        let _ = woken.recv_timeout(pause);
    }
}

/// Lets every other thread of the machine go first. Elsewhere than on Linux a priority is of the whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!("the background runs at normal priority: {error}");
    }
}
