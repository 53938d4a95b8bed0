//! Servers and database connections that end during writes: every acknowledged write is there once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quipu_testkit::generate::Random;
use quipu_testkit::postgres;
use serde_json::json;

use super::{TeamServer, call_at, create_graph, create_token, request_key, wait_for};
use crate::client::modern;
use crate::http::Post;

const CLIENTS: usize = 4;

/// The error for a call that may be retried later.
const WAIT: [&str; 2] = ["still being indexed", "the database has been unreachable since"];

/// Appends lines to a note until it is stopped. A call whose connection is lost is repeated on another server with its key.
/// Returns the lines that were acknowledged.
fn append(client: usize, servers: &[Mutex<TeamServer>], is_over: &AtomicBool) -> Vec<String> {
    let (mut random, mut written) = (Random(client as u64 + 1), Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let line = format!("client{client}-{}", written.len());
        let edits = json!([{ "op": "append", "text": line }]);
        let key = request_key(&mut random);
        loop {
            let address = servers[random.below(servers.len())].lock().unwrap().address;
            let arguments = json!({ "id": format!("log{client}.md"), "edits": edits });
            match call_at(address, "edit_node", arguments, Some(&key)) {
                Ok(result) if result["isError"] == json!(false) => break,
                // A server that has just started, or has waited long enough for the database, says so. A change that was
                // stored all the same is recognised by its key.
                Ok(result) if WAIT.iter().any(|wait| result.to_string().contains(wait)) => {
                    thread::sleep(Duration::from_millis(20));
                }
                Ok(result) => panic!("{result}"),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
        written.push(line);
    }
    written
}

/// Ends the clients also when an assertion fails meanwhile.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the clients while `disturb` runs, then compares the notes with what was acknowledged.
fn append_during(url: &str, servers: &[Mutex<TeamServer>], disturb: impl FnOnce()) {
    for client in 0..CLIENTS {
        let id = format!("log{client}.md");
        servers[0].lock().unwrap().call("create_node", json!({ "id": id, "content": "start" }));
    }
    let is_over = AtomicBool::new(false);
    let append = &|client| append(client, servers, &is_over);
    let written: Vec<Vec<String>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || append(client))).collect();
        let end = SetOnDrop(&is_over);
        disturb();
        drop(end);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let server = TeamServer::start(url);
    for (client, written) in written.iter().enumerate() {
        assert!(!written.is_empty(), "client {client} wrote nothing");
        let node = server.call("get_node", json!({ "id": format!("log{client}.md") }));
        let lines: Vec<&str> =
            node["content"].as_str().unwrap().lines().skip(1).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, *written, "every line once, in order");
    }
}

#[test]
fn killed_servers_lose_and_repeat_no_write() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let servers: Vec<Mutex<TeamServer>> = (0..2).map(|_| Mutex::new(TeamServer::start(&url))).collect();
    append_during(&url, &servers, || {
        for round in 0..6 {
            thread::sleep(Duration::from_millis(400));
            let server = &servers[round % servers.len()];
            server.lock().unwrap().kill();
            let next = TeamServer::start(&url);
            *server.lock().unwrap() = next;
        }
    });
}

#[test]
fn lost_connections_to_the_database_lose_and_repeat_no_write() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let servers: Vec<Mutex<TeamServer>> = (0..2).map(|_| Mutex::new(TeamServer::start(&url))).collect();
    append_during(&url, &servers, || {
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(300));
            let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                        WHERE datname = current_database() AND pid <> pg_backend_pid()";
            postgres::sql(&url, kill);
        }
    });
}

/// While the database is away, what the index knows is answered with a warning; writes wait for it.
#[test]
fn stopped_database_loses_no_write_and_answers_say_so() {
    let Some(mut cluster) = postgres::Cluster::of_test() else { return };
    let url = cluster.database();
    create_graph(&url);
    let (token, unknown) = (create_token(&url, "reader"), create_token(&url, "newcomer"));
    let servers: Vec<Mutex<TeamServer>> = (0..2).map(|_| Mutex::new(TeamServer::start(&url))).collect();
    append_during(&url, &servers, || {
        thread::sleep(Duration::from_millis(500));
        let server = servers[0].lock().unwrap().address;
        let list = || Post::call("list_nodes", &modern(json!({ "name": "list_nodes", "arguments": {} })));
        assert_eq!(list().bearer(&token).send(server).unwrap().status, 200);
        cluster.stop();
        wait_for("the server says that the database is away", || {
            Post::get("/readyz").send(server).is_ok_and(|answer| answer.status == 503)
        });
        // At first the server only knows that it cannot read the changes of others.
        wait_for("an answer says that the database is away", || {
            let result = call_at(server, "list_nodes", json!({}), None).unwrap();
            assert_eq!(result["structuredContent"]["total"], json!(CLIENTS), "{result}");
            result["_meta"]["quipu/warnings"].to_string().contains("database has been unreachable")
        });
        let template = json!({ "type": "ref/resource", "uri": "quipu://note/{+id}" });
        let completion = json!({ "ref": template, "argument": { "name": "id", "value": "log" } });
        for (method, params) in [("resources/list", json!({})), ("completion/complete", completion)] {
            let answer = Post::modern(method, &modern(params)).send(server).unwrap().message().unwrap();
            let warnings = answer["result"]["_meta"]["quipu/warnings"].to_string();
            assert!(warnings.contains("database has been unreachable"), "{method}: {answer}");
        }
        let known = list().bearer(&token).send(server).unwrap();
        let warnings = known.message().unwrap()["result"]["_meta"]["quipu/warnings"].to_string();
        assert!(warnings.contains("database has been unreachable"), "reads with a known token: {known:?}");
        let unchecked = Post::list().bearer(&unknown).send(server).unwrap();
        assert_eq!((unchecked.status, unchecked.header("retry-after").as_deref()), (503, Some("1")), "{unchecked:?}");
        let since = "cannot check the token: the database has been unreachable since ";
        assert!(unchecked.body.contains(since), "a client keeps its token: {unchecked:?}");
        cluster.start_again();
        for server in &servers {
            server.lock().unwrap().await_ready();
        }
        thread::sleep(Duration::from_millis(500));
    });
}

/// A server is suspended in a transaction, with the lock of its graph. The others write on, and the server itself, continued
/// later, has its write once.
#[test]
fn suspended_server_blocks_no_other_and_repeats_no_write() {
    const LOCK: Duration = Duration::from_secs(4);
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let [suspended, other] = [TeamServer::start(&url), TeamServer::start(&url)];
    let create = |id: &str| json!({ "id": id, "content": "text" });
    let write = thread::scope(|scope| {
        // A write locks its graph first, and the history last.
        let lock =
            format!("LOCK TABLE quipu.note_write IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep({})", LOCK.as_secs());
        let url = &url;
        let locked = scope.spawn(move || postgres::sql(url, &lock));
        let count = |condition: &str| {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND";
            postgres::sql(url, &format!("{sql} {condition}"))
        };
        wait_for("the history is locked", || count("wait_event = 'PgSleep'") == "1");
        let write = scope.spawn(|| suspended.try_call("create_node", create("one.md"), None));
        let waits = "wait_event_type = 'Lock' AND query LIKE 'INSERT INTO note_write %'";
        wait_for("the write waits, with the lock of the graph", || count(waits) == "1");
        suspended.signal("STOP");
        locked.join().unwrap();
        wait_for("its transaction is idle", || count("state = 'idle in transaction'") != "0");
        let asked = Instant::now();
        other.call("create_node", create("two.md"));
        assert!(asked.elapsed() < Duration::from_secs(15), "it waited {:?}", asked.elapsed());
        suspended.signal("CONT");
        write.join().unwrap()
    });
    assert_eq!(write.unwrap()["isError"], json!(false), "it was made again");
    for server in [&suspended, &other] {
        assert_eq!(server.call("list_nodes", json!({}))["total"], json!(2));
    }
    assert_eq!(postgres::sql(&url, "SELECT count(*) FROM quipu.note_write"), "2", "each write once");
}
