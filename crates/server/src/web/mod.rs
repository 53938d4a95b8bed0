//! The explorer: the page for people, and the few routes it reads from. It is a client like any other: the same tools, through the
//! same service and its checks. Beside them it asks for the whole graph, an overview and the trail of calls.
//!
//! The page itself is served to everyone and holds nothing of the vault. Data is given for a token only, even on loopback: a token of
//! `quipu token`, or a session that the one-time secret of `quipu open` was exchanged for. There are no cookies, so another site
//! that a browser has open can send nothing in the user's name.

mod answers;
mod assets;
mod events;
mod graph;
mod images;
mod layouts;
mod sessions;
mod status;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Limited};
use parking_lot::Mutex;
use quipu_core::Session;
use serde::Deserialize;
use serde_json::json;

use crate::service::{Caller, EXPLORER, RequestPermit, Service};
use answers::{WebRefusal, json_answer};
use graph::LastGraph;
use layouts::Layouts;
pub use sessions::ExplorerSessions;
pub(crate) use sessions::{SESSION_ID, SESSION_PREFIX};

/// Callers whose sessions are kept: what each was shown, by which writes are guarded.
const MAX_SESSIONS: usize = 64;

/// The longest body of a request for a session.
const MAX_SECRET_BYTES: usize = 1024;

/// How long that request may take. It needs no token, so a slow client must not keep its connection.
const SECRET_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it is checked whether the vault is indexed, before the graph is laid out.
const INDEX_CHECK: Duration = Duration::from_millis(200);

/// How often the state of the vault is sampled.
const SAMPLE: Duration = Duration::from_secs(60);

/// The shared state of the routes.
pub(crate) struct Explorer {
    service: Arc<Service>,
    /// The name of the vault, for the title.
    vault: String,
    /// The folder, for links that open a note in an editor; `None` for notes in a database.
    root: Option<PathBuf>,
    callers: ShownSessions,
    layouts: Arc<Layouts>,
    last_graph: LastGraph,
    started: Instant,
}

impl Explorer {
    pub(crate) fn new(service: Arc<Service>, vault: String, root: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            service,
            vault,
            layouts: Layouts::new(root.as_deref()),
            root,
            callers: ShownSessions::default(),
            last_graph: LastGraph::default(),
            started: Instant::now(),
        })
    }

    /// Lays the graph out as soon as the vault is indexed, so that the first visit does not wait for it.
    pub(crate) async fn lay_out_ahead(self: Arc<Self>) {
        loop {
            let explorer = self.clone();
            let asked = tokio::task::spawn_blocking(move || {
                let is_indexed = explorer.service.vault().report().is_ok_and(|report| report.indexed);
                is_indexed.then(|| graph::prepare(&explorer))
            });
            match asked.await {
                Ok(None) => tokio::time::sleep(INDEX_CHECK).await,
                Ok(Some(())) | Err(_) => return,
            }
        }
    }

    /// Asks for the state of the vault once a minute, so that the plots of the last hour have no gaps while no page is open.
    pub(crate) async fn sample(self: Arc<Self>) {
        let mut minutes = tokio::time::interval(SAMPLE);
        minutes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            minutes.tick().await;
            let explorer = self.clone();
            let asked = tokio::task::spawn_blocking(move || explorer.service.vault().report().err());
            if let Ok(Some(error)) = asked.await {
                tracing::debug!(message = error.message, "the state of the vault is not sampled");
            }
        }
    }

    /// The record of what a caller was shown.
    fn session(&self, caller: &Caller) -> Arc<Session> {
        self.callers.session(&caller.id)
    }
}

/// The sessions of callers, the latest used last.
#[derive(Default)]
struct ShownSessions(Mutex<VecDeque<(Arc<str>, Arc<Session>)>>);

impl ShownSessions {
    /// The session of a caller. At the limit, the one that was used longest ago is forgotten.
    fn session(&self, caller: &Arc<str>) -> Arc<Session> {
        let mut sessions = self.0.lock();
        let place = sessions.iter().position(|(known, _)| known == caller);
        let known = place.and_then(|place| sessions.remove(place));
        let session = known.map_or_else(|| Arc::new(Session::named(EXPLORER)), |(_, session)| session);
        if sessions.len() == MAX_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back((caller.clone(), session.clone()));
        session
    }
}

/// The page of one of several graphs. It needs no token either, so it is there for every name: it does not tell which exist.
const PAGES_OF_GRAPHS: [&str; 2] = ["/g/{graph}", "/g/{graph}/"];

/// Routes that need no token: the page, also for each graph of a server of graphs, and the exchange of a secret.
pub(crate) fn pages(sessions: Arc<ExplorerSessions>, serves_graphs: bool) -> Router {
    let mut router = Router::new().route("/api/session", post(open_session));
    for asset in assets::all() {
        let of_graphs = PAGES_OF_GRAPHS.into_iter().filter(|_| serves_graphs && asset.is_page());
        for path in of_graphs.chain([asset.path]) {
            let serve = move |request: Request| async move { assets::serve(asset, request.headers()) };
            router = router.route(path, get(serve));
        }
    }
    router.with_state(sessions)
}

/// Routes that do. `http/request_guard.rs` has checked the token and attached a [`Caller`] to the request.
pub(crate) fn routes(explorer: Arc<Explorer>) -> Router {
    Router::new()
        .route("/api/call/{tool}", post(answers::call))
        .route("/api/graph", get(graph::graph))
        .route("/api/image", post(images::image))
        .route("/api/status", get(status::status))
        .route("/api/events", get(events::events))
        .with_state(explorer)
}

#[derive(Deserialize)]
struct Secret {
    secret: String,
}

/// Exchanges the secret of `quipu open`, once.
async fn open_session(State(sessions): State<Arc<ExplorerSessions>>, body: Body) -> Result<Response, WebRefusal> {
    let body = tokio::time::timeout(SECRET_TIMEOUT, Limited::new(body, MAX_SECRET_BYTES).collect()).await;
    let Ok(Ok(body)) = body else {
        return Err(WebRefusal::wrong("the request body is incomplete, too slow or too long".to_owned()));
    };
    let Ok(Secret { secret }) = serde_json::from_slice(&body.to_bytes()) else {
        return Err(WebRefusal::wrong("send {\"secret\": \"…\"}".to_owned()));
    };
    match sessions.exchange(&secret) {
        Some(token) => json_answer(&json!({ "token": token })),
        // Not an error status: the page tells it, and a browser's console stays empty.
        None => json_answer(
            &json!({ "error": { "message": "this link was used already or has expired; run `quipu open` again" } }),
        ),
    }
}

/// Whether a caller came through the link of `quipu open`, so on this machine. By the id: a token can have any name.
fn is_local(caller: &Caller) -> bool {
    caller.id.starts_with(SESSION_ID)
}

/// The caller of a request, if it came with a token, and what the request holds.
fn caller_of(request: &Request) -> Result<(Caller, RequestPermit), WebRefusal> {
    let caller = request.extensions().get::<Caller>().filter(|caller| caller.token.is_some());
    let permit = request.extensions().get::<RequestPermit>().cloned().unwrap_or_default();
    caller.cloned().map(|caller| (caller, permit)).ok_or_else(WebRefusal::no_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_only_the_caller_of_longest_ago_is_forgotten() {
        let (callers, ada, bob) = (ShownSessions::default(), Arc::from("ada"), Arc::from("bob"));
        let (hers, his) = (callers.session(&ada), callers.session(&bob));
        for number in 0..MAX_SESSIONS - 1 {
            callers.session(&format!("caller {number}").into());
            assert!(Arc::ptr_eq(&callers.session(&ada), &hers));
        }
        assert!(!Arc::ptr_eq(&callers.session(&bob), &his));
        assert_eq!(callers.0.lock().len(), MAX_SESSIONS);
    }
}
