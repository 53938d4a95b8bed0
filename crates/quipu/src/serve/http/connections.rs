//! Takes connections in and speaks HTTP/1.1 on each: with a limit on how many there are, how long a client may take for
//! its headers, and how long it may leave its answer unread.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tower_service::Service;

use super::counters::Counters;
use super::stream::{IsShort, Watched};
use super::tls::Tls;
use crate::mcp::until_sent;

/// How long a client may take to shake hands.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may wait for its next request. Longer than clients keep theirs, so that none is closed under a
/// request that is on its way.
const SILENCE: Duration = Duration::from_secs(120);

/// Headers of a request, and what is made of an answer before the rest of it is asked for.
const BUFFER_BYTES: usize = 64 * 1024;

/// How long nothing is taken in when the system has no room for more.
const PAUSE: Duration = Duration::from_millis(20);

/// Where a request came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// The connections that are open.
pub(super) struct Connections {
    limit: usize,
    /// Counts what happens, which is all the time that matters here.
    moments: Arc<AtomicU64>,
    open: Mutex<HashMap<u64, Arc<Seat>>>,
    counters: Arc<Counters>,
    is_short: IsShort,
}

/// One connection.
struct Seat {
    requests: AtomicUsize,
    /// When it last began to wait for a request, as a place in the order of all such moments.
    silent_since: AtomicU64,
    leave: Notify,
}

impl Connections {
    pub(super) fn new(limit: usize, counters: Arc<Counters>, is_short: IsShort) -> Arc<Self> {
        Arc::new(Self { limit, moments: Arc::default(), open: Mutex::default(), counters, is_short })
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Serves until `stop`; what is being answered then is answered.
    pub(super) async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        tls: Option<Arc<Tls>>,
        router: Router,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopped(&mut stop) => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection in");
                    self.evict();
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            self.counters.accepted.add();
            if let Some((number, seat)) = self.take_seat() {
                let (connections, tls, router) = (self.clone(), tls.clone(), router.clone());
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = connections.speak(stream, Peer(peer), tls, router, &seat, stop) => {}
                        () = seat.leave.notified() => connections.counters.evicted.add(),
                    }
                    connections.lock().remove(&number);
                });
            }
        }
        while self.count() > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A place for one more. Where there is none, whoever has been silent the longest has to leave; while all are being
    /// answered, nobody can come in.
    fn take_seat(&self) -> Option<(u64, Arc<Seat>)> {
        if self.count() >= self.limit && !self.evict() {
            self.counters.evicted.add();
            return None;
        }
        let number = self.moments.fetch_add(1, Ordering::Relaxed);
        let silent_since = AtomicU64::new(number);
        let seat = Arc::new(Seat { requests: AtomicUsize::new(0), silent_since, leave: Notify::new() });
        self.lock().insert(number, seat.clone());
        Some((number, seat))
    }

    fn evict(&self) -> bool {
        let mut open = self.lock();
        let silent = open.iter().filter(|(_, seat)| seat.requests.load(Ordering::Acquire) == 0);
        let longest = silent.min_by_key(|(_, seat)| seat.silent_since.load(Ordering::Relaxed));
        let Some(number) = longest.map(|(number, _)| *number) else { return false };
        // Its task may take a moment to hear of it; its place is free at once.
        if let Some(seat) = open.remove(&number) {
            seat.leave.notify_one();
        }
        true
    }

    async fn speak(
        &self,
        stream: TcpStream,
        peer: Peer,
        tls: Option<Arc<Tls>>,
        router: Router,
        seat: &Arc<Seat>,
        stop: watch::Receiver<bool>,
    ) {
        // An answer is several small writes; held back by Nagle's algorithm, each would take 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set up a connection");
        }
        let asked = seat.clone();
        let is_busy = Box::new(move || asked.requests.load(Ordering::Acquire) > 0);
        let stream = Watched::new(stream, self.is_short.clone(), is_busy);
        match tls {
            None => self.speak_http(stream, peer, router, seat, stop).await,
            Some(tls) => match tokio::time::timeout(HANDSHAKE_PATIENCE, tls.acceptor().accept(stream)).await {
                Ok(Ok(stream)) => self.speak_http(stream, peer, router, seat, stop).await,
                Ok(Err(error)) => tracing::debug!(%error, peer = %peer.0, "no TLS with a client"),
                Err(_) => tracing::debug!(peer = %peer.0, "a client took too long to shake hands"),
            },
        }
    }

    async fn speak_http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: Peer,
        router: Router,
        seat: &Arc<Seat>,
        mut stop: watch::Receiver<bool>,
    ) {
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            let busy = Busy::new(seat, &self.moments);
            let mut request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(peer);
            let answering = router.clone().call(request);
            async move { answering.await.map(|response| until_sent(response, busy)) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SILENCE)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let outcome = tokio::select! {
            outcome = connection.as_mut() => outcome,
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = outcome {
            if is_unread(&error) {
                self.counters.unread.add();
            }
            tracing::debug!(%error, peer = %peer.0, "a connection ended badly");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Seat>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ready when it is time to stop. Whoever could say so outlives the server.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stopped| *stopped).await);
}

fn is_unread(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A request that is being answered, from its headers to the last byte of its answer.
struct Busy {
    seat: Arc<Seat>,
    moments: Arc<AtomicU64>,
}

impl Busy {
    fn new(seat: &Arc<Seat>, moments: &Arc<AtomicU64>) -> Self {
        seat.requests.fetch_add(1, Ordering::AcqRel);
        Self { seat: seat.clone(), moments: moments.clone() }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.seat.silent_since.store(self.moments.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.seat.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_silent_the_longest_makes_room_and_whoever_is_answered_stays() {
        let connections = Connections::new(2, Arc::default(), Arc::new(|| false));
        let (first, seat) = connections.take_seat().unwrap();
        let (second, _) = connections.take_seat().unwrap();
        let busy = Busy::new(&seat, &connections.moments);
        let (third, third_seat) = connections.take_seat().unwrap();
        let open = || {
            let mut numbers: Vec<u64> = connections.lock().keys().copied().collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(open(), [first, third], "the second waited for a request, the first for its answer");
        let _third_is_busy = Busy::new(&third_seat, &connections.moments);
        assert!(connections.take_seat().is_none());
        drop(busy);
        assert!(connections.take_seat().is_some());
        assert!(!open().contains(&first) && !open().contains(&second));
    }
}
