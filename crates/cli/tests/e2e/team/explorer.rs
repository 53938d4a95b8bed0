//! The explorer on a database: the page of every graph, and its data with the tokens of the database.

use quipu_store_postgres::PostgresDatabase;
use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{TeamServer, new_token, wait_for};
use crate::explorer::call;
use crate::http::{Answer, Events, Post};

/// A database with two graphs.
struct TwoGraphs {
    url: String,
    database: PostgresDatabase,
}

impl TwoGraphs {
    fn create() -> Option<Self> {
        let url = postgres::database()?;
        let database = PostgresDatabase::connect(&url).unwrap();
        database.migrate().unwrap();
        for name in ["one", "two"] {
            database.create_graph(name).unwrap();
        }
        Some(Self { url, database })
    }

    fn token(&self, name: &str, scope: &str, graphs: &[&str]) -> String {
        new_token(&self.database, name, scope, graphs)
    }

    fn start(&self) -> TeamServer {
        let server = TeamServer::launch_with(&self.url, &[]);
        server.await_ready();
        server
    }
}

/// A request at the path of a graph.
fn at(graph: &str, mut post: Post) -> Post {
    post.line = post.line.replacen(" /", &format!(" /g/{graph}/"), 1);
    post
}

/// What a page gets with a token.
fn answered(server: &TeamServer, token: &str, post: Post) -> Value {
    let answer = post.bearer(token).send(server.address).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

#[test]
fn explorer_reads_and_writes_the_graph_of_a_token() {
    let Some(graphs) = TwoGraphs::create() else { return };
    let (reading, writing) = (graphs.token("reader", "read", &["one"]), graphs.token("writer", "write", &["one"]));
    let server = graphs.start();
    let note = json!({ "id": "a.md", "content": "# Harbour\n\nThe lighthouse is white. [[b]]" });
    let refused = answered(&server, &reading, call("create_node", &note));
    assert_eq!(refused["error"]["code"], "FORBIDDEN", "{refused}");
    assert_eq!(answered(&server, &writing, call("create_node", &note))["answer"]["id"], "a.md");
    let linked = json!({ "id": "b.md", "content": "Ships." });
    assert_eq!(answered(&server, &writing, at("one", call("create_node", &linked)))["answer"]["id"], "b.md");

    let status = answered(&server, &reading, Post::get("/api/status"));
    assert_eq!((&status["vault"], &status["notes"], &status["scope"]), (&json!("one"), &json!(2), &json!("read")));
    assert_eq!(status.get("folder"), None);
    let offers = |tool: &str| status["tools"].as_array().unwrap().iter().any(|name| name == tool);
    assert!(offers("get_node") && !offers("create_node"), "{status}");
    let graph = Post::get("/api/graph").bearer(&reading);
    let picture = || {
        let answer = graph.send(server.address).unwrap();
        (answer.header("etag").unwrap(), serde_json::from_str::<Value>(&answer.body).unwrap())
    };
    wait_for("the picture is laid out", || picture().1["settled"] == json!(true));
    let (etag, drawn) = picture();
    assert_eq!((&drawn["notes"]["id"], &drawn["edges"]), (&json!(["a.md", "b.md"]), &json!([0, 1, 0])));
    assert_eq!(graph.clone().with("If-None-Match", &etag).status(server.address), 304);
    let found = answered(&server, &reading, call("ubp_search", &json!({ "query": "lighthouse" })));
    assert!(found["answer"].to_string().contains("a.md"), "{found}");
    let read = answered(&server, &reading, call("get_node", &json!({ "id": "a.md" })));
    assert!(read["answer"]["content"].as_str().unwrap().contains("The lighthouse is white."), "{read}");
}

#[test]
fn explorer_hears_of_the_writes_of_another_server() {
    let Some(graphs) = TwoGraphs::create() else { return };
    let (reading, writing) = (graphs.token("reader", "read", &["one"]), graphs.token("writer", "write", &["one"]));
    let (server, other) = (graphs.start(), graphs.start());
    answered(&server, &reading, Post::get("/api/status"));
    let mut events = Events::open(&Post::get("/api/events").bearer(&reading), server.address);
    assert_eq!(events.next(), json!([]), "nothing has happened yet");
    let mut next = || loop {
        let event = events.next();
        // Others say that the picture was laid out.
        if event.is_object() {
            return event;
        }
    };
    answered(&other, &writing, call("create_node", &json!({ "id": "new.md", "content": "x" })));
    let told = next();
    assert_eq!((&told["kind"], &told["object"]), (&json!("note"), &json!("new.md")), "{told}");
    answered(&other, &writing, call("create_entity", &json!({ "name": "Ada", "entity_type": "User" })));
    let told = next();
    assert_eq!((&told["kind"], &told["text"]), (&json!("memory"), &json!("+ Ada (User)")), "{told}");
}

#[test]
fn redaction_at_another_server_clears_the_texts_that_pages_get() {
    let Some(graphs) = TwoGraphs::create() else { return };
    let (reading, admin) = (graphs.token("reader", "read", &["one"]), graphs.token("admin", "admin", &["one"]));
    let (server, other) = (graphs.start(), graphs.start());
    let at_this = |tool: &str, arguments: Value| {
        let done = answered(&server, &admin, call(tool, &arguments));
        assert!(done.get("answer").is_some(), "{done}");
    };
    let history = || Events::open(&Post::get("/api/events").bearer(&reading), server.address).next().to_string();
    let redact_there = |arguments: Value| {
        let redacted = answered(&other, &admin, call("redact", &arguments));
        assert_eq!(redacted["answer"]["redacted"], true, "{redacted}");
    };
    at_this("create_entity", json!({ "name": "Ada", "entity_type": "User" }));
    at_this("create_observation", json!({ "entity_id": 1, "text_content": "the key is zyxomorph" }));
    // No page has followed the trail of this server before.
    redact_there(json!({ "kind": "observation", "id": 1, "reason": "a key" }));
    let shown = history();
    assert!(shown.contains("create_observation") && !shown.contains("zyxomorph"), "{shown}");

    at_this("create_node", json!({ "id": "a.md", "content": "secret" }));
    at_this("create_observation", json!({ "entity_id": 1, "text_content": "a.md has quandrifex" }));
    assert!(history().contains("quandrifex"));
    redact_there(json!({ "kind": "note", "id": "a.md", "reason": "a key" }));
    let shown = history();
    assert!(shown.contains("create_node") && !shown.contains("quandrifex"), "{shown}");
}

#[test]
fn explorer_has_a_page_for_each_graph_and_data_for_its_tokens_alone() {
    let Some(graphs) = TwoGraphs::create() else { return };
    let one = graphs.token("one", "write", &["one"]);
    let both = graphs.token("both", "read", &["one", "two"]);
    let server = graphs.start();
    answered(&server, &one, call("create_node", &json!({ "id": "a.md", "content": "secret" })));
    let get = |path: &str| Post::get(path).send(server.address).unwrap();
    let page = get("/");
    assert!(page.status == 200 && page.body.contains("<script"), "{page:?}");
    for path in ["/g/one/", "/g/one", "/g/two/", "/g/none/"] {
        let of_graph = get(path);
        assert_eq!((of_graph.status, &of_graph.body), (200, &page.body), "{path}");
        assert_eq!(of_graph.header("content-security-policy"), page.header("content-security-policy"));
    }
    let asked = [
        Post::get("/api/graph"),
        Post::get("/api/status"),
        Post::get("/api/events"),
        call("get_node", &json!({ "id": "a.md" })),
    ];
    let refused = |answer: Answer, status: u16, why: &str| {
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.contains(why) && !answer.body.contains("secret"), "{answer:?}");
    };
    for post in asked {
        let send = |post: Post| post.send(server.address).unwrap();
        refused(send(at("one", post.clone())), 401, "missing token");
        refused(send(at("one", post.clone()).bearer("quipu_guess")), 401, "token");
        refused(send(at("two", post.clone()).bearer(&one)), 404, "there is no graph `two` for this client");
        refused(send(at("none", post.clone()).bearer(&one)), 404, "there is no graph `none` for this client");
        refused(send(post.bearer(&both)), 404, "name one in the path: /g/NAME/mcp, /g/NAME/ for the explorer");
    }
    for (graph, notes) in [("one", 1), ("two", 0)] {
        let status = answered(&server, &both, at(graph, Post::get("/api/status")));
        assert_eq!((&status["vault"], &status["notes"]), (&json!(graph), &json!(notes)));
    }
}
