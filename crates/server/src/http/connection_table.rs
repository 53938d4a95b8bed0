//! The table of open connections: how many there may be, which of them are idle, which carry an event stream and for which
//! client, and which one is closed to make room.
//!
//! An event stream keeps its connection busy for as long as its client likes. So each client has a limit of its own, and at
//! the limit of all connections the client with the most streams loses its oldest. A few connections beyond the limit are
//! kept for `/healthz` and `/metrics`: to a monitor a busy server must not look dead.

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
    /// When it last became idle.
    idle_since: u64,
    /// Set while the response is an event stream without an end.
    stream: Option<(u64, StreamOwner)>,
    closing: Closing,
}

impl ConnectionState {
    fn is_idle(&self) -> bool {
        self.requests == 0 && !self.is_sending
    }

    fn must_close(&self) -> bool {
        self.closing == Closing::Now || self.closing == Closing::Idle && !self.is_sending
    }
}

/// Whether a connection is being closed. Then its place is free, though its task may take a moment to end.
///
/// A request that was read before its connection is evicted is still answered: the client must learn whether its call took
/// effect. Nothing is read after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    /// It was idle.
    Idle,
    /// It was idle, and a request was read before its task heard of it: behind the response.
    AfterResponse,
    /// A stream, which has no end of its own.
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
            if !close_longest_idle(|| reserved(&open)) {
                return None;
            }
        }
        let number = self.clock.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(ConnectionState {
            is_reserve,
            requests: 0,
            is_sending: false,
            idle_since: number,
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

    /// Closes the connection that has been idle the longest; where none is idle, the oldest stream of the client that has
    /// the most. Calls that are being answered are never interrupted.
    fn evict_one(&self, open: &HashMap<u64, Arc<HttpConnection>>) -> bool {
        let is_evicted = close_longest_idle(|| ordinary(open)) || close_oldest_stream_of_largest_client(open);
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

/// Closes the connection that has been idle the longest. One that begins a request meanwhile is kept, and the next is looked
/// for.
fn close_longest_idle<'a, Among: Iterator<Item = &'a Arc<HttpConnection>>>(among: impl Fn() -> Among) -> bool {
    loop {
        let idle = among().filter_map(|connection| Some((connection.idle_since()?, connection)));
        let Some((_, longest)) = idle.min_by_key(|(since, _)| *since) else { return false };
        if longest.close_if_idle() {
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

    fn close_if_idle(&self) -> bool {
        let mut state = self.lock();
        let is_idle = state.is_idle() && state.closing == Closing::No;
        if is_idle {
            state.closing = Closing::Idle;
            self.close.notify_one();
        }
        is_idle
    }

    fn close_now(&self) {
        self.lock().closing = Closing::Now;
        self.close.notify_one();
    }

    pub(super) fn is_busy(&self) -> bool {
        self.lock().requests > 0
    }

    fn idle_since(&self) -> Option<u64> {
        let state = self.lock();
        state.is_idle().then_some(state.idle_since)
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
        state.idle_since = self.clock.fetch_add(1, Ordering::Relaxed);
        state.requests -= 1;
        state.stream = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(limit: usize) -> ConnectionTable {
        ConnectionTable::new(limit, Arc::default())
    }

    fn owner(client: &str) -> StreamOwner {
        StreamOwner { client: client.into(), authorization: None, address: [127, 0, 0, 1].into() }
    }

    impl ConnectionTable {
        fn stream(&self, client: &str) -> (Arc<HttpConnection>, Busy) {
            let connection = self.add().unwrap();
            let busy = self.begin_request(&connection);
            self.begin_stream(&connection, owner(client));
            (connection, busy)
        }

        fn has(&self, connection: &HttpConnection) -> bool {
            self.lock().contains_key(&connection.number) && connection.is_open(|_| true)
        }
    }

    #[test]
    fn at_the_limit_the_longest_idle_connection_is_closed_and_a_busy_one_is_kept() {
        let table = table(2);
        let (first, second) = (table.add().unwrap(), table.add().unwrap());
        let busy = table.begin_request(&first);
        let third = table.add().unwrap();
        assert!(table.has(&first) && !table.has(&second) && table.has(&third));
        let _third_is_busy = table.begin_request(&third);
        drop(busy);
        let fourth = table.add().unwrap();
        assert!(!table.has(&first) && table.admits(&fourth));
    }

    /// Whether a connection's task closes it as soon as it looks.
    fn is_closed(connection: &HttpConnection) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(connection.closed()).poll(&mut context).is_ready()
    }

    #[test]
    fn a_request_read_while_its_connection_is_evicted_is_answered_and_is_the_last() {
        let table = table(1);
        let (evicted, _) = (table.add().unwrap(), table.add().unwrap());
        assert!(!table.has(&evicted), "its place is free");
        let busy = table.begin_request(&evicted);
        assert!(busy.is_last && !is_closed(&evicted), "the request is answered first");
        drop(busy);
        assert!(!is_closed(&evicted), "the response may still be in a buffer; the connection ends behind it");
        assert!(!is_closed(&table.add().unwrap()));
    }

    #[test]
    fn evicted_connection_is_closed_when_idle_or_streaming() {
        let table = table(1);
        let (idle, next) = (table.add().unwrap(), table.add().unwrap());
        assert!(is_closed(&idle) && !is_closed(&next));
        let _newest = table.add().unwrap();
        let _busy = table.begin_request(&next);
        table.begin_stream(&next, owner("own"));
        assert!(is_closed(&next) && streams(&table.lock()).next().is_none());
    }

    #[test]
    fn a_connection_whose_response_is_unread_is_not_evicted_before_the_client_has_it() {
        let table = table(2);
        let (slow, idle) = (table.add().unwrap(), table.add().unwrap());
        slow.set_sending(true);
        let newcomer = table.add().unwrap();
        assert!(table.has(&slow) && !table.has(&idle), "the other one is closed");
        drop(table.begin_request(&newcomer));
        // Evicted at the moment between the end of a response and its first write.
        slow.set_sending(false);
        let _newest = table.add().unwrap();
        slow.set_sending(true);
        assert!(!table.has(&slow) && !is_closed(&slow), "the rest is sent first");
        slow.set_sending(false);
        assert!(is_closed(&slow));
    }

    #[test]
    fn requests_that_begin_while_connections_are_evicted_are_never_dropped() {
        let table = Arc::new(table(2));
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let table = table.clone();
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        let connection = table.add().expect("there is room");
                        // As its task does: either it closes the connection, or it answers what it has read.
                        if !is_closed(&connection) {
                            let _busy = table.begin_request(&connection);
                            assert!(!is_closed(&connection), "a request was accepted and dropped");
                        }
                        table.remove(&connection);
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!(table.count(), 0);
    }

    #[test]
    fn at_the_limit_the_client_with_the_most_streams_loses_its_oldest() {
        let table = table(24);
        let (small, _small) = table.stream("small");
        let large: Vec<_> = (0..3).map(|_| table.stream("large")).collect();
        let calls: Vec<_> = (0..20).map(|_| table.add().unwrap()).collect();
        let _busy: Vec<_> = calls.iter().map(|call| table.begin_request(call)).collect();
        let newcomer = table.add().unwrap();
        assert!(table.admits(&newcomer) && table.has(&small) && calls.iter().all(|call| table.has(call)));
        assert_eq!(large.iter().map(|(stream, _)| table.has(stream)).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn a_client_with_too_many_streams_loses_its_oldest() {
        let table = table(16);
        let (other, _other) = table.stream("other");
        let own: Vec<_> = (0..3).map(|_| table.stream("own")).collect();
        assert_eq!(own.iter().map(|(stream, _)| table.has(stream)).collect::<Vec<_>>(), [false, true, true]);
        assert!(table.has(&other));
    }

    #[test]
    fn a_connection_whose_stream_has_ended_holds_none() {
        let table = table(16);
        let (connection, busy) = table.stream("own");
        drop(busy);
        assert!(streams(&table.lock()).next().is_none());
        table.begin_stream(&connection, owner("own"));
        assert!(streams(&table.lock()).next().is_none(), "a stream needs a request");
    }

    #[test]
    fn while_all_connections_are_busy_with_calls_only_the_reserve_is_left() {
        let table = table(2);
        let busy: Vec<_> = (0..2).map(|_| table.begin_request(&table.add().unwrap())).collect();
        let reserved: Vec<_> = (0..RESERVE).map(|_| table.add().unwrap()).collect();
        assert!(reserved.iter().all(|connection| table.has(connection) && !table.admits(connection)));
        let next = table.add().unwrap();
        assert!(table.has(&next) && !table.has(&reserved[0]), "in a full reserve the longest idle makes room");
        let _all_busy: Vec<_> = reserved[1..].iter().chain([&next]).map(|one| table.begin_request(one)).collect();
        assert!(table.add().is_none());
        drop(busy);
        assert!(table.admits(&next), "there is room again");
    }

    #[test]
    fn streams_of_one_credential_are_closed_together() {
        let table = table(64);
        let with_token = |token| StreamOwner { authorization: Some(HeaderValue::from_static(token)), ..owner("c") };
        let open = |owner: StreamOwner| {
            let connection = table.add().unwrap();
            let busy = table.begin_request(&connection);
            table.begin_stream(&connection, owner);
            (connection, busy)
        };
        let (one, two, other) = (open(with_token("a")), open(with_token("a")), open(with_token("b")));
        let (without, _busy) = open(owner("c"));
        assert_eq!(table.stream_owners().len(), 2);
        table.close_streams(&with_token("a"));
        assert_eq!([&one.0, &two.0, &other.0, &without].map(|one| table.has(one)), [false, false, true, true]);
    }
}
