//! Who may use how many connections, so that a graph whose writers wait for a lock takes nothing from the others.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections of one process, at most.
pub(super) const CONNECTIONS: usize = 16;

/// Connections that only tokens, change feeds and the list of graphs use.
const RESERVED: usize = 4;

/// Connections that write to graphs.
const WRITING: usize = CONNECTIONS / 2;

/// Connections that write to one graph. They take turns at the lock of the graph, so more of them would only wait.
const WRITERS: usize = 2;

/// What a call needs a connection for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// A short read that every graph depends on, or administration.
    Shared,
    /// Reads of a graph, and writes that take no lock of it.
    Graph,
    /// A write that waits for the lock of this graph.
    Lock(i64),
}

/// The connections that are free for each need.
pub(super) struct ConnectionShares {
    all: Arc<Semaphore>,
    graphs: Arc<Semaphore>,
    writing: Arc<Semaphore>,
    writers: Mutex<HashMap<i64, Arc<Semaphore>>>,
    waiting: AtomicUsize,
}

/// The right to use one connection, until it is dropped.
pub(super) struct ConnectionShare {
    _permits: Vec<OwnedSemaphorePermit>,
}

/// Counts a waiting call until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for ConnectionShares {
    fn default() -> Self {
        let of = |permits| Arc::new(Semaphore::new(permits));
        Self {
            all: of(CONNECTIONS),
            graphs: of(CONNECTIONS - RESERVED),
            writing: of(WRITING),
            writers: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }
}

impl ConnectionShares {
    /// Waits for a connection. The narrowest limit is first: who waits there takes none of the wider ones.
    pub(super) async fn acquire(&self, need: Need) -> ConnectionShare {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let limits = match need {
            Need::Shared => vec![self.all.clone()],
            Need::Graph => vec![self.graphs.clone(), self.all.clone()],
            Need::Lock(graph) => {
                vec![self.writers_of(graph), self.writing.clone(), self.graphs.clone(), self.all.clone()]
            }
        };
        let mut permits = Vec::with_capacity(limits.len());
        for limit in limits {
            permits.push(limit.acquire_owned().await.expect("it is never closed"));
        }
        ConnectionShare { _permits: permits }
    }

    /// Calls that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn writers_of(&self, graph: i64) -> Arc<Semaphore> {
        self.writers.lock().entry(graph).or_insert_with(|| Arc::new(Semaphore::new(WRITERS))).clone()
    }
}
