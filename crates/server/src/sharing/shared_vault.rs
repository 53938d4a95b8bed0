//! The vault as this process's clients use it: open here, or in the process that owns it. Callers need not know which.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use quipu_core::model::VaultPath;
use quipu_core::ports::Image;
use quipu_core::{RequestKey, Session};
use quipu_tools::{
    Completion, Offer, RegistryOptions, ResourcePage, ResourceText, ToolError, ToolErrorKind, ToolInfo, ToolResponse,
    WholeGraph,
};
use serde_json::Value;

use super::new_key;
use super::owner_client::{OwnerClient, OwnerLost, is_timeout};
use super::ownership::{Fallback, LONGEST_PAUSE, Ownership};
use super::wire::{OwnerRequest, OwnerResponse, SessionCopy};
use crate::engine::{Engine, EngineOptions};
use crate::served_vault::VaultSource;
use crate::service::{IndexProgress, Report, TrailPage, VaultChange, VaultChangeListener, VaultService};

/// How long a call waits for the next owner when one exits. Clients time out after a minute at the earliest.
const OWNER_CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// How a process opens the vault.
#[derive(Debug, Clone)]
pub struct SharedVaultOptions {
    pub engine: EngineOptions,
    /// The tools that this process's clients may use.
    pub offer: RegistryOptions,
    /// True while this process waits for the owner.
    pub is_waiting: Arc<AtomicBool>,
}

/// One vault, wherever it is open.
pub struct SharedVault {
    shared: Arc<SharedVaultState>,
}

/// Shared with the thread that watches the owner.
pub(super) struct SharedVaultState {
    pub(super) source: Box<dyn VaultSource>,
    /// `None` where it cannot be created: then nothing is shared.
    pub(super) own_folder: Option<PathBuf>,
    pub(super) options: SharedVaultOptions,
    /// Identifies this process.
    process: u128,
    ownership: Mutex<Ownership>,
    /// The tools of the vault that this process's clients may use.
    offer: Mutex<Arc<Offer>>,
    pub(super) ownership_changed: Condvar,
    pub(super) listeners: Arc<VaultChangeListeners>,
}

/// Receivers of changes in this process.
#[derive(Default)]
pub(super) struct VaultChangeListeners(RwLock<Vec<VaultChangeListener>>);

impl VaultChangeListeners {
    pub(super) fn tell(&self, change: &VaultChange) {
        self.0.read().iter().for_each(|listener| listener(change.clone()));
    }
}

/// Where to send a request now.
enum Route {
    Here(Arc<Engine>),
    There(Arc<OwnerClient>),
}

/// The attempts of one request, until an owner answers or the time is up. All have the same key, so that it takes effect once.
struct Attempts<'a> {
    shared: &'a SharedVaultState,
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
    fn lost(&mut self, owner: &Arc<OwnerClient>, OwnerLost(error): &OwnerLost) -> Result<(), String> {
        if is_timeout(error) {
            return Err(format!(
                "the owner process (process {}) does not answer; the call may \
                 have taken effect. End that process if it hangs, then check and retry",
                owner.owner.pid
            ));
        }
        tracing::debug!(%error, "no answer from the owner process");
        self.is_retry = true;
        // An owner may run for long before it is killed; the next one gets the whole time again.
        self.until += self.started.elapsed();
        self.shared.wait_for_next_owner(owner, self.until)
    }
}

impl SharedVault {
    /// Opens the vault here or connects to its owner.
    pub fn open(source: Box<dyn VaultSource>, options: SharedVaultOptions) -> anyhow::Result<Self> {
        let own_folder = source.own_folder()?;
        let shared = Arc::new(SharedVaultState {
            source,
            own_folder,
            process: new_key().0,
            ownership: Mutex::new(Ownership::Undecided),
            offer: Mutex::new(Arc::new(Offer::among([], options.offer.clone()))),
            ownership_changed: Condvar::new(),
            listeners: Arc::default(),
            options,
        });
        let (ownership, stream) = shared.find_ownership(Fallback::IfPermanent)?;
        shared.set_ownership(ownership);
        if shared.own_folder.is_some() {
            let watching = shared.clone();
            let started = std::thread::Builder::new().name("owner-watch".into()).spawn(move || watching.watch(stream));
            started.context("while starting to watch who owns the vault")?;
        }
        Ok(Self { shared })
    }

    /// The owner's process id, if that is another process.
    pub fn owner(&self) -> Option<u32> {
        match &*self.shared.ownership() {
            Ownership::Peer(owner) => Some(owner.owner.pid),
            _ => None,
        }
    }

    /// Closes the vault. Requests of other processes get a moment to finish.
    pub fn close(&self) {
        let ownership = std::mem::replace(&mut *self.shared.ownership(), Ownership::Closed);
        self.shared.ownership_changed.notify_all();
        ownership.close();
    }
}

impl VaultService for SharedVault {
    fn offer(&self) -> Arc<Offer> {
        self.shared.offer()
    }

    fn call(
        &self,
        tool: &'static ToolInfo,
        arguments: Value,
        session: &Session,
        given: Option<RequestKey>,
    ) -> ToolResponse {
        let key = given.unwrap_or_else(new_key);
        let mut attempts = self.shared.attempts();
        loop {
            let answer = match attempts.route() {
                Ok(Route::Here(engine)) => {
                    return engine.call(tool, arguments, session, given.or(attempts.is_retry.then_some(key)));
                }
                Ok(Route::There(owner)) => {
                    let request = |session| OwnerRequest::CallTool {
                        key: key.to_string(),
                        tool: tool.name.to_owned(),
                        arguments: Cow::Borrowed(&arguments),
                        session,
                    };
                    match owner.ask_for(session, request) {
                        Ok(OwnerResponse::Tool(response)) => return response,
                        Ok(other) => Ok(other),
                        Err(lost) => match attempts.lost(&owner, &lost) {
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
            |engine| OwnerResponse::Resources(engine.indexed().resources(cursor, page_size)),
            |owner| owner.ask(&OwnerRequest::Resources { cursor: cursor.map(str::to_owned), page_size }),
        );
        match answer {
            Ok(OwnerResponse::Resources(page)) => page,
            other => Err(failed(other)),
        }
    }

    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError> {
        let request = |session: SessionCopy| OwnerRequest::ReadResource { uri: uri.to_owned(), session };
        let answer = self.shared.ask(
            |engine| OwnerResponse::Resource(engine.indexed().read_resource(session, uri)),
            |owner| owner.ask_for(session, request),
        );
        match answer {
            Ok(OwnerResponse::Resource(read)) => read,
            other => Err(failed(other)),
        }
    }

    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion {
        let answer = self.shared.ask(
            |engine| OwnerResponse::Completion(engine.indexed().complete_note_id(typed, limit)),
            |owner| owner.ask(&OwnerRequest::CompleteNoteId { typed: typed.to_owned(), limit }),
        );
        match answer {
            Ok(OwnerResponse::Completion(completion)) => completion,
            _ => Completion { values: Vec::new(), total: 0, lag: None },
        }
    }

    fn progress(&self) -> IndexProgress {
        let answer = self.shared.ask(
            |engine| OwnerResponse::IndexProgress(engine.progress()),
            |owner| owner.ask(&OwnerRequest::IndexProgress),
        );
        match answer {
            Ok(OwnerResponse::IndexProgress(progress)) => progress,
            _ => IndexProgress { files: 0, is_over: false },
        }
    }

    fn whole_graph(&self) -> Result<WholeGraph, ToolError> {
        let answer = self.shared.ask(
            |engine| OwnerResponse::WholeGraph(Box::new(engine.indexed().whole_graph())),
            |owner| owner.ask(&OwnerRequest::WholeGraph),
        );
        match answer {
            Ok(OwnerResponse::WholeGraph(graph)) => *graph,
            other => Err(failed(other)),
        }
    }

    fn image(&self, note: &VaultPath, target: &str) -> Result<Option<Image>, ToolError> {
        let read = self.shared.source.image(note, target);
        read.map_err(|error| ToolError::new(ToolErrorKind::Provider, format!("{error:#}")))
    }

    fn report(&self) -> Result<Report, ToolError> {
        let answer = self
            .shared
            .ask(|engine| OwnerResponse::Report(Box::new(engine.report())), |owner| owner.ask(&OwnerRequest::Report));
        match answer {
            Ok(OwnerResponse::Report(report)) => *report,
            other => Err(failed(other)),
        }
    }

    fn trail(&self, from: u64) -> Result<TrailPage, ToolError> {
        let answer = self
            .shared
            .ask(|engine| OwnerResponse::Trail(engine.trail(from)), |owner| owner.ask(&OwnerRequest::Trail { from }));
        match answer {
            Ok(OwnerResponse::Trail(page)) => Ok(page),
            other => Err(failed(other)),
        }
    }

    fn on_change(&self, listener: VaultChangeListener) {
        self.shared.listeners.0.write().push(listener);
    }
}

/// The error of a request that no owner answered.
fn failed(answer: Result<OwnerResponse, String>) -> ToolError {
    let message = match answer {
        Err(message) | Ok(OwnerResponse::Failed(message)) => message,
        Ok(other) => {
            tracing::error!(?other, "the owner process sent an unexpected response");
            "the owner process sent an unexpected response; end it, or restart this one".to_owned()
        }
    };
    ToolError::new(ToolErrorKind::Provider, message)
}

impl SharedVaultState {
    pub(super) fn process(&self) -> String {
        format!("{:032x}", self.process)
    }

    pub(super) fn ownership(&self) -> MutexGuard<'_, Ownership> {
        self.ownership.lock()
    }

    fn offer(&self) -> Arc<Offer> {
        self.offer.lock().clone()
    }

    /// Updates the tools on offer. Returns whether they changed.
    fn update_offer(&self, ownership: &Ownership) -> bool {
        let options = self.options.offer.clone();
        let offer = match ownership {
            Ownership::Owner(engine, _) => Offer::of(engine.registry(), options),
            Ownership::Peer(owner) => Offer::among(owner.owner.tools.iter().map(String::as_str), options),
            Ownership::Undecided | Ownership::Failed(_) | Ownership::Closed => return false,
        };
        let mut current = self.offer.lock();
        let is_same = current.tools().map(|tool| tool.name).eq(offer.tools().map(|tool| tool.name));
        // Even so, the owner may have other tools in the toolsets that are not offered.
        *current = Arc::new(offer);
        !is_same
    }

    /// Changes the ownership. Returns whether the tools on offer changed.
    pub(super) fn set_ownership(&self, ownership: Ownership) -> bool {
        let has_other_tools = self.update_offer(&ownership);
        if let Ownership::Owner(engine, _) = &ownership {
            let listeners = self.listeners.clone();
            engine.on_change(Box::new(move |change| listeners.tell(&change)));
        }
        let mut current = self.ownership();
        // A closed vault stays closed.
        let before =
            if matches!(*current, Ownership::Closed) { ownership } else { std::mem::replace(&mut *current, ownership) };
        drop(current);
        self.ownership_changed.notify_all();
        before.close();
        has_other_tools
    }

    fn attempts(&self) -> Attempts<'_> {
        Attempts {
            shared: self,
            until: Instant::now() + OWNER_CHANGE_TIMEOUT,
            started: Instant::now(),
            is_retry: false,
        }
    }

    /// Asks this process or the owner, and again if the owner exits meanwhile.
    fn ask(
        &self,
        here: impl Fn(&Engine) -> OwnerResponse,
        there: impl Fn(&OwnerClient) -> Result<OwnerResponse, OwnerLost>,
    ) -> Result<OwnerResponse, String> {
        let mut attempts = self.attempts();
        loop {
            match attempts.route()? {
                Route::Here(engine) => return Ok(here(&engine)),
                Route::There(owner) => match there(&owner) {
                    Ok(answer) => return Ok(answer),
                    Err(lost) => attempts.lost(&owner, &lost)?,
                },
            }
        }
    }

    fn route(&self, until: Instant) -> Result<Route, String> {
        let mut ownership = self.ownership();
        loop {
            match &*ownership {
                Ownership::Owner(engine, _) => return Ok(Route::Here(engine.clone())),
                Ownership::Peer(owner) => return Ok(Route::There(owner.clone())),
                Ownership::Failed(why) => return Err(why.clone()),
                Ownership::Closed => return Err("the server is shutting down; connect again".to_owned()),
                Ownership::Undecided => {}
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Err(
                    "cannot open the vault: no process owns it, and this one could not; retry, and see the log \
                            for the reason"
                        .into(),
                );
            };
            self.ownership_changed.wait_for(&mut ownership, left);
        }
    }

    /// Waits until the watching thread has found the next owner. If the owner is still there, only the connection was lost, and
    /// the next attempt opens another.
    fn wait_for_next_owner(&self, owner: &Arc<OwnerClient>, until: Instant) -> Result<(), String> {
        if Instant::now() > until {
            let pid = owner.owner.pid;
            return Err(format!("cannot connect to the owner process (process {pid}); retry"));
        }
        let is_same = |ownership: &mut Ownership| matches!(ownership, Ownership::Peer(at) if Arc::ptr_eq(at, owner));
        self.ownership_changed.wait_while_for(&mut self.ownership(), is_same, LONGEST_PAUSE);
        Ok(())
    }
}
