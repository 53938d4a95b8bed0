//! A clock that only a test changes.

use std::sync::atomic::{AtomicI64, Ordering};

use quipu_core::ports::Clock;

/// A clock with a fixed time.
#[derive(Debug)]
pub struct FixedClock(AtomicI64);

impl FixedClock {
    /// A clock at this many nanoseconds since 1970.
    pub fn new(now_ns: i64) -> Self {
        Self(AtomicI64::new(now_ns))
    }

    /// Advances the clock.
    pub fn advance(&self, by_ns: i64) {
        self.0.fetch_add(by_ns, Ordering::Relaxed);
    }
}

impl Default for FixedClock {
    /// 2025-01-29T10:30:00Z.
    fn default() -> Self {
        Self::new(1_738_146_600_000_000_000)
    }
}

impl Clock for FixedClock {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
