//! The MCP protocol: the only module that names the MCP library.
//!
//! A line of bytes becomes a checked message ([`lines`], [`message`]), the library's loop passes it to a [`McpConnection`],
//! and the response is written as a line ([`transport`]). One stream serves both protocol generations: the one with a
//! handshake, and the one where every request names its version.
//!
//! Batches are accepted from clients that negotiated 2025-03-26 ([`batch`]); otherwise each request in a batch gets an
//! error. Over HTTP the library accepts none.

mod answer;
mod app_view;
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
mod prompts;
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

/// How long calls in progress may continue after the server is asked to stop.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// How long a response over HTTP is kept for a client whose connection broke.
const RESUME_GRACE: Duration = Duration::from_secs(5);

/// Maximum bytes of an HTTP request, equal to the limit of a line on stdio.
pub(crate) const MAX_BODY_BYTES: usize = lines::MAX_LINE_BYTES;

/// Serves one client until its stream ends or `stop` is ready; calls in progress are answered first. `closed` is ready when
/// the client has closed its side, whether or not its input was read to the end: a client that then reads no responses is
/// dropped.
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
    // Not the library's own handshake: it rejects every call before `initialize`.
    let running = serve_directly(McpConnection::over_stream(server), transport, None);
    let mut finished = std::pin::pin!(running.waiting());
    let reason = tokio::select! {
        reason = &mut finished => reason?,
        // The library would wait longer for its responses.
        () = given_up => return Ok(()),
        // The end of the stream is not read while too many calls are in progress.
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

/// Serves clients over HTTP, at `/mcp`. The HTTP layers in front decide which requests arrive, and attach a
/// [`Caller`](crate::service::Caller) to each.
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
