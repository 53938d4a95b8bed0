//! HTTP sessions of the older generation, each bound to the identity that opened it: the id alone gives no access.
//!
//! The id that a client sees ends with a tag, a keyed hash of the id and the identity, which only this process can compute.
//! So no table of owners is needed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};

/// Names the session of a request.
pub(super) const HEADER: &str = "mcp-session-id";

/// Sessions that one client may have open; opening another closes its oldest. A client that opens many has usually
/// restarted.
const MAX_SESSIONS: usize = 256;

/// The open sessions and their owners.
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

    /// Replaces the session id in a request's header by the library's; `false` if it belongs to another owner.
    pub(super) fn open_header(&self, headers: &mut HeaderMap, owner: &str) -> bool {
        let Some(given) = headers.get(HEADER) else { return true };
        let id = given.to_str().ok().and_then(|given| self.bare(given, owner));
        let Some(id) = id.and_then(|id| HeaderValue::from_str(id).ok()) else { return false };
        headers.insert(HEADER, id);
        true
    }

    /// The id that its owner sees.
    pub(super) fn tagged(&self, id: &str, owner: &str) -> String {
        format!("{id}.{}", self.tag(id, owner).to_hex())
    }

    /// The library's id; `None` if it belongs to another owner.
    fn bare<'a>(&self, given: &'a str, owner: &str) -> Option<&'a str> {
        let (id, tag) = given.rsplit_once('.')?;
        // The type compares in constant time.
        (blake3::Hash::from_hex(tag).ok()? == self.tag(id, owner)).then_some(id)
    }

    fn tag(&self, id: &str, owner: &str) -> blake3::Hash {
        // An id has no newline, so two pairs never give the same text.
        blake3::keyed_hash(&self.key, format!("{id}\n{owner}").as_bytes())
    }

    /// Records a new session, and closes the owner's oldest if it has too many.
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
