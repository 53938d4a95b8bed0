//! How a process finds its place at a vault: asks for the lock, looks for whoever has it, works alone where it must, and
//! looks again when the owner is gone.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::claim::{Asked, Card, Claim, Hold};
use super::host::Host;
use super::link::{Link, NoLink, is_silence};
use super::seat::Shared;
use super::wire::{Notice, receive};
use crate::engine::Engine;
use crate::service::Change;

/// Between two looks for an owner, at first and at most.
const SOON: Duration = Duration::from_millis(2);
pub(super) const LATER: Duration = Duration::from_millis(50);

/// How long an owner that let go of the vault, or whose lock was removed, may need to see it and to close its index. Less
/// than [`REACH`]: whoever wants to ask this process is not to go away meanwhile.
const LAST_OWNER: Duration = Duration::from_millis(2500);

/// Between two tries to open a vault that could not be opened.
const NEXT_TRY: Duration = Duration::from_secs(1);

/// How long whoever has the vault may be out of reach before this process works without it.
const REACH: Duration = Duration::from_secs(3);

/// How long what others asked may take once the process is told to end.
const CLOSE_GRACE: Duration = Duration::from_millis(400);

/// The command of every process that stays at a vault.
pub(super) const SERVE: &str = "serve";

/// Where a process is.
pub(super) enum Place {
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
pub(super) struct Held {
    /// `None` where no socket could be made.
    pub(super) host: Option<Host>,
    /// Let go of last.
    pub(super) claim: Claim,
}

impl Held {
    /// Lets other processes in, where a socket could be made for them.
    pub(super) fn host(engine: &Arc<Engine>, listener: io::Result<UnixListener>, mut claim: Claim) -> Self {
        let host = listener.and_then(|listener| Host::open(engine, listener, claim.identity()));
        if let Err(error) = &host {
            tracing::warn!("other processes cannot share this vault's index: no socket can be made: {error}");
            claim.write_card(Hold::Alone);
        }
        Self { host: host.ok(), claim }
    }
}

/// Whether a process may work without the vault's owner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Alone {
    /// It does so already.
    Never,
    /// Where nothing else will ever be possible.
    IfItMust,
    /// Where nothing else is possible now.
    Already,
}

/// What became of looking for a place once.
enum Found {
    /// The stream beside it ends with the owner.
    Place(Place, Option<UnixStream>),
    NotYet(String),
}

impl Shared {
    /// Waits for the owner's end, then finds another place, until the process ends. Without a stream this process owns the
    /// vault, or works alone for the time being and looks for a better place.
    pub(super) fn watch(self: Arc<Self>, mut stream: Option<UnixStream>) {
        loop {
            let alone = if let Some(card) = self.guard() {
                tracing::warn!("{}, and not in this one any more", of(&card));
                Alone::IfItMust
            } else {
                match &mut stream {
                    Some(stream) => self.listen(stream),
                    // One that works alone goes on so until it has something better.
                    None => Alone::Never,
                }
            };
            if matches!(*self.place(), Place::Left) {
                return;
            }
            if alone != Alone::Never {
                self.sit(Place::Between);
            }
            let (place, next) = loop {
                match self.look_until_found(alone) {
                    Ok(found) => break found,
                    Err(failure) => {
                        tracing::warn!("this process cannot take its place at the vault: {failure:#}");
                        if alone != Alone::Never {
                            self.sit(Place::Nowhere(format!("{failure:#}")));
                        }
                        std::thread::sleep(NEXT_TRY);
                    }
                }
            };
            tracing::info!("{}", place.words());
            let tools = self.sit(place);
            // What happened in between was told to nobody.
            self.listeners.tell(&Change { tools, ..Change::ANY });
            stream = next;
        }
    }

    /// Hears the owner out: it speaks of changes, and says now and then that it is there. Returns when it says something
    /// else, ends, or is silent: one that is silent is stopped, or hangs, and is not waited for.
    fn listen(&self, stream: &mut UnixStream) -> Alone {
        let alone = loop {
            match receive::<Notice>(stream) {
                Ok(Some(notice)) => self.tell(&notice.into()),
                Err(error) if is_silence(&error) => break Alone::Already,
                Ok(None) | Err(_) => break Alone::IfItMust,
            }
        };
        if let Place::Behind(link) = &*self.place() {
            link.give_up();
        }
        alone
    }

    fn tell(&self, change: &Change) {
        if *change != Change::NONE {
            self.listeners.tell(change);
        }
    }

    pub(super) fn look_until_found(&self, alone: Alone) -> anyhow::Result<(Place, Option<UnixStream>)> {
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
    fn look(&self, alone: Alone) -> anyhow::Result<Found> {
        let Some(own_folder) = &self.own_folder else { return self.alone() };
        let (why, is_for_good) = match Claim::ask(own_folder, Hold::Shared, SERVE) {
            Asked::Had(claim) => return self.own(own_folder, claim).map(|place| Found::Place(place, None)),
            Asked::Impossible(error) => {
                (format!("the vault cannot be shared with other processes: {error}"), !is_passing(&error))
            }
            Asked::Taken(card) => match self.wait_for_owner(own_folder) {
                Ok((link, stream)) => return Ok(Found::Place(Place::Behind(Arc::new(link)), Some(stream))),
                Err(NoLink::Stranger(owner)) => return Err(anyhow::anyhow!(owner.is_a_stranger())),
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

    fn wait_for_owner(&self, own_folder: &Path) -> Result<(Link, UnixStream), NoLink> {
        let is_waiting = &self.options.is_waiting;
        is_waiting.store(true, Ordering::SeqCst);
        let link = Link::open(own_folder, &self.process(), self.options.engine.watches);
        is_waiting.store(false, Ordering::SeqCst);
        link
    }

    /// Opens the vault for everybody. The socket is there first: whoever comes meanwhile waits at it.
    fn own(&self, own_folder: &Path, mut claim: Claim) -> anyhow::Result<Place> {
        let listener = claim.listen(own_folder);
        let engine = self.start(LAST_OWNER)?;
        let held = Held::host(&engine, listener, claim);
        Ok(Place::Owner(engine, Some(held)))
    }

    /// The same without an owner that is there and cannot be asked.
    fn beside(&self, why: &str) -> anyhow::Result<Found> {
        tracing::warn!("{why}; this process works with an index of its own");
        self.alone()
    }

    /// Opens the vault for this process, with an index in memory where another has the folder.
    fn alone(&self) -> anyhow::Result<Found> {
        Ok(Found::Place(Place::Owner(self.start(Duration::ZERO)?, None), None))
    }

    /// Starts the engine. Whoever had the vault before may be about to close its index still.
    fn start(&self, patience: Duration) -> anyhow::Result<Arc<Engine>> {
        let started = Instant::now();
        let open = loop {
            let open = self.source.open()?;
            if !open.is_index_taken() || started.elapsed() > patience {
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
    pub(super) fn give_up(self) {
        let Self::Owner(engine, held) = self else { return };
        if let Some(Held { host, claim }) = held {
            if let Some(host) = host {
                host.close(CLOSE_GRACE);
            }
            // An owner is one to its end, unless its lock was removed and another has one.
            claim.keep_to_the_end();
        }
        engine.rest();
    }
}

fn of(card: &Card) -> String {
    format!("the vault is open in process {} of quipu {}", card.pid, card.version)
}

/// Whether a lock may be had a moment later.
fn is_passing(error: &io::Error) -> bool {
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}
