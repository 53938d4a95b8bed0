//! `quipu index`: what it takes in, and what it leaves alone.

use crate::sandbox::{Sandbox, check};

#[test]
fn index_reads_changed_notes_and_modifies_none() {
    let vault = Sandbox::example();
    let before = vault.files();
    check("index_first", &vault.run(&["index"]).expect(0));
    check("index_again", &vault.run(&["index"]).expect(0));
    check("index_rebuild", &vault.run(&["index", "--rebuild"]).expect(0));
    assert_eq!(vault.files(), before, "every byte is as it was");
    assert_eq!(vault.read(".quipu/.gitignore"), "*\n");

    vault.write("new.md", "[[Power]]");
    std::fs::remove_file(vault.root().join("log/2025-07-19.md")).unwrap();
    let root = vault.root().display().to_string();
    check("index_json", &vault.run(&["index", &root, "--json"]).expect(0));
}

#[test]
fn index_returns_with_coarse_vectors_and_waits_for_full_ones_on_request() {
    let vault = Sandbox::example();
    let embedding = || vault.run(&["status", "--json"]).expect(0).json()["embedding"].clone();
    let counts = |json: &serde_json::Value| (json["coarse"].as_u64().unwrap(), json["embedded"].as_u64().unwrap());
    assert_eq!(counts(&vault.run(&["index", "--no-embed", "--json"]).expect(0).json()), (0, 0));
    assert_eq!(embedding(), serde_json::json!({"passages": 37, "embedded": 0, "full": 0}));
    let ran = vault.run(&["index", "--json"]).expect(0);
    assert_eq!(counts(&ran.json()), (37, 0));
    assert!(ran.stderr.contains("0 of them with the full model (0 %); a running server or"), "{ran}");
    assert_eq!(embedding(), serde_json::json!({"passages": 37, "embedded": 37, "full": 0}));
    let found = vault.run(&["search", "telltale", "--json"]).expect(0);
    assert_eq!(found.stderr, "", "every passage is found by meaning: {found}");
    let ran = vault.run(&["index", "--wait", "--json"]).expect(0);
    assert_eq!(counts(&ran.json()), (0, 37), "{ran}");
    // On a busy machine it takes long enough to show its progress.
    assert!(ran.stderr.lines().all(|line| line.starts_with("embedding: ")), "{ran}");
    assert_eq!(embedding(), serde_json::json!({"passages": 37, "embedded": 37, "full": 37}));
    vault.run(&["index", "--wait", "--no-embed"]).expect(2);
}

#[test]
fn a_vault_that_cannot_hold_an_index_is_indexed_in_memory() {
    let vault = Sandbox::of("//- a.md\nAlpha [[b]]\n//- b.md\nBeta\n//- .quipu\na file where the folder should be\n");
    let ran = vault.run(&["index"]).expect(0);
    check("index_in_memory", &ran);
    assert_eq!(vault.run(&["search", "beta", "--json"]).expect(0).json()["hits"][0]["path"], "b.md");
}

#[test]
fn a_folder_without_write_permission_is_indexed_in_memory() {
    use std::os::unix::fs::PermissionsExt;
    let vault = Sandbox::of("//- a.md\nAlpha\n");
    let root = vault.root();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o555)).unwrap();
    let can_write_anyway = std::fs::write(root.join("probe"), "").is_ok();
    if can_write_anyway {
        println!("left out: this user writes into folders without permission (root)");
    } else {
        let ran = vault.run(&["index"]).expect(0);
        assert!(ran.stderr.contains("warning: cannot keep the index in"), "{ran}");
        assert_eq!(vault.run(&["search", "alpha", "--json"]).expect(0).json()["hits"][0]["path"], "a.md");
    }
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn read_only_commands_do_not_create_a_vault() {
    let vault = Sandbox::of("//- a.md\nAlpha\n");
    for arguments in [&["status"][..], &["search", "alpha"], &["doctor"], &["restore"], &["call", "list_nodes"]] {
        vault.run(arguments).expect(0);
        assert!(!vault.root().join(".quipu").exists(), "{arguments:?}");
    }
}
