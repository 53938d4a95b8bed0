//! Both generations of the protocol over HTTP: answers as JSON and as events, sessions, progress, notices of changes.

#![expect(clippy::disallowed_methods, reason = "a test edits its vault behind the server's back")]
#![expect(clippy::needless_pass_by_value, reason = "calls read better with `json!` in place")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{LEGACY, PATIENCE, modern, serve_command, vault};
use crate::http::{Answer, Events, Post, Server};

/// How long the server waits before it treats a half-closed connection as closed.
const HALF_CLOSE_GRACE: Duration = Duration::from_secs(2);

/// A session of the older generation.
struct Session<'a> {
    server: &'a Server,
    id: String,
    token: Option<&'a str>,
}

impl<'a> Session<'a> {
    fn open(server: &'a Server, token: Option<&'a str>) -> Self {
        let client = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
        let mut session = Self { server, id: String::new(), token };
        let answer = session.post("initialize", params);
        session.id = answer.header("mcp-session-id").expect("a session is opened");
        assert_eq!(answer.message().unwrap()["result"]["protocolVersion"], LEGACY);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.dressed(Post::message(ready)).status(server.address), 202);
        session
    }

    fn dressed(&self, mut post: Post) -> Post {
        if !self.id.is_empty() {
            post = post.with("Mcp-Session-Id", &self.id).with("MCP-Protocol-Version", LEGACY);
        }
        self.token.map_or(post.clone(), |token| post.bearer(token))
    }

    fn post(&self, method: &str, params: Value) -> Answer {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.dressed(Post::message(message)).send(self.server.address).unwrap()
    }

    fn result(&self, method: &str, params: Value) -> Value {
        self.post(method, params).message().unwrap()["result"].clone()
    }
}

#[test]
fn concurrent_edit_is_not_overwritten() {
    let server = Server::start("//- a.md\nfirst\n");
    server.call("ada", "get_node", json!({ "id": "a.md" }));
    std::fs::write(server.root().join("a.md"), "edited elsewhere\n").unwrap();
    // Another client's reading brings the index up to date, so only what this one was shown can tell.
    server.call("bob", "get_node", json!({ "id": "a.md" }));
    let update = json!({ "id": "a.md", "content": "second\n" });
    let refused = server.call("ada", "update_node", update.clone());
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(std::fs::read_to_string(server.root().join("a.md")).unwrap(), "edited elsewhere\n");
    server.call("ada", "get_node", json!({ "id": "a.md" }));
    assert_eq!(server.call("ada", "update_node", update)["isError"], false);
}

#[test]
fn warning_is_sent_once_to_each_client() {
    let server = Server::start("//- a.md\n[[nowhere]]\n");
    let warnings = |client| server.call(client, "list_nodes", json!({}))["_meta"]["quipu/warnings"].clone();
    assert_eq!(warnings("ada"), json!(["\"a.md\": broken link to \"nowhere\""]));
    assert_eq!(warnings("ada"), Value::Null);
    assert_eq!(warnings("bob"), json!(["\"a.md\": broken link to \"nowhere\""]));
}

#[test]
fn response_is_json_without_notifications_and_an_event_stream_in_a_session() {
    let server = Server::start("//- a.md\nx\n");
    let answer = Post::list().send(server.address).unwrap();
    assert_eq!(answer.header("content-type").unwrap(), "application/json");
    assert!(answer.message().unwrap()["result"]["tools"].as_array().unwrap().len() >= 42);

    let session = Session::open(&server, None);
    let answer = session.post("tools/list", json!({}));
    assert_eq!(answer.header("content-type").unwrap(), "text/event-stream");
    assert!(answer.message().unwrap()["result"]["tools"].as_array().unwrap().len() >= 42);
    let found = session.result("tools/call", json!({ "name": "get_node", "arguments": { "id": "a.md" } }));
    assert_eq!(found["structuredContent"]["id"], "a.md");

    let end = Post { line: "DELETE /mcp HTTP/1.1".into(), headers: vec![], body: String::new() };
    assert_eq!(session.dressed(end).status(server.address), 204, "the official Python client takes 202 for a failure");
    assert_eq!(session.post("tools/list", json!({})).status, 404, "a session that ended is not there");
}

#[test]
fn invalid_body_gets_the_same_error_as_on_stdio() {
    let server = Server::start("//- a.md\nx\n");
    let list = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    for (body, id, code) in [
        ("{\"jsonrpc\": ".to_owned(), Value::Null, -32700),
        (String::new(), Value::Null, -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":{\"a\":\"\\ud83d\"}}".to_owned(), json!(7), -32700),
        ("[]".to_owned(), Value::Null, -32600),
        ("7".to_owned(), Value::Null, -32600),
        (json!([list]).to_string(), json!(7), -32600),
        (json!({ "jsonrpc": "1.0", "id": 7, "method": "tools/list" }).to_string(), json!(7), -32600),
    ] {
        let answer = Post { body: body.clone(), ..Post::list() }.send(server.address).unwrap();
        assert_eq!(
            (answer.status, answer.header("content-type").as_deref()),
            (400, Some("application/json")),
            "{body}"
        );
        let message = answer.message().unwrap();
        assert_eq!((&message["id"], &message["error"]["code"]), (&id, &json!(code)), "{body}: {message}");
    }
    let two = Post { body: json!([list, list]).to_string(), ..Post::list() }.send(server.address).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&two.body).unwrap().as_array().unwrap().len(), 2, "each is answered");
    let plain = Post { headers: vec![("Accept".into(), "application/json, text/event-stream".into())], ..Post::list() };
    assert_eq!(plain.status(server.address), 415, "what is not said to be JSON is not looked at");
}

#[test]
fn invalid_parameters_get_the_same_error_as_on_stdio() {
    let server = Server::start("//- a.md\nx\n");
    let session = Session::open(&server, None);
    for (params, why) in [
        (Value::Null, "missing field `params`"),
        (json!({ "name": "get_version", "arguments": "x" }), "invalid type: string \"x\", expected a map"),
        (json!({ "name": "get_version", "arguments": [] }), "expected a map"),
        (json!([]), "`params` must be an object"),
    ] {
        let refused = session.post("tools/call", params.clone()).message().unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32602)), "{params}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(why), "{params}: {refused}");
    }
    let alone = Post::call("get_version", &modern(json!({ "name": "get_version", "arguments": "x" })));
    assert_eq!(alone.send(server.address).unwrap().message().unwrap()["error"]["code"], -32602);
    assert_eq!(session.post("tools/kall", json!({})).message().unwrap()["error"]["code"], -32601);
}

/// The first call lasts for as long as the owner process, another one, is stopped.
#[test]
fn an_id_that_is_in_use_in_a_session_is_refused_until_it_is_answered() {
    let prepared = Server::prepare(vault("//- a.md\nx\n"));
    let owner = Owner::start(prepared.vault.path());
    let server = prepared.start(&[]);
    let (session, other) = (Session::open(&server, None), Session::open(&server, None));
    let message = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        Post::message(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
    };
    let make = |id: &str| session.dressed(message("create_node", json!({ "id": id, "content": "x" })));
    let ping = |session: &Session| session.post("ping", json!({}));

    owner.signal("STOP");
    let mut first = std::io::BufReader::new(make("first.md").open(server.address).unwrap());
    // Its head comes at once, the answer when there is one.
    assert!(Answer::read_head(&mut first).unwrap().starts_with("HTTP/1.1 200"));
    let refused = make("second.md").send(server.address).unwrap();
    let error = refused.message().unwrap();
    assert_eq!((refused.status, &error["id"], &error["error"]["code"]), (400, &Value::Null, &json!(-32600)));
    assert_eq!(error["error"]["message"], "request 1 is still in progress: use another id");
    assert_eq!(ping(&other).status, 200, "another session has ids of its own");
    // The answer to a call goes by its id, also when its client has hung up.
    drop(first);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(ping(&session).status, 400);
    owner.signal("CONT");

    let started = Instant::now();
    while ping(&session).status != 200 {
        assert!(started.elapsed() < PATIENCE, "the id is not given free");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(ping(&session).message().unwrap()["result"].is_object());
    let there = server.call("ada", "nodes_exist", json!({ "ids": ["first.md", "second.md"] }));
    assert_eq!(there["structuredContent"], json!({ "first.md": true, "second.md": false }), "{there}");
}

/// Eight calls of a client run at a time; the ninth waits, and can be called off. They run for as long as the vault's owner,
/// another process, is stopped.
#[test]
fn waiting_call_can_be_cancelled_in_both_generations() {
    let prepared = Server::prepare(vault("//- a.md\nx\n"));
    let owner = Owner::start(prepared.vault.path());
    let server = prepared.start(&[]);
    let exists = json!({ "name": "nodes_exist", "arguments": { "ids": ["a.md"] } });
    let make = |name: &str| json!({ "name": "create_entity", "arguments": { "name": name, "entity_type": "Task" } });
    let session = Session::open(&server, None);
    let in_session = |id: i64, params: &Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        session.dressed(Post::message(message)).open(server.address).unwrap()
    };

    owner.signal("STOP");
    let waiting: Vec<_> = (0..8).map(|id| in_session(id, &exists)).collect();
    std::thread::sleep(Duration::from_millis(200));
    let (_old, new) = (in_session(8, &make("old")), Post::call("create_entity", &modern(make("new"))));
    let new = new.open(server.address).unwrap();
    let kept = in_session(9, &make("kept"));
    std::thread::sleep(Duration::from_millis(200));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 8 } });
    assert_eq!(session.dressed(Post::message(cancelled)).status(server.address), 202);
    drop(new);
    // A client that disconnected looks like one that only closed its sending side, which is answered.
    std::thread::sleep(HALF_CLOSE_GRACE + Duration::from_millis(300));
    owner.signal("CONT");

    for stream in waiting.into_iter().chain([kept]) {
        let answer = Answer::read(&mut std::io::BufReader::new(stream)).unwrap();
        assert!(answer.message().unwrap()["result"].is_object(), "{answer:?}");
    }
    let there = server.call("ada", "list_entities", json!({}))["structuredContent"].to_string();
    assert!(there.contains("kept") && !there.contains("old") && !there.contains("new"), "{there}");
}

/// As `nc -N` does it, and clients of HTTP/1.0.
#[test]
fn half_closed_client_gets_every_response() {
    let prepared = Server::prepare(vault("//- a.md\nx\n"));
    let owner = Owner::start(prepared.vault.path());
    let server = prepared.start(&[]);
    owner.signal("STOP");
    let call = Post::call("get_node", &modern(json!({ "name": "get_node", "arguments": { "id": "a.md" } })));
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let requests = call.text(server.address) + &Post::get("/healthz").text(server.address);
    stream.write_all(requests.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    owner.signal("CONT");
    let mut stream = std::io::BufReader::new(stream);
    let answer = Answer::read(&mut stream).unwrap();
    assert_eq!(answer.message().unwrap()["result"]["structuredContent"]["id"], "a.md", "{answer:?}");
    assert_eq!(Answer::read(&mut stream).unwrap().status, 200);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "then the server closes");
}

/// A server over standard input that has the vault before the one over HTTP comes.
struct Owner(std::process::Child);

impl Owner {
    fn start(root: &std::path::Path) -> Self {
        let mut command = serve_command(root, &["--no-watch"]);
        let owner = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let socket = root.join(".quipu/share/owner.sock");
        let started = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(started.elapsed() < PATIENCE, "the owner does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self(owner)
    }

    fn signal(&self, name: &str) {
        let status = std::process::Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn client_is_notified_of_changes_in_both_generations() {
    let server = Server::start("//- a.md\nx\n//- b.md\ny\n");
    let address = "quipu://note/a.md";
    // The older generation: a stream for the session, and a request for each note.
    let session = Session::open(&server, None);
    session.result("resources/subscribe", json!({ "uri": address }));
    let get = session.dressed(Post::get("/mcp").with("Accept", "text/event-stream"));
    let mut told = Events::open(&get, server.address);
    // The newer: a request whose answer is the stream.
    let wanted = json!({ "resourcesListChanged": true, "resourceSubscriptions": [address, "nonsense"] });
    let listen = modern(json!({ "notifications": wanted }));
    let mut heard = Events::open(&Post::modern("subscriptions/listen", &listen), server.address);
    let accepted = heard.next();
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!([address]), "{accepted}");

    server.call("ada", "update_node", json!({ "id": "b.md", "content": "not followed" }));
    server.call("ada", "update_node", json!({ "id": "a.md", "content": "changed" }));
    for events in [&mut told, &mut heard] {
        let notice = events.next();
        assert_eq!(notice["method"], "notifications/resources/updated", "{notice}");
        assert_eq!(notice["params"]["uri"], address);
    }
    server.call("ada", "create_node", json!({ "id": "c.md", "content": "new" }));
    for events in [&mut told, &mut heard] {
        assert_eq!(events.next()["method"], "notifications/resources/list_changed");
    }
}

#[test]
fn context_and_audit_log_are_kept_per_token_and_client() {
    let prepared = Server::prepare(vault("//- a.md\nx\n"));
    let (ada, bob) = (prepared.token("ada", "write"), prepared.token("bob", "write"));
    let server = prepared.start(&["--require-token"]);
    let call = |token: &str, tool: &str, arguments: Value| {
        let params = modern(json!({ "name": tool, "arguments": arguments }));
        let answer = Post::call(tool, &params).bearer(token).send(server.address).unwrap();
        answer.message().unwrap()["result"]["structuredContent"].clone()
    };
    let project = call(&ada, "create_entity", json!({ "name": "Boat", "entity_type": "Project" }));
    call(&ada, "set_context", json!({ "project_id": project["entity_id"] }));
    assert_eq!(call(&ada, "get_context", json!({}))["project_name"], "Boat");
    assert_eq!(call(&bob, "get_context", json!({}))["project_name"], Value::Null, "of the same client, another token");
    let session = Session::open(&server, Some(&ada));
    let params = json!({ "name": "get_context", "arguments": {} });
    assert_eq!(session.result("tools/call", params)["structuredContent"]["project_name"], "Boat");
    let log: Value = serde_json::from_str(&server.quipu(&["audit", "--json"])).unwrap();
    assert!(log.to_string().contains("\"client\":\"raw (ada)\""), "{log}");
}

#[test]
fn long_client_name_does_not_hide_its_token_in_the_log() {
    let prepared = Server::prepare(vault("//- a.md\nx\n"));
    let ada = prepared.token("ada", "write");
    let server = prepared.start(&["--require-token"]);
    for (number, name) in [Some("x".repeat(300)), Some("é".repeat(5000)), Some(String::new()), None].iter().enumerate()
    {
        let entity = json!({ "name": format!("entity {number}"), "entity_type": "Task" });
        let mut params = modern(json!({ "name": "create_entity", "arguments": entity }));
        match name {
            Some(name) => params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(name),
            None => drop(params["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientInfo")),
        }
        assert_eq!(Post::call("create_entity", &params).bearer(&ada).status(server.address), 200);
    }
    let log: Value = serde_json::from_str(&server.quipu(&["audit", "--json"])).unwrap();
    let clients: Vec<&str> = log.as_array().unwrap().iter().map(|entry| entry["client"].as_str().unwrap()).collect();
    assert_eq!(clients.len(), 4);
    assert!(clients.iter().all(|client| client.ends_with("(ada)")), "{clients:?}");
}

#[test]
fn client_with_many_names_does_not_remove_the_guard_of_another() {
    let prepared = Server::prepare(vault("//- a.md\nfirst\n"));
    let (ada, eve) = (prepared.token("ada", "write"), prepared.token("eve", "read"));
    let server = prepared.start(&["--require-token"]);
    let call = |token: &str, client: &str, tool: &str, arguments: Value| {
        let mut params = modern(json!({ "name": tool, "arguments": arguments }));
        params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(client);
        let answer = Post::call(tool, &params).bearer(token).send(server.address).unwrap();
        answer.message().unwrap()["result"].clone()
    };
    call(&ada, "cursor", "get_node", json!({ "id": "a.md" }));
    std::fs::write(server.root().join("a.md"), "edited elsewhere\n").unwrap();
    for number in 0..300 {
        call(&eve, &format!("name {number}"), "get_node", json!({ "id": "a.md" }));
    }
    let refused = call(&ada, "cursor", "update_node", json!({ "id": "a.md", "content": "second\n" }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(std::fs::read_to_string(server.root().join("a.md")).unwrap(), "edited elsewhere\n");
}

/// It is kept as long as the session, of which a client may have many.
#[test]
fn long_first_message_opens_no_session() {
    let server = Server::start("");
    let client = json!({ "name": "raw", "version": "1", "description": "x".repeat(1_000_000) });
    let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
    let answer = Session { server: &server, id: String::new(), token: None }.post("initialize", params);
    let message = answer.message().unwrap();
    assert_eq!(message["error"]["code"], -32602, "{message}");
    assert!(message["error"]["message"].as_str().unwrap().contains("the first message is too long"), "{message}");
    Session::open(&server, None);
}

#[test]
fn session_id_is_rejected_with_another_token() {
    let prepared = Server::prepare(vault("//- a.md\nx\n"));
    let (ada, bob) = (prepared.token("ada", "write"), prepared.token("bob", "admin"));
    let server = prepared.start(&["--require-token"]);
    let session = Session::open(&server, Some(&ada));
    assert_eq!(session.post("tools/list", json!({})).status, 200);
    let stolen = Session { server: &server, id: session.id.clone(), token: Some(&bob) };
    assert_eq!(stolen.post("tools/list", json!({})).status, 404);
    for line in ["GET /mcp HTTP/1.1", "DELETE /mcp HTTP/1.1"] {
        let post = Post { line: line.into(), headers: vec![], body: String::new() }.with("Accept", "text/event-stream");
        assert_eq!(stolen.dressed(post).status(server.address), 404, "{line}");
    }
    assert_eq!(session.post("tools/list", json!({})).status, 200, "and it goes on for its owner");
}

#[test]
fn health_and_metrics_are_served() {
    let server = Server::start("//- a.md\nx\n");
    server.call("ada", "get_node", json!({ "id": "a.md" }));
    let health = Post::get("/healthz").send(server.address).unwrap();
    assert_eq!((health.status, health.body.as_str()), (200, r#"{"status":"ok"}"#));
    let page = Post::get("/metrics").send(server.address).unwrap();
    assert!(page.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for line in [
        r#"quipu_tool_seconds_count{tool="get_node"} 1"#,
        r#"quipu_tool_failures_total{tool="get_node"} 0"#,
        "quipu_notes 1",
        "quipu_indexed 1",
        "# TYPE quipu_unsent_bytes gauge",
        "# TYPE quipu_http_connections gauge",
    ] {
        assert!(page.body.lines().any(|found| found == line), "{line} is not in\n{}", page.body);
    }
}

#[test]
fn allowed_origin_gets_cors_headers() {
    let server = Server::prepare(vault("//- a.md\nx\n")).start(&["--allowed-origin", "https://app.example"]);
    let preflight = Post { line: "OPTIONS /mcp HTTP/1.1".into(), headers: vec![], body: String::new() };
    let answer = preflight.with("Origin", "https://app.example").send(server.address).unwrap();
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin").as_deref()),
        (204, Some("https://app.example"))
    );
    let answer = Post::list().with("Origin", "https://app.example").send(server.address).unwrap();
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin").as_deref()),
        (200, Some("https://app.example"))
    );
}

const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/tls");

/// The response over TLS to a client that trusts only this certificate.
fn over_tls(server: &Server, certificate: &str) -> std::io::Result<Answer> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls;

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(format!("{TLS}/{certificate}")).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = rustls::ClientConnection::new(config.into(), "localhost".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(session, TcpStream::connect(server.address)?);
    Write::write_all(&mut stream, Post::list().text(server.address).as_bytes())?;
    Answer::read(&mut std::io::BufReader::new(stream))
}

#[test]
fn tls_connections_are_encrypted() {
    let (certificate, key) = (format!("{TLS}/cert.pem"), format!("{TLS}/key.pem"));
    let server = Server::prepare(vault("//- a.md\nx\n")).start(&["--tls-cert", &certificate, "--tls-key", &key]);
    let answer = over_tls(&server, "cert.pem").unwrap();
    assert!(answer.message().unwrap()["result"]["tools"].as_array().unwrap().len() >= 42);
    let plain = Post::list().send(server.address);
    assert!(plain.is_err(), "nothing is said in the clear: {plain:?}");
}

#[test]
fn renewed_certificate_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let put = |from: &str, to: &str| std::fs::copy(format!("{TLS}/{from}"), at(to)).unwrap();
    put("cert.pem", "cert.pem");
    put("key.pem", "key.pem");
    let server =
        Server::prepare(vault("//- a.md\nx\n")).start(&["--tls-cert", &at("cert.pem"), "--tls-key", &at("key.pem")]);
    over_tls(&server, "cert.pem").unwrap();
    // One file after the other, as programs that renew do: meanwhile the old pair is good.
    put("renewed-cert.pem", "cert.pem");
    std::thread::sleep(Duration::from_millis(1100));
    over_tls(&server, "cert.pem").unwrap();
    put("renewed-key.pem", "key.pem");
    std::thread::sleep(Duration::from_millis(1100));
    over_tls(&server, "renewed-cert.pem").unwrap();
    assert!(over_tls(&server, "cert.pem").is_err(), "the old one is no longer shown");
    std::fs::write(at("cert.pem"), "nonsense").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    over_tls(&server, "renewed-cert.pem").unwrap();
}

/// A key without a time would be applied again as soon as its record is deleted.
#[test]
fn key_of_a_call_is_a_uuid_of_version_7() {
    let server = Server::start("");
    let create = |key: &str| {
        let mut params = modern(json!({ "name": "create_node", "arguments": { "id": "a.md", "content": "x" } }));
        params["_meta"]["quipu/request-key"] = json!(key);
        Post::call("create_node", &params).send(server.address).unwrap().body
    };
    for wrong in ["9b2f5c1e-d2f0-4abc-8def-0123456789ab", "x", ""] {
        let said = create(wrong);
        assert!(said.contains("`quipu/request-key` must be a UUID of version 7"), "{wrong}: {said}");
    }
    let said = create("f198c6a1-d2f0-7abc-8def-0123456789ab");
    assert!(said.contains("ahead of the server's clock"), "{said}");
    assert!(!server.root().join("a.md").exists());
}
