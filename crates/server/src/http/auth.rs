//! Authentication: a bearer token in the `Authorization` header and nowhere else, or an anonymous client where none is
//! required.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use quipu_core::ports::{Clock, SystemClock};
use tokio::sync::Semaphore;

use crate::service::EXPLORER;
#[cfg(feature = "oauth")]
use crate::tokens::OF_PROVIDER;
use crate::tokens::{Denied, Grant, GraphRef, NeedsLookup, TokenScope, TokenSource};
use crate::web::{ExplorerSessions, SESSION_ID, SESSION_PREFIX};

/// Look-ups of texts that may be guesses, at the same time: a few of the connections to the database, which calls need too.
const MAX_GUESSES: usize = 2;

/// How long a look-up waits for the others.
const GUESS_PATIENCE: Duration = Duration::from_secs(5);

/// How clients authenticate.
pub(super) struct Auth {
    tokens: Arc<dyn TokenSource>,
    required: bool,
    explorer: Arc<ExplorerSessions>,
    /// Permits to look up texts that may be guesses.
    guesses: Arc<Semaphore>,
    #[cfg(feature = "oauth")]
    oauth: Option<super::oauth::Validator>,
}

/// An authenticated client.
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) token: Option<Arc<str>>,
    pub(super) scope: TokenScope,
    /// The number of the explorer's session.
    session: Option<u64>,
    /// The graphs that the token is for; `None` for all.
    pub(super) graphs: Option<Vec<GraphRef>>,
}

/// Why authentication failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unknown {
    /// A token is required and none was given.
    Missing,
    /// The token is invalid, with the reason.
    Invalid(String),
    /// The token cannot be checked now, with the reason: it may well be valid.
    Unchecked(String),
}

impl Auth {
    pub(super) fn new(tokens: Arc<dyn TokenSource>, required: bool, explorer: Arc<ExplorerSessions>) -> Self {
        Self {
            tokens,
            required,
            explorer,
            guesses: Arc::new(Semaphore::new(MAX_GUESSES)),
            #[cfg(feature = "oauth")]
            oauth: None,
        }
    }

    #[cfg(feature = "oauth")]
    pub(super) fn with_oauth(self, oauth: Option<super::oauth::Validator>) -> Self {
        Self { oauth, ..self }
    }

    /// A token that is given is checked also where none is required: a read token does not allow writes.
    pub(super) async fn identify(
        &self,
        authorization: Option<&HeaderValue>,
        address: IpAddr,
    ) -> Result<Identity, Unknown> {
        let Some(given) = authorization else {
            return match self.required {
                true => Err(Unknown::Missing),
                false => {
                    let id = address_id(address);
                    Ok(Identity { id, token: None, scope: TokenScope::Admin, session: None, graphs: None })
                }
            };
        };
        let bearer = given.to_str().ok().and_then(|given| {
            let (scheme, token) = given.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let Some(bearer) = bearer else {
            return Err(Unknown::Invalid("invalid Authorization header; send `Bearer TOKEN`".to_owned()));
        };
        if bearer.starts_with(SESSION_PREFIX) {
            let Some((scope, number)) = self.explorer.check(bearer) else {
                return Err(Unknown::Invalid(
                    "the session has expired or its server was restarted; run `quipu open` again".to_owned(),
                ));
            };
            let id = format!("{SESSION_ID}{number}");
            return Ok(Identity { id, token: Some(EXPLORER.into()), scope, session: Some(number), graphs: None });
        }
        #[cfg(feature = "oauth")]
        if let Some(oauth) = self.oauth.as_ref().filter(|_| super::oauth::looks_like_jwt(bearer)) {
            let (subject, scope) = oauth.check(bearer).await.map_err(Unknown::Invalid)?;
            let id = format!("{OF_PROVIDER}{subject}");
            return Ok(Identity { token: Some(id.as_str().into()), id, scope, session: None, graphs: None });
        }
        let now = jiff::Timestamp::from_nanosecond(SystemClock.now_ns().into()).unwrap_or(jiff::Timestamp::MAX);
        let grant = self.check(bearer, now).await.map_err(|denied| match denied {
            Denied::Unchecked(_) => Unknown::Unchecked(denied.to_string()),
            Denied::Unknown | Denied::Expired | Denied::Changed => Unknown::Invalid(denied.to_string()),
        })?;
        let Grant { id, name, scope, graphs } = grant;
        Ok(Identity { id: format!("token {id}"), token: Some(name.into()), scope, session: None, graphs })
    }

    async fn check(&self, bearer: &str, now: jiff::Timestamp) -> Result<Grant, Denied> {
        let permit = match self.tokens.check_at_once(bearer, now) {
            Ok(checked) => return checked,
            Err(NeedsLookup::Renewal) => None,
            Err(NeedsLookup::Unknown) => {
                let permit = tokio::time::timeout(GUESS_PATIENCE, self.guesses.clone().acquire_owned()).await;
                let too_many = |_| Denied::Unchecked("too many unknown tokens are being checked".to_owned());
                permit.map_err(too_many)?.ok()
            }
        };
        let (tokens, bearer) = (self.tokens.clone(), bearer.to_owned());
        // The look-up goes on, and keeps its permit, where the client leaves.
        let checked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            tokens.check(&bearer, now)
        });
        let checked = checked.await;
        checked.unwrap_or_else(|_| Err(Denied::Unchecked("the server is stopping".to_owned())))
    }

    /// Records that a request used a session of the explorer, which otherwise expires.
    pub(super) fn record_use(&self, identity: &Identity) {
        if let Some(number) = identity.session {
            self.explorer.record_use(number);
        }
    }
}

/// The id of a client without a token: its address. An IPv6 machine has a whole /64 network.
fn address_id(peer: IpAddr) -> String {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            format!("address {a:x}:{b:x}:{c:x}:{d:x}::")
        }
        address => format!("address {address}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn addresses_of_one_machine_count_as_one_client() {
        let id = |address: &str| address_id(address.parse().unwrap());
        assert_eq!(id("192.168.0.7"), "address 192.168.0.7");
        assert_eq!(id("::ffff:192.168.0.7"), "address 192.168.0.7");
        assert_eq!(id("2001:db8:1:2:3::9"), id("2001:db8:1:2:ffff::1"));
        assert_ne!(id("2001:db8:1:2::9"), id("2001:db8:1:3::9"));
    }

    /// Tokens that are looked up over a network: `known` was valid a while ago, others wait until `goes_on`.
    #[derive(Default)]
    struct SlowTokens {
        running: AtomicUsize,
        most: AtomicUsize,
        goes_on: AtomicBool,
    }

    impl TokenSource for SlowTokens {
        fn ensure_some(&self) -> anyhow::Result<()> {
            Ok(())
        }

        fn check(&self, presented: &str, _: jiff::Timestamp) -> Result<Grant, Denied> {
            if presented == "known" {
                let (id, name) = (presented.to_owned(), presented.to_owned());
                return Ok(Grant { id, name, scope: TokenScope::Read, graphs: None });
            }
            self.most.fetch_max(self.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            while !self.goes_on.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.running.fetch_sub(1, Ordering::SeqCst);
            Err(Denied::Unknown)
        }

        fn check_at_once(&self, presented: &str, _: jiff::Timestamp) -> Result<Result<Grant, Denied>, NeedsLookup> {
            Err(if presented == "known" { NeedsLookup::Renewal } else { NeedsLookup::Unknown })
        }
    }

    #[tokio::test]
    async fn few_guesses_are_looked_up_at_a_time_and_known_tokens_do_not_wait_for_them() {
        let tokens = Arc::new(SlowTokens::default());
        let auth = Arc::new(Auth::new(tokens.clone(), true, Arc::default()));
        let identify = |token: String| {
            let auth = auth.clone();
            async move {
                let authorization = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
                auth.identify(Some(&authorization), [127, 0, 0, 1].into()).await
            }
        };
        let guesses: Vec<_> = (0..50).map(|number| tokio::spawn(identify(format!("guess {number}")))).collect();
        // The first clients leave; their look-ups go on.
        while tokens.running.load(Ordering::SeqCst) < MAX_GUESSES {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        guesses.iter().take(10).for_each(tokio::task::JoinHandle::abort);
        assert!(identify("known".to_owned()).await.is_ok());
        tokens.goes_on.store(true, Ordering::SeqCst);
        for guess in guesses.into_iter().skip(10) {
            assert!(matches!(guess.await.unwrap(), Err(Unknown::Invalid(_))));
        }
        assert_eq!(tokens.most.load(Ordering::SeqCst), MAX_GUESSES);
    }
}
