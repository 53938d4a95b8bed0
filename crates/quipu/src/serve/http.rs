//! Many clients over HTTP, on this machine only: there is no authentication yet, so nobody else may reach it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, ensure};
use axum::serve::ListenerExt;
use quipu_core::Knowledge;
use quipu_tools::Registry;
use tokio::net::TcpListener;

use crate::mcp::{self, Server};

/// Serves at `http://<address>/mcp` until the process is asked to end.
pub(crate) fn serve(knowledge: Arc<Knowledge>, registry: Arc<Registry>, address: SocketAddr) -> anyhow::Result<()> {
    ensure!(address.ip().is_loopback(), "{address} can be reached from other machines: use 127.0.0.1");
    let runtime = tokio::runtime::Runtime::new().context("while starting the server's threads")?;
    runtime.block_on(async {
        let stop = super::stop_signal()?;
        let listener = TcpListener::bind(address).await.with_context(|| format!("while listening at {address}"))?;
        tracing::info!(address = %listener.local_addr()?, "listening");
        // An answer is several small writes; held back by Nagle's algorithm, each would take 40 ms.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot turn off Nagle's algorithm");
            }
        });
        let routes = mcp::http_routes(Server::new(knowledge, registry));
        axum::serve(listener, routes).with_graceful_shutdown(stop).await.context("while serving")
    })
}
