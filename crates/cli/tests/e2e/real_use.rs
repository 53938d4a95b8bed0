//! What people met in daily use, once each over the built program: near names, ties, comments, permissions, a stopped process.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made and looked at here")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, LEGACY, PATIENCE, QUIPU, ids, serve_command, vault, warnings};

/// A process that ends with the test.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn mistyped_and_missing_names_get_near_names() {
    let mut client = Client::open("//- notes/Graph View.md\n//- other.md\n[[Graph View]]\n");
    let resolved = client.answer("resolve_nodes", json!({ "names": ["grpah view"] }));
    assert_eq!(resolved[0]["match"], "notes/graph view.md", "{resolved}");
    for (tool, arguments, missing) in [
        ("get_node", json!({ "id": "Graph view" }), "Graph view"),
        ("get_neighbors", json!({ "id": "graph veiw.md" }), "graph veiw.md"),
        ("find_path", json!({ "source": "other.md", "target": "grpah view.md" }), "grpah view.md"),
    ] {
        let said = warnings(&client.call(tool, arguments));
        let expected = format!("no note has the id \"{missing}\"; near names: \"notes/graph view.md\"");
        assert_eq!(said, [expected], "{tool}");
    }
}

#[test]
fn every_result_of_a_search_says_why_it_is_there() {
    let mut client =
        Client::open("//- a.md\n# Storm\nWind and rain.\n//- b.md\nA quiet day. [[a]]\n//- c.md\nNumbers.\n");
    for query in ["zzzzq", "???", "wind and rain", "quiet", "storm a"] {
        let answer = client.answer("ubp_search", json!({ "query": query }));
        for page in answer["results"].as_array().unwrap() {
            assert!(page["relevance_reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{query}: {page}");
        }
    }
}

#[test]
fn one_page_does_not_fill_a_search_for_words() {
    let sections: String = (0..30).map(|number| format!("## Cups {number}\ncups cups cups\n")).collect();
    let others: String = (0..4).map(|number| format!("//- other {number}.md\nA text with cups once.\n")).collect();
    let mut client = Client::open(&format!("//- all.md\n{sections}{others}"));
    let answer = client.answer("ubp_fulltext_search", json!({ "query": "cups", "limit": 7 }));
    let of_one = |row: &&Value| row["filepath"] == "all.md";
    let results = answer["results"].as_array().unwrap();
    assert_eq!((results.len(), results.iter().filter(of_one).count()), (7, 3), "{answer}");
}

#[test]
fn equal_scores_are_in_the_order_of_ids() {
    let mut client =
        Client::open("//- c.md\nanemometer\n//- a.md\nanemometer\n//- b/d.md\nanemometer\n//- b.md\nanemometer\n");
    // By meaning too, as soon as the notes are embedded.
    for _ in 0..20 {
        let found = client.answer("search", json!({ "query": "anemometer" }));
        let row = |row: &Value| (row["score"].as_f64().unwrap(), row["id"].as_str().unwrap().to_owned());
        let shown: Vec<(f64, String)> = found.as_array().unwrap().iter().map(row).collect();
        assert_eq!(shown.len(), 4, "{found}");
        assert!(shown.is_sorted_by(|a, b| a.0 > b.0 || a.0 == b.0 && a.1 < b.1), "{shown:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn comments_in_a_list_of_tags_stay() {
    let mut client = Client::open("//- a.md\n---\ntags:\n  - one # why\n  # about two\n  - two\n---\ntext\n");
    client.answer("update_node", json!({ "id": "a.md", "tags": ["one", "two", "three"] }));
    let text = client.read("a.md");
    assert!(text.contains("# why") && text.contains("# about two") && text.contains("three"), "{text}");
}

/// Through a terminal of its own, which `script` makes.
#[test]
fn serve_on_a_terminal_names_the_command_that_connects_a_client() {
    let folder = vault("//- a.md\n");
    let served = format!("'{QUIPU}' serve '{}'", folder.path().display());
    let mut command = Command::new("script");
    let Ok(ran) = command.args(["-q", "-e", "-c", &served, "/dev/null"]).stdin(Stdio::null()).output() else {
        return quipu_testkit::skip("there is no program `script` to make a terminal with");
    };
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.contains(&format!("quipu install CLIENT --vault {}", folder.path().display())), "{said}");
}

#[test]
fn write_behind_a_stopped_process_fails_in_time_and_names_it() {
    let mut client = Client::open("//- a.md\ntext\n");
    client.answer("create_node", json!({ "id": "b.md", "content": "first\n", "tags": [] }));
    let lock = client.root().join(".quipu/write.lock");
    // Without a fork, so that the process that is stopped has the lock.
    let Ok(holder) = Command::new("flock").arg("-F").arg(&lock).args(["sleep", "600"]).spawn() else {
        return quipu_testkit::skip("there is no program `flock`");
    };
    let holder = Helper(holder);
    let pid = holder.0.id().to_string();
    let is_held = || std::fs::File::open(&lock).unwrap().try_lock().is_err();
    let start = Instant::now();
    while !is_held() {
        assert!(start.elapsed() < PATIENCE, "`flock` does not lock");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-s", "STOP", &pid]).status().unwrap().success());
    let start = Instant::now();
    let (_, said) = client.error("create_node", json!({ "id": "c.md", "content": "x\n", "tags": [] }));
    assert!(start.elapsed() < Duration::from_secs(50), "{:?}", start.elapsed());
    assert!(said.contains(&format!("process {pid} (")) && said.contains("stopped"), "{said}");
    drop(holder);
    client.answer("create_node", json!({ "id": "c.md", "content": "x\n", "tags": [] }));
}

#[test]
fn undo_of_a_locked_memory_fails_in_time_and_shows_no_database_error() {
    let mut client = Client::open("//- a.md\n");
    client.answer("create_entity", json!({ "name": "Ada", "entity_type": "x" }));
    let memory = client.root().join(".quipu/memory.db");
    let other = rusqlite::Connection::open(memory).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    let ran = client.command(&["undo"]);
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("locked") && said.contains("retry"), "{said}");
    assert!(!said.contains("database is locked"), "{said}");
}

#[test]
fn notes_behind_symbolic_links_are_watched() {
    let folder = vault("//- rdir/one.md\n1\n//- .gitignore\nhidden/\n//- hidden/two.md\n2\n");
    symlink("later", folder.path().join("dangling")).unwrap();
    symlink("rdir", folder.path().join("ldir")).unwrap();
    symlink("hidden", folder.path().join("shown")).unwrap();
    let mut client = Client::open_in(folder, &[]);
    let expect = |client: &mut Client, id: &str, is_there: bool| {
        client.wait_for("nodes_exist", json!({ "ids": [id] }), &json!({ id: is_there }));
    };
    client.write("sentinel.md", "");
    expect(&mut client, "sentinel.md", true);
    client.write("later/three.md", "3\n");
    expect(&mut client, "dangling/three.md", true);
    client.write("hidden/four.md", "4\n");
    expect(&mut client, "shown/four.md", true);
    std::fs::remove_dir_all(client.root().join("rdir")).unwrap();
    expect(&mut client, "ldir/one.md", false);
    client.write("rdir/five.md", "5\n");
    expect(&mut client, "ldir/five.md", true);
}

/// The names and modes of the files in a folder but for the note.
fn others(folder: &Path, note: &str) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).unwrap().filter_map(Result::ok);
    let files = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?)));
    let files = files.filter(|(name, metadata)| name != note && metadata.is_file());
    files.map(|(name, metadata)| (name, metadata.permissions().mode() & 0o777)).collect()
}

#[test]
fn private_note_has_no_readable_temporary_file() {
    let folder = vault("//- sub/secret.md\ntext\n");
    let sub = folder.path().join("sub");
    std::fs::set_permissions(sub.join("secret.md"), PermissionsExt::from_mode(0o600)).unwrap();
    let mut client = Client::open_in(folder, &[]);
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                seen.extend(others(&sub, "secret.md"));
            }
            seen
        });
        for round in 0..10 {
            let text = format!("{round} {}\n", "secret ".repeat(500_000));
            client.answer("update_node", json!({ "id": "sub/secret.md", "content": text }));
        }
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    assert!(!seen.is_empty(), "no temporary file was seen");
    assert!(seen.iter().all(|(_, mode)| *mode == 0o600), "{seen:?}");
}

#[test]
fn notes_of_an_unreadable_folder_stay_in_the_index() {
    if !rustix::process::geteuid().is_root() {
        return quipu_testkit::skip("only root can run a program as another account, and root can read every folder");
    }
    let folder = vault("//- sub/kept.md\ntext\n//- a.md\n[[kept]]\n");
    let own = |script: &str| {
        let ran = Command::new("sh").args(["-ec", script]).current_dir(folder.path()).status().unwrap();
        assert!(ran.success(), "{script}");
    };
    own("chown -R 64002 .");
    let serve = || {
        let mut command = serve_command(folder.path(), &[]);
        command.uid(64_002).gid(64_002).env("HOME", "/nonexistent");
        Client::start_with(TempDir::new().unwrap(), command).shake_hands(LEGACY)
    };
    let mut client = serve();
    assert_eq!(client.answer("list_nodes", json!({}))["total"], 2);
    client.close();
    own("chmod 000 sub");
    let mut client = serve();
    let listed = client.answer("list_nodes", json!({}));
    assert_eq!(ids(&listed["nodes"]), ["a.md", "sub/kept.md"]);
    client.close();
    own("chmod 700 sub");
}
