//! A limit on how many threads work at the same time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Lets only so many work at the same time, and tells when nobody does.
pub(super) struct Turns {
    most: usize,
    taken: Mutex<usize>,
    changed: Condvar,
}

/// Held while somebody works.
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    pub(super) fn of(most: usize) -> Self {
        Self { most, taken: Mutex::default(), changed: Condvar::new() }
    }

    pub(super) fn take(&self) -> Turn<'_> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.changed.wait_while(taken, |taken| *taken >= self.most);
        *free.unwrap_or_else(PoisonError::into_inner) += 1;
        Turn(self)
    }

    pub(super) fn wait_for_rest(&self, until: Instant) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            taken = self.changed.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.changed.notify_all();
    }
}
