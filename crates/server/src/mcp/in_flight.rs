//! The requests of one stream that have no response yet: limits memory, and knows when the stream can end.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::batch::Batch;
use crate::service::{RequestPermit, ResponseBytes};

/// Requests that one client may have waiting. Some clients send a thousand before they read the first response, and would
/// deadlock at a lower limit.
const MAX_REQUESTS: usize = 2048;

/// Bytes of these requests.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Requests that were read and not answered.
#[derive(Default)]
pub(super) struct InFlight {
    state: Mutex<InFlightState>,
    changed: Notify,
}

#[derive(Default)]
struct InFlightState {
    requests: HashMap<RequestId, InFlightRequest>,
    bytes: usize,
    /// Errors being sent that belong to no request.
    refusals: usize,
    handshake: Option<RequestId>,
    batch: Option<Batch>,
    /// Since when the client has read none of the bytes being sent.
    offered: Option<Instant>,
}

/// How a request affects the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    Call,
    /// Decides the format of later responses.
    Handshake,
    /// Lasts until the client or the stream ends it.
    Stream,
}

struct InFlightRequest {
    bytes: usize,
    kind: RequestKind,
    permit: RequestPermit,
}

impl InFlight {
    /// Adds a request; `false` if its id is still in use.
    pub(super) fn begin(&self, id: &RequestId, bytes: usize, kind: RequestKind, permit: RequestPermit) -> bool {
        let mut state = self.lock();
        if state.requests.contains_key(id) {
            return false;
        }
        state.requests.insert(id.clone(), InFlightRequest { bytes, kind, permit });
        state.bytes += bytes;
        if kind == RequestKind::Handshake {
            state.handshake = Some(id.clone());
        }
        true
    }

    /// Whether a request with this id has no response yet.
    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.lock().requests.contains_key(id)
    }

    /// The request is answered or cancelled.
    pub(super) fn finish(&self, id: &RequestId) {
        let mut state = self.lock();
        let request = state.requests.remove(id);
        state.bytes -= request.as_ref().map_or(0, |request| request.bytes);
        if state.handshake.as_ref() == Some(id) {
            state.handshake = None;
        }
        state.batch.iter_mut().for_each(|batch| batch.forget(id));
        drop(state);
        self.changed.notify_waiters();
    }

    /// The response starts to be sent: from now on it is, even if the request is cancelled.
    pub(super) fn leaves(&self, id: &RequestId) -> Option<ResponseBytes> {
        self.lock().requests.get(id)?.permit.take_response()
    }

    /// Bytes are being sent, or (with `false`) the client has read all of them.
    pub(super) fn offer(&self, offered: bool) {
        self.lock().offered = offered.then(Instant::now);
    }

    /// Waits until the client has read nothing for this long while bytes were being sent.
    pub(super) async fn ignored(&self, patience: Duration) {
        loop {
            let offered = self.lock().offered;
            let until = offered.unwrap_or_else(Instant::now) + patience;
            if offered.is_some() && until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Runs a function on the current batch; `None` without one.
    pub(super) fn in_batch<T>(&self, work: impl FnOnce(&mut Batch) -> T) -> Option<T> {
        self.lock().batch.as_mut().map(work)
    }

    pub(super) fn begin_batch(&self) {
        self.lock().batch = Some(Batch::default());
    }

    /// The batch is answered.
    pub(super) fn finish_batch(&self) {
        self.lock().batch = None;
        self.changed.notify_waiters();
    }

    pub(super) fn begin_refusal(&self) {
        self.lock().refusals += 1;
    }

    pub(super) fn finish_refusal(&self) {
        self.lock().refusals -= 1;
        self.changed.notify_waiters();
    }

    /// Waits until more may be read. Nothing after a handshake is read before it is answered, because its version decides the
    /// format of later responses; nor after a batch, because there is one at a time.
    pub(super) async fn room(&self) {
        self.until(|state| {
            let waiting = state.requests.len() + state.refusals;
            state.handshake.is_none() && state.batch.is_none() && waiting < MAX_REQUESTS && state.bytes < MAX_BYTES
        })
        .await;
    }

    /// Waits until everything is answered.
    pub(super) async fn idle(&self) {
        self.until(|state| {
            let waits = state.requests.values().any(|request| request.kind != RequestKind::Stream);
            !waits && state.refusals == 0 && state.batch.is_none()
        })
        .await;
    }

    async fn until(&self, reached: impl Fn(&InFlightState) -> bool) {
        loop {
            // Created before the check, so that a change right after it is not missed.
            let changed = self.changed.notified();
            if reached(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, InFlightState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{CallOrder, ResponseBudget};

    #[tokio::test]
    async fn cancelled_call_does_not_affect_the_next_call_with_its_id() {
        let (in_flight, order, budget, id) =
            (InFlight::default(), CallOrder::default(), ResponseBudget::new(10), RequestId::Number(1));
        let admit = |writes| {
            let permit = RequestPermit::in_order(&order, None, Some(order.queue(writes)));
            assert!(in_flight.begin(&id, 0, RequestKind::Call, permit.clone()));
            permit
        };
        let first = admit(true);
        in_flight.finish(&id);
        let second = admit(false);
        let writing = first.place().unwrap().turn().await;
        let mut waiting = tokio::spawn(second.place().unwrap().turn());
        let early = tokio::time::timeout(Duration::from_millis(20), &mut waiting).await;
        assert!(early.is_err(), "the second has its own place, behind the first");
        first.hold_response(budget.hold(3));
        drop(writing);
        waiting.await.unwrap();
        second.hold_response(budget.hold(5));
        assert_eq!(in_flight.leaves(&id).map(|held| held.bytes()), Some(5), "of the second, not of the first");
    }
}
