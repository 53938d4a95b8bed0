//! A server that is still reading its notes: what it says of a note is true, and a list says that it is incomplete.

use std::thread;
use std::time::{Duration, Instant};

use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{HeldLock, TeamServer, create_graph, notes, push, wait_for};
use quipu_core::model::VaultPath;
use quipu_core::ports::VaultFiles;

/// So many that a server reads for several seconds.
const NOTES: usize = 5000;

/// The longest wait for an answer meanwhile: twelve seconds for a move, less for others, and room for a busy machine.
const BOUND: Duration = Duration::from_secs(25);

fn path(number: usize) -> String {
    format!("Folder {}/Note {number}.md", number % 40)
}

#[test]
fn loading_server_reports_no_existing_note_as_missing() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let note = |number: usize| {
        let text = "Some words of a note that is long enough to be read for a while.\n".repeat(20);
        (path(number), format!("# Note {number}\n\n[[Note {}]] {text}", (number * 7) % NOTES).into_bytes())
    };
    push(&url, &(0..NOTES).map(note).collect::<Vec<_>>());
    let server = TeamServer::launch(&url);
    let last = path(NOTES - 1);
    let calls: Vec<(&str, Value)> = vec![
        ("list_nodes", json!({ "limit": 1 })),
        ("get_node", json!({ "id": path(NOTES - 2).to_lowercase() })),
        ("nodes_exist", json!({ "ids": [path(NOTES - 3).to_lowercase(), "no/such.md"] })),
        ("get_document", json!({ "path": path(NOTES - 4) })),
        ("ubp_get_page", json!({ "filepath": path(NOTES - 5) })),
        ("edit_node", json!({ "id": last, "edits": [{ "op": "append", "text": "written early" }] })),
        ("ubp_fulltext_search", json!({ "query": "note" })),
        ("move_node", json!({ "id": path(NOTES - 6), "to": "moved.md" })),
    ];
    let call = |(tool, arguments): &(&str, Value)| {
        let asked = Instant::now();
        let result = server.try_call(tool, arguments.clone(), None).unwrap();
        (result, asked.elapsed())
    };
    let answers: Vec<(Value, Duration)> = thread::scope(|scope| {
        let calls: Vec<_> = calls.iter().map(|asked| scope.spawn(move || call(asked))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for ((tool, _), (result, took)) in calls.iter().zip(&answers) {
        assert!(*took < BOUND, "{tool} took {took:?}");
        assert!(*tool == "move_node" || result["isError"] == json!(false), "{tool}: {result}");
    }
    let content = |place: usize| &answers[place].0["structuredContent"];
    let listed = content(0);
    assert!(listed["total"].as_u64().unwrap() < NOTES as u64, "not enough notes to test with: {listed}");
    assert!(listed["_incomplete"].as_str().unwrap().contains("still being indexed"), "{listed}");
    assert_eq!(content(1)["title"], json!(format!("Note {}", NOTES - 2)), "{}", answers[1].0);
    assert_eq!(content(2)[path(NOTES - 3).to_lowercase()], json!(true), "{}", content(2));
    assert_eq!(content(2)["no/such.md"], json!(false), "{}", content(2));
    assert_eq!(content(2).as_object().unwrap().len(), 2, "every field of this answer is an id");
    let written = notes(&url).read(&VaultPath::parse(&last).unwrap()).unwrap().unwrap();
    assert!(String::from_utf8(written.bytes).unwrap().ends_with("written early\n"), "acknowledged");
    // It may have waited for the end; otherwise links of notes that are not read yet would break.
    let moved = &answers[7].0;
    assert!(moved["isError"] == json!(false) || moved.to_string().contains("still being indexed"), "{moved}");

    server.await_ready();
    let whole = server.call("list_nodes", json!({ "limit": 1 }));
    assert_eq!((whole["total"].clone(), whole.get("_incomplete")), (json!(NOTES), None));
    assert!(server.call("get_node", json!({ "id": last }))["content"].as_str().unwrap().contains("written early"));
}

/// Memory is read when its graph is opened. A search meanwhile finds what has been read, and says so.
#[test]
fn search_of_memory_that_is_still_read_answers_and_says_so() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let first = TeamServer::start(&url);
    first.call("create_entity", json!({ "name": "Ada", "entity_type": "Author", "observations": ["sails"] }));
    drop(first);
    // They are read last.
    let held = HeldLock::take(&url, "LOCK TABLE quipu.entity_vector IN ACCESS EXCLUSIVE MODE");
    let model = [("QUIPU_EMBEDDING_PROVIDER", "builtin")];
    let server = TeamServer::launch_in(&url, &["--graph", super::GRAPH], &model);
    let search = || {
        let result = server.try_call("search_subgraph", json!({ "query": "sails" }), None).unwrap();
        assert_eq!(result["isError"], json!(false), "{result}");
        let content = &result["structuredContent"];
        (content["entities"][0]["name"] == json!("Ada"), content["_incomplete"].as_str().map(str::to_owned))
    };
    let asked = Instant::now();
    let (_, incomplete) = search();
    assert!(incomplete.is_some_and(|why| why.starts_with("memory is still being read: ")));
    assert!(asked.elapsed() < BOUND, "it took {:?}", asked.elapsed());
    wait_for("what has been read is found", || {
        let (is_found, incomplete) = search();
        incomplete.unwrap().starts_with("memory is still being read: 1 entities are read so far") && is_found
    });
    drop(held);
    wait_for("memory is read", || search() == (true, None));
}
