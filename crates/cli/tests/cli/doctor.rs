//! `quipu doctor`: what it finds, and its exit code.

use crate::sandbox::{Sandbox, check};

#[test]
fn the_example_has_one_broken_link() {
    let vault = Sandbox::example();
    check("doctor_example", &vault.run(&["doctor"]).expect(0));
    vault.run(&["doctor", "--check"]).expect(1);
    let answer = vault.run(&["doctor", "--json"]).expect(0).json();
    assert_eq!(answer["problems"], 1);
    assert_eq!(answer["groups"][0]["findings"][0]["message"], "[[Snow Board]] in line 8");
}

#[test]
fn a_healthy_vault_has_no_problems() {
    let vault = Sandbox::of("//- a.md\n[[b]]\n//- b.md\n[[a]]\n");
    vault.run(&["index"]).expect(0);
    check("doctor_healthy", &vault.run(&["doctor", "--check"]).expect(0));
}

#[test]
fn a_vault_of_which_almost_no_link_resolves_is_reported() {
    let links: String = (1..=60).map(|number| format!("[x](/docs/page-{number}/)\n")).collect();
    let vault = Sandbox::of(&format!("//- a.md\n{links}[[b]]\n//- b.md\n"));
    let advice = "only 1 of 61 links resolve; if the vault is a part of a larger site or vault, open the folder";
    for command in ["status", "doctor"] {
        let ran = vault.run(&[command]).expect(0);
        assert!(ran.stdout.contains(advice), "{ran}");
    }
    let groups = vault.run(&["doctor", "--json"]).expect(0).json()["groups"].clone();
    assert!(groups.as_array().unwrap().iter().any(|group| group["kind"] == "unresolved_links"), "{groups}");
    vault.write("a.md", "[[b]]");
    assert!(!vault.run(&["status"]).expect(0).stdout.contains("links resolve;"), "one link is too few to tell");
}

#[test]
fn every_kind_of_problem_is_reported_with_a_fix() {
    let vault = nasty();
    let before = vault.files();
    check("doctor_nasty", &vault.run(&["doctor"]).expect(0));
    let all = vault.run(&["doctor", "--all"]).expect(0).stdout;
    assert_eq!(all.matches("[[missing ").count(), 15, "{all}");
    assert!(!all.contains("more; --all"), "{all}");
    vault.run(&["doctor", "--check"]).expect(1);
    assert_eq!(vault.files(), before, "doctor only looks");
}

fn nasty() -> Sandbox {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let vault = Sandbox::of(
        "\
//- Twin.md
[[twin]]
//- twin.md
the same in other capitals
//- alone.md
nobody links here
//- yaml.md
---
title: [unclosed
---
[[alone2]]
//- deleted.md
to be deleted
",
    );
    let links: String = (1..=15).map(|number| format!("[[missing {number}]]\n")).collect();
    vault.write("links.md", links);
    vault.run(&["index"]).expect(0);
    vault.run(&["call", "delete_node", r#"{"id": "deleted.md"}"#]).expect(0);
    // As a crash in the middle of a write leaves it.
    vault.write(".0123456789abcdef-42-0.quipu-tmp", "half");
    std::fs::write(vault.root().join(OsStr::from_bytes(b"latin-\xe9.md")), "not a UTF-8 name").unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all.md", vault.root().join("dangling.md")).unwrap();
    vault
}

#[test]
fn damaged_index_is_reported_and_rebuilt() {
    let vault = Sandbox::example();
    vault.run(&["index"]).expect(0);
    vault.write(".quipu/index/catalog.db", "this was a database");
    let ran = vault.run(&["doctor", "--json"]).expect(0);
    let groups = ran.json()["groups"].clone();
    let damage = groups.as_array().unwrap().iter().find(|group| group["kind"] == "damaged_index");
    assert!(damage.is_some_and(|group| group["count"].as_u64() >= Some(1)), "{ran}");
    let hits = vault.run(&["search", "--words", "melting ice", "--json"]).expect(0).json();
    assert_eq!(hits["matched"], "phrase", "{hits}");
    let again = vault.run(&["doctor", "--json"]).expect(0).json();
    assert_eq!(again["problems"], 1, "only the broken link is left: {again}");
}

#[test]
fn unreadable_file_with_unchanged_time_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let vault = Sandbox::of("//- a.md\n[[b]]\n//- b.md\nsecret\n");
    vault.run(&["index"]).expect(0);
    let file = vault.root().join("b.md");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&file).is_ok() {
        println!("left out: this user reads files without permission (root)");
        return;
    }
    let ran = vault.run(&["doctor", "--check"]).expect(1);
    assert!(ran.stdout.contains("Files that cannot be read (1)\n  b.md"), "{ran}");
}

#[test]
fn repeated_broken_link_is_reported_once_with_its_lines() {
    let vault = Sandbox::of("//- a.md\n---\ndepends_on: [gone]\n---\n[[gone]] and [[gone]]\n\n![[gone]]\n[[gone]]\n");
    let answer = vault.run(&["doctor", "--json"]).expect(0).json();
    let findings: Vec<(&str, &serde_json::Value)> = answer["groups"][0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["message"].as_str().unwrap(), &finding["lines"]))
        .collect();
    let expected = [
        ("[[gone]] in line 2", serde_json::json!([2])),
        ("[[gone]] in lines 4, 7", serde_json::json!([4, 7])),
        ("![[gone]] in line 6", serde_json::json!([6])),
    ];
    assert_eq!(findings, expected.iter().map(|(message, lines)| (*message, lines)).collect::<Vec<_>>());
}
