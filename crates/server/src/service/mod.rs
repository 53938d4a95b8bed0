//! The service below every transport: it checks access, keeps the order of calls, limits workers and response bytes, counts, and
//! passes calls to the vault. A transport only turns bytes into a [`Request`].

mod call_order;
mod caller;
mod capacity;
mod client_sessions;
mod last_hour;
mod last_progress;
mod metric;
mod request_permit;
mod response_budget;
mod tool_meter;
mod trail;
mod vault_service;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quipu_core::{RequestKey, Session};
use quipu_tools::{Reply, ToolInfo, ToolResponse};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

pub(crate) use call_order::CallOrder;
pub(crate) use caller::{BeginStream, Caller};
pub(crate) use capacity::Capacity;
pub use last_hour::{LastHour, Reading};
pub use metric::{Metric, MetricKind};
pub(crate) use request_permit::{RequestPermit, SMALL_REQUEST_BYTES};
pub(crate) use response_budget::{ResponseBudget, ResponseBytes};
pub use trail::{ClientCalls, EXPLORER, StartedCall, ToolLatency, Trail, TrailEntry, TrailEntryKind, TrailPage};
pub(crate) use vault_service::UNREACHABLE;
pub use vault_service::{IndexProgress, Report, VaultChange, VaultChangeListener, VaultService};

use call_order::CallTurn;
use capacity::MAX_WORKERS;
use client_sessions::ClientSessions;
use last_progress::LastProgress;

use crate::tokens::TokenScope;

/// Calls of one graph that run at the same time, so that the calls of other graphs always find a worker soon.
const MAX_WORKERS_PER_GRAPH: usize = MAX_WORKERS / 2;

/// A tool, looked up once, or the error for a client that asked for a tool that is not offered.
pub(crate) type FoundTool = Result<&'static ToolInfo, Reply>;

/// One call of a tool.
pub(crate) struct Request {
    pub(crate) caller: Caller,
    pub(crate) session: Arc<Session>,
    pub(crate) tool: FoundTool,
    pub(crate) arguments: Value,
    /// The client's own key, by which it may repeat the call.
    pub(crate) key: Option<RequestKey>,
    pub(crate) permit: RequestPermit,
}

/// One vault and what its callers share.
pub(crate) struct Service {
    vault: Arc<dyn VaultService>,
    capacity: Arc<Capacity>,
    /// The part of all workers that this vault may use.
    share: Arc<Semaphore>,
    sessions: ClientSessions,
    last_progress: LastProgress,
    /// Calls that were answered, and how long they took together, waiting included.
    calls: AtomicU64,
    calls_us: AtomicU64,
}

/// Why a call has no outcome.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServiceError {
    /// The caller's scope does not allow the tool.
    OutOfScope {
        tool: &'static str,
        /// The scope that allows it.
        needed: TokenScope,
    },
    /// The client cancelled it.
    Cancelled,
    /// The work panicked; see the log.
    Failed,
}

impl Service {
    /// The only vault of a server.
    pub(crate) fn new(vault: Arc<dyn VaultService>, capacity: Arc<Capacity>) -> Arc<Self> {
        Self::with_share(vault, capacity, MAX_WORKERS)
    }

    /// One of several graphs of a server.
    pub(crate) fn of_graph(vault: Arc<dyn VaultService>, capacity: Arc<Capacity>) -> Arc<Self> {
        Self::with_share(vault, capacity, MAX_WORKERS_PER_GRAPH)
    }

    fn with_share(vault: Arc<dyn VaultService>, capacity: Arc<Capacity>, workers: usize) -> Arc<Self> {
        Arc::new(Self {
            vault,
            capacity,
            share: Arc::new(Semaphore::new(workers)),
            sessions: ClientSessions::default(),
            last_progress: LastProgress::default(),
            calls: AtomicU64::new(0),
            calls_us: AtomicU64::new(0),
        })
    }

    pub(crate) fn vault(&self) -> &dyn VaultService {
        &*self.vault
    }

    /// Sessions of clients without a connection.
    pub(crate) fn sessions(&self) -> &ClientSessions {
        &self.sessions
    }

    /// Finds an offered tool.
    pub(crate) fn find(&self, name: &str) -> FoundTool {
        self.vault.offer().find(name)
    }

    /// Finds a tool for the explorer, whichever toolsets are offered.
    pub(crate) fn find_in_all_toolsets(&self, name: &str) -> FoundTool {
        self.vault.offer().find_in_all_toolsets(name)
    }

    /// Whether the caller may use a tool.
    pub(crate) fn authorize(&self, caller: &Caller, tool: &FoundTool) -> Result<(), ServiceError> {
        match tool {
            Ok(tool) if !caller.may(tool.access) => {
                Err(ServiceError::OutOfScope { tool: tool.name, needed: TokenScope::needed_for(tool.access) })
            }
            _ => Ok(()),
        }
    }

    /// Calls a tool on a worker thread. `shape` makes the protocol's response, and `weigh` returns its size; both run on the
    /// worker.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        request: Request,
        cancelled: impl Future<Output = ()>,
        shape: impl FnOnce(ToolResponse) -> T + Send + 'static,
        weigh: fn(&T) -> usize,
    ) -> Result<T, ServiceError> {
        let Request { caller, session, tool, arguments, key, permit } = request;
        self.authorize(&caller, &tool)?;
        let started = Instant::now();
        let mut cancelled = std::pin::pin!(cancelled);
        let permits = self.permits(&caller, permit, &mut cancelled).await?;
        let service = self.clone();
        let running = tokio::task::spawn_blocking(move || {
            let (name, mut response) = match tool {
                Ok(tool) => (tool.name, service.vault.call(tool, arguments, &session, key)),
                Err(reply) => ("", reply.into()),
            };
            // The process that owns the vault does not know which tools this client has.
            service.vault.offer().fit(&mut response, |access| caller.may(access));
            service.count(name, started.elapsed(), !matches!(response.reply, Reply::Answer(_)));
            permits.release(shape(response), weigh)
        });
        finished(running, cancelled).await
    }

    /// Runs something other than a tool call on a worker thread.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        permit: RequestPermit,
        cancelled: impl Future<Output = ()>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
        weigh: fn(&T) -> usize,
    ) -> Result<T, ServiceError> {
        let mut cancelled = std::pin::pin!(cancelled);
        let permits = self.permits(caller, permit, &mut cancelled).await?;
        let service = self.clone();
        let running = tokio::task::spawn_blocking(move || permits.release(work(&service), weigh));
        finished(running, cancelled).await
    }

    /// Waits for the request's turn on its connection, for the client's and the vault's share of the workers, and for a
    /// worker with room for the response.
    async fn permits(
        &self,
        caller: &Caller,
        permit: RequestPermit,
        mut cancelled: impl Future<Output = ()> + Unpin,
    ) -> Result<WorkPermits, ServiceError> {
        let turn = match permit.place() {
            None => None,
            Some(place) => Some(unless_cancelled(&mut cancelled, place.turn()).await?),
        };
        let of_client = match &caller.workers {
            None => None,
            Some(workers) => Some(unless_cancelled(&mut cancelled, acquire(workers)).await?),
        };
        let of_vault = unless_cancelled(&mut cancelled, acquire(&self.share)).await?;
        let worker = unless_cancelled(&mut cancelled, self.worker(&caller.budget)).await?;
        Ok(WorkPermits { _held: (turn, of_client, of_vault, worker), permit, budget: caller.budget.clone() })
    }

    /// Counts an answered call.
    fn count(&self, tool: &'static str, took: Duration, has_failed: bool) {
        self.capacity.meter.called(tool, took, has_failed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.calls_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Waits for a worker, and for room for the response.
    async fn worker(&self, budget: &ResponseBudget) -> OwnedSemaphorePermit {
        loop {
            budget.room().await;
            let worker = acquire(&self.capacity.workers).await;
            // Other responses may have filled the room meanwhile.
            if budget.has_room() {
                return worker;
            }
        }
    }

    /// Metrics of the calls and of the vault.
    pub(crate) async fn metrics(&self) -> Vec<Metric> {
        let IndexProgress { files, is_over } = self.progress().await;
        let seconds = Duration::from_micros(self.calls_us.load(Ordering::Relaxed)).as_secs_f64();
        let calls = self.calls.load(Ordering::Relaxed);
        let mut metrics = vec![
            Metric::gauge("quipu_notes", "Files in the index.", files as f64),
            Metric::gauge("quipu_indexed", "1 when the vault is indexed.", f64::from(u8::from(is_over))),
            Metric::counter("quipu_calls_total", "Calls of tools that were answered.", calls as f64),
            Metric::counter("quipu_call_seconds_total", "Time that these took, waiting included.", seconds),
        ];
        metrics.extend(self.vault.metrics());
        metrics
    }

    /// The last known index progress.
    pub(crate) async fn progress(&self) -> IndexProgress {
        let vault = self.vault.clone();
        self.last_progress.or(move || vault.progress()).await
    }
}

/// What work holds while it runs on a worker.
struct WorkPermits {
    _held: (Option<CallTurn>, Option<OwnedSemaphorePermit>, OwnedSemaphorePermit, OwnedSemaphorePermit),
    permit: RequestPermit,
    budget: Arc<ResponseBudget>,
}

impl WorkPermits {
    /// Ends the work: releases the request, and holds room for the response until it is sent.
    fn release<T>(self, outcome: T, weigh: fn(&T) -> usize) -> T {
        self.permit.release_request();
        self.permit.hold_response(self.budget.hold(weigh(&outcome)));
        outcome
    }
}

/// Waits for work on a worker. Once started it runs to its end, even if it is cancelled: a write must not stop half-way.
async fn finished<T>(running: JoinHandle<T>, cancelled: impl Future<Output = ()>) -> Result<T, ServiceError> {
    tokio::select! {
        outcome = running => outcome.map_err(|error| {
            tracing::error!(%error, "a call failed");
            ServiceError::Failed
        }),
        () = cancelled => Err(ServiceError::Cancelled),
    }
}

async fn acquire(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    semaphore.clone().acquire_owned().await.expect("the semaphore is never closed")
}

/// Waits before starting work. If cancellation is ready too, it wins and nothing starts.
async fn unless_cancelled<T>(
    cancelled: impl Future<Output = ()>,
    waiting: impl Future<Output = T>,
) -> Result<T, ServiceError> {
    tokio::select! {
        biased;
        () = cancelled => Err(ServiceError::Cancelled),
        outcome = waiting => Ok(outcome),
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn call_cancelled_before_its_turn_does_not_run() {
        for _ in 0..50 {
            assert_eq!(unless_cancelled(ready(()), ready(())).await, Err(ServiceError::Cancelled));
        }
    }
}
