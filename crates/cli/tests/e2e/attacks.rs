//! Attacks over HTTP, each with the answer it gets: none comes in, and none stops the server for others. SECURITY.md names
//! these tests.

#![expect(clippy::disallowed_methods, reason = "a test makes its vault, changes it, and looks how big the process is")]

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{PATIENCE, files_below, modern, vault, vault_of};
use crate::http::{Answer, Events, Post, Prepared, Server};

/// How long another client may have to wait for its answer while an attack goes on. Generous, for machines that run other tests.
const SERVED_WITHIN: Duration = Duration::from_secs(10);

fn server() -> Server {
    Server::start("//- a.md\ntext\n")
}

/// Fails unless another client is answered as ever.
#[track_caller]
fn others_are_served(server: &Server) {
    let start = Instant::now();
    let found = server.call("another", "get_node", json!({ "id": "a.md" }));
    assert_eq!(found["structuredContent"]["id"], "a.md");
    assert!(start.elapsed() < SERVED_WITHIN, "it took {:?}", start.elapsed());
}

/// Sends bytes as they are, and gives all that comes back until the server closes.
fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may have closed before all is written.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn create(id: &str) -> Value {
    modern(json!({ "name": "create_node", "arguments": { "id": id, "content": "x" } }))
}

#[test]
fn path_traversal_is_refused() {
    let server = server();
    let secret = server.root().parent().unwrap().join("quipu-secret.md");
    std::fs::write(&secret, "the secret").unwrap();
    for path in
        ["/mcp/../quipu-secret.md", "/../quipu-secret.md", "/%2e%2e/quipu-secret.md", "//quipu-secret.md", "/..;/a"]
    {
        assert_eq!(Post::get(path).status(server.address) / 100, 4, "{path}");
    }
    for name in ["../quipu-secret.md", "..%2fquipu-secret.md", "/etc/passwd", "a/../../quipu-secret.md", "a.md\0"] {
        for (tool, arguments) in [
            ("get_document", json!({ "path": name })),
            ("get_node", json!({ "id": name })),
            ("create_node", json!({ "id": name, "content": "overwritten" })),
            ("update_node", json!({ "id": name, "content": "overwritten" })),
        ] {
            let answer = server.call("attacker", tool, arguments).to_string();
            assert!(!answer.contains("the secret") && !answer.contains("root:"), "{tool} {name}: {answer}");
        }
        let params = modern(json!({ "uri": format!("quipu://note/{name}") }));
        let answer =
            Post::modern("resources/read", &params).with("Mcp-Name", &format!("quipu://note/{name}").replace('\0', ""));
        let answer = answer.send(server.address).unwrap();
        assert!(!answer.body.contains("the secret") && !answer.body.contains("root:"), "{answer:?}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the secret");
    std::fs::remove_file(&secret).unwrap();
    others_are_served(&server);
}

#[test]
fn dns_rebinding_is_refused() {
    let server = server();
    let port = server.address.port();
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("evil@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}@evil.example"),
        "127.0.0.1.evil.example".to_owned(),
        "192.168.1.1".to_owned(),
        String::new(),
    ] {
        assert_eq!(Post::list().with("Host", &host).status(server.address) / 100, 4, "Host: {host}");
    }
    for origin in
        ["http://evil.example", "http://localhost:3000", "http://127.0.0.1", "null", "file://", "http://x@localhost"]
    {
        assert_eq!(Post::list().with("Origin", origin).status(server.address), 403, "Origin: {origin}");
    }
    let malformed = Post::list().with("Origin", "http://evil.example").with("Mcp-Name", "a").with("Mcp-Name", "b");
    let malformed = malformed.send(server.address).unwrap();
    assert_eq!((malformed.status, malformed.header("access-control-allow-origin")), (400, None), "no page may read it");
    let refused = Post::list().with("Host", "evil.example").send(server.address).unwrap();
    assert!(refused.body.contains("allow it with `--allowed-host evil.example`"), "{refused:?}");
    let absolute = Post { line: "POST http://evil.example/mcp HTTP/1.1".into(), ..Post::list() };
    assert_eq!(absolute.status(server.address), 403, "the address in the first line counts too");
    assert_eq!(Post::list().with("Host", &format!("localhost:{port}")).status(server.address), 200);
    let own = format!("http://{}", server.address);
    assert_eq!(Post::list().with("Origin", &own).status(server.address), 200);
}

/// A server that asks for tokens, with one of each scope.
fn guarded() -> (Prepared, [String; 3]) {
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    let tokens = ["read", "write", "admin"].map(|scope| prepared.token(scope, scope));
    (prepared, tokens)
}

#[test]
fn missing_and_wrong_tokens_are_rejected() {
    let (prepared, [read, ..]) = guarded();
    let server = prepared.start(&["--require-token"]);
    let missing = Post::list().send(server.address).unwrap();
    assert_eq!((missing.status, missing.header("www-authenticate").as_deref()), (401, Some("Bearer realm=\"quipu\"")));
    for wrong in [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer quipu_0000".to_owned(),
        format!("Bearer {read}x"),
        format!("Bearer {}", &read[..read.len() - 1]),
        format!("Bearer {}", read.to_uppercase()),
        format!("Basic {read}"),
        read.clone(),
        format!("Bearer {read} {read}"),
    ] {
        let answer = Post::list().with("Authorization", &wrong).send(server.address).unwrap();
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(answer.header("www-authenticate").unwrap().contains("error=\"invalid_token\""), "{wrong}");
    }
    assert_eq!(Post::get("/metrics").status(server.address), 401);
    assert_eq!(Post::get("/healthz").status(server.address), 200, "whether it lives is no secret");
    assert_eq!(Post::list().bearer(&read).status(server.address), 200);
    assert_eq!(Post::list().with("authorization", &format!("bearer {read}")).status(server.address), 200);
}

#[test]
fn expired_and_revoked_tokens_are_rejected() {
    let (prepared, [read, write, _]) = guarded();
    let server = prepared.start(&["--require-token"]);
    assert_eq!(Post::list().bearer(&read).status(server.address), 200);
    server.quipu(&["token", "revoke", "read"]);
    assert_eq!(Post::list().bearer(&read).status(server.address), 401, "from the next request on");
    assert_eq!(Post::list().bearer(&write).status(server.address), 200);
    let brief = server.quipu(&["token", "new", "--name", "brief", "--expires", "2s"]);
    let start = Instant::now();
    let answer = loop {
        let answer = Post::list().bearer(brief.trim()).send(server.address).unwrap();
        if answer.status != 200 {
            break answer;
        }
        assert!(start.elapsed() < PATIENCE, "it does not expire");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(answer.status == 401 && answer.body.contains("expired"), "{answer:?}");
    assert_eq!(Post::list().bearer(&write).status(server.address), 200);
}

/// By an attacker who can change a file of the vault, for example one that is synchronized.
#[test]
fn tampered_token_line_is_rejected() {
    let (prepared, [read, write, _]) = guarded();
    let server = prepared.start(&["--require-token"]);
    assert_eq!(Post::list().bearer(&read).status(server.address), 200);
    let file = server.root().join(".quipu/tokens.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("scope = \"read\"", "scope = \"admin\"")).unwrap();
    let answer = Post::list().bearer(&read).send(server.address).unwrap();
    assert!(answer.status == 401 && answer.body.contains("create a new one with `quipu token new`"), "{answer:?}");
    assert_eq!(Post::get("/metrics").bearer(&read).status(server.address), 401);
    assert_eq!(Post::list().bearer(&write).status(server.address), 200, "others are as they were");
}

#[test]
fn read_token_cannot_write() {
    let (prepared, [read, write, admin]) = guarded();
    let server = prepared.start(&["--require-token"]);
    let before = files_below(server.root());
    let listed = |token: &str| Post::list().bearer(token).send(server.address).unwrap().message().unwrap();
    let names = |token: &str| listed(token)["result"]["tools"].as_array().unwrap().len();
    assert!(!listed(&read).to_string().contains("\"create_node\""));
    assert_eq!(names(&admin), names(&write) + 1, "redact is for administrators");
    assert!(!listed(&write).to_string().contains("\"redact\""));
    assert!(names(&read) < names(&write));
    let refused = Post::call("create_node", &create("b.md")).bearer(&read).send(server.address).unwrap();
    assert_eq!(refused.status, 403);
    assert!(refused.header("www-authenticate").unwrap().contains("error=\"insufficient_scope\", scope=\"write\""));
    let arguments = json!({ "kind": "note", "id": "a.md", "reason": "private" });
    let redact = modern(json!({ "name": "redact", "arguments": arguments }));
    let refused = Post::call("redact", &redact).bearer(&write).send(server.address).unwrap();
    assert_eq!(refused.status, 403);
    assert!(refused.header("www-authenticate").unwrap().contains("error=\"insufficient_scope\", scope=\"admin\""));
    // What the HTTP checks do not read the engine does: two names for a tool in one message.
    let twice = create("b.md").to_string().replacen("\"name\"", "\"name\":\"get_node\",\"name\"", 1);
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{twice}}}"#);
    let post = Post { body: message, ..Post::call("create_node", &create("b.md")) }.bearer(&read);
    let answer = post.send(server.address).unwrap();
    assert_ne!(answer.message().unwrap()["result"]["isError"], false, "{answer:?}");
    assert_eq!(files_below(server.root()), before);
    assert_eq!(Post::get("/metrics").bearer(&write).status(server.address), 403);
    assert_eq!(Post::get("/metrics").bearer(&admin).status(server.address), 200);
    assert_eq!(Post::call("create_node", &create("b.md")).bearer(&write).status(server.address), 200);
    assert_eq!(Post::call("redact", &redact).bearer(&admin).status(server.address), 200);
    assert!(!server.root().join("a.md").exists());
}

#[test]
fn token_in_the_query_string_is_refused() {
    let (prepared, [_, write, _]) = guarded();
    let server = prepared.start(&["--require-token"]);
    for query in [format!("access_token={write}"), format!("token={write}"), String::new()] {
        let post = Post { line: format!("POST /mcp?{query} HTTP/1.1"), ..Post::list() };
        assert_eq!(post.status(server.address), 400, "{query}");
        assert_eq!(post.bearer(&write).status(server.address), 400, "not beside one in its place either");
    }
}

#[test]
fn addresses_beyond_loopback_require_tokens() {
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    let mut command = crate::client::serve_command(prepared.vault.path(), &["--http", "0.0.0.0:0"]);
    let output = command.env("XDG_STATE_HOME", prepared.vault.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let message = "cannot listen at 0.0.0.0:0: it is reachable from other machines, and no token exists; create one with \
                   `quipu token new`";
    assert!(said.contains(message), "{said}");
}

/// To the server all that a proxy passes on comes from this machine.
#[test]
fn proxied_requests_on_loopback_require_tokens() {
    let flags = ["--allowed-host", "notes.example.org"];
    let (prepared, [read, ..]) = guarded();
    let server = prepared.start(&flags);
    let passed_on = || Post::list().with("Host", "notes.example.org");
    assert_eq!(passed_on().status(server.address), 401);
    assert_eq!(Post::list().status(server.address), 401, "some proxies put the server's own address there");
    assert_eq!(Post::get("/metrics").with("Host", "notes.example.org").status(server.address), 401);
    assert_eq!(passed_on().bearer(&read).status(server.address), 200);

    let vault = vault("//- a.md\ntext\n");
    let mut command = crate::client::serve_command(vault.path(), &["--http", "127.0.0.1:0", flags[0], flags[1]]);
    let output = command.env("XDG_STATE_HOME", vault.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("--allowed-host"), "{said}");
}

#[test]
fn server_without_valid_tokens_does_not_start() {
    let prepared = Server::prepare(vault("//- a.md\ntext\n"));
    prepared.token("laptop", "read");
    // Another user's folder, or one that was lost: the key is not there.
    let mut command = crate::client::serve_command(prepared.vault.path(), &["--http", "0.0.0.0:0"]);
    let output = command.env("XDG_STATE_HOME", prepared.vault.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("token.key") && said.contains("`quipu token revoke`"), "{said}");
}

#[test]
fn oversized_bodies_are_refused() {
    let server = server();
    let declared = Post::list().with("Content-Length", "99999999999").status(server.address);
    assert_eq!(declared, 413);
    let mut stream =
        Post { body: String::new(), ..Post::list() }.with("Transfer-Encoding", "chunked").open(server.address).unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    // Without an end; the server closes once it has had enough, and may do so while this writes.
    for _ in 0..64 {
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let status = Answer::read(&mut BufReader::new(stream)).map(|answer| answer.status);
    assert!(status.is_err() || status.is_ok_and(|status| status == 413));
    let long = Post::list().with("X-Long", &"x".repeat(200_000)).send(server.address);
    assert!(long.is_err() || long.is_ok_and(|answer| answer.status == 431));
    let many = (0..500).fold(Post::list(), |post, number| post.with(&format!("X-{number}"), "x")).send(server.address);
    assert!(many.is_err() || many.is_ok_and(|answer| answer.status == 431));
    others_are_served(&server);
}

#[test]
fn slow_headers_and_bodies_time_out() {
    let server = server();
    let start = Instant::now();
    let mut slow: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            let begun = match number % 2 {
                0 => "POST /mcp HTTP/1.1\r\nHost: x".to_owned(),
                _ => Post { body: "{".into(), ..Post::list() }.with("Content-Length", "1000").text(server.address),
            };
            stream.write_all(begun.as_bytes()).unwrap();
            stream
        })
        .collect();
    others_are_served(&server);
    // A byte now and then keeps none of them alive.
    while start.elapsed() < Duration::from_secs(9) {
        for stream in &mut slow {
            let _ = stream.write_all(b"x");
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    others_are_served(&server);
    for stream in &mut slow {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let said = String::from_utf8_lossy(&rest).into_owned();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    }
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
}

#[test]
fn request_smuggling_is_refused() {
    let server = server();
    let inner = Post::call("create_node", &create("smuggled.md")).text(server.address);
    let body = Post::list().body;
    let base = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
        server.address
    );
    for (what, request) in [
        (
            "a length and pieces",
            format!("{base}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}", body.len()),
        ),
        (
            "pieces and a length",
            format!("{base}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{inner}"),
        ),
        (
            "a length and whole pieces",
            format!(
                "{base}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n{inner}",
                body.len(),
                body.len()
            ),
        ),
        (
            "the same length twice",
            format!("{base}Content-Length: {0}\r\nContent-Length: {0}\r\n\r\n{body}{inner}", body.len()),
        ),
        ("two lengths", format!("{base}Content-Length: {}\r\nContent-Length: 0\r\n\r\n{body}{inner}", body.len())),
        ("a length with a sign", format!("{base}Content-Length: +{}\r\n\r\n{body}{inner}", body.len())),
        (
            "two encodings",
            format!("{base}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{inner}"),
        ),
        ("an unknown encoding", format!("{base}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{inner}")),
        (
            "an encoding before the pieces",
            format!("{base}Transfer-Encoding: gzip, chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n{inner}", body.len()),
        ),
        ("a bare LF behind a header", format!("{base}X: y\nContent-Length: {}\r\n\r\n{body}{inner}", body.len())),
        ("bare LFs alone", format!("{base}Content-Length: {}\r\n\r\n{body}{inner}", body.len()).replace("\r\n", "\n")),
        ("a space before the colon", format!("{base}Content-Length : {}\r\n\r\n{body}{inner}", body.len())),
        ("a folded header", format!("{base}X: y\r\n Content-Length: 0\r\n\r\n{inner}")),
        ("two hosts", format!("{base}Host: evil.example\r\nContent-Length: 0\r\n\r\n{inner}")),
        ("a bare line end in a header", format!("{base}X: y\rContent-Length: 0\r\n\r\n{inner}")),
    ] {
        let answer = exchange(&server, request.as_bytes());
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{what}: {answer}");
        assert!(!server.root().join("smuggled.md").exists(), "{what}: {answer}");
    }
    // Nor later, by a connection that went on.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!server.root().join("smuggled.md").exists());
    others_are_served(&server);
}

/// Later requests of a connection are looked at as the first one is, also where they came with it.
#[test]
fn bare_line_feeds_in_a_later_request_are_refused() {
    let server = server();
    let listed = Post::list().text(server.address);
    let hidden = Post::call("create_node", &create("smuggled.md")).text(server.address);
    let answer = exchange(&server, format!("{listed}{listed}{}", hidden.replace("\r\n", "\n")).as_bytes());
    let statuses: Vec<&str> =
        answer.match_indices("HTTP/1.1 ").map(|(place, _)| &answer[place + 9..place + 12]).collect();
    assert_eq!(statuses, ["200", "200", "400"], "{answer}");
    assert!(!server.root().join("smuggled.md").exists());
    // A body in pieces is the last thing that is read on its connection.
    let body = Post::list().body;
    let in_pieces = Post { body: format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()), ..Post::list() };
    let in_pieces = in_pieces.with("Transfer-Encoding", "chunked").text(server.address);
    let hidden = Post::call("create_node", &create("smuggled.md")).text(server.address);
    let answer = exchange(&server, format!("{in_pieces}{hidden}").as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
    assert!(!server.root().join("smuggled.md").exists());
}

#[test]
fn json_with_too_many_values_is_refused() {
    let server = server();
    let bombs = [
        ("[".repeat(1_000_000), "nested"),
        (format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)), "nested objects"),
        (format!("[{}0]", "0,".repeat(7_000_000)), "many numbers"),
        (format!("{{{}\"z\":0}}", "\"a\":{},".repeat(2_000_000)), "many keys"),
        (format!("[{}]", "9".repeat(15_000_000)), "one number"),
        (format!("\"{}\"", "\\u0000".repeat(2_000_000)), "many escapes"),
    ];
    let before = resident_bytes(&server);
    for (bomb, what) in &bombs {
        let inside =
            Post::call("search", &modern(json!({ "name": "search", "arguments": {} }))).body.replacen("{}", bomb, 1);
        for body in [bomb.clone(), inside] {
            // One that is refused by its length alone is not read to its end.
            let Ok(answer) = Post { body, ..Post::call("search", &json!({})) }.send(server.address) else { continue };
            let is_refused =
                (400..500).contains(&answer.status) || answer.message().is_some_and(|said| said["error"].is_object());
            assert!(is_refused, "{what}: {answer:?}");
            assert!(answer.body.len() < 10_000, "{what} is said back");
        }
        others_are_served(&server);
    }
    let grown = resident_bytes(&server).saturating_sub(before);
    assert!(grown < 400_000_000, "{grown} bytes more than before");
}

#[test]
fn connections_beyond_the_limit_evict_idle_ones() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limit.maximum.unwrap_or(20_000);
    let raised = rustix::process::Rlimit { current: Some(most), ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let count = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(200).min(10_000);
    let server = server();
    let before = resident_bytes(&server);
    let mut held = Vec::new();
    for number in 0..count {
        held.push(TcpStream::connect(server.address).unwrap());
        if number % 2500 == 2499 {
            others_are_served(&server);
        }
    }
    others_are_served(&server);
    let page = Post::get("/metrics").send(server.address).unwrap().body;
    let open = page.lines().find_map(|line| line.strip_prefix("quipu_http_connections ")).unwrap();
    assert!(open.parse::<usize>().unwrap() <= 1024, "{open}");
    let grown = resident_bytes(&server).saturating_sub(before);
    assert!(grown < 100_000_000, "{grown} bytes for {count} connections");
}

/// Asks for a note of ten megabytes, again and again, on connections of their own; reads none of the answers.
fn unread(server: &Server, number: usize, dress: impl Fn(Post) -> Post) -> Vec<TcpStream> {
    let call = Post::call("get_document", &modern(json!({ "name": "get_document", "arguments": { "path": "a.md" } })));
    (0..number).map(|_| dress(call.clone()).open(server.address).unwrap()).collect()
}

#[test]
fn clients_that_never_read_do_not_block_others() {
    let prepared = Server::prepare(vault_of("a.md", &"x".repeat(10_000_000)));
    let (attacker, other) = (prepared.token("attacker", "read"), prepared.token("other", "read"));
    let server = prepared.start(&["--require-token"]);
    let params = modern(json!({ "name": "nodes_exist", "arguments": { "ids": ["a.md"] } }));
    let call = Post::call("nodes_exist", &params).bearer(&other);
    assert_eq!(call.status(server.address), 200, "once the vault is read");
    let _unread = unread(&server, 60, |post| post.bearer(&attacker));
    let (mut most, start) = (0, Instant::now());
    while start.elapsed() < Duration::from_secs(6) {
        let asked = Instant::now();
        assert_eq!(call.status(server.address), 200);
        assert!(asked.elapsed() < SERVED_WITHIN, "it took {:?}", asked.elapsed());
        most = most.max(resident_bytes(&server));
    }
    assert!(most < 1_000_000_000, "{most} bytes");
}

#[test]
fn local_clients_that_never_read_are_disconnected() {
    let server = Server::start_in(vault_of("a.md", &"x".repeat(10_000_000)));
    let _unread = unread(&server, 20, |post| post);
    let start = Instant::now();
    // They share the budget of one client, so this waits until those that do not read are disconnected.
    let found = server.call("another", "nodes_exist", json!({ "ids": ["a.md"] }));
    assert_eq!(found["structuredContent"]["a.md"], true);
    assert!(start.elapsed() < Duration::from_secs(45), "it took {:?}", start.elapsed());
}

/// A body in pieces does not say how long it is, and these answers never end.
#[test]
fn endless_streams_leave_connections_for_others() {
    let (prepared, [one, two, other]) = guarded();
    let server = prepared.start(&["--require-token"]);
    let in_pieces = |post: Post| {
        let body = format!("{:x}\r\n{}\r\n0\r\n\r\n", post.body.len(), post.body);
        Post { body, ..post }.with("Transfer-Encoding", "chunked")
    };
    let listen = |params: Value| in_pieces(Post::modern("subscriptions/listen", &modern(params)));
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["quipu://note/a.md"] } });
    let mut streams: Vec<Events> = [&one, &two]
        .into_iter()
        .flat_map(|token| {
            (0..20).map(|_| Events::open(&listen(wanted.clone()).bearer(token), server.address)).collect::<Vec<_>>()
        })
        .collect();
    for stream in &mut streams {
        assert_eq!(stream.next()["method"], "notifications/subscriptions/acknowledged");
    }
    assert_eq!(in_pieces(Post::list()).bearer(&other).status(server.address), 200);
    let large = modern(json!({ "padding": "x".repeat(4_000_000) }));
    assert_eq!(in_pieces(Post::modern("tools/list", &large)).bearer(&other).status(server.address), 200);
    // What a stream would keep for as long as it lasts is bounded.
    let mut long = wanted.clone();
    long["padding"] = json!("x".repeat(1_000_000));
    let refused = listen(long).bearer(&one).send(server.address).unwrap().message().unwrap();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

/// A body that is announced and not sent reserves no memory.
#[test]
fn incomplete_bodies_leave_memory_for_others() {
    let (prepared, [one, two, other]) = guarded();
    let server = prepared.start(&["--require-token"]);
    let begun = |token: &str| {
        let post = Post { body: "{".into(), ..Post::list() }.with("Content-Length", "16000000").bearer(token);
        post.open(server.address).unwrap()
    };
    let _begun: Vec<TcpStream> =
        [&one, &two].into_iter().flat_map(|token| (0..20).map(|_| begun(token)).collect::<Vec<_>>()).collect();
    std::thread::sleep(Duration::from_millis(300));
    for token in [&one, &two, &other] {
        assert_eq!(Post::list().bearer(token).status(server.address), 200);
    }
}

#[test]
fn requests_beyond_the_rate_are_refused() {
    let (prepared, [read, write, _]) = guarded();
    let server = prepared.start(&["--require-token", "--rate", "5"]);
    let answers: Vec<Answer> = (0..40).map(|_| Post::list().bearer(&read).send(server.address).unwrap()).collect();
    let limited: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(!limited.is_empty() && answers.iter().all(|answer| [200, 429].contains(&answer.status)));
    assert!(limited.iter().all(|answer| answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1));
    assert_eq!(Post::list().bearer(&write).status(server.address), 200, "another token has its own");
}

fn resident_bytes(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}
