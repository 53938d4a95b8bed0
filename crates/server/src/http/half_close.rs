//! Answers clients that close their sending side behind a request, as `nc -N` and some HTTP/1.0 clients do.
//!
//! TCP reports a half-closed connection and a client that left in the same way until something is written. The HTTP library
//! cancels a request at the end of the input. So the end is withheld while a complete request is being answered, for a grace
//! period: most responses are ready long before it is over, and the calls of a client that left are cancelled after it. A client
//! that resets the connection, as the system does for one that left bytes unread, is gone at once.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// How long the end of the input is withheld.
const GRACE: Duration = Duration::from_secs(2);

/// Whether a request of this connection is in progress.
type IsBusy = Box<dyn Fn() -> bool + Send + Sync>;

/// When the end of a connection's input is reported.
pub(super) struct InputEnd {
    is_busy: IsBusy,
    grace: Duration,
    /// Set once the input has ended.
    grace_period: Option<Pin<Box<Sleep>>>,
}

impl InputEnd {
    pub(super) fn new(is_busy: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_busy: Box::new(is_busy), grace: GRACE, grace_period: None }
    }

    /// Ready when the end is to be reported. The rest of an incomplete request will not come.
    pub(super) fn poll_report(&mut self, is_complete: bool, context: &mut Context<'_>) -> Poll<()> {
        let grace_period = self.grace_period.get_or_insert_with(|| Box::pin(sleep(self.grace)));
        if is_complete && (self.is_busy)() { grace_period.as_mut().poll(context) } else { Poll::Ready(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use axum::http::{HeaderMap, header};
    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;

    use super::super::line_ends::{Body, StrictLineEnds};
    use super::*;

    const SHORT: Duration = Duration::from_millis(100);

    /// How long the end of the input is withheld behind a request whose body has `length` bytes, of which two come.
    async fn withheld(length: u64, is_busy: Arc<AtomicBool>) -> Duration {
        let body = Body::default();
        let end = InputEnd { grace: SHORT, ..InputEnd::new(move || is_busy.load(Ordering::Relaxed)) };
        let mut stream = StrictLineEnds::new(&b"POST / HTTP/1.1\r\nA: b\r\n\r\nxy"[..], body.clone(), end);
        let mut buffer = [0; 300];
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 25);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, length.into());
        body.announce(&headers);
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 2);
        let start = Instant::now();
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 0);
        start.elapsed()
    }

    #[tokio::test]
    async fn end_of_input_is_withheld_while_a_complete_request_is_answered() {
        let busy = || Arc::new(AtomicBool::new(true));
        assert!(withheld(2, busy()).await >= SHORT);
        assert!(withheld(3, busy()).await < SHORT, "the body is incomplete");
        assert!(withheld(2, Arc::default()).await < SHORT, "nothing is being answered");
    }
}
