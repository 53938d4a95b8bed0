//! Which connections are closed for others, and which never are.

use super::*;

fn table(limit: usize) -> ConnectionTable {
    ConnectionTable::new(limit, Arc::default())
}

fn owner(client: &str) -> StreamOwner {
    StreamOwner { client: client.into(), authorization: None, address: [127, 0, 0, 1].into() }
}

impl ConnectionTable {
    /// A request of a known client.
    fn begin_call(&self, connection: &Arc<HttpConnection>) -> Busy {
        let busy = self.begin_request(connection);
        assert!(connection.admit());
        busy
    }

    fn stream(&self, client: &str) -> (Arc<HttpConnection>, Busy) {
        let connection = self.add().unwrap();
        let busy = self.begin_call(&connection);
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
    let busy = table.begin_call(&first);
    let third = table.add().unwrap();
    assert!(table.has(&first) && !table.has(&second) && table.has(&third));
    let _third_is_busy = table.begin_call(&third);
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
    let busy = table.begin_call(&evicted);
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
    let _busy = table.begin_call(&next);
    table.begin_stream(&next, owner("own"));
    assert!(is_closed(&next) && streams(&table.lock()).next().is_none());
}

#[test]
fn connection_with_an_unread_response_is_not_evicted() {
    let table = table(2);
    let (slow, idle) = (table.add().unwrap(), table.add().unwrap());
    let answered = table.begin_call(&slow);
    slow.set_sending(true);
    drop(answered);
    let newcomer = table.add().unwrap();
    assert!(table.has(&slow) && !table.has(&idle), "the other one is closed");
    drop(table.begin_call(&newcomer));
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
                    // As its task does: either it closes the connection, or it answers what it has admitted.
                    if !is_closed(&connection) {
                        let _busy = table.begin_request(&connection);
                        if connection.admit() {
                            assert!(!is_closed(&connection), "a request was admitted and dropped");
                        }
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
fn at_the_limit_requests_and_unread_responses_of_unknown_clients_make_room() {
    let table = table(3);
    let (asking, unread, call) = (table.add().unwrap(), table.add().unwrap(), table.add().unwrap());
    // Answers to an unknown client do not make its connection newer.
    drop(table.begin_request(&asking));
    let _asking = table.begin_request(&asking);
    drop(table.begin_request(&unread));
    unread.set_sending(true);
    let _call = table.begin_call(&call);
    let _next = table.begin_call(&table.add().unwrap());
    assert!(is_closed(&asking) && table.has(&unread), "the oldest");
    assert!(!asking.admit(), "no call begins on a connection that is being closed");
    let _last = table.begin_call(&table.add().unwrap());
    assert!(is_closed(&unread) && table.has(&call), "a call of a known client is not interrupted");
}

#[test]
fn at_the_limit_the_client_with_the_most_streams_loses_its_oldest() {
    let table = table(24);
    let (small, _small) = table.stream("small");
    let large: Vec<_> = (0..3).map(|_| table.stream("large")).collect();
    let calls: Vec<_> = (0..20).map(|_| table.add().unwrap()).collect();
    let _busy: Vec<_> = calls.iter().map(|call| table.begin_call(call)).collect();
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
    let busy: Vec<_> = (0..2).map(|_| table.begin_call(&table.add().unwrap())).collect();
    let reserved: Vec<_> = (0..RESERVE).map(|_| table.add().unwrap()).collect();
    assert!(reserved.iter().all(|connection| table.has(connection) && !table.admits(connection)));
    let next = table.add().unwrap();
    assert!(table.has(&next) && !table.has(&reserved[0]), "in a full reserve the longest idle makes room");
    let in_reserve = || reserved[1..].iter().chain([&next]);
    let asked: Vec<_> = in_reserve().map(|one| table.begin_request(one)).collect();
    let last = table.add().unwrap();
    assert!(!table.has(&reserved[1]), "nor does a request without a client protect its connection");
    drop(asked);
    let _all_busy: Vec<_> = reserved[2..].iter().chain([&next, &last]).map(|one| table.begin_call(one)).collect();
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
        let busy = table.begin_call(&connection);
        table.begin_stream(&connection, owner);
        (connection, busy)
    };
    let (one, two, other) = (open(with_token("a")), open(with_token("a")), open(with_token("b")));
    let (without, _busy) = open(owner("c"));
    assert_eq!(table.stream_owners().len(), 2);
    table.close_streams(&with_token("a"));
    assert_eq!([&one.0, &two.0, &other.0, &without].map(|one| table.has(one)), [false, false, true, true]);
}
