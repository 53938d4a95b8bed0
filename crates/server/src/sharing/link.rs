//! The other side: passes what this process's clients ask on to the owner, and keeps a copy of their sessions, so that the
//! next owner can be told of them.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use quipu_core::Session;
use rustc_hash::FxHashMap;

use super::claim;
use super::wire::{
    Answer, Answered, Changes, Hello, Purpose, Question, SILENCE, SessionHere, WIRE, Welcome, receive, send,
};

/// How long an answer may take: longer than most clients wait.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long the owner may take to greet. It does so as soon as it has opened the vault; whoever asks tries again.
const GREETING: Duration = Duration::from_secs(2);

/// How often it is looked up, while waiting for an answer, whether the owner is still there.
const LOOK_UP: Duration = Duration::from_millis(200);

/// Connections kept open for the next call.
const SPARE: usize = 16;

/// Sessions whose state at the owner is remembered. Beyond, all are told again.
const MAX_SESSIONS: usize = 1024;

/// A way to one owner. It is of no use any more once that owner is gone.
pub(super) struct Link {
    own_folder: PathBuf,
    process: String,
    spare: Mutex<Vec<UnixStream>>,
    /// The edition of each session that the owner last told of.
    known: Mutex<FxHashMap<u64, u64>>,
    pub(super) owner: Welcome,
    /// Nobody answers any more: the owner ended, or is stopped.
    is_over: AtomicBool,
}

/// Why there is no link.
pub(super) enum NoLink {
    /// Nobody answers, perhaps not yet.
    Nobody(io::Error),
    /// The owner is of a version that this one cannot speak with.
    Stranger(Welcome),
}

/// The owner did not answer: it is gone, or as good as.
#[derive(Debug)]
pub(super) struct Lost(pub(super) io::Error);

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl Link {
    /// Connects. The stream beside it says nothing, and ends when the owner does.
    pub(super) fn open(own_folder: &Path, process: &str, watch_files: bool) -> Result<(Self, UnixStream), NoLink> {
        let purpose = Purpose::Staying { watch_files };
        let (stream, owner) = greet(own_folder, process, purpose).map_err(NoLink::Nobody)?;
        if owner.wire != WIRE {
            return Err(NoLink::Stranger(owner));
        }
        if claim::identity(own_folder).map_err(NoLink::Nobody)? != owner.vault {
            return Err(NoLink::Nobody(io::Error::other("the owner of another vault answers")));
        }
        let link = Self {
            own_folder: own_folder.to_owned(),
            process: process.to_owned(),
            spare: Mutex::default(),
            known: Mutex::default(),
            owner,
            is_over: AtomicBool::new(false),
        };
        stream.set_read_timeout(Some(SILENCE)).map_err(NoLink::Nobody)?;
        Ok((link, stream))
    }

    /// No longer waits for answers: whoever does asks elsewhere.
    pub(super) fn give_up(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Asks something that is nobody's in particular.
    pub(super) fn ask(&self, question: &Question<'_>) -> Result<Answer, Lost> {
        Ok(self.exchange(question, Some(PATIENCE))?.answer)
    }

    /// Asks something that may take as long as it takes.
    pub(super) fn ask_patiently(&self, question: &Question<'_>) -> Result<Answer, Lost> {
        Ok(self.exchange(question, None)?.answer)
    }

    /// Asks for a session. `question` may be made twice: for an owner that must be told all of the session.
    pub(super) fn ask_for<'q>(
        &self,
        session: &Session,
        question: impl Fn(SessionHere) -> Question<'q>,
    ) -> Result<Answer, Lost> {
        let number = session.number();
        let mut whole = !self.known().contains_key(&number);
        loop {
            let known = self.known().get(&number).copied().unwrap_or_default();
            let here =
                SessionHere { number, client: session.client(), known, whole: whole.then(|| Changes::of(session, 0)) };
            let Answered { answer, session: changes } = self.exchange(&question(here), Some(PATIENCE))?;
            if matches!(answer, Answer::WhoAreYou) && !whole {
                whole = true;
                // The new copy counts its editions from the beginning.
                self.known().remove(&number);
                continue;
            }
            if let Some(changes) = changes {
                self.keep(session, changes);
            }
            return Ok(answer);
        }
    }

    /// Calls may be answered out of order: what an older answer tells is in the newer one too.
    fn keep(&self, session: &Session, changes: Changes) {
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

    fn exchange(&self, question: &Question<'_>, patience: Option<Duration>) -> Result<Answered, Lost> {
        let spare = self.spare().pop();
        let mut stream = match spare {
            Some(stream) => stream,
            // However it fails, nothing was asked yet.
            None => match greet(&self.own_folder, &self.process, Purpose::Asking) {
                Ok((stream, _)) => stream,
                Err(error) => return Err(Lost(io::Error::new(io::ErrorKind::NotConnected, error))),
            },
        };
        // Nor was a question that did not get there whole.
        send(&mut stream, question).map_err(|error| Lost(io::Error::new(io::ErrorKind::NotConnected, error)))?;
        stream.set_read_timeout(Some(LOOK_UP))?;
        let waiting =
            Waiting { stream: &stream, link: self, until: patience.map(|patience| Instant::now() + patience) };
        let answered = receive(&mut { waiting })?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let mut spare = self.spare();
        if spare.len() < SPARE {
            spare.push(stream);
        }
        Ok(answered)
    }

    fn spare(&self) -> MutexGuard<'_, Vec<UnixStream>> {
        self.spare.lock()
    }

    fn known(&self) -> MutexGuard<'_, FxHashMap<u64, u64>> {
        self.known.lock()
    }
}

/// Reads an answer, and looks up now and then whether anybody is still there to give it.
struct Waiting<'a> {
    stream: &'a UnixStream,
    link: &'a Link,
    until: Option<Instant>,
}

impl Read for Waiting<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(bytes) {
                Err(error) if is_silence(&error) => {}
                read => return read,
            }
            if self.link.is_over.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if self.until.is_some_and(|until| Instant::now() > until) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// Whether an error says only that nothing came for a while.
pub(super) fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn greet(own_folder: &Path, process: &str, purpose: Purpose) -> io::Result<(UnixStream, Welcome)> {
    let mut stream = claim::connect(own_folder)?;
    stream.set_write_timeout(Some(GREETING))?;
    stream.set_read_timeout(Some(GREETING))?;
    let (process, version) = (process.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    send(&mut stream, &Hello { wire: WIRE, version, process, purpose })?;
    let welcome = receive(&mut stream)?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok((stream, welcome))
}
