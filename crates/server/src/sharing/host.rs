//! The owner's side: answers the other processes that have the vault's clients.
//!
//! A connection carries one question at a time, on a thread of its own; a process with several calls under way opens
//! several. What is asked is trusted as far as its asker, who is the same user and could open the files itself.

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

use super::claim::{self, FileId};
use super::porch::Porch;
use super::turns::{Turn, Turns};
use super::wire::{
    Answer, Answered, Changes, HEARTBEAT, Hello, Notice, Purpose, Question, SessionHere, WIRE, Welcome, receive,
    receive_frame, send,
};
use crate::engine::Engine;
use crate::hang_up;
use crate::service::Change;

/// Far above what a person's agents open.
const MAX_CONNECTIONS: usize = 1024;

/// Questions that are worked on at the same time. More would only take turns.
const MAX_AT_ONCE: usize = 16;

/// Changes that another process may be behind. Then it is told that anything may have changed.
const QUEUED: usize = 64;

/// Copies of sessions that are kept: those of a process that lets many clients in over HTTP add up.
const MAX_SESSIONS: usize = 4096;

/// How long another process may take to say who it is: longer than it waits for the answer.
const GREETING: Duration = Duration::from_secs(3);

/// How long the other end may leave an answer unread.
const READ_PATIENCE: Duration = Duration::from_secs(60);

/// Lets other processes in, for as long as it is there.
pub(super) struct Host {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` once all is over: a connection that nobody closes must not keep the vault open.
    engine: Mutex<Option<Arc<Engine>>>,
    is_closing: AtomicBool,
    connections: AtomicUsize,
    porch: Porch,
    at_work: Turns,
    /// Answers on their way out.
    sending: Turns,
    /// Which vault this is. A lock that was removed is made anew, and is another then.
    vault: Mutex<FileId>,
    /// Where others come in. One whose file was removed gives way to another.
    listener: Mutex<Arc<UnixListener>>,
    sessions: Mutex<FxHashMap<(String, u64), Arc<Session>>>,
    staying: Mutex<Vec<Staying>>,
}

/// Another process that is to be told of changes.
struct Staying {
    connection: u64,
    process: String,
    changes: SyncSender<Change>,
    /// Whether it missed some.
    is_behind: Arc<AtomicBool>,
}

impl Host {
    /// Starts to let others in.
    pub(super) fn open(engine: &Arc<Engine>, listener: UnixListener, vault: FileId) -> io::Result<Self> {
        let listener = Arc::new(listener);
        let shared = Arc::new(Shared {
            engine: Mutex::new(Some(engine.clone())),
            is_closing: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            porch: Porch::default(),
            at_work: Turns::of(MAX_AT_ONCE),
            sending: Turns::of(MAX_CONNECTIONS),
            vault: Mutex::new(vault),
            listener: Mutex::new(listener.clone()),
            sessions: Mutex::default(),
            staying: Mutex::default(),
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

    /// Lets others in elsewhere from now on; where that fails, all stays as it was.
    pub(super) fn move_to(&self, listener: UnixListener) -> io::Result<()> {
        let listener = Arc::new(listener);
        // Held meanwhile: the thread that starts here may want to know whether it is still the one.
        let mut current = self.shared.listener();
        self.shared.clone().start(listener.clone())?;
        let before = std::mem::replace(&mut *current, listener);
        wake(&before);
        Ok(())
    }

    pub(super) fn rename(&self, vault: FileId) {
        *self.shared.vault.lock() = vault;
    }

    /// Begins nothing new, and waits a moment for what is under way. What is not answered by then is asked again of the
    /// next owner, by its key, and done once all the same.
    pub(super) fn close(self, patience: Duration) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        let until = Instant::now() + patience;
        self.shared.at_work.wait_for_rest(until);
        self.shared.sending.wait_for_rest(until);
        // Whoever stayed sees the end, and looks for another owner.
        self.shared.staying().clear();
        wake(&self.shared.listener());
        drop(self.shared.engine.lock().take());
    }
}

/// Ends the wait of whoever accepts connections there.
fn wake(listener: &UnixListener) {
    // A system that cannot do so leaves one thread waiting, at a socket that nobody finds.
    let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
}

impl Shared {
    fn start(self: Arc<Self>, listener: Arc<UnixListener>) -> io::Result<()> {
        std::thread::Builder::new().name("share".into()).spawn(move || self.let_in(&listener)).map(drop)
    }

    fn listener(&self) -> MutexGuard<'_, Arc<UnixListener>> {
        self.listener.lock()
    }

    fn let_in(self: Arc<Self>, listener: &Arc<UnixListener>) {
        for stream in listener.incoming() {
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) => {
                    if self.is_closing.load(Ordering::SeqCst) || !Arc::ptr_eq(&self.listener(), listener) {
                        return;
                    }
                    tracing::warn!(%error, "another process could not be let in");
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            if self.is_closing.load(Ordering::SeqCst) {
                return;
            }
            if !claim::is_ours(&stream) || self.connections.load(Ordering::SeqCst) >= MAX_CONNECTIONS {
                continue;
            }
            let guest = Guest { shared: self.clone() };
            self.connections.fetch_add(1, Ordering::SeqCst);
            // A thread that cannot be had drops the guest: the other end tries again.
            let _ = std::thread::Builder::new().name("guest".into()).spawn(move || guest.attend(stream));
        }
    }

    fn staying(&self) -> MutexGuard<'_, Vec<Staying>> {
        self.staying.lock()
    }

    /// Registers a process for changes. They are queued until [`Subscription::start`].
    fn subscribe(&self, connection: u64, process: &str) -> Subscription<'_> {
        let (changes, told) = sync_channel::<Change>(QUEUED);
        let is_behind = Arc::<AtomicBool>::default();
        let missed = is_behind.clone();
        self.staying().push(Staying { connection, process: process.to_owned(), changes, is_behind });
        Subscription { shared: self, connection, process: process.to_owned(), queue: Some((told, missed)) }
    }

    fn tell(&self, change: &Change) {
        for staying in self.staying().iter() {
            if staying.changes.try_send(change.clone()).is_err() {
                staying.is_behind.store(true, Ordering::SeqCst);
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
struct Subscription<'a> {
    shared: &'a Shared,
    connection: u64,
    process: String,
    /// Taken when it starts.
    queue: Option<(Receiver<Change>, Arc<AtomicBool>)>,
}

impl Subscription<'_> {
    /// Sends the changes, on a thread of its own: the writer that makes them does not wait for it.
    fn start(&mut self, mut stream: UnixStream) -> io::Result<()> {
        let Some((told, missed)) = self.queue.take() else { return Ok(()) };
        let sending = std::thread::Builder::new().name("notices".into()).spawn(move || {
            while let Some(change) = next_change(&told, &missed) {
                // The connection's own thread sees its end.
                if send(&mut stream, &Notice::from(change)).is_err() {
                    return;
                }
            }
            // The process is gone, or is to look for another owner.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        sending.map(drop)
    }
}

impl Drop for Subscription<'_> {
    fn drop(&mut self) {
        let mut staying = self.shared.staying();
        staying.retain(|staying| staying.connection != self.connection);
        // A process that has reconnected meanwhile goes on with its sessions.
        if !staying.iter().any(|staying| staying.process == self.process) {
            self.shared.sessions().retain(|(process, _), _| *process != self.process);
        }
    }
}

/// The next change for a process, or [`Change::NONE`] as a sign of life; `None` when there will be no more. What did not fit
/// into the queue is told at the next sign of life at the latest, also where the queue was emptied meanwhile.
fn next_change(told: &Receiver<Change>, missed: &AtomicBool) -> Option<Change> {
    let change = match told.recv_timeout(HEARTBEAT) {
        Ok(change) => change,
        Err(RecvTimeoutError::Timeout) => Change::NONE,
        Err(RecvTimeoutError::Disconnected) => return None,
    };
    Some(if missed.swap(false, Ordering::SeqCst) { Change::ANY } else { change })
}

/// One connection.
struct Guest {
    shared: Arc<Shared>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Guest {
    fn attend(self, mut stream: UnixStream) {
        if let Err(error) = self.converse(&mut stream) {
            tracing::debug!(%error, "a connection of another process ended");
        }
    }

    fn converse(&self, stream: &mut UnixStream) -> io::Result<()> {
        stream.set_write_timeout(Some(READ_PATIENCE))?;
        stream.set_read_timeout(Some(GREETING))?;
        let number = self.shared.porch.enter(stream)?;
        let hello = receive::<Hello>(stream);
        self.shared.porch.leave(number);
        let Some(hello) = hello? else { return Ok(()) };
        let Some(engine) = self.shared.engine() else { return Ok(()) };
        let tools = engine.registry().tools().map(|tool| tool.name.to_owned()).collect();
        drop(engine);
        // Before the answer: behind it the process relies on being told, and may send calls on another connection.
        let subscription = match hello.purpose {
            Purpose::Staying { watch_files } if hello.wire == WIRE => {
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
            tracing::info!(version = hello.version, "another process shares the vault");
            // First: the other end expects signs of life, and what comes next can take a while.
            subscription.start(stream.try_clone()?)?;
            if watch_files && let Some(engine) = self.shared.engine() {
                engine.indexed();
                engine.watch();
            }
            return receive::<Question>(stream).map(drop);
        }
        while let Some(frame) = receive_frame(stream)? {
            let Some(turn) = self.shared.begin() else { return Ok(()) };
            // Whoever has gone asks elsewhere, and later than this process knows if it was stopped meanwhile.
            if hang_up::is_over(&*stream) {
                return Ok(());
            }
            let Some(engine) = self.shared.engine() else { return Ok(()) };
            let answered = self.shared.try_answer(&engine, &hello.process, &frame);
            drop(engine);
            // In this order: whoever closes waits for the one, then for the other.
            let sending = self.shared.sending.take();
            // A process that does not read keeps nobody else from working.
            drop(turn);
            send(stream, &answered)?;
            drop(sending);
        }
        Ok(())
    }
}

impl Shared {
    /// A turn to work, unless nothing new is begun.
    fn begin(&self) -> Option<Turn<'_>> {
        let turn = self.at_work.take();
        // Looked at behind the turn, which the closing one waits for: so either it sees the turn or this sees the closing.
        (!self.is_closing.load(Ordering::SeqCst)).then_some(turn)
    }

    /// A question of another version may be none here, and a panic must not be met again and again.
    fn try_answer(&self, engine: &Engine, process: &str, frame: &[u8]) -> Answered {
        let failed = |why: String| Answered::plain(Answer::Failed(why));
        let question = match serde_json::from_slice(frame) {
            Ok(question) => question,
            Err(error) => return failed(format!("the process that has this vault open does not understand: {error}")),
        };
        catch_unwind(AssertUnwindSafe(|| self.answer(engine, process, question))).unwrap_or_else(|_| {
            tracing::error!("answering another process failed");
            failed("the call failed inside the process that has this vault open; its log says why".to_owned())
        })
    }

    fn answer(&self, engine: &Engine, process: &str, question: Question<'_>) -> Answered {
        match question {
            Question::Call { key, tool, arguments, session } => {
                let Some((copy, known)) = self.session(process, session) else { return Answered::who_are_you() };
                let Ok(key) = key.parse() else { return Answered::plain(Answer::Failed(InvalidKey.to_string())) };
                let registry = engine.registry();
                let response = match registry.find(&tool) {
                    Ok(tool) => registry.call(tool, arguments.into_owned(), &copy, Some(key)),
                    Err(reply) => reply.into(),
                };
                Answered { answer: Answer::Called(response), session: Some(Changes::of(&copy, known)) }
            }
            Question::Resources { cursor, page_size } => {
                Answered::plain(Answer::Resources(engine.indexed().resources(cursor.as_deref(), page_size)))
            }
            Question::ReadResource { uri, session } => {
                let Some((copy, known)) = self.session(process, session) else { return Answered::who_are_you() };
                let read = engine.indexed().read_resource(&copy, &uri);
                Answered { answer: Answer::Resource(read), session: Some(Changes::of(&copy, known)) }
            }
            Question::CompleteNoteId { typed, limit } => {
                Answered::plain(Answer::Completion(engine.indexed().complete_note_id(&typed, limit)))
            }
            Question::IndexProgress => Answered::plain(Answer::IndexProgress(engine.progress())),
            Question::Command { command, looks } => {
                Answered::plain(Answer::Command(engine.open().clone().run_command(engine, command, looks)))
            }
        }
    }

    /// The owner's copy of a session, and the edition of it that its process has; `None` when it must say more.
    fn session(&self, process: &str, here: SessionHere) -> Option<(Arc<Session>, u64)> {
        let SessionHere { number, client, known, whole } = here;
        let mut sessions = self.sessions();
        let key = (process.to_owned(), number);
        if let Some(session) = sessions.get(&key) {
            session.introduce(&client);
            return Some((session.clone(), known));
        }
        if sessions.len() >= MAX_SESSIONS {
            // Each is told again by the process that has it.
            sessions.clear();
        }
        let session = Arc::new(Session::named(&client));
        session.take_over(whole?.into_domain());
        let known = session.changes_since(u64::MAX).edition;
        sessions.insert(key, session.clone());
        Some((session, known))
    }
}

impl Answered {
    fn plain(answer: Answer) -> Self {
        Self { answer, session: None }
    }

    fn who_are_you() -> Self {
        Self::plain(Answer::WhoAreYou)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Shared {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        Shared {
            engine: Mutex::default(),
            is_closing: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            porch: Porch::default(),
            at_work: Turns::of(1),
            sending: Turns::of(1),
            vault: Mutex::default(),
            listener: Mutex::new(Arc::new(listener)),
            sessions: Mutex::default(),
            staying: Mutex::default(),
        }
    }

    #[test]
    fn the_end_of_an_old_connection_keeps_the_sessions_of_the_new_one() {
        let shared = shared();
        let first = shared.subscribe(1, "ada");
        let whole = || Some(Changes::of(&Session::named("client"), 0));
        let here = |whole| SessionHere { number: 7, client: "client".into(), known: 0, whole };
        assert!(shared.session("ada", here(whole())).is_some());
        let second = shared.subscribe(2, "ada");
        drop(first);
        assert!(shared.session("ada", here(None)).is_some(), "the process has reconnected");
        assert_eq!(shared.staying().iter().map(|staying| staying.connection).collect::<Vec<_>>(), [2]);
        shared.subscribe(3, "bea");
        assert!(shared.session("ada", here(None)).is_some(), "another process has ended");
        drop(second);
        assert!(shared.session("ada", here(None)).is_none(), "the process has ended");
    }

    #[test]
    fn changes_that_did_not_fit_into_the_queue_are_told_without_a_further_change() {
        let (changes, told) = sync_channel(1);
        let missed = AtomicBool::new(false);
        changes.try_send(Change::NONE).unwrap();
        assert!(changes.try_send(Change::ANY).is_err(), "the queue is full");
        assert_eq!(next_change(&told, &missed), Some(Change::NONE));
        // Only now: the sender was interrupted between its attempt and its note of it.
        missed.store(true, Ordering::SeqCst);
        assert_eq!(next_change(&told, &missed), Some(Change::ANY));
        assert_eq!(next_change(&told, &missed), Some(Change::NONE), "it is told once");
        drop(changes);
        assert_eq!(next_change(&told, &missed), None);
    }
}
