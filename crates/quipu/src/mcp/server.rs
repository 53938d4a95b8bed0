//! What every connection shares: the vault, its tools as MCP shows them, and the workers that calls run on.

use std::sync::Arc;

use rmcp::model::{ErrorData, Tool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::describe;
use super::desk::Desk;
use super::instructions;
use super::sessions::Sessions;
use super::unsent::Unsent;

/// Calls that run at the same time. Calls are short and mostly wait for the disk; more of them would only take turns.
const MAX_WORKERS: usize = 16;

/// Answers over HTTP that may wait for their readers before no further call begins.
const MAX_UNSENT_BYTES: usize = 256 * 1024 * 1024;

/// One vault behind MCP. Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    desk: Arc<dyn Desk>,
    instructions: String,
    /// As shown to clients of each generation.
    tools: Vec<Tool>,
    legacy_tools: Vec<Tool>,
    workers: Arc<Semaphore>,
    sessions: Sessions,
    /// To all clients over HTTP: how many there are is theirs to choose.
    unsent: Arc<Unsent>,
}

/// Why a call on a worker has no outcome.
pub(super) enum Interrupted {
    /// The client no longer wants it.
    Cancelled,
    /// The work panicked; the log says where.
    Failed,
}

impl From<Interrupted> for ErrorData {
    fn from(interrupted: Interrupted) -> Self {
        match interrupted {
            // Never sent: the answer to a cancelled request is held back.
            Interrupted::Cancelled => Self::internal_error("cancelled", None),
            Interrupted::Failed => Self::internal_error("the call failed inside the server; its log says why", None),
        }
    }
}

impl Server {
    pub(crate) fn new(desk: Arc<dyn Desk>) -> Self {
        let tools = || desk.offer().tools();
        Self(Arc::new(Shared {
            instructions: instructions::for_tools(tools()),
            tools: tools().map(|tool| describe(tool, true)).collect(),
            legacy_tools: tools().map(|tool| describe(tool, false)).collect(),
            desk,
            workers: Arc::new(Semaphore::new(MAX_WORKERS)),
            sessions: Sessions::default(),
            unsent: Unsent::new(MAX_UNSENT_BYTES),
        }))
    }

    pub(super) fn desk(&self) -> &dyn Desk {
        &*self.0.desk
    }

    /// Of clients without a connection.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// Answers to clients without a connection.
    pub(super) fn unsent(&self) -> &Arc<Unsent> {
        &self.0.unsent
    }

    pub(super) fn instructions(&self) -> &str {
        &self.0.instructions
    }

    /// In the registry's order, so that a client may cache the list.
    pub(super) fn tools(&self, modern: bool) -> &[Tool] {
        if modern { &self.0.tools } else { &self.0.legacy_tools }
    }

    /// Runs work on a thread of its own, once there is room for its answer, so that a slow call holds up nobody. Work that nobody wants any more is not
    /// begun; once begun it runs to its end, for a write must not stop half-way.
    pub(super) async fn on_worker<T: Send + 'static>(
        &self,
        unsent: &Unsent,
        cancelled: impl Future<Output = ()>,
        work: impl FnOnce(&Server) -> T + Send + 'static,
    ) -> Result<T, Interrupted> {
        let mut cancelled = std::pin::pin!(cancelled);
        let permit = tokio::select! {
            permit = self.turn(unsent) => permit,
            () = &mut cancelled => return Err(Interrupted::Cancelled),
        };
        let server = self.clone();
        let running = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&server)
        });
        tokio::select! {
            outcome = running => outcome.map_err(|error| {
                tracing::error!(%error, "a call failed");
                Interrupted::Failed
            }),
            () = cancelled => Err(Interrupted::Cancelled),
        }
    }

    /// Waits for a worker, and for room for the answer.
    async fn turn(&self, unsent: &Unsent) -> OwnedSemaphorePermit {
        loop {
            unsent.room().await;
            let permit = self.0.workers.clone().acquire_owned().await.expect("the semaphore is never closed");
            // Others may have filled the room while this one waited for a worker.
            if unsent.has_room() {
                return permit;
            }
        }
    }
}
