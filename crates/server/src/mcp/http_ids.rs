//! The ids of requests in sessions of the older generation that have no answer yet. The library sends what answers an id to
//! whoever used it last: of two requests under one id, one would wait without end.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::HeaderValue;
use parking_lot::Mutex;
use rmcp::model::RequestId;

/// A session as the library names it, and an id of its client's choosing.
type Key = (HeaderValue, RequestId);

/// All ids in use.
#[derive(Clone, Default)]
pub(super) struct IdsInUse(Arc<Mutex<HashSet<Key>>>);

/// One of them. It goes with the request to the worker and with the answer to the client, and is free again when both
/// have let go of it: a call goes on when its client has left, and is answered under its id.
#[derive(Clone)]
pub(super) struct IdInUse {
    _held: Arc<HeldId>,
}

struct HeldId {
    key: Key,
    all: IdsInUse,
}

impl IdsInUse {
    /// Takes an id; `None` when it is still in use.
    pub(super) fn take(&self, session: &HeaderValue, id: &RequestId) -> Option<IdInUse> {
        let key = (session.clone(), id.clone());
        let is_free = self.0.lock().insert(key.clone());
        is_free.then(|| IdInUse { _held: Arc::new(HeldId { key, all: self.clone() }) })
    }
}

impl Drop for HeldId {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_again_when_nobody_holds_it_and_each_session_has_its_own() {
        let ids = IdsInUse::default();
        let (ada, bob) = (HeaderValue::from_static("ada"), HeaderValue::from_static("bob"));
        let one = RequestId::Number(1);
        let request = ids.take(&ada, &one).unwrap();
        let answer = request.clone();
        assert!(ids.take(&bob, &one).is_some() && ids.take(&ada, &RequestId::String("1".into())).is_some());
        drop(answer);
        assert!(ids.take(&ada, &one).is_none(), "the call still runs");
        drop(request);
        assert!(ids.take(&ada, &one).is_some());
    }
}
