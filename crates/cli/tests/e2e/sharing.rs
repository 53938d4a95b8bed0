//! Several clients on one vault, each with a server of its own: one owns the vault, the others ask it.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, LEGACY, QUIPU, first_block, vault};

#[test]
fn write_is_visible_to_other_clients_at_once() {
    let mut first = Client::open("//- a.md\nOld.\n");
    let (mut second, mut third) = (first.join(&[]), first.join(&[]));
    second.answer("create_node", json!({ "id": "b.md", "content": "From the second. [[a]]" }));
    assert_eq!(first.answer("get_node", json!({ "id": "b.md" }))["content"], "From the second. [[a]]");
    assert_eq!(third.answer("get_neighbors", json!({ "id": "a.md", "direction": "in" }))[0]["id"], "b.md");
    let made = third.answer("create_entity", json!({ "name": "Ada", "entity_type": "Person" }));
    let found = first.answer("get_entity", json!({ "entity_id": made["entity_id"] }));
    assert_eq!(found["name"], "Ada");
}

#[test]
fn non_owner_client_is_notified_of_the_subscribed_file_among_case_twins() {
    let folder = vault("//- Moloch.md\nupper\n//- moloch.md\nlower\n//- a.md\n");
    if std::fs::read(folder.path().join("moLoch.md")).is_ok() {
        return quipu_testkit::skip("this disk does not tell case apart");
    }
    let mut owner = Client::open_in(folder, &[]);
    owner.answer("list_nodes", json!({}));
    for id in ["Moloch.md", "moloch.md"] {
        let mut follower = owner.join(&[]);
        follower.answer("list_nodes", json!({}));
        let uri = format!("quipu://note/{id}");
        follower.request("resources/subscribe", json!({ "uri": uri }));
        owner.answer("update_node", json!({ "id": id, "content": format!("changed {id}\n") }));
        let notice = loop {
            let notice = follower.notice();
            if notice["method"] != "notifications/resources/list_changed" {
                break notice;
            }
        };
        assert_eq!(notice["params"]["uri"], uri, "{notice}");
        let read = follower.request("resources/read", json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], format!("changed {id}\n"), "{read}");
    }
}

#[test]
fn remaining_server_takes_over_when_owner_is_killed() {
    let mut owner = Client::open("//- a.md\nOld.\n");
    let (mut second, mut third) = (owner.join(&[]), owner.join(&[]));
    for client in [&mut owner, &mut second, &mut third] {
        assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "Old.\n");
    }
    owner.signal("KILL");
    owner.wait();
    let started = Instant::now();
    second.answer("create_node", json!({ "id": "b.md", "content": "After the kill." }));
    assert!(started.elapsed() < Duration::from_secs(5), "took {:?}", started.elapsed());
    assert_eq!(third.answer("get_node", json!({ "id": "b.md" }))["content"], "After the kill.");
    let mut fourth = second.join(&[]);
    assert_eq!(fourth.answer("get_node", json!({ "id": "b.md" }))["content"], "After the kill.");
}

#[test]
fn calls_in_progress_are_answered_by_the_next_owner_and_run_once() {
    let mut owner = Client::open("");
    let mut other = owner.join(&[]);
    let entity = other.answer("create_entity", json!({ "name": "Log", "entity_type": "Task" }))["entity_id"].clone();
    let mut sent = Vec::new();
    for number in 0..60 {
        let arguments = json!({ "entity_id": entity, "text_content": format!("fact {number}") });
        sent.push(other.send("tools/call", json!({ "name": "create_observation", "arguments": arguments })));
        let arguments = json!({ "id": format!("n{number}.md"), "content": format!("note {number}") });
        sent.push(other.send("tools/call", json!({ "name": "create_node", "arguments": arguments })));
        if number == 20 {
            owner.signal("KILL");
        }
    }
    owner.wait();
    for _ in &sent {
        let answer = other.receive();
        assert!(answer["result"]["isError"] != true && answer["error"].is_null(), "{answer}");
        sent.iter().position(|id| answer["id"] == json!(id)).expect("an answer to what was asked");
    }
    let log = other.answer("get_entity", json!({ "entity_id": entity }));
    let mut facts: Vec<&str> = log["observations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["observation_content"].as_str().unwrap())
        .collect();
    facts.sort_unstable();
    facts.dedup();
    assert_eq!((facts.len(), log["observations"].as_array().unwrap().len()), (60, 60), "each is there, and once");
    assert_eq!(other.answer("list_nodes", json!({ "limit": 100 }))["total"], 60);
}

#[test]
fn session_state_survives_the_death_of_the_owner() {
    let mut owner = Client::open("//- a.md\nOld.\n");
    let mut other = owner.join(&[]);
    let project =
        other.answer("create_entity", json!({ "name": "Boat", "entity_type": "Project" }))["entity_id"].clone();
    other.answer("set_context", json!({ "project_id": project }));
    owner.answer("clear_context", json!({}));
    other.answer("get_node", json!({ "id": "a.md" }));
    owner.signal("KILL");
    owner.wait();
    assert_eq!(other.answer("get_context", json!({}))["project_id"], project);
    other.write("a.md", "Edited elsewhere.\n");
    let (code, message) = other.error("update_node", json!({ "id": "a.md", "content": "Mine." }));
    assert_eq!(code, "PROVIDER_ERROR", "{message}");
    assert_eq!(other.read("a.md"), "Edited elsewhere.\n");
    other.answer("get_node", json!({ "id": "a.md" }));
    other.answer("update_node", json!({ "id": "a.md", "content": "Mine." }));
}

#[test]
fn each_client_has_the_tools_of_its_own_server() {
    let mut owner = Client::open_in(vault("//- a.md\nOld.\n"), &["--read-only"]);
    let mut writing = owner.join(&[]);
    let mut notes_only = owner.join(&["--toolsets", "docs"]);
    let tools =
        |client: &mut Client| client.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len();
    assert!(tools(&mut owner) < tools(&mut writing));
    assert_eq!(tools(&mut notes_only), 3);
    writing.answer("update_node", json!({ "id": "a.md", "content": "New." }));
    for client in [&mut owner, &mut notes_only] {
        let call = json!({ "name": "update_node", "arguments": { "id": "a.md", "content": "Not I." } });
        let answer = client.request("tools/call", call);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(owner.read("a.md"), "New.");
}

#[test]
fn commands_go_through_the_running_server() {
    let mut server = Client::open("//- a.md\nA frozen anemometer.\n");
    let json_of = |output: &std::process::Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
    let status = json_of(&server.command(&["status", "--json"]));
    assert_eq!((&status["index"]["owner"], &status["notes"]), (&json!("other"), &json!(1)));
    let found = server.command(&["search", "anemometer", "--json"]);
    assert_eq!((json_of(&found)["hits"][0]["path"].as_str(), found.status.code()), (Some("a.md"), Some(0)));
    assert_eq!(server.command(&["search", "--words", "nothing of the kind"]).status.code(), Some(1));
    let made = server.command(&["call", "create_node", r#"{"id": "b.md", "content": "From the shell."}"#]);
    assert_eq!(json_of(&made)["id"], "b.md");
    assert_eq!(server.answer("get_node", json!({ "id": "b.md" }))["content"], "From the shell.");
    let refused = server.command(&["call", "get_node", r#"{"id": 7}"#]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("error: get_node: "), "{refused:?}");
    let mut piped = Command::new(QUIPU)
        .args(["--vault".as_ref(), server.root().as_os_str(), "call".as_ref(), "get_node".as_ref(), "-".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(br#"{"id": "b.md"}"#).unwrap();
    assert_eq!(json_of(&piped.wait_with_output().unwrap())["content"], "From the shell.");
    let rebuilt = server.command(&["index", "--rebuild"]);
    assert_eq!(rebuilt.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&rebuilt.stderr).contains("a running server is using it"), "{rebuilt:?}");
    assert_eq!(server.command(&["doctor"]).status.code(), Some(0));
}

#[test]
fn killed_owner_does_not_block_the_next() {
    let mut first = Client::open("//- a.md\nOld.\n");
    let socket = first.root().join(".quipu/share/owner.sock");
    assert!(socket.exists());
    assert_eq!(std::fs::metadata(socket.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    first.signal("KILL");
    first.wait();
    assert!(socket.exists(), "nobody tidied up");
    let mut next = first.join(&[]);
    assert_eq!(next.answer("get_node", json!({ "id": "a.md" }))["content"], "Old.\n");
    let status = next.command(&["status", "--json"]);
    assert_eq!(
        serde_json::from_slice::<Value>(&status.stdout).unwrap()["index"]["owner"],
        "other",
        "it owns the vault"
    );
}

#[test]
fn vault_with_a_path_too_long_for_a_socket_is_shared() {
    let home = tempfile::TempDir::new().unwrap();
    let deep = home.path().join("deep".repeat(30));
    std::fs::create_dir(&deep).unwrap();
    std::fs::write(deep.join("a.md"), "Old.\n").unwrap();
    let serve = || crate::client::serve_command(&deep, &[]);
    let mut first = Client::start_with(home, serve()).shake_hands(LEGACY);
    let mut second = Client::start_with(tempfile::TempDir::new().unwrap(), serve()).shake_hands(LEGACY);
    first.answer("get_node", json!({ "id": "a.md" }));
    second.answer("create_node", json!({ "id": "b.md", "content": "b" }));
    assert_eq!(first.answer("list_nodes", json!({}))["total"], 2);
    assert!(!deep.join(".quipu/share/owner.sock").exists());
}

/// Another owner of a vault, as far as the lock, the owner info and the socket show.
struct Stranger {
    _lock: File,
}

impl Stranger {
    fn having(folder: &std::path::Path, hold: &str) -> Self {
        let own = folder.join(".quipu");
        std::fs::create_dir_all(&own).unwrap();
        let mut lock = File::create(own.join("owner.lock")).unwrap();
        lock.lock().unwrap();
        let card = json!({ "pid": 4711, "version": "9.9.9", "hold": hold });
        lock.write_all(card.to_string().as_bytes()).unwrap();
        Self { _lock: lock }
    }

    /// Answers connections with the handshake of an unknown version.
    fn greet(folder: &std::path::Path) {
        let share = folder.join(".quipu/share");
        std::fs::create_dir_all(&share).unwrap();
        std::fs::set_permissions(&share, std::fs::Permissions::from_mode(0o700)).unwrap();
        let listener = UnixListener::bind(share.join("owner.sock")).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut length = [0; 4];
                stream.read_exact(&mut length).unwrap();
                let mut hello = vec![0; u32::from_le_bytes(length) as usize];
                stream.read_exact(&mut hello).unwrap();
                let welcome = json!({ "wire": 99, "version": "9.9.9", "pid": 4711 }).to_string();
                stream.write_all(&u32::try_from(welcome.len()).unwrap().to_le_bytes()).unwrap();
                stream.write_all(welcome.as_bytes()).unwrap();
            }
        });
    }
}

#[test]
fn owner_of_an_incompatible_version_is_named() {
    let folder = vault("//- a.md\nOld.\n");
    let _stranger = Stranger::having(folder.path(), "shared");
    Stranger::greet(folder.path());
    let output = crate::client::serve_command(folder.path(), &[]).stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("open in process 4711 of quipu 9.9.9") && told.contains("end the clients that use it"),
        "{told}"
    );
}

#[test]
fn server_works_alone_beside_an_unreachable_owner() {
    let folder = vault("//- a.md\nOld.\n");
    let _stranger = Stranger::having(folder.path(), "alone");
    let mut client = Client::open_in(folder, &[]);
    assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "Old.\n");
    client.answer("create_node", json!({ "id": "b.md", "content": "b" }));
}

#[test]
fn server_waits_for_a_short_command_that_holds_the_lock() {
    let folder = vault("//- a.md\nOld.\n");
    let passing = Stranger::having(folder.path(), "passing");
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(passing);
    });
    let mut client = Client::open_in(folder, &[]);
    assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "Old.\n");
    assert!(client.root().join(".quipu/share/owner.sock").exists(), "it owns the vault");
}

#[test]
fn a_server_whose_parent_died_ends_though_its_pipe_is_still_open() {
    let folder = vault("//- a.md\nOld.\n");
    // The shell waits for the server; the other end of the server's stdin stays open in this test when the shell is killed.
    let mut shell = Command::new("sh")
        .args(["-c", "exec 3<&0; \"$0\" serve \"$1\" <&3 & echo $!; wait", QUIPU])
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Held open: waiting for the shell would else close it, and the server would end for that.
    let _stdin = shell.stdin.take().unwrap();
    let mut stdout = shell.stdout.take().unwrap();
    let mut pid = String::new();
    while !pid.ends_with('\n') {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        pid.push(char::from(byte[0]));
    }
    let alive = || std::path::Path::new("/proc").join(pid.trim()).exists();
    std::thread::sleep(Duration::from_millis(300));
    shell.kill().unwrap();
    shell.wait().unwrap();
    let killed = Instant::now();
    while alive() && killed.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!alive(), "a process stayed behind");
}

#[test]
fn terminated_owner_hands_over() {
    let mut owner = Client::open("//- a.md\nOld.\n");
    let mut other = owner.join(&[]);
    other.answer("get_node", json!({ "id": "a.md" }));
    owner.signal("TERM");
    let result = other.call("create_node", json!({ "id": "b.md", "content": "b" }));
    assert_eq!(first_block(&result)["id"], "b.md", "{result}");
    let (status, _) = owner.wait();
    assert!(status.success(), "{status}");
    assert_eq!(other.answer("list_nodes", json!({}))["total"], 2);
}

#[test]
fn stopped_owner_is_bypassed_and_its_late_write_is_not_repeated() {
    let mut owner = Client::open("//- a.md\nOld.\n");
    let mut other = owner.join(&[]);
    let entity = other.answer("create_entity", json!({ "name": "Log", "entity_type": "Task" }))["entity_id"].clone();
    owner.signal("STOP");
    let stopped = Instant::now();
    // More than fits into a socket whose other side does not read.
    let long = "b".repeat(1_000_000);
    other.answer("create_node", json!({ "id": "b.md", "content": long }));
    other.answer("create_observation", json!({ "entity_id": entity, "text_content": "once" }));
    assert!(stopped.elapsed() < Duration::from_secs(30), "took {:?}", stopped.elapsed());
    owner.signal("CONT");
    // The owner goes on with what it was asked while it was stopped.
    assert_eq!(owner.answer("get_node", json!({ "id": "b.md" }))["id"], "b.md");
    assert!(owner.read("b.md") == long);
    std::thread::sleep(Duration::from_millis(500));
    let log = owner.answer("get_entity", json!({ "entity_id": entity }));
    assert_eq!(log["observations"].as_array().unwrap().len(), 1, "{log}");
    other.answer("create_observation", json!({ "entity_id": entity, "text_content": "twice" }));
    let log = owner.answer("get_entity", json!({ "entity_id": entity }));
    assert_eq!(log["observations"].as_array().unwrap().len(), 2, "{log}");
}

#[test]
fn vault_with_a_linked_own_folder_is_served_without_writing_through_the_link() {
    let (folder, outside) = (vault("//- a.md\nOld.\n"), tempfile::TempDir::new().unwrap());
    std::fs::create_dir(outside.path().join("share")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join(".quipu")).unwrap();
    let mut client = Client::open_in(folder, &[]);
    assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "Old.\n");
    assert_eq!(client.command(&["status", "--json"]).status.code(), Some(0));
    let found: Vec<_> = std::fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(found, ["share"]);
    assert_eq!(std::fs::read_dir(outside.path().join("share")).unwrap().count(), 0);
}

#[test]
fn vault_that_cannot_be_locked_is_served() {
    let folder = vault("//- a.md\nOld.\n");
    std::fs::create_dir_all(folder.path().join(".quipu/owner.lock")).unwrap();
    let mut client = Client::open_in(folder, &[]);
    client.answer("create_node", json!({ "id": "b.md", "content": "b" }));
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 2);
}

#[test]
fn server_that_worked_alone_joins_the_owner_when_possible() {
    let folder = vault("//- a.md\nOld.\n");
    let stranger = Stranger::having(folder.path(), "alone");
    let mut client = Client::open_in(folder, &[]);
    client.answer("get_node", json!({ "id": "a.md" }));
    let socket = client.root().join(".quipu/share/owner.sock");
    assert!(!socket.exists());
    drop(stranger);
    let waiting = Instant::now();
    while !socket.exists() && waiting.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(socket.exists(), "it owns the vault now");
    let mut other = client.join(&[]);
    other.answer("create_node", json!({ "id": "b.md", "content": "b" }));
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 2);
}

#[test]
fn silent_connections_do_not_block_others() {
    let mut owner = Client::open("//- a.md\nOld.\n");
    let socket = owner.root().join(".quipu/share/owner.sock");
    let mut silent: Vec<UnixStream> = (0..300).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let started = Instant::now();
    let mut other = owner.join(&[]);
    assert_eq!(other.answer("get_node", json!({ "id": "a.md" }))["content"], "Old.\n");
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0, "the longest silent had to go");
    assert!(started.elapsed() < Duration::from_secs(2), "took {:?}", started.elapsed());
    assert_eq!(owner.answer("get_node", json!({ "id": "a.md" }))["content"], "Old.\n");
}

/// A server that waits for an owner which does not answer, and whose client leaves meanwhile, after having asked or not.
#[test]
fn client_that_disconnects_while_waiting_for_the_owner_ends_its_server() {
    let owner = Client::open("//- a.md\nOld.\n");
    owner.signal("STOP");
    for asked in ["", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"] {
        let mut server = Command::new(QUIPU);
        server.arg("serve").arg(owner.root()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut stdin = server.stdin.take().unwrap();
        stdin.write_all(asked.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        drop(stdin);
        let left = Instant::now();
        assert!(server.wait().unwrap().success());
        assert!(left.elapsed() < Duration::from_millis(1500), "took {:?}", left.elapsed());
    }
    owner.signal("CONT");
}

/// Reading this vault takes the owner longer than a silent one would be waited for.
#[test]
fn owner_building_its_first_index_is_not_treated_as_stopped() {
    let folder = tempfile::TempDir::new().unwrap();
    for number in 0..8_000 {
        let text = format!("See [[n{}]]. {}", number / 2, "Words about boats and sails. ".repeat(20));
        std::fs::write(folder.path().join(format!("n{number}.md")), text).unwrap();
    }
    let mut owner = Client::open_in(folder, &["--no-watch"]);
    let mut other = Command::new(QUIPU);
    other.args(["-v", "serve"]).arg(owner.root()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut other = other.spawn().unwrap();
    while owner.answer("list_nodes", json!({ "limit": 1 }))["total"] != 8_000 {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(other.stdin.take());
    let said = other.wait_with_output().unwrap();
    assert!(said.status.success());
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(!said.contains("owns the vault now"), "it found its owner once, and lost it never: {said}");
}

#[test]
fn takeover_that_changes_the_tools_is_notified() {
    let mut owner = Client::open("//- a.md\nOld.\n");
    let mut other = owner.start_join_with(&[("QUIPU_EMBEDDING_PROVIDER", "none")], &[]).shake_hands(LEGACY);
    let has_search = |client: &mut Client| {
        let listed = client.request("tools/list", json!({}));
        listed["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "search")
    };
    assert!(has_search(&mut other), "the owner has it");
    owner.signal("KILL");
    owner.wait();
    while other.notice()["method"] != "notifications/tools/list_changed" {}
    assert!(!has_search(&mut other), "no meanings are compared by this process");
    let refused = other.request("tools/call", json!({ "name": "search", "arguments": { "query": "old" } }));
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.starts_with("search is not offered: embedding is off"), "{refused}");
    assert!(said.contains("`[embedding] provider") && said.contains("call ubp_search"), "{refused}");
}
