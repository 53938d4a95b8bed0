//! Memory from the shell: its log, undo, copies, and other programs' files in and out.

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox};

fn call(vault: &Sandbox, tool: &str, arguments: &Value) -> Value {
    vault.run(&["call", tool, &arguments.to_string()]).expect(0).json()
}

fn import(vault: &Sandbox, text: &str, more: &[&str]) -> Ran {
    vault.run_with_stdin(&[&["import", "-"], more].concat(), text)
}

/// Everything in memory but the times, by names.
fn content(vault: &Sandbox) -> Vec<Value> {
    let lines = vault.run(&["export", "--format", "reference"]).expect(0).stdout;
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_change_is_listed_with_its_author_and_undone() {
    let vault = Sandbox::of("");
    call(
        &vault,
        "create_entity",
        &json!({"name": "Ada", "entity_type": "person", "observations": ["Wrote a program"]}),
    );
    call(&vault, "update_entity", &json!({"entity_id": 1, "name": "Ada Lovelace"}));
    call(&vault, "delete_entity", &json!({"entity_id": 1}));
    let listed = vault.run(&["audit"]).expect(0).stdout;
    for line in [
        "  quipu  delete_entity\n    - observation 1 of entity 1: Wrote a program\n    - entity 1 User: Ada Lovelace\n",
        "  quipu  update_entity\n    ~ entity 1: name \"Ada\" to \"Ada Lovelace\"\n",
        "  quipu  create_entity\n    + entity 1 User: Ada\n    + observation 1 of entity 1: Wrote a program\n",
    ] {
        assert!(listed.contains(line), "{listed}");
    }
    let undone = vault.run(&["undo"]).expect(0).stdout;
    assert!(undone.starts_with("change 3 is undone by change 4\n    + entity 1 User: Ada Lovelace\n"), "{undone}");
    assert_eq!(
        call(&vault, "get_entity", &json!({"entity_id": 1}))["observations"][0]["observation_content"],
        "Wrote a program"
    );
    let first = vault.run(&["undo", "1"]).expect(1).stderr;
    assert!(
        first.contains("change 1 cannot be undone: observation 1") || first.contains("entity 1 was changed later"),
        "{first}"
    );
    let of_notes = vault.run(&["undo", "n3"]).expect(2).stderr;
    assert!(of_notes.contains("it is a change to notes; `quipu revert --change n3` undoes it"), "{of_notes}");
    let second = vault.run(&["undo", "--json"]).expect(0).json();
    assert_eq!((&second["undoes"], &second["change"]), (&json!(2), &json!(5)));
    vault.run(&["undo"]).expect(0);
    let none = vault.run(&["undo"]).expect(1).stderr;
    assert!(none.contains("there is nothing to undo"), "{none}");
    assert!(vault.run(&["undo", "99"]).expect(1).stderr.contains("there is no change 99"));
    let log = vault.run(&["audit", "--json", "--limit", "2", "--before", "6"]).expect(0).json();
    assert_eq!((log.as_array().unwrap().len(), &log[0]["change"]), (2, &json!(5)));
    assert!(vault.run(&["verify"]).expect(0).stdout.starts_with("memory is intact: 0 entities, 0 observations"));
}

#[test]
fn redone_change_is_the_next_to_undo() {
    let vault = Sandbox::of("");
    for name in ["Ada", "Bo"] {
        call(&vault, "create_entity", &json!({"name": name, "entity_type": "person"}));
    }
    let undo = |arguments: &[&str]| vault.run(&[&["undo"], arguments].concat()).expect(0).stdout;
    assert!(undo(&[]).starts_with("change 2 is undone by change 3\n    - entity 2 User: Bo\n"));
    assert!(undo(&["3"]).starts_with("change 3 is undone by change 4\n    + entity 2 User: Bo\n"));
    assert!(undo(&[]).starts_with("change 2 is undone by change 5\n    - entity 2 User: Bo\n"));
    assert!(undo(&[]).starts_with("change 1 is undone by change 6\n    - entity 1 User: Ada\n"));
    assert!(vault.run(&["undo"]).expect(1).stderr.contains("there is nothing to undo"));
}

#[test]
fn merge_and_undo_restores_both_entities() {
    let vault = Sandbox::of("");
    for (name, seen) in [("Auth service", "Signs people in"), ("Auth svc", "Written in Rust"), ("Gateway", "In front")]
    {
        let wish = json!({"name": name, "entity_type": "service", "observations": [seen], "force": true});
        call(&vault, "create_entity", &wish);
    }
    call(&vault, "create_relation", &json!({"from_entity_id": 3, "to_entity_id": 2, "relation_type": "calls"}));
    let dry = vault.run(&["merge", "auth SVC", "1", "--dry-run", "--json"]).expect(0).json();
    assert_eq!((&dry["change"], &dry["observations"], &dry["relations"]), (&Value::Null, &json!(1), &json!(1)));
    assert_eq!(dry["into"]["aliases"], json!(["Auth svc"]));
    assert_eq!(call(&vault, "get_entity", &json!({"entity_id": 2}))["name"], "Auth svc", "nothing is changed");

    let done = vault.run(&["merge", "2", "Auth service"]).expect(0).stdout;
    assert!(done.starts_with("merged entity 2 (Auth svc) into entity 1 (Auth service)\n"), "{done}");
    let merged = call(&vault, "get_entity", &json!({"entity_id": 1}));
    assert_eq!((&merged["aliases"], &merged["memory_observations_count"]), (&json!("Auth svc"), &json!(2)));
    assert_eq!(merged["relations_to"][0]["from_entity_id"], 3);
    assert!(vault.run(&["audit", "--limit", "1"]).expect(0).stdout.contains("  quipu  merge\n"));
    vault.run(&["undo"]).expect(0);
    assert_eq!(call(&vault, "get_entity", &json!({"entity_id": 2}))["memory_observations_count"], 1);

    for (id, description) in [(1, "Who you are"), (2, "Tokens\nand keys")] {
        call(&vault, "update_entity", &json!({"entity_id": id, "description": description}));
    }
    let dry = vault.run(&["merge", "2", "1", "--dry-run"]).expect(0).stdout;
    assert!(dry.contains("    its description would become an observation: Tokens and keys\n"), "{dry}");
    call(&vault, "set_context", &json!({"project_id": 2}));
    let done = vault.run(&["merge", "2", "1", "--json"]).expect(0).json();
    assert_eq!(done["description_observed"], "Tokens\nand keys");
    let merged = call(&vault, "get_entity", &json!({"entity_id": 1}));
    assert_eq!((&merged["description"], &merged["memory_observations_count"]), (&json!("Who you are"), &json!(3)));
    assert_eq!(call(&vault, "get_context", &json!({}))["project_id"], 1, "the context goes with it");
    vault.run(&["undo"]).expect(0);
    let back = call(&vault, "get_entity", &json!({"entity_id": 2}));
    assert_eq!((&back["description"], &back["memory_observations_count"]), (&json!("Tokens\nand keys"), &json!(1)));
    assert_eq!(call(&vault, "get_context", &json!({}))["project_id"], 2, "and comes back with it");

    for (from, into, message) in [
        ("2", "2", "entity 2 cannot be merged into itself"),
        ("Nobody", "1", "unknown entity \"Nobody\""),
        ("1", "99", "unknown entity \"99\""),
    ] {
        let refused = vault.run(&["merge", from, into]).expect(1).stderr;
        assert!(refused.contains(message), "{refused}");
    }
}

#[test]
fn read_only_commands_do_not_create_memory() {
    let vault = Sandbox::of("//- a.md\n");
    vault.run(&["audit"]).expect(0);
    vault.run(&["verify"]).expect(0);
    vault.run(&["export"]).expect(0);
    vault.run(&["call", "search_entities", r#"{"query": "x"}"#]).expect(0);
    assert!(vault.run(&["backup"]).expect(1).stderr.contains("this vault has none yet"));
    assert!(!vault.root().join(".quipu").exists());
}

#[test]
fn backup_is_complete_and_never_overwritten() {
    let vault = Sandbox::of("");
    call(&vault, "create_entity", &json!({"name": "Ada", "entity_type": "person"}));
    let copy = vault.run(&["backup", "--json"]).expect(0).json();
    let file = copy["file"].as_str().unwrap();
    assert!(file.contains("/.quipu/backups/memory-") && copy["bytes"].as_u64().unwrap() > 0, "{copy}");
    assert!(vault.run(&["backup", file]).expect(1).stderr.contains("it exists; choose another file name"));
    call(&vault, "delete_entity", &json!({"entity_id": 1}));
    for name in ["memory.db", "memory.db-wal", "memory.db-shm"] {
        let _ = std::fs::remove_file(vault.root().join(".quipu").join(name));
    }
    std::fs::copy(file, vault.root().join(".quipu/memory.db")).unwrap();
    assert_eq!(call(&vault, "get_entity", &json!({"entity_id": 1}))["name"], "Ada");
    assert_eq!(vault.run(&["verify", "--json"]).expect(0).json()["sound"], true);
}

#[test]
fn damaged_memory_is_reported_and_unchanged() {
    let vault = Sandbox::of("");
    for number in 0..50 {
        let name = format!("Thing {number} {}", "x".repeat(200));
        call(&vault, "create_entity", &json!({"name": name, "entity_type": "x"}));
        if number == 2 {
            break;
        }
    }
    let file = vault.root().join(".quipu/memory.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle..middle + 3000].fill(0xAA);
    std::fs::write(&file, &bytes).unwrap();
    let ran = vault.run(&["verify"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.stdout.contains("damaged") || ran.stderr.contains("malformed") || ran.stderr.contains("damaged"),
        "{ran}"
    );
    std::fs::write(&file, "SQLite format 3\0 and then nothing of the kind").unwrap();
    let ran = vault.run(&["verify"]).expect(1);
    assert!(ran.stderr.contains("it is not a SQLite database"), "{ran}");
    assert_eq!(std::fs::read(&file).unwrap(), b"SQLite format 3\0 and then nothing of the kind");
}

#[test]
fn empty_memory_file_is_recreated_with_a_message() {
    let vault = Sandbox::of("//- .quipu/memory.db\n");
    let file = vault.root().join(".quipu/memory.db");
    std::fs::write(&file, "").unwrap();
    let ran = vault.run(&["call", "create_entity", r#"{"name": "Ada", "entity_type": "person"}"#]).expect(0);
    assert!(ran.stderr.contains("memory.db was empty, so memory starts empty; to restore an earlier one"), "{ran}");
    let ran = vault.run(&["verify"]).expect(0);
    assert!(!ran.stderr.contains("was empty"), "{ran}");
}

const REFERENCE: &str = r#"{"type":"entity","name":"Alice","entityType":"person","observations":["likes tea","likes tea","works at Acme"]}
{"type":"entity","name":"Acme","entityType":"company","observations":[]}{"type":"relation","from":"Alice","to":"Acme","relationType":"works_at"}

{"type":"entity","name":"alice","entityType":"person","observations":["has a cat"]}
{"type":"relation","from":"Alice","to":"Acme","relationType":"works_at"}
{"type":"relation","from":"Alice","to":"Nobody","relationType":"knows"}
{"type":"entity","name":"Bo","entityTy
{"type":"entity","name":"Cy","entityType":"","observations":null}
"#;

#[test]
fn damaged_file_of_the_reference_server_is_imported() {
    let vault = Sandbox::of("");
    let ran = import(&vault, REFERENCE, &["--json"]).expect(1).json();
    assert_eq!((&ran["entities"], &ran["observations"], &ran["relations"]), (&json!(3), &json!(4), &json!(1)));
    let lines: Vec<_> = ran["problems"].as_array().unwrap().iter().map(|problem| problem["line"].clone()).collect();
    assert_eq!(lines, [json!(7), json!(6)]);
    let message = ran["problems"][1]["message"].as_str().unwrap();
    assert_eq!(message, "a relation refers to \"Nobody\", which is neither in the file nor in memory");
    let before = content(&vault);
    assert_eq!(before[0]["observations"], json!(["likes tea", "likes tea", "works at Acme", "has a cat"]));
    let again = import(&vault, REFERENCE, &["--json"]).expect(1).json();
    assert_eq!((&again["entities"], &again["observations"], &again["relations"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(content(&vault), before, "twice is once");
    assert_eq!(vault.run(&["audit", "--json"]).expect(0).json().as_array().unwrap().len(), 1, "one change");
    vault.run(&["undo"]).expect(0);
    assert_eq!(content(&vault), [json!(null); 0]);
}

#[test]
fn strict_import_is_all_or_nothing() {
    let vault = Sandbox::of("");
    let ran = import(&vault, REFERENCE, &["--strict"]).expect(1);
    let broken = r#"line 7: not JSON: the line is incomplete from "{\"type\":\"entity\",\"name\":\"Bo\""#;
    assert!(ran.stderr.contains(broken), "{ran}");
    assert!(ran.stderr.contains("cannot import the file: 2 items are invalid; nothing was imported"), "{ran}");
    assert_eq!(content(&vault), [json!(null); 0]);
}

#[test]
fn export_and_import_is_lossless() {
    let vault = Sandbox::of("");
    let entity = json!({"name": "Quipu", "entity_type": "repo", "aliases": "khipu|knots", "description": "Two\nlines",
        "observations": ["日本語", "one", "another"]});
    call(&vault, "create_entity", &entity);
    call(&vault, "create_entity", &json!({"name": "Gone", "entity_type": "x"}));
    call(&vault, "delete_entity", &json!({"entity_id": 2}));
    call(&vault, "create_entity", &json!({"name": "Part", "entity_type": "x"}));
    call(&vault, "create_relation", &json!({"from_entity_id": 3, "to_entity_id": 1, "relation_type": "part_of"}));
    let lines = vault.run(&["export"]).expect(0).stdout;
    let other = Sandbox::of("");
    import(&other, &lines, &[]).expect(0);
    let again = other.run(&["export"]).expect(0).stdout;
    assert_eq!(again, lines, "numbers, times and aliases included");
    assert!(
        import(&other, &lines, &[])
            .expect(0)
            .stdout
            .contains("0 entities, 0 observations, 0 relations; 6 items existed already")
    );
}

#[test]
fn document_with_entity_ids_is_imported() {
    let vault = Sandbox::of("");
    call(
        &vault,
        "create_entity",
        &json!({"name": "A", "entity_type": "x", "aliases": "a1|a2", "observations": ["seen"]}),
    );
    call(&vault, "create_entity", &json!({"name": "B", "entity_type": "y"}));
    call(&vault, "create_relation", &json!({"from_entity_id": 1, "to_entity_id": 2, "relation_type": "r"}));
    let document = vault.run(&["export", "--format", "graphmem"]).expect(0).stdout;
    let other = Sandbox::of("");
    import(&other, &document, &[]).expect(0);
    assert_eq!(content(&other), content(&vault));
    assert_eq!(call(&other, "get_entity", &json!({"entity_id": 1}))["aliases"], "a1|a2");
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&document).unwrap()).unwrap();
    assert!(import(&other, &pretty, &[]).expect(0).stdout.contains("imported 0 entities"));
}

#[test]
fn invalid_item_of_a_document_is_reported() {
    let document = r#"{"memory_entities": [
  {"id": 1, "name": "A", "entity_type": "x"},
  {"id": 2, "name": "", "entity_type": "x"},
  {"id": 3, "name": "B", "entity_type": "x"}
], "memory_relations": [
  {"from_entity_id": 2, "to_entity_id": 1, "relation_type": "knows"},
  {"from_entity_id": 1, "to_entity_id": 3, "relation_type": "knows"}
]}"#;
    let vault = Sandbox::of("");
    let strict = import(&vault, document, &["--strict"]).expect(1);
    let blank = "line 3: memory_entities[1]: its `name` is blank";
    let missing = "line 6: memory_relations[0]: a relation refers to entity 2, which is not in the file";
    assert!(strict.stderr.contains(blank) && strict.stderr.contains(missing), "{strict}");
    assert!(strict.stderr.contains("cannot import the file: 2 items are invalid; nothing was imported"), "{strict}");
    assert_eq!(content(&vault), [json!(null); 0]);
    let ran = import(&vault, document, &[]).expect(1);
    assert!(ran.stderr.contains(blank) && ran.stderr.contains(missing), "{ran}");
    assert!(ran.stdout.contains("imported 2 entities, 0 observations, 1 relation;"), "{ran}");
    assert_eq!(content(&vault).len(), 3);
}

#[test]
fn import_completes_an_entity_and_undo_reverts_it() {
    let vault = Sandbox::of("");
    call(&vault, "create_entity", &json!({"name": "Ada", "entity_type": "person", "aliases": "Countess"}));
    let file = r#"{"type":"entity","name":"Ada","aliases":["countess","Lovelace"],"description":"Wrote a program"}"#;
    let ran = import(&vault, file, &["--strict"]).expect(0);
    assert!(ran.stdout.contains("1 item existed already, 1 of them got aliases or a description"), "{ran}");
    let ada = call(&vault, "get_entity", &json!({"entity_id": 1}));
    assert_eq!((&ada["aliases"], &ada["description"]), (&json!("Countess|Lovelace"), &json!("Wrote a program")));
    let again = import(&vault, file, &["--strict", "--json"]).expect(0).json();
    assert_eq!((&again["known"], &again["completed"]), (&json!(1), &json!(0)));
    vault.run(&["undo"]).expect(0);
    assert_eq!(call(&vault, "get_entity", &json!({"entity_id": 1}))["aliases"], "Countess");
}

#[test]
fn unsupported_file_is_refused_in_a_few_lines() {
    let vault = Sandbox::of("");
    let junk = "what is this\n".repeat(3000);
    let ran = import(&vault, &junk, &[]).expect(1);
    assert_eq!(ran.stderr.matches("not JSON").count(), 20, "{ran}");
    assert!(ran.stderr.contains("2980 more items are invalid"), "{ran}");
    assert!(ran.stdout.contains("imported 0 entities"), "{ran}");
    let all = import(&vault, &junk, &["--json"]).expect(1).json();
    assert_eq!(all["problems"].as_array().unwrap().len(), 3000);
    let strict = import(&vault, &junk, &["--strict"]).expect(1);
    assert!(strict.stderr.contains("cannot import the file: 3000 items are invalid; nothing was imported"), "{strict}");
}

#[test]
fn audit_before_the_first_change_is_empty() {
    let vault = Sandbox::of("");
    call(&vault, "create_entity", &json!({"name": "Ada", "entity_type": "person"}));
    let ran = vault.run(&["audit", "--before", "1"]).expect(0);
    assert!(ran.stderr.contains("no change has a number below 1") && ran.stdout.is_empty(), "{ran}");
    assert!(vault.run(&["audit", "--before", "0"]).expect(2).stderr.contains("0 is not in 1.."));
}

#[test]
fn backup_into_a_missing_folder_is_an_error() {
    let vault = Sandbox::of("");
    call(&vault, "create_entity", &json!({"name": "Ada", "entity_type": "person"}));
    let ran = vault.run(&["backup", "nowhere/memory.db"]).expect(1);
    let message = "cannot write nowhere/memory.db: there is no folder nowhere; create it, or choose another file name";
    assert!(ran.stderr.contains(message), "{ran}");
    vault.run(&["backup", "memory-copy.db"]).expect(0);
}

#[test]
fn notes_of_an_entity_are_found_without_an_index() {
    let vault = Sandbox::of("//- plan.md\n");
    call(&vault, "create_entity", &json!({"name": "Ada", "entity_type": "person", "description": "Owns [[plan]]"}));
    assert_eq!(call(&vault, "get_entity", &json!({"entity_id": 1}))["notes"][0]["id"], "plan.md");
}

#[test]
fn import_enforces_the_limits_of_the_tools() {
    let vault = Sandbox::of("");
    let long = |length: usize| "x".repeat(length);
    let lines = [
        json!({"type": "entity", "name": long(501), "entityType": "Thing", "observations": ["lost"]}),
        json!({"type": "entity", "name": "Typed", "entityType": long(101)}),
        json!({"type": "entity", "name": "Described", "entityType": "Thing", "description": long(10_001)}),
        json!({"type": "entity", "name": "Called", "entityType": "Thing", "aliases": vec![long(500); 11]}),
        json!({"type": "entity", "name": "Ada", "entityType": "Thing", "observations": [long(50_001), "kept", long(50_000)]}),
        json!({"type": "entity", "name": long(500), "entityType": long(100)}),
        json!({"type": "relation", "from": "Ada", "to": "Ada", "relationType": long(101)}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = import(&vault, &text, &[]);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    for (line, reason) in [
        (1, "its `name` has 501 characters, more than the 500 that are allowed"),
        (2, "its `type` has 101 characters"),
        (3, "its `description` has 10001 characters"),
        (4, "its `aliases` has 5510 characters"),
        (5, "an observation has 50001 characters"),
        (7, "its type has 101 characters"),
    ] {
        assert!(told.contains(reason) && told.contains(&format!("line {line}")), "{line}: {told:.2000}");
    }
    assert!(told.len() < 5_000, "{}", told.len());
    let listed = call(&vault, "list_entities", &json!({}));
    assert_eq!(listed["pagination"]["total_entities"], 2, "{listed:.300}");
    assert_eq!(call(&vault, "get_entity", &json!({"entity_id": 1, "limit": 10}))["observations_total"], 2);
}
