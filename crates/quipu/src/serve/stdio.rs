//! One client over standard input and output. Standard output carries the protocol and nothing else.

use std::sync::Arc;

use anyhow::Context;

use crate::mcp::{self, Desk, Server};

/// Serves until the client closes its side or the process is asked to end, and answers what is in flight first.
pub(crate) fn serve(desk: Arc<dyn Desk>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("while starting the server's threads")?;
    let outcome = runtime.block_on(async {
        let asked = super::stop_signal()?;
        let stop = async {
            tokio::select! {
                () = asked => {}
                () = super::parent_gone() => {}
            }
        };
        let (reader, writer) = mcp::stdio_pipes();
        mcp::converse(Server::new(desk), reader, writer, stop).await
    });
    // Not waited for: where standard input is no pipe, a thread is still blocked in reading it.
    runtime.shutdown_background();
    outcome
}
