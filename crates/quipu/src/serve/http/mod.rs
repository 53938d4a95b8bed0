//! Many clients over HTTP, on this machine only: there is no authentication yet, so nobody else may reach it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use axum::serve::ListenerExt;
use quipu_core::Knowledge;
use quipu_tools::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::mcp::{self, Server};

/// How long answers may still take once the server is told to stop.
const STOP_GRACE: Duration = Duration::from_millis(800);

/// How long a client may leave its answer in the socket before the connection is closed: it counts against what all
/// clients together may leave unread.
#[cfg(target_os = "linux")]
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// Serves at `http://<address>/mcp` until the process is asked to end. A client that keeps its connection open is not
/// waited for.
pub(crate) fn serve(knowledge: Arc<Knowledge>, registry: Arc<Registry>, address: SocketAddr) -> anyhow::Result<()> {
    ensure!(address.ip().is_loopback(), "{address} can be reached from other machines: use 127.0.0.1");
    let front = super::front_runtime()?;
    let runtime = tokio::runtime::Runtime::new().context("while starting the server's threads")?;
    let outcome = front.block_on(async {
        let stop = super::stop_signal()?;
        let (stopping, mut stopped) = watch::channel(false);
        let mut serving = runtime.spawn(listen(Server::new(knowledge, registry), address, async move {
            // Only the one below ends the wait; it outlives the server.
            drop(stopped.wait_for(|stopped| *stopped).await);
        }));
        tokio::select! {
            served = &mut serving => return served?,
            () = stop => {}
        }
        stopping.send_replace(true);
        tokio::time::timeout(STOP_GRACE, serving).await.unwrap_or_else(|_| {
            tracing::warn!("stopped while clients were still connected");
            Ok(Ok(()))
        })?
    });
    // Not waited for: a call that still runs has nobody left to answer.
    runtime.shutdown_background();
    outcome
}

async fn listen(
    server: Server,
    address: SocketAddr,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("while listening at {address}"))?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let listener = listener.tap_io(|stream| {
        if let Err(error) = prepare(stream) {
            tracing::debug!(%error, "cannot set up a connection");
        }
    });
    axum::serve(listener, mcp::http_routes(server)).with_graceful_shutdown(stop).await.context("while serving")
}

/// An answer is several small writes; held back by Nagle's algorithm, each would take 40 ms.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(stream, u32::try_from(READ_PATIENCE.as_millis()).unwrap_or(u32::MAX))?;
    Ok(())
}
