//! A response body that keeps a value alive until its last byte is sent or the client disconnects.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

/// Keeps a value alive until a response is sent.
pub(crate) fn until_sent(response: Response, kept: impl Send + 'static) -> Response {
    // The value is never pinned or shared, only dropped.
    response.map(|body| Body::new(SentBody { body, rest: Bytes::new(), kept: Mutex::new(Some(Box::new(kept))) }))
}

/// A body in chunks without a known last one: the connection asks for the next chunk only when most of the previous ones are
/// sent, and drops the body at the end. It would take a body of one chunk whole, and drop it at once.
struct SentBody {
    body: Body,
    rest: Bytes,
    /// The lock is for the type system: bodies must be `Sync`, though no two threads use one.
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
                    // Now, not when the connection drops the body: by then the client may have sent the next request.
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
