//! `quipu call`: the same answers that an agent gets.

use crate::sandbox::{Sandbox, check};

#[test]
fn call_prints_the_answer_of_a_tool() {
    let vault = Sandbox::example();
    let ran = vault.run(&["call", "get_node", r#"{"id": "station/POWER.md"}"#]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    assert_eq!(ran.json()["id"], "station/power.md");
    assert_eq!(ran.stderr, "", "the example has a broken link in another note");
    let from_stdin = vault.run_with_stdin(&["call", "get_node", "-"], r#"{"id": "station/power.md"}"#).expect(0);
    assert_eq!(from_stdin.stdout, ran.stdout);
}

#[test]
fn warnings_of_an_answer_go_to_stderr_one_line_each() {
    let vault = Sandbox::of("//- a.md\n[[nowhere]] [[gone]]\n");
    let ran = vault.run(&["call", "get_node", r#"{"id": "a.md"}"#]).expect(0);
    assert_eq!(ran.json()["id"], "a.md", "stdout has the answer alone");
    let told = "warning: \"a.md\": broken link to \"gone\"\nwarning: \"a.md\": broken link to \"nowhere\"\n";
    assert_eq!(ran.stderr, told);
    let missing = vault.run(&["call", "get_node", r#"{"id": "aa.md"}"#]).expect(0);
    assert!(missing.stderr.contains("warning: ") && missing.stderr.contains("a.md"), "{missing}");
}

#[test]
fn broken_links_of_other_notes_are_not_reported() {
    let vault = Sandbox::of("//- a.md\nAlpha\n//- b.md\n[[1]] [[2]] [[3]] [[4]] [[5]]\n//- c.md\n[[gone]]\n");
    assert_eq!(vault.run(&["call", "get_node", r#"{"id": "a.md"}"#]).expect(0).stderr, "");
    let ran = vault.run(&["call", "get_node", r#"{"id": "c.md"}"#]).expect(0);
    assert_eq!(ran.stderr, "warning: \"c.md\": broken link to \"gone\"\n");
    vault.run(&["call", "edit_node", r#"{"id": "a.md", "edits": [{"op": "append", "text": "more"}]}"#]).expect(0);
    assert_eq!(vault.run(&["history", "a.md"]).expect(0).stderr, "");
}

#[test]
fn a_tool_can_write() {
    let vault = Sandbox::example();
    let arguments = r#"{"id": "log/2025-08-01.md", "title": "A dry day", "content": "Nothing fell. [[Rain Gauge]]"}"#;
    vault.run(&["call", "create_node", arguments]).expect(0);
    assert!(vault.read("log/2025-08-01.md").ends_with("Nothing fell. [[Rain Gauge]]"));
    let again = vault.run(&["call", "create_node", arguments]).expect(1);
    assert_eq!(again.json()["error"]["code"], "NODE_EXISTS", "stdout has the response that an agent gets");
    check("call_fails", &again);
}

#[test]
fn tools_and_their_schemas_are_printed() {
    let vault = Sandbox::example();
    check("call_list", &vault.run(&["call"]).expect(0));
    let schema = vault.run(&["call", "get_node", "--schema"]).expect(0).json();
    assert!(schema["properties"]["id"].is_object(), "{schema}");
    vault.write(".quipu/config.toml", "toolsets = [\"docs\"]\n");
    let listed = vault.run(&["call"]).expect(0).stdout;
    assert!(listed.starts_with("list_documents") && !listed.contains("get_node"), "{listed}");
}

#[test]
fn a_mistyped_call_is_a_usage_error() {
    let vault = Sandbox::example();
    check("call_unknown_tool", &vault.run(&["call", "get_nod", "{}"]).expect(2));
    check("call_not_json", &vault.run(&["call", "get_node", "{id: 1}"]).expect(2));
    check("call_not_an_object", &vault.run(&["call", "get_node", "[]"]).expect(2));
}
