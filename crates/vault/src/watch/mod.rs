//! Tells when the vault changed, in batches, at most 150 ms after the first change of a batch.
//!
//! Kernel events where they can be had, else a look at everything every two seconds. Either way a path told means "look
//! here again": what is there now is for `list_below` and `read` to say.

mod batch;
mod native;
mod poll;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_core::model::VaultPath;
use quipu_core::ports::{VaultError, VaultFiles};

use self::batch::Batch;
use self::native::{Native, PlaceError};
use crate::folder_vault::FolderVault;

/// What a watcher tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// Notes, or folders of notes, that appeared, changed or vanished. Sorted, no two equal.
    Changed(Vec<VaultPath>),
    /// More changed than can be told: list the vault again.
    Rescan,
    /// Watching goes on, but a person should know this.
    Warning(String),
}

/// How to watch.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// Looks at everything from time to time instead of asking the kernel for events.
    pub force_poll: bool,
    /// A batch goes out when nothing has happened for so long,
    pub quiet: Duration,
    /// or so long after its first event.
    pub at_most: Duration,
    /// How often a polling watcher looks. It takes longer where looking itself takes long.
    pub poll_every: Duration,
    /// A batch with more paths becomes a [`WatchEvent::Rescan`].
    pub max_paths: usize,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            force_poll: false,
            quiet: Duration::from_millis(30),
            at_most: Duration::from_millis(150),
            poll_every: Duration::from_secs(2),
            max_paths: 2000,
        }
    }
}

/// Why a vault cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// It cannot be read.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The kernel refused, and not for want of watches.
    #[error("cannot watch the vault: {0}")]
    Kernel(#[from] notify::Error),
    /// There is no thread to be had.
    #[error("cannot watch the vault: {0}")]
    Thread(#[from] std::io::Error),
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    sender: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

/// Starts watching. Every change made after this returns is told to `on_change`, on a thread of the watcher's own.
pub fn watch(
    vault: &Arc<FolderVault>,
    options: WatchOptions,
    on_change: impl FnMut(WatchEvent) + Send + 'static,
) -> Result<Watcher, WatchError> {
    let (sender, receiver) = mpsc::channel();
    let mut warning = None;
    let native = if options.force_poll {
        None
    } else {
        match Native::place(vault, &sender) {
            Ok(native) => Some(native),
            Err(PlaceError::Exhausted) => {
                warning = Some(EXHAUSTED.to_owned());
                None
            }
            Err(PlaceError::Vault(error)) => return Err(error.into()),
            Err(PlaceError::Kernel(error)) => return Err(error.into()),
        }
    };
    let baseline = if native.is_none() { Some(vault.list()?.files) } else { None };
    let session =
        Session { vault: Arc::clone(vault), options, sender: sender.clone(), receiver, on_change: Box::new(on_change) };
    let thread = std::thread::Builder::new().name("vault watch".to_owned()).spawn(move || {
        let mut session = session;
        if let Some(warning) = warning {
            session.tell(WatchEvent::Warning(warning));
        }
        match native {
            Some(native) => session.follow(native),
            None => session.poll(baseline),
        }
    })?;
    Ok(Watcher { sender, thread: Some(thread) })
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Stop);
        if let Some(thread) = self.thread.take()
            // Dropped by `on_change` itself: the thread ends as soon as that returns.
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

const EXHAUSTED: &str = "the system has no file watches left, so the vault is looked at every few seconds instead; \
     raise fs.inotify.max_user_watches (and max_user_instances) with sysctl to have changes seen at once";

enum Message {
    Event(notify::Event),
    /// The kernel could not go on.
    Fault,
    Stop,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

struct Session {
    vault: Arc<FolderVault>,
    options: WatchOptions,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    on_change: Box<dyn FnMut(WatchEvent) + Send>,
}

impl Session {
    fn tell(&mut self, event: WatchEvent) {
        (self.on_change)(event);
    }

    /// Passes on kernel events.
    fn follow(&mut self, mut native: Native) {
        while let Some(batch) = self.next_batch() {
            if batch.is_empty() {
                continue;
            }
            let placed = if batch.is_rescan || !native.is_in_place(&self.vault) {
                self.place_again().map(|again| again.map(|again| native = again))
            } else {
                Some(native.settle(&self.vault, &batch).map(|changed| self.tell_changed(changed)))
            };
            match placed {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    drop(native);
                    self.tell(WatchEvent::Warning(match error {
                        PlaceError::Exhausted => EXHAUSTED.to_owned(),
                        other => format!("changes are looked for every few seconds, since events fail: {other}"),
                    }));
                    let baseline = self.vault.list().ok().map(|listing| listing.files);
                    self.tell(WatchEvent::Rescan);
                    return self.poll(baseline);
                }
                None => return,
            }
        }
    }

    /// Collects events until it is quiet or time is up; `None` when it is time to stop.
    fn next_batch(&mut self) -> Option<Batch> {
        let mut batch = Batch::default();
        match self.receiver.recv() {
            Ok(message) if batch.add(&message, self.vault.root()) == Flow::On => {}
            _ => return None,
        }
        let deadline = Instant::now() + self.options.at_most;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(batch);
            }
            match self.receiver.recv_timeout(left.min(self.options.quiet)) {
                Ok(message) if batch.add(&message, self.vault.root()) == Flow::On => {}
                Err(RecvTimeoutError::Timeout) => return Some(batch),
                Ok(_) | Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Sets every watch anew, then has the vault listed: what happened in between is in that list. While the root is
    /// gone this waits for it to come back. `None` when it is time to stop.
    fn place_again(&mut self) -> Option<Result<Native, PlaceError>> {
        let mut is_told = false;
        loop {
            match Native::place(&self.vault, &self.sender) {
                Ok(native) => {
                    self.tell(WatchEvent::Rescan);
                    return Some(Ok(native));
                }
                Err(PlaceError::Exhausted) => return Some(Err(PlaceError::Exhausted)),
                Err(error) => {
                    if !std::mem::replace(&mut is_told, true) {
                        self.tell(WatchEvent::Warning(format!("the vault cannot be watched now: {error}")));
                    }
                }
            }
            if self.wait(self.options.poll_every.min(Duration::from_millis(500))) == Flow::Stop {
                return None;
            }
        }
    }

    /// Lets time pass, and the events of it.
    fn wait(&self, time: Duration) -> Flow {
        let until = Instant::now() + time;
        loop {
            match self.receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return Flow::Stop,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Flow::On,
            }
        }
    }

    fn tell_changed(&mut self, paths: Vec<VaultPath>) {
        if paths.len() > self.options.max_paths {
            self.tell(WatchEvent::Rescan);
        } else if !paths.is_empty() {
            self.tell(WatchEvent::Changed(paths));
        }
    }
}
