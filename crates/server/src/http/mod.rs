//! The HTTP server: MCP at `/mcp`, and the explorer. On loopback every program of this machine may connect, unless tokens are
//! required; a server that other machines can reach, by address, by name or through a proxy, requires tokens.

mod auth;
mod connection_table;
mod connections;
mod counters;
mod half_close;
mod hosts;
mod limits;
mod line_ends;
#[cfg(feature = "oauth")]
mod oauth;
mod request_guard;
mod sites;
mod stream;
mod tls;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::mcp::{self, McpServer};
use crate::service::{Capacity, Service, VaultService};
use crate::shutdown;
use crate::tokens::{TokenFile, TokenSource, VaultTokens};
use crate::web::{self, Explorer, ExplorerSessions};

use auth::Auth;
use connections::Connections;
use counters::Counters;
use hosts::AllowedHosts;
use limits::HttpClients;
#[cfg(feature = "oauth")]
pub use oauth::{KeySource, OAuthSettings};
use request_guard::RequestGuard;
pub use sites::GraphSource;
use sites::{Graphs, Sites};
use tls::Tls;

/// How long requests in progress may continue after the server is asked to stop.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// Default requests per second of one client, on a server that other machines can reach.
const RATE: u32 = 100;

/// How clients reach the server, and which may.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    pub address: SocketAddr,
    /// Require tokens also where only this machine can connect.
    pub require_token: bool,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    /// Certificate and key files.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub max_connections: usize,
    /// Requests per second of one client.
    pub rate: Option<u32>,
    /// How long the server answers after it was asked to stop, so that a load balancer finds another first.
    pub drain: Duration,
    /// The explorer's sessions, which need no token of the vault.
    pub explorer: Arc<ExplorerSessions>,
    #[cfg(feature = "oauth")]
    pub oauth: Option<OAuthSettings>,
}

impl HttpSettings {
    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("{}://{}/mcp", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    pub fn needs_token(&self) -> bool {
        self.why_tokens().is_some()
    }

    /// Why tokens are required, if they are. A proxy in front of loopback is not visible in addresses: its requests come from
    /// this machine. It is visible in `--allowed-host` and in the configured identity provider.
    fn why_tokens(&self) -> Option<&'static str> {
        if self.require_token {
            Some("--require-token is set")
        } else if !self.address.ip().is_loopback() {
            Some("it is reachable from other machines")
        } else if !self.allowed_hosts.is_empty() {
            Some("--allowed-host is set, so other machines may reach it through a proxy")
        } else if self.has_oauth() {
            Some("--oauth-issuer is set")
        } else {
            None
        }
    }

    /// Whether tokens of an identity provider are accepted.
    pub fn has_oauth(&self) -> bool {
        #[cfg(feature = "oauth")]
        return self.oauth.is_some();
        #[cfg(not(feature = "oauth"))]
        false
    }
}

/// What is served, and the tokens that are accepted.
pub struct Served {
    pub content: Content,
    pub tokens: Arc<dyn TokenSource>,
}

/// The content of a server.
pub enum Content {
    /// A folder of notes.
    Folder(Arc<dyn VaultService>, PathBuf),
    /// The graphs of a database.
    Graphs(Arc<dyn GraphSource>),
}

impl Served {
    /// A folder of notes, with its tokens.
    pub fn folder(vault: Arc<dyn VaultService>, root: &Path) -> Self {
        let tokens = Arc::new(VaultTokens::new(TokenFile::of(root)));
        Self { content: Content::Folder(vault, root.to_owned()), tokens }
    }
}

/// Serves until the process is asked to stop; does not wait for clients that keep their connection open.
///
/// `on_listening` gets the bound address.
pub fn serve(
    served: Served,
    settings: &HttpSettings,
    on_listening: impl FnOnce(SocketAddr) + Send + 'static,
) -> anyhow::Result<()> {
    let Served { content, tokens } = served;
    if let Some(why) = settings.why_tokens().filter(|_| !settings.has_oauth() && !settings.explorer.has_secret()) {
        let refused = |error| anyhow!("cannot listen at {}: {why}, and {error:#}", settings.address);
        tokens.ensure_some().map_err(refused)?;
    }
    if !settings.address.ip().is_loopback() && settings.tls.is_none() {
        tracing::warn!("tokens and notes are sent unencrypted; use --tls-cert and --tls-key, or a proxy with TLS");
    }
    let front = shutdown::front_runtime()?;
    let runtime = tokio::runtime::Runtime::new().context("while starting the server's threads")?;
    let outcome = front.block_on(async {
        let stop = shutdown::stop_signal()?;
        let (draining, drained) = watch::channel(false);
        let (stopping, stopped) = watch::channel(false);
        let listening = listen(content, tokens, settings.clone(), on_listening, [drained, stopped]);
        let mut serving = runtime.spawn(listening);
        tokio::select! {
            served = &mut serving => return served?,
            () = stop => {}
        }
        draining.send_replace(true);
        if !settings.drain.is_zero() {
            let again = shutdown::stop_signal()?;
            tokio::select! {
                served = &mut serving => return served?,
                () = again => {}
                () = tokio::time::sleep(settings.drain) => {}
            }
        }
        stopping.send_replace(true);
        tokio::time::timeout(STOP_GRACE.max(settings.drain), serving).await.unwrap_or_else(|_| {
            tracing::warn!("stopped while clients were still connected");
            Ok(Ok(()))
        })?
    });
    // Without waiting: a call that still runs has no client to answer.
    runtime.shutdown_background();
    outcome
}

/// The routes of what is served. `quipu open` lays the graph of the explorer out ahead.
fn routes(content: Content, capacity: &Arc<Capacity>, opens_explorer: bool) -> (Arc<Sites>, Router) {
    match content {
        Content::Folder(vault, root) => {
            let service = Service::new(vault, capacity.clone());
            let name = root.file_name().map_or_else(|| "vault".to_owned(), |name| name.to_string_lossy().into_owned());
            let explorer = Explorer::new(service.clone(), name, Some(root));
            tokio::spawn(explorer.clone().sample());
            if opens_explorer {
                tokio::spawn(explorer.clone().lay_out_ahead());
            }
            let router = mcp::http_routes(McpServer::new(service.clone())).merge(web::routes(explorer));
            (Arc::new(Sites::One(service)), router)
        }
        Content::Graphs(source) => {
            let sites = Arc::new(Sites::Graphs(Graphs::new(source, capacity.clone())));
            (sites.clone(), sites::routes(sites))
        }
    }
}

async fn listen(
    content: Content,
    tokens: Arc<dyn TokenSource>,
    settings: HttpSettings,
    on_listening: impl FnOnce(SocketAddr),
    [drain, stop]: [watch::Receiver<bool>; 2],
) -> anyhow::Result<()> {
    raise_file_limit(settings.max_connections);
    let tls = settings.tls.clone().map(|(certificates, key)| Tls::new(certificates, key)).transpose()?.map(Arc::new);
    let address = settings.address;
    let listener = TcpListener::bind(address).await.with_context(|| format!("while listening at {address}"))?;
    let bound = listener.local_addr()?;
    let counters = Arc::<Counters>::default();
    let capacity = match &content {
        Content::Graphs(_) => Capacity::for_graphs(),
        Content::Folder(..) => Capacity::new(),
    };
    let waited_for = capacity.clone();
    let is_short = Arc::new(move || waited_for.is_short_of_room());
    let connections = Connections::new(settings.max_connections, counters.clone(), is_short);
    // No rate limit on loopback: all programs of this machine share one address.
    let rate = settings.rate.or((!address.ip().is_loopback()).then_some(RATE));
    let auth = Auth::new(tokens, settings.needs_token(), settings.explorer.clone());
    #[cfg(feature = "oauth")]
    let auth = auth.with_oauth(settings.oauth.as_ref().map(oauth::Validator::new).transpose()?);
    #[cfg(feature = "oauth")]
    let resource_metadata = settings.oauth.as_ref().map(OAuthSettings::metadata_url);
    #[cfg(not(feature = "oauth"))]
    let resource_metadata = None;
    let (sites, routes) = routes(content, &capacity, settings.explorer.has_secret());
    let guard = Arc::new(RequestGuard {
        hosts: AllowedHosts::new(bound, tls.is_some(), &settings.allowed_hosts, &settings.allowed_origins)?,
        auth,
        clients: HttpClients::new(capacity.clone(), rate),
        capacity,
        sites: sites.clone(),
        counters,
        connections: connections.clone(),
        stopping: drain,
        resource_metadata,
    });
    let [metrics, health, ready] = request_guard::MONITORED;
    let monitored: Router = Router::new()
        .route(metrics, get(request_guard::metrics))
        .route(health, get(request_guard::health))
        .route(ready, get(request_guard::ready))
        .with_state(guard.clone());
    let pages = web::pages(settings.explorer.clone(), matches!(*sites, Sites::Graphs(_)));
    #[cfg(feature = "oauth")]
    let pages = oauth::with_metadata(pages, settings.oauth.as_ref());
    let router = routes
        .layer(from_fn_with_state(guard.clone(), request_guard::admit))
        .merge(pages)
        .merge(monitored)
        .layer(from_fn_with_state(guard.clone(), request_guard::enter));
    let url = HttpSettings { address: bound, ..settings.clone() }.url();
    tracing::info!(target: "quipu::listening", "listening at {url}");
    on_listening(bound);
    tokio::select! {
        () = connections.serve(listener, tls, router, stop) => {}
        () = request_guard::close_revoked_streams(&guard) => {}
        () = sites.maintain() => {}
    }
    Ok(())
}

/// Every connection is an open file, and the default limit of many systems is too low.
fn raise_file_limit(connections: usize) {
    // Besides connections: the index, memory, the watched folders.
    let wanted = connections as u64 + 512;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit on open files stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str) -> HttpSettings {
        HttpSettings {
            address: address.parse().unwrap(),
            require_token: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls: None,
            max_connections: 1,
            rate: None,
            drain: Duration::ZERO,
            explorer: Arc::default(),
            #[cfg(feature = "oauth")]
            oauth: None,
        }
    }

    #[test]
    fn addresses_reachable_from_other_machines_require_tokens() {
        assert!(!settings("127.0.0.1:7777").needs_token());
        assert!(!settings("[::1]:7777").needs_token());
        assert!(settings("0.0.0.0:7777").needs_token());
        assert!(HttpSettings { require_token: true, ..settings("127.0.0.1:7777") }.needs_token());
        let hosts = vec!["notes.example.org".to_owned()];
        assert!(
            HttpSettings { allowed_hosts: hosts, ..settings("127.0.0.1:7777") }.needs_token(),
            "a proxy has that name"
        );
    }

    #[cfg(feature = "oauth")]
    #[test]
    fn oauth_requires_a_token_on_loopback_too() {
        let oauth = OAuthSettings {
            issuer: "https://login.example.org".into(),
            resource: "https://notes.example.org/mcp".into(),
            keys: KeySource::File("keys.json".into()),
        };
        assert!(HttpSettings { oauth: Some(oauth), ..settings("127.0.0.1:7777") }.needs_token());
    }
}
