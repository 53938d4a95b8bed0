//! What one request occupies from its arrival until its response is sent: its tool, its position in the order of its connection,
//! the memory of the request, and the bytes of the response. One value, so that nothing is released twice or forgotten by a
//! transport.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::FoundTool;
use super::call_order::{CallOrder, QueuedCall};
use super::response_budget::ResponseBytes;

/// A request up to this size counts only against its own client, so that large requests do not block other clients. A
/// subscription to a thousand notes fits.
pub(crate) const SMALL_REQUEST_BYTES: usize = 256 * 1024;

/// The permit of a request. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct RequestPermit(Arc<Mutex<Holdings>>);

#[derive(Default)]
struct Holdings {
    tool: Option<FoundTool>,
    order: Option<CallOrder>,
    /// The position in the order, until its turn.
    place: Option<QueuedCall>,
    request_size: usize,
    request: Vec<OwnedSemaphorePermit>,
    response: Vec<ResponseBytes>,
    /// The client no longer waits: a response made from now on is not counted.
    is_closed: bool,
}

impl RequestPermit {
    /// For a request on a stream, whose calls run in order. Without a position the request must not need a worker.
    pub(crate) fn in_order(order: &CallOrder, tool: Option<FoundTool>, place: Option<QueuedCall>) -> Self {
        Self::of(Holdings { tool, order: Some(order.clone()), place, ..Holdings::default() })
    }

    /// For a request whose memory was counted while it was read.
    pub(crate) fn of_request(size: usize, permits: Vec<OwnedSemaphorePermit>) -> Self {
        Self::of(Holdings { request_size: size, request: permits, ..Holdings::default() })
    }

    fn of(holdings: Holdings) -> Self {
        Self(Arc::new(Mutex::new(holdings)))
    }

    /// Remembers the tool that was looked up when the request arrived.
    pub(crate) fn set_tool(&self, tool: FoundTool) {
        self.0.lock().tool = Some(tool);
    }

    /// The tool, if it was looked up when the request arrived.
    pub(crate) fn tool(&self) -> Option<FoundTool> {
        self.0.lock().tool.take()
    }

    /// The position in the order; `None` where calls have no order. A request without one goes last and counts as a write.
    pub(crate) fn place(&self) -> Option<QueuedCall> {
        let mut holdings = self.0.lock();
        holdings.place.take().or_else(|| Some(holdings.order.as_ref()?.queue(true)))
    }

    /// Whether the request takes no memory from other clients, so that it may be kept as long as a stream or a session.
    pub(crate) fn is_small(&self) -> bool {
        self.0.lock().request_size <= SMALL_REQUEST_BYTES
    }

    /// The request has been processed. Sending its response may take much longer.
    pub(crate) fn release_request(&self) {
        self.0.lock().request.clear();
    }

    pub(crate) fn hold_response(&self, bytes: ResponseBytes) {
        let mut holdings = self.0.lock();
        if !holdings.is_closed {
            holdings.response.push(bytes);
        }
    }

    /// The response starts to be sent: it is, even if the request is cancelled. An unused position is freed.
    pub(crate) fn take_response(&self) -> Option<ResponseBytes> {
        let mut holdings = self.0.lock();
        holdings.place = None;
        holdings.response.pop()
    }

    /// Releases everything when the guard is dropped, even if clones of the permit are kept for longer.
    pub(crate) fn close_on_drop(&self) -> RequestPermitGuard {
        RequestPermitGuard(self.clone())
    }
}

/// Closes its permit when it is dropped.
pub(crate) struct RequestPermitGuard(RequestPermit);

impl Drop for RequestPermitGuard {
    fn drop(&mut self) {
        *self.0.0.lock() = Holdings { is_closed: true, ..Holdings::default() };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::response_budget::ResponseBudget;
    use super::*;

    #[tokio::test]
    async fn call_without_a_place_is_queued_last() {
        let order = CallOrder::default();
        let before = order.queue(false);
        let place = RequestPermit::in_order(&order, None, None).place().expect("calls have an order");
        let mut waiting = tokio::spawn(place.turn());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut waiting).await.is_err(), "there is one before it");
        drop(before);
        waiting.await.unwrap();
    }

    #[test]
    fn a_closed_lease_holds_nothing_although_a_clone_is_kept() {
        let budget = ResponseBudget::new(10);
        let permit = RequestPermit::default();
        permit.hold_response(budget.hold(3));
        let guard = permit.close_on_drop();
        assert_eq!(budget.bytes(), 3);
        drop(guard);
        assert_eq!(budget.bytes(), 0);
        permit.hold_response(budget.hold(5));
        assert_eq!(budget.bytes(), 0, "the client is gone");
    }
}
