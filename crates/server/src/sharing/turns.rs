//! A limit on how many threads work at the same time.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

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
        let mut taken = self.taken.lock();
        self.changed.wait_while(&mut taken, |taken| *taken >= self.most);
        *taken += 1;
        Turn(self)
    }

    pub(super) fn wait_for_rest(&self, until: Instant) {
        let mut taken = self.taken.lock();
        while *taken > 0
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            self.changed.wait_for(&mut taken, left);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock() -= 1;
        self.0.changed.notify_all();
    }
}
