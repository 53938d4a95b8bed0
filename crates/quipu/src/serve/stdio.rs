//! One client over standard input and output. Standard output carries the protocol and nothing else.

use std::sync::Arc;

use anyhow::Context;
use quipu_core::Knowledge;
use quipu_tools::Registry;

use crate::mcp::{self, Server};

/// Serves until the client closes its side or the process is asked to end, and answers what is in flight first.
pub(crate) fn serve(knowledge: Arc<Knowledge>, registry: Arc<Registry>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("while starting the server's threads")?;
    let outcome = runtime.block_on(async {
        let stop = super::stop_signal()?;
        let (reader, writer) = mcp::stdio_pipes();
        mcp::converse(Server::new(knowledge, registry), reader, writer, stop).await
    });
    // Not waited for: where standard input is no pipe, a thread is still blocked in reading it.
    runtime.shutdown_background();
    outcome
}
