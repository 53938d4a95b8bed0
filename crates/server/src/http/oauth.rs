//! Tokens from an identity provider: signed by it (JWT), for this server and for a time. Behind the feature `oauth`.
//!
//! The server stores none of them. It has the provider's public keys, from a file or a URL, and tells clients where to get
//! tokens (RFC 9728).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::routing::get;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::request_guard;
use crate::own_files;
use crate::stamp::PathStamp;
use crate::tokens::TokenScope;

/// Keys are fetched again when a token names an unknown one, but not more often than this.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Keys from a URL are fetched again after this time: a withdrawn key is not accepted for longer. A file is checked with every
/// token.
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// How long the last keys are used while the provider cannot be reached.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_KEY_BYTES: u64 = 1024 * 1024;

/// The limit of OpenID Connect. Longer subjects would be cut in memory's log, where two could become equal.
const MAX_SUBJECT_BYTES: usize = 255;

/// Signatures that need the provider's private key. No shared secrets: a server that can check those can also make them.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::EdDSA,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// Which tokens are accepted.
#[derive(Debug, Clone)]
pub struct OAuthSettings {
    /// The issuer: the provider's identifier.
    pub issuer: String,
    /// This server's URL for clients: `https://notes.example.org/mcp`. Tokens for other audiences are rejected.
    pub resource: String,
    /// Where the provider's public keys are.
    pub keys: KeySource,
}

/// Where public keys (JWKS) are.
#[derive(Debug, Clone)]
pub enum KeySource {
    File(PathBuf),
    Url(String),
}

impl KeySource {
    fn stamp(&self) -> Option<PathStamp> {
        match self {
            Self::File(file) => PathStamp::of_target(file),
            Self::Url(_) => None,
        }
    }
}

impl OAuthSettings {
    /// Where clients find the authorization server.
    pub(super) fn metadata_url(&self) -> String {
        let (origin, path) = self.resource_parts();
        format!("{origin}{METADATA}{path}")
    }

    fn resource_parts(&self) -> (&str, &str) {
        let host = self.resource.find("://").map_or(0, |at| at + 3);
        let path = self.resource[host..].find('/').map_or(self.resource.len(), |at| host + at);
        self.resource.split_at(path)
    }
}

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Adds the metadata page that names the authorization server, if one is configured.
pub(super) fn with_metadata(router: Router, settings: Option<&OAuthSettings>) -> Router {
    let Some(settings) = settings else { return router };
    let page = json!({
        "resource": settings.resource,
        "authorization_servers": [settings.issuer],
        "scopes_supported": TokenScope::ALL.map(TokenScope::name),
        "bearer_methods_supported": ["header"],
        "resource_name": "Quipu",
    });
    let show = move || std::future::ready(request_guard::answer(StatusCode::OK, &page));
    let (_, path) = settings.resource_parts();
    let paths: BTreeSet<String> = [METADATA.to_owned(), format!("{METADATA}{}", path.trim_end_matches('/'))].into();
    paths.into_iter().fold(router, |router, path| router.route(&path, get(show.clone())))
}

/// Whether a token is a JWT rather than one of `quipu token`.
pub(super) fn looks_like_jwt(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Checks tokens of one provider.
pub(super) struct Validator {
    source: KeySource,
    validation: Validation,
    known: Mutex<LoadedKeys>,
}

#[derive(Clone)]
struct LoadedKeys {
    keys: Arc<JwkSet>,
    /// The stamp of the file they come from.
    stamp: Option<PathStamp>,
    /// When they were last requested, and last received.
    asked: Instant,
    had: Instant,
}

impl LoadedKeys {
    /// Whether they must be loaded again.
    fn is_stale(&self, source: &KeySource, now: Instant) -> bool {
        match source {
            // A file that could not be read may be readable now.
            KeySource::File(_) if self.keys.keys.is_empty() && now - self.asked >= ASK_AGAIN => true,
            KeySource::File(_) => self.stamp != source.stamp(),
            KeySource::Url(_) => now - self.asked >= REFRESH,
        }
    }

    /// Stores the loaded keys. If a file cannot be read, no token is accepted; a provider may be unreachable for a while.
    fn update(&mut self, source: &KeySource, loaded: anyhow::Result<JwkSet>, stamp: Option<PathStamp>, now: Instant) {
        self.stamp = stamp;
        match loaded {
            Ok(keys) => {
                self.keys = Arc::new(keys);
                self.had = now;
            }
            Err(error) => {
                tracing::warn!("cannot get the keys of the identity provider: {error:#}");
                if matches!(source, KeySource::File(_)) || now - self.had >= MAX_AGE {
                    self.keys = Arc::new(JwkSet { keys: Vec::new() });
                }
            }
        }
    }

    fn find(&self, id: Option<&str>) -> Option<Jwk> {
        match id {
            Some(id) => self.keys.find(id).cloned(),
            None if self.keys.keys.len() == 1 => self.keys.keys.first().cloned(),
            None => None,
        }
    }
}

/// The claims that are used.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    scope: Option<String>,
    scp: Option<Words>,
}

/// A list, or words in one string: providers differ.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl Validator {
    pub(super) fn new(settings: &OAuthSettings) -> anyhow::Result<Self> {
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_issuer(&[&settings.issuer]);
        validation.set_audience(&[&settings.resource]);
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        validation.validate_nbf = true;
        let (stamp, now) = (settings.keys.stamp(), Instant::now());
        let known = LoadedKeys { keys: Arc::new(load(&settings.keys)?), stamp, asked: now, had: now };
        Ok(Self { source: settings.keys.clone(), validation, known: Mutex::new(known) })
    }

    /// The subject and scope of a token, or why it is rejected.
    pub(super) async fn check(&self, token: &str) -> Result<(String, TokenScope), String> {
        let header = decode_header(token).map_err(|_| "the token cannot be read".to_owned())?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err("the token is not signed by a private key".to_owned());
        }
        let key = self.key(header.kid.as_deref()).await.ok_or("the token is signed with an unknown key")?;
        let key = DecodingKey::from_jwk(&key).map_err(|_| "the token's key cannot be used".to_owned())?;
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let claims =
            decode::<Claims>(token, &key, &validation).map_err(|error| format!("the token is not valid: {error}"))?;
        let Claims { sub, scope, scp } = claims.claims;
        if sub.is_empty() || sub.len() > MAX_SUBJECT_BYTES {
            return Err(format!("the token's subject is empty or longer than {MAX_SUBJECT_BYTES} bytes"));
        }
        let words: Vec<String> = match scp {
            Some(Words::List(words)) => words,
            Some(Words::Text(text)) => vec![text],
            None => Vec::new(),
        };
        let words = words.iter().chain(&scope).flat_map(|text| text.split_whitespace());
        let scopes = words.filter_map(|word| TokenScope::from_name(word.strip_prefix("quipu:").unwrap_or(word)));
        let scope = scopes.max().ok_or("the token has none of the scopes read, write and admin")?;
        Ok((sub, scope))
    }

    async fn key(&self, id: Option<&str>) -> Option<Jwk> {
        let now = Instant::now();
        let known = self.lock().clone();
        if known.is_stale(&self.source, now) {
            self.load_again(now).await;
            return self.lock().find(id);
        }
        let found = known.find(id);
        if found.is_none() && matches!(self.source, KeySource::Url(_)) && now - known.asked >= ASK_AGAIN {
            self.load_again(now).await;
            return self.lock().find(id);
        }
        found
    }

    async fn load_again(&self, now: Instant) {
        // Before the request, so that a flood of invented keys causes one request.
        self.lock().asked = now;
        let source = self.source.clone();
        // Before the file is read: a change in between is seen next time.
        let stamp = source.stamp();
        let loaded = tokio::task::spawn_blocking(move || load(&source)).await;
        let loaded = loaded.unwrap_or_else(|error| Err(error.into()));
        self.lock().update(&self.source, loaded, stamp, now);
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, LoadedKeys> {
        self.known.lock()
    }
}

/// Whether the host of a URL is this machine: without https, others could change the keys on their way.
fn is_on_this_machine(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn load(source: &KeySource) -> anyhow::Result<JwkSet> {
    let text = match source {
        KeySource::File(file) => {
            own_files::read(file)?.with_context(|| format!("no key file at {}", file.display()))?
        }
        KeySource::Url(url) => {
            ensure!(url.starts_with("https://") || is_on_this_machine(url), "{url}: keys must be fetched over https");
            let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).max_redirects(0).build();
            let mut answer = ureq::Agent::new_with_config(config).get(url).call().with_context(|| url.clone())?;
            let body = answer.body_mut().with_config().limit(MAX_KEY_BYTES);
            body.read_to_string().with_context(|| url.clone())?
        }
    };
    let keys: JwkSet = serde_json::from_str(&text).context("the keys are not a JSON Web Key Set")?;
    ensure!(!keys.keys.is_empty(), "the key set is empty");
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use quipu_testkit::identity_provider::{ISSUER, RESOURCE, forged, keys, signed, token, token_with};
    use serde_json::Value;

    use super::*;

    fn settings(folder: &tempfile::TempDir) -> OAuthSettings {
        let file = folder.path().join("keys.json");
        own_files::replace(&file, &keys()).unwrap();
        OAuthSettings { issuer: ISSUER.into(), resource: RESOURCE.into(), keys: KeySource::File(file) }
    }

    #[tokio::test]
    async fn only_tokens_issued_for_this_server_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let validator = Validator::new(&settings(&folder)).unwrap();
        let check = |token: String| {
            let validator = &validator;
            async move { validator.check(&token).await }
        };
        assert_eq!(check(token()).await, Ok(("ada".to_owned(), TokenScope::Write)));
        assert_eq!(check(token_with("scp", json!(["admin"]))).await, Ok(("ada".to_owned(), TokenScope::Admin)));
        let wrong: [(&str, Value); 10] = [
            ("sub", json!("")),
            ("sub", json!("x".repeat(MAX_SUBJECT_BYTES + 1))),
            ("iss", json!("https://evil.example")),
            ("aud", json!("https://other.example/mcp")),
            ("aud", Value::Null),
            ("exp", json!(1_000_000_000)),
            ("exp", Value::Null),
            ("exp", json!("4102444800")),
            ("nbf", json!(4_102_444_000_u64)),
            ("scope", json!("openid email")),
        ];
        for (claim, value) in wrong {
            assert!(check(token_with(claim, value.clone())).await.is_err(), "{claim}: {value}");
        }
        let other_key = signed("sub", json!("ada"), Algorithm::EdDSA, "two");
        assert!(check(other_key).await.unwrap_err().contains("not known"));
        let symmetric = signed("sub", json!("ada"), Algorithm::HS256, "one");
        assert!(check(symmetric).await.unwrap_err().contains("private key"));
        assert!(check(forged()).await.is_err());
        assert!(check("a.b.c".to_owned()).await.is_err());
    }

    #[expect(clippy::disallowed_methods, reason = "the file of keys is the test's own")]
    #[test]
    fn keys_without_https_come_from_this_machine_only() {
        for url in ["http://localhost:1/keys", "http://127.0.0.1/keys", "http://[::1]:8080/keys"] {
            assert!(is_on_this_machine(url), "{url}");
        }
        for url in
            ["http://idp.example/keys", "http://localhost@idp.example/", "http://127.0.0.1.example/", "/keys", ""]
        {
            assert!(!is_on_this_machine(url), "{url}");
        }
    }

    #[tokio::test]
    async fn tokens_of_a_key_removed_from_the_file_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder);
        let KeySource::File(file) = &settings.keys else { unreachable!("they are in a file") };
        let validator = Validator::new(&settings).unwrap();
        assert!(validator.check(&token()).await.is_ok());
        own_files::replace(file, &keys().replace("\"one\"", "\"two\"")).unwrap();
        assert!(validator.check(&token()).await.unwrap_err().contains("not known"));
        own_files::replace(file, &keys()).unwrap();
        assert!(validator.check(&token()).await.is_ok(), "it is back");
        own_files::replace(file, "nonsense").unwrap();
        assert!(validator.check(&token()).await.is_err(), "a token is accepted without keys");
        // A link to the file of the day, as some systems lay them out.
        let days = ["monday", "tuesday"].map(|day| folder.path().join(day));
        own_files::replace(&days[0], &keys()).unwrap();
        own_files::replace(&days[1], &keys().replace("\"one\"", "\"two\"")).unwrap();
        for (day, lets_in) in days.iter().zip([true, false]) {
            std::fs::remove_file(file).unwrap();
            std::os::unix::fs::symlink(day, file).unwrap();
            assert_eq!(validator.check(&token()).await.is_ok(), lets_in, "{}", day.display());
        }
    }

    #[test]
    fn remote_keys_are_refreshed_and_used_during_an_outage() {
        let source = KeySource::Url("https://login.example/jwks.json".into());
        let start = Instant::now();
        let set: JwkSet = serde_json::from_str(&keys()).unwrap();
        let mut known = LoadedKeys { keys: Arc::new(set.clone()), stamp: None, asked: start, had: start };
        assert!(!known.is_stale(&source, start + REFRESH / 2));
        assert!(known.is_stale(&source, start + REFRESH));
        known.update(&source, Err(anyhow::anyhow!("timed out")), None, start + REFRESH);
        assert!(known.find(Some("one")).is_some());
        known.update(&source, Err(anyhow::anyhow!("timed out")), None, start + MAX_AGE);
        assert!(known.find(Some("one")).is_none(), "it may be withdrawn since");
        known.update(&source, Ok(set), None, start + MAX_AGE * 2);
        assert!(known.find(Some("one")).is_some());
    }

    #[test]
    fn metadata_names_the_authorization_server() {
        let folder = tempfile::tempdir().unwrap();
        let url = settings(&folder).metadata_url();
        assert_eq!(url, "https://notes.example/.well-known/oauth-protected-resource/mcp");
    }
}
