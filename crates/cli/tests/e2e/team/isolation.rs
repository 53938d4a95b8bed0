//! Graphs of one server are apart for every tool, resource, completion and error, and none takes the time of another.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use quipu_store_postgres::{PostgresDatabase, roles_sql};
use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{HeldLock, TeamServer, in_session, new_token, open_session, wait_for};
use crate::client::{LEGACY, modern};
use crate::http::{Answer, Events, Post};

/// In every text of the other graph, and in no request.
const SECRET: &str = "cinnabar";

/// Texts that would end a statement, a text in quotes, a pattern or an identifier.
const HOSTILE: [&str; 6] = [
    "'; DROP SCHEMA quipu CASCADE; --",
    "x' OR '1'='1",
    "\" OR 1=1; --",
    "$1::bytea\\' %s {0} %' _",
    "nul\u{0}nul",
    "\u{10FFFF}0'); SET quipu.graph = '2'; --",
];

/// A server of two graphs, and tokens of scope `admin` for each.
struct TwoGraphs {
    server: TeamServer,
    url: String,
    one: String,
    two: String,
}

impl TwoGraphs {
    fn start() -> Option<Self> {
        let url = postgres::database()?;
        let database = PostgresDatabase::connect(&url).unwrap();
        database.migrate().unwrap();
        let token = |graph: &str| {
            database.create_graph(graph).unwrap();
            new_token(&database, graph, "admin", &[graph])
        };
        let (one, two) = (token("one"), token("two"));
        let server = TeamServer::launch_with(&url, &["--require-token"]);
        let graphs = Self { server, url, one, two };
        let note = json!({ "id": "secret.md", "content": format!("# Hidden {SECRET}\n\n#{SECRET} [[{SECRET}]]\n") });
        graphs.call(&graphs.two, "create_node", &note);
        let entity = json!({ "name": format!("{SECRET} mine"), "entity_type": "Concept", "observations": [SECRET] });
        graphs.call(&graphs.two, "create_entity", &entity);
        Some(graphs)
    }

    /// A token for every graph of the server.
    fn token_of_both(&self) -> String {
        new_token(&PostgresDatabase::connect(&self.url).unwrap(), "both", "admin", &["one", "two"])
    }

    fn send(&self, token: &str, method: &str, params: Value) -> Answer {
        let post = match params["name"].as_str() {
            Some(tool) if method == "tools/call" => Post::call(tool, &modern(params.clone())),
            _ => Post::modern(method, &modern(params)),
        };
        post.bearer(token).send(self.server.address).unwrap()
    }

    fn call(&self, token: &str, tool: &str, arguments: &Value) -> Value {
        let answer = self.send(token, "tools/call", json!({ "name": tool, "arguments": arguments }));
        let message = answer.message().unwrap_or_else(|| panic!("{tool} {arguments}: {answer:?}"));
        assert!(answer.status == 200, "{tool} {arguments}: {answer:?}");
        message
    }

    fn tools(&self, token: &str) -> Vec<Value> {
        let listed = self.send(token, "tools/list", json!({})).message().unwrap();
        listed["result"]["tools"].as_array().unwrap().clone()
    }

    /// What the other graph has, byte for byte.
    fn other_graph(&self) -> String {
        let sql = "SELECT (SELECT md5(string_agg(path || bytes::text, ',' ORDER BY path)) FROM quipu.note n \
                   JOIN quipu.graph g ON g.id = n.graph WHERE g.name = 'two') || (SELECT string_agg(e.name, ',') \
                   FROM quipu.entity e JOIN quipu.graph g ON g.id = e.graph WHERE g.name = 'two')";
        postgres::sql(&self.url, sql)
    }
}

/// Arguments that a schema accepts, every text being this one.
fn arguments(schema: &Value, text: &str) -> Value {
    if let Some(choices) = schema["enum"].as_array() {
        return choices[0].clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields.map(|(name, field)| (name.clone(), arguments(field, text))).collect()
        }
        Some("array") => json!([arguments(&schema["items"], text)]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        _ => json!(text),
    }
}

/// Every tool with every argument, and with only those that it needs.
fn calls_of(tool: &Value, text: &str) -> [Value; 2] {
    let schema = &tool["inputSchema"];
    let all = arguments(schema, text);
    let needed: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fewest = all.as_object().unwrap().iter().filter(|(name, _)| needed.contains(&name.as_str()));
    let fewest = fewest.map(|(name, value)| (name.clone(), value.clone())).collect();
    [all, fewest]
}

#[test]
fn token_of_one_graph_learns_and_changes_nothing_of_another() {
    let Some(graphs) = TwoGraphs::start() else { return };
    let before = graphs.other_graph();
    let tools = graphs.tools(&graphs.one);
    assert!(tools.len() > 40, "{} tools", tools.len());
    for text in ["secret.md", "secret", "*", "hidden"] {
        for tool in &tools {
            for arguments in calls_of(tool, text) {
                let answer = graphs.call(&graphs.one, tool["name"].as_str().unwrap(), &arguments).to_string();
                assert!(!answer.contains(SECRET), "{tool} {arguments}: {answer}");
            }
        }
    }
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "quipu://note/secret.md" })),
        ("prompts/list", json!({})),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "quipu://note/{+id}" },
                    "argument": { "name": "id", "value": "s" } }),
        ),
    ] {
        let answer = graphs.send(&graphs.one, method, params);
        assert!(!answer.body.contains(SECRET), "{method}: {}", answer.body);
        assert!(method == "resources/read" || answer.message().unwrap()["result"].is_object(), "{method}: {answer:?}");
    }
    for path in ["/g/two/mcp", "/g/two/api/graph", "/g/two/api/status", "/g/none/mcp", "/g/none/api/graph"] {
        let mut post = Post::list().bearer(&graphs.one);
        post.line = format!("POST {path} HTTP/1.1");
        let answer = post.send(graphs.server.address).unwrap();
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        assert!(answer.body.replace("`two`", "`none`").contains("there is no graph `none`"), "{}", answer.body);
    }
    assert_eq!(graphs.other_graph(), before);
    let own = graphs.call(&graphs.two, "get_node", &json!({ "id": "secret.md" })).to_string();
    assert!(own.contains(SECRET), "its own token reads it: {own}");
}

#[test]
fn no_text_of_a_client_becomes_sql() {
    let Some(graphs) = TwoGraphs::start() else { return };
    let before = graphs.other_graph();
    for (number, text) in HOSTILE.into_iter().enumerate() {
        for tool in graphs.tools(&graphs.one) {
            for arguments in calls_of(&tool, text) {
                let answer = graphs.call(&graphs.one, tool["name"].as_str().unwrap(), &arguments).to_string();
                for word in ["the database returned an error", "server's log", "syntax error", "SQLSTATE"] {
                    assert!(!answer.contains(word), "{} {arguments}: {answer}", tool["name"]);
                }
            }
        }
        let note = graphs.call(&graphs.one, "create_node", &json!({ "id": format!("n{number}.md"), "content": text }));
        assert_eq!(note["result"]["isError"], json!(false), "{note}");
        let name = format!("{text} by name");
        let entity = json!({ "name": name, "entity_type": "Concept", "force": true });
        let made = graphs.call(&graphs.one, "create_entity", &entity);
        let id = made["result"]["structuredContent"]["entity_id"].clone();
        let read = graphs.call(&graphs.one, "get_entity", &json!({ "entity_id": id }));
        assert_eq!(read["result"]["structuredContent"]["name"], json!(name), "{made} {read}");
    }
    for path in ["/g/'%20OR%20'1'='1/mcp", "/g/two'--/mcp", "/g/%27;DROP%20SCHEMA%20quipu/mcp"] {
        let mut post = Post::list().bearer(&graphs.one);
        post.line = format!("POST {path} HTTP/1.1");
        assert_eq!(post.status(graphs.server.address), 404, "{path}");
    }
    assert_eq!(Post::list().bearer("x' OR '1'='1").status(graphs.server.address), 401);
    assert_eq!(graphs.other_graph(), before);
}

/// Shorter than a call waits for a lock, or for the calls before it: in this time no worker becomes free by itself.
const AT_ONCE: Duration = Duration::from_secs(9);

/// Repeats a call that has waited for too long and has written nothing, until it succeeds.
fn call_until_done(graphs: &TwoGraphs, token: &str, tool: &str, arguments: &Value) {
    loop {
        let answer = graphs.call(token, tool, arguments);
        if answer["result"]["isError"] == json!(false) {
            return;
        }
        assert!(answer.to_string().contains("nothing was written. Try again in a moment"), "{answer}");
    }
}

/// Calls of one graph wait for a lock in the database; those of the other are answered meanwhile.
#[test]
fn graph_whose_calls_wait_does_not_hold_up_another() {
    let Some(graphs) = TwoGraphs::start() else { return };
    let made = graphs.call(&graphs.one, "create_entity", &json!({ "name": "Ada", "entity_type": "User" }));
    let entity = made["result"]["structuredContent"]["entity_id"].clone();
    let of_one = |table: &str| {
        format!("SELECT FROM quipu.{table} JOIN quipu.graph ON id = graph WHERE name = 'one' FOR UPDATE OF {table}")
    };
    let held = HeldLock::take(&graphs.url, &format!("{}; {}", of_one("memory_head"), of_one("note_head")));
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..24)
            .map(|number| {
                let (graphs, entity) = (&graphs, &entity);
                scope.spawn(move || {
                    let arguments = json!({ "entity_id": entity, "text_content": format!("observation {number}") });
                    call_until_done(graphs, &graphs.one, "create_observation", &arguments);
                })
            })
            .collect();
        await_waiting(&graphs.url);
        for number in 0..5 {
            let asked = Instant::now();
            let note = json!({ "id": format!("free{number}.md"), "content": "x" });
            let answer = graphs.call(&graphs.two, "create_node", &note);
            assert_eq!(answer["result"]["isError"], json!(false), "{answer}");
            assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
        }
        assert!(waiting.iter().all(|call| !call.is_finished()), "they wait for the lock");
        drop(held);
    });
}

/// Waits until a call waits for a lock, and gives the others time to come.
fn await_waiting(url: &str) {
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    wait_for("a call waits for the lock", || postgres::sql(url, waiting) != "0");
    thread::sleep(Duration::from_millis(500));
}

/// All calls of two graphs wait for locks in the database. A third graph has workers and connections, also for tokens that the
/// server does not know yet.
#[test]
fn two_graphs_whose_calls_wait_leave_room_for_a_third() {
    let Some(graphs) = TwoGraphs::start() else { return };
    let database = PostgresDatabase::connect(&graphs.url).unwrap();
    database.create_graph("three").unwrap();
    let token = |name: &str| new_token(&database, name, "admin", &["three"]);
    let known = token("known");
    wait_for("the server knows the third graph", || {
        let answer = graphs.send(&known, "tools/call", json!({ "name": "list_nodes", "arguments": {} }));
        answer.status == 200
    });
    let of_others =
        "SELECT FROM quipu.note_head JOIN quipu.graph ON id = graph WHERE name <> 'three' FOR UPDATE OF note_head";
    let held = HeldLock::take(&graphs.url, of_others);
    thread::scope(|scope| {
        let graphs = &graphs;
        let waiting: Vec<_> = (0..24)
            .map(|number| {
                scope.spawn(move || {
                    let token = if number % 2 == 0 { &graphs.one } else { &graphs.two };
                    let note = json!({ "id": format!("waits{number}.md"), "content": "x" });
                    call_until_done(graphs, token, "create_node", &note);
                })
            })
            .collect();
        await_waiting(&graphs.url);
        for number in 0..5 {
            let token = token(&format!("new{number}"));
            let asked = Instant::now();
            let note = json!({ "id": format!("free{number}.md"), "content": "x" });
            for (tool, arguments) in [("create_node", note), ("list_nodes", json!({}))] {
                let answer = graphs.call(&token, tool, &arguments);
                assert_eq!(answer["result"]["isError"], json!(false), "{answer}");
            }
            assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
        }
        assert!(waiting.iter().all(|call| !call.is_finished()), "they wait for the locks");
        drop(held);
    });
}

/// A session, a subscription and a page of the explorer belong to a graph, and a token of several graphs has to name one.
#[test]
fn sessions_notices_prompts_and_the_explorer_are_of_one_graph() {
    let Some(graphs) = TwoGraphs::start() else { return };
    let (both, address) = (graphs.token_of_both(), graphs.server.address);
    for id in ["secret.md", "own.md"] {
        graphs.call(&graphs.one, "create_node", &json!({ "id": id, "content": "of one" }));
    }
    let read = |path: &str, session: Option<&str>| {
        let params = json!({ "name": "get_node", "arguments": { "id": "secret.md" } });
        in_session(path, Some(&both), session, "tools/call", params).send(address).unwrap()
    };
    let session = open_session(address, "/g/one/mcp", Some(&both));
    assert!(read("/g/one/mcp", Some(&session)).body.contains("of one"));
    let elsewhere = read("/g/two/mcp", Some(&session));
    assert_eq!((elsewhere.status, elsewhere.body.contains(SECRET)), (404, false), "{elsewhere:?}");
    let session_of_two = open_session(address, "/g/two/mcp", Some(&both));
    assert!(read("/g/two/mcp", Some(&session_of_two)).body.contains(SECRET), "the token is of both graphs");
    let unnamed = read("/mcp", Some(&session));
    assert!(unnamed.status == 404 && unnamed.body.contains("several graphs are open to this client"), "{unnamed:?}");

    let uris = ["quipu://note/secret.md", "quipu://note/own.md"];
    let wanted = json!({ "notifications": { "resourceSubscriptions": uris } });
    let listen = Post::modern("subscriptions/listen", &modern(wanted)).bearer(&graphs.one);
    let mut newer = Events::open(&listen, address);
    assert_eq!(newer.next()["method"], "notifications/subscriptions/acknowledged");
    for uri in uris {
        let subscribe =
            in_session("/g/one/mcp", Some(&both), Some(&session), "resources/subscribe", json!({ "uri": uri }));
        assert_eq!(subscribe.status(address), 200);
    }
    let mut get = Post::get("/g/one/mcp").with("Accept", "text/event-stream").bearer(&both);
    get = get.with("Mcp-Session-Id", &session).with("MCP-Protocol-Version", LEGACY);
    let mut older = Events::open(&get, address);
    let append = |token: &str, id: &str| {
        let edits = json!([{ "op": "append", "text": "more" }]);
        let answer = graphs.call(token, "edit_node", &json!({ "id": id, "edits": edits }));
        assert_eq!(answer["result"]["isError"], json!(false), "{answer}");
    };
    append(&graphs.two, "secret.md");
    append(&graphs.one, "own.md");
    for events in [&mut newer, &mut older] {
        let notice = events.next();
        assert_eq!(notice["params"]["uri"], uris[1], "nothing is told of the other graph: {notice}");
    }

    let prompts = graphs.send(&graphs.one, "prompts/list", json!({})).message().unwrap();
    let prompts = prompts["result"]["prompts"].as_array().unwrap().clone();
    assert!(prompts.len() > 3, "{prompts:?}");
    for prompt in prompts {
        let names =
            prompt["arguments"].as_array().into_iter().flatten().map(|argument| argument["name"].as_str().unwrap());
        for name in names.clone() {
            let of = json!({ "type": "ref/prompt", "name": prompt["name"] });
            let params = json!({ "ref": of, "argument": { "name": name, "value": "" } });
            let completed = graphs.send(&graphs.one, "completion/complete", params);
            assert!(!completed.body.contains(SECRET), "{prompt}: {}", completed.body);
        }
        let value = |name: &str| match name {
            "date" => "2026-11-19",
            "days" => "7",
            _ => "plans",
        };
        let arguments: serde_json::Map<String, Value> =
            names.map(|name| (name.to_owned(), json!(value(name)))).collect();
        let params = modern(json!({ "name": prompt["name"], "arguments": arguments }));
        let get = Post::modern("prompts/get", &params).with("Mcp-Name", prompt["name"].as_str().unwrap());
        let got = get.bearer(&graphs.one).send(address).unwrap();
        assert!(got.message().unwrap()["result"]["messages"].is_array(), "{prompt}: {got:?}");
        assert!(!got.body.contains(SECRET), "{prompt}: {}", got.body);
    }

    for page in ["graph", "status", "events"] {
        let get = |graph: &str| {
            let got = Post::get(&format!("/g/{graph}/api/{page}")).bearer(&graphs.one).send(address).unwrap();
            (got.status, got.body.replace(&format!("`{graph}`"), "`?`"))
        };
        assert_eq!((get("two"), get("two").0), (get("none"), 404), "{page}: as if it did not exist");
    }
}

/// The database's own wall between graphs is not there for a superuser or the owner of the tables.
#[test]
fn server_warns_if_row_level_security_does_not_bind_its_user() {
    let Some(url) = postgres::database() else { return };
    postgres::sql(&url, &roles_sql());
    super::create_graph(&url.replace("postgres@", "quipu_admin@"));
    for (user, is_warned) in [("postgres", true), ("quipu_admin", true), ("quipu_server", false)] {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let url = url.replace("postgres@", &format!("{user}@"));
        let server = TeamServer::launch_logging(&url, &["--graph", super::GRAPH], log.reopen().unwrap().into());
        server.await_ready();
        drop(server);
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        let warning = format!("row-level security does not bind the database user {user}");
        assert_eq!(text.contains(&warning), is_warned, "{user}: {text}");
    }
}

#[test]
fn metrics_show_the_graphs_of_the_token_and_the_pool_to_one_of_all() {
    let Some(graphs) = TwoGraphs::start() else { return };
    let page_of = |token: &str| Post::get("/metrics").bearer(token).send(graphs.server.address).unwrap().body;
    let page = || page_of(&graphs.one) + &page_of(&graphs.two);
    let value_in = |page: &str, name: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
    };
    graphs.call(&graphs.one, "list_nodes", &json!({}));
    // Servers also commit by themselves: they delete old versions at the start.
    let commits = ["one", "two"].map(|graph| format!("quipu_commits_total{{graph=\"{graph}\"}}"));
    wait_for("the server has deleted old versions", || {
        let page = page();
        value_in(&page, &commits[0]) >= 1.0 && value_in(&page, &commits[1]) >= 3.0
    });
    let before = page();
    graphs.call(&graphs.one, "create_node", &json!({ "id": "a.md", "content": "x" }));
    let page = page();
    let made = commits.map(|name| value_in(&page, &name) - value_in(&before, &name));
    assert_eq!(made, [1.0, 0.0]);
    let value = |name: &str| value_in(&page, name);
    assert!(value("quipu_commit_seconds_total{graph=\"two\"}") > 0.0);
    assert_eq!(value("quipu_calls_total{graph=\"one\"}"), 2.0);
    assert!(value("quipu_feed_age_seconds{graph=\"one\"}") < 10.0);
    assert_eq!((value("quipu_feed_lagging{graph=\"one\"}"), value("quipu_notes{graph=\"one\"}")), (0.0, 1.0));
    let of_both = graphs.token_of_both();
    let whole = page_of(&of_both);
    let of_server = |name: &str| value_in(&whole, name);
    let (open, limit) = (of_server("quipu_database_connections"), of_server("quipu_database_connections_limit"));
    assert!(open >= 1.0 && open <= limit, "{open} of {limit}");
    assert_eq!(of_server("quipu_vectors_limit"), 5e6);
    let waiting = (of_server("quipu_database_waiting"), of_server("quipu_database_unreachable_seconds"));
    assert_eq!(waiting, (0.0, 0.0));
    let page = page_of(&graphs.one);
    assert!(!page.contains("graph=\"two\""), "a token sees its own graphs only: {page}");
    let kinds = page.lines().filter(|line| line.starts_with("# TYPE quipu_commits_total")).count();
    assert_eq!(kinds, 1, "values of one metric are together");
}
