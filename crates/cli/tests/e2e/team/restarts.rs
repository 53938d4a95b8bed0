//! Servers that are restarted one after the other, and one that dies: what clients see.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use quipu_testkit::generate::Random;
use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{TeamServer, call_at, create_graph, in_session, open_session, request_key, wait_for};
use crate::http::Post;

const CLIENTS: usize = 3;

/// What `quipu db migrate` of a later program may do, while programs of this version still work beside it.
const LATER: &str = "BEGIN; SET LOCAL search_path = quipu; ALTER TABLE note ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'; \
                     ALTER TABLE observation ADD COLUMN weight BIGINT; CREATE TABLE later (graph BIGINT PRIMARY KEY); \
                     INSERT INTO migration (number, needs) SELECT max(number) + 1, max(number) FROM migration; COMMIT";

fn start(url: &str) -> TeamServer {
    let server = TeamServer::launch_with(url, &["--graph", super::GRAPH, "--drain", "3"]);
    server.await_ready();
    server
}

/// Appends lines at servers that are ready, as a proxy chooses them. Every call must succeed. Returns the lines.
fn append(client: usize, servers: &[Mutex<TeamServer>], is_over: &AtomicBool) -> Vec<String> {
    let (mut random, mut written) = (Random(client as u64 + 1), Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let address = servers[random.below(servers.len())].lock().unwrap().address;
        if !Post::get("/readyz").send(address).is_ok_and(|answer| answer.status == 200) {
            continue;
        }
        let line = format!("client{client}-{}", written.len());
        let edits = json!([{ "op": "append", "text": line }]);
        let arguments = json!({ "id": format!("log{client}.md"), "edits": edits });
        let result = call_at(address, "edit_node", arguments, Some(&request_key(&mut random)));
        assert!(result.as_ref().is_ok_and(|result| result["isError"] == json!(false)), "{result:?}");
        written.push(line);
    }
    written
}

/// Stops a server; returns when it has ended. Until then it answers, but says that it stops.
fn stop(server: &Mutex<TeamServer>) {
    let address = server.lock().unwrap().address;
    server.lock().unwrap().signal("TERM");
    wait_for("it says that it stops", || {
        let answer = Post::get("/readyz").send(address).unwrap();
        (answer.status, answer.body.contains("stopping")) == (503, true)
    });
    let listed = call_at(address, "list_nodes", json!({}), None).unwrap();
    assert_eq!(listed["structuredContent"]["total"], json!(CLIENTS), "{listed}");
    let ended = || server.lock().unwrap().child.try_wait().unwrap();
    wait_for("it ends", || ended().is_some());
    assert!(ended().unwrap().success());
}

/// The steps of an upgrade: the tables first, while every server runs, then one server after the other.
#[test]
fn rolling_restart_after_a_migration_fails_and_repeats_no_write() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let servers: Vec<Mutex<TeamServer>> = (0..3).map(|_| Mutex::new(start(&url))).collect();
    for client in 0..CLIENTS {
        let note = json!({ "id": format!("log{client}.md"), "content": "start" });
        servers[0].lock().unwrap().call("create_node", note);
    }
    let is_over = AtomicBool::new(false);
    let written: Vec<Vec<String>> = thread::scope(|scope| {
        let (servers, is_over) = (&servers, &is_over);
        let clients: Vec<_> =
            (0..CLIENTS).map(|client| scope.spawn(move || append(client, servers, is_over))).collect();
        let restart = || {
            thread::sleep(Duration::from_millis(300));
            postgres::sql(&url, LATER);
            for server in servers {
                thread::sleep(Duration::from_millis(300));
                stop(server);
                let next = start(&url);
                *server.lock().unwrap() = next;
            }
        };
        let restarted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(restart));
        is_over.store(true, Ordering::Relaxed);
        restarted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for server in &servers {
        for (client, written) in written.iter().enumerate() {
            let node = server.lock().unwrap().call("get_node", json!({ "id": format!("log{client}.md") }));
            let content: Vec<&str> = node["content"].as_str().unwrap().lines().skip(1).collect();
            let lines: Vec<&str> = content.into_iter().filter(|line| !line.is_empty()).collect();
            assert!(!written.is_empty(), "client {client} wrote nothing");
            assert_eq!(lines, *written, "every line once, in order");
        }
    }
    let writes = CLIENTS + written.iter().map(Vec::len).sum::<usize>();
    assert_eq!(postgres::sql(&url, "SELECT count(*) FROM quipu.note_write"), writes.to_string());
}

/// A session is known to the server that opened it. Its client gets 404, opens another, and has lost nothing.
#[test]
fn client_opens_a_new_session_at_another_server_after_the_death_of_its_own() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let [mut one, two] = [TeamServer::start(&url), TeamServer::start(&url)];
    let call = |server: &TeamServer, session: &str, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        in_session("/mcp", None, Some(session), "tools/call", params).send(server.address).unwrap()
    };
    let session = open_session(one.address, "/mcp", None);
    let written = call(&one, &session, "create_node", json!({ "id": "a.md", "content": "kept" }));
    assert_eq!(written.message().unwrap()["result"]["isError"], json!(false), "{written:?}");
    one.kill();
    let read = |session: &str| call(&two, session, "get_node", json!({ "id": "a.md" }));
    assert_eq!(read(&session).status, 404, "clients then open a session, by the protocol");
    let answer = read(&open_session(two.address, "/mcp", None)).message().unwrap();
    assert_eq!(answer["result"]["structuredContent"]["content"].as_str().map(str::trim), Some("kept"), "{answer}");
}
