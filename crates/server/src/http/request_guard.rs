//! The checks that every HTTP request passes first: host, origin, identity, limits. Each check answers by itself; no body is
//! read before the client is identified.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use quipu_tools::echoed;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::auth::{Auth, Identity, Unknown};
use super::connection_table::{HttpConnection, StreamOwner};
use super::connections::{Connections, PeerAddress};
use super::counters::Counters;
use super::hosts::AllowedHosts;
use super::limits::{Excess, HttpClients};
use super::sites::{GrantedGraphs, Sites};
use crate::mcp::{InsufficientScope, until_sent};
use crate::service::{BeginStream, Caller, Capacity, RequestPermit};
use crate::tokens::TokenScope;

/// The state of the checks.
pub(super) struct RequestGuard {
    pub(super) hosts: AllowedHosts,
    pub(super) auth: Auth,
    pub(super) clients: HttpClients,
    pub(super) capacity: Arc<Capacity>,
    pub(super) sites: Arc<Sites>,
    pub(super) counters: Arc<Counters>,
    pub(super) connections: Arc<Connections>,
    /// Whether the server was asked to stop.
    pub(super) stopping: watch::Receiver<bool>,
    /// The URL of the metadata that names the authorization server, if one is configured.
    pub(super) resource_metadata: Option<String>,
}

/// The paths of monitors: of the metrics, of `health` and of `ready`. They are answered on connections kept for monitors, too.
pub(super) const MONITORED: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

/// The status of a server whose answers are complete and current.
const READY: &str = "ok";

/// Headers that may not be repeated: two readers may use different ones. [`super::line_ends`] rejects a second length.
const SINGLE: [HeaderName; 8] = [
    header::HOST,
    header::ORIGIN,
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
];

const MISSING_TOKEN: &str =
    "missing token; create one with `quipu token new` and send it as `Authorization: Bearer TOKEN`";

/// Headers that an allowed web page may send and read.
const SENT_BY_PAGES: &str =
    "authorization, content-type, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name";
const SEEN_BY_PAGES: &str = "mcp-session-id, www-authenticate, retry-after";

/// The first check, for every path: whether the request is valid and meant for this server, and its connection not kept for
/// monitors.
pub(super) async fn enter(State(guard): State<Arc<RequestGuard>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).filter(|origin| guard.takes_origin(origin)).cloned();
    let mut response = match guard.fault_of(&request) {
        Some(refusal) => refusal,
        None if request.method() == Method::OPTIONS && origin.is_some() => preflight(),
        None if guard.is_reserved(&request) => busy(),
        None => next.run(request).await,
    };
    if let Some(origin) = origin.filter(|_| response.status() != StatusCode::FORBIDDEN) {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SEEN_BY_PAGES));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    guard.counters.answered(response.status().as_u16());
    response
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT_BY_PAGES),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The second check, for MCP and the explorer's data: identity, limits, and the body.
pub(super) async fn admit(State(guard): State<Arc<RequestGuard>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let connection = parts.extensions.get::<Arc<HttpConnection>>().cloned();
    let address = address_of(&parts.extensions);
    let authorization = parts.headers.get(header::AUTHORIZATION).cloned();
    let identity = match guard.identify(authorization.as_ref(), address).await {
        Ok(identity) => identity,
        Err(refusal) => return refusal,
    };
    guard.auth.record_use(&identity);
    let client = guard.clients.of(&identity.id);
    let admitted = match guard.clients.admit(&client) {
        Ok(admitted) => admitted,
        Err(excess) => return guard.over(excess),
    };
    if connection.as_ref().is_some_and(|connection| !connection.admit()) {
        return busy();
    }
    let (body, permit) = if parts.method == Method::POST {
        match guard.clients.read(&client, &parts.headers, body).await {
            Ok(read) => (Body::from(read.bytes), read.permit),
            Err(excess) => return guard.over(excess),
        }
    } else {
        (Body::empty(), RequestPermit::default())
    };
    // Until the response is sent or the client disconnects: the library may keep the request for longer.
    let at_the_latest = permit.close_on_drop();
    let owner = StreamOwner { client: client.id.clone(), authorization, address };
    let begin_stream = guard.clone().begin_stream(connection, owner);
    let is_get = parts.method == Method::GET;
    parts.extensions.insert(Caller {
        id: client.id.clone(),
        token: identity.token,
        scope: identity.scope,
        workers: Some(client.workers.clone()),
        budget: client.budget.clone(),
        begin_stream: begin_stream.clone(),
    });
    parts.extensions.insert(permit.clone());
    parts.extensions.insert(GrantedGraphs(identity.graphs));
    let response = next.run(Request::from_parts(parts, body)).await;
    if let Some(InsufficientScope { tool, needed }) = response.extensions().get() {
        return guard.insufficient(*needed, &needed.refusal(tool));
    }
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
        // The response is complete. A stream may start before anything was done.
        permit.release_request();
    } else if is_get {
        begin_stream();
    }
    until_sent(response, (admitted, at_the_latest))
}

/// The response while all connections are busy, on one that is reserved or that is being closed for another.
fn busy() -> Response {
    let mut response = unavailable("all connections of this server are busy; retry in a moment");
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The response to a request that may succeed in a moment.
pub(super) fn unavailable(message: &str) -> Response {
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn address_of(extensions: &Extensions) -> IpAddr {
    extensions.get::<PeerAddress>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip())
}

/// How often the tokens of open event streams are checked again.
const STREAM_CHECK: Duration = Duration::from_secs(1);

/// Closes the event streams of tokens that were revoked or have expired. Never ends.
pub(super) async fn close_revoked_streams(guard: &RequestGuard) {
    let mut checks = tokio::time::interval(STREAM_CHECK);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        checks.tick().await;
        for owner in guard.connections.table.stream_owners() {
            let identity = guard.auth.identify(owner.authorization.as_ref(), owner.address).await;
            let is_over = match identity {
                Ok(identity) => *identity.id != *owner.client,
                Err(Unknown::Unchecked(_)) => false,
                Err(Unknown::Missing | Unknown::Invalid(_)) => true,
            };
            if is_over {
                tracing::info!(client = %owner.client, "closing the event streams of a token that is no longer valid");
                guard.connections.table.close_streams(&owner);
            }
        }
    }
}

/// `/metrics`, for the scope `admin`.
pub(super) async fn metrics(State(guard): State<Arc<RequestGuard>>, request: Request) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let identity = match guard.identify(authorization, address_of(request.extensions())).await {
        Ok(identity) => identity,
        Err(refusal) => return refusal,
    };
    if identity.scope < TokenScope::Admin {
        return guard.insufficient(TokenScope::Admin, "/metrics requires a token with the scope `admin`");
    }
    let mut page = String::new();
    let granted = GrantedGraphs(identity.graphs);
    let is_of_all = guard.sites.is_of_all(&granted);
    if is_of_all {
        guard.capacity.write_metrics(&mut page);
    }
    guard.sites.write_metrics(&mut page, &granted).await;
    if is_of_all {
        guard.counters.write(&mut page, guard.connections.table.count());
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response()
}

/// `/healthz`: that the server runs, and whether its answers are complete. Nothing else, because it needs no token.
pub(super) async fn health(State(guard): State<Arc<RequestGuard>>) -> Response {
    answer(StatusCode::OK, &json!({ "status": guard.status().await }))
}

/// `/readyz`: the same, with an error status unless answers are complete and current, for a load balancer.
pub(super) async fn ready(State(guard): State<Arc<RequestGuard>>) -> Response {
    let status = guard.status().await;
    let code = if status == READY { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer(code, &json!({ "status": status }))
}

impl RequestGuard {
    async fn status(&self) -> &'static str {
        if *self.stopping.borrow() { "stopping" } else { self.sites.unready_reason().await.unwrap_or(READY) }
    }

    fn takes_origin(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.hosts.takes_origin(origin))
    }

    fn fault_of(&self, request: &Request) -> Option<Response> {
        let headers = request.headers();
        if let Some(name) = SINGLE.iter().find(|name| headers.get_all(*name).iter().count() > 1) {
            return Some(refusal(StatusCode::BAD_REQUEST, &format!("duplicate {name} header; send it once")));
        }
        // The library accepts any list that ends with `chunked`, and then returns the body still encoded.
        if headers
            .get(header::TRANSFER_ENCODING)
            .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        {
            return Some(refusal(StatusCode::BAD_REQUEST, "unsupported Transfer-Encoding; only `chunked` is accepted"));
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
        if host.is_none() && authority.is_none() {
            return Some(refusal(StatusCode::FORBIDDEN, "missing Host header"));
        }
        if let Some(unknown) = host.into_iter().chain(authority).find(|host| !self.hosts.takes(host)) {
            let unknown = echoed(unknown);
            let message = format!("unknown Host header `{unknown}`; allow it with `--allowed-host {unknown}`");
            return Some(refusal(StatusCode::FORBIDDEN, &message));
        }
        if let Some(origin) = headers.get(header::ORIGIN).filter(|origin| !self.takes_origin(origin)) {
            let origin = echoed(origin.to_str().unwrap_or_default());
            let message = format!("origin `{origin}` is not allowed; allow it with `--allowed-origin {origin}`");
            return Some(refusal(StatusCode::FORBIDDEN, &message));
        }
        if request.uri().query().is_some() {
            let message = "query strings are not accepted; send the token in the Authorization header";
            return Some(refusal(StatusCode::BAD_REQUEST, message));
        }
        None
    }

    /// Whether a request came on a connection kept for monitors, and is not of a monitor.
    fn is_reserved(&self, request: &Request) -> bool {
        let connection = request.extensions().get::<Arc<HttpConnection>>();
        !MONITORED.contains(&request.uri().path())
            && connection.is_some_and(|connection| !self.connections.table.admits(connection))
    }

    /// The callback for a handler whose response is an endless stream.
    fn begin_stream(self: Arc<Self>, connection: Option<Arc<HttpConnection>>, owner: StreamOwner) -> BeginStream {
        Arc::new(move || {
            if let Some(connection) = &connection {
                self.connections.table.begin_stream(connection, owner.clone());
            }
        })
    }

    async fn identify(&self, authorization: Option<&HeaderValue>, address: IpAddr) -> Result<Identity, Response> {
        self.auth.identify(authorization, address).await.map_err(|unknown| {
            let (message, error) = match unknown {
                Unknown::Missing => (MISSING_TOKEN.to_owned(), None),
                Unknown::Invalid(why) => (why, Some("invalid_token")),
                Unknown::Unchecked(why) => return unavailable(&why),
            };
            self.challenge(StatusCode::UNAUTHORIZED, &message, error, None)
        })
    }

    fn insufficient(&self, needed: TokenScope, message: &str) -> Response {
        self.challenge(StatusCode::FORBIDDEN, message, Some("insufficient_scope"), Some(needed))
    }

    fn challenge(
        &self,
        status: StatusCode,
        message: &str,
        error: Option<&str>,
        needed: Option<TokenScope>,
    ) -> Response {
        let mut challenge = "Bearer realm=\"quipu\"".to_owned();
        let needed = needed.map(TokenScope::name);
        for (name, value) in
            [("error", error), ("scope", needed), ("resource_metadata", self.resource_metadata.as_deref())]
        {
            if let Some(value) = value {
                challenge.push_str(&format!(", {name}=\"{value}\""));
            }
        }
        let mut response = refusal(status, message);
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    fn over(&self, excess: Excess) -> Response {
        self.counters.limited.add();
        let (status, message) = match excess {
            Excess::TooMany(_) => (StatusCode::TOO_MANY_REQUESTS, "too many requests; retry in a moment"),
            Excess::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "the request body is too long"),
            Excess::TooSlow => (StatusCode::REQUEST_TIMEOUT, "timed out while reading the request body"),
            Excess::TooDeep => (StatusCode::PAYLOAD_TOO_LARGE, "the JSON is nested too deeply or has too many values"),
            Excess::Broken => (StatusCode::BAD_REQUEST, "the request body is incomplete"),
        };
        let mut response = refusal(status, message);
        let headers = response.headers_mut();
        if let Excess::TooMany(seconds) = excess {
            headers.insert(header::RETRY_AFTER, seconds.into());
        } else {
            // Without waiting for the rest of the body.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// An error in JSON-RPC's format.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response {
    let error = json!({ "code": -32000, "message": message });
    let mut response = answer(status, &json!({ "jsonrpc": "2.0", "id": null, "error": error }));
    if status == StatusCode::BAD_REQUEST {
        // After an ambiguous request nothing more is read from the connection.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

pub(super) fn answer(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
