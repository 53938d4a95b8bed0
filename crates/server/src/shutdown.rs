//! When a server stops: on a signal, or when its parent process has exited.

use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Runs on the thread that waits for the stop and does nothing else, so that signals and deadlines work however busy the
/// server's threads are.
pub(crate) fn front_runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("while starting to listen for signals")
}

/// How often the parent is checked.
const PARENT_LOOK: Duration = Duration::from_millis(250);

/// Ready when the parent process has exited. Otherwise a client that dies while another process also holds the pipe would
/// leave a server behind.
pub(crate) async fn parent_gone() {
    let parent = rustix::process::getppid();
    let mut looks = tokio::time::interval(PARENT_LOOK);
    while rustix::process::getppid() == parent {
        looks.tick().await;
    }
    tracing::info!("the parent process has exited");
}

/// Ready when the process is asked to stop. Signals count from the call on, not from the first poll.
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

/// Calls this when the process is asked to stop, for commands without a server.
pub fn on_stop_signal(stop: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let front = front_runtime()?;
    let asked = {
        let _entered = front.enter();
        stop_signal()?
    };
    let wait = move || {
        front.block_on(asked);
        stop();
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .context("while starting to listen for signals")?;
    Ok(())
}
