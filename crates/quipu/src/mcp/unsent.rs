//! Answers that are made and not sent yet: what keeps memory bounded before a client that asks faster than it reads.
//!
//! A call begins only while there is room, and its answer is held from the moment it is made until its last byte has
//! left. How long an answer will be is not known before it is made, so the calls that run at that moment may go over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The answers on their way to one client, or to all clients without a connection.
pub(super) struct Unsent {
    bytes: AtomicUsize,
    /// With this many unsent, no further call begins.
    limit: usize,
    changed: Notify,
}

/// The bytes of an answer, until it is dropped.
pub(super) struct Held {
    bytes: usize,
    unsent: Arc<Unsent>,
}

impl Unsent {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), limit, changed: Notify::new() })
    }

    pub(super) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        Held { bytes, unsent: self.clone() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Acquire) < self.limit
    }

    /// Waits until a call may begin.
    pub(super) async fn room(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look, so that a change right after it is not missed.
            changed.as_mut().enable();
            if self.has_room() {
                return;
            }
            changed.await;
        }
    }
}

impl Held {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.unsent.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.unsent.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_room_again_once_an_answer_has_left() {
        let unsent = Unsent::new(10);
        unsent.room().await;
        let (first, second) = (unsent.hold(9), unsent.hold(20));
        assert!(!unsent.has_room());
        drop(first);
        assert!(!unsent.has_room());
        let waiting = tokio::spawn({
            let unsent = unsent.clone();
            async move { unsent.room().await }
        });
        drop(second);
        waiting.await.unwrap();
    }
}
