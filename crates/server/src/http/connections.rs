//! Accepts connections and serves HTTP/1.1 on each, with limits on their number, on the time for headers and on the time that a
//! response may stay unread.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower_service::Service;

use super::connection_table::{ConnectionTable, HttpConnection};
use super::counters::Counters;
use super::half_close::InputEnd;
use super::line_ends::{Body, BodyLength, StrictLineEnds};
use super::stream::{IsShort, Watched};
use super::tls::Tls;
use crate::mcp::until_sent;

/// How long a TLS handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be idle. Longer than clients keep theirs, so that none is closed while a request is being sent.
const SILENCE: Duration = Duration::from_secs(120);

/// Buffer for the headers of a request, and for the part of a response that is made in advance.
const BUFFER_BYTES: usize = 64 * 1024;

/// How long to wait when the system cannot accept more connections.
const PAUSE: Duration = Duration::from_millis(20);

/// The address that a request came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerAddress(pub(super) SocketAddr);

/// Serves each connection on its own task.
pub(super) struct Connections {
    pub(super) table: Arc<ConnectionTable>,
    counters: Arc<Counters>,
    is_short: IsShort,
}

impl Connections {
    pub(super) fn new(limit: usize, counters: Arc<Counters>, is_short: IsShort) -> Arc<Self> {
        let table = Arc::new(ConnectionTable::new(limit, counters.clone()));
        let others_wait = {
            let table = table.clone();
            Arc::new(move || table.is_full() || is_short())
        };
        Arc::new(Self { table, counters, is_short: others_wait })
    }

    /// Serves until `stop`; requests in progress are answered first.
    pub(super) async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        tls: Option<Arc<Tls>>,
        router: Router,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopped(&mut stop) => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.table.make_room();
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            self.counters.accepted.add();
            if let Some(connection) = self.table.add() {
                let (connections, tls, router) = (self.clone(), tls.clone(), router.clone());
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = connections.speak(stream, PeerAddress(peer), tls, router, &connection, stop) => {}
                        () = connection.closed() => {}
                    }
                    connections.table.remove(&connection);
                });
            }
        }
        while self.table.count() > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn speak(
        &self,
        stream: TcpStream,
        peer: PeerAddress,
        tls: Option<Arc<Tls>>,
        router: Router,
        connection: &Arc<HttpConnection>,
        stop: watch::Receiver<bool>,
    ) {
        // A response is several small writes; with Nagle's algorithm each would take 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set up a connection");
        }
        let stream = Watched::new(stream, self.is_short.clone(), connection.clone());
        match tls {
            None => self.speak_http(stream, peer, router, connection, stop).await,
            Some(tls) => match tokio::time::timeout(HANDSHAKE_PATIENCE, tls.acceptor().accept(stream)).await {
                Ok(Ok(stream)) => self.speak_http(stream, peer, router, connection, stop).await,
                Ok(Err(error)) => tracing::debug!(%error, peer = %peer.0, "TLS handshake failed"),
                Err(_) => tracing::debug!(peer = %peer.0, "TLS handshake timed out"),
            },
        }
    }

    async fn speak_http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: PeerAddress,
        router: Router,
        connection: &Arc<HttpConnection>,
        mut stop: watch::Receiver<bool>,
    ) {
        let body = Body::default();
        let busy = connection.clone();
        let stream = StrictLineEnds::new(stream, body.clone(), InputEnd::new(move || busy.is_busy()));
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            let busy = self.table.begin_request(connection);
            let is_last = body.announce(request.headers()) == BodyLength::Chunked || busy.is_last;
            let mut request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(connection.clone());
            let answering = router.clone().call(request);
            async move {
                let mut response = answering.await?;
                if is_last {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(until_sent(response, busy))
            }
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SILENCE)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut serving = std::pin::pin!(serving);
        let outcome = tokio::select! {
            outcome = serving.as_mut() => outcome,
            () = stopped(&mut stop) => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = outcome {
            if is_unread(&error) {
                self.counters.unread.add();
            }
            tracing::debug!(%error, peer = %peer.0, "a connection ended with an error");
        }
    }
}

/// Ready when the server must stop. The sender outlives the server.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stopped| *stopped).await);
}

fn is_unread(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}
