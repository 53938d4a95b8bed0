//! The requests of one connection that have no answer yet: what keeps memory bounded and the end of a stream orderly.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::batch::Batch;
use super::order::Ticket;
use super::unsent::Held;

/// A client may have this many requests waiting. Some write a thousand before they read the first answer, and would
/// wait forever if fewer were taken in.
const MAX_REQUESTS: usize = 2048;

/// And this many bytes of them.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What has been read and not been answered.
#[derive(Default)]
pub(super) struct InFlight {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    requests: HashMap<RequestId, Request>,
    bytes: usize,
    /// Errors on their way out that answer no request.
    refusals: usize,
    handshake: Option<RequestId>,
    batch: Option<Batch>,
    /// Since when the client has not taken a byte that it was offered.
    offered: Option<Instant>,
}

/// What is to be known of a request before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    /// Settles what later answers look like.
    Handshake,
    /// Lasts as long as its client likes: the end of the stream ends it.
    Stream,
}

struct Request {
    /// Its own length.
    bytes: usize,
    kind: Kind,
    /// Its place among the calls of the connection, until it is called in.
    ticket: Option<Ticket>,
    /// Once it is made, and until it begins to leave.
    answer: Option<Held>,
}

impl InFlight {
    /// Takes a request in; `false` when its id is still in use.
    pub(super) fn begin(&self, id: &RequestId, bytes: usize, kind: Kind, ticket: Option<Ticket>) -> bool {
        let mut state = self.lock();
        if state.requests.contains_key(id) {
            return false;
        }
        state.requests.insert(id.clone(), Request { bytes, kind, ticket, answer: None });
        state.bytes += bytes;
        if kind == Kind::Handshake {
            state.handshake = Some(id.clone());
        }
        true
    }

    /// Whether a request of this id is yet to be answered.
    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.lock().requests.contains_key(id)
    }

    /// The request is answered or called off.
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

    /// The answer is made. One that was called off meanwhile will not be sent.
    pub(super) fn answered(&self, id: &RequestId, answer: Held) {
        if let Some(request) = self.lock().requests.get_mut(id) {
            request.answer = Some(answer);
        }
    }

    /// The place of a request in the queue. `None` when it was called off meanwhile.
    pub(super) fn ticket(&self, id: &RequestId) -> Option<Ticket> {
        self.lock().requests.get_mut(id)?.ticket.take()
    }

    /// The answer begins to leave: from now on it is sent, even if it is called off.
    pub(super) fn leaves(&self, id: &RequestId) -> Option<Held> {
        let mut state = self.lock();
        let request = state.requests.get_mut(id)?;
        // One that was refused before its turn came.
        request.ticket = None;
        request.answer.take()
    }

    /// The client is offered something, or (with `false`) has taken all of it.
    pub(super) fn offer(&self, offered: bool) {
        self.lock().offered = offered.then(Instant::now);
    }

    /// Waits until the client has let an offer stand for so long.
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

    /// Something about the batch that is worked on; `None` when there is none.
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

    /// Waits until more may be read. Nothing behind a handshake is read before it is answered, since the version it settles
    /// decides what later answers look like; and nothing behind a batch, since there is one at a time.
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
            let waits = state.requests.values().any(|request| request.kind != Kind::Stream);
            !waits && state.refusals == 0 && state.batch.is_none()
        })
        .await;
    }

    async fn until(&self, reached: impl Fn(&State) -> bool) {
        loop {
            // Made before the look, so that a change right after it is not missed.
            let changed = self.changed.notified();
            if reached(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
