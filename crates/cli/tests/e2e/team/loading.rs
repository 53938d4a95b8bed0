//! A server that is still reading its notes: what it says of a note is true, and a list says that it is incomplete.

use std::thread;
use std::time::{Duration, Instant};

use quipu_testkit::postgres;
use serde_json::{Value, json};

use super::{HeldLock, TeamServer, create_graph, notes, push, wait_for};
use quipu_core::model::VaultPath;
use quipu_core::ports::VaultFiles;

/// So many that a server reads for longer than a list waits, which is two seconds.
const NOTES: usize = 16_000;

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
    // Alone, so that it is answered before everything is read, however busy the machine is.
    let listed = server.call("list_nodes", json!({ "limit": 1 }));
    let last = path(NOTES - 1);
    let calls: Vec<(&str, Value)> = vec![
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
    assert!(listed["total"].as_u64().unwrap() < NOTES as u64, "not enough notes to test with: {listed}");
    assert!(listed["_incomplete"].as_str().unwrap().contains("still being indexed"), "{listed}");
    assert_eq!(content(0)["title"], json!(format!("Note {}", NOTES - 2)), "{}", answers[0].0);
    assert_eq!(content(1)[path(NOTES - 3).to_lowercase()], json!(true), "{}", content(1));
    assert_eq!(content(1)["no/such.md"], json!(false), "{}", content(1));
    assert_eq!(content(1).as_object().unwrap().len(), 2, "every field of this answer is an id");
    let written = notes(&url).read(&VaultPath::parse(&last).unwrap()).unwrap().unwrap();
    assert!(String::from_utf8(written.bytes).unwrap().ends_with("written early\n"), "acknowledged");
    // It may have waited for the end; otherwise links of notes that are not read yet would break.
    let moved = &answers[6].0;
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
        incomplete.unwrap().starts_with("memory is still being read: 2 of 2 entities and observations") && is_found
    });
    drop(held);
    wait_for("memory is read", || search() == (true, None));
}

/// A call that needs all of memory waits for a bounded time. When it gives up, it has changed nothing, and says when to try again.
#[test]
fn write_that_needs_unread_memory_gives_up_and_changes_nothing() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    let first = TeamServer::start(&url);
    first.call("create_node", json!({ "id": "plan.md", "content": "The plan." }));
    let ada = json!({ "name": "Ada", "entity_type": "Author", "observations": ["has a [[plan]]"] });
    let ada = first.call("create_entity", ada)["entity_id"].clone();
    drop(first);
    let held = HeldLock::take(&url, "LOCK TABLE quipu.entity_vector IN ACCESS EXCLUSIVE MODE");
    let model = [("QUIPU_EMBEDDING_PROVIDER", "builtin")];
    let server = TeamServer::launch_in(&url, &["--graph", super::GRAPH], &model);
    let calls = [
        ("create_entity", json!({ "name": "Grace", "entity_type": "Author" })),
        ("bulk_update", json!({ "entities": [{ "name": "Joan", "entity_type": "Author" }] })),
        ("suggest_merges", json!({})),
        ("update_node", json!({ "id": "plan.md", "title": "idea" })),
        ("move_node", json!({ "id": "plan.md", "to": "old/plan.md" })),
    ];
    let call = |(tool, arguments): &(&str, Value)| server.try_call(tool, arguments.clone(), None).unwrap();
    let asked = Instant::now();
    thread::scope(|scope| {
        let waiting: Vec<_> = calls.iter().map(|asked| scope.spawn(move || call(asked))).collect();
        thread::sleep(Duration::from_secs(1));
        // These do not need it, and are not held up by those that do.
        server.call("create_observation", json!({ "entity_id": ada, "text_content": "sails" }));
        server.call("edit_node", json!({ "id": "plan.md", "edits": [{ "op": "append", "text": "More." }] }));
        assert!(waiting.iter().all(|call| !call.is_finished()), "they wait, for {:?} now", asked.elapsed());
        for ((tool, _), waiting) in calls.iter().zip(waiting) {
            let refused = waiting.join().unwrap();
            let why = "memory is still being read: 2 of 2 entities and observations so far; this call changed nothing, \
                       try again in a few seconds";
            assert_eq!(refused["isError"], json!(true), "{tool}: {refused}");
            assert!(refused.to_string().contains(why), "{tool}: {refused}");
        }
    });
    assert!(asked.elapsed() < BOUND, "it took {:?}", asked.elapsed());
    assert_eq!(server.call("list_entities", json!({}))["entities"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.call("nodes_exist", json!({ "ids": ["plan.md"] })), json!({ "plan.md": true }));
    drop(held);
    wait_for("memory is read", || call(&calls[0])["isError"] == json!(false));
    for asked in [&calls[1], &calls[2], &calls[4]] {
        let answer = call(asked);
        assert_eq!(answer["isError"], json!(false), "{asked:?}: {answer}");
    }
    let linked = server.call("get_entity", json!({ "entity_id": ada })).to_string();
    assert!(linked.contains("old/plan.md"), "the move keeps memory's links: {linked}");
}
