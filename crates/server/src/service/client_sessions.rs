//! Sessions of clients without a connection: over HTTP each request of the newest protocol generation is independent, so
//! sessions are found by the client name in every request.
//!
//! Two clients with one token and name share a session; they are still warned of edits by others. Clients of different tokens
//! share nothing, not even the limit: a client that invents names only evicts its own sessions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_core::Session;

/// Sessions of one caller; beyond this the longest unused are dropped. A client that comes back gets warnings again, and its
/// writes are checked as those of a new client.
const MAX_CLIENTS: usize = 256;

/// Callers, which cannot be invented: tokens and subjects of an identity provider. Beyond this the longest unused is dropped.
const MAX_CALLERS: usize = 4096;

/// ClientSessions by caller and client name.
#[derive(Default)]
pub(crate) struct ClientSessions {
    callers: Mutex<Callers>,
}

#[derive(Default)]
struct Callers {
    known: HashMap<Arc<str>, CallerSessions>,
    /// A logical clock for the order of use.
    asked: u64,
}

/// The sessions of one caller, the latest used last. Names are already limited in length.
#[derive(Default)]
struct CallerSessions {
    sessions: VecDeque<(String, Arc<Session>)>,
    asked: u64,
}

impl ClientSessions {
    /// The session of a client, created if there is none.
    pub(crate) fn of(&self, caller: &Arc<str>, client: &str) -> Arc<Session> {
        let mut callers = self.callers.lock();
        callers.asked += 1;
        let asked = callers.asked;
        let recent = callers.known.entry(caller.clone()).or_default();
        recent.asked = asked;
        let session = recent.of(client);
        if callers.known.len() > MAX_CALLERS {
            callers.forget_one();
        }
        session
    }
}

impl Callers {
    fn forget_one(&mut self) {
        let longest_unheard =
            self.known.iter().min_by_key(|(_, recent)| recent.asked).map(|(caller, _)| caller.clone());
        if let Some(caller) = longest_unheard {
            self.known.remove(&caller);
        }
    }
}

impl CallerSessions {
    fn of(&mut self, client: &str) -> Arc<Session> {
        let place = self.sessions.iter().position(|(name, _)| name == client);
        let known = place.and_then(|place| self.sessions.remove(place));
        let (name, session) = known.unwrap_or_else(|| (client.to_owned(), Arc::new(Session::shared(client))));
        self.sessions.push_back((name, session.clone()));
        if self.sessions.len() > MAX_CLIENTS {
            self.sessions.pop_front();
        }
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_session_is_kept_and_an_idle_one_evicted() {
        let (sessions, ada) = (ClientSessions::default(), Arc::from("ada"));
        let (busy, silent) = (sessions.of(&ada, "busy"), sessions.of(&ada, "silent"));
        for number in 0..MAX_CLIENTS {
            sessions.of(&ada, &format!("client {number}"));
            assert!(Arc::ptr_eq(&sessions.of(&ada, "busy"), &busy));
        }
        assert!(!Arc::ptr_eq(&sessions.of(&ada, "silent"), &silent));
        assert_eq!(sessions.callers.lock().known["ada"].sessions.len(), MAX_CLIENTS);
    }

    #[test]
    fn invented_client_names_evict_only_sessions_of_the_same_token() {
        let (sessions, ada, eve) = (ClientSessions::default(), Arc::from("ada"), Arc::from("eve"));
        let hers = sessions.of(&ada, "cursor");
        for number in 0..MAX_CLIENTS * 4 {
            sessions.of(&eve, &format!("client {number}"));
        }
        assert!(Arc::ptr_eq(&sessions.of(&ada, "cursor"), &hers));
        assert!(!Arc::ptr_eq(&sessions.of(&eve, "cursor"), &hers), "nor do two callers share a name");
    }

    #[test]
    fn longest_idle_callers_are_evicted_at_the_limit() {
        let (sessions, ada, bob) = (ClientSessions::default(), Arc::from("ada"), Arc::from("bob"));
        let (hers, his) = (sessions.of(&ada, "x"), sessions.of(&bob, "x"));
        for number in 0..MAX_CALLERS {
            sessions.of(&format!("caller {number}").into(), "x");
            assert!(Arc::ptr_eq(&sessions.of(&ada, "x"), &hers));
        }
        assert!(!Arc::ptr_eq(&sessions.of(&bob, "x"), &his));
        assert_eq!(sessions.callers.lock().known.len(), MAX_CALLERS);
    }
}
