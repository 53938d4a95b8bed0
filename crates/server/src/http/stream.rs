//! A connection with timeouts for its client: it must read its responses and finish the request it began. Unread responses
//! fill memory, so such a client is disconnected after a while, and soon when others wait for the room.
//!
//! The system's own timeout is not enough: on loopback a full buffer counts as a healthy connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::connection_table::HttpConnection;

/// The timeouts of a connection.
#[derive(Debug, Clone, Copy)]
struct ConnectionTimeouts {
    /// How long a client may leave its response unread.
    usual: Duration,
    /// How long a client may leave its response unread while other calls wait for room.
    short: Duration,
    /// How often a slow client is checked.
    look_again: Duration,
    /// Minimum bytes per check; a client that reads less counts as stalled.
    bytes_per_second: f64,
    /// How long a client may take from the first byte of a request to the end of its headers.
    headers: Duration,
}

const PATIENCE: ConnectionTimeouts = ConnectionTimeouts {
    usual: Duration::from_secs(30),
    short: Duration::from_secs(1),
    look_again: Duration::from_millis(250),
    bytes_per_second: 4096.0,
    headers: Duration::from_secs(10),
};

/// Whether other calls wait for a slow reader.
pub(super) type IsShort = Arc<dyn Fn() -> bool + Send + Sync>;

/// A stream whose writes fail when the client does not read, and whose reads fail when a request is not completed.
pub(super) struct Watched<S> {
    inner: S,
    is_short: IsShort,
    connection: Arc<HttpConnection>,
    /// The deadline of a request that is only partly received.
    coming: Option<Pin<Box<Sleep>>>,
    patience: ConnectionTimeouts,
    /// Set while the client is behind.
    behind: Option<SlowReader>,
}

struct SlowReader {
    since: Instant,
    written: u64,
    look: Pin<Box<Sleep>>,
}

impl<S> Watched<S> {
    pub(super) fn new(inner: S, is_short: IsShort, connection: Arc<HttpConnection>) -> Self {
        Self { inner, is_short, connection, coming: None, patience: PATIENCE, behind: None }
    }

    /// Ready with an error when a timeout has passed.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let ConnectionTimeouts { usual, short, look_again, bytes_per_second, .. } = self.patience;
        let behind = self.behind.get_or_insert_with(|| SlowReader {
            since: Instant::now(),
            written: 0,
            look: Box::pin(sleep(look_again)),
        });
        while behind.look.as_mut().poll(context).is_ready() {
            let patience = if (self.is_short)() { short } else { usual };
            let waited = behind.since.elapsed();
            if waited >= patience {
                if (behind.written as f64) < bytes_per_second * waited.as_secs_f64() {
                    return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer"));
                }
                (behind.since, behind.written) = (Instant::now(), 0);
            }
            behind.look.as_mut().reset(Instant::now() + look_again);
        }
        Poll::Pending
    }

    fn wrote(&mut self, outcome: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.connection.set_sending(true);
        match outcome {
            Poll::Pending => self.wait(context).map(Err),
            Poll::Ready(Ok(bytes)) => {
                self.behind.iter_mut().for_each(|behind| behind.written += bytes as u64);
                Poll::Ready(Ok(bytes))
            }
            failed => failed,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let had = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if self.connection.is_busy() {
            self.coming = None;
        } else if buffer.filled().len() > had && self.coming.is_none() {
            self.coming = Some(Box::pin(sleep(self.patience.headers)));
        }
        let is_over = |coming: &mut Pin<Box<Sleep>>| coming.as_mut().poll(context).is_ready();
        if read.is_pending() && self.coming.as_mut().is_some_and(is_over) {
            let message = "the client does not finish its request";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.wrote(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.wrote(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// Called only when everything is written: the client has caught up.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if flushed.is_ready() {
            self.behind = None;
            self.connection.set_sending(false);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::connection_table::ConnectionTable;
    use super::*;

    /// A tenth of a second, a fiftieth while others wait.
    const QUICK: ConnectionTimeouts = ConnectionTimeouts {
        usual: Duration::from_millis(100),
        short: Duration::from_millis(20),
        look_again: Duration::from_millis(5),
        bytes_per_second: 20_000.0,
        headers: Duration::from_millis(50),
    };

    fn watched(
        patience: ConnectionTimeouts,
    ) -> (Watched<tokio::io::DuplexStream>, tokio::io::DuplexStream, Arc<AtomicBool>) {
        let (ours, theirs) = tokio::io::duplex(1024);
        let short = Arc::new(AtomicBool::new(false));
        let asked = short.clone();
        let is_short = Arc::new(move || asked.load(Ordering::Relaxed));
        let connection = ConnectionTable::new(1, Arc::default()).add().unwrap();
        (Watched { patience, ..Watched::new(ours, is_short, connection) }, theirs, short)
    }

    #[tokio::test]
    async fn a_client_may_be_silent_but_not_stop_in_the_middle_of_a_request() {
        let (mut stream, mut theirs, _) = watched(QUICK);
        let silent = tokio::time::timeout(QUICK.headers * 3, stream.read_u8()).await;
        assert!(silent.is_err(), "nothing has begun");
        theirs.write_all(b"POST").await.unwrap();
        let error = stream.read_exact(&mut [0; 5]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn client_that_does_not_read_is_disconnected() {
        let (mut stream, _theirs, _) = watched(QUICK);
        let start = Instant::now();
        let error = stream.write_all(&[0; 4096]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() >= QUICK.usual, "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn client_that_does_not_read_is_disconnected_sooner_when_others_wait() {
        let (mut stream, _theirs, short) = watched(ConnectionTimeouts { usual: Duration::from_secs(3600), ..QUICK });
        let writing = tokio::spawn(async move { stream.write_all(&[0; 4096]).await });
        sleep(Duration::from_millis(50)).await;
        assert!(!writing.is_finished());
        short.store(true, Ordering::Relaxed);
        assert!(writing.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn client_reading_below_the_minimum_rate_is_disconnected() {
        for (bytes_at_once, is_enough) in [(10, false), (1024, true)] {
            let (mut stream, mut theirs, _) = watched(QUICK);
            let reading = tokio::spawn(async move {
                let mut buffer = vec![0; bytes_at_once];
                while theirs.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    sleep(Duration::from_millis(5)).await;
                }
            });
            let written = stream.write_all(&[0; 50 * 1024]).await;
            assert_eq!(written.is_ok(), is_enough, "{bytes_at_once} at once");
            drop(stream);
            reading.await.unwrap();
        }
    }
}
