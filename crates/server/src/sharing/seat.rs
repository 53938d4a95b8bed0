//! Where this process sits: at the vault itself, or behind the process that does. Whoever asks need not know.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use quipu_core::Session;
use quipu_tools::{
    Completion, Offer, RegistryOptions, ResourcePage, ResourceText, ToolError, ToolErrorKind, ToolInfo, ToolResponse,
};
use serde_json::Value;

use super::link::{Link, Lost, is_silence};
use super::new_key;
use super::place::{Alone, LATER, Place};
use super::wire::{Answer, Question, SessionHere};
use crate::engine::{Engine, EngineOptions};
use crate::served_vault::VaultSource;
use crate::service::{Change, ChangeListener, IndexProgress, VaultService};

/// How long a call waits while one owner goes and the next one comes. A client gives up after a minute at the earliest.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a process takes its seat.
#[derive(Debug, Clone)]
pub struct SeatOptions {
    pub engine: EngineOptions,
    /// What this process's clients may use.
    pub offer: RegistryOptions,
    /// On while another process, which has the vault, is waited for.
    pub is_waiting: Arc<AtomicBool>,
}

/// A place from which a vault can be asked.
pub struct Seat {
    shared: Arc<Shared>,
}

/// What the seat and the thread that watches over it have in common.
pub(super) struct Shared {
    pub(super) source: Box<dyn VaultSource>,
    /// `None` where there can be none: then nothing is shared.
    pub(super) own_folder: Option<PathBuf>,
    pub(super) options: SeatOptions,
    /// Names this process.
    process: u128,
    place: Mutex<Place>,
    /// What this process's clients may use of the tools that the vault has at this place.
    offer: Mutex<Arc<Offer>>,
    pub(super) moved: Condvar,
    pub(super) listeners: Arc<Listeners>,
}

/// Those in this process who want to know of changes.
#[derive(Default)]
pub(super) struct Listeners(RwLock<Vec<ChangeListener>>);

impl Listeners {
    pub(super) fn tell(&self, change: &Change) {
        self.0.read().iter().for_each(|listener| listener(change.clone()));
    }
}

/// Where to ask, at this moment.
enum Route {
    Here(Arc<Engine>),
    There(Arc<Link>),
}

/// The attempts to ask one thing, until an owner answers or the time is up. With one key for all of them, what was done is
/// done once.
struct Attempts<'a> {
    shared: &'a Shared,
    until: Instant,
    /// When the last attempt began.
    started: Instant,
    /// Whether another process was asked before.
    is_retry: bool,
}

impl Attempts<'_> {
    fn route(&mut self) -> Result<Route, String> {
        let route = self.shared.route(self.until)?;
        self.started = Instant::now();
        Ok(route)
    }

    /// Waits for the next owner after one did not answer.
    fn lost(&mut self, link: &Arc<Link>, Lost(error): &Lost) -> Result<(), String> {
        if is_silence(error) {
            return Err(format!(
                "the process that has this vault open (process {}) does not answer; whether the call was \
                 carried out is not known. End that process if it hangs, then look and try again",
                link.owner.pid
            ));
        }
        tracing::debug!(%error, "no answer from the vault's owner");
        self.is_retry = true;
        // An owner may work for long before it is killed, and the next one has all the time again.
        self.until += self.started.elapsed();
        self.shared.wait_behind(link, self.until)
    }
}

impl Seat {
    /// Takes a place and returns once it is known which tools there are.
    pub fn take(source: Box<dyn VaultSource>, options: SeatOptions) -> anyhow::Result<Self> {
        let own_folder = source.own_folder()?;
        let shared = Arc::new(Shared {
            source,
            own_folder,
            process: new_key().0,
            place: Mutex::new(Place::Between),
            offer: Mutex::new(Arc::new(Offer::among([], options.offer.clone()))),
            moved: Condvar::new(),
            listeners: Arc::default(),
            options,
        });
        let (place, stream) = shared.look_until_found(Alone::IfItMust)?;
        shared.sit(place);
        if shared.own_folder.is_some() {
            let watching = shared.clone();
            let started = std::thread::Builder::new().name("seat".into()).spawn(move || watching.watch(stream));
            started.context("while starting to watch who owns the vault")?;
        }
        Ok(Self { shared })
    }

    /// The owner's process, where that is another.
    pub fn owner(&self) -> Option<u32> {
        match &*self.shared.place() {
            Place::Behind(link) => Some(link.owner.pid),
            _ => None,
        }
    }

    /// Gives the place up. What others asked is finished first, as far as a moment allows.
    pub fn leave(&self) {
        let place = std::mem::replace(&mut *self.shared.place(), Place::Left);
        self.shared.moved.notify_all();
        place.give_up();
    }
}

impl VaultService for Seat {
    fn offer(&self) -> Arc<Offer> {
        self.shared.offer()
    }

    fn call(&self, tool: &'static ToolInfo, arguments: Value, session: &Session) -> ToolResponse {
        let key = new_key();
        let mut attempts = self.shared.attempts();
        loop {
            let answer = match attempts.route() {
                Ok(Route::Here(engine)) => {
                    return engine.registry().call(tool, arguments, session, attempts.is_retry.then_some(key));
                }
                Ok(Route::There(link)) => {
                    let question = |session| Question::Call {
                        key: key.to_string(),
                        tool: tool.name.to_owned(),
                        arguments: Cow::Borrowed(&arguments),
                        session,
                    };
                    match link.ask_for(session, question) {
                        Ok(Answer::Called(response)) => return response,
                        Ok(other) => Ok(other),
                        Err(lost) => match attempts.lost(&link, &lost) {
                            Ok(()) => continue,
                            Err(message) => Err(message),
                        },
                    }
                }
                Err(message) => Err(message),
            };
            return failed(answer).reply(tool.toolset).into();
        }
    }

    fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, ToolError> {
        let answer = self.shared.ask(
            |engine| Answer::Resources(engine.indexed().resources(cursor, page_size)),
            |link| link.ask(&Question::Resources { cursor: cursor.map(str::to_owned), page_size }),
        );
        match answer {
            Ok(Answer::Resources(page)) => page,
            other => Err(failed(other)),
        }
    }

    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError> {
        let question = |session: SessionHere| Question::ReadResource { uri: uri.to_owned(), session };
        let answer = self.shared.ask(
            |engine| Answer::Resource(engine.indexed().read_resource(session, uri)),
            |link| link.ask_for(session, question),
        );
        match answer {
            Ok(Answer::Resource(read)) => read,
            other => Err(failed(other)),
        }
    }

    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion {
        let answer = self.shared.ask(
            |engine| Answer::Completion(engine.indexed().complete_note_id(typed, limit)),
            |link| link.ask(&Question::CompleteNoteId { typed: typed.to_owned(), limit }),
        );
        match answer {
            Ok(Answer::Completion(completion)) => completion,
            _ => Completion { values: Vec::new(), total: 0 },
        }
    }

    fn progress(&self) -> IndexProgress {
        let answer = self
            .shared
            .ask(|engine| Answer::IndexProgress(engine.progress()), |link| link.ask(&Question::IndexProgress));
        match answer {
            Ok(Answer::IndexProgress(progress)) => progress,
            _ => IndexProgress { files: 0, is_over: false },
        }
    }

    fn on_change(&self, listener: ChangeListener) {
        self.shared.listeners.0.write().push(listener);
    }
}

/// Nobody could be asked, in the words of a failed call.
fn failed(answer: Result<Answer, String>) -> ToolError {
    let message = match answer {
        Err(message) | Ok(Answer::Failed(message)) => message,
        Ok(other) => {
            tracing::error!(?other, "the vault's owner answered something else");
            "the process that has this vault open answered something else; end it, or start this one again".to_owned()
        }
    };
    ToolError::new(ToolErrorKind::Provider, message)
}

impl Shared {
    pub(super) fn process(&self) -> String {
        format!("{:032x}", self.process)
    }

    pub(super) fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock()
    }

    fn offer(&self) -> Arc<Offer> {
        self.offer.lock().clone()
    }

    /// Offers what the vault has at a place. Says whether that is something else than before.
    fn renew_offer(&self, place: &Place) -> bool {
        let options = self.options.offer.clone();
        let offer = match place {
            Place::Owner(engine, _) => Offer::of(engine.registry(), options),
            Place::Behind(link) => Offer::among(link.owner.tools.iter().map(String::as_str), options),
            Place::Between | Place::Nowhere(_) | Place::Left => return false,
        };
        let mut current = self.offer.lock();
        let is_same = current.tools().map(|tool| tool.name).eq(offer.tools().map(|tool| tool.name));
        if !is_same {
            *current = Arc::new(offer);
        }
        !is_same
    }

    /// Takes a place. Says whether other tools are offered there.
    pub(super) fn sit(&self, place: Place) -> bool {
        let has_other_tools = self.renew_offer(&place);
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
        has_other_tools
    }

    fn attempts(&self) -> Attempts<'_> {
        Attempts { shared: self, until: Instant::now() + PATIENCE, started: Instant::now(), is_retry: false }
    }

    /// Asks this process or the owner, and again where the owner ended meanwhile.
    fn ask(
        &self,
        here: impl Fn(&Engine) -> Answer,
        there: impl Fn(&Link) -> Result<Answer, Lost>,
    ) -> Result<Answer, String> {
        let mut attempts = self.attempts();
        loop {
            match attempts.route()? {
                Route::Here(engine) => return Ok(here(&engine)),
                Route::There(link) => match there(&link) {
                    Ok(answer) => return Ok(answer),
                    Err(lost) => attempts.lost(&link, &lost)?,
                },
            }
        }
    }

    fn route(&self, until: Instant) -> Result<Route, String> {
        let mut place = self.place();
        loop {
            match &*place {
                Place::Owner(engine, _) => return Ok(Route::Here(engine.clone())),
                Place::Behind(link) => return Ok(Route::There(link.clone())),
                Place::Nowhere(why) => return Err(why.clone()),
                Place::Left => return Err("the server is shutting down".to_owned()),
                Place::Between => {}
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Err(
                    "no process has this vault open, and this one could not open it; the log says why. Try again"
                        .into(),
                );
            };
            self.moved.wait_for(&mut place, left);
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
        self.moved.wait_while_for(&mut self.place(), is_behind, LATER);
        Ok(())
    }
}
