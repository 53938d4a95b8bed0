//! `quipu restore`: what writes replaced or deleted comes back.

use crate::sandbox::{Sandbox, check};

#[test]
fn restored_note_is_byte_identical() {
    let vault = Sandbox::example();
    let before = vault.files();
    check("restore_empty", &vault.run(&["restore"]).expect(0));
    vault.run(&["call", "delete_node", r#"{"id": "station/power.md"}"#]).expect(0);
    assert!(!vault.root().join("station/Power.md").exists());
    check("restore_list", &vault.run(&["restore"]).expect(0));

    check("restore_deleted", &vault.run(&["restore", "STATION/power.md"]).expect(0));
    assert_eq!(vault.files(), before);
    check("restore_same", &vault.run(&["restore", "station/power.md"]).expect(0));
    let read = vault.run(&["call", "nodes_exist", r#"{"ids": ["station/power.md"]}"#]).expect(0);
    assert!(read.stdout.contains("true"), "{read}");
}

#[test]
fn restore_keeps_the_replaced_version() {
    let vault = Sandbox::of("//- a.md\nfirst\n");
    vault.run(&["call", "update_node", r#"{"id": "a.md", "content": "second"}"#]).expect(0);
    let listed = vault.run(&["restore", "--json"]).expect(0).json();
    assert_eq!(listed[0]["reason"], "replaced");
    assert_eq!(listed[0]["path"], "a.md");
    let first = listed[0]["version"].as_str().unwrap().to_owned();

    vault.write("a.md", "third, made in an editor\n");
    let restored = vault.run(&["restore", "a.md", "--version", &first, "--json"]).expect(0).json();
    assert_eq!(vault.read("a.md"), "first\n");
    let third = restored["replaced"].as_str().unwrap().to_owned();
    check("restore_replaced", &vault.run(&["restore", "a.md", "--version", &third]).expect(0));
    assert_eq!(vault.read("a.md"), "third, made in an editor\n");
}

#[test]
fn a_rename_of_case_alone_is_undone() {
    let vault = Sandbox::of("//- case.md\nold\n");
    vault.run(&["call", "update_node", r#"{"id": "case.md", "title": "Case"}"#]).expect(0);
    assert!(vault.root().join("Case.md").exists());
    let restored = vault.run(&["restore", "case.md", "--json"]).expect(0).json();
    assert!(restored["replaced"].as_str().unwrap().ends_with("/Case.md"), "{restored}");
    assert_eq!(vault.read("case.md"), "old\n");
    assert_eq!(vault.files().len(), 1);
    let again = vault.run(&["call", "get_document", r#"{"path": "case.md"}"#]).expect(0).json();
    assert_eq!(again["path"], "case.md");
}

#[test]
fn restoring_a_deleted_note_leaves_the_one_that_differs_in_case() {
    let vault = Sandbox::of("//- Case.md\nupper\n//- case.md\nlower\n");
    if !vault.root().join("Case.md").exists() || vault.read("Case.md") == vault.read("case.md") {
        return;
    }
    let before = vault.files();
    for name in ["Case.md", "case.md"] {
        let delete = ["call", "delete_node", &format!(r#"{{"id": "{name}"}}"#)];
        vault.run(&delete).expect(0);
        let again = vault.run(&delete).expect(0);
        assert!(again.stdout.contains("false"), "{again}");
        vault.run(&["restore", name]).expect(0);
        assert_eq!(vault.files(), before);
    }
}

#[test]
fn restoring_a_moved_note_reports_the_duplicate() {
    let vault = Sandbox::of("//- old.md\nText.\n");
    vault.run(&["call", "update_node", r#"{"id": "old.md", "title": "New"}"#]).expect(0);
    assert!(!vault.root().join("old.md").exists());
    check("restore_moved", &vault.run(&["restore", "old.md"]).expect(0));
    assert!(vault.root().join("old.md").exists() && vault.root().join("New.md").exists());
    vault.run(&["call", "delete_node", r#"{"id": "old.md"}"#]).expect(0);
    let restored = vault.run(&["restore", "old.md", "--json"]).expect(0).json();
    assert_eq!(restored["copies"], serde_json::json!(["New.md"]));
}

#[test]
fn missing_version_is_an_error() {
    let vault = Sandbox::example();
    check("restore_unknown", &vault.run(&["restore", "nowhere.md"]).expect(1));
    check("restore_unknown_version", &vault.run(&["restore", "a.md", "--version", "../../x"]).expect(1));
}
