//! Sessions of the explorer: a one-time secret, in the fragment of the address that `quipu open` opens, becomes a token that one tab
//! keeps. Both are random, live in this process alone, are kept as hashes, and expire.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use parking_lot::Mutex;

use crate::tokens::TokenScope;

/// How long a secret may be exchanged: long enough for a browser to start.
const SECRET_LASTS: Duration = Duration::from_secs(10 * 60);

/// A session ends when no request used it for this long. A page that is in sight sends some every minute.
const IDLE_LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// A session ends this long after it was opened, used or not.
const SESSION_LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

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
    secrets: Vec<(blake3::Hash, TokenScope, Instant)>,
    sessions: Vec<OpenSession>,
    opened: u64,
}

struct OpenSession {
    token: blake3::Hash,
    scope: TokenScope,
    number: u64,
    opened: Instant,
    used: Instant,
}

impl OpenSession {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.opened) >= SESSION_LASTS || now.duration_since(self.used) >= IDLE_LASTS
    }
}

impl std::fmt::Debug for ExplorerSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExplorerSessions")
    }
}

impl ExplorerSessions {
    /// Makes a secret that can be exchanged once for a session of this scope.
    pub fn new_secret(&self, scope: TokenScope) -> anyhow::Result<String> {
        let secret = random_word()?;
        self.0.lock().secrets.push((blake3::hash(secret.as_bytes()), scope, Instant::now()));
        Ok(secret)
    }

    /// Whether a secret can still be exchanged.
    pub fn has_secret(&self) -> bool {
        self.0.lock().secrets.iter().any(|(_, _, made)| made.elapsed() < SECRET_LASTS)
    }

    /// A token for a secret, which is used up by it.
    pub(super) fn exchange(&self, secret: &str) -> Option<String> {
        let hash = blake3::hash(secret.as_bytes());
        let now = Instant::now();
        let mut inner = self.0.lock();
        inner.secrets.retain(|(_, _, made)| made.elapsed() < SECRET_LASTS);
        let place = inner.secrets.iter().position(|(known, ..)| *known == hash)?;
        let (_, scope, _) = inner.secrets.swap_remove(place);
        let token = format!("{SESSION_PREFIX}{}", random_word().ok()?);
        inner.sessions.retain(|session| !session.is_over(now));
        if inner.sessions.len() == MAX_SESSIONS {
            inner.sessions.remove(0);
        }
        inner.opened += 1;
        let number = inner.opened;
        let token_hash = blake3::hash(token.as_bytes());
        inner.sessions.push(OpenSession { token: token_hash, scope, number, opened: now, used: now });
        Some(token)
    }

    /// What the owner of a token may do, and the session's number. Does not count as use of the session.
    pub(crate) fn check(&self, token: &str) -> Option<(TokenScope, u64)> {
        self.check_at(token, Instant::now())
    }

    fn check_at(&self, token: &str, now: Instant) -> Option<(TokenScope, u64)> {
        let hash = blake3::hash(token.as_bytes());
        let mut inner = self.0.lock();
        inner.sessions.retain(|session| !session.is_over(now));
        inner.sessions.iter().find(|session| session.token == hash).map(|session| (session.scope, session.number))
    }

    /// Records that a request used a session.
    pub(crate) fn record_use(&self, number: u64) {
        self.record_use_at(number, Instant::now());
    }

    fn record_use_at(&self, number: u64, now: Instant) {
        if let Some(session) = self.0.lock().sessions.iter_mut().find(|session| session.number == number) {
            session.used = now;
        }
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

    fn open(sessions: &ExplorerSessions, scope: TokenScope) -> String {
        sessions.exchange(&sessions.new_secret(scope).unwrap()).unwrap()
    }

    #[test]
    fn login_secret_works_once_and_grants_its_scope() {
        let sessions = ExplorerSessions::default();
        let secret = sessions.new_secret(TokenScope::Read).unwrap();
        assert_eq!(sessions.exchange("guess"), None);
        let token = sessions.exchange(&secret).unwrap();
        assert_eq!(sessions.exchange(&secret), None, "it is used up");
        assert_eq!(sessions.check(&token), Some((TokenScope::Read, 1)));
        assert_eq!(sessions.check(&secret), None, "a secret is no token");
        assert_eq!(sessions.check("qx_guess"), None);
    }

    #[test]
    fn the_oldest_session_ends_at_the_limit() {
        let sessions = ExplorerSessions::default();
        let first = open(&sessions, TokenScope::Write);
        let second = open(&sessions, TokenScope::Write);
        for _ in 0..MAX_SESSIONS - 1 {
            open(&sessions, TokenScope::Write);
        }
        assert_eq!(sessions.check(&first), None);
        assert_eq!(sessions.check(&second), Some((TokenScope::Write, 2)));
    }

    #[test]
    fn idle_session_expires_and_a_used_one_does_not() {
        let sessions = ExplorerSessions::default();
        let (idle, used) = (open(&sessions, TokenScope::Read), open(&sessions, TokenScope::Read));
        let start = Instant::now();
        let hour = Duration::from_secs(60 * 60);
        assert!(sessions.check_at(&idle, start + 11 * hour).is_some());
        sessions.record_use_at(2, start + 11 * hour);
        let later = start + 12 * hour + Duration::from_secs(1);
        assert_eq!(sessions.check_at(&idle, later), None, "a check is no use");
        assert_eq!(sessions.check_at(&used, later), Some((TokenScope::Read, 2)));
    }

    #[test]
    fn used_session_expires_after_a_week() {
        let sessions = ExplorerSessions::default();
        let token = open(&sessions, TokenScope::Read);
        let start = Instant::now();
        let hours = |n: u32| start + n * Duration::from_secs(60 * 60);
        for n in 1..7 * 24 {
            assert!(sessions.check_at(&token, hours(n)).is_some(), "hour {n}");
            sessions.record_use_at(1, hours(n));
        }
        assert_eq!(sessions.check_at(&token, hours(7 * 24)), None);
    }
}
