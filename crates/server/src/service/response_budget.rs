//! The bytes of responses that are not sent yet: limits memory when a client sends requests faster than it reads responses.
//!
//! A call starts only while there is room, and its response counts until its last byte is sent. Its length is not known in
//! advance, so calls already running may exceed the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The unsent responses to one client, or to all.
pub(crate) struct ResponseBudget {
    bytes: AtomicUsize,
    /// At this many bytes no further call starts.
    limit: usize,
    /// The budget that includes this one.
    all: Option<Arc<ResponseBudget>>,
    wakeup: Arc<Wakeup>,
}

/// Shared by a budget and its parts: a call may wait for room in either.
#[derive(Default)]
struct Wakeup {
    changed: Notify,
    waiting: AtomicUsize,
}

/// The bytes of a response, counted until this is dropped.
pub(crate) struct ResponseBytes {
    bytes: usize,
    budget: Arc<ResponseBudget>,
}

impl ResponseBudget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), limit, all: None, wakeup: Arc::default() })
    }

    /// The budget of one client within the budget of all.
    pub(crate) fn share(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        let wakeup = self.wakeup.clone();
        Arc::new(Self { bytes: AtomicUsize::new(0), limit, all: Some(self.clone()), wakeup })
    }

    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> ResponseBytes {
        self.and_all().for_each(|budget| {
            budget.bytes.fetch_add(bytes, Ordering::AcqRel);
        });
        ResponseBytes { bytes, budget: self.clone() }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.and_all().all(|budget| budget.bytes.load(Ordering::Acquire) < budget.limit)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether a call waits for a client to read its responses.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.wakeup.waiting.load(Ordering::Acquire) > 0
    }

    /// Waits until a call may start.
    pub(crate) async fn room(&self) {
        if self.has_room() {
            return;
        }
        let _waits = WaitingCall::new(&self.wakeup.waiting);
        loop {
            let mut changed = std::pin::pin!(self.wakeup.changed.notified());
            // Before the check, so that a change right after it is not missed.
            changed.as_mut().enable();
            if self.has_room() {
                return;
            }
            changed.await;
        }
    }

    fn and_all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |budget| budget.all.as_deref())
    }
}

/// Counts a waiting call until this is dropped, including by cancellation.
struct WaitingCall<'a>(&'a AtomicUsize);

impl<'a> WaitingCall<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::AcqRel);
        Self(waiting)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ResponseBytes {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for ResponseBytes {
    fn drop(&mut self) {
        self.budget.and_all().for_each(|budget| {
            budget.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        });
        self.budget.wakeup.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sent_response_frees_its_budget() {
        let budget = ResponseBudget::new(10);
        budget.room().await;
        let (first, second) = (budget.hold(9), budget.hold(20));
        assert!(!budget.has_room());
        drop(first);
        assert!(!budget.has_room());
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.room().await }
        });
        while !budget.is_waited_for() {
            tokio::task::yield_now().await;
        }
        drop(second);
        waiting.await.unwrap();
        assert!(!budget.is_waited_for());
    }

    #[test]
    fn one_client_cannot_use_the_whole_budget_nor_two_exceed_it() {
        let all = ResponseBudget::new(10);
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
