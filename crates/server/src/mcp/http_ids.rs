//! Ids of requests without a response, in HTTP sessions of the older generation. The library routes a response by id to the
//! latest request: of two requests with one id, one would wait forever.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::HeaderValue;
use parking_lot::Mutex;
use rmcp::model::RequestId;

/// The library's session id, and a request id chosen by the client.
type SessionRequest = (HeaderValue, RequestId);

/// All ids in use.
#[derive(Clone, Default)]
pub(super) struct IdsInUse(Arc<Mutex<HashSet<SessionRequest>>>);

/// One id. The request on the worker and the response both hold it, and it is free when both are dropped: a call continues
/// after its client disconnects, and still uses its id.
#[derive(Clone)]
pub(super) struct IdInUse {
    _held: Arc<HeldId>,
}

struct HeldId {
    key: SessionRequest,
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
    fn ids_are_reusable_once_released_and_separate_per_session() {
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
