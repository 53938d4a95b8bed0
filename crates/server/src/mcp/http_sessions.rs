//! Sessions of the older generation over HTTP, each bound to whoever opened it: its id alone lets nobody else in.
//!
//! A client sees the id with a tag that only this process can make, and that is right for that client alone. So
//! nothing has to be remembered of a session but that it is there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};

use super::caller::Caller;

/// Names the session of a request.
pub(super) const HEADER: &str = "mcp-session-id";

/// Sessions one client may have open. One more, and its oldest is closed: a client that starts again and again has
/// forgotten that one.
const MAX_SESSIONS: usize = 256;

/// The open sessions and whose they are.
pub(super) struct OwnedSessions {
    manager: Arc<LocalSessionManager>,
    key: [u8; 32],
    opened: Mutex<HashMap<Arc<str>, VecDeque<SessionId>>>,
}

impl OwnedSessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>) -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system gives random bytes");
        Self { manager, key, opened: Mutex::default() }
    }

    /// The id as its owner knows it.
    fn tagged(&self, id: &str, owner: &str) -> String {
        format!("{id}.{}", self.tag(id, owner).to_hex())
    }

    /// The id as the library knows it; `None` when it is not this owner's.
    fn bare<'a>(&self, given: &'a str, owner: &str) -> Option<&'a str> {
        let (id, tag) = given.rsplit_once('.')?;
        // Compared in constant time, as its type does.
        (blake3::Hash::from_hex(tag).ok()? == self.tag(id, owner)).then_some(id)
    }

    fn tag(&self, id: &str, owner: &str) -> blake3::Hash {
        // An id has no line end, so no two pairs are hashed as the same text.
        blake3::keyed_hash(&self.key, format!("{id}\n{owner}").as_bytes())
    }

    /// Notes a new session, and closes the owner's oldest where it has too many.
    async fn open(&self, id: &str, owner: &Arc<str>) {
        let excess = {
            let alive = self.manager.sessions.read().await;
            let mut opened = self.opened.lock();
            opened.retain(|_, ids| {
                ids.retain(|id| alive.contains_key(id));
                !ids.is_empty()
            });
            let ids = opened.entry(owner.clone()).or_default();
            ids.push_back(id.into());
            if ids.len() > MAX_SESSIONS { ids.pop_front() } else { None }
        };
        if let Some(oldest) = excess
            && let Err(error) = self.manager.close_session(&oldest).await
        {
            tracing::debug!(%error, "a session could not be closed");
        }
    }
}

/// Middleware between the front door and the library.
pub(super) async fn bind(State(sessions): State<Arc<OwnedSessions>>, mut request: Request, next: Next) -> Response {
    let Some(owner) = request.extensions().get::<Caller>().map(|caller| caller.id.clone()) else {
        return StatusCode::FORBIDDEN.into_response();
    };
    if let Some(given) = request.headers().get(HEADER) {
        let id = given.to_str().ok().and_then(|given| sessions.bare(given, &owner));
        let Some(id) = id.and_then(|id| HeaderValue::from_str(id).ok()) else {
            // As for one that has ended: the client opens another.
            return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
        };
        request.headers_mut().insert(HEADER, id);
    }
    let is_end = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if is_end && response.status() == StatusCode::ACCEPTED {
        // It is done, not only accepted: some clients take any other word for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    let opened = response.headers().get(HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if let Some(id) = opened {
        sessions.open(&id, &owner).await;
        let tagged = HeaderValue::from_str(&sessions.tagged(&id, &owner)).expect("an id and a tag are plain text");
        response.headers_mut().insert(HEADER, tagged);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_by_its_owner_alone() {
        let sessions = OwnedSessions::new(Arc::default());
        let tagged = sessions.tagged("5e2f-1", "ada");
        assert_eq!(sessions.bare(&tagged, "ada"), Some("5e2f-1"));
        assert_eq!(sessions.bare(&tagged, "bob"), None);
        assert_eq!(sessions.bare("5e2f-1", "ada"), None);
        assert_eq!(sessions.bare(&tagged.replace("5e2f-1", "5e2f-2"), "ada"), None);
        let other = OwnedSessions::new(Arc::default());
        assert_eq!(other.bare(&tagged, "ada"), None, "each process has a key of its own");
    }
}
