//! `quipu stale`: what lags behind, and its exit code.

use std::process::Command;

use crate::sandbox::{Sandbox, check};

fn git(vault: &Sandbox, arguments: &[&str], time: &str) {
    let mut command = Command::new("git");
    command.current_dir(vault.root()).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
    command.env("GIT_AUTHOR_DATE", time).env("GIT_COMMITTER_DATE", time).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn commit(vault: &Sandbox, time: &str) {
    git(vault, &["add", "-A"], time);
    git(vault, &["commit", "-q", "-m", "x"], time);
}

/// A page of each sort, in a repository.
fn repository() -> Sandbox {
    let vault = Sandbox::of(
        "//- fresh.md\n---\nsource_refs: [src/same.rs]\n---\n\
         //- changed.md\n---\nsource_refs: [src/changed.rs, src/same.rs]\n---\n\
         //- gone.md\n---\nsource_refs: [src/gone.rs]\n---\n\
         //- typo.md\n---\nsource_refs: [src/tpyo.rs]\n---\n\
         //- plain.md\nNothing.\n\
         //- src/same.rs\n1\n//- src/changed.rs\n1\n//- src/gone.rs\n1\n",
    );
    git(&vault, &["init", "-q", "-b", "main"], "2024-01-01T00:00:00Z");
    commit(&vault, "2024-01-01T00:00:00Z");
    vault.write("src/changed.rs", "2\n");
    std::fs::remove_file(vault.root().join("src/gone.rs")).unwrap();
    commit(&vault, "2024-02-01T12:00:00Z");
    vault
}

/// The program finds git by the path alone, so that is all it is given.
fn run(vault: &Sandbox, arguments: &[&str]) -> crate::sandbox::Ran {
    let path = std::env::var_os("PATH").unwrap_or_default();
    vault.ran(vault.command(arguments).env("PATH", path).output().unwrap())
}

#[test]
fn stale_pages_are_listed_with_the_time() {
    let vault = repository();
    let before = vault.files();
    let ran = run(&vault, &["stale"]).expect(0);
    assert!(ran.stdout.contains("src/changed.rs  modified since 2024-02-01T12:00:00Z"), "{ran}");
    check("stale", &ran);
    run(&vault, &["stale", "--fail"]).expect(1);
    assert_eq!(vault.files(), before, "it only looks");
}

#[test]
fn as_json_it_is_one_value() {
    let vault = repository();
    let ran = run(&vault, &["stale", "--json"]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    let answer = ran.json();
    let counts = serde_json::json!({"fresh": 1, "possibly_stale": 0, "stale": 2, "untracked": 2});
    assert_eq!(answer["counts"], counts);
    assert_eq!(
        answer["pages"][0],
        serde_json::json!({
            "path": "changed.md", "title": "Changed", "staleness": "stale",
            "refs": [{"path": "src/changed.rs", "change": "modified", "since": "2024-02-01T12:00:00Z"}],
        })
    );
    assert_eq!(answer["never_seen"], serde_json::json!([{"path": "typo.md", "ref": "src/tpyo.rs"}]));
}

#[test]
fn staleness_days_are_configurable() {
    let vault = repository();
    vault.write(".quipu/config.toml", "[staleness]\ndays = 36500\n");
    let counts = run(&vault, &["stale", "--json"]).expect(0).json()["counts"].clone();
    assert_eq!((&counts["possibly_stale"], &counts["stale"]), (&1.into(), &1.into()), "what is gone is stale at once");
    std::fs::remove_file(vault.root().join("gone.md")).unwrap();
    run(&vault, &["stale", "--fail"]).expect(0);
}

#[test]
fn without_git_the_baseline_survives_runs() {
    let vault = Sandbox::of("//- doc.md\n---\nsource_refs: a.rs\n---\n//- a.rs\n1\n");
    let level = || vault.run(&["stale", "--json"]).expect(0).json();
    assert!(level()["warnings"][0].as_str().unwrap().contains("`quipu index` creates one"));
    vault.run(&["index"]).expect(0);
    assert_eq!(level()["counts"]["fresh"], 1);
    vault.write("a.rs", "2\n");
    assert_eq!(level()["pages"][0]["staleness"], "possibly_stale");
    vault.run(&["index"]).expect(0);
    assert_eq!(level()["pages"][0]["staleness"], "possibly_stale", "indexing again changes nothing");
    vault.write("doc.md", "---\nsource_refs: a.rs\n---\nFollowed.\n");
    assert_eq!(level()["counts"]["fresh"], 1);
    std::fs::remove_dir_all(vault.root().join(".quipu/index")).unwrap();
    assert_eq!(level()["counts"]["fresh"], 1, "a lost index knows no past, and says nothing wrong");
}

#[test]
fn a_shallow_clone_is_explained_before_the_pages_it_concerns() {
    let vault = repository();
    for number in 0..20 {
        vault.write(&format!("page{number}.md"), "---\nsource_refs: [src/same.rs]\n---\n");
    }
    commit(&vault, "2024-03-01T00:00:00Z");
    let clones = Sandbox::of("");
    let url = format!("file://{}", vault.root().display());
    git(&clones, &["clone", "-q", "--depth", "1", &url, "shallow"], "2024-03-01T00:00:00Z");
    let ran = run(&clones, &["stale", "shallow"]).expect(0);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("warning: this is a shallow clone:"), "{ran}");
    assert!(lines.len() <= 10 && ran.stderr.contains(" more; --json lists them"), "{ran}");
    assert!(ran.stderr.contains("untracked: no `source_refs`, or none that can be compared"), "{ran}");
}

#[test]
fn repository_without_git_program_has_a_warning() {
    let vault = repository();
    let ran = vault.ran(vault.command(&["stale"]).env("PATH", "/nonexistent").output().unwrap()).expect(0);
    assert!(
        ran.stderr.contains("warning: cannot tell whether sources changed: the `git` program is not installed"),
        "{ran}"
    );
}

#[test]
fn failing_git_reports_nothing_as_fresh_and_check_fails() {
    let vault = repository();
    // A program that goes before git and fails. What the index remembers is younger than the changes.
    vault.write("bin/git", "#!/bin/sh\necho fatal: broken >&2\nexit 3\n");
    let program = vault.root().join("bin/git");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |arguments: &[&str]| {
        let path = format!("{}:/usr/bin:/bin", vault.root().join("bin").display());
        vault.ran(vault.command(arguments).env("PATH", path).output().unwrap())
    };
    let answer = run(&["stale", "--json"]).expect(0).json();
    assert_eq!(answer["counts"], serde_json::json!({"fresh": 0, "possibly_stale": 0, "stale": 0, "untracked": 5}));
    assert_eq!(answer["unknown"].as_array().unwrap().len(), 5, "{answer}");
    assert!(answer["warnings"][0].as_str().unwrap().contains("git failed"), "{answer}");
    let ran = run(&["stale", "--fail"]).expect(1);
    assert!(
        ran.stderr.contains("fresh.md: its source src/same.rs may have changed: its history cannot be read"),
        "{ran}"
    );
}
