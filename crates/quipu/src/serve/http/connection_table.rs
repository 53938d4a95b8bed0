//! The table of open connections: how many there may be, which of them are idle, which carry an event stream and for which
//! client, and which one is closed to make room.
//!
//! An event stream keeps its connection busy for as long as its client likes. So each client has a limit of its own, and at
//! the limit of all connections the client with the most streams loses its oldest. A few connections beyond the limit are
//! kept for `/healthz` and `/metrics`: a monitor must not take a busy server for a dead one.

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
    open: Mutex<HashMap<u64, Arc<Connection>>>,
    counters: Arc<Counters>,
}

/// One connection.
pub(super) struct Connection {
    number: u64,
    state: Mutex<State>,
    close: Notify,
}

struct State {
    /// Whether it is one of those beyond the limit.
    is_reserve: bool,
    /// Requests whose response is not sent yet.
    requests: usize,
    /// When it last became idle.
    idle_since: u64,
    /// Set while the response is an event stream without an end.
    stream: Option<(u64, StreamOwner)>,
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
    pub(super) fn add(&self) -> Option<Arc<Connection>> {
        let mut open = self.lock();
        let is_reserve = !self.has_room(&mut open);
        if is_reserve && reserved(&open).count() >= RESERVE {
            let Some(number) = longest_idle(reserved(&open)) else {
                self.counters.evicted.add();
                return None;
            };
            self.evict(&mut open, number);
        }
        let number = self.clock.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State { is_reserve, requests: 0, idle_since: number, stream: None });
        let connection = Arc::new(Connection { number, state, close: Notify::new() });
        open.insert(number, connection.clone());
        Some(connection)
    }

    pub(super) fn remove(&self, connection: &Connection) {
        self.lock().remove(&connection.number);
    }

    /// Whether requests other than `/healthz` and `/metrics` may be answered on this connection. One of the reserve becomes
    /// an ordinary one as soon as there is room.
    pub(super) fn admits(&self, connection: &Connection) -> bool {
        if !connection.lock().is_reserve {
            return true;
        }
        let mut open = self.lock();
        let has_room = self.has_room(&mut open);
        connection.lock().is_reserve = !has_room;
        has_room
    }

    /// Closes a connection, where one can be closed.
    pub(super) fn make_room(&self) {
        self.evict_one(&mut self.lock());
    }

    fn has_room(&self, open: &mut HashMap<u64, Arc<Connection>>) -> bool {
        let ordinary = open.len() - reserved(open).count();
        ordinary < self.limit || self.evict_one(open)
    }

    /// Closes the connection that has been idle the longest; where none is idle, the oldest stream of the client that has
    /// the most. Calls that are being answered are never interrupted.
    fn evict_one(&self, open: &mut HashMap<u64, Arc<Connection>>) -> bool {
        let ordinary = open.values().filter(|connection| !connection.lock().is_reserve);
        let Some(number) = longest_idle(ordinary).or_else(|| oldest_stream_of_largest_client(open)) else {
            return false;
        };
        self.evict(open, number);
        true
    }

    fn evict(&self, open: &mut HashMap<u64, Arc<Connection>>, number: u64) {
        close(open, number);
        self.counters.evicted.add();
    }

    /// Notes that the response on this connection is a stream without an end. Closes the client's oldest stream where it now
    /// has too many.
    pub(super) fn begin_stream(&self, connection: &Connection, owner: StreamOwner) {
        let mut open = self.lock();
        let client = owner.client.clone();
        if !connection.begin_stream(self.clock.fetch_add(1, Ordering::Relaxed), owner) {
            return;
        }
        let mut own: Vec<(u64, u64)> = streams(&open)
            .filter(|(_, _, owner)| owner.client == client)
            .map(|(number, since, _)| (since, number))
            .collect();
        if own.len() > self.limit.div_ceil(STREAM_SHARE) {
            own.sort_unstable();
            close(&mut open, own[0].1);
            self.counters.over_streams.add();
        }
    }

    /// Everybody who has a stream open and showed a token for it.
    pub(super) fn stream_owners(&self) -> Vec<StreamOwner> {
        let open = self.lock();
        let owners: HashSet<StreamOwner> =
            streams(&open).map(|(_, _, owner)| owner).filter(|owner| owner.authorization.is_some()).collect();
        owners.into_iter().collect()
    }

    /// Closes all streams of an owner whose token is no longer valid.
    pub(super) fn close_streams(&self, revoked: &StreamOwner) {
        let mut open = self.lock();
        let numbers: Vec<u64> =
            streams(&open).filter(|(_, _, owner)| owner == revoked).map(|(number, ..)| number).collect();
        for number in numbers {
            close(&mut open, number);
            self.counters.revoked.add();
        }
    }

    /// Marks a connection as busy until the result is dropped.
    pub(super) fn begin_request(&self, connection: &Arc<Connection>) -> Busy {
        connection.lock().requests += 1;
        Busy { connection: connection.clone(), clock: self.clock.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.open.lock()
    }
}

fn reserved(open: &HashMap<u64, Arc<Connection>>) -> impl Iterator<Item = &Arc<Connection>> {
    open.values().filter(|connection| connection.lock().is_reserve)
}

fn longest_idle<'a>(connections: impl Iterator<Item = &'a Arc<Connection>>) -> Option<u64> {
    let idle = connections.filter_map(|connection| Some((connection.idle_since()?, connection.number)));
    idle.min().map(|(_, number)| number)
}

/// Number, start and owner of every stream.
fn streams(open: &HashMap<u64, Arc<Connection>>) -> impl Iterator<Item = (u64, u64, StreamOwner)> {
    open.values().filter_map(|connection| {
        let (since, owner) = connection.lock().stream.clone()?;
        Some((connection.number, since, owner))
    })
}

/// How many streams a client has; start and number of the oldest.
type Streams = (usize, Reverse<(u64, u64)>);

fn oldest_stream_of_largest_client(open: &HashMap<u64, Arc<Connection>>) -> Option<u64> {
    let mut clients: HashMap<Arc<str>, Streams> = HashMap::new();
    for (number, since, owner) in streams(open) {
        let (count, oldest) = clients.entry(owner.client).or_insert((0, Reverse((since, number))));
        *count += 1;
        *oldest = (*oldest).max(Reverse((since, number)));
    }
    clients.into_values().max().map(|(_, Reverse((_, number)))| number)
}

/// The connection's task may take a moment to end; its place is free at once.
fn close(open: &mut HashMap<u64, Arc<Connection>>, number: u64) {
    if let Some(connection) = open.remove(&number) {
        connection.close.notify_one();
    }
}

impl Connection {
    /// Ready when the connection has to be closed.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }

    pub(super) fn is_busy(&self) -> bool {
        self.lock().requests > 0
    }

    fn idle_since(&self) -> Option<u64> {
        let state = self.lock();
        (state.requests == 0).then_some(state.idle_since)
    }

    /// Does nothing where the request is over already.
    fn begin_stream(&self, now: u64, owner: StreamOwner) -> bool {
        let mut state = self.lock();
        let is_current = state.requests > 0;
        if is_current {
            state.stream = Some((now, owner));
        }
        is_current
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A request that is being answered, from its headers to the last byte of its response.
pub(super) struct Busy {
    connection: Arc<Connection>,
    clock: Arc<AtomicU64>,
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
        fn stream(&self, client: &str) -> (Arc<Connection>, Busy) {
            let connection = self.add().unwrap();
            let busy = self.begin_request(&connection);
            self.begin_stream(&connection, owner(client));
            (connection, busy)
        }

        fn has(&self, connection: &Connection) -> bool {
            self.lock().contains_key(&connection.number)
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
