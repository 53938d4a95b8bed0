//! The client side of the socket: sends requests of this process's clients to the owner, and keeps a copy of their sessions, so
//! that the next owner can have them.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use quipu_core::Session;
use rustc_hash::FxHashMap;

use super::owner_lock;
use super::wire::{
    ConnectionPurpose, Hello, OWNER_TIMEOUT, OwnerRequest, OwnerResponse, ResponseMessage, SessionCopy, SessionDelta,
    WIRE, Welcome, receive, send,
};

/// How long a response may take: longer than most clients wait.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(90);

/// How long a handshake with the owner may take. It answers once it has opened the vault; the caller retries.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a waiting request checks whether the owner is still there.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Idle connections kept open for the next request.
const MAX_IDLE: usize = 16;

/// Sessions whose state at the owner is remembered. Above that, all are sent again.
const MAX_SESSIONS: usize = 1024;

/// A connection to one owner. Useless once that owner has exited.
pub(super) struct OwnerClient {
    own_folder: PathBuf,
    process: String,
    idle: Mutex<Vec<UnixStream>>,
    /// The revision of each session in the last response about it.
    known: Mutex<FxHashMap<u64, u64>>,
    pub(super) owner: Welcome,
    /// The owner exited, or is stopped.
    is_closed: AtomicBool,
}

/// Why there is no connection.
pub(super) enum OwnerConnectError {
    /// No process answers, perhaps not yet.
    Unreachable(io::Error),
    /// The owner has a version that this process cannot talk to.
    OtherVersion(Welcome),
}

/// The owner did not answer: it has exited, or hangs.
#[derive(Debug)]
pub(super) struct OwnerLost(pub(super) io::Error);

impl From<io::Error> for OwnerLost {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl OwnerClient {
    /// Connects. The stream carries changes, and ends when the owner exits.
    pub(super) fn open(
        own_folder: &Path,
        process: &str,
        watch_files: bool,
    ) -> Result<(Self, UnixStream), OwnerConnectError> {
        let purpose = ConnectionPurpose::Subscription { watch_files };
        let (stream, owner) = handshake(own_folder, process, purpose).map_err(OwnerConnectError::Unreachable)?;
        if owner.wire != WIRE {
            return Err(OwnerConnectError::OtherVersion(owner));
        }
        if owner_lock::identity(own_folder).map_err(OwnerConnectError::Unreachable)? != owner.vault {
            return Err(OwnerConnectError::Unreachable(io::Error::other("the owner of another vault answers")));
        }
        let client = Self {
            own_folder: own_folder.to_owned(),
            process: process.to_owned(),
            idle: Mutex::default(),
            known: Mutex::default(),
            owner,
            is_closed: AtomicBool::new(false),
        };
        stream.set_read_timeout(Some(OWNER_TIMEOUT)).map_err(OwnerConnectError::Unreachable)?;
        Ok((client, stream))
    }

    /// Ends the wait of all requests: their callers ask elsewhere.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Sends a request that belongs to no session.
    pub(super) fn ask(&self, request: &OwnerRequest<'_>) -> Result<OwnerResponse, OwnerLost> {
        Ok(self.receive(self.send(request)?, Some(RESPONSE_TIMEOUT))?.answer)
    }

    /// Sends a request without a time limit.
    pub(super) fn ask_without_timeout(&self, request: &OwnerRequest<'_>) -> Result<OwnerResponse, OwnerLost> {
        Ok(self.receive(self.send(request)?, None)?.answer)
    }

    /// Sends a request of a session. `request` is called twice if the owner does not know the session.
    pub(super) fn ask_for<'q>(
        &self,
        session: &Session,
        request: impl Fn(SessionCopy) -> OwnerRequest<'q>,
    ) -> Result<OwnerResponse, OwnerLost> {
        let number = session.number();
        let mut whole = !self.known().contains_key(&number);
        loop {
            let known = self.known().get(&number).copied().unwrap_or_default();
            let here = SessionCopy {
                number,
                client: session.client(),
                known,
                whole: whole.then(|| SessionDelta::of(session, 0)),
            };
            let sent = self.send(&request(here))?;
            let ResponseMessage { answer, session: changes } = self.receive(sent, Some(RESPONSE_TIMEOUT))?;
            if matches!(answer, OwnerResponse::UnknownSession) && !whole {
                whole = true;
                // The new copy counts its revisions from zero.
                self.known().remove(&number);
                continue;
            }
            if let Some(changes) = changes {
                self.keep(session, changes);
            }
            return Ok(answer);
        }
    }

    /// Responses may arrive out of order: a newer one contains the changes of an older one.
    fn keep(&self, session: &Session, changes: SessionDelta) {
        let mut known = self.known();
        if known.len() > MAX_SESSIONS {
            known.clear();
        }
        let before = known.entry(session.number()).or_default();
        if changes.edition > *before {
            *before = changes.edition;
            session.take_over(changes.into_domain());
        }
    }

    /// Sends a request; the response will arrive on the returned connection.
    fn send(&self, request: &OwnerRequest<'_>) -> Result<UnixStream, OwnerLost> {
        // If one of these fails, the owner has no complete request, and processes none.
        let unsent = |error| OwnerLost(io::Error::new(io::ErrorKind::NotConnected, error));
        let idle = self.idle().pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => handshake(&self.own_folder, &self.process, ConnectionPurpose::Requests).map_err(unsent)?.0,
        };
        send(&mut stream, request).map_err(unsent)?;
        Ok(stream)
    }

    /// Waits for the response to a request that was sent.
    fn receive(&self, stream: UnixStream, timeout: Option<Duration>) -> Result<ResponseMessage, OwnerLost> {
        stream.set_read_timeout(Some(CHECK_INTERVAL))?;
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let mut reader = ResponseReader { stream: &stream, client: self, until };
        let response = receive(&mut reader)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(stream);
        }
        Ok(response)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<UnixStream>> {
        self.idle.lock()
    }

    fn known(&self) -> MutexGuard<'_, FxHashMap<u64, u64>> {
        self.known.lock()
    }
}

/// Reads a response, and checks at intervals whether the owner is still there.
struct ResponseReader<'a> {
    stream: &'a UnixStream,
    client: &'a OwnerClient,
    until: Option<Instant>,
}

impl Read for ResponseReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(bytes) {
                Err(error) if is_timeout(&error) => {}
                read => return read,
            }
            if self.client.is_closed.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if self.until.is_some_and(|until| Instant::now() > until) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// Whether an error is a timeout.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn handshake(own_folder: &Path, process: &str, purpose: ConnectionPurpose) -> io::Result<(UnixStream, Welcome)> {
    let mut stream = owner_lock::connect(own_folder)?;
    stream.set_write_timeout(Some(HANDSHAKE_TIMEOUT))?;
    stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
    let (process, version) = (process.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    send(&mut stream, &Hello { wire: WIRE, version, process, purpose })?;
    let welcome = receive(&mut stream)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok((stream, welcome))
}
