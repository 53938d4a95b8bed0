//! Reports changes of the vault in batches, at most 150 ms after the first change of a batch.
//!
//! Uses kernel events, or else polls every two seconds. A reported path means "read this again": `list_below` and `read`
//! tell what is there now.

mod batch;
mod native;
mod poll;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_core::model::VaultPath;
use quipu_core::ports::{VaultError, VaultFiles};

use self::batch::EventBatch;
use self::native::{Native, PlaceError};
use crate::folder_vault::FolderVault;

/// An event of a watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// Notes, or folders of notes, that were created, changed or deleted. Sorted, without duplicates.
    Changed(Vec<VaultPath>),
    /// Too many changes: list the vault again.
    Rescan,
    /// A problem for the user; watching continues.
    Warning(String),
}

/// Options of a watcher.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// Polls instead of using kernel events.
    pub force_poll: bool,
    /// A batch is reported after so long without events,
    pub quiet: Duration,
    /// or at the latest so long after its first event.
    pub at_most: Duration,
    /// The interval of polling; longer if listing the vault is slow.
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
    /// The kernel returned an error other than a lack of watches.
    #[error("cannot watch the vault: {0}")]
    Kernel(#[from] notify::Error),
    /// The thread could not be started.
    #[error("cannot watch the vault: {0}")]
    Thread(#[from] std::io::Error),
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    sender: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

/// Starts watching. Every change after this returns is passed to `on_change`, on the watcher's thread.
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
    let watch_loop = WatchLoop {
        vault: Arc::clone(vault),
        options,
        sender: sender.clone(),
        receiver,
        on_change: Box::new(on_change),
    };
    let thread = std::thread::Builder::new().name("vault watch".to_owned()).spawn(move || {
        let mut watch_loop = watch_loop;
        if let Some(warning) = warning {
            (watch_loop.on_change)(WatchEvent::Warning(warning));
        }
        match native {
            Some(native) => watch_loop.follow(native),
            None => watch_loop.poll(baseline),
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

const EXHAUSTED: &str = "the system has no file watches left, so the vault is polled every few seconds; raise \
     fs.inotify.max_user_watches (and max_user_instances) with sysctl to see changes at once";

enum Message {
    Event(notify::Event),
    /// The kernel reported an error.
    Fault,
    Stop,
}

/// Whether to continue.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

struct WatchLoop {
    vault: Arc<FolderVault>,
    options: WatchOptions,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    on_change: Box<dyn FnMut(WatchEvent) + Send>,
}

impl WatchLoop {
    /// Reports kernel events.
    fn follow(&mut self, mut native: Native) {
        while let Some(batch) = self.next_batch() {
            if batch.is_empty() {
                continue;
            }
            let placed = if batch.is_rescan || !native.is_in_place(&self.vault) {
                self.place_again().map(|again| again.map(|again| native = again))
            } else {
                Some(native.settle(&self.vault, &batch).map(|changed| {
                    if let Some(event) = self.event_of(changed) {
                        (self.on_change)(event);
                    }
                }))
            };
            match placed {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    drop(native);
                    (self.on_change)(WatchEvent::Warning(match error {
                        PlaceError::Exhausted => EXHAUSTED.to_owned(),
                        other => format!("the vault is polled every few seconds, since file events fail: {other}"),
                    }));
                    let baseline = self.vault.list().ok().map(|listing| listing.files);
                    (self.on_change)(WatchEvent::Rescan);
                    return self.poll(baseline);
                }
                None => return,
            }
        }
    }

    /// Collects events until none follows or the time limit; `None` to stop.
    fn next_batch(&mut self) -> Option<EventBatch> {
        let mut batch = EventBatch::default();
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

    /// Places every watch again, then reports a rescan, which covers changes in between. If the root does not exist, waits
    /// until it does. `None` to stop.
    fn place_again(&mut self) -> Option<Result<Native, PlaceError>> {
        let mut is_reported = false;
        loop {
            match Native::place(&self.vault, &self.sender) {
                Ok(native) => {
                    (self.on_change)(WatchEvent::Rescan);
                    return Some(Ok(native));
                }
                Err(PlaceError::Exhausted) => return Some(Err(PlaceError::Exhausted)),
                Err(error) => {
                    if !std::mem::replace(&mut is_reported, true) {
                        (self.on_change)(WatchEvent::Warning(format!("cannot watch the vault: {error}; retrying")));
                    }
                }
            }
            if self.wait(self.options.poll_every.min(Duration::from_millis(500))) == Flow::Stop {
                return None;
            }
        }
    }

    /// Waits, and drops the events of that time.
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

    /// The event for changed paths; `None` without any.
    fn event_of(&self, paths: Vec<VaultPath>) -> Option<WatchEvent> {
        if paths.len() > self.options.max_paths {
            return Some(WatchEvent::Rescan);
        }
        (!paths.is_empty()).then_some(WatchEvent::Changed(paths))
    }
}
