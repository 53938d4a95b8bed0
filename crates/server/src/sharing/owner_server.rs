//! The owner's side of the socket: answers the requests of the other processes.
//!
//! A connection carries one request at a time, on its own thread; a process with several calls opens several connections.
//! Requests are trusted: they come from the same user, who could open the files directly.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use quipu_core::{InvalidKey, Session};
use rustc_hash::FxHashMap;

use super::concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit};
use super::owner_lock::{self, FileId};
use super::pending_handshakes::PendingHandshakes;
use super::wire::{
    ChangeNotice, ConnectionPurpose, HEARTBEAT, OwnerRequest, OwnerResponse, ResponseMessage, SessionCopy,
    SessionDelta, WIRE, Welcome, receive, receive_frame, receive_hello, send,
};
use crate::engine::Engine;
use crate::hang_up;
use crate::service::VaultChange;

/// Far above what the agents of one user open.
const MAX_CONNECTIONS: usize = 1024;

/// Requests that run at the same time. More would only wait for each other.
const MAX_RUNNING: usize = 16;

/// Changes queued for a subscriber. Above that, it gets one notice that anything may have changed.
const QUEUED: usize = 64;

/// Copies of sessions: a process that serves many clients over HTTP has many.
const MAX_SESSIONS: usize = 4096;

/// How long another process may take to send its first message: longer than it waits for the answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the other end may leave a response unread.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Accepts connections of other processes until it is closed.
pub(super) struct OwnerServer {
    shared: Arc<OwnerServerState>,
}

struct OwnerServerState {
    /// `None` once closed: a connection that stays open must not keep the vault open.
    engine: Mutex<Option<Arc<Engine>>>,
    is_closing: AtomicBool,
    connections: AtomicUsize,
    handshakes: PendingHandshakes,
    running: ConcurrencyLimit,
    /// Responses that are being sent.
    sending: ConcurrencyLimit,
    /// Which vault this is. A deleted lock is recreated, and has another identity then.
    vault: Mutex<FileId>,
    /// The socket. One whose file was deleted is replaced.
    listener: Mutex<Arc<UnixListener>>,
    sessions: Mutex<FxHashMap<(String, u64), Arc<Session>>>,
    subscribers: Mutex<Vec<Subscriber>>,
}

/// Another process that receives changes.
struct Subscriber {
    connection: u64,
    process: String,
    changes: SyncSender<VaultChange>,
    /// Whether it missed some.
    is_behind: Arc<AtomicBool>,
}

impl OwnerServer {
    /// Starts to accept connections.
    pub(super) fn open(engine: &Arc<Engine>, listener: UnixListener, vault: FileId) -> io::Result<Self> {
        let listener = Arc::new(listener);
        let shared = Arc::new(OwnerServerState {
            engine: Mutex::new(Some(engine.clone())),
            is_closing: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            handshakes: PendingHandshakes::default(),
            running: ConcurrencyLimit::of(MAX_RUNNING),
            sending: ConcurrencyLimit::of(MAX_CONNECTIONS),
            vault: Mutex::new(vault),
            listener: Mutex::new(listener.clone()),
            sessions: Mutex::default(),
            subscribers: Mutex::default(),
        });
        let told = Arc::downgrade(&shared);
        engine.on_change(Box::new(move |change| {
            if let Some(shared) = told.upgrade() {
                shared.tell(&change);
            }
        }));
        shared.clone().start(listener)?;
        Ok(Self { shared })
    }

    /// Accepts connections at another socket from now on; if that fails, nothing changes.
    pub(super) fn move_to(&self, listener: UnixListener) -> io::Result<()> {
        let listener = Arc::new(listener);
        // Locked meanwhile: the new thread may ask whether its socket is still the current one.
        let mut current = self.shared.listener();
        self.shared.clone().start(listener.clone())?;
        let before = std::mem::replace(&mut *current, listener);
        wake(&before);
        Ok(())
    }

    pub(super) fn set_vault(&self, vault: FileId) {
        *self.shared.vault.lock() = vault;
    }

    /// Starts no further request, and waits a moment for those that run. A request without a response is sent again to the
    /// next owner, which knows by its key whether it took effect.
    pub(super) fn close(self, patience: Duration) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        let until = Instant::now() + patience;
        self.shared.running.wait_until_idle(until);
        self.shared.sending.wait_until_idle(until);
        // Subscribers see the end of their connection, and look for another owner.
        self.shared.subscribers().clear();
        wake(&self.shared.listener());
        drop(self.shared.engine.lock().take());
    }
}

/// Ends the wait of the thread that accepts connections there.
fn wake(listener: &UnixListener) {
    // Where the system cannot do so, one thread stays at a socket that has no path.
    let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
}

impl OwnerServerState {
    fn start(self: Arc<Self>, listener: Arc<UnixListener>) -> io::Result<()> {
        std::thread::Builder::new().name("owner-server".into()).spawn(move || self.accept(&listener)).map(drop)
    }

    fn listener(&self) -> MutexGuard<'_, Arc<UnixListener>> {
        self.listener.lock()
    }

    fn accept(self: Arc<Self>, listener: &Arc<UnixListener>) {
        for stream in listener.incoming() {
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) => {
                    if self.is_closing.load(Ordering::SeqCst) || !Arc::ptr_eq(&self.listener(), listener) {
                        return;
                    }
                    tracing::warn!(%error, "cannot accept a connection of another process");
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            if self.is_closing.load(Ordering::SeqCst) {
                return;
            }
            if !owner_lock::is_ours(&stream) || self.connections.load(Ordering::SeqCst) >= MAX_CONNECTIONS {
                continue;
            }
            let peer = PeerConnection { shared: self.clone() };
            self.connections.fetch_add(1, Ordering::SeqCst);
            // Without a thread the connection is dropped: the other end retries.
            let _ = std::thread::Builder::new().name("peer".into()).spawn(move || peer.run(stream));
        }
    }

    fn subscribers(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        self.subscribers.lock()
    }

    /// Registers a process for changes. They are queued until [`SubscriberGuard::start`].
    fn subscribe(&self, connection: u64, process: &str) -> SubscriberGuard<'_> {
        let (changes, told) = sync_channel::<VaultChange>(QUEUED);
        let is_behind = Arc::<AtomicBool>::default();
        let missed = is_behind.clone();
        self.subscribers().push(Subscriber { connection, process: process.to_owned(), changes, is_behind });
        SubscriberGuard { shared: self, connection, process: process.to_owned(), queue: Some((told, missed)) }
    }

    fn tell(&self, change: &VaultChange) {
        for subscriber in self.subscribers().iter() {
            if subscriber.changes.try_send(change.clone()).is_err() {
                subscriber.is_behind.store(true, Ordering::SeqCst);
            }
        }
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.lock().clone()
    }

    fn sessions(&self) -> MutexGuard<'_, FxHashMap<(String, u64), Arc<Session>>> {
        self.sessions.lock()
    }
}

/// The registration of a process for changes. Dropped at the end of its connection.
struct SubscriberGuard<'a> {
    shared: &'a OwnerServerState,
    connection: u64,
    process: String,
    /// Taken when it starts.
    queue: Option<(Receiver<VaultChange>, Arc<AtomicBool>)>,
}

impl SubscriberGuard<'_> {
    /// Sends the changes, on a thread of its own: the writer that makes them does not wait for it.
    fn start(&mut self, mut stream: UnixStream) -> io::Result<()> {
        let Some((told, missed)) = self.queue.take() else { return Ok(()) };
        let sending = std::thread::Builder::new().name("notices".into()).spawn(move || {
            while let Some(change) = next_change(&told, &missed) {
                // The connection's own thread sees its end.
                if send(&mut stream, &ChangeNotice::from(change)).is_err() {
                    return;
                }
            }
            // The process has exited, or must look for another owner.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        sending.map(drop)
    }
}

impl Drop for SubscriberGuard<'_> {
    fn drop(&mut self) {
        let mut subscribers = self.shared.subscribers();
        subscribers.retain(|subscriber| subscriber.connection != self.connection);
        // A process that has reconnected meanwhile goes on with its sessions.
        if !subscribers.iter().any(|subscriber| subscriber.process == self.process) {
            self.shared.sessions().retain(|(process, _), _| *process != self.process);
        }
    }
}

/// The next change for a process, or [`VaultChange::NONE`] as a heartbeat; `None` when there will be no more. A change that did not
/// fit into the queue is reported with the next heartbeat at the latest, even if the queue was emptied meanwhile.
fn next_change(told: &Receiver<VaultChange>, missed: &AtomicBool) -> Option<VaultChange> {
    let change = match told.recv_timeout(HEARTBEAT) {
        Ok(change) => change,
        Err(RecvTimeoutError::Timeout) => VaultChange::NONE,
        Err(RecvTimeoutError::Disconnected) => return None,
    };
    Some(if missed.swap(false, Ordering::SeqCst) { VaultChange::ANY } else { change })
}

/// A connection of another process.
struct PeerConnection {
    shared: Arc<OwnerServerState>,
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PeerConnection {
    fn run(self, mut stream: UnixStream) {
        if let Err(error) = self.converse(&mut stream) {
            tracing::debug!(%error, "a connection of another process ended");
        }
    }

    fn converse(&self, stream: &mut UnixStream) -> io::Result<()> {
        stream.set_write_timeout(Some(SEND_TIMEOUT))?;
        stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
        let number = self.shared.handshakes.add(stream)?;
        let hello = receive_hello(stream);
        self.shared.handshakes.remove(number);
        let Some(hello) = hello? else { return Ok(()) };
        let Some(engine) = self.shared.engine() else { return Ok(()) };
        let tools = engine.registry().tools().map(|tool| tool.name.to_owned()).collect();
        drop(engine);
        // Before the answer: after it the process relies on changes, and may send calls on another connection.
        let subscription = match hello.purpose {
            ConnectionPurpose::Subscription { watch_files } if hello.wire == WIRE => {
                Some((self.shared.subscribe(number, &hello.process), watch_files))
            }
            _ => None,
        };
        send(
            stream,
            &Welcome {
                wire: WIRE,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                vault: *self.shared.vault.lock(),
                tools,
            },
        )?;
        if hello.wire != WIRE {
            return Ok(());
        }
        stream.set_read_timeout(None)?;
        if let Some((mut subscription, watch_files)) = subscription {
            tracing::info!(version = hello.version, "a process connected to this owner");
            // First: the other end expects heartbeats, and what follows can take a while.
            subscription.start(stream.try_clone()?)?;
            if watch_files && let Some(engine) = self.shared.engine() {
                engine.indexed();
                engine.watch();
            }
            return receive::<OwnerRequest>(stream).map(drop);
        }
        while let Some(frame) = receive_frame(stream)? {
            let Some(permit) = self.shared.begin() else { return Ok(()) };
            // A process that has disconnected asks elsewhere, perhaps while this process was stopped.
            if hang_up::is_over(&*stream) {
                return Ok(());
            }
            let Some(engine) = self.shared.engine() else { return Ok(()) };
            let response = self.shared.answer(&engine, &hello.process, &frame);
            drop(engine);
            // Before the permit is dropped: `close` waits first for permits, then for responses being sent.
            let sending = self.shared.sending.take();
            // A process that does not read must not block others.
            drop(permit);
            send(stream, &response)?;
            drop(sending);
        }
        Ok(())
    }
}

impl OwnerServerState {
    /// A permit to run, unless the server is closing.
    fn begin(&self) -> Option<ConcurrencyPermit<'_>> {
        let permit = self.running.take();
        // Checked after the permit, for which `close` waits: either it sees the permit or this sees the closing.
        (!self.is_closing.load(Ordering::SeqCst)).then_some(permit)
    }

    /// Answers one request. A request of another version may be unknown here, and a panic must not be retried.
    fn answer(&self, engine: &Engine, process: &str, frame: &[u8]) -> ResponseMessage {
        let failed = |why: String| ResponseMessage::plain(OwnerResponse::Failed(why));
        let request = match serde_json::from_slice(frame) {
            Ok(request) => request,
            Err(error) => return failed(format!("the owner process cannot read the request: {error}")),
        };
        let answered = catch_unwind(AssertUnwindSafe(|| match request {
            OwnerRequest::CallTool { key, tool, arguments, session } => {
                let Some((copy, known)) = self.session(process, session) else {
                    return ResponseMessage::unknown_session();
                };
                let Ok(key) = key.parse() else {
                    return ResponseMessage::plain(OwnerResponse::Failed(InvalidKey.to_string()));
                };
                let registry = engine.registry();
                let response = match registry.find(&tool) {
                    Ok(tool) => engine.call(tool, arguments.into_owned(), &copy, Some(key)),
                    Err(reply) => reply.into(),
                };
                ResponseMessage { answer: OwnerResponse::Tool(response), session: Some(SessionDelta::of(&copy, known)) }
            }
            OwnerRequest::Resources { cursor, page_size } => ResponseMessage::plain(OwnerResponse::Resources(
                engine.indexed().resources(cursor.as_deref(), page_size),
            )),
            OwnerRequest::ReadResource { uri, session } => {
                let Some((copy, known)) = self.session(process, session) else {
                    return ResponseMessage::unknown_session();
                };
                let read = engine.indexed().read_resource(&copy, &uri);
                ResponseMessage { answer: OwnerResponse::Resource(read), session: Some(SessionDelta::of(&copy, known)) }
            }
            OwnerRequest::CompleteNoteId { typed, limit } => {
                ResponseMessage::plain(OwnerResponse::Completion(engine.indexed().complete_note_id(&typed, limit)))
            }
            OwnerRequest::IndexProgress => ResponseMessage::plain(OwnerResponse::IndexProgress(engine.progress())),
            OwnerRequest::WholeGraph => {
                ResponseMessage::plain(OwnerResponse::WholeGraph(Box::new(engine.indexed().whole_graph())))
            }
            OwnerRequest::Report => ResponseMessage::plain(OwnerResponse::Report(Box::new(engine.report()))),
            OwnerRequest::Trail { from } => ResponseMessage::plain(OwnerResponse::Trail(engine.trail(from))),
            OwnerRequest::Command { command } => {
                ResponseMessage::plain(OwnerResponse::Command(engine.open().clone().run_command(engine, command)))
            }
        }));
        answered.unwrap_or_else(|_| {
            tracing::error!("answering another process failed");
            failed("the call failed inside the owner process; its log has the reason".to_owned())
        })
    }

    /// The owner's copy of a session, and the revision that its process has; `None` when the process must send all of it.
    fn session(&self, process: &str, state: SessionCopy) -> Option<(Arc<Session>, u64)> {
        let SessionCopy { number, client, known, whole } = state;
        let mut sessions = self.sessions();
        let key = (process.to_owned(), number);
        if let Some(session) = sessions.get(&key) {
            session.introduce(&client);
            return Some((session.clone(), known));
        }
        if sessions.len() >= MAX_SESSIONS {
            // Each is sent again by its process.
            sessions.clear();
        }
        let session = Arc::new(Session::named(&client));
        session.take_over(whole?.into_domain());
        let known = session.changes_since(u64::MAX).revision;
        sessions.insert(key, session.clone());
        Some((session, known))
    }
}

impl ResponseMessage {
    fn plain(answer: OwnerResponse) -> Self {
        Self { answer, session: None }
    }

    fn unknown_session() -> Self {
        Self::plain(OwnerResponse::UnknownSession)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> OwnerServerState {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        OwnerServerState {
            engine: Mutex::default(),
            is_closing: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            handshakes: PendingHandshakes::default(),
            running: ConcurrencyLimit::of(1),
            sending: ConcurrencyLimit::of(1),
            vault: Mutex::default(),
            listener: Mutex::new(Arc::new(listener)),
            sessions: Mutex::default(),
            subscribers: Mutex::default(),
        }
    }

    #[test]
    fn the_end_of_an_old_connection_keeps_the_sessions_of_the_new_one() {
        let shared = shared();
        let first = shared.subscribe(1, "ada");
        let whole = || Some(SessionDelta::of(&Session::named("client"), 0));
        let here = |whole| SessionCopy { number: 7, client: "client".into(), known: 0, whole };
        assert!(shared.session("ada", here(whole())).is_some());
        let second = shared.subscribe(2, "ada");
        drop(first);
        assert!(shared.session("ada", here(None)).is_some(), "the process has reconnected");
        assert_eq!(shared.subscribers().iter().map(|subscribers| subscribers.connection).collect::<Vec<_>>(), [2]);
        shared.subscribe(3, "bea");
        assert!(shared.session("ada", here(None)).is_some(), "another process has ended");
        drop(second);
        assert!(shared.session("ada", here(None)).is_none(), "the process has ended");
    }

    #[test]
    fn changes_beyond_the_queue_are_sent_without_a_further_change() {
        let (changes, told) = sync_channel(1);
        let missed = AtomicBool::new(false);
        changes.try_send(VaultChange::NONE).unwrap();
        assert!(changes.try_send(VaultChange::ANY).is_err(), "the queue is full");
        assert_eq!(next_change(&told, &missed), Some(VaultChange::NONE));
        // Only now: the sender was interrupted between its attempt and its note of it.
        missed.store(true, Ordering::SeqCst);
        assert_eq!(next_change(&told, &missed), Some(VaultChange::ANY));
        assert_eq!(next_change(&told, &missed), Some(VaultChange::NONE), "it is reported once");
        drop(changes);
        assert_eq!(next_change(&told, &missed), None);
    }
}
