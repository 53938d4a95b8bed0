//! `quipu status`: what it tells of a vault.

use crate::sandbox::{Sandbox, check};

#[test]
fn status_counts_notes_and_links() {
    let vault = Sandbox::example();
    check("status_before_index", &vault.run(&["status"]).expect(0));
    vault.run(&["index"]).expect(0);
    check("status_coarse", &vault.run(&["status"]).expect(0));
    vault.run(&["index", "--wait"]).expect(0);
    check("status", &vault.run(&["status"]).expect(0));
    vault.write("new.md", "Something new.");
    check("status_after_change", &vault.run(&["status"]).expect(0));
}

/// Thousands of notes take longer to index than a person waits for a status.
#[test]
fn status_does_not_index_thousands_of_notes() {
    let notes: String = (0..2_100).map(|number| format!("//- {number}.md\n[[1]]\n")).collect();
    let vault = Sandbox::of(&notes);
    let status = || vault.run(&["status", "--json"]).expect(0).json();
    let first = status();
    assert_eq!((&first["notes"], &first["index"]["outdated"]), (&2_100.into(), &2_100.into()), "{first}");
    assert!(first["links"].is_null() && first["index"]["place"].is_null() && first["busy"].is_null(), "{first}");
    let shown = vault.run(&["status"]).expect(0).stdout;
    assert!(shown.contains("index   none yet; `quipu index` creates it\n"), "{shown}");
    vault.run(&["index", "--no-embed"]).expect(0);
    let indexed = status();
    assert_eq!(
        (&indexed["links"]["resolved"], &indexed["index"]["outdated"]),
        (&2_100.into(), &().into()),
        "{indexed}"
    );
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    for number in 0..2_050 {
        let note = std::fs::File::options().write(true).open(vault.root().join(format!("{number}.md"))).unwrap();
        note.set_modified(later).unwrap();
    }
    let outdated = status();
    assert_eq!((&outdated["links"], &outdated["index"]["outdated"]), (&().into(), &2_050.into()), "{outdated}");
    assert_eq!(outdated["index"]["written_at"], status()["index"]["written_at"], "it was not updated");
    let shown = vault.run(&["status"]).expect(0).stdout;
    assert!(
        shown.contains(", last written ") && shown.contains("; 2050 notes are newer, `quipu index` updates it\n"),
        "{shown}"
    );
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
fn a_vault_above_the_current_folder_is_named() {
    let vault = Sandbox::example();
    vault.run(&["index"]).expect(0);
    let inside = |arguments: &[&str]| {
        vault.ran(vault.command(arguments).current_dir(vault.root().join("log")).output().unwrap()).expect(0)
    };
    let said = format!("using the vault {}, found above the current folder\n", vault.root().display());
    assert_eq!(inside(&["status"]).stderr, said);
    assert_eq!(inside(&["audit", "--json"]).stderr, said);
    assert_eq!(vault.run(&["status"]).expect(0).stderr, "");
    assert_eq!(inside(&["status", "--vault", ".."]).stderr, "");
}

#[test]
fn folders_above_home_are_not_searched_for_a_vault() {
    let vault = Sandbox::of("//- home/project/a.md\nAlpha\n//- stray.md\nNot a note.\n");
    let root = vault.root();
    std::fs::create_dir(root.join(".quipu")).unwrap();
    let mut command = vault.command(&["status", "--json"]);
    let ran =
        vault.ran(command.current_dir(root.join("home/project")).env("HOME", root.join("home")).output().unwrap());
    assert_eq!(ran.expect(0).json()["vault"], root.join("home/project").display().to_string());
}

#[test]
fn status_counts_memory() {
    let vault = Sandbox::of("//- a.md\nx\n");
    let empty = vault.run(&["status"]).expect(0);
    assert!(empty.stdout.contains("memory  empty\n"), "{empty}");
    let ada = r#"{"name": "Ada", "entity_type": "User", "observations": ["Wrote a program"]}"#;
    vault.run(&["call", "create_entity", ada]).expect(0);
    let memory = vault.run(&["status", "--json"]).expect(0).json()["memory"].clone();
    assert_eq!((&memory["entities"], &memory["observations"]), (&1.into(), &1.into()), "{memory}");
    assert_eq!((&memory["relations"], &memory["health"]), (&0.into(), &"ok".into()), "{memory}");
    assert_eq!(
        (&memory["last_change"]["client"], &memory["last_change"]["tool"]),
        (&"quipu".into(), &"create_entity".into())
    );
    let shown = vault.run(&["status"]).expect(0);
    assert!(shown.stdout.contains("memory  1 entities, 1 observations, 0 relations; last change "), "{shown}");
    vault.write(".quipu/memory.db", "this was a database");
    let damaged = vault.run(&["status"]).expect(0);
    assert!(damaged.stdout.contains("memory  cannot be used: "), "{damaged}");
}

#[test]
fn a_vault_without_permission_is_named_and_not_its_settings() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let vault = Sandbox::of("//- a.md\nx\n");
    let root = vault.root();
    let allow = |folder: &std::path::Path, mode| {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(root.parent().unwrap(), 0o755);
    allow(&root, 0o000);
    let mut command = vault.command(&["status", "--vault", root.to_str().unwrap()]);
    command.current_dir("/");
    if std::fs::read_dir(&root).is_ok() {
        // Root is stopped by no permission.
        command.uid(65534).gid(65534);
    }
    let ran = command.output();
    allow(&root, 0o755);
    let Ok(ran) = ran else {
        println!("left out: another user cannot run the program");
        return;
    };
    let ran = vault.ran(ran).expect(2);
    assert!(
        ran.stderr.starts_with(&format!("error: cannot open the vault {}: Permission denied", root.display())),
        "{ran}"
    );
    assert!(!ran.stderr.contains("config.toml") && ran.stderr.contains("chmod u+rx"), "{ran}");
}

#[test]
fn empty_folder_is_reported_to_have_no_notes() {
    let vault = Sandbox::of("");
    let said = format!("no notes in {}; ", vault.root().display());
    let ran = vault.run(&["doctor"]).expect(0);
    assert!(ran.stdout.starts_with("no notes in ") && ran.stderr.contains(&said), "{ran}");
    let ran = vault.run(&["search", "anything"]).expect(1);
    assert!(ran.stderr.contains(&said) && !ran.stderr.contains("nothing found"), "{ran}");
    let ran = vault.run(&["status"]).expect(0);
    assert!(ran.stdout.contains("notes   0; "), "{ran}");
}

#[test]
fn index_and_status_count_notes_the_same_way() {
    let vault = Sandbox::of("//- Twin.md\n1\n//- twin.md\n2\n//- other.md\n3\n");
    let indexed = vault.run(&["index", "--json"]).expect(0).json()["total"].clone();
    assert_eq!(vault.run(&["status", "--json"]).expect(0).json()["notes"], indexed);
}

#[test]
fn missing_vault_is_a_usage_error() {
    let vault = Sandbox::example();
    check("vault_missing", &vault.run(&["status", "--vault", "nowhere"]).expect(2));
    check("vault_is_a_file", &vault.run(&["status", "--vault", "Start Here.md"]).expect(2));
    let told = vault.run(&["status", "log", "--json"]).expect(0).json();
    assert_eq!(told["notes"], 2, "the folder may be given as to `serve` and `index`");
    assert!(vault.run(&["doctor", "log"]).expect(0).stdout.ends_with("vault/log\n"));
    check("vault_twice", &vault.run(&["index", "log", "--vault", "people"]).expect(2));
    let home = vault.root().parent().unwrap().to_owned();
    let ran = vault.ran(vault.command(&["status"]).current_dir(&home).output().unwrap()).expect(2);
    assert!(ran.stderr.starts_with("error: cannot choose a vault: none was given"), "{ran}");
}

#[test]
fn status_and_doctor_count_the_same_broken_links() {
    let vault = Sandbox::of(
        "//- a.md\n[[gone]] [[gone]] ![[gone]] [x](gone.md) [[b]] [[b]] ![p](gone.png)\n//- b.md\n[[gone]] [[a]]\n",
    );
    vault.run(&["index"]).expect(0);
    let status = vault.run(&["status", "--json"]).expect(0).json();
    let doctor = vault.run(&["doctor", "--json"]).expect(0).json();
    let groups = doctor["groups"].as_array().unwrap();
    let broken = groups.iter().find(|group| group["kind"] == "broken_links").unwrap();
    assert_eq!((&status["links"]["broken"], &status["links"]["resolved"]), (&4.into(), &2.into()));
    assert_eq!((&broken["count"], broken["findings"].as_array().unwrap().len()), (&4.into(), 4));
}
