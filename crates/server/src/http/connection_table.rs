//! The table of open connections: how many there may be, which of them are idle, which carry an event stream and for which
//! client, and which one is closed to make room.
//!
//! An event stream keeps its connection busy for as long as its client likes. So each client has a limit of its own, and at
//! the limit of all connections the client with the most streams loses its oldest. A request whose client is not known, and
//! its response, protect their connection from nothing: they cost the client no token and count for no limit. A few
//! connections beyond the limit are kept for `/healthz` and `/metrics`: to a monitor a busy server must not look dead.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::counters::Counters;

/// Connections beyond the limit, on which only `/healthz` and `/metrics` are answered.
const RESERVE: usize = 32;

/// The part of all connections that the streams of one client may take: one of so many.
const STREAM_SHARE: usize = 8;

/// The open connections by number.
pub(super) struct ConnectionTable {
    limit: usize,
    /// A logical clock: counts the events whose order matters.
    clock: Arc<AtomicU64>,
    open: Mutex<HashMap<u64, Arc<HttpConnection>>>,
    counters: Arc<Counters>,
}

/// One connection.
pub(super) struct HttpConnection {
    number: u64,
    state: Mutex<ConnectionState>,
    close: Notify,
}

struct ConnectionState {
    /// Whether it is one of those beyond the limit.
    is_reserve: bool,
    /// Requests whose response is not complete yet.
    requests: usize,
    /// Whether bytes of a response wait for the client to read. Closing the connection would lose them.
    is_sending: bool,
    /// Whether the limits of a known client hold for what is being answered or sent.
    is_admitted: bool,
    /// When the last request of a known client was answered, or else when the connection was opened: other requests do not
    /// keep it from being the next to be closed.
    quiet_since: u64,
    /// Set while the response is an event stream without an end.
    stream: Option<(u64, StreamOwner)>,
    closing: Closing,
}

impl ConnectionState {
    fn is_idle(&self) -> bool {
        self.requests == 0 && !self.is_sending
    }

    /// Whether it may be closed to make room.
    fn is_evictable(&self) -> bool {
        self.is_idle() || !self.is_admitted
    }

    fn must_close(&self) -> bool {
        self.closing == Closing::Now || self.closing == Closing::Idle && !self.is_sending
    }
}

/// Whether a connection is being closed. Then its place is free, though its task may take a moment to end.
///
/// A request that was admitted before its connection is evicted is still answered: the client must learn whether its call took
/// effect. Nothing is read after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    /// It was idle.
    Idle,
    /// It was idle, and a request was read before its task heard of it: behind the response.
    AfterResponse,
    /// A stream, which has no end of its own, or a request of an unknown client.
    Now,
}

/// Who opened an event stream, and with which credentials.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StreamOwner {
    pub(super) client: Arc<str>,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) address: IpAddr,
}

impl ConnectionTable {
    pub(super) fn new(limit: usize, counters: Arc<Counters>) -> Self {
        Self { limit, clock: Arc::default(), open: Mutex::default(), counters }
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Adds a connection. It belongs to the reserve where all others are busy; `None` where they are busy there too.
    pub(super) fn add(&self) -> Option<Arc<HttpConnection>> {
        let mut open = self.lock();
        let is_reserve = !self.has_room(&open);
        if is_reserve && reserved(&open).count() >= RESERVE {
            self.counters.evicted.add();
            if !close_longest_quiet(|| reserved(&open)) {
                return None;
            }
        }
        let number = self.clock.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(ConnectionState {
            is_reserve,
            requests: 0,
            is_sending: false,
            is_admitted: false,
            quiet_since: number,
            stream: None,
            closing: Closing::No,
        });
        let connection = Arc::new(HttpConnection { number, state, close: Notify::new() });
        open.insert(number, connection.clone());
        Some(connection)
    }

    pub(super) fn remove(&self, connection: &HttpConnection) {
        self.lock().remove(&connection.number);
    }

    /// Whether requests other than `/healthz` and `/metrics` may be answered on this connection. One of the reserve becomes
    /// an ordinary one as soon as there is room.
    pub(super) fn admits(&self, connection: &HttpConnection) -> bool {
        if !connection.lock().is_reserve {
            return true;
        }
        let open = self.lock();
        let has_room = self.has_room(&open);
        connection.lock().is_reserve = !has_room;
        has_room
    }

    /// Closes a connection, where one can be closed.
    pub(super) fn make_room(&self) {
        self.evict_one(&self.lock());
    }

    fn has_room(&self, open: &HashMap<u64, Arc<HttpConnection>>) -> bool {
        ordinary(open).count() < self.limit || self.evict_one(open)
    }

    /// Whether connections have to be closed for new ones.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= self.limit
    }

    /// Closes the connection whose last answer to a known client is the longest ago; where all are answering known clients, the
    /// oldest stream of the client that has the most. Calls that are being answered are never interrupted.
    fn evict_one(&self, open: &HashMap<u64, Arc<HttpConnection>>) -> bool {
        let is_evicted = close_longest_quiet(|| ordinary(open)) || close_oldest_stream_of_largest_client(open);
        if is_evicted {
            self.counters.evicted.add();
        }
        is_evicted
    }

    /// Notes that the response on this connection is a stream without an end. Closes the client's oldest stream where it now
    /// has too many.
    pub(super) fn begin_stream(&self, connection: &HttpConnection, owner: StreamOwner) {
        let open = self.lock();
        let client = owner.client.clone();
        if !connection.begin_stream(self.clock.fetch_add(1, Ordering::Relaxed), owner) {
            return;
        }
        let own = streams(&open).filter(|stream| stream.owner.client == client);
        if own.count() > self.limit.div_ceil(STREAM_SHARE) {
            let own = streams(&open).filter(|stream| stream.owner.client == client);
            own.min_by_key(|stream| stream.since).iter().for_each(|oldest| oldest.connection.close_now());
            self.counters.over_streams.add();
        }
    }

    /// The owners of open streams that used a token.
    pub(super) fn stream_owners(&self) -> Vec<StreamOwner> {
        let open = self.lock();
        let owners: HashSet<StreamOwner> =
            streams(&open).map(|stream| stream.owner).filter(|owner| owner.authorization.is_some()).collect();
        owners.into_iter().collect()
    }

    /// Closes all streams of an owner whose token is no longer valid.
    pub(super) fn close_streams(&self, revoked: &StreamOwner) {
        for stream in streams(&self.lock()).filter(|stream| stream.owner == *revoked) {
            stream.connection.close_now();
            self.counters.revoked.add();
        }
    }

    /// Marks a connection as busy until the result is dropped.
    pub(super) fn begin_request(&self, connection: &Arc<HttpConnection>) -> Busy {
        let mut state = connection.lock();
        if state.is_idle() {
            state.is_admitted = false;
        }
        state.requests += 1;
        if state.closing == Closing::Idle {
            state.closing = Closing::AfterResponse;
        }
        let is_last = state.closing != Closing::No;
        drop(state);
        Busy { connection: connection.clone(), clock: self.clock.clone(), is_last }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<HttpConnection>>> {
        self.open.lock()
    }
}

fn ordinary(open: &HashMap<u64, Arc<HttpConnection>>) -> impl Iterator<Item = &Arc<HttpConnection>> {
    open.values().filter(|connection| connection.is_open(|state| !state.is_reserve))
}

fn reserved(open: &HashMap<u64, Arc<HttpConnection>>) -> impl Iterator<Item = &Arc<HttpConnection>> {
    open.values().filter(|connection| connection.is_open(|state| state.is_reserve))
}

/// Closes the connection that has been quiet the longest: idle, or busy with requests of an unknown client. One that is admitted meanwhile is kept, and the next is looked for.
fn close_longest_quiet<'a, Among: Iterator<Item = &'a Arc<HttpConnection>>>(among: impl Fn() -> Among) -> bool {
    loop {
        let quiet = among().filter_map(|connection| Some((connection.quiet_since()?, connection)));
        let Some((_, longest)) = quiet.min_by_key(|(since, _)| *since) else { return false };
        if longest.close_if_evictable() {
            return true;
        }
    }
}

/// A response without an end.
struct Stream<'a> {
    connection: &'a HttpConnection,
    since: u64,
    owner: StreamOwner,
}

fn streams(open: &HashMap<u64, Arc<HttpConnection>>) -> impl Iterator<Item = Stream<'_>> {
    open.values().filter(|connection| connection.is_open(|_| true)).filter_map(|connection| {
        let (since, owner) = connection.lock().stream.clone()?;
        Some(Stream { connection, since, owner })
    })
}

/// How many streams there are, and the oldest.
fn oldest_of(streams: Vec<Stream<'_>>) -> Option<(usize, Stream<'_>)> {
    let count = streams.len();
    streams.into_iter().min_by_key(|stream| stream.since).map(|oldest| (count, oldest))
}

fn close_oldest_stream_of_largest_client(open: &HashMap<u64, Arc<HttpConnection>>) -> bool {
    let mut clients: HashMap<Arc<str>, Vec<Stream<'_>>> = HashMap::new();
    for stream in streams(open) {
        clients.entry(stream.owner.client.clone()).or_default().push(stream);
    }
    let largest =
        clients.into_values().filter_map(oldest_of).max_by_key(|(count, oldest)| (*count, Reverse(oldest.since)));
    largest.is_some_and(|(_, oldest)| {
        oldest.connection.close_now();
        true
    })
}

impl HttpConnection {
    /// Ready when the connection has to be closed at once. Where a response has to be sent first, that closes it.
    pub(super) async fn closed(&self) {
        while !self.lock().must_close() {
            self.close.notified().await;
        }
    }

    /// Notes whether all that was written has been sent.
    pub(super) fn set_sending(&self, is_sending: bool) {
        let mut state = self.lock();
        let is_sent = state.is_sending && !is_sending;
        state.is_sending = is_sending;
        if is_sent && state.closing == Closing::Idle {
            self.close.notify_one();
        }
    }

    fn is_open(&self, such: impl Fn(&ConnectionState) -> bool) -> bool {
        let state = self.lock();
        state.closing == Closing::No && such(&state)
    }

    /// Notes that the limits of a known client hold for the request. `false` if the connection is being closed without a
    /// response: then nothing may be done.
    pub(super) fn admit(&self) -> bool {
        let mut state = self.lock();
        state.is_admitted = true;
        state.closing != Closing::Now
    }

    fn close_if_evictable(&self) -> bool {
        let mut state = self.lock();
        let is_evicted = state.is_evictable() && state.closing == Closing::No;
        if is_evicted {
            state.closing = if state.is_idle() { Closing::Idle } else { Closing::Now };
            self.close.notify_one();
        }
        is_evicted
    }

    fn close_now(&self) {
        self.lock().closing = Closing::Now;
        self.close.notify_one();
    }

    pub(super) fn is_busy(&self) -> bool {
        self.lock().requests > 0
    }

    fn quiet_since(&self) -> Option<u64> {
        let state = self.lock();
        state.is_evictable().then_some(state.quiet_since)
    }

    /// Does nothing where the request is over already. A connection that is being closed has no place for a stream.
    fn begin_stream(&self, now: u64, owner: StreamOwner) -> bool {
        let mut state = self.lock();
        let is_current = state.requests > 0;
        if is_current && state.closing != Closing::No {
            drop(state);
            self.close_now();
            return false;
        }
        if is_current {
            state.stream = Some((now, owner));
        }
        is_current
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock()
    }
}

/// A request that is being answered, from its headers to the last byte of its response.
pub(super) struct Busy {
    connection: Arc<HttpConnection>,
    clock: Arc<AtomicU64>,
    /// Whether the connection is to be closed behind the response.
    pub(super) is_last: bool,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        if state.is_admitted {
            state.quiet_since = self.clock.fetch_add(1, Ordering::Relaxed);
        }
        state.requests -= 1;
        state.stream = None;
    }
}

#[cfg(test)]
mod tests;
