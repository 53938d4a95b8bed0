//! Notes and folders under another path: every link keeps its meaning, in one write.

#![expect(clippy::disallowed_methods, reason = "a test's vault is made here")]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, files_below, first_block, ids, vault, warnings};

const VAULT: &str = "\
//- projects/Boat/Plan.md
---
aliases: [The Plan]
---
[log](log/day.md) [[Parts]] [home](../../Home.md#top) ![photo](photo.png)
## Part
//- projects/Boat/log/day.md
[plan](../Plan.md#part) and [[projects/Boat/Plan|by path]]
//- projects/Boat/Parts.md
Sails.
//- projects/Boat/photo.png
not a note
//- Home.md
---
depends_on: \"[[projects/Boat/Plan]]\"
---
[[Plan]], [[The Plan]], ![[projects/Boat/Plan#Part]], [md](projects/Boat/Plan.md), [day](<projects/Boat/log/day.md>)
";

#[test]
fn folder_moves_in_one_write_and_back() {
    let mut client = Client::open(VAULT);
    let before = files_below(client.root());
    let answer = client.answer("move_node", json!({ "id": "projects/boat/", "to": "Archive/Old Boat/" }));
    let moved: Vec<_> = answer["moved"].as_array().unwrap().iter().map(|note| note["id"].as_str().unwrap()).collect();
    let expected = ["archive/old boat/log/day.md", "archive/old boat/parts.md", "archive/old boat/plan.md"];
    assert_eq!(moved, expected, "{answer}");
    assert_eq!(answer["updated_links"], json!(["archive/old boat/log/day.md", "home.md"]));
    assert_eq!(answer["other_files"], 1);
    assert_eq!(
        client.read("Home.md"),
        "---\ndepends_on: \"[[Archive/Old Boat/Plan]]\"\n---\n[[Plan]], [[The Plan]], \
         ![[Archive/Old Boat/Plan#Part]], [md](Archive/Old%20Boat/Plan.md), [day](<Archive/Old Boat/log/day.md>)\n"
    );
    assert_eq!(
        client.read("Archive/Old Boat/Plan.md"),
        "---\naliases: [The Plan]\n---\n[log](log/day.md) [[Parts]] [home](../../Home.md#top) \
         ![photo](photo.png)\n## Part\n",
        "files that are not notes move along"
    );
    assert_eq!(client.read("Archive/Old Boat/photo.png"), "not a note\n");
    let linking = client.answer("get_neighbors", json!({ "id": "archive/old boat/plan.md", "direction": "in" }));
    assert_eq!(ids(&linking), ["archive/old boat/log/day.md", "home.md"]);
    client.answer("move_node", json!({ "id": "archive/old boat/", "to": "projects/Boat/" }));
    assert!(!client.root().join("Archive/Old Boat").exists(), "an empty folder does not stay");
    assert_eq!(files_below(client.root()), before, "moving back is the undo");
}

#[test]
fn refused_move_changes_nothing() {
    let mut client = Client::open(&format!("{VAULT}//- archive/log/day.md\nin the way\n"));
    let before = files_below(client.root());
    let (code, message) = client.error("move_node", json!({ "id": "projects/Boat/", "to": "Archive/" }));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("NODE_EXISTS", "archive/log/day.md already exists; choose another name or update that note")
    );
    for (id, to, code) in [
        ("projects/boat/plan.md", "Home.md", "NODE_EXISTS"),
        ("projects/boat/plan.md", "../outside.md", "INVALID_PARAMS"),
        ("projects/boat/plan.md", "projects", "INVALID_PARAMS"),
        ("projects/boat/none.md", "x.md", "NODE_NOT_FOUND"),
        ("none/", "x/", "NODE_NOT_FOUND"),
        ("projects/", "projects/Boat/", "INVALID_PARAMS"),
    ] {
        assert_eq!(client.error("move_node", json!({ "id": id, "to": to })).0, code, "{id} to {to}");
    }
    assert_eq!(files_below(client.root()), before);
}

/// The author of a note decides how many of its links cannot be rewritten, and every write waits for a move.
#[test]
fn move_that_many_links_prevent_is_refused_at_once() {
    let code_after_each = "[[a]] `c`\n\n".repeat(2500);
    let mut client = Client::open(&format!("//- a.md\nA\n//- many.md\n{code_after_each}"));
    let before = files_below(client.root());
    let started = Instant::now();
    let (code, message) = client.error("move_node", json!({ "id": "a.md", "to": "x`y.md" }));
    let took = started.elapsed();
    assert_eq!(code, "LINK_INTEGRITY", "{message}");
    assert!(message.contains("the link to a in many.md cannot be rewritten"), "{message}");
    assert!(took < Duration::from_secs(7), "{took:?}: each link was tried");
    assert_eq!(files_below(client.root()), before);
}

#[test]
fn edit_by_another_program_moves_along() {
    let mut client = Client::open("//- a.md\nold\n//- b.md\n[a](a.md)\n");
    client.answer("get_node", json!({ "id": "a.md" }));
    std::fs::write(client.root().join("a.md"), "edited by hand\n").unwrap();
    client.answer("move_node", json!({ "id": "a.md", "to": "deep/" }));
    assert_eq!((client.read("deep/a.md"), client.read("b.md")), ("edited by hand\n".into(), "[a](deep/a.md)\n".into()));
}

#[test]
fn two_agents_move_and_edit_the_same_notes() {
    let mut one = Client::open_in(vault("//- a.md\nA\n//- b.md\n[[a]] and [md](a.md)\n"), &[]);
    let mut two = one.join(&[]);
    two.answer("get_node", json!({ "id": "b.md" }));
    one.answer("move_node", json!({ "id": "a.md", "to": "x/" }));
    let (code, message) = two.error("update_node", json!({ "id": "b.md", "content": "blind\n" }));
    assert_eq!((code.as_str(), message.contains("changed elsewhere")), ("PROVIDER_ERROR", true), "{message}");
    assert_eq!(one.read("b.md"), "[[a]] and [md](x/a.md)\n");
    assert_eq!(two.error("move_node", json!({ "id": "a.md", "to": "y/" })).0, "NODE_NOT_FOUND");
    assert_eq!(two.answer("move_node", json!({ "id": "x/a.md", "to": "y/" }))["id"], "y/a.md");
    assert_eq!(two.read("b.md"), "[[a]] and [md](y/a.md)\n");
    one.answer("get_node", json!({ "id": "b.md" }));
    one.answer("update_node", json!({ "id": "b.md", "content": "mine\n" }));
}

#[test]
fn symbolic_link_to_a_moved_note_is_reported() {
    let mut client = Client::open("//- a.md\nA\n");
    std::os::unix::fs::symlink("a.md", client.root().join("link.md")).unwrap();
    client.wait_for("nodes_exist", json!({ "ids": ["link.md"] }), &json!({ "link.md": true }));
    let result = client.call("move_node", json!({ "id": "a.md", "to": "x/" }));
    assert!(warnings(&result).iter().any(|warning| warning.contains("\"link.md\": this symbolic link")), "{result}");
}

#[test]
fn folder_moves_with_its_other_files_except_excluded_ones() {
    let vault = vault(
        "//- old/a.md\n![p](img/p.png) [files](img/) [here](./)\n//- x.md\n![p](old/img/p.png) [s](old/secret/key.txt)\n//- .gitignore\nsecret/\n*.log\n",
    );
    let picture: Vec<u8> = (0..=255).collect();
    for (path, bytes) in [
        ("img/p.png", &picture[..]),
        ("secret/key.txt", b"key"),
        ("run.log", b"log"),
        (".env", b"env"),
        ("data.csv", b"1"),
    ] {
        let file = vault.path().join("old").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
    std::os::unix::fs::symlink("data.csv", vault.path().join("old/link.csv")).unwrap();
    let mut client = Client::open_in(vault, &[]);
    let result = client.call("move_node", json!({"id": "old/", "to": "new/place/"}));
    let answer = first_block(&result);
    assert_eq!(
        (&answer["other_files"], &answer["updated_links"]),
        (&json!(2), &json!(["new/place/a.md", "x.md"])),
        "{result}"
    );
    let said = warnings(&result);
    let kept = "4 files or folders stay, since they are hidden, excluded, git-ignored or symbolic links: \"old/.env\", \
        \"old/link.csv\", \"old/run.log\", \"old/secret/\"";
    assert!(said.iter().any(|warning| warning.ends_with(kept)), "{said:?}");
    let files: Vec<String> = files_below(client.root())
        .into_keys()
        .map(|path| path.to_str().unwrap().to_owned())
        .filter(|path| !path.contains(".quipu"))
        .collect();
    let expected = [
        ".gitignore",
        "new/place/a.md",
        "new/place/data.csv",
        "new/place/img/p.png",
        "old/.env",
        "old/link.csv",
        "old/run.log",
        "old/secret/key.txt",
        "x.md",
    ];
    for path in expected {
        assert!(files.iter().any(|file| file.ends_with(path)), "{path} is not in {files:?}");
    }
    assert_eq!(std::fs::read(client.root().join("new/place/img/p.png")).unwrap(), picture);
    assert_eq!(client.read("x.md"), "![p](new/place/img/p.png) [s](old/secret/key.txt)\n");
    // `img` moved as a whole; of the folder itself a part stays.
    assert_eq!(client.read("new/place/a.md"), "![p](img/p.png) [files](img/) [here](../../old/)\n");
    // A file in the way refuses the whole.
    client.write("old/data.csv", "2");
    client.write("old/b.md", "b");
    client.answer("get_node", json!({"id": "old/b.md"}));
    let (code, message) = client.error("move_node", json!({"id": "old/", "to": "new/place/"}));
    assert_eq!(
        (code.as_str(), message.starts_with("new/place/data.csv already exists")),
        ("NODE_EXISTS", true),
        "{message}"
    );
    assert_eq!((client.read("old/data.csv"), client.read("old/b.md")), ("2".into(), "b".into()));
}

/// A vault with a symbolic link to one of its folders.
fn linked(files: &str, link: &str, folder: &str) -> Client {
    let vault = vault(files);
    std::os::unix::fs::symlink(folder, vault.path().join(link)).unwrap();
    Client::open_in(vault, &[])
}

#[test]
fn links_follow_a_note_that_leaves_a_linked_folder() {
    for id in ["notes/plan.md", "current/plan.md"] {
        let files =
            "//- notes/plan.md\ntext\n//- src.md\n[[plan]]\n//- by path.md\n[[current/plan]] [x](notes/plan.md)\n";
        let mut client = linked(files, "current", "notes");
        let refused = client.error("move_node", json!({ "id": id, "to": "archive/", "update_links": false }));
        assert_eq!(refused.0, "LINK_INTEGRITY", "{id}");
        let moved = client.answer("move_node", json!({ "id": id, "to": "archive/" }));
        assert_eq!(moved["updated_links"], json!(["by path.md"]), "{id}: {moved}");
        assert_eq!(client.read("src.md"), "[[plan]]\n", "{id}");
        assert_eq!(client.read("by path.md"), "[[archive/plan]] [x](archive/plan.md)\n", "{id}");
        let links = client.answer("get_neighbors", json!({ "id": "archive/plan.md", "direction": "in" }));
        assert_eq!(ids(&links), ["by path.md", "src.md"], "{id}");
        let known = client.answer("nodes_exist", json!({ "ids": ["current/plan.md"] }));
        assert_eq!(known, json!({ "current/plan.md": false }), "{id}");
    }
}

#[test]
fn link_to_a_moved_folder_is_reported_and_links_through_it_follow() {
    let mut client = linked("//- a/one.md\ntext\n//- src.md\n[[ldir/one]] [x](ldir/one.md)\n", "ldir", "a");
    let result = client.call("move_node", json!({ "id": "a/", "to": "b/" }));
    let said = warnings(&result);
    assert!(said.iter().any(|told| told.starts_with("\"ldir\": this symbolic link led to what was moved")), "{said:?}");
    assert_eq!(client.read("src.md"), "[[b/one]] [x](b/one.md)\n");
}

/// Only the files of the folder itself move; what is behind a link in it stays where it is.
#[test]
fn files_behind_a_link_in_a_moved_folder_stay() {
    let vault = vault("//- p/a/one.md\ntext\n//- out/two.md\nother\n//- src.md\n[[p/inner/one]] [[p/outer/two]]\n");
    std::os::unix::fs::symlink("a", vault.path().join("p/inner")).unwrap();
    std::os::unix::fs::symlink("../out", vault.path().join("p/outer")).unwrap();
    let mut client = Client::open_in(vault, &[]);
    let moved = client.answer("move_node", json!({ "id": "p/", "to": "q/" }));
    assert_eq!(moved["moved"].as_array().map(Vec::len), Some(1), "{moved}");
    assert!(client.has("q/a/one.md") && client.has("out/two.md") && client.has("p/outer/two.md"));
    assert_eq!(client.read("src.md"), "[[q/a/one]] [[p/outer/two]]\n");
}

#[test]
fn folder_moved_through_a_symbolic_link_takes_its_files_and_their_links_along() {
    const FILES: &str = "//- proj/a.md\n![own](img/x.png)\n//- proj/img/x.png\nimage\n\
        //- src.md\n![real](proj/img/x.png) ![linked](ldir/img/x.png) [[ldir/a]]\n";
    for id in ["ldir/", "proj/"] {
        let mut client = linked(FILES, "ldir", "proj");
        let moved = client.answer("move_node", json!({ "id": id, "to": "new/" }));
        assert_eq!(moved["moved"], json!([{ "old_id": "proj/a.md", "id": "new/a.md" }]), "{id}");
        assert_eq!(client.read("src.md"), "![real](new/img/x.png) ![linked](new/img/x.png) [[new/a]]\n", "{id}");
        assert_eq!(client.read("new/a.md"), "![own](img/x.png)\n", "{id}");
        assert!(client.has("new/img/x.png") && !client.root().join("proj").exists(), "{id}");
    }
}

#[test]
fn undone_folder_move_restores_the_paths_through_a_symbolic_link() {
    let mut client = linked("//- proj/a.md\ntext\n//- src.md\n[[ldir/a]]\n", "ldir", "proj");
    client.answer("move_node", json!({ "id": "proj/", "to": "new/" }));
    client.answer("undo_change", json!({ "change": "n1" }));
    let known = client.answer("nodes_exist", json!({ "ids": ["ldir/a.md", "proj/a.md", "new/a.md"] }));
    assert_eq!(known, json!({ "ldir/a.md": true, "proj/a.md": true, "new/a.md": false }));
    assert_eq!(client.read("src.md"), "[[ldir/a]]\n");
    let links = client.answer("get_neighbors", json!({ "id": "ldir/a.md", "direction": "in" }));
    assert_eq!(ids(&links), ["src.md"]);
}
