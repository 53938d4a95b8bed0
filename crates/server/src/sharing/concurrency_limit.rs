//! A limit on how many threads work at the same time.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// Limits how many run at the same time, and tells when none does.
pub(super) struct ConcurrencyLimit {
    max: usize,
    taken: Mutex<usize>,
    changed: Condvar,
}

/// Held while a thread works.
pub(super) struct ConcurrencyPermit<'a>(&'a ConcurrencyLimit);

impl ConcurrencyLimit {
    pub(super) fn of(max: usize) -> Self {
        Self { max, taken: Mutex::default(), changed: Condvar::new() }
    }

    pub(super) fn take(&self) -> ConcurrencyPermit<'_> {
        let mut taken = self.taken.lock();
        self.changed.wait_while(&mut taken, |taken| *taken >= self.max);
        *taken += 1;
        ConcurrencyPermit(self)
    }

    pub(super) fn wait_until_idle(&self, until: Instant) {
        let mut taken = self.taken.lock();
        while *taken > 0
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            self.changed.wait_for(&mut taken, left);
        }
    }
}

impl Drop for ConcurrencyPermit<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock() -= 1;
        self.0.changed.notify_all();
    }
}
