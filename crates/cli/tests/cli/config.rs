//! The configuration file: what a mistake in it does.

use crate::sandbox::{Sandbox, check};

#[test]
fn invalid_config_stops_every_command_without_changes() {
    let vault = Sandbox::example();
    vault.write(".quipu/config.toml", "title_from = [\"heading\"]\n\nexclud = [\"log/**\"]\n");
    check("config_unknown_key", &vault.run(&["index"]).expect(2));
    assert!(!vault.root().join(".quipu/index").exists());
    let commands =
        [&["serve"][..], &["status"], &["search", "ice"], &["call", "list_nodes"], &["restore"], &["doctor"]];
    for arguments in commands {
        vault.run(arguments).expect(2);
    }
}

#[test]
fn config_errors_name_their_location_and_the_fix() {
    let vault = Sandbox::example();
    for (name, text) in [
        ("config_not_toml", "exclude = [\"a\"\ninclude = []\n"),
        ("config_bad_value", "# All of them.\ntoolsets = [\n  \"notes\",\n  \"doc\",\n]\n"),
        ("config_wrong_type", "exclude = \"log/**\"\n"),
        ("config_bad_glob", "include = []\nexclude = [\"ok/**\", \"log/[\"]\n"),
        ("config_later_key", "[http]\nport = 7777\n"),
        ("config_provider", "[embedding]\nprovider = \"olama\"\n"),
        ("config_embedding_key", "[embedding]\napi_key = \"sk-secret\"\n"),
        ("config_embedding_key_alone", "[embedding]\nkey = \"sk-secret\"\n"),
        ("config_provider_needs_key", "[embedding]\nprovider = \"openai\"\n"),
    ] {
        vault.write(".quipu/config.toml", text);
        if name == "config_provider_needs_key" {
            vault.run(&["trust"]).expect(0);
        }
        check(name, &vault.run(&["status"]).expect(2));
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let vault = Sandbox::example();
    let notes = |ran: crate::sandbox::Ran| ran.expect(0).json()["notes"].clone();
    vault.write(".quipu/config.toml", "exclude = [\"log/**\"]\n");
    assert_eq!(notes(vault.run(&["status", "--json"])), 14);
    let with = |name, value| vault.ran(vault.command(&["status", "--json"]).env(name, value).output().unwrap());
    assert_eq!(notes(with("QUIPU_EXCLUDE", "{station,methods}/**")), 7);
    assert_eq!(notes(with("QUIPU_EXCLUDE", "")), 16);
    check("config_bad_variable", &with("QUIPU_TITLE_FROM", "heading,file-name").expect(2));
    check("config_unknown_variable", &with("QUIPU_TRASH_DAY", "7").expect(2));
    check("config_bad_log", &with("QUIPU_LOG", "quipu=loud").expect(2));
}

#[test]
fn title_from_selects_the_source_of_titles() {
    let vault = Sandbox::of("//- a-note.md\n# The Heading\n\nText.\n");
    let title = || vault.run(&["search", "text", "--json"]).expect(0).json()["hits"][0]["title"].clone();
    assert_eq!(title(), "A Note");
    vault.write(".quipu/config.toml", "title_from = [\"frontmatter\", \"heading\", \"filename\"]\n");
    assert_eq!(title(), "The Heading");
}
