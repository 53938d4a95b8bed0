//! `quipu status`: what it tells of a vault.

use crate::sandbox::{Sandbox, check};

#[test]
fn status_tells_what_the_vault_holds() {
    let vault = Sandbox::example();
    check("status_before_index", &vault.run(&["status"]).expect(0));
    vault.run(&["index"]).expect(0);
    check("status", &vault.run(&["status"]).expect(0));
    vault.write("new.md", "Something new.");
    check("status_after_change", &vault.run(&["status"]).expect(0));
}

#[test]
fn status_as_json_has_the_fields_that_help_names() {
    let vault = Sandbox::example();
    vault.run(&["index"]).expect(0);
    let ran = vault.run(&["status", "--json"]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    let status = ran.json();
    assert_eq!(status["vault"], vault.root().display().to_string());
    assert_eq!(status["notes"], 16);
    assert_eq!(status["links"]["broken"], 1);
    assert_eq!(status["index"]["owner"], "none");
    assert_eq!(status["index"]["place"], vault.root().join(".quipu/index").display().to_string());
    assert!(status["index"]["bytes"].as_u64().unwrap() > 0);
    assert!(status["index"]["written_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(status["since"], serde_json::json!({ "added": 0, "changed": 0, "removed": 0 }));

    let help = vault.run(&["status", "--help"]).expect(0).stdout;
    for field in status.as_object().unwrap().keys() {
        assert!(help.contains(&format!("\n  {field}")), "{field} is not in the help");
    }
}

#[test]
fn the_vault_is_found_from_a_folder_inside_it() {
    let vault = Sandbox::example();
    vault.run(&["index"]).expect(0);
    let inside =
        vault.ran(vault.command(&["status", "--json"]).current_dir(vault.root().join("log")).output().unwrap());
    assert_eq!(inside.expect(0).json()["notes"], 16);
    let told = vault.ran(vault.command(&["status", "--json"]).env("QUIPU_VAULT", "log").output().unwrap());
    assert_eq!(told.expect(0).json()["notes"], 2, "the environment wins over looking around");
    let flag = vault
        .ran(vault.command(&["status", "--json", "--vault", "people"]).env("QUIPU_VAULT", "log").output().unwrap());
    assert_eq!(flag.expect(0).json()["notes"], 1, "the flag wins over the environment");
}

#[test]
fn a_vault_that_is_none_is_a_usage_error() {
    let vault = Sandbox::example();
    check("vault_missing", &vault.run(&["status", "--vault", "nowhere"]).expect(2));
    check("vault_is_a_file", &vault.run(&["status", "--vault", "Start Here.md"]).expect(2));
    let told = vault.run(&["status", "log", "--json"]).expect(0).json();
    assert_eq!(told["notes"], 2, "the folder may be given as to `serve` and `index`");
    assert!(vault.run(&["doctor", "log"]).expect(0).stdout.ends_with("vault/log\n"));
    check("vault_twice", &vault.run(&["index", "log", "--vault", "people"]).expect(2));
    let home = vault.root().parent().unwrap().to_owned();
    let ran = vault.ran(vault.command(&["status"]).current_dir(&home).output().unwrap()).expect(2);
    assert!(ran.stderr.starts_with("error: no vault was given"), "{ran}");
}
