//! The routes of the explorer, spoken to as a page does. How the page itself behaves is tested in a browser, in `tests/explorer`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::vault;
use crate::http::{Events, Post, Server};

const VAULT: &str = "//- a.md\n[[b]]\n//- b.md\n";

pub(crate) fn call(tool: &str, arguments: &Value) -> Post {
    let post =
        Post { line: format!("POST /api/call/{tool} HTTP/1.1"), headers: Vec::new(), body: arguments.to_string() };
    post.with("Content-Type", "application/json")
}

#[test]
fn data_needs_a_token_on_loopback_too_and_the_page_does_not() {
    let server = Server::start(VAULT);
    for path in ["/api/graph", "/api/status", "/api/events"] {
        assert_eq!(Post::get(path).status(server.address), 401, "{path}");
        assert_eq!(Post::get(path).bearer("qx_guess").status(server.address), 401, "{path}");
    }
    assert_eq!(call("get_node", &json!({"id": "a.md"})).status(server.address), 401);
    let page = Post::get("/").send(server.address).unwrap();
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
    assert_eq!(page.header("set-cookie"), None);
    assert_eq!(Post::get("/").with("Origin", "https://attacker.example").status(server.address), 403);
    assert_eq!(Post::get("/").with("Host", "attacker.example").status(server.address), 403);
}

#[test]
fn token_reads_tool_answers_and_writes_only_with_write_scope() {
    let prepared = Server::prepare(vault(VAULT));
    let (reading, writing) = (prepared.token("reader", "read"), prepared.token("writer", "write"));
    let server = prepared.start(&[]);
    let graph = Post::get("/api/graph").bearer(&reading).send(server.address).unwrap();
    let etag = graph.header("etag").unwrap();
    let drawn: Value = serde_json::from_str(&graph.body).unwrap();
    assert_eq!((&drawn["notes"]["id"], &drawn["edges"]), (&json!(["a.md", "b.md"]), &json!([0, 1, 0])));
    assert_eq!(drawn["x"].as_array().unwrap().len(), 2);
    let again = Post::get("/api/graph").bearer(&reading).with("If-None-Match", &etag).send(server.address).unwrap();
    assert_eq!(again.status, 304);
    let status: Value =
        serde_json::from_str(&Post::get("/api/status").bearer(&reading).send(server.address).unwrap().body).unwrap();
    assert_eq!((&status["notes"], &status["links"], &status["scope"]), (&json!(2), &json!(1), &json!("read")));
    assert_eq!(status.get("folder"), None, "the path of the vault is only for pages on this machine");
    let has = |tool: &str| status["tools"].as_array().unwrap().iter().any(|name| name == tool);
    assert!(has("get_node") && !has("create_node"));
    let answered = |post: Post| serde_json::from_str::<Value>(&post.send(server.address).unwrap().body).unwrap();
    let node = answered(call("get_node", &json!({"id": "a.md"})).bearer(&reading));
    assert_eq!(node["answer"]["id"], "a.md");
    let new = json!({"id": "new.md", "content": "x", "tags": []});
    assert_eq!(answered(call("create_node", &new).bearer(&reading))["error"]["code"], "FORBIDDEN");
    assert_eq!(answered(call("create_node", &new).bearer(&writing))["answer"]["id"], "new.md");
    assert_eq!(answered(call("get_node", &json!({})).bearer(&reading))["error"]["code"], "INVALID_PARAMS");
    assert_eq!(answered(call("no_such_tool", &json!({})).bearer(&reading))["error"]["code"], "-32602");
}

/// Toolsets are for models. The page of a person reads with tools of all of them, and scopes and `--read-only` hold there too.
#[test]
fn page_has_the_tools_of_all_toolsets_whatever_is_offered_to_agents() {
    let reads = [
        ("ubp_list_pages", json!({"sort": "updated_at", "order": "desc"})),
        ("get_hubs", json!({"metric": "pagerank"})),
        ("ubp_search", json!({"query": "b"})),
        ("ubp_fulltext_search", json!({"query": "b"})),
        ("search_by_tags", json!({"tags": ["t"]})),
        ("ubp_get_page", json!({"filepath": "a.md"})),
        ("get_node", json!({"id": "a.md"})),
        ("node_history", json!({"id": "a.md"})),
        ("recent_changes", json!({})),
        ("list_entities", json!({})),
        ("suggest_merges", json!({})),
    ];
    for toolsets in ["essential", "notes", "memory"] {
        let prepared = Server::prepare(vault("//- a.md\n---\ntags: [t]\n---\n[[b]]\n//- b.md\n"));
        let writing = prepared.token("writer", "write");
        let server = prepared.start(&["--read-only", "--toolsets", toolsets]);
        let answered = |post: Post| -> Value {
            serde_json::from_str(&post.bearer(&writing).send(server.address).unwrap().body).unwrap()
        };
        let status = answered(Post::get("/api/status"));
        let told: Vec<&str> = status["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for (tool, arguments) in &reads {
            assert!(told.contains(tool), "{toolsets}: {tool} is not in {told:?}");
            let answer = answered(call(tool, arguments));
            assert!(answer.get("answer").is_some(), "{toolsets}: {tool}: {answer}");
        }
        assert!(!told.contains(&"create_node"), "{toolsets}");
        let refused = answered(call("create_node", &json!({"id": "new.md", "content": "x", "tags": []})));
        assert!(refused["error"]["message"].as_str().unwrap().contains("is not offered"), "{toolsets}: {refused}");
        let agent = server.try_call("agent", "ubp_get_page", json!({"filepath": "a.md"}));
        assert!(!agent.is_ok_and(|result| result.is_object()), "{toolsets}: agents have what is offered alone");
    }
}

#[test]
fn images_of_the_vault_are_served_with_a_safe_type_and_nothing_else_is() {
    let files = "//- a.svg\n<svg><script>1</script></svg>\n//- secret.txt\nsecret\n";
    let prepared = Server::prepare(vault(&format!("{VAULT}{files}")));
    let reading = prepared.token("reader", "read");
    let server = prepared.start(&[]);
    let ask = |note: &str, target: &str| {
        let body = json!({"note": note, "target": target}).to_string();
        Post { line: "POST /api/image HTTP/1.1".to_owned(), headers: Vec::new(), body }
            .with("Content-Type", "application/json")
    };
    assert_eq!(ask("a.md", "a.svg").status(server.address), 401);
    let image = ask("a.md", "a.svg").bearer(&reading).send(server.address).unwrap();
    assert_eq!((image.status, image.body.as_str()), (200, "<svg><script>1</script></svg>\n"));
    for (name, value) in [
        ("content-type", "image/svg+xml"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
        ("content-disposition", "attachment"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(image.header(name).as_deref(), Some(value), "{name}");
    }
    for target in ["secret.txt", "b.md", "../a.svg", "none.png"] {
        let refused = ask("a.md", target).bearer(&reading).send(server.address).unwrap();
        let answer: Value = serde_json::from_str(&refused.body).unwrap();
        assert_eq!(answer["error"]["code"], "NOT_FOUND", "{target}");
    }
    assert_eq!(ask("../a.md", "a.svg").bearer(&reading).status(server.address), 400);
}

#[test]
fn stream_sends_calls_and_changes_as_they_happen() {
    let prepared = Server::prepare(vault(VAULT));
    let (admin, reading) = (prepared.token("admin", "admin"), prepared.token("reader", "read"));
    let server = prepared.start(&[]);
    let mut all = Events::open(&Post::get("/api/events").bearer(&admin), server.address);
    let mut changes = Events::open(&Post::get("/api/events").bearer(&reading), server.address);
    assert!(all.next().is_array(), "what was before comes first");
    assert!(changes.next().is_array());
    let drawn = Post::get("/api/graph").bearer(&admin).send(server.address).unwrap();
    let drawn: Value = serde_json::from_str(&drawn.body).unwrap();
    assert_eq!(drawn["settled"], json!(true), "a small graph is laid out at once");
    assert_eq!((all.next(), changes.next()), (json!(1), json!(1)), "who waits for a layout is told");
    server.call("agent-x", "get_node", json!({"id": "a.md"}));
    let read = all.next();
    assert_eq!((&read["who"], &read["tool"], &read["text"]), (&json!("agent-x"), &json!("get_node"), &json!("a.md")));
    server.quipu(&["call", "get_node", r#"{"id": "b.md"}"#]);
    let read = all.next();
    assert_eq!((&read["who"], &read["tool"], &read["text"]), (&json!("quipu"), &json!("get_node"), &json!("b.md")));
    server.call("agent-x", "create_entity", json!({"name": "Ada", "entity_type": "User"}));
    let seen: Vec<Value> = (0..2).map(|_| changes.next()).collect();
    let kinds: Vec<&Value> = seen.iter().map(|trace| &trace["kind"]).collect();
    assert_eq!(kinds, ["call", "memory"], "a token for reading does not see what others read: {seen:?}");
    assert_eq!(seen[1]["text"], "+ Ada (User)");
}

/// The texts of calls and memory in the next history that a page gets.
fn next_history(events: &mut Events) -> String {
    loop {
        let event = events.next();
        if event.is_array() {
            return event.to_string();
        }
    }
}

#[test]
fn redaction_clears_the_texts_that_pages_have_and_get() {
    let prepared = Server::prepare(vault(VAULT));
    let reading = prepared.token("reader", "read");
    let server = prepared.start(&[]);
    let follow = || Events::open(&Post::get("/api/events").bearer(&reading), server.address);
    let mut open = follow();
    next_history(&mut open);
    let entity = json!({ "name": "Ada", "entity_type": "User", "observations": ["the key is zyxomorph"] });
    server.call("agent-x", "create_entity", entity);
    server.call("agent-x", "update_observation", json!({ "observation_id": 1, "text_content": "it is quandrifex" }));
    server.call("agent-x", "create_node", json!({ "id": "new.md", "content": "about quandrifex" }));
    let before = next_history(&mut follow());
    assert!(before.contains("quandrifex") && before.contains("update_observation"), "{before}");
    server.call("agent-x", "redact", json!({ "kind": "observation", "id": 1, "reason": "a key" }));
    for shown in [next_history(&mut open), next_history(&mut follow())] {
        assert!(!shown.contains("quandrifex") && !shown.contains("zyxomorph"), "{shown}");
        assert!(shown.contains("update_observation") && shown.contains("new.md"), "the rest stays: {shown}");
    }
    server.call("agent-x", "create_entity", json!({ "name": "Boat", "entity_type": "Thing" }));
    let after = next_history(&mut follow());
    assert!(after.contains("Boat") && !after.contains("quandrifex"), "{after}");
}

/// The exchange of the secret needs no token: a client that never ends its body must not keep the connection.
#[test]
fn a_body_that_does_not_end_is_answered_and_its_connection_closed() {
    let server = Server::start(VAULT);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let host = server.address;
    let head = format!("POST /api/session HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
    write!(stream, "{head}Content-Length: 900\r\n\r\n{{").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the connection is closed behind the answer");
    assert!(answer.contains("too slow"), "{answer}");
}
