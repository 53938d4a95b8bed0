//! Since when the database cannot be reached.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quipu_core::ports::{Clock, SystemClock};

/// Remembers the start of an outage: once it has lasted longer than a call waits, calls fail at their first attempt instead of
/// waiting one after the other.
#[derive(Default)]
pub(super) struct Outage(Mutex<Option<Start>>);

/// When an outage began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) at_ns: i64,
    instant: Instant,
}

impl Start {
    pub(super) fn age(self) -> Duration {
        self.instant.elapsed()
    }
}

impl Outage {
    /// An attempt failed: returns when the outage began.
    pub(super) fn begin(&self) -> Start {
        *self.0.lock().get_or_insert_with(|| Start { at_ns: SystemClock.now_ns(), instant: Instant::now() })
    }

    /// A call was answered.
    pub(super) fn end(&self) {
        self.0.lock().take();
    }

    pub(super) fn start(&self) -> Option<Start> {
        *self.0.lock()
    }
}
