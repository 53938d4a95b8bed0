//! A note under a new title, and every way there is to link to it, rewritten with it.

use serde_json::json;

use crate::client::{Client, files_below, ids, vault, warnings};

/// Renames `notes/old.md` to "New Name" beside a note with one line, and gives that line then.
fn followed(source: &str, line: &str) -> String {
    let mut client = Client::open(&format!(
        "//- notes/old.md\n---\naliases: [oldie]\ntitle: Old Title\n---\n## Part\n//- {source}\n{line}\n//- other.md\n"
    ));
    let rename = json!({ "id": "notes/old.md", "title": "New Name", "update_links": true });
    client.answer("update_node", rename);
    let linking = client.answer("get_neighbors", json!({ "id": "notes/new name.md", "direction": "in" }));
    let source_id = source.to_lowercase();
    assert_eq!(ids(&linking), [source_id.as_str()], "{line} still leads to the note");
    client.read(source).trim_end_matches('\n').to_owned()
}

#[test]
fn rename_updates_every_kind_of_link() {
    for (line, expected) in [
        // Wikilinks.
        ("[[old]]", "[[New Name]]"),
        ("[[OLD]] twice [[old]]", "[[New Name]] twice [[New Name]]"),
        ("[[old|label]]", "[[New Name|label]]"),
        ("[[old|depends_on]]", "[[New Name|depends_on]]"),
        ("[[old#Part]]", "[[New Name#Part]]"),
        ("[[old#^block|label]]", "[[New Name#^block|label]]"),
        ("[[notes/old]]", "[[notes/New Name]]"),
        ("[[notes/old.md]]", "[[notes/New Name.md]]"),
        ("[[old.md]]", "[[New Name.md]]"),
        ("![[old]]", "![[New Name]]"),
        ("![[old#Part|300]]", "![[New Name#Part|300]]"),
        ("| [[old\\|cell]] |", "| [[New Name\\|cell]] |"),
        ("[[Old Title]]", "[[New Name]]"),
        // Markdown links.
        ("[text](notes/old.md)", "[text](notes/New%20Name.md)"),
        ("[text](notes/old.md#part)", "[text](notes/New%20Name.md#part)"),
        ("[text](./notes/old.md)", "[text](./notes/New%20Name.md)"),
        ("[text](<notes/old.md>)", "[text](<notes/New Name.md>)"),
        ("[text](notes/old.md \"a title\")", "[text](notes/New%20Name.md \"a title\")"),
        ("![text](notes/old.md)", "![text](notes/New%20Name.md)"),
        ("[text][r]\n\n[r]: notes/old.md", "[text][r]\n\n[r]: notes/New%20Name.md"),
        ("[r]\n\n[r]: <notes/old.md> 'title'", "[r]\n\n[r]: <notes/New Name.md> 'title'"),
        // Frontmatter.
        ("---\ndepends_on: [\"[[old]]\"]\n---", "---\ndepends_on: [\"[[New Name]]\"]\n---"),
        ("---\nextends:\n  - old # why\n  - other\n---", "---\nextends:\n  - New Name # why\n  - other\n---"),
        // What means the note under any name, and what only looks like a link, stays.
        ("[[oldie]]", "[[oldie]]"),
        ("[[old]] `[[old]]` <!-- [[old]] -->", "[[New Name]] `[[old]]` <!-- [[old]] -->"),
        ("[[old]] [[other]] [[older]]", "[[New Name]] [[other]] [[older]]"),
    ] {
        assert_eq!(followed("a.md", line), expected);
    }
}

#[test]
fn rewritten_link_is_relative_to_its_note() {
    for (source, line, expected) in [
        ("notes/b.md", "[x](old.md)", "[x](New%20Name.md)"),
        ("deep/down/c.md", "[x](../../notes/old.md#p)", "[x](../../notes/New%20Name.md#p)"),
        ("deep/down/c.md", "[[notes/old]]", "[[notes/New Name]]"),
        ("Deep/With Space.md", "[x](../notes/old.md)", "[x](../notes/New%20Name.md)"),
    ] {
        assert_eq!(followed(source, line), expected, "{source}");
    }
}

#[test]
fn rename_updates_percent_encoded_links() {
    let mut client = Client::open("//- old name.md\n//- a.md\n[x](old%20name.md#p) [[old name]] [y](<old name.md>)\n");
    client.answer("update_node", json!({ "id": "old name.md", "title": "short", "update_links": true }));
    assert_eq!(client.read("a.md"), "[x](short.md#p) [[short]] [y](<short.md>)\n");
}

#[test]
fn note_that_links_to_itself_is_renamed_without_update_links() {
    let mut client = Client::open("//- notes/old.md\n[[old#top]] [x](old.md) [[notes/old|me]]\n");
    let renamed = client.answer("update_node", json!({ "id": "notes/old.md", "title": "New" }));
    assert_eq!(renamed["content"], "[[New#top]] [x](New.md) [[notes/New|me]]\n");
    assert_eq!(client.read("notes/New.md"), "---\ntitle: New\n---\n[[New#top]] [x](New.md) [[notes/New|me]]\n");
    assert_eq!(renamed["links"], json!([{ "id": "notes/new.md", "title": "New" }]));
}

#[test]
fn ambiguous_new_name_is_linked_with_its_folder() {
    let mut client = Client::open("//- notes/old.md\n//- new.md\n//- z/a.md\n[[old]] and [[new]]\n");
    client.answer("update_node", json!({ "id": "notes/old.md", "title": "New", "update_links": true }));
    assert_eq!(client.read("z/a.md"), "[[notes/New]] and [[new]]\n");
}

#[test]
fn text_and_tags_change_in_the_same_step() {
    let mut client = Client::open("//- old.md\n---\ntags: [x] # c\n---\nold [[old]]\n//- a.md\n[[old]]\n");
    let arguments =
        json!({ "id": "old.md", "title": "New", "content": "new [[old]]\n", "tags": ["new"], "update_links": true });
    client.answer("get_node", json!({ "id": "old.md" }));
    let result = client.call("update_node", arguments);
    assert!(result["isError"] != true, "{result}");
    assert_eq!(client.read("New.md"), "---\ntags: [new] # c\ntitle: New\n---\nnew [[New]]\n");
    assert_eq!(client.read("a.md"), "[[New]]\n");
    assert_eq!(warnings(&result), [""; 0], "no link is broken on the way");
}

#[test]
fn case_only_rename_needs_no_update_links() {
    let mut client = Client::open("//- old.md\n//- a.md\n[[old]]\n");
    let renamed = client.answer("update_node", json!({ "id": "old.md", "title": "OLD" }));
    assert_eq!((&renamed["id"], &renamed["title"]), (&json!("old.md"), &json!("OLD")));
    assert!(client.root().join("OLD.md").is_file() && !client.root().join("old.md").exists());
    assert_eq!(client.read("a.md"), "[[old]]\n");
}

#[test]
fn title_that_cannot_be_linked_is_refused() {
    let mut client = Client::open("//- old.md\ntext\n//- a.md\n[[old]]\n//- b.md\n[x](old.md)\n");
    let before = files_below(client.root());
    for title in ["C# [draft]", "see ]] there"] {
        let (code, message) =
            client.error("update_node", json!({ "id": "old.md", "title": title, "update_links": true }));
        assert_eq!(code, "INVALID_PARAMS", "{message}");
        assert!(message.contains("`title`") && message.contains("links"), "it says why: {message}");
        assert_eq!(files_below(client.root()), before);
    }
    // A Markdown link can hold anything.
    client.answer("update_node", json!({ "id": "a.md", "content": "no link\n" }));
    client.answer("update_node", json!({ "id": "old.md", "title": "C# [draft]", "update_links": true }));
    let linking = client.answer("get_neighbors", json!({ "id": "c# [draft].md", "direction": "in" }));
    assert_eq!(ids(&linking), ["b.md"], "{}", client.read("b.md"));
}

#[test]
fn own_links_of_a_renamed_note_keep_their_targets() {
    let mut client = Client::open("//- two.md\n//- sub/one.md\nsee [[two]], [x](../two.md), [[one]]\n");
    client.answer("update_node", json!({ "id": "sub/one.md", "title": "two", "update_links": true }));
    assert!(
        client.read("sub/two.md").ends_with("see [[/two]], [x](../two.md), [[two]]\n"),
        "{}",
        client.read("sub/two.md")
    );
    let out = client.answer("get_neighbors", json!({ "id": "sub/two.md", "direction": "out" }));
    assert_eq!(ids(&out), ["two.md"]);
}

#[test]
fn linking_files_that_differ_only_in_case_are_both_updated() {
    let mut client = Client::open("//- old.md\n//- Index.md\nA [[old]]\n//- index.md\nB [[old]]\n");
    if files_below(client.root()).len() == 2 {
        return quipu_testkit::skip("this disk does not tell case apart");
    }
    client.answer("update_node", json!({ "id": "old.md", "title": "New", "update_links": true }));
    assert_eq!((client.read("Index.md").as_str(), client.read("index.md").as_str()), ("A [[New]]\n", "B [[New]]\n"));
}

#[cfg(unix)]
#[test]
fn linking_file_with_two_paths_is_written_once() {
    use std::os::unix::fs::symlink;
    let files = "//- old.md\n//- real/a.md\n[[old]]\n//- b.md\n[[old]]\n//- caf\u{e9}.md\n[[old]]\n//- cafe\u{301}.md\n[[old]]\n";
    let vault = vault(files);
    symlink("real", vault.path().join("linked")).unwrap();
    symlink("b.md", vault.path().join("c.md")).unwrap();
    let mut client = Client::open_in(vault, &[]);
    client.answer("update_node", json!({ "id": "old.md", "title": "New", "update_links": true }));
    for path in ["real/a.md", "b.md", "caf\u{e9}.md", "cafe\u{301}.md"] {
        assert_eq!(client.read(path), "[[New]]\n", "{path}");
    }
    let linking = client.answer("get_neighbors", json!({ "id": "new.md", "direction": "in" }));
    assert_eq!(
        ids(&linking),
        ["b.md", "c.md", "cafe\u{301}.md", "caf\u{e9}.md", "linked/a.md", "real/a.md"],
        "the other paths are known to follow too"
    );
}

#[test]
fn rename_names_the_symbolic_links_that_it_leaves_without_a_target() {
    use std::os::unix::fs::symlink;
    let vault = vault("//- real/old.md\ntext\n//- same.md\ntext\n");
    symlink("real", vault.path().join("folder")).unwrap();
    symlink("real/old.md", vault.path().join("alias.md")).unwrap();
    symlink("alias.md", vault.path().join("second.md")).unwrap();
    let mut client = Client::open_in(vault, &[]);
    let answer = client.call("update_node", json!({ "id": "real/old.md", "title": "New" }));
    let told = warnings(&answer);
    let of = |name: &str| told.iter().find(|warning| warning.contains(name)).map(String::as_str);
    for name in ["alias.md", "second.md"] {
        let warning = of(name).unwrap_or_else(|| panic!("{name}: {told:?}"));
        assert!(warning.contains("leads nowhere") && warning.contains("real/New.md"), "{warning}");
        assert!(client.root().join(name).is_symlink(), "it is the user's file");
    }
    assert!(of("same.md").is_none() && of("folder/").is_none(), "{told:?}");
    assert_eq!(client.read("folder/New.md"), "---\ntitle: New\n---\ntext\n");
    // The same title again moves nothing.
    let told = warnings(&client.call("update_node", json!({ "id": "real/new.md", "title": "New" })));
    assert!(told.iter().all(|warning| !warning.contains("leads nowhere")), "{told:?}");
}

#[test]
fn delete_names_the_symbolic_links_that_it_leaves_without_a_target() {
    use std::os::unix::fs::symlink;
    let vault = vault("//- real/old.md\ntext\n//- same.md\ntext\n");
    symlink("real", vault.path().join("folder")).unwrap();
    symlink("real/old.md", vault.path().join("alias.md")).unwrap();
    let mut client = Client::open_in(vault, &[]);
    let told = warnings(&client.call("delete_node", json!({ "id": "real/old.md" })));
    assert!(matches!(told.as_slice(), [one] if one.starts_with("\"alias.md\": this symbolic link")), "{told:?}");
    assert!(client.root().join("alias.md").is_symlink(), "it is the user's file");
}

/// A vault with a symbolic link to one of its folders.
fn linked(files: &str, link: &str, folder: &str) -> Client {
    let vault = vault(files);
    std::os::unix::fs::symlink(folder, vault.path().join(link)).unwrap();
    Client::open_in(vault, &[])
}

/// The ids of the notes that link to a note by any of its paths.
fn linking(client: &mut Client, paths: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for path in paths {
        let found = client.answer("get_neighbors", json!({ "id": path, "direction": "in" }));
        all.extend(ids(&found).into_iter().map(str::to_owned));
    }
    all.sort();
    all.dedup();
    all
}

#[test]
fn links_follow_a_note_that_a_linked_folder_has_too() {
    let mut client = linked("//- notes/plan.md\ntext\n//- src.md\n[[plan]]\n", "current", "notes");
    let rename = json!({ "id": "notes/plan.md", "title": "roadmap" });
    assert_eq!(client.error("update_node", rename.clone()).0, "LINK_INTEGRITY");
    let mut rename = rename;
    rename["update_links"] = json!(true);
    assert_eq!(client.answer("update_node", rename)["updated_links"], json!(["src.md"]));
    assert_eq!(client.read("src.md"), "[[roadmap]]\n");
    assert_eq!(linking(&mut client, &["notes/roadmap.md", "current/roadmap.md"]), ["src.md"]);
    let known = client.answer("nodes_exist", json!({ "ids": ["current/roadmap.md", "current/plan.md"] }));
    assert_eq!(known, json!({ "current/roadmap.md": true, "current/plan.md": false }));
}

#[test]
fn links_by_every_path_follow_a_note_that_is_renamed_through_a_linked_folder() {
    const FILES: &str = "//- a/one.md\ntext\n//- src.md\n[[a/one]] [x](a/one.md) [[ldir/one]] [y](ldir/one.md)\n";
    for id in ["ldir/one.md", "a/one.md"] {
        let mut client = linked(FILES, "ldir", "a");
        let rename = json!({ "id": id, "title": "two" });
        assert_eq!(client.error("update_node", rename).0, "LINK_INTEGRITY", "{id}");
        let answer = client.answer("update_node", json!({ "id": id, "title": "two", "update_links": true }));
        assert_eq!(answer["updated_links"], json!(["src.md"]), "{id}");
        assert_eq!(client.read("src.md"), "[[a/two]] [x](a/two.md) [[ldir/two]] [y](ldir/two.md)\n", "{id}");
        assert_eq!(linking(&mut client, &["a/two.md"]), ["src.md"], "{id}");
        assert_eq!(linking(&mut client, &["ldir/two.md"]), ["src.md"], "{id}");
    }
}

#[test]
fn links_by_a_title_follow_where_only_the_title_changes() {
    let mut client = linked("//- a/one.md\n---\ntitle: Old\n---\n//- src.md\n[[Old]]\n", "ldir", "a");
    let answer = client.answer("update_node", json!({ "id": "a/one.md", "title": "one", "update_links": true }));
    assert_eq!(answer["updated_links"], json!(["src.md"]));
    assert_eq!(client.read("src.md"), "[[one]]\n");
}
