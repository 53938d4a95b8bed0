//! Wakes the followers of change feeds as soon as another server has written.
//!
//! A wake-up carries no news: the positions of the feeds ([`NoteFeed::changes_since`](quipu_core::ports::NoteFeed::changes_since),
//! `MemoryStore::changed_since`) are the truth. It may come twice, and may not come at all: behind a proxy that shares connections
//! between transactions, when a server dies right after its commit, or while the listening connection is reopened. So a follower
//! waits with a timeout and looks at its position after every wait:
//!
//! ```ignore
//! let wakeups = database.wakeups();
//! let mut woken = wakeups.subscribe(&graph);
//! loop {
//!     let changes = vault.changes_since(position)?;   // subscribe first, look after: nothing is missed in between
//!     position = changes.head;
//!     woken.wait(Duration::from_secs(2));
//! }
//! ```

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;

use super::hosts::Hosts;
use super::{FIRST_PAUSE, LONGEST_PAUSE, PostgresDatabase, Scope};
use crate::graphs::Graph;

/// Channel of the database's notifications. The payload is the id of a graph, or 0 for the lists of graphs and tokens.
const CHANNEL: &str = "quipu";

const SHARED: i64 = 0;

/// One listening connection, for any number of subscriptions. It ends when this is dropped.
pub struct Wakeups {
    state: Arc<State>,
    task: AbortHandle,
}

/// Wakes one follower for what was written after the subscription was made.
pub struct Subscription {
    state: Arc<State>,
    topic: i64,
    seen: u64,
}

/// Called when something may have changed, on the thread of the listening connection: it must not block.
pub(crate) type WakeListener = dyn Fn() + Send + Sync;

#[derive(Default)]
struct State {
    counts: Mutex<Counts>,
    changed: Condvar,
    listeners: Mutex<HashMap<i64, Vec<Weak<WakeListener>>>>,
}

/// How often each topic was woken, and all of them together.
#[derive(Default)]
struct Counts {
    topics: HashMap<i64, u64>,
    all: u64,
}

impl Counts {
    fn of(&self, topic: i64) -> u64 {
        self.all + self.topics.get(&topic).copied().unwrap_or_default()
    }
}

impl PostgresDatabase {
    /// Starts to listen. One for each process is enough.
    pub fn wakeups(&self) -> Wakeups {
        let state = Arc::new(State::default());
        let runtime = self.runtime.as_ref().expect("taken only when it is dropped");
        let task = runtime.spawn(listen(self.hosts.clone(), state.clone())).abort_handle();
        Wakeups { state, task }
    }
}

impl Wakeups {
    /// For changes of the notes or of the memory of a graph, by any process.
    pub fn subscribe(&self, graph: &Graph) -> Subscription {
        let (topic, seen) = (graph.id, self.state.counts.lock().of(graph.id));
        Subscription { state: self.state.clone(), topic, seen }
    }

    /// Calls a listener for changes of a graph until it is dropped.
    pub(crate) fn listen(&self, graph: i64, listener: &Arc<WakeListener>) {
        let mut listeners = self.state.listeners.lock();
        listeners.retain(|_, listeners| {
            listeners.retain(|listener| listener.strong_count() > 0);
            !listeners.is_empty()
        });
        listeners.entry(graph).or_default().push(Arc::downgrade(listener));
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Subscription {
    /// Blocks until something may have changed since the last call, or the time is over. Several changes wake once. Returns
    /// whether it was woken; look at the position in both cases.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut counts = self.state.counts.lock();
        while counts.of(self.topic) == self.seen {
            if self.state.changed.wait_until(&mut counts, until).timed_out() {
                return false;
            }
        }
        self.seen = counts.of(self.topic);
        true
    }
}

impl State {
    fn wake(&self, topic: Option<i64>) {
        let mut counts = self.counts.lock();
        match topic {
            Some(topic) => *counts.topics.entry(topic).or_default() += 1,
            None => counts.all += 1,
        }
        drop(counts);
        self.changed.notify_all();
        let woken = |(graph, _): &(&i64, _)| topic.is_none_or(|topic| topic == **graph);
        let listeners: Vec<_> =
            self.listeners.lock().iter().filter(woken).flat_map(|(_, of_graph)| of_graph.clone()).collect();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener();
        }
    }
}

/// The statement that wakes the followers of a scope.
pub(super) fn notification(scope: Scope) -> String {
    let topic = match scope {
        Scope::Graph(id) => id,
        Scope::Shared => SHARED,
    };
    format!("NOTIFY {CHANNEL}, '{topic}'")
}

/// Listens for ever. After a lost connection everyone is woken: notifications may have been missed.
async fn listen(hosts: Hosts, state: Arc<State>) {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(Ok((client, mut connection))) = hosts.open().await {
            let follow = async {
                while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                    if let AsyncMessage::Notification(notification) = message {
                        state.wake(notification.payload().parse().ok());
                    }
                }
            };
            let subscribe = async {
                if client.batch_execute(&format!("LISTEN {CHANNEL}")).await.is_ok() {
                    pause = FIRST_PAUSE;
                    state.wake(None);
                    pending::<()>().await;
                }
            };
            tokio::select! { () = follow => {}, () = subscribe => {} }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
