//! Where this process sits: at the vault itself, or behind the process that does. Whoever asks need not know.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use quipu_core::{RequestKey, Session};
use quipu_tools::{Called, Completion, Fault, FaultKind, Offer, RegistryOptions, Reply, ResourcePage, ResourceText};
use rustix::io::Errno;
use serde_json::Value;

use super::claim::{self, Asked, Card, Claim, Hold};
use super::host::Host;
use super::link::{Link, Lost, NoLink, is_silence};
use super::wire::{Answer, Notice, Question, SessionHere, receive};
use crate::cli::Failure;
use crate::cli::opened::Located;
use crate::compose::{IndexPlace, WhyMemory, Wish};
use crate::engine::{Engine, EngineOptions};
use crate::mcp::{Change, Desk, Listener, Reading};

/// How long a call waits while one owner goes and the next one comes. A client gives up after a minute at the earliest.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks for an owner, at first and at most.
const SOON: Duration = Duration::from_millis(2);
const LATER: Duration = Duration::from_millis(50);

/// How long an owner that let go of the vault may need to close its index.
const LAST_OWNER: Duration = Duration::from_secs(1);

/// Between two tries to open a vault that could not be opened.
const NEXT_TRY: Duration = Duration::from_secs(1);

/// How long whoever has the vault may be out of reach before this process works without it.
const REACH: Duration = Duration::from_secs(3);

/// How long what others asked may take once the process is told to end.
const CLOSE_GRACE: Duration = Duration::from_millis(400);

/// How a process takes its seat.
#[derive(Debug, Clone)]
pub(crate) struct SeatOptions {
    pub(crate) engine: EngineOptions,
    /// What this process's clients may use.
    pub(crate) offer: RegistryOptions,
}

/// A place from which a vault can be asked.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    offer: Offer,
}

struct Shared {
    located: Located,
    /// `None` where there can be none: then nothing is shared.
    own_folder: Option<PathBuf>,
    options: SeatOptions,
    /// Names this process, and the calls it passes on.
    process: u128,
    calls: AtomicU64,
    place: Mutex<Place>,
    moved: Condvar,
    listeners: Arc<Listeners>,
}

/// Those in this process who want to know of changes.
#[derive(Default)]
struct Listeners(RwLock<Vec<Listener>>);

impl Listeners {
    fn tell(&self, change: &Change) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).iter().for_each(|listener| listener(change.clone()));
    }
}

enum Place {
    /// Between two owners.
    Between,
    /// At the vault.
    Owner(Arc<Engine>, Option<Held>),
    /// Behind another process.
    Behind(Arc<Link>),
    /// Nowhere: why not.
    Nowhere(String),
    /// The process is about to end.
    Left,
}

/// What goes with owning a vault.
struct Held {
    /// `None` where no socket could be made.
    host: Option<Host>,
    /// Let go of last.
    claim: Claim,
}

/// Whether a process may work without the vault's owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alone {
    /// It does so already.
    Never,
    /// Where nothing else will ever be possible.
    IfItMust,
    /// Where nothing else is possible now.
    Already,
}

/// Where to ask, at this moment.
enum Way {
    Here(Arc<Engine>),
    There(Arc<Link>),
}

/// What became of looking for a place once.
enum Found {
    /// The stream beside it ends with the owner.
    Place(Place, Option<UnixStream>),
    NotYet(String),
}

impl Seat {
    /// Takes a place and returns once it is known which tools there are.
    pub(crate) fn take(located: Located, options: SeatOptions) -> Result<Self, Failure> {
        let own_folder = located.own_folder()?;
        let shared = Arc::new(Shared {
            located,
            own_folder,
            options,
            process: random(),
            calls: AtomicU64::new(0),
            place: Mutex::new(Place::Between),
            moved: Condvar::new(),
            listeners: Arc::default(),
        });
        let (place, stream) = shared.look_until_found(Alone::IfItMust)?;
        let options = &shared.options.offer;
        let offer = match &place {
            Place::Owner(engine, _) => Offer::of(engine.registry(), options.clone()),
            Place::Behind(link) => Offer::among(link.owner.tools.iter().map(String::as_str), options.clone()),
            Place::Nowhere(why) => return Err(Failure::failed(why.clone())),
            Place::Between | Place::Left => unreachable!("a place was found"),
        };
        let is_settled = matches!(&place, Place::Owner(_, held) if held.is_some() || shared.own_folder.is_none());
        shared.sit(place);
        if !is_settled {
            let watching = shared.clone();
            let started = std::thread::Builder::new().name("seat".into()).spawn(move || watching.watch(stream));
            started.map_err(|error| Failure::failed(format!("cannot start to watch the vault's owner: {error}")))?;
        }
        Ok(Self { shared, offer })
    }

    /// The owner's process, where that is another.
    pub(crate) fn owner(&self) -> Option<u32> {
        match &*self.shared.place() {
            Place::Behind(link) => Some(link.owner.pid),
            _ => None,
        }
    }

    /// Gives the place up. What others asked is finished first, as far as a moment allows.
    pub(crate) fn leave(&self) {
        let place = std::mem::replace(&mut *self.shared.place(), Place::Left);
        self.shared.moved.notify_all();
        place.give_up();
    }
}

impl Desk for Seat {
    fn offer(&self) -> &Offer {
        &self.offer
    }

    fn call(&self, name: &str, arguments: Value, session: &Session) -> Called {
        if let Some(reply) = self.offer.refusal(name) {
            return Called { reply, warnings: Vec::new() };
        }
        let key = self.shared.next_key();
        let question = |session| Question::Call {
            key: key.to_string(),
            tool: name.to_owned(),
            arguments: arguments.clone(),
            session,
        };
        let answer = self.shared.ask(
            |engine, again| {
                let key = again.then_some(key);
                Answer::Called(engine.registry().call_for(key, name, arguments.clone(), session))
            },
            |link| link.ask_for(session, question),
        );
        match answer {
            Ok(Answer::Called(called)) => called,
            other => {
                let toolset = self.offer.tools().find(|tool| tool.name == name).map(|tool| tool.toolset);
                let fault = failed(other);
                let reply = toolset.map_or_else(|| Reply::Failure(fault.message.clone()), |set| fault.reply(set));
                Called { reply, warnings: Vec::new() }
            }
        }
    }

    fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, Fault> {
        let answer = self.shared.ask(
            |engine, _| Answer::Resources(engine.indexed().resources(cursor, page_size)),
            |link| link.ask(&Question::Resources { cursor: cursor.map(str::to_owned), page_size }),
        );
        match answer {
            Ok(Answer::Resources(page)) => page,
            other => Err(failed(other)),
        }
    }

    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, Fault> {
        let question = |session: SessionHere| Question::ReadResource { uri: uri.to_owned(), session };
        let answer = self.shared.ask(
            |engine, _| Answer::Resource(engine.indexed().read_resource(session, uri)),
            |link| link.ask_for(session, question),
        );
        match answer {
            Ok(Answer::Resource(read)) => read,
            other => Err(failed(other)),
        }
    }

    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion {
        let answer = self.shared.ask(
            |engine, _| Answer::Completion(engine.indexed().complete_note_id(typed, limit)),
            |link| link.ask(&Question::CompleteNoteId { typed: typed.to_owned(), limit }),
        );
        match answer {
            Ok(Answer::Completion(completion)) => completion,
            _ => Completion { values: Vec::new(), total: 0 },
        }
    }

    fn reading(&self) -> Reading {
        let answer =
            self.shared.ask(|engine, _| Answer::Reading(engine.reading()), |link| link.ask(&Question::Reading));
        match answer {
            Ok(Answer::Reading(reading)) => reading,
            _ => Reading { files: 0, is_over: false },
        }
    }

    fn on_change(&self, listener: Listener) {
        self.shared.listeners.0.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }
}

/// Nobody could be asked, in the words of a failed call.
fn failed(answer: Result<Answer, String>) -> Fault {
    let message = match answer {
        Err(message) | Ok(Answer::Failed(message)) => message,
        Ok(other) => {
            tracing::error!(?other, "the vault's owner answered something else");
            "the process that has this vault open answered something else; end it, or start this one again".to_owned()
        }
    };
    Fault::new(FaultKind::Provider, message)
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    u128::from_le_bytes(bytes)
}

impl Shared {
    /// A key that no other call of any process has.
    fn next_key(&self) -> RequestKey {
        RequestKey(self.process.wrapping_add(u128::from(self.calls.fetch_add(1, Ordering::Relaxed))))
    }

    fn process(&self) -> String {
        format!("{:032x}", self.process)
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sit(&self, place: Place) {
        if let Place::Owner(engine, _) = &place {
            let listeners = self.listeners.clone();
            engine.on_change(Box::new(move |change| listeners.tell(&change)));
        }
        let mut seat = self.place();
        // Whoever left does not come back.
        let before = if matches!(*seat, Place::Left) { place } else { std::mem::replace(&mut *seat, place) };
        drop(seat);
        self.moved.notify_all();
        before.give_up();
    }

    /// Asks here or there, and again where the owner went away meanwhile: with the same key, so that what was done is done
    /// once. Whoever asks here is told whether it was asked elsewhere before.
    fn ask(
        &self,
        here: impl Fn(&Engine, bool) -> Answer,
        there: impl Fn(&Link) -> Result<Answer, Lost>,
    ) -> Result<Answer, String> {
        let until = Instant::now() + PATIENCE;
        let mut again = false;
        loop {
            match self.way(until)? {
                Way::Here(engine) => return Ok(here(&engine, again)),
                Way::There(link) => match there(&link) {
                    Ok(answer) => return Ok(answer),
                    Err(Lost(error)) if is_late(&error) => {
                        return Err(format!(
                            "the process that has this vault open (process {}) does not answer; whether the call was \
                             carried out is not known. End that process if it hangs, then look and try again",
                            link.owner.pid
                        ));
                    }
                    Err(Lost(error)) => {
                        tracing::debug!(%error, "no answer from the vault's owner");
                        again = true;
                        self.wait_behind(&link, until)?;
                    }
                },
            }
        }
    }

    fn way(&self, until: Instant) -> Result<Way, String> {
        let mut place = self.place();
        loop {
            match &*place {
                Place::Owner(engine, _) => return Ok(Way::Here(engine.clone())),
                Place::Behind(link) => return Ok(Way::There(link.clone())),
                Place::Nowhere(why) => return Err(why.clone()),
                Place::Left => return Err("the server is about to end".to_owned()),
                Place::Between => {}
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Err(
                    "no process has this vault open, and this one could not open it; the log says why. Try again"
                        .into(),
                );
            };
            place = self.moved.wait_timeout(place, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for another place to ask at: the watching thread finds one when the owner is gone. If it is not, the
    /// connection alone was lost, and a moment later another is tried.
    fn wait_behind(&self, link: &Arc<Link>, until: Instant) -> Result<(), String> {
        if Instant::now() > until {
            let pid = link.owner.pid;
            return Err(format!("the process that has this vault open (process {pid}) cannot be reached; try again"));
        }
        let is_behind = |place: &mut Place| matches!(place, Place::Behind(at) if Arc::ptr_eq(at, link));
        drop(self.moved.wait_timeout_while(self.place(), LATER, is_behind));
        Ok(())
    }

    /// Waits for the owner's end, then finds another place, until that is at the vault, for everybody, or the process ends.
    /// Without a stream this process works alone for the time being, and looks for a better place.
    fn watch(self: Arc<Self>, mut stream: Option<UnixStream>) {
        loop {
            let is_stopped = stream.as_mut().is_some_and(|stream| self.listen(stream));
            if matches!(*self.place(), Place::Left) {
                return;
            }
            if stream.is_some() {
                self.sit(Place::Between);
            }
            let (place, next) = loop {
                // One that works alone goes on so until it has something better.
                let alone = match stream {
                    Some(_) if is_stopped => Alone::Already,
                    Some(_) => Alone::IfItMust,
                    None => Alone::Never,
                };
                match self.look_until_found(alone) {
                    Ok(found) => break found,
                    Err(failure) => {
                        tracing::warn!("this process cannot take its place at the vault: {failure}");
                        if stream.is_some() {
                            self.sit(Place::Nowhere(failure.to_string()));
                        }
                        std::thread::sleep(NEXT_TRY);
                    }
                }
            };
            tracing::info!("{}", place.words());
            let is_settled = matches!(place, Place::Owner(_, Some(_)) | Place::Left);
            self.sit(place);
            // What happened in between was told to nobody.
            self.listeners.tell(&Change::ANY);
            if is_settled {
                return;
            }
            stream = next;
        }
    }

    /// Hears the owner out: it speaks of changes, and says now and then that it is there. Returns when it says something
    /// else, ends, or is silent, and whether it was that: then it is stopped, or hangs.
    fn listen(&self, stream: &mut UnixStream) -> bool {
        let is_stopped = loop {
            match receive::<Notice>(stream) {
                Ok(Some(notice)) => self.tell(&notice.into()),
                Ok(None) => break false,
                Err(error) => break is_silence(&error),
            }
        };
        if let Place::Behind(link) = &*self.place() {
            link.give_up();
        }
        is_stopped
    }

    fn tell(&self, change: &Change) {
        if *change != Change::NONE {
            self.listeners.tell(change);
        }
    }

    fn look_until_found(&self, alone: Alone) -> Result<(Place, Option<UnixStream>), Failure> {
        let (started, mut pause) = (Instant::now(), SOON);
        loop {
            let is_patient = alone == Alone::Never || started.elapsed() < REACH;
            let why = match self.look(if is_patient { alone } else { Alone::Already })? {
                Found::Place(place, stream) => return Ok((place, stream)),
                Found::NotYet(why) => why,
            };
            if matches!(*self.place(), Place::Left) {
                return Ok((Place::Left, None));
            }
            tracing::trace!("no place yet: {why}");
            std::thread::sleep(pause);
            pause = (pause * 2).min(if alone == Alone::Never { NEXT_TRY } else { LATER });
        }
    }

    /// Looks for a place once. Where the vault cannot be shared this process works alone, if it may.
    fn look(&self, alone: Alone) -> Result<Found, Failure> {
        let Some(own_folder) = &self.own_folder else { return self.alone() };
        let (why, is_for_good) = match Claim::ask(own_folder, Hold::Shared) {
            Asked::Had(claim) => return self.own(own_folder, claim).map(|place| Found::Place(place, None)),
            Asked::Impossible(error) => {
                (format!("the vault cannot be shared with other processes: {error}"), !is_passing(&error))
            }
            Asked::Taken(card) => match Link::open(own_folder, &self.process(), self.options.engine.watches) {
                Ok((link, stream)) => return Ok(Found::Place(Place::Behind(Arc::new(link)), Some(stream))),
                Err(NoLink::Stranger(owner)) => return Err(Failure::failed(owner.is_a_stranger())),
                Err(NoLink::Nobody(_)) if card.hold == Hold::Alone => (of(&card), true),
                Err(NoLink::Nobody(error)) => (format!("{} and cannot be reached: {error}", of(&card)), false),
            },
        };
        match alone {
            Alone::Already => self.beside(&why),
            Alone::IfItMust if is_for_good => self.beside(&why),
            Alone::IfItMust | Alone::Never => Ok(Found::NotYet(why)),
        }
    }

    /// Opens the vault for everybody. The socket is there first: whoever comes meanwhile waits at it.
    fn own(&self, own_folder: &Path, mut claim: Claim) -> Result<Place, Failure> {
        let listener = claim.listen(own_folder);
        let engine = self.start(LAST_OWNER)?;
        let hosted = listener.and_then(|listener| Host::open(&engine, listener, claim::identity(own_folder)?));
        let host = match hosted {
            Ok(host) => Some(host),
            Err(error) => {
                tracing::warn!("other processes cannot share this vault's index: no socket can be made: {error}");
                if let Err(error) = claim.write_card(Hold::Alone) {
                    tracing::debug!(%error, "who has the vault is not written down");
                }
                None
            }
        };
        Ok(Place::Owner(engine, Some(Held { host, claim })))
    }

    /// The same without an owner that is there and cannot be asked.
    fn beside(&self, why: &str) -> Result<Found, Failure> {
        tracing::warn!("{why}; this process works with an index of its own");
        self.alone()
    }

    /// Opens the vault for this process, with an index in memory where another has the folder.
    fn alone(&self) -> Result<Found, Failure> {
        Ok(Found::Place(Place::Owner(self.start(Duration::ZERO)?, None), None))
    }

    /// Starts the engine. Whoever had the vault before may be about to close its index still.
    fn start(&self, patience: Duration) -> Result<Arc<Engine>, Failure> {
        let started = Instant::now();
        let open = loop {
            let open = self.located.open(Wish::Keep)?;
            if open.index != IndexPlace::Memory(WhyMemory::Owned) || started.elapsed() > patience {
                break open;
            }
            drop(open);
            std::thread::sleep(LATER);
        };
        Ok(Arc::new(Engine::start(open, self.options.engine)?))
    }
}

impl Place {
    fn words(&self) -> &'static str {
        match self {
            Self::Owner(_, Some(_)) => "this process owns the vault now",
            Self::Owner(_, None) => "this process works beside the vault's owner",
            Self::Behind(_) => "another process owns the vault now",
            Self::Between | Self::Nowhere(_) | Self::Left => "nobody owns the vault now",
        }
    }

    /// Brings the engine to rest, where there is one. What others asked is finished first, as far as a moment allows.
    fn give_up(self) {
        let Self::Owner(engine, held) = self else { return };
        if let Some(Held { host, claim }) = held {
            if let Some(host) = host {
                host.close(CLOSE_GRACE);
            }
            // An owner is one to its end.
            claim.keep_to_the_end();
        }
        engine.rest();
    }
}

fn of(card: &Card) -> String {
    format!("the vault is open in process {} of quipu {}", card.pid, card.version)
}

/// Whether a lock may be had a moment later.
fn is_passing(error: &std::io::Error) -> bool {
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
