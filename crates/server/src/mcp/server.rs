//! What every connection shares: the vault, its tools as MCP shows them, and the workers that calls run on.

use std::sync::Arc;

use parking_lot::RwLock;
use quipu_tools::{Access, Offer, every_tool};
use rmcp::model::{ErrorData, Tool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::describe;
use super::instructions;
use super::last_reading::LastReading;
use super::meter::Meter;
use super::notices::{Listening, Notices};
use super::sessions::Sessions;
use super::unsent::Unsent;
use crate::service::{Desk, Reading};

/// Calls that run at the same time. Calls are short and mostly wait for the disk; more of them would only take turns.
const MAX_WORKERS: usize = 16;

/// And of those, the calls of one client over HTTP: the others always find a worker soon.
const MAX_WORKERS_PER_CLIENT: usize = MAX_WORKERS / 2;

/// Answers over HTTP that may wait for their readers before no further call begins.
const MAX_UNSENT_BYTES: usize = 256 * 1024 * 1024;

/// And of those, the answers to one client.
const MAX_UNSENT_BYTES_PER_CLIENT: usize = 64 * 1024 * 1024;

/// One vault behind MCP. Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    desk: Arc<dyn Desk>,
    shown: RwLock<Arc<Shown>>,
    workers: Arc<Semaphore>,
    last_reading: LastReading,
    sessions: Sessions,
    /// To all clients over HTTP: how many there are is theirs to choose.
    unsent: Arc<Unsent>,
    notices: Arc<Notices>,
    meter: Meter,
}

/// The tools that are offered, as clients are shown them.
struct Shown {
    offer: Arc<Offer>,
    to_writers: Listed,
    to_readers: Listed,
}

/// Tools with their texts, which name no tool that is not among them.
struct Listed {
    instructions: String,
    accesses: Vec<Access>,
    /// For clients of each generation.
    tools: Vec<Tool>,
    legacy_tools: Vec<Tool>,
}

impl Shown {
    fn of(offer: Arc<Offer>) -> Self {
        Self { to_writers: Listed::of(&offer), to_readers: Listed::of(&offer.reading()), offer }
    }

    fn to(&self, may_write: bool) -> &Listed {
        if may_write { &self.to_writers } else { &self.to_readers }
    }
}

impl Listed {
    fn of(offer: &Offer) -> Self {
        Self {
            instructions: instructions::for_tools(offer.tools()),
            accesses: offer.tools().map(|tool| tool.access).collect(),
            tools: offer.tools().map(|tool| describe(tool, true)).collect(),
            legacy_tools: offer.tools().map(|tool| describe(tool, false)).collect(),
        }
    }
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
        let notices = Arc::<Notices>::default();
        let teller = notices.clone();
        desk.on_change(Box::new(move |change| teller.tell(change)));
        Self(Arc::new(Shared {
            shown: RwLock::new(Arc::new(Shown::of(desk.offer()))),
            // Of all tools: which are offered may change.
            meter: Meter::of(every_tool().iter().map(|tool| tool.name)),
            notices,
            desk,
            workers: Arc::new(Semaphore::new(MAX_WORKERS)),
            sessions: Sessions::default(),
            last_reading: LastReading::default(),
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

    /// One client's share of the workers and of the room for answers.
    pub(crate) fn share(&self) -> (Arc<Semaphore>, Arc<Unsent>) {
        let turns = Arc::new(Semaphore::new(MAX_WORKERS_PER_CLIENT));
        (turns, self.0.unsent.share(MAX_UNSENT_BYTES_PER_CLIENT))
    }

    /// Whether a call waits until clients read their answers.
    pub(crate) fn is_short_of_room(&self) -> bool {
        self.0.unsent.is_waited_for()
    }

    /// What a tool may do; `None` where there is no such tool.
    pub(crate) fn access(&self, tool: &str) -> Option<Access> {
        self.0.desk.offer().tools().find(|known| known.name == tool).map(|known| known.access)
    }

    /// Whether what comes behind a call of this tool must find it done.
    pub(super) fn writes(&self, tool: &str) -> bool {
        self.access(tool).is_some_and(|access| access != Access::Read)
    }

    pub(super) fn instructions(&self, may_write: bool) -> String {
        self.shown().to(may_write).instructions.clone()
    }

    /// What is shown of the present offer.
    fn shown(&self) -> Arc<Shown> {
        let offer = self.0.desk.offer();
        let shown = self.0.shown.read().clone();
        if Arc::ptr_eq(&shown.offer, &offer) {
            return shown;
        }
        let shown = Arc::new(Shown::of(offer));
        *self.0.shown.write() = shown.clone();
        shown
    }

    /// Those that somebody may use, in the registry's order, so that a client may cache the list.
    pub(super) fn tools(&self, modern: bool, may: impl Fn(Access) -> bool) -> Vec<Tool> {
        let shown = self.shown();
        let listed = shown.to(may(Access::Write));
        let all = listed.accesses.iter().zip(if modern { &listed.tools } else { &listed.legacy_tools });
        all.filter(|(access, _)| may(**access)).map(|(_, tool)| tool.clone()).collect()
    }

    /// Hears of changes from now on.
    pub(super) fn listen(&self) -> Listening {
        self.0.notices.listen()
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.0.meter
    }

    /// How far the vault has been read, as far as that is known by now.
    pub(crate) async fn reading(&self) -> Reading {
        let shared = self.0.clone();
        self.0.last_reading.or(move || shared.desk.reading()).await
    }

    /// Calls, latencies and queues, as Prometheus reads them.
    pub(crate) async fn write_metrics(&self, page: &mut String) {
        use std::fmt::Write;
        self.0.meter.write(page);
        let Reading { files, is_over } = self.reading().await;
        let busy = MAX_WORKERS - self.0.workers.available_permits();
        for (name, what, value) in [
            ("quipu_workers_busy", "Calls that run now.", busy),
            ("quipu_unsent_bytes", "Answers over HTTP that were made and not read yet.", self.0.unsent.bytes()),
            ("quipu_notes", "Files in the index.", files),
            ("quipu_indexed", "1 once the vault has been read.", usize::from(is_over)),
        ] {
            let _ = write!(page, "# HELP {name} {what}\n# TYPE {name} gauge\n{name} {value}\n");
        }
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
        let permit = unless_cancelled(&mut cancelled, self.turn(unsent)).await?;
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

/// Waits for something that is to be begun then. The cancellation is looked at first: where both are there, nothing begins.
pub(super) async fn unless_cancelled<T>(
    cancelled: impl Future<Output = ()>,
    waiting: impl Future<Output = T>,
) -> Result<T, Interrupted> {
    tokio::select! {
        biased;
        () = cancelled => Err(Interrupted::Cancelled),
        outcome = waiting => Ok(outcome),
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn what_was_called_off_before_its_turn_came_is_not_begun() {
        for _ in 0..50 {
            assert!(matches!(unless_cancelled(ready(()), ready(())).await, Err(Interrupted::Cancelled)));
        }
    }
}
