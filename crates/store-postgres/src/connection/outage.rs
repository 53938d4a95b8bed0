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
    /// An attempt failed, after it was not answered for so long: returns when the outage began.
    pub(super) fn begin(&self, ago: Duration) -> Start {
        let now = Instant::now();
        let begun = || Start {
            at_ns: SystemClock.now_ns().saturating_sub(i64::try_from(ago.as_nanos()).unwrap_or(i64::MAX)),
            instant: now.checked_sub(ago).unwrap_or(now),
        };
        *self.0.lock().get_or_insert_with(begun)
    }

    /// A call was answered.
    pub(super) fn end(&self) {
        self.0.lock().take();
    }

    pub(super) fn start(&self) -> Option<Start> {
        *self.0.lock()
    }
}
