//! Commands on a team's database, over a real PostgreSQL.

use std::process::Stdio;

use quipu_testkit::postgres;
use serde_json::Value;

use crate::sandbox::{Ran, Sandbox};

/// A vault, and an empty database.
pub(crate) struct Team {
    pub(crate) sandbox: Sandbox,
    pub(crate) url: String,
}

impl Team {
    fn new(files: &str) -> Option<Self> {
        Some(Self { sandbox: Sandbox::of(files), url: postgres::database()? })
    }

    /// With tables and the graph `team`.
    pub(crate) fn ready(files: &str) -> Option<Self> {
        let team = Self::new(files)?;
        team.succeed(&["db", "init"]);
        team.succeed(&["graph", "create", "team"]);
        Some(team)
    }

    /// Runs a command with the database in the environment.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.sandbox.command(arguments);
        self.sandbox.ran(command.env("QUIPU_DATABASE_URL", &self.url).stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(arguments)).unwrap()
    }

    /// The answer of a command that ends with this exit code.
    pub(crate) fn json_with_code(&self, arguments: &[&str], code: i32) -> Value {
        self.run(arguments).expect(code).json()
    }

    pub(crate) fn fail(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}: {}", ran.stdout);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran.stderr
    }
}

#[test]
fn tables_are_created_once_and_their_version_is_shown() {
    let Some(team) = Team::new("//- a.md\nx\n") else { return };
    assert!(team.fail(&["graph", "list"]).contains("quipu db init"));
    assert!(team.fail(&["db", "migrate"]).contains("quipu db init"));
    let status = team.run(&["db", "status", "--json"]);
    assert_eq!(status.code, Some(1));
    assert!(team.succeed(&["db", "init"]).contains("created"));
    assert!(team.succeed(&["db", "init"]).contains("exist already"));
    assert!(team.succeed(&["db", "migrate"]).contains("current"));
    let status = team.json(&["db", "status", "--json"]);
    assert!(status["pgvector"].as_str().is_some_and(|version| version.starts_with("0.")), "{status}");
    assert_eq!((&status["usable"], &status["graphs"]), (&Value::from(true), &Value::from(0)));
    postgres::sql(&team.url, "INSERT INTO quipu.migration (number, needs) VALUES (99, 99)");
    let newer = team.fail(&["graph", "list"]);
    assert!(newer.contains("version 99") && newer.contains("upgrade the program"), "{newer}");
    assert!(team.succeed(&["db", "roles"]).contains("CREATE ROLE quipu_server"));
}

#[test]
fn address_is_not_repeated_and_a_wrong_one_is_explained() {
    let Some(team) = Team::new("//- a.md\nx\n") else { return };
    let said = team.fail(&["db", "status", "--database", "postgresql://ada:hush@127.0.0.1:1/x?sslmode=disable"]);
    assert!(said.contains("127.0.0.1:1") && said.contains("refused") && !said.contains("hush"), "{said}");
    let said = team.fail(&["db", "status", "--database", "mysql://ada:hush@h/x"]);
    assert!(said.contains("postgresql://") && !said.contains("hush"), "{said}");
    let nowhere = team.sandbox.run(&["db", "status"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.contains("QUIPU_DATABASE_URL"), "{}", nowhere.stderr);
}

#[test]
fn graphs_are_created_limited_renamed_and_deleted() {
    let Some(team) = Team::ready("//- a.md\nx\n") else { return };
    assert!(team.fail(&["graph", "create", "team"]).contains("already"));
    assert!(team.fail(&["graph", "create", "a'; DROP TABLE quipu.graph; --"]).contains("a-z"));
    team.succeed(&["graph", "create", "small", "--max-notes", "1", "--max-bytes", "2KB"]);
    team.succeed(&["graph", "limit", "small", "--max-notes", "none", "--max-rate", "7"]);
    let listed = team.json(&["graph", "list", "--json"]);
    assert_eq!(listed[0]["name"], "small");
    assert_eq!((&listed[0]["max_notes"], &listed[0]["max_bytes"]), (&Value::Null, &Value::from(2000)));
    assert_eq!(listed[0]["max_rate"], 7);
    assert!(team.succeed(&["graph", "list"]).contains("0 of 2000 bytes, 7 calls a second"));
    assert!(team.fail(&["graph", "delete", "team"]).contains("0 notes"));
    team.succeed(&["graph", "rename", "team", "platform"]);
    assert!(team.fail(&["graph", "delete", "team", "--yes"]).contains("no graph"));
    team.succeed(&["graph", "delete", "platform", "--yes"]);
    assert_eq!(team.json(&["graph", "list", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn tokens_of_a_database_are_for_its_graphs() {
    let Some(team) = Team::ready("//- a.md\nx\n") else { return };
    let list = ["token", "list", "--json", "--database", &team.url];
    let made = team.json(&["token", "new", "--name", "ci", "--graph", "team", "--scope", "read", "--json"]);
    assert!(made["token"].as_str().unwrap().starts_with("quipu_"));
    let listed = team.json(&list);
    assert_eq!((&listed[0]["name"], &listed[0]["graphs"][0]), (&Value::from("ci"), &Value::from("team")));
    assert!(!listed.to_string().contains(made["token"].as_str().unwrap()));
    assert!(team.fail(&["token", "new", "--name", "ci", "--graph", "team"]).contains("revoke it first"));
    assert!(team.fail(&["token", "new", "--name", "x", "--graph", "nowhere"]).contains("quipu graph list"));
    assert!(team.fail(&["token", "new", "--name", "x", "--database", &team.url]).contains("--graph"));
    team.succeed(&["token", "revoke", "ci", "--database", &team.url]);
    assert_eq!(team.json(&list), Value::Array(Vec::new()));
    assert!(!team.sandbox.root().join(".quipu/tokens.toml").exists(), "the folder's own tokens are others");
}

#[test]
fn memory_moves_between_a_folder_and_a_graph_byte_for_byte() {
    let Some(team) = Team::ready("//- notes/plan.md\n# Plan\n") else { return };
    for (name, text) in [("Ada", "works on [[plan]]"), ("Émile", "line\nbreak \u{2028} and 日本語")] {
        let entity = serde_json::json!({ "name": name, "entity_type": "person", "observations": [text] });
        team.succeed(&["call", "create_entity", &entity.to_string()]);
    }
    team.succeed(&["call", "create_entity", r#"{"name": "Gone", "entity_type": "person"}"#]);
    team.succeed(&["call", "delete_entity", r#"{"entity_id": 3}"#]);
    team.succeed(&["call", "create_relation", r#"{"from_entity_id": 1, "to_entity_id": 2, "relation_type": "knows"}"#]);
    let folder = team.succeed(&["export"]);
    assert_eq!(folder.lines().count(), 6, "{folder}");
    team.sandbox.write("export.jsonl", &folder);
    let imported = team.json(&["import", "--graph", "team", "--json", "export.jsonl"]);
    assert_eq!((&imported["entities"], &imported["problems"]), (&Value::from(2), &Value::Array(Vec::new())));
    assert_eq!(team.succeed(&["export", "--graph", "team"]), folder);
    let again = team.json(&["import", "--graph", "team", "--json", "export.jsonl"]);
    assert_eq!((&again["entities"], &again["known"]), (&Value::from(0), &Value::from(5)));

    // Back into another folder.
    let other = Sandbox::of("//- a.md\nx\n");
    let from = ["export", "--database", &team.url];
    let exported = team.sandbox.run(&from).expect(0).stdout;
    other.run_with_stdin(&["import", "-"], &exported).expect(0);
    assert_eq!(other.run(&["export"]).expect(0).stdout, folder);
    assert!(team.fail(&["export", "--graph", "nowhere"]).contains("quipu graph list"));
}
