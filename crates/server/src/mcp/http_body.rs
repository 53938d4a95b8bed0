//! A response body that keeps something until its last byte is sent or its client is gone.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

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
