//! Sessions of the older generation over HTTP, each bound to whoever opened it: its id alone lets nobody else in.
//!
//! A client sees the id with a tag that only this process can make, and that is right for that client alone. So
//! nothing has to be remembered of a session but that it is there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};

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

    /// Makes the id in a request's header the library's, if there is one; `false` when it is not this owner's.
    pub(super) fn open_header(&self, headers: &mut HeaderMap, owner: &str) -> bool {
        let Some(given) = headers.get(HEADER) else { return true };
        let id = given.to_str().ok().and_then(|given| self.bare(given, owner));
        let Some(id) = id.and_then(|id| HeaderValue::from_str(id).ok()) else { return false };
        headers.insert(HEADER, id);
        true
    }

    /// The id as its owner knows it.
    pub(super) fn tagged(&self, id: &str, owner: &str) -> String {
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
    pub(super) async fn open(&self, id: &str, owner: &Arc<str>) {
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
