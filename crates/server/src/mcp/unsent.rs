//! Answers that are made and not sent yet: what keeps memory bounded before a client that asks faster than it reads.
//!
//! A call begins only while there is room, and its answer is held from the moment it is made until its last byte has
//! left. How long an answer will be is not known before it is made, so the calls that run at that moment may go over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The answers on their way to one client, or to all of them.
pub(crate) struct Unsent {
    bytes: AtomicUsize,
    /// With this many unsent, no further call begins.
    limit: usize,
    /// What counts here counts there too.
    all: Option<Arc<Unsent>>,
    wakeup: Arc<Wakeup>,
}

/// One for a whole and its parts: room in either may be what somebody waits for.
#[derive(Default)]
struct Wakeup {
    changed: Notify,
    waiting: AtomicUsize,
}

/// The bytes of an answer, until it is dropped.
pub(super) struct Held {
    bytes: usize,
    unsent: Arc<Unsent>,
}

impl Unsent {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), limit, all: None, wakeup: Arc::default() })
    }

    /// The share of one client in what all of them may leave unread.
    pub(crate) fn share(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        let wakeup = self.wakeup.clone();
        Arc::new(Self { bytes: AtomicUsize::new(0), limit, all: Some(self.clone()), wakeup })
    }

    pub(super) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.and_all().for_each(|unsent| {
            unsent.bytes.fetch_add(bytes, Ordering::AcqRel);
        });
        Held { bytes, unsent: self.clone() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.and_all().all(|unsent| unsent.bytes.load(Ordering::Acquire) < unsent.limit)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether a call waits until somebody reads an answer.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.wakeup.waiting.load(Ordering::Acquire) > 0
    }

    /// Waits until a call may begin.
    pub(super) async fn room(&self) {
        if self.has_room() {
            return;
        }
        let _waits = Waits::new(&self.wakeup.waiting);
        loop {
            let mut changed = std::pin::pin!(self.wakeup.changed.notified());
            // Before the look, so that a change right after it is not missed.
            changed.as_mut().enable();
            if self.has_room() {
                return;
            }
            changed.await;
        }
    }

    fn and_all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |unsent| unsent.all.as_deref())
    }
}

/// Counts one who waits, until it is dropped: also when the call is called off.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::AcqRel);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Held {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.unsent.and_all().for_each(|unsent| {
            unsent.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        });
        self.unsent.wakeup.changed.notify_waiters();
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
        while !unsent.is_waited_for() {
            tokio::task::yield_now().await;
        }
        drop(second);
        waiting.await.unwrap();
        assert!(!unsent.is_waited_for());
    }

    #[test]
    fn one_client_cannot_take_all_the_room_and_two_cannot_take_more_than_there_is() {
        let all = Unsent::new(10);
        let (one, other) = (all.share(6), all.share(6));
        let held = one.hold(6);
        assert!(!one.has_room() && other.has_room());
        let more = other.hold(4);
        assert!(!other.has_room(), "its own share is not used up, the whole is");
        drop(held);
        assert!(one.has_room() && other.has_room());
        drop(more);
        assert_eq!(all.bytes(), 0);
    }
}
