//! Sessions of the explorer: a one-time secret, in the fragment of the address that `quipu open` opens, becomes a token that one tab
//! keeps. Both are random, live in this process alone, and are kept as hashes.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::Mutex;

use crate::tokens::Scope;

/// How long a secret may be exchanged: long enough for a browser to start.
const SECRET_LASTS: Duration = Duration::from_secs(10 * 60);

/// Sessions at the same time; at the limit, the oldest ends.
const MAX_SESSIONS: usize = 32;

/// The prefix of a session's token, which tells it from other tokens.
pub(crate) const SESSION_PREFIX: &str = "qx_";

/// What the caller's id of a session begins with.
pub(crate) const SESSION_ID: &str = "explorer ";

/// The sessions of one server.
#[derive(Default)]
pub struct ExplorerSessions(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    secrets: Vec<(blake3::Hash, Scope, Instant)>,
    sessions: Vec<(blake3::Hash, Scope, u64)>,
    opened: u64,
}

impl std::fmt::Debug for ExplorerSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExplorerSessions")
    }
}

impl ExplorerSessions {
    /// Makes a secret that can be exchanged once for a session of this scope.
    pub fn new_secret(&self, scope: Scope) -> anyhow::Result<String> {
        let secret = random_word()?;
        self.0.lock().secrets.push((blake3::hash(secret.as_bytes()), scope, Instant::now()));
        Ok(secret)
    }

    /// Whether somebody can still come in by a secret.
    pub(crate) fn has_secret(&self) -> bool {
        !self.0.lock().secrets.is_empty()
    }

    /// A token for a secret, which is used up by it.
    pub(super) fn exchange(&self, secret: &str) -> Option<String> {
        let hash = blake3::hash(secret.as_bytes());
        let mut inner = self.0.lock();
        inner.secrets.retain(|(_, _, made)| made.elapsed() < SECRET_LASTS);
        let place = inner.secrets.iter().position(|(known, ..)| *known == hash)?;
        let (_, scope, _) = inner.secrets.swap_remove(place);
        let token = format!("{SESSION_PREFIX}{}", random_word().ok()?);
        if inner.sessions.len() == MAX_SESSIONS {
            inner.sessions.remove(0);
        }
        inner.opened += 1;
        let number = inner.opened;
        inner.sessions.push((blake3::hash(token.as_bytes()), scope, number));
        Some(token)
    }

    /// What the owner of a token may do, and the session's number.
    pub(crate) fn check(&self, token: &str) -> Option<(Scope, u64)> {
        let hash = blake3::hash(token.as_bytes());
        let inner = self.0.lock();
        inner.sessions.iter().find(|(known, ..)| *known == hash).map(|(_, scope, number)| (*scope, *number))
    }
}

/// 256 random bits in hexadecimal.
fn random_word() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("{error}")).context("while making a secret")?;
    Ok(bytes.iter().fold(String::with_capacity(64), |mut word, byte| {
        let _ = write!(word, "{byte:02x}");
        word
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_works_once_and_gives_its_scope() {
        let sessions = ExplorerSessions::default();
        let secret = sessions.new_secret(Scope::Read).unwrap();
        assert_eq!(sessions.exchange("guess"), None);
        let token = sessions.exchange(&secret).unwrap();
        assert_eq!(sessions.exchange(&secret), None, "it is used up");
        assert_eq!(sessions.check(&token), Some((Scope::Read, 1)));
        assert_eq!(sessions.check(&secret), None, "a secret is no token");
        assert_eq!(sessions.check("qx_guess"), None);
    }

    #[test]
    fn the_oldest_session_ends_at_the_limit() {
        let sessions = ExplorerSessions::default();
        let open = || sessions.exchange(&sessions.new_secret(Scope::Write).unwrap()).unwrap();
        let first = open();
        let second = open();
        for _ in 0..MAX_SESSIONS - 1 {
            open();
        }
        assert_eq!(sessions.check(&first), None);
        assert_eq!(sessions.check(&second), Some((Scope::Write, 2)));
    }
}
