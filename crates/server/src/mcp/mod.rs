//! The MCP front door: the only room that names the MCP library.
//!
//! A line of bytes becomes a checked message ([`lines`], [`message`]), the library's loop hands it to a [`McpConnection`],
//! and the answer goes back out as a line ([`transport`]). Both protocol generations are spoken on the same stream: one
//! with a handshake, and one where every request says what it is.
//!
//! Batches, which only 2025-03-26 knew, are taken from clients that agreed on that version ([`batch`]); from others each
//! request in one is answered with an error of its own. Over HTTP the library takes none.

mod answer;
mod batch;
mod connection;
mod http_body;
mod http_ids;
mod http_refusal;
mod http_requests;
mod http_sessions;
mod in_flight;
mod instructions;
mod lines;
mod mcp_server;
mod message;
mod notices;
mod progress;
mod request_id;
mod resources;
mod transport;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{QuitReason, serve_directly};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub(crate) use http_body::until_sent;
pub(crate) use http_requests::InsufficientScope;
pub(crate) use mcp_server::McpServer;
pub(crate) use rmcp::transport::stdio_pipes;

use connection::McpConnection;
use http_ids::IdsInUse;
use http_requests::HttpRequests;
use http_sessions::OwnedSessions;
use transport::LineTransport;

/// How long calls in flight may still take once the server is told to stop.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// How long an answer that was sent over HTTP is kept for a client whose connection broke.
const RESUME_GRACE: Duration = Duration::from_secs(5);

/// The longest request over HTTP: what a line may be on standard input.
pub(crate) const MAX_BODY_BYTES: usize = lines::MAX_LINE_BYTES;

/// Talks to one client until its stream ends or `stop` is ready; what is in flight then is answered first. `closed` is ready
/// when the client has closed its side, read to its end or not: one that then takes no answers is left.
pub(crate) async fn converse<R, W>(
    server: McpServer,
    reader: R,
    writer: W,
    closed: impl Future<Output = ()>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let ending = watch::Sender::new(false);
    let transport = LineTransport::new(server.service().clone(), reader, writer, ending.clone());
    let (given_up, ignored) = (transport.given_up(), transport.ignored());
    // Not the library's own handshake: it turns away every call that comes before `initialize`.
    let running = serve_directly(McpConnection::over_stream(server), transport, None);
    let mut finished = std::pin::pin!(running.waiting());
    let reason = tokio::select! {
        reason = &mut finished => reason?,
        // The library would wait for its answers a while longer.
        () = given_up => return Ok(()),
        // While it has too many calls in flight, the end of its stream is not read.
        () = async { closed.await; ignored.await } => return Ok(()),
        () = stop => {
            ending.send_replace(true);
            match tokio::time::timeout(STOP_GRACE, finished).await {
                Ok(reason) => reason?,
                Err(_) => {
                    tracing::warn!("stopped while calls were still running");
                    return Ok(());
                }
            }
        }
    };
    match reason {
        QuitReason::JoinError(error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The same server over HTTP, at `/mcp`. Whose requests get here, and which, is for the front door to say: it puts a
/// [`Caller`] into each.
pub(crate) fn http_routes(server: McpServer) -> axum::Router {
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let service = server.service().clone();
    let connect = move || Ok(McpConnection::over_http(server.clone()));
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.completed_cache_ttl = RESUME_GRACE;
    let sessions = Arc::new(sessions);
    let owned = OwnedSessions::new(sessions.clone());
    let requests = Arc::new(HttpRequests { service, sessions: owned, ids: IdsInUse::default() });
    let library = StreamableHttpService::new(connect, sessions, config);
    axum::Router::new()
        .nest_service("/mcp", library)
        .layer(axum::middleware::from_fn_with_state(requests, http_requests::handle))
}
