//! One client over standard input and output. Standard output carries the protocol and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::watch;

use crate::hang_up;
use crate::mcp::{self, McpServer};
use crate::service::{Capacity, Service, VaultService};
use crate::shutdown;

/// How long a call of a client that closed its side is kept while waiting for another process.
const LEFT_GRACE: Duration = Duration::from_millis(700);

/// How often to check whether that process is ready.
const LOOK: Duration = Duration::from_millis(50);

/// Prepares to serve a client; `None` if the client disconnects meanwhile. `is_waiting` says whether the preparation only
/// waits for another process, which may never be ready.
pub fn prepare<T: Send + 'static>(
    is_waiting: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<Option<T>> {
    let (done, outcome) = tokio::sync::oneshot::channel();
    let begin = move || {
        // Fails only if the receiver was dropped.
        let _ = done.send(work());
    };
    std::thread::Builder::new().name("prepare".into()).spawn(begin).context("while starting to open the vault")?;
    shutdown::front_runtime()?.block_on(async {
        tokio::select! {
            biased;
            outcome = outcome => Ok(Some(outcome.context("opening the vault failed; see the log")?)),
            () = client_gone(is_waiting) => Ok(None),
            () = shutdown::parent_gone() => Ok(None),
        }
    })
}

/// Ready when the client has closed its side, and there is nothing to answer or no process that could.
async fn client_gone(is_waiting: &AtomicBool) {
    input_closed().await;
    let closed = Instant::now();
    loop {
        let asks = rustix::io::ioctl_fionread(std::io::stdin()).is_ok_and(|bytes| bytes > 0);
        if !asks || (is_waiting.load(Ordering::SeqCst) && closed.elapsed() > LEFT_GRACE) {
            return tracing::info!("the client disconnected before it could be served");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether the other end of stdin is closed, even with unread input: watched from the first use on, by one thread for the
/// whole process. It does not share readiness events with the reader. A file has no other end.
static INPUT_CLOSED: LazyLock<watch::Receiver<bool>> = LazyLock::new(|| {
    let (tell, told) = watch::channel(false);
    let look = move || match hang_up::wait(std::io::stdin()) {
        Ok(()) => drop(tell.send_replace(true)),
        Err(error) => tracing::debug!(%error, "standard input cannot be watched"),
    };
    if let Err(error) = std::thread::Builder::new().name("input".into()).spawn(look) {
        tracing::debug!(%error, "standard input is not watched");
    }
    told
});

/// Ready when the client has closed its side; never where that cannot be watched.
async fn input_closed() {
    if INPUT_CLOSED.clone().wait_for(|is_closed| *is_closed).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Serves until the client closes its side or the process is asked to stop; calls in progress are answered first.
pub fn serve(vault: Arc<dyn VaultService>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("while starting the server's threads")?;
    let outcome = runtime.block_on(async {
        let asked = shutdown::stop_signal()?;
        let stop = async {
            tokio::select! {
                () = asked => {}
                () = shutdown::parent_gone() => {}
            }
        };
        let (reader, writer) = mcp::stdio_pipes();
        mcp::converse(McpServer::new(Service::new(vault, Capacity::new())), reader, writer, input_closed(), stop).await
    });
    // Without waiting: if stdin is not a pipe, a thread is still blocked reading it.
    runtime.shutdown_background();
    outcome
}
