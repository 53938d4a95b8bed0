//! How a server learns that it is to end: by a signal, or because the process that started it is gone.

use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Runs on the thread that waits for the end, and does nothing else: however busy the server's threads are, a signal is
/// heard and a deadline kept.
pub(crate) fn front_runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("while starting to listen for signals")
}

/// How often the parent is looked for.
const PARENT_LOOK: Duration = Duration::from_millis(250);

/// Ready when the process that started this one is gone: a client that died without closing the pipe, because somebody else
/// holds its other end too, would else leave a server behind.
pub(crate) async fn parent_gone() {
    let parent = rustix::process::getppid();
    let mut looks = tokio::time::interval(PARENT_LOOK);
    while rustix::process::getppid() == parent {
        looks.tick().await;
    }
    tracing::info!("the process that started this one is gone");
}

/// Ready when the process is asked to end. From the moment of the call on, not of the first wait.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let listen = |kind| signal(kind).context("while listening for the signal to stop");
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to stop");
    })
}
