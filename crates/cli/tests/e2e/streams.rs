//! Event streams and other requests that keep their connection: how many a client may hold, which one is closed when there are
//! too many, and what ends them. SECURITY.md names these tests.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{LEGACY, PATIENCE, modern, vault};
use crate::http::{Answer, Events, Post, Server};

fn listen() -> Post {
    let wanted = json!({ "notifications": { "resourcesListChanged": true } });
    Post::modern("subscriptions/listen", &modern(wanted))
}

/// Reads up to the end of the connection. Fails where that does not come in time.
#[track_caller]
fn wait_for_the_end(mut stream: impl BufRead) {
    let start = Instant::now();
    let mut rest = Vec::new();
    // A connection that is cut ends with an error or without one.
    let _ = stream.read_to_end(&mut rest);
    assert!(start.elapsed() < PATIENCE / 2, "the stream is still open after {:?}", start.elapsed());
}

fn open_connections(server: &Server, token: &str) -> usize {
    let page = Post::get("/metrics").bearer(token).send(server.address).unwrap().body;
    page.lines().find_map(|line| line.strip_prefix("quipu_http_connections ")).unwrap().parse().unwrap()
}

#[test]
fn streams_of_two_tokens_leave_connections_for_others_and_for_health() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    let [one, two] = ["one", "two"].map(|name| prepared.token(name, "read"));
    let other = prepared.token("other", "admin");
    let server = prepared.start(&["--require-token"]);
    let mut streams = Vec::new();
    for token in [&one, &two] {
        for _ in 0..512 {
            let mut stream = BufReader::new(listen().bearer(token).open(server.address).unwrap());
            assert!(Answer::read_head(&mut stream).unwrap().starts_with("HTTP/1.1 200"));
            streams.push(stream);
        }
    }
    assert_eq!(Post::get("/healthz").status(server.address), 200);
    assert_eq!(Post::list().bearer(&other).status(server.address), 200);
    let open = open_connections(&server, &other);
    assert!(open < 300, "each of the two clients keeps 128 streams, and {open} connections are open");
    assert_eq!(Post::list().bearer(&one).status(server.address), 200, "the client itself is answered too");
    wait_for_the_end(streams.remove(0));
}

#[test]
fn health_is_answered_while_calls_keep_all_connections_busy() {
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    let tokens = ["one", "two"].map(|name| prepared.token(name, "read"));
    let server = prepared.start(&["--require-token", "--max-connections", "4"]);
    // Requests whose bodies do not come: each keeps its connection busy for ten seconds.
    let begun = |token: &String| {
        Post { body: "{".into(), ..Post::list() }.with("Content-Length", "1000").bearer(token).open(server.address)
    };
    let _begun: Vec<TcpStream> = tokens.iter().cycle().take(4).map(|token| begun(token).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..40 {
        assert_eq!(Post::get("/healthz").status(server.address), 200);
    }
    let refused = Post::list().bearer(&tokens[0]).send(server.address).unwrap();
    assert_eq!((refused.status, refused.header("retry-after").as_deref()), (503, Some("1")), "{refused:?}");
}

#[test]
fn clients_without_a_token_keep_no_connection_from_others() {
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    let token = prepared.token("one", "read");
    let server = prepared.start(&["--require-token", "--max-connections", "4"]);
    let page = Post::get("/").send(server.address).unwrap().body;
    let script = page.split('"').find(|word| word.starts_with("/assets/") && word.ends_with(".js")).unwrap();
    let unread = Post::get(script).text(server.address).repeat(200);
    let refused = Post::list().text(server.address).repeat(2000);
    // The whole request is 100 bytes long and does not come; or its responses are not read.
    let begun = Post { line: "POST /api/session HTTP/1.1".into(), ..Post::get("/") }.with("Content-Length", "100");
    for request in [begun.text(server.address) + "{", unread, refused] {
        let _held: Vec<TcpStream> = (0..60)
            .map(|_| {
                let mut stream = TcpStream::connect(server.address).unwrap();
                stream.set_nonblocking(true).unwrap();
                // What does not fit into the buffers of the system is not needed.
                let _ = stream.write(request.as_bytes());
                stream
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(Post::get("/healthz").status(server.address), 200, "{}", &request[..40]);
            assert_eq!(Post::list().bearer(&token).status(server.address), 200, "{}", &request[..40]);
        }
    }
}

#[test]
fn at_the_limit_a_new_stream_replaces_the_oldest() {
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    let tokens: Vec<String> = (0..5).map(|number| prepared.token(&format!("t{number}"), "read")).collect();
    let server = prepared.start(&["--require-token", "--max-connections", "4"]);
    let mut streams: Vec<BufReader<TcpStream>> = tokens[..4]
        .iter()
        .map(|token| {
            let mut stream = BufReader::new(listen().bearer(token).open(server.address).unwrap());
            assert!(Answer::read_head(&mut stream).unwrap().starts_with("HTTP/1.1 200"));
            stream
        })
        .collect();
    assert_eq!(Post::list().bearer(&tokens[4]).status(server.address), 200);
    wait_for_the_end(streams.remove(0));
}

#[test]
fn streams_end_when_their_token_is_revoked_or_expires() {
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    let [revoked, kept] = ["revoked", "kept"].map(|name| prepared.token(name, "read"));
    let brief = prepared.quipu(&["token", "new", "--name", "brief", "--scope", "read", "--expires", "5s"]);
    let server = prepared.start(&["--require-token"]);
    let open = |token: &str| {
        let mut events = Events::open(&listen().bearer(token), server.address);
        assert_eq!(events.next()["method"], "notifications/subscriptions/acknowledged");
        events
    };
    let mut stays = open(&kept);
    let (expires, ends) = (open(brief.trim()), open(&revoked));
    let session = session(&server, &revoked);
    let older = Post::get("/mcp").with("Accept", "text/event-stream").with("Mcp-Session-Id", &session).bearer(&revoked);
    let older = Events::open(&older, server.address);
    server.quipu(&["token", "revoke", "revoked"]);
    for events in [ends, older, expires] {
        wait_for_the_end(events.into_stream());
    }
    let params = modern(json!({ "name": "create_node", "arguments": { "id": "b.md", "content": "x" } }));
    let writer = server.quipu(&["token", "new", "--name", "writer", "--scope", "write"]);
    assert_eq!(Post::call("create_node", &params).bearer(writer.trim()).status(server.address), 200);
    assert_eq!(stays.next()["method"], "notifications/resources/list_changed", "other streams still get notifications");
}

/// Opens a session of the older generation.
fn session(server: &Server, token: &str) -> String {
    let client_info = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client_info });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let answer = Post::message(hello).bearer(token).send(server.address).unwrap();
    answer.header("mcp-session-id").unwrap()
}
