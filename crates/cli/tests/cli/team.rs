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

#[test]
fn memory_moves_with_its_log_both_ways() {
    let Some(team) = Team::ready("//- notes/plan.md\n# Plan\n") else { return };
    let call = |tool: &str, arguments: &str| team.succeed(&["call", tool, arguments]);
    call("create_entity", r#"{"name": "Ada", "entity_type": "Person", "observations": ["works on [[plan]]", "new"]}"#);
    call("update_observation", r#"{"observation_id": 2, "text_content": "newer, 日本語 \u2028"}"#);
    call("create_entity", r#"{"name": "Gone", "entity_type": "Person", "description": "about [[plan]]"}"#);
    call("create_entity", r#"{"name": "Ada L.", "entity_type": "Person", "force": true}"#);
    call("merge_entities", r#"{"entity_id": 3, "into_entity_id": 1}"#);
    call("update_node", r#"{"id": "notes/plan.md", "title": "Roadmap"}"#);
    call("delete_entity", r#"{"entity_id": 2}"#);
    team.succeed(&["undo", "5"]);
    let folder = team.succeed(&["export", "--with-log"]);
    assert_eq!(folder.matches("\"type\":\"change\"").count(), 7, "{folder}");
    assert!(folder.contains("\"type\":\"ties\""), "what a deleted entity links to: {folder}");
    team.sandbox.write("log.jsonl", &folder);

    let imported = team.json(&["import", "--graph", "team", "--json", "log.jsonl"]);
    assert_eq!((&imported["changes"], &imported["entities"]), (&Value::from(7), &Value::from(2)));
    assert_eq!(team.succeed(&["export", "--with-log", "--graph", "team"]), folder);
    let log = |of: &[&str]| team.json(&[&["audit", "--json", "--limit", "99"], of].concat());
    assert_eq!(log(&["--graph", "team"]), log(&[]));
    team.succeed(&["verify", "--graph", "team"]);

    // Both go on alike, except for their times: ids count on, and old changes are undone.
    let other = Sandbox::of("//- a.md\nx\n");
    let exported = team.succeed(&["export", "--with-log", "--graph", "team"]);
    let back = other.run_with_stdin(&["import", "-"], &exported).expect(0);
    assert!(back.stdout.contains("copied the log of 7 changes"), "{back}");
    assert_eq!(other.run(&["export", "--with-log"]).expect(0).stdout, folder);
    other.run(&["verify"]).expect(0);
    for change in ["6", "2"] {
        let steps = |undone: Value| undone["steps"].clone();
        let here = steps(team.json(&["undo", change, "--graph", "team", "--json"]));
        assert_eq!(here, steps(other.run(&["undo", change, "--json"]).expect(0).json()));
    }
    // Memory that has changes keeps its own log.
    let again = other.run_with_stdin(&["import", "-", "--json"], &exported).expect(0).json();
    assert_eq!((&again["changes"], &again["changes_left"]), (&Value::from(0), &Value::from(7)));
}

#[test]
fn log_that_does_not_give_the_items_of_the_file_is_not_imported() {
    let one = Sandbox::of("//- a.md\nx\n");
    one.run(&["call", "create_entity", r#"{"name": "Ada", "entity_type": "Person"}"#]).expect(0);
    let export = one.run(&["export", "--with-log"]).expect(0).stdout;
    let edited = export.replacen("Ada", "Eda", 1);
    for (document, reason) in [
        (edited, "line 3: the log is not imported: replaying it gives other items than the file has"),
        (export.replace("\"number\":1", "\"number\":2"), "change 2 is in the place of change 1"),
        (export.replace("\"kind\":\"entity\"", "\"kind\":\"thing\""), "it is a change with an invalid step"),
        // Half a line must not be read as the items of its steps.
        (export.trim_end().strip_suffix("}}]}").unwrap().to_owned(), "line 3"),
    ] {
        let other = Sandbox::of("//- a.md\nx\n");
        let refused = other.run_with_stdin(&["import", "--strict", "-"], &document).expect(1);
        assert!(refused.stderr.contains(reason), "{refused}");
        let imported = other.run_with_stdin(&["import", "-"], &document).expect(1);
        assert!(imported.stdout.contains("imported 1 entity"), "{imported}");
        assert_eq!(other.run(&["audit", "--json"]).expect(0).json()[0]["tool"], "import", "one change of its own");
    }
}

#[test]
fn log_of_a_graph_is_listed_checked_and_undone() {
    let Some(team) = Team::ready("//- a.md\nx\n") else { return };
    team.sandbox.write(
        "in.jsonl",
        "{\"type\":\"entity\",\"name\":\"A\",\"entityType\":\"x\",\"observations\":[\"o\"]}\n\
                                    {\"type\":\"entity\",\"name\":\"B\",\"entityType\":\"x\",\"observations\":[]}\n",
    );
    team.succeed(&["import", "--graph", "team", "in.jsonl"]);
    team.succeed(&["merge", "B", "A", "--graph", "team"]);
    let log = team.json(&["audit", "--graph", "team", "--json"]);
    assert_eq!((&log[0]["tool"], &log[1]["tool"]), (&Value::from("merge"), &Value::from("import")));
    assert!(team.succeed(&["undo", "--graph", "team"]).contains("change 2 is undone by change 3"));
    assert!(team.succeed(&["undo", "1", "--database", &team.url]).contains("change 1 is undone by change 4"));
    assert!(
        team.succeed(&["verify", "--graph", "team"]).contains("0 entities, 0 observations, 0 relations, 4 changes")
    );
    assert_eq!(team.json(&["audit", "--json"]), Value::Array(Vec::new()), "the folder has its own log");
    assert!(team.fail(&["audit", "--graph", "nowhere"]).contains("quipu graph list"));
}

#[test]
fn versions_of_notes_of_a_graph_are_listed_compared_and_restored() {
    let Some(team) = Team::ready("//- a.md\nfirst\n//- b.md\nSee [[a]].\n") else { return };
    team.succeed(&["push"]);
    team.sandbox.write("a.md", "second\n");
    std::fs::remove_file(team.sandbox.root().join("b.md")).unwrap();
    team.succeed(&["push"]);
    let history = team.json(&["history", "a.md", "--graph", "team", "--json"]);
    assert_eq!(history["versions"].as_array().map(Vec::len), Some(2), "{history}");
    let diff = team.succeed(&["diff", "a.md", "--graph", "team"]);
    assert!(diff.contains("-first") && diff.contains("+second"), "{diff}");
    let first = history["versions"][1]["version"].as_str().unwrap().to_owned();
    team.succeed(&["revert", "a.md", &first, "--graph", "team"]);
    let kept = team.json(&["restore", "--graph", "team", "--json"]);
    assert!(kept.as_array().unwrap().iter().any(|row| row["path"] == "b.md" && row["reason"] == "deleted"), "{kept}");
    assert!(team.succeed(&["restore", "b.md", "--graph", "team"]).contains("restored b.md"));
    team.succeed(&["pull"]);
    assert_eq!((team.sandbox.read("a.md").as_str(), team.sandbox.read("b.md").as_str()), ("first\n", "See [[a]].\n"));
    let change = team.json(&["history", "b.md", "--graph", "team", "--json"])["versions"][0]["change"].clone();
    team.succeed(&["revert", "--change", change.as_str().unwrap(), "--graph", "team"]);
    assert!(team.fail(&["diff", "no.md", "--graph", "team"]).contains("cannot"));
}
