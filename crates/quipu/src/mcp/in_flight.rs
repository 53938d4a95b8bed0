//! The requests of one connection that have no answer yet: what keeps memory bounded and the end of a stream orderly.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

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
    /// With the length of each.
    requests: HashMap<RequestId, usize>,
    bytes: usize,
    /// Errors on their way out that answer no request.
    refusals: usize,
    handshake: Option<RequestId>,
}

impl InFlight {
    /// Takes a request in; `false` when its id is still in use.
    pub(super) fn begin(&self, id: &RequestId, bytes: usize, is_handshake: bool) -> bool {
        let mut state = self.lock();
        if state.requests.contains_key(id) {
            return false;
        }
        state.requests.insert(id.clone(), bytes);
        state.bytes += bytes;
        if is_handshake {
            state.handshake = Some(id.clone());
        }
        true
    }

    /// The request is answered or called off.
    pub(super) fn finish(&self, id: &RequestId) {
        let mut state = self.lock();
        if let Some(bytes) = state.requests.remove(id) {
            state.bytes -= bytes;
        }
        if state.handshake.as_ref() == Some(id) {
            state.handshake = None;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn begin_refusal(&self) {
        self.lock().refusals += 1;
    }

    pub(super) fn finish_refusal(&self) {
        self.lock().refusals -= 1;
        self.changed.notify_waiters();
    }

    /// Waits until more may be read. Nothing behind a handshake is read before it is answered: the version it settles
    /// decides what later answers look like.
    pub(super) async fn room(&self) {
        self.until(|state| {
            let waiting = state.requests.len() + state.refusals;
            state.handshake.is_none() && waiting < MAX_REQUESTS && state.bytes < MAX_BYTES
        })
        .await;
    }

    /// Waits until everything is answered.
    pub(super) async fn idle(&self) {
        self.until(|state| state.requests.is_empty() && state.refusals == 0).await;
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
