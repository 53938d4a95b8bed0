//! What the callers of all vaults of a server share: workers, room for responses, and the counters of calls.

use std::fmt::Write;
use std::sync::Arc;

use quipu_tools::every_tool;
use tokio::sync::Semaphore;

use super::response_budget::ResponseBudget;
use super::tool_meter::ToolMeter;

/// Calls that run at the same time. Calls are short and mostly wait for the disk; more of them would only take turns.
pub(super) const MAX_WORKERS: usize = 16;

/// Calls that run at the same time on a database with several graphs, where a call may wait half a minute for another server's
/// transaction: the calls of graphs that wait must leave workers for the others.
const MAX_WORKERS_FOR_GRAPHS: usize = 64;

/// Calls of one client over HTTP that run at the same time, so that other clients always find a worker soon.
const MAX_WORKERS_PER_CLIENT: usize = MAX_WORKERS / 2;

/// Bytes of unread HTTP responses at which no further call starts.
const MAX_RESPONSE_BYTES: usize = 256 * 1024 * 1024;

/// Responses to one client, over HTTP or on a stream.
pub(super) const MAX_RESPONSE_BYTES_PER_CLIENT: usize = 64 * 1024 * 1024;

pub(crate) struct Capacity {
    pub(super) workers: Arc<Semaphore>,
    worker_limit: usize,
    /// For all HTTP clients together.
    budget: Arc<ResponseBudget>,
    pub(super) meter: ToolMeter,
}

impl Capacity {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_workers(MAX_WORKERS)
    }

    /// For a server of several graphs.
    pub(crate) fn for_graphs() -> Arc<Self> {
        Self::with_workers(MAX_WORKERS_FOR_GRAPHS)
    }

    fn with_workers(worker_limit: usize) -> Arc<Self> {
        Arc::new(Self {
            workers: Arc::new(Semaphore::new(worker_limit)),
            worker_limit,
            budget: ResponseBudget::new(MAX_RESPONSE_BYTES),
            meter: ToolMeter::of(every_tool().iter().map(|tool| tool.name)),
        })
    }

    /// The limits of one client over HTTP: workers, and response bytes.
    pub(crate) fn client_limits(&self) -> (Arc<Semaphore>, Arc<ResponseBudget>) {
        let workers = Arc::new(Semaphore::new(MAX_WORKERS_PER_CLIENT));
        (workers, self.budget.share(MAX_RESPONSE_BYTES_PER_CLIENT))
    }

    /// Whether a call waits until clients read their responses.
    pub(crate) fn is_short_of_room(&self) -> bool {
        self.budget.is_waited_for()
    }

    /// Calls, latencies and queues in the Prometheus text format.
    pub(crate) fn write_metrics(&self, page: &mut String) {
        self.meter.write(page);
        let busy = self.worker_limit - self.workers.available_permits();
        for (name, what, value) in [
            ("quipu_workers_busy", "Calls that run now.", busy),
            ("quipu_unsent_bytes", "HTTP responses not read by their clients yet.", self.budget.bytes()),
        ] {
            let _ = write!(page, "# HELP {name} {what}\n# TYPE {name} gauge\n{name} {value}\n");
        }
    }
}
