//! Several graphs of one server: each has its own path, and none sees another.

use quipu_core::ports::{Clock, SystemClock};
use quipu_store_postgres::{GraphLimits, NewToken, PostgresDatabase};
use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{TeamServer, new_token};
use crate::client::modern;
use crate::http::{Answer, Post};

fn post(server: &TeamServer, path: &str, tool: &str, arguments: &Value) -> Answer {
    let mut post = Post::call(tool, &modern(json!({ "name": tool, "arguments": arguments })));
    post.line = format!("POST {path} HTTP/1.1");
    post.send(server.address).unwrap()
}

/// Calls `list_nodes` with a token.
fn post_as(token: &str, server: &TeamServer, path: &str) -> Answer {
    let mut post = Post::call("list_nodes", &modern(json!({ "name": "list_nodes", "arguments": {} }))).bearer(token);
    post.line = format!("POST {path} HTTP/1.1");
    post.send(server.address).unwrap()
}

fn content(answer: &Answer) -> Value {
    answer.message().unwrap()["result"]["structuredContent"].clone()
}

#[test]
fn graphs_of_one_server_are_apart() {
    let Some(url) = postgres::database() else { return };
    let database = PostgresDatabase::connect(&url).unwrap();
    database.migrate().unwrap();
    for name in ["one", "two"] {
        database.create_graph(name).unwrap();
    }
    let server = TeamServer::launch_with(&url, &[]);
    server.await_ready();
    let note = json!({ "id": "secret.md", "content": "Only in one." });
    assert_eq!(post(&server, "/g/one/mcp", "create_node", &note).status, 200);
    let listed = |graph: &str| content(&post(&server, &format!("/g/{graph}/mcp"), "list_nodes", &json!({})));
    assert_eq!((listed("one")["total"].clone(), listed("two")["total"].clone()), (json!(1), json!(0)));
    let entity = json!({ "name": "Ada", "entity_type": "User" });
    post(&server, "/g/two/mcp", "create_entity", &entity);
    let found = content(&post(&server, "/g/one/mcp", "list_entities", &json!({})));
    assert_eq!(found["entities"], json!([]));
    for (path, message) in [
        ("/mcp", "several graphs are open to this client; name one in the path: /g/NAME/mcp"),
        ("/g/three/mcp", "there is no graph `three` for this client"),
        ("/g/o%6Ee/mcp", "there is no graph `o%6Ee` for this client"),
    ] {
        let refused = post(&server, path, "list_nodes", &json!({}));
        assert_eq!(refused.status, 404, "{path}");
        assert!(refused.body.contains(message), "{path}: {}", refused.body);
    }
    let metrics = Post::get("/metrics").send(server.address).unwrap().body;
    assert!(metrics.contains("quipu_notes{graph=\"one\"} 1\n"), "{metrics}");
    assert!(metrics.contains("quipu_feed_position{graph=\"one\"} 1\n"), "{metrics}");
}

#[test]
fn server_of_one_graph_has_no_other() {
    let Some(url) = postgres::database() else { return };
    let database = PostgresDatabase::connect(&url).unwrap();
    database.migrate().unwrap();
    for name in ["team", "other"] {
        database.create_graph(name).unwrap();
    }
    let server = TeamServer::start(&url);
    assert_eq!(post(&server, "/mcp", "list_nodes", &json!({})).status, 200);
    assert_eq!(post(&server, "/g/team/mcp", "list_nodes", &json!({})).status, 200);
    assert_eq!(post(&server, "/g/other/mcp", "list_nodes", &json!({})).status, 404);
}

#[test]
fn token_of_one_graph_reaches_no_other() {
    let Some(url) = postgres::database() else { return };
    let database = PostgresDatabase::connect(&url).unwrap();
    database.migrate().unwrap();
    for name in ["one", "two"] {
        database.create_graph(name).unwrap();
    }
    let now = jiff::Timestamp::from_nanosecond(SystemClock.now_ns().into()).unwrap();
    let create = |name: &str, expires| {
        let new = NewToken { name, scope: "read", graphs: &["one".to_owned()], created: now, expires };
        database.create_token(&new).unwrap().0
    };
    let (token, expired) = (create("valid", None), create("expired", Some(now)));
    let of_two = new_token(&database, "of two", "admin", &["two"]);
    let server = TeamServer::launch_with(&url, &[]);
    server.await_ready();
    assert_eq!(post_as(&token, &server, "/mcp").status, 200, "a token of one graph needs no path");
    assert_eq!(post_as(&token, &server, "/g/one/mcp").status, 200);
    assert_eq!(post_as(&of_two, &server, "/mcp").status, 200);
    let metrics = Post::get("/metrics").bearer(&of_two).send(server.address).unwrap().body;
    assert!(metrics.contains("graph=\"two\"") && !metrics.contains("graph=\"one\""), "{metrics}");
    for of_server in ["quipu_tool_seconds", "quipu_database_connections", "quipu_http_"] {
        assert!(!metrics.contains(of_server), "figures of all graphs: {metrics}");
    }
    let (other, missing) = (post_as(&token, &server, "/g/two/mcp"), post_as(&token, &server, "/g/six/mcp"));
    assert_eq!((other.status, missing.status), (404, 404));
    assert_eq!(other.body, missing.body.replace("six", "two"), "it does not tell which graphs exist");
    assert_eq!(post_as(&expired, &server, "/g/one/mcp").status, 401);
    assert_eq!(post_as("quipu_guess", &server, "/g/one/mcp").status, 401);
    let write = modern(json!({ "name": "create_node", "arguments": { "id": "a.md", "content": "x" } }));
    assert_eq!(Post::call("create_node", &write).bearer(&token).send(server.address).unwrap().status, 403);
    database.revoke_token("valid").unwrap();
    super::wait_for("the revocation", || post_as(&token, &server, "/g/one/mcp").status == 401);
}

#[test]
fn rate_of_a_graph_limits_its_calls_and_no_others() {
    let Some(url) = postgres::database() else { return };
    let database = PostgresDatabase::connect(&url).unwrap();
    database.migrate().unwrap();
    for name in ["limited", "free"] {
        database.create_graph(name).unwrap();
    }
    database.limit_graph("limited", GraphLimits { max_rate: Some(2), ..GraphLimits::default() }).unwrap();
    let server = TeamServer::launch_with(&url, &[]);
    server.await_ready();
    let call = |graph: &str| post(&server, &format!("/g/{graph}/mcp"), "get_version", &json!({}));
    let started = std::time::Instant::now();
    let answers: Vec<Answer> = (0..40).map(|_| call("limited")).collect();
    let (allowed, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    let most = 4 + 2 * (started.elapsed().as_secs() as usize + 1);
    assert!((4..=most).contains(&allowed.len()), "{} of 40 calls", allowed.len());
    for answer in &refused {
        assert_eq!((answer.status, answer.header("retry-after").as_deref()), (429, Some("1")), "{answer:?}");
    }
    assert!(refused[0].body.contains("the graph has more calls than its limit allows"), "{:?}", refused[0]);
    assert!((0..40).all(|_| call("free").status == 200));
    let page = |graph: &str| Post::get(&format!("/g/{graph}/api/status")).status(server.address);
    let pages: Vec<u16> = (0..40).map(|_| page("limited")).collect();
    assert!(pages.contains(&429), "the explorer's requests count too: {pages:?}");
    assert!((0..40).all(|_| page("free") != 429));
    database.limit_graph("limited", GraphLimits::default()).unwrap();
    super::wait_for("the new limit", || (0..10).all(|_| call("limited").status == 200));
}

/// After a name is given to another graph, clients of the old graph do not reach the new one, nor the reverse.
#[test]
fn reused_graph_name_reaches_the_new_graph() {
    let Some(url) = postgres::database() else { return };
    let database = PostgresDatabase::connect(&url).unwrap();
    database.migrate().unwrap();
    database.create_graph("team").unwrap();
    let server = TeamServer::launch_with(&url, &[]);
    server.await_ready();
    let create = |name: &str| new_token(&database, name, "write", &["team"]);
    let ada = create("ada");
    let note = json!({ "id": "secret.md", "content": "Only in the first graph." });
    assert_eq!(post(&server, "/g/team/mcp", "create_node", &note).status, 200);
    assert_eq!(content(&post_as(&ada, &server, "/g/team/mcp"))["total"], json!(1));

    database.rename_graph("team", "archive").unwrap();
    database.create_graph("team").unwrap();
    let bob = create("bob");
    for path in ["/mcp", "/g/team/mcp"] {
        assert_eq!(content(&post_as(&bob, &server, path))["total"], json!(0), "{path}: at once, the grant has the id");
    }
    assert_eq!(post_as(&bob, &server, "/g/archive/mcp").status, 404);
    let total = |path: &str| content(&post(&server, path, "list_nodes", &json!({})))["total"].clone();
    super::wait_for("the new names", || total("/g/team/mcp") == json!(0));
    assert_eq!(total("/g/archive/mcp"), json!(1));
    super::wait_for("the new name of ada's graph", || post_as(&ada, &server, "/g/team/mcp").status == 404);
    assert_eq!(content(&post_as(&ada, &server, "/mcp"))["total"], json!(1));
    let metrics = Post::get("/metrics").send(server.address).unwrap().body;
    for line in ["quipu_notes{graph=\"archive\"} 1\n", "quipu_notes{graph=\"team\"} 0\n"] {
        assert!(metrics.contains(line), "{metrics}");
    }

    database.delete_graph("archive").unwrap();
    super::wait_for("the deletion", || post(&server, "/g/archive/mcp", "list_nodes", &json!({})).status == 404);
    super::wait_for("its tokens", || post_as(&ada, &server, "/mcp").status == 404);
    assert_eq!(total("/mcp"), json!(0), "the only graph again");
}

#[test]
fn language_model_of_the_environment_answers_for_a_graph() {
    let Some(url) = postgres::database() else { return };
    super::create_graph(&url);
    let model = crate::embedding_server::Server::start();
    let said = json!({ "summary": "Grace Hopper repairs the rain gauge." }).to_string();
    let said = json!({ "choices": [{ "message": { "content": said }, "finish_reason": "stop" }] });
    model.be(crate::embedding_server::Mood::Says(said.to_string().leak()));
    let variables = [
        ("QUIPU_LLM_PROVIDER", "openai"),
        ("QUIPU_LLM_URL", &model.url()),
        ("QUIPU_LLM_MODEL", "some-model"),
        ("QUIPU_LLM_KEY", "key"),
    ];
    let server = TeamServer::launch_in(&url, &["--graph", super::GRAPH], &variables);
    server.await_ready();
    server.call("create_node", json!({ "id": "a.md", "content": "Grace Hopper repairs the rain gauge in winter." }));
    let answer = server.call("summarize_node", json!({ "id": "a.md" }));
    assert_eq!(answer["method"], "llm", "{answer}");
}
