//! What is remembered of clients that have no connection: over HTTP each request of the newest generation stands alone,
//! so what such a client was shown and told is found again by the name it gives with every request.
//!
//! Two clients of one name share this. They are still told of edits made by anybody else.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use quipu_core::Session;

/// The clients longest unheard of are forgotten beyond this many. One that comes back is told warnings again, and its
/// writes are held against what the server knows.
const MAX_CLIENTS: usize = 256;

/// Sessions by client name, the latest used last. How long a name is the caller has bounded.
#[derive(Default)]
pub(super) struct Sessions {
    recent: Mutex<VecDeque<(String, Arc<Session>)>>,
}

impl Sessions {
    /// The session of a client; a new one where it has not been heard of, or not for long.
    pub(super) fn of(&self, client: &str) -> Arc<Session> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().position(|(name, _)| name == client).and_then(|place| recent.remove(place));
        let (name, session) = known.unwrap_or_else(|| (client.to_owned(), Arc::new(Session::named(client))));
        recent.push_back((name, session.clone()));
        if recent.len() > MAX_CLIENTS {
            recent.pop_front();
        }
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_keeps_asking_is_remembered_and_a_silent_one_is_forgotten() {
        let sessions = Sessions::default();
        let (busy, silent) = (sessions.of("busy"), sessions.of("silent"));
        for number in 0..MAX_CLIENTS {
            sessions.of(&format!("client {number}"));
            assert!(Arc::ptr_eq(&sessions.of("busy"), &busy));
        }
        assert!(!Arc::ptr_eq(&sessions.of("silent"), &silent));
        assert_eq!(sessions.recent.lock().unwrap().len(), MAX_CLIENTS);
    }
}
