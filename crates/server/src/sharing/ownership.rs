//! How a process decides whether it owns a vault: it tries the lock, connects to the process that holds it, works with its own
//! index where neither is possible, and starts again when the owner exits.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::owner_client::{OwnerClient, OwnerConnectError, is_timeout};
use super::owner_lock::{LockAttempt, OwnerInfo, OwnerLock, OwnerMode};
use super::owner_server::OwnerServer;
use super::shared_vault::SharedVaultState;
use super::wire::{ChangeNotice, receive};
use crate::engine::Engine;
use crate::service::VaultChange;

/// Between two attempts to find an owner, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How long the last owner may need to close its index after its lock was released or deleted. Less than [`CONNECT_TIMEOUT`], so
/// that processes that wait for this one do not give up meanwhile.
const LAST_OWNER_TIMEOUT: Duration = Duration::from_millis(2500);

/// Between two attempts to open a vault that could not be opened.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long the owner may be unreachable before this process works without it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long requests of other processes may still run when this process must exit.
const CLOSE_GRACE: Duration = Duration::from_millis(400);

/// The command of every process that serves a vault.
pub(super) const SERVE: &str = "serve";

/// How this process reaches the vault.
pub(super) enum Ownership {
    /// No owner is known.
    Undecided,
    /// This process has the vault open; with resources, for all processes.
    Owner(Arc<Engine>, Option<OwnerResources>),
    /// Another process owns the vault.
    Peer(Arc<OwnerClient>),
    /// The vault cannot be opened, for this reason.
    Failed(String),
    /// The process is about to exit.
    Closed,
}

/// What an owner shares with other processes.
pub(super) struct OwnerResources {
    /// `None` where no socket could be created.
    pub(super) server: Option<OwnerServer>,
    /// Released last.
    pub(super) lock: OwnerLock,
}

impl OwnerResources {
    /// Answers other processes, where a socket could be created.
    pub(super) fn new(engine: &Arc<Engine>, listener: io::Result<UnixListener>, mut lock: OwnerLock) -> Self {
        let server = listener.and_then(|listener| OwnerServer::open(engine, listener, lock.identity()));
        if let Err(error) = &server {
            tracing::warn!("other processes cannot share this vault's index: cannot create a socket: {error}");
            lock.write_info(OwnerMode::Exclusive);
        }
        Self { server: server.ok(), lock }
    }
}

/// When a process works with its own index, without the owner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fallback {
    /// Not now: it does so already.
    Never,
    /// If the vault can never be shared.
    IfPermanent,
    /// If the owner cannot be reached now.
    Now,
}

/// The outcome of one attempt.
enum SearchOutcome {
    /// The stream ends with the owner.
    Found(Ownership, Option<UnixStream>),
    NotYet(String),
}

impl SharedVaultState {
    /// Waits for the end of the owner, then starts again, until the process exits. Without a stream this process owns the vault,
    /// or works with its own index and tries to do better.
    pub(super) fn watch(self: Arc<Self>, mut stream: Option<UnixStream>) {
        loop {
            let fallback = if let Some(owner) = self.guard() {
                tracing::warn!("this process no longer owns the vault: {}", describe(&owner));
                Fallback::IfPermanent
            } else {
                match &mut stream {
                    Some(stream) => self.listen(stream),
                    // A process with its own index keeps it until it has something better.
                    None => Fallback::Never,
                }
            };
            if matches!(*self.ownership(), Ownership::Closed) {
                return;
            }
            if fallback != Fallback::Never {
                self.set_ownership(Ownership::Undecided);
            }
            let (ownership, next) = loop {
                match self.find_ownership(fallback) {
                    Ok(found) => break found,
                    Err(failure) => {
                        tracing::warn!("this process cannot open the vault: {failure:#}");
                        if fallback != Fallback::Never {
                            self.set_ownership(Ownership::Failed(format!("{failure:#}")));
                        }
                        std::thread::sleep(RETRY_INTERVAL);
                    }
                }
            };
            tracing::info!("{}", ownership.message());
            let tools = self.set_ownership(ownership);
            // Changes meanwhile were not reported.
            self.listeners.tell(&VaultChange { tools, ..VaultChange::ANY });
            stream = next;
        }
    }

    /// Passes the owner's changes on. Returns when it sends something else, exits, or sends no heartbeat: then it is stopped or
    /// hangs, and this process does not wait for it.
    fn listen(&self, stream: &mut UnixStream) -> Fallback {
        let fallback = loop {
            match receive::<ChangeNotice>(stream) {
                Ok(Some(notice)) => self.tell(&notice.into()),
                Err(error) if is_timeout(&error) => break Fallback::Now,
                Ok(None) | Err(_) => break Fallback::IfPermanent,
            }
        };
        if let Ownership::Peer(owner) = &*self.ownership() {
            owner.close();
        }
        fallback
    }

    fn tell(&self, change: &VaultChange) {
        if *change != VaultChange::NONE {
            self.listeners.tell(change);
        }
    }

    pub(super) fn find_ownership(&self, fallback: Fallback) -> anyhow::Result<(Ownership, Option<UnixStream>)> {
        let (started, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let is_patient = fallback == Fallback::Never || started.elapsed() < CONNECT_TIMEOUT;
            let why = match self.try_once(if is_patient { fallback } else { Fallback::Now })? {
                SearchOutcome::Found(ownership, stream) => return Ok((ownership, stream)),
                SearchOutcome::NotYet(why) => why,
            };
            if matches!(*self.ownership(), Ownership::Closed) {
                return Ok((Ownership::Closed, None));
            }
            tracing::trace!("no owner yet: {why}");
            std::thread::sleep(pause);
            pause = (pause * 2).min(if fallback == Fallback::Never { RETRY_INTERVAL } else { LONGEST_PAUSE });
        }
    }

    /// Tries once. Where the vault cannot be shared this process works with its own index, if it may.
    fn try_once(&self, fallback: Fallback) -> anyhow::Result<SearchOutcome> {
        let Some(own_folder) = &self.own_folder else { return self.unshared() };
        let (why, is_permanent) = match OwnerLock::acquire(own_folder, OwnerMode::Shared, SERVE) {
            LockAttempt::Acquired(lock) => {
                return self.own(own_folder, lock).map(|ownership| SearchOutcome::Found(ownership, None));
            }
            LockAttempt::Unavailable(error) => {
                (format!("the vault cannot be shared with other processes: {error}"), !is_temporary(&error))
            }
            LockAttempt::HeldByOther(owner) => match self.connect_to_owner(own_folder) {
                Ok((client, stream)) => {
                    return Ok(SearchOutcome::Found(Ownership::Peer(Arc::new(client)), Some(stream)));
                }
                Err(OwnerConnectError::OtherVersion(welcome)) => {
                    return Err(anyhow::anyhow!(welcome.other_version_message()));
                }
                Err(OwnerConnectError::Unreachable(_)) if owner.mode == OwnerMode::Exclusive => {
                    (describe(&owner), true)
                }
                Err(OwnerConnectError::Unreachable(error)) => {
                    (format!("{} and cannot be reached: {error}", describe(&owner)), false)
                }
            },
        };
        match fallback {
            Fallback::Now => self.without_owner(&why),
            Fallback::IfPermanent if is_permanent => self.without_owner(&why),
            Fallback::IfPermanent | Fallback::Never => Ok(SearchOutcome::NotYet(why)),
        }
    }

    fn connect_to_owner(&self, own_folder: &Path) -> Result<(OwnerClient, UnixStream), OwnerConnectError> {
        let is_waiting = &self.options.is_waiting;
        is_waiting.store(true, Ordering::SeqCst);
        let client = OwnerClient::open(own_folder, &self.process(), self.options.engine.watches);
        is_waiting.store(false, Ordering::SeqCst);
        client
    }

    /// Opens the vault as its owner. The socket is created first, so that other processes can wait at it.
    fn own(&self, own_folder: &Path, mut lock: OwnerLock) -> anyhow::Result<Ownership> {
        let listener = lock.listen(own_folder);
        let engine = self.start(LAST_OWNER_TIMEOUT)?;
        let resources = OwnerResources::new(&engine, listener, lock);
        Ok(Ownership::Owner(engine, Some(resources)))
    }

    /// Opens the vault for this process, although another process may own it.
    fn without_owner(&self, why: &str) -> anyhow::Result<SearchOutcome> {
        tracing::warn!("{why}; this process uses its own index");
        self.unshared()
    }

    /// Opens the vault for this process, with an index in memory where another process has the index open.
    fn unshared(&self) -> anyhow::Result<SearchOutcome> {
        Ok(SearchOutcome::Found(Ownership::Owner(self.start(Duration::ZERO)?, None), None))
    }

    /// Starts the engine. The last owner may still be closing its index.
    fn start(&self, timeout: Duration) -> anyhow::Result<Arc<Engine>> {
        let started = Instant::now();
        let open = loop {
            let open = self.source.open()?;
            if !open.is_index_taken() || started.elapsed() > timeout {
                break open;
            }
            drop(open);
            std::thread::sleep(LONGEST_PAUSE);
        };
        Ok(Arc::new(Engine::start(open, self.options.engine)?))
    }
}

impl Ownership {
    fn message(&self) -> &'static str {
        match self {
            Self::Owner(_, Some(_)) => "this process owns the vault now",
            Self::Owner(_, None) => "this process uses its own index of the vault",
            Self::Peer(_) => "another process owns the vault now",
            Self::Undecided | Self::Failed(_) | Self::Closed => "no process owns the vault now",
        }
    }

    /// Stops the engine, if there is one. Requests of other processes get a moment to finish.
    pub(super) fn close(self) {
        let Self::Owner(engine, resources) = self else { return };
        if let Some(OwnerResources { server, lock }) = resources {
            if let Some(server) = server {
                server.close(CLOSE_GRACE);
            }
            // Until exit: what this process has open is closed only then.
            lock.hold_until_exit();
        }
        engine.stop();
    }
}

fn describe(owner: &OwnerInfo) -> String {
    format!("the vault is open in process {} of quipu {}", owner.pid, owner.version)
}

/// Whether the lock may be available a moment later.
fn is_temporary(error: &io::Error) -> bool {
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}
