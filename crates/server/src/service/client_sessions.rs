//! What is remembered of clients that have no connection: over HTTP each request of the newest generation stands alone,
//! so what such a client was shown and told is found again by the name it gives with every request.
//!
//! Two clients of one token and name share this. They are still told of edits made by anybody else. Clients of two tokens
//! share nothing, not even the room: whoever makes up names has only its own forgotten.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_core::Session;

/// Clients of one caller; beyond this many its longest unheard of are forgotten. One that comes back is told warnings again,
/// and its writes are held against what the server knows.
const MAX_CLIENTS: usize = 256;

/// Callers, who cannot be made up: a token, or somebody an identity provider knows. Beyond this many the one longest unheard
/// of is forgotten.
const MAX_CALLERS: usize = 4096;

/// ClientSessions by caller and client name.
#[derive(Default)]
pub(crate) struct ClientSessions {
    callers: Mutex<Callers>,
}

#[derive(Default)]
struct Callers {
    known: HashMap<Arc<str>, CallerSessions>,
    /// Counts what was asked for, to tell who was heard of last.
    asked: u64,
}

/// The sessions of one caller, the latest used last. How long a name is the caller has bounded.
#[derive(Default)]
struct CallerSessions {
    sessions: VecDeque<(String, Arc<Session>)>,
    asked: u64,
}

impl ClientSessions {
    /// The session of a client; a new one where it has not been heard of, or not for long.
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
        let (name, session) = known.unwrap_or_else(|| (client.to_owned(), Arc::new(Session::named(client))));
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
    fn a_client_that_keeps_asking_is_remembered_and_a_silent_one_is_forgotten() {
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
    fn whoever_makes_up_names_has_nobody_elses_forgotten() {
        let (sessions, ada, eve) = (ClientSessions::default(), Arc::from("ada"), Arc::from("eve"));
        let hers = sessions.of(&ada, "cursor");
        for number in 0..MAX_CLIENTS * 4 {
            sessions.of(&eve, &format!("client {number}"));
        }
        assert!(Arc::ptr_eq(&sessions.of(&ada, "cursor"), &hers));
        assert!(!Arc::ptr_eq(&sessions.of(&eve, "cursor"), &hers), "nor do two callers share a name");
    }

    #[test]
    fn of_more_callers_than_there_is_room_for_the_silent_are_forgotten() {
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
