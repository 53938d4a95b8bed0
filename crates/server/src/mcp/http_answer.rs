//! The answer to one HTTP request, from the worker that made it to the last byte of the body that carries it: the
//! library between the two knows nothing of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
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
        let mut state = self.0.lock();
        if !state.is_over {
            state.held.push(held);
        }
    }
}

/// Lets go of what is counted when the body is dropped; the request itself may be kept for longer.
struct Sent(HttpAnswer);

impl Drop for Sent {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.is_over = true;
        state.held.clear();
    }
}

/// Middleware that ties what is counted for a request to the body of its response.
pub(super) async fn count(mut request: Request, next: Next) -> Response {
    let answer = HttpAnswer::default();
    request.extensions_mut().insert(answer.clone());
    let sent = Sent(answer);
    until_sent(next.run(request).await, sent)
}

/// Keeps something for as long as a response is on its way.
pub(crate) fn until_sent(response: Response, kept: impl Send + 'static) -> Response {
    // Nothing in it is ever pinned or shared: what is kept is only waited for.
    response.map(|body| Body::new(SentBody { body, rest: Bytes::new(), kept: Mutex::new(Some(Box::new(kept))) }))
}

/// A body in pieces that does not say which is the last: the connection asks for the next only when it has sent most of
/// what it has, and lets go of the body at the end. A body in one piece it would take whole, and forget at once.
struct SentBody {
    body: Body,
    rest: Bytes,
    /// Behind a lock for its type alone: bodies are shared between threads by name, and this by nobody.
    kept: Mutex<Option<Box<dyn Send>>>,
}

const PIECE_BYTES: usize = 64 * 1024;

impl hyper::body::Body for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => {
                    // Now, not when the connection forgets the body: by then its client may have asked for more.
                    self.kept = Mutex::default();
                    return Poll::Ready(end);
                }
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(exact) => hint.set_exact(exact + rest),
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}
