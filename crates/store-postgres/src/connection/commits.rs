//! How long writes take, for each graph.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

/// Writes that were committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitTimes {
    /// How many.
    pub commits: u64,
    /// How long they took together, from the first statement to the answer, repetitions included.
    pub total: Duration,
}

/// The writes of this process, by graph.
#[derive(Default)]
pub(super) struct Commits(Mutex<HashMap<i64, CommitTimes>>);

impl Commits {
    pub(super) fn add(&self, graph: i64, took: Duration) {
        let mut graphs = self.0.lock();
        let times = graphs.entry(graph).or_default();
        times.commits += 1;
        times.total += took;
    }

    pub(super) fn of(&self, graph: i64) -> CommitTimes {
        self.0.lock().get(&graph).copied().unwrap_or_default()
    }
}
