//! The answer to one HTTP request, from the worker that made it to the last byte of the body that carries it: the
//! library between the two knows nothing of it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use rmcp::model::Extensions;

use super::unsent::Held;

/// What is counted for one request. Dropped with its body: when that is sent, or its client gone.
#[derive(Clone, Default)]
pub(super) struct HttpAnswer(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    held: Vec<Held>,
    /// Nobody waits for what is made now.
    is_over: bool,
}

impl HttpAnswer {
    /// Of the request a call came with, if it came over HTTP.
    pub(super) fn of(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Parts>()?.extensions.get::<Self>().cloned()
    }

    pub(super) fn made(&self, held: Held) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            state.held.push(held);
        }
    }
}

/// Lets go of what is counted when the body is dropped; the request itself may be kept for longer.
struct Sent(HttpAnswer);

impl Drop for Sent {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        state.held.clear();
    }
}

/// Middleware that ties what is counted for a request to the body of its response.
pub(super) async fn count(mut request: Request, next: Next) -> Response {
    let answer = HttpAnswer::default();
    request.extensions_mut().insert(answer.clone());
    let sent = Sent(answer);
    next.run(request).await.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &sent;
            frame
        }))
    })
}
